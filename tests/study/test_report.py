"""A completed study, and its results as CSV files, tables and an HTML report."""

import base64
import re

import numpy as np
import pandas as pd
import pytest

from tfr_smooth import evaluation, study
from tfr_smooth.study import folds, plots, workers

pytestmark = pytest.mark.slow  # trains the rankers of the study, and draws all plots


def test_results_contain_the_metrics_of_each_query_and_seed(results, plan, dataset):
    queries = results.queries
    assert list(queries.columns) == ["dataset", "fold", "ranker", "seed", "query", *study.MEASURES]
    for entry in plan.entries:
        for job in plan.selected(dataset, "Fold2", entry):
            mine = queries[(queries["ranker"] == entry.label) & (queries["fold"] == "Fold2")]
            arrays = study.read_result(job, plan.folder).arrays
            mine = mine[mine["seed"] == job.seed].set_index("query").loc[arrays["test_queries"]]
            np.testing.assert_array_equal(mine[list(study.MEASURES)], arrays["test_metrics"])


def test_deterministic_rankers_run_with_one_seed(plan, dataset):
    ridge, chance = plan.entries[2:]
    assert [job.seed for job in plan.selected(dataset, "Fold1", ridge)] == [0]
    assert [job.seed for job in plan.selected(dataset, "Fold1", chance)] == [0, 1]


def test_a_neural_result_contains_learning_curves(plan, dataset):
    (job, *_) = plan.selected(dataset, "Fold1", plan.entries[0])
    arrays = study.read_result(job, plan.folder).arrays
    names = {name for name in arrays if name.startswith("curve_")}
    assert names == {f"curve_{name}" for name in ("loss", "train_seconds", "valid_ndcg", "valid_smooth", "valid_exact")}
    assert all(arrays[name].shape == (2,) for name in names)
    assert (arrays["curve_train_seconds"] > 0).all()


def test_no_process_starts_without_remaining_jobs(plan, dataset, monkeypatch):
    monkeypatch.setattr(workers, "_start", lambda folder: pytest.fail("A process was started."))
    done = [job for place in plan.places() for job in plan.selected(*place)]
    assert done and study.run_jobs(done, plan.folder, workers=2) == []
    assert plan.run(workers=2) == []


def test_the_ensemble_of_one_ranker_is_the_mean_of_its_scores(results, plan, dataset, fold):
    jobs = plan.selected(dataset, "Fold1", plan.entries[0])
    assert len(jobs) == 2
    scores = np.mean([study.read_result(job, plan.folder).arrays["test_scores"] for job in jobs], axis=0)
    expected = evaluation.trec_eval(folds.scored_queries(fold.parts["test"], scores), "map")["map"]
    queries = results.queries
    mine = queries[(queries["ranker"] == "smoothi_ndcg (ensemble)") & (queries["fold"] == "Fold1")]
    assert mine["map"].mean() == pytest.approx(expected)
    assert "ridge (ensemble)" not in set(queries["ranker"])


def test_every_job_is_listed(results):
    jobs = results.jobs
    mine = jobs[(jobs["ranker"] == "smoothi_ndcg") & (jobs["fold"] == "Fold1")]
    assert len(mine) == 3 and mine["selected"].sum() == 2  # two learning rates, one of them with a second seed
    searched = mine[mine["seed"] == 0].set_index("selected")["valid_ndcg"]
    assert searched[True] >= searched[False]


def test_written_results_are_read_back(results, tmp_path):
    jobs = results.jobs.copy()
    jobs["fit_seconds"] = np.random.RandomState(0).rand(len(jobs))  # random values with all digits
    results = study.Results(results.queries, jobs, results.settings)
    study.write_results(results, tmp_path)
    again = study.read_results(tmp_path)
    pd.testing.assert_frame_equal(again.queries, results.queries, check_dtype=False)
    pd.testing.assert_frame_equal(again.jobs, results.jobs, check_dtype=False, check_exact=True)
    assert again.settings == results.settings


@pytest.fixture(scope="module")
def written(results, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    text = study.write_report(results, folder)
    return folder, text


def test_the_report_embeds_its_images_and_contains_only_plots_with_results(written):
    page = (written[0] / "report.html").read_text(encoding="utf-8")
    sources = re.findall(r'(?:src|href)="([^"]{30})', page)
    assert sources and all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    images = re.findall(r"base64,([^\"]+)", page)
    assert all(base64.b64decode(image).lstrip().startswith(b"<?xml") for image in images)
    titles = re.findall(r"<h3>(.*?)</h3>", page)
    assert titles == [
        "Test metrics by ranker: mean and standard error",
        "Differences per query",
        "Learning curves",
        "Time per epoch",
        "Effect of alpha",
    ]


def test_sweeps_are_not_in_the_table(written):
    folder, text = written
    assert "SmoothI-NDCG (ensemble)" in text and "SmoothI-NDCG (alpha" not in text
    names = {"Small.csv", "Small.md", "Small.tex", "Small.txt", "report.html"}
    assert {path.name for path in folder.iterdir()} == names
    assert (folder / "Small.txt").read_text(encoding="utf-8") in text


def test_the_csv_files_reproduce_the_report(results, written, tmp_path):
    study.write_results(results, tmp_path)
    study.write_report(study.read_results(tmp_path), tmp_path)
    for path in written[0].iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


@pytest.mark.parametrize("sweep", [name for name in study.SWEEPS if name != "alpha"])
def test_every_sweep_is_plotted(results, sweep):
    """The results of each sweep are copies of those of one ranker."""
    labels = [entry.label for entry in study.sweep(sweep, [study.Entry("smoothi_ndcg")])]
    queries, jobs = (
        pd.concat([frame[frame["ranker"] == "smoothi_ndcg"].assign(ranker=label) for label in labels])
        for frame in results[:2]
    )
    swept = study.Results(queries, jobs, {**results.settings, "sweeps": {sweep: labels}})
    title = {"metric": "the optimized metric", "discount": "the training discount"}.get(sweep, sweep)
    figure = plots.PLOTS[f"Effect of {title}"](swept, "Small")
    assert len(plots.svg(figure)) > 5000
    assert plots.PLOTS[f"Effect of {title}"](results, "Small") is None


def test_names_are_escaped_in_html(results, tmp_path):
    renamed = results.queries.replace({"dataset": {"Small": "<b>"}})
    jobs = results.jobs.replace({"dataset": {"Small": "<b>"}})
    study.write_report(study.Results(renamed, jobs, results.settings), tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h2>&lt;b&gt;</h2>" in page


def test_a_study_without_results_raises(dataset, tmp_path):
    with pytest.raises(ValueError, match="`study` must have at least one result, got none in"):
        study.collect(study.Study([dataset], [study.Entry("ridge")], tmp_path))
