"""Entries, grids and the selection of hyperparameters."""

import json

import numpy as np
import pytest

from tfr_smooth import _files, study, training
from tfr_smooth.study import jobs

LABELS = ["ridge", "smoothi_ndcg:topn=10:hidden=B64", "smoothi_ndcg:recipe=default"]
LABELS += ["smoothi_ndcg:alpha=0.1:hidden=[8,4]", 'soft_ndcg:discount={"alpha":0.5}:sigma=0.1']


@pytest.mark.parametrize("label", LABELS)
def test_parsing_restores_the_label(label):
    assert study.Entry.parse(label).label == label


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("ridg", "`ranker` must be one of .*, got 'ridg'. Did you mean 'ridge'"),
        ("ridge:alpha=1", "`settings` of Ridge must be among strength, normalization, got 'alpha'"),
        ("ridge:strength", "`settings` must be NAME=VALUE, got 'strength'"),
        ("smoothi_ndcg:recipe=best", "`recipe` must be one of .*default.*, got 'best'"),
        ("ridge:recipe=default", "`settings` of Ridge must be among .*, got 'recipe'"),
        ("smoothi_ndcg:dropout=2", "`dropout` must be a number in"),
    ],
)
def test_invalid_labels_raise(label, message):
    with pytest.raises(ValueError, match=message):
        study.Entry.parse(label)


def test_candidates_combine_the_grid_with_the_settings_of_the_entry():
    entry = study.Entry("smoothi_ndcg", {"alpha": 1.0})
    assert entry.candidates(common={"epochs": 3}) == [
        {"epochs": 3, "alpha": 1.0, "learning_rate": 0.01},
        {"epochs": 3, "alpha": 1.0, "learning_rate": 0.001},
    ]
    assert entry.candidates({"learning_rate": (0.5,), "strength": (1.0,)}) == [{"alpha": 1.0, "learning_rate": 0.5}]
    ridge = study.Entry("ridge").candidates({"strength": (1.0, 2.0)}, {"epochs": 3})
    assert ridge == [{"strength": 1.0}, {"strength": 2.0}]
    assert study.Entry("random").candidates() == [{}]


def test_a_named_recipe_contributes_only_settings_of_the_ranker():
    (smoothi,) = study.Entry("smoothi_ndcg", {"recipe": "default", "members": 2}).candidates()
    assert smoothi == {**training.RECIPES["default"], "alpha": 10.0, "members": 2}
    (list_mle,) = study.Entry("list_mle", {"recipe": "default"}).candidates()
    assert list_mle == training.RECIPES["default"]
    paper, none = (study.Entry("list_mle", settings).candidates() for settings in ({"recipe": "paper"}, {}))
    assert paper == none


@pytest.mark.parametrize(
    ("argument", "value"), [("seeds", ()), ("datasets", []), ("entries", []), ("select_by", "loss")]
)
def test_invalid_studies_raise(dataset, argument, value):
    arguments = {"datasets": [dataset], "entries": [study.Entry("ridge")], "folder": "there", argument: value}
    with pytest.raises(ValueError, match=f"`{argument}` must"):
        study.Study(**arguments)


def write_fake_result(job, folder, valid, test):
    path = jobs.result_path(job, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {"test_metrics": np.full([2, len(study.MEASURES)], test)}
    with _files.replacing(path) as unfinished, open(unfinished, "wb") as file:
        np.savez(file, description=np.array(json.dumps({"valid": {"ndcg": valid, "map": -valid}})), **arrays)


def test_selection_uses_validation_metrics_and_not_test_metrics(dataset, tmp_path):
    entry = study.Entry("smoothi_ndcg")
    grid = {"alpha": (1.0, 2.0, 3.0, 4.0), "learning_rate": (0.1,)}
    plan = study.Study([dataset], [entry], tmp_path, seeds=(7, 8), grid=grid)
    assert plan.selected(dataset, "Fold1", entry) == []
    search = plan.search(dataset, "Fold1", entry)
    assert [job.seed for job in search] == [7] * 4
    # The last job is not done; of the two best on validation, the first is selected.
    for job, valid, test in zip(search, (0.1, 0.3, 0.3), (0.9, 0.1, 0.9), strict=False):
        write_fake_result(job, tmp_path, valid, test)
    chosen = plan.selected(dataset, "Fold1", entry)
    assert [(job.settings["alpha"], job.seed) for job in chosen] == [(2.0, 7), (2.0, 8)]
    by_map = study.Study([dataset], [entry], tmp_path, grid=grid, seeds=(7,), select_by="map")
    assert [job.settings["alpha"] for job in by_map.selected(dataset, "Fold1", entry)] == [1.0]


@pytest.mark.parametrize("name", study.SWEEPS)
def test_sweeps_contain_valid_entries(name):
    entries = study.sweep(name, [study.Entry("ridge"), study.Entry("list_net")])
    assert len({entry.label for entry in entries}) == len(entries) > 2
    assert [study.Entry.parse(entry.label) for entry in entries] == entries


def test_the_depth_sweep_contains_only_neural_rankers():
    entries = study.sweep("depth", [study.Entry("ridge"), study.Entry("list_net", {"epochs": 2})])
    assert entries[0].label == "list_net:epochs=2:hidden=linear" and entries[-1].settings["hidden"] == "B1024"
