"""The benchmark scripts run without the peers that they compare with, and write their measurements."""

import math
import re

import pytest

from tests import helpers
from tests.benchmarks import scripts
from tfr_smooth import data

pytestmark = pytest.mark.slow

# Two sides that take 2 and 6 ms on a simulated clock.
RACE = """
import time
import harness
import numpy as np
from absl import app

now = 0.0
BATCH = np.ones((1, 2), "f"), np.array([[3.0, 4.0]], "f")

def side(milliseconds):
    def run():
        global now
        now += milliseconds / 1e3
    return run

def main(_):
    time.perf_counter = lambda: now
    assert harness.differences((1.0, np.array([2.0, 4.0])), (2.0, np.array([3.0, 4.0]))) == {
        "value": 0.5, "gradient": 0.25
    }
    harness.same((1.0, np.ones(2)), (1.00001, np.ones(2)), value=1e-4, gradient=1e-4, name="")
    try:
        harness.same((1.0, np.ones(2)), (1.0, np.array([1.0, 1.1])), value=1e-4, gradient=1e-2, name="far")
    except AssertionError as error:
        assert "far" in str(error)
    else:
        raise AssertionError("Different gradients passed as equal.")
    result = harness.race({"ours": side(2), "theirs": side(6)}, shape="4x6")
    print(harness.table([result]))
    several = harness.race({"ours": side(2), "theirs": side(6)}, repeats=harness.repeats(), shape="4x6")
    assert all(abs(several["milliseconds"][name] - result["milliseconds"][name]) < 1e-6 for name in ("ours", "theirs"))
    assert now > 0.05
    loss = harness.TensorFlowSide(lambda labels, scores: scores[0, 0] ** 2, *BATCH)
    value, gradient = loss()
    values, gradients = loss.repeat(3)
    assert values.tolist() == [value] * 3 and (gradients == gradient).all() and gradients.shape == (3, 1, 2), gradients
    harness.report([result], more=1)

app.run(main)
"""


def test_a_race_reports_medians_and_ratios(tmp_path):
    (tmp_path / "race.py").write_text(RACE)
    report, printed = scripts.run(tmp_path / "race.py", "--runs=2", folder=tmp_path)
    assert "| 4x6 | 2.00 (1x) | 6.00 (3x) |" in printed
    assert report["more"] == 1 and report["runs"] == 2 and report["threads"] == 1
    (result,) = report["results"]
    assert result["milliseconds"] == pytest.approx({"ours": 2.0, "theirs": 6.0})
    assert result["ratio"] == pytest.approx({"ours": 1.0, "theirs": 3.0})


@pytest.mark.parametrize(
    ("script", "argument", "sides", "left_out"),
    [
        ("smoothi", "--metrics=ndcg", {"ours", "plain TensorFlow"}, "--authors_src"),
        ("softndcg", "--only_ours=", {"ours", "recursion"}, None),
        ("relaxations", "--names=neuralsort_ndcg,softsort_ndcg", {"ours", "ours, step in XLA"}, "--neuralsort_path"),
    ],
)
def test_a_script_runs_without_peers(tmp_path, script, argument, sides, left_out):
    report, printed = scripts.run(f"{script}.py", "--shapes=4x6", argument, folder=tmp_path)
    assert left_out is None or f"{left_out} is not given" in printed
    assert report["results"]
    for result in report["results"]:
        assert sides <= result["ratio"].keys() == result["milliseconds"].keys()
        assert all(math.isfinite(ratio) and ratio > 0.0 for ratio in result["ratio"].values())
        assert result["ratio"]["ours"] == 1.0


def test_missing_peers_are_skipped_with_a_message(tmp_path):
    report, printed = scripts.run("peers.py", "--shapes=4x6", folder=tmp_path)
    assert "--allrank_path is not given" in printed and "--ptranking_path is not given" in printed
    # Rax is included if it is installed.
    assert {result["name"].split()[0] for result in report["results"]} <= {"Rax"}
    assert ("rax is not installed" in printed) == (not report["results"])


def test_the_costs_of_many_list_sizes_and_losses_are_measured(tmp_path):
    arguments = ["--names=approx_ndcg", "--sizes=10", "--losses=10", "--lists=2", "--documents=12"]
    report, printed = scripts.run("sizes.py", *arguments, folder=tmp_path)
    assert [result["what"] for result in report["results"]] == ["10 sizes", "10 losses"]
    for result in report["results"]:
        assert len(result["seconds"]) == len(result["megabytes"]) == 10
        assert min(result["seconds"]) > 0.0 and f"approx_ndcg, {result['what']}" in printed


@pytest.mark.parametrize("cached", ["cached", "nocached"])
def test_the_first_epoch_of_the_readme_is_measured(tmp_path, cached):
    report, printed = scripts.run("first_epoch.py", "--losses=mse,smoothi_ndcg", f"--{cached}", folder=tmp_path)
    first, second = report["results"]
    assert [first["loss"], second["loss"]] == ["mse", "smoothi_ndcg"] and "| smoothi_ndcg |" in printed
    assert first["ratio"] == 1.0 < second["ratio"] < 10.0
    assert min(first["imports"], first["epoch"], second["imports"], second["epoch"]) > 0.1


