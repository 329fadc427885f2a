"""Entries, settings from files, and the selection of hyperparameters."""

import json

import numpy as np
import pytest

import experiments
from experiments import jobs


def test_invalid_entries_and_studies_raise(dataset):
    for ranker, settings, message in (
        ("ridg", {}, "`ranker` must be one of .*, got 'ridg'"),
        ("ridge", {"alpha": 1}, "`settings` of Ridge must be among strength, got 'alpha'"),
        ("smoothi_ndcg", {"recipe": "best"}, "`recipe` must be one of .*default.*, got 'best'"),
    ):
        with pytest.raises(ValueError, match=message):
            experiments.Entry(ranker, settings)
    given = {"datasets": [dataset], "entries": [experiments.Entry("ridge")], "folder": "there"}
    for wrong in ({"seeds": ()}, {"datasets": []}, {"entries": []}, {"select_by": "loss"}, {"relevance_level": 0}):
        with pytest.raises(ValueError, match=f"`{next(iter(wrong))}` must"):
            experiments.Study(**{**given, **wrong})


def test_candidates_combine_the_grid_with_the_settings_of_the_entry():
    entry = experiments.Entry("smoothi_ndcg", {"alpha": 1.0})
    assert entry.label == "smoothi_ndcg (alpha=1.0)"
    rates = [{"epochs": 3, "alpha": 1.0, "learning_rate": rate} for rate in (0.01, 0.001)]
    assert entry.candidates(common={"epochs": 3}) == rates
    assert entry.candidates({"learning_rate": (0.5,), "strength": (1.0,)}) == [{"alpha": 1.0, "learning_rate": 0.5}]
    ridge = experiments.Entry("ridge").candidates({"strength": (1.0, 2.0)}, {"epochs": 3})
    assert ridge == [{"strength": 1.0}, {"strength": 2.0}]
    assert experiments.Entry("random").candidates() == [{}]


def test_the_settings_of_a_file_are_those_of_a_study(tmp_path, dataset):
    path = tmp_path / "study.json"
    rankers = {"Wide": {"ranker": "list_net", "hidden": [64]}, "ridge": {}}
    path.write_text(json.dumps({"rankers": rankers, "grid": {"strength": [0.5]}, "settings": {"epochs": 3}}))
    study = experiments.Study([dataset], folder=tmp_path, **experiments.read_config(path))
    assert [(entry.label, entry.ranker) for entry in study.entries] == [("Wide", "list_net"), ("ridge", "ridge")]
    wide, _ = study.search(dataset, "Fold1", study.entries[0])
    assert wide.settings == {"epochs": 3, "hidden": [64], "learning_rate": 0.01}
    (ridge,) = study.search(dataset, "Fold1", study.entries[1])
    assert ridge.settings == {"strength": 0.5}
    path.write_text('{"ranker": []}')
    with pytest.raises(ValueError, match="study.json must have an object with the keys rankers, grid, settings."):
        experiments.read_config(path)


def test_selection_uses_validation_metrics_and_not_test_metrics(dataset, tmp_path):
    entry = experiments.Entry("smoothi_ndcg")
    grid = {"alpha": (1.0, 2.0, 3.0, 4.0), "learning_rate": (0.1,)}
    plan = experiments.Study([dataset], [entry], tmp_path, seeds=(7, 8), grid=grid)
    assert plan.selected(dataset, "Fold1", entry) == []
    search = plan.search(dataset, "Fold1", entry)
    assert [job.seed for job in search] == [7] * 4
    # The last job is not done; of the two best on validation, the first is selected.
    for job, valid, test in zip(search, (0.1, 0.3, 0.3), (0.9, 0.1, 0.9), strict=False):
        path, description = jobs.result_path(job, tmp_path), {"valid": {"ndcg": valid, "map": -valid}}
        path.parent.mkdir(parents=True, exist_ok=True)
        metrics = np.full([2, len(experiments.MEASURES)], test)
        np.savez(path, description=np.array(json.dumps(description)), test_metrics=metrics)
    chosen = plan.selected(dataset, "Fold1", entry)
    assert [(job.settings["alpha"], job.seed) for job in chosen] == [(2.0, 7), (2.0, 8)]
    by_map = experiments.Study([dataset], [entry], tmp_path, grid=grid, seeds=(7,), select_by="map")
    assert [job.settings["alpha"] for job in by_map.selected(dataset, "Fold1", entry)] == [1.0]
