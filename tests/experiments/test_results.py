"""A completed study, and its results as CSV files, tables and a report."""

import json
import re
import socket
import warnings

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import experiments
from experiments import execution, files, tables
from tfr_smooth import evaluation


def test_what_a_killed_process_left_is_removed(tmp_path):
    left = tmp_path / f".unfinished-{socket.gethostname()}-4194305-0.a.csv"  # no system has such a process
    left.touch()
    files.write(tmp_path / "a.csv", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def made_up(labels, values, **settings):
    """Returns results with one row per ranker and query."""
    queries = [
        {"dataset": dataset, "fold": "Fold1", "ranker": label, "seed": 0, "query": f"q{query}"}
        | dict.fromkeys(experiments.MEASURES, value + 0.01 * query)
        for dataset in ("D",)
        for label, value in zip(labels, values, strict=True)
        for query in range(4)
    ]
    jobs = [{"dataset": "D", "fold": "Fold1", "ranker": label, "seed": 0, "selected": True} for label in labels]
    jobs = [{**job, "settings": '{"a": "<b>|"}', "fit_seconds": 1.5, "curves": "{}"} for job in jobs]
    settings = {"entries": list(labels), "select_by": "ndcg", "files": {"D": {"Fold1": "digest"}}, **settings}
    return experiments.Results(pd.DataFrame(queries), pd.DataFrame(jobs), settings)


@pytest.mark.slow
def test_results_contain_the_metrics_of_each_query_and_seed(results, plan, dataset):
    queries = results.queries
    assert list(queries.columns) == ["dataset", "fold", "ranker", "seed", "query", *experiments.MEASURES]
    for entry in plan.entries:
        for job in plan.selected(dataset, "Fold2", entry):
            mine = queries[(queries["ranker"] == entry.label) & (queries["fold"] == "Fold2")]
            arrays = experiments.read_result(job, plan.folder).arrays
            mine = mine[mine["seed"] == job.seed].set_index("query").loc[arrays["test_queries"]]
            np.testing.assert_array_equal(mine[list(experiments.MEASURES)], arrays["test_metrics"])


@pytest.mark.slow
def test_no_process_starts_without_remaining_jobs(plan, monkeypatch):
    monkeypatch.setattr(execution, "_pool", lambda workers: pytest.fail("A process was started."))
    assert plan.run(workers=2) == []


def test_the_ensemble_has_the_mean_scores_of_the_seeds(dataset, fold, tmp_path):
    study = experiments.Study([dataset], [experiments.Entry("random")], tmp_path, seeds=(0, 1, 2))
    assert study.run(workers=0) == []
    jobs = study.selected(dataset, "Fold1", study.entries[0])
    scores = np.mean([experiments.read_result(job, tmp_path).arrays["test_scores"] for job in jobs], axis=0)
    expected = evaluation.trec_eval(fold.test.scored(scores), "map")["map"]
    queries = experiments.collect(study, ensemble=True).queries
    mine = queries[(queries["ranker"] == "random (ensemble)") & (queries["fold"] == "Fold1")]
    assert mine["map"].mean() == pytest.approx(expected)
    assert set(experiments.collect(study).queries["ranker"]) == {"random"}


@pytest.mark.slow
def test_every_job_is_listed(results):
    jobs = results.jobs
    mine = jobs[(jobs["ranker"] == "smoothi_ndcg") & (jobs["fold"] == "Fold1")]
    assert len(mine) == 3 and mine["selected"].sum() == 2  # two learning rates, one of them with a second seed
    names = {name for curves in mine["curves"] for name in json.loads(curves)}
    assert names == {"loss", "valid_ndcg", "valid_smooth", "valid_exact"}
    searched = mine[mine["seed"] == 0].set_index("selected")["valid_ndcg"]
    assert searched[True] >= searched[False]
    assert "ridge (ensemble)" not in results.labels and "smoothi_ndcg (ensemble)" in results.labels


@pytest.mark.slow
def test_written_results_are_read_back_and_give_the_same_report(results, tmp_path):
    jobs = results.jobs.copy()
    jobs["fit_seconds"] = np.random.RandomState(0).rand(len(jobs))  # random values with all digits
    results = experiments.Results(results.queries, jobs, results.settings)
    experiments.write_results(results, tmp_path)
    again = experiments.read_results(tmp_path)
    pd.testing.assert_frame_equal(again.queries, results.queries, check_dtype=False)
    pd.testing.assert_frame_equal(again.jobs, results.jobs, check_dtype=False, check_exact=True)
    assert again.settings == results.settings
    text = experiments.write_report(results, tmp_path / "first")
    assert experiments.write_report(again, tmp_path / "second") == text
    first, second = ((tmp_path / name).rglob("*.*") for name in ("first", "second"))
    assert [path.read_bytes() for path in sorted(first)] == [path.read_bytes() for path in sorted(second)]
    page = (tmp_path / "first" / "report.md").read_text(encoding="utf-8")
    titles = ["Test metrics by ranker: mean and standard error", "Differences per query", "Learning curves"]
    assert re.findall("^### (.*)", page, re.M) == [*titles, "Time of fitting", "Selected hyperparameters"]
    assert json.loads(page.partition("```json")[2].partition("```")[0]) == results.settings
    for path in re.findall(r"!\[.*\]\(<(.*)>\)", page):
        with Image.open(tmp_path / "first" / path) as image:
            assert image.width > 400


def test_a_second_command_adds_its_rows_to_the_tables(tmp_path):
    experiments.write_results(made_up(["ridge", "random"], [0.5, 0.2]), tmp_path)
    found = experiments.write_results(made_up(["list_net", "random"], [0.6, 0.3]), tmp_path)
    assert found.labels == experiments.read_results(tmp_path).labels == ["ridge", "random", "list_net"]
    means = found.queries.groupby("ranker")["ndcg"].mean().round(3).to_dict()
    assert means == {"list_net": 0.615, "random": 0.315, "ridge": 0.515} and len(found.jobs) == 3
    text = experiments.write_report(found, tmp_path)
    assert "Ridge regression" in text and "ListNet" in text


@pytest.mark.parametrize(
    ("changed", "named"), [({"select_by": "map"}, "select_by"), ({"files": {"D": {"Fold1": "other"}}}, "D")]
)
def test_results_of_other_settings_or_data_are_not_mixed(tmp_path, changed, named):
    experiments.write_results(made_up(["ridge"], [0.5]), tmp_path)
    with pytest.warns(UserWarning, match=f"no results of earlier commands: {named} changed"):
        found = experiments.write_results(made_up(["random"], [0.2], **changed), tmp_path)
    assert found.labels == ["random"]


def test_another_data_set_is_added(tmp_path):
    experiments.write_results(made_up(["ridge"], [0.5]), tmp_path)
    other = made_up(["ridge"], [0.4], files={"E": {"Fold1": "digest"}})
    for frame in other[:2]:
        frame["dataset"] = "E"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = experiments.write_results(other, tmp_path)
    assert sorted(set(found.queries["dataset"])) == ["D", "E"] and sorted(found.settings["files"]) == ["D", "E"]


def test_names_are_escaped(tmp_path):
    label = r"a|b <script>&_%$#{}~^\input"
    results = made_up([label, "ridge"], [0.5, 0.2])
    experiments.write_report(results, tmp_path, baseline=label)
    for name in ("D.md", "report.md"):
        page = (tmp_path / name).read_text(encoding="utf-8")
        assert "<script>" not in page.partition("```json")[0] and r"a\|b &lt;script>" in page
        rows = [line for line in page.splitlines() if "script" in line and line.startswith("|")]
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} <= {10, 4}
    latex = (tmp_path / "D.tex").read_text(encoding="utf-8")
    escaped = r"\&\_\%\$\#\{\}\textasciitilde{}\textasciicircum{}\textbackslash{}input"
    assert escaped in latex and r"\begin{tabular}{lrrrrrrrr}" in latex
    assert len(list(tmp_path.glob("D_against_*.csv"))) == 1


def test_an_unknown_baseline_is_named(tmp_path):
    with pytest.raises(ValueError, match="`baseline` must be one of ridge, random, got 'bm25'."):
        tables.compare(made_up(["ridge", "random"], [0.5, 0.2]), "D", baseline="bm25")


def test_a_study_without_results_raises(dataset, tmp_path):
    with pytest.raises(ValueError, match="`study` must have at least one result, got none in"):
        experiments.collect(experiments.Study([dataset], [experiments.Entry("ridge")], tmp_path))