def test_each_source_has_a_rate(tmp_path):
    report, printed = scripts.run("input_pipelines.py", "--workers=1", "--epochs=1", folder=tmp_path)
    (result,) = report["results"]
    assert set(result["queries_a_second"]) == {
        *("lists", "lists, portable"),
        *("records", "records, packed", "records, service"),
    }
    assert min(result["queries_a_second"].values()) > 0.0
    for name, rate in result["documents_a_second"].items():
        assert rate > result["queries_a_second"][name]
    assert result["megabytes"]["records, packed"] < result["megabytes"]["records"] < result["megabytes"]["text"]
    assert "records, service: " in printed


def test_text_tables_and_epochs_have_a_rate(tmp_path):
    report, printed = scripts.run("reader.py", "--megabytes=1", "--rows=1000", folder=tmp_path)
    (result,) = report["results"]
    assert set(result["megabytes_a_second"]) == {
        *("ours, text", "scikit-learn"),
        *("ours, opening", "ours, an epoch", "ours, shuffled", "ours, grouped"),
    }
    assert result["table"]["seconds_to_first_batch"] > 0.0 and "peak_megabytes_beside_it" in printed


def test_grouping_by_length_reduces_padding_and_keeps_batches_random(tmp_path):
    arguments = ["--queries=800", "--batch_sizes=4,8", "--epochs=3"]
    report, printed = scripts.run("padding.py", *arguments, folder=tmp_path)
    lengths = report["lengths"]
    assert 110 < lengths["mean"] < 130 and 65 < lengths["deviation"] < 90
    assert 5 < lengths["hundredth"] < 25 and lengths["longest"] == 1251
    results = report["results"]
    cases = [(result["batch_size"], result["group_by_length"]) for result in results]
    assert cases == [(4, False), (4, True), (8, False), (8, True)]
    for result in results:
        assert result["batches"] == 800 / result["batch_size"]
        assert abs(result["correlation_of_length_and_place"]) < 5.0 * result["its_deviation_by_chance"]
        assert result["padding"] <= result["most_padding_of_an_epoch"] < result["padding"] + 0.05
        grouped = result["group_by_length"]
        assert result["padding"] < 0.2 if grouped else result["padding"] > 0.3
        assert result["together_again"] < (0.2 if grouped else 0.04)
    assert "| 8 | yes | 100 |" in printed


def test_each_number_of_replicas_is_measured(tmp_path):
    sizes = ["--batch_size=4", "--list_size=5", "--num_features=3", "--hidden=4", "--steps=2", "--epochs=1"]
    report, printed = scripts.run("scaling.py", *sizes, folder=tmp_path / "new", quick=())
    assert [result["replicas"] for result in report["results"]] == [1, 2]
    for result in report["results"]:
        slowest, fastest = result["slowest_and_fastest"]
        assert 0.0 < slowest <= result["queries_per_second"] <= fastest
        assert result["device"].startswith("logical CPUs")
    assert "| 1 |" in printed and "| 2 |" in printed


def test_rankers_are_measured_in_processes_of_their_own(tmp_path):
    sizes = ["--queries=40", "--documents=10", "--features=8", "--epochs=2"]
    report, printed = scripts.run("rankers.py", *sizes, folder=tmp_path, quick=())
    assert "tf_ranking  skipped: set --tf_ranking_python" in printed and list(report) == ["ranker", "lightgbm"]
    for found in report.values():
        assert found["train_seconds"] > 0.0 and found["peak_gib"] > 0.1 and found["documents_per_second"] > 100.0
        mean, error = found["ndcg"]
        assert 0.5 < mean < 1.0 and 0.0 < error < 0.2


def test_steps_of_each_loss_are_measured_for_each_catalog(tmp_path):
    report, _ = scripts.run("catalog.py", "--items=60,90", "--topns=5", "--users=4", "--dim=4", folder=tmp_path)
    results = {(result["method"], result["items"]): result for result in report["results"]}
    methods = {method for method, _ in results}
    assert "softmax" in methods and len(results) == 2 * len(methods) == len(report["results"])
    assert all(result["seconds"] > 0.0 and result["gibibytes"] > 0.1 for result in results.values())


def test_calibration_is_measured_for_each_loss_and_method(tmp_path):
    for fold in (1, 2):
        sizes = {"num_queries": (20, 12, 12), "num_features": 16, "max_documents": 8}
        data.write_synthetic_letor(tmp_path / "data" / f"Fold{fold}", seed=fold, **sizes)
    flags = [f"--data={tmp_path / 'data'}", f"--output={tmp_path / 'scores'}", "--seeds=1", "--hidden=4", "--epochs=2"]
    printed = helpers.check_run("benchmarks/calibration.py", *flags)
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([\d.]+) ± [\d.]+ \| ([\d.]+) ± [\d.]+ \| ", printed, re.M)
    assert len(rows) == 4 * 3 and {method for _, method, *_ in rows} == {"none", "platt", "isotonic"}
    assert all(0.0 < float(ndcg) <= 1.0 and 0.0 <= float(error) <= 1.0 for *_, ndcg, error in rows)


def test_rerankers_have_a_rate(tmp_path):
    pytest.importorskip("keras_hub", reason="text reranking needs Keras 3")
    from tests.text.conftest import VOCABULARY, write_checkpoint

    folder = write_checkpoint(tmp_path / "bert")
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY))
    sizes = ["--queries=8", "--depth=4", "--words=4", "--length=16"]
    report, printed = scripts.run("rerankers.py", f"--model_dir={folder}", *sizes, folder=tmp_path)
    assert "sentence-transformers is not installed." in printed
    assert {result["what"]: result["pairs"] for result in report["results"]} == {"reranking": 32, "training": 32}
    assert all(result["milliseconds"]["ours"] > 0.0 for result in report["results"])
