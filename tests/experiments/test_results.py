"""A completed study, and its results as CSV files, tables and a report."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import experiments
from tfr_smooth import evaluation


def made_up(labels, values, **settings):
    """Returns results with one row per ranker and query."""
    jobs = [{"dataset": "D", "fold": "Fold1", "ranker": label, "seed": 0} for label in labels]
    queries = [
        {**job, "query": f"q{query}"} | dict.fromkeys(experiments.MEASURES, value + 0.01 * query)
        for job, value in zip(jobs, values, strict=True)
        for query in range(4)
    ]
    more = {"selected": True, "settings": '{"a": "<b>|"}', "fit_seconds": 1.5, "curves": "{}"}
    settings = {"entries": list(labels), "select_by": "ndcg", "files": {"D": {"Fold1": "digest"}}, **settings}
    return experiments.Results(pd.DataFrame(queries), pd.DataFrame(jobs).assign(**more), settings)


def test_the_ensemble_has_the_mean_scores_of_the_seeds_and_rankers_without_chance_have_one(dataset, fold, tmp_path):
    entries = [experiments.Entry("random"), experiments.Entry("ridge", {"strength": 1.0}, "Mine")]
    study = experiments.Study([dataset], entries, tmp_path, seeds=(2, 1, 0))
    assert study.run(workers=0) == []
    jobs, ridge = (study.selected(dataset, "Fold1", entry) for entry in entries)
    assert [job.seed for job in jobs] == [2, 1, 0] and [job.seed for job in ridge] == [2]
    scores = np.mean([experiments.read_result(job, tmp_path).arrays["test_scores"] for job in jobs], axis=0)
    expected = evaluation.trec_eval(fold.test.scored(scores), "map")["map"]
    queries = experiments.collect(study, ensemble=True).queries
    mine = queries[(queries["ranker"] == "random (ensemble)") & (queries["fold"] == "Fold1")]
    assert mine["map"].mean() == pytest.approx(expected)
    # The written settings repeat the study.
    assert set(experiments.write_results(experiments.collect(study), tmp_path).labels) == {"random", "Mine"}
    other = experiments.Study([dataset], [experiments.Entry("single_feature")], tmp_path)
    assert other.run(workers=0) == []
    experiments.write_results(experiments.collect(other), tmp_path)  # adds its ranker
    assert experiments.read_config(tmp_path / "study.json")["entries"] == [*entries, *other.entries]


@pytest.mark.slow
def test_written_results_are_read_back_and_give_the_same_report(dataset, tmp_path):
    entries = [experiments.Entry(name) for name in ("list_net", "ridge", "random")]
    grid = {"learning_rate": (0.01,), "strength": (0.01, 1.0)}
    settings = {"hidden": [4], "epochs": 2, "batch_size": 16}
    study = experiments.Study([dataset], entries, tmp_path, seeds=(0, 1), grid=grid, settings=settings)
    assert study.run(workers=0) == []
    results = experiments.collect(study, ensemble=True)
    jobs = results.jobs.assign(fit_seconds=np.random.RandomState(0).rand(len(results.jobs)))  # with all digits
    results = results._replace(jobs=jobs)
    experiments.write_results(results, tmp_path / "written")
    again = experiments.read_results(tmp_path / "written")
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


def test_a_second_command_adds_its_rows_to_the_tables_but_not_to_those_of_other_settings_or_data(tmp_path):
    experiments.write_results(made_up(["ridge", "random"], [0.5, 0.2]), tmp_path)
    found = experiments.write_results(made_up(["list_net", "random"], [0.6, 0.3]), tmp_path)
    assert found.labels == experiments.read_results(tmp_path).labels == ["ridge", "random", "list_net"]
    means = found.queries.groupby("ranker")["ndcg"].mean().round(3).to_dict()
    assert means == {"list_net": 0.615, "random": 0.315, "ridge": 0.515} and len(found.jobs) == 3
    for changed, named in (({"select_by": "map"}, "select_by"), ({"files": {"D": {"Fold1": "other"}}}, "D")):
        experiments.write_results(made_up(["ridge"], [0.5]), tmp_path / named)
        with pytest.warns(UserWarning, match=f"no results of earlier commands: {named} changed"):
            found = experiments.write_results(made_up(["random"], [0.2], **changed), tmp_path / named)
        assert found.labels == ["random"]


@pytest.mark.parametrize("name", ["per_query.csv.gz", "jobs.csv.gz", "study.json"])
def test_a_damaged_file_is_named(name, tmp_path):
    experiments.write_results(made_up(["ridge"], [0.5]), tmp_path)
    content = (tmp_path / name).read_bytes()
    for damaged in (content[: len(content) // 2], content[:40] + bytes([content[40] ^ 255]) + content[41:], b""):
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(ValueError, match=f"^.*{name} is damaged: [^\n]*$"):
            experiments.read_results(tmp_path)


def test_tables_of_two_studies_are_not_read(tmp_path, monkeypatch):
    experiments.write_results(made_up(["ridge"], [0.5]), tmp_path)
    write, left = experiments.results.write, [1]

    def full_disk(path, content):
        if not left:
            raise OSError("disk full")
        left.pop()
        write(path, content)

    monkeypatch.setattr(experiments.results, "write", full_disk)
    with pytest.warns(UserWarning, match="select_by changed"), pytest.raises(OSError, match="disk full"):
        experiments.write_results(made_up(["ridge"], [0.1], select_by="map"), tmp_path)
    with pytest.raises(FileNotFoundError, match="study.json"):
        experiments.read_results(tmp_path)


def test_names_are_escaped(tmp_path):
    label = r"a|b <script>&_%$#{}~^\input"
    experiments.write_report(made_up([label, "ridge"], [0.5, 0.2]), tmp_path, baseline=label)
    for name in ("D.md", "report.md"):
        page = (tmp_path / name).read_text(encoding="utf-8")
        assert "<script>" not in page.partition("```json")[0] and r"a\|b &lt;script>" in page
        rows = [line for line in page.splitlines() if "script" in line and line.startswith("|")]
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} <= {10, 4}
    escaped = r"\&\_\%\$\#\{\}\textasciitilde{}\textasciicircum{}\textbackslash{}input"
    assert escaped in (tmp_path / "D.tex").read_text(encoding="utf-8")
    assert len(list(tmp_path.glob("D_against_*.csv"))) == 1
