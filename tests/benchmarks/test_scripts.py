"""The benchmark scripts run without the peers that they compare with, and write their measurements."""

import json
import os
import re

import numpy as np
import pandas as pd
import pytest

from tests import helpers
from tests.helpers.documents import ROOT, read

pytestmark = pytest.mark.slow
# The smallest settings: the tests check that the scripts run, not how fast they are.
QUICK = "--threads=1 --runs=1 --warm_runs=1 "
ONE_THREAD = "--batch_size=4 --list_size=5 --num_features=3 --hidden=4 --steps=2 --epochs=1"
SCRIPTS = {
    "catalog": QUICK + "--items=60,90 --topns=5 --users=4 --dim=4",
    "first_epoch": QUICK + "--losses=mse,smoothi_ndcg",
    "growth": QUICK + "--names=list_net,soft_err --lengths=4,8 --lists=2 --batches=1,2 --documents=4 --plot=growth.png",
    "input_pipelines": QUICK + "--workers=1 --epochs=1",
    "padding": QUICK + "--queries=200 --batch_sizes=4 --epochs=3",
    "peers": QUICK + "--shapes=4x6",
    "rankers": "--queries=40 --documents=10 --features=8 --epochs=2",
    "reading": "--rows=1000 --runs=1",
    "relaxations": QUICK + "--shapes=4x6 --names=neuralsort_ndcg,softsort_ndcg",
    "scaling": ONE_THREAD,
    "serving": QUICK + "--queries=4 --documents=8 --clients=2",
    "sizes": QUICK + "--names=approx_ndcg --sizes=10 --losses=10 --lists=2 --documents=12",
    "smoothi": QUICK + "--shapes=4x6 --metrics=ndcg",
    "softndcg": QUICK + "--shapes=4x6 --only_ours=",
    "softrank_errors": "--threads=1 --lengths=4 --sigmas=1 --steps=0,1 --draws=100",
}


def run(script, flags, folder):
    """Returns the report of a script, and what it printed. A script outside benchmarks/ can import the harness too."""
    output = folder / "report.json"
    arguments = [*flags.replace("=growth.png", f"={folder}/growth.png").split(), f"--output={output}"]
    path = os.pathsep.join([str(ROOT), str(ROOT / "benchmarks")])
    printed = helpers.check_run(ROOT / "benchmarks" / script, *arguments, PYTHONPATH=path)
    return json.loads(output.read_text(encoding="utf-8")), printed


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_prints_and_writes_what_it_measured(script, tmp_path):
    report, printed = run(f"{script}.py", SCRIPTS[script], tmp_path)
    results = report.get("results", report)
    text = json.dumps(results, allow_nan=False)  # refuses NaN and infinity
    if script == "peers":  # Rax is measured if it is installed.
        assert "--allrank_path is not given" in printed and ("rax is not installed" in printed) == (not results)
    else:
        assert max(map(float, re.findall(r"\d+\.\d+", text))) > 0.0 and len(printed.splitlines()) >= 2


def test_the_checks_for_gpus_pass_on_a_cpu_and_write_their_results(tmp_path):
    parts = ["model", "right0", "replicas", "estimators", "agree"]
    arguments = [f"--results={tmp_path}", "--small", f"--parts={','.join(parts)}"]
    path = os.pathsep.join([str(ROOT), str(ROOT / "benchmarks")])
    printed = helpers.check_run(ROOT / "benchmarks" / "gpu.py", *arguments, PYTHONPATH=path)
    assert "All checks passed." in printed
    rows = {part: json.loads((tmp_path / f"{part}_cpu.json").read_text(encoding="utf-8")) for part in parts}
    assert {"gradient", "value"} <= set(rows["right0"][0]) and rows["replicas"][0]["weights"] <= 1e-6
    assert {row["model"] for row in rows["agree"]} == {"ranker", "recommender"}


def test_a_difference_or_an_error_fails_the_checks_for_gpus(tmp_path):
    (tmp_path / "right0_gpu.json").write_text('[{"mode": "graph", "value": 0.0, "gradient": 1.0}, {"value": NaN}]')
    (tmp_path / "text_gpu.json").write_text('[{"error": "ended after 1 s"}, {"rows": 1}]')
    script = f"""
import sys
import gpu
from absl import flags
flags.FLAGS(["gpu.py", "--results={tmp_path}"])
print(len(list(gpu.failures())))
"""
    path = tmp_path / "run.py"
    path.write_text(script)
    printed = helpers.check_run(path, PYTHONPATH=os.pathsep.join([str(ROOT), str(ROOT / "benchmarks")]))
    assert printed.split()[-1] == "3"


def test_real_tables_compares_sides_and_continues(tmp_path):
    pytest.importorskip("lightgbm")
    flags = ["--table=my.csv", "--label=grade", "--query=session", "--time=day", '--kinds={"shop": "id"}']
    flags += ["--sides=lightgbm,lightgbm+,ranker", "--trials=2", "--seeds=1", "--trees=5", f"--output={tmp_path}"]
    flags += ["--matches=title:search", '--settings={"members": 1, "epochs": 1}']
    random = np.random.default_rng(0)
    shop = random.integers(0, 5, 400)
    frame = pd.DataFrame({"session": np.repeat(np.arange(40), 10), "shop": np.char.add("shop ", shop.astype(str))})
    frame["day"], frame["grade"], frame['a, "price"'] = frame["session"] // 2, shop % 3, random.random(400)
    frame["search"], frame["title"] = "a red lamp", random.choice(["a red lamp", "a big chair"], 400)
    frame.sample(frac=1, random_state=0).to_csv(tmp_path / "my.csv", index=False)
    flags[0] = f"--table={tmp_path / 'my.csv'}"
    validated = helpers.check_run("benchmarks/real_tables.py", *flags, "--validate_only")
    assert not re.search(r"\btest\b.*seed", validated) and "| lightgbm+ | " in validated
    printed = helpers.check_run("benchmarks/real_tables.py", *flags)
    rows = {
        row.split(" | ")[0]: row.split(" | ")[1:] for row in re.findall(r"^\| (lightgbm.*|ranker.*) \|$", printed, re.M)
    }
    assert list(rows) == ["lightgbm", "lightgbm+", "ranker"]
    assert "test, seed 0:" in printed and "trial 0, seed 0:" not in printed  # continues after the trials
    assert float(rows["lightgbm+"][1]) > 0.9  # The shop decides.
    values = pd.read_csv(tmp_path / "values.csv", index_col="query")
    assert set(values.index) == set(range(30, 40)) and values.notna().all(axis=None)  # the last quarter of the days
    assert values["ranker"].mean() == pytest.approx(float(rows["ranker"][1]), abs=1e-4)


def test_sequences_compares_methods_by_the_last_items_and_continues(tmp_path):
    # Item i + 1 follows item i.
    starts = np.random.default_rng(0).integers(0, 20, 60)
    lists = [f"u{user} " + " ".join(str((start + k) % 20) for k in range(8)) for user, start in enumerate(starts)]
    (tmp_path / "lists.txt").write_text("\n".join(lists))
    settings = {
        "Recommender": {"dim": 4, "softmax_epochs": 1, "epochs": 1},
        "Recommender of sequences": {"history_length": 6, "dim": 4, "softmax_epochs": 1, "epochs": 1},
        "SASRec": [{"dim": 16, "length": 6, "dropout": 0.0, "batch_size": 8, "epochs": 1}],
        "EASE": [{"strength": 1.0}, {"strength": 10.0}],
    }
    flags = [f"--data={tmp_path / 'lists.txt'}", f"--output={tmp_path}", "--workers=0"]
    flags += [f"--settings={json.dumps(settings)}"]
    printed = helpers.check_run("benchmarks/sequences.py", *flags)
    rows = {row.split(" | ")[0]: row.split(" | ")[1:] for row in re.findall(r"^\| (\w.*) \|$", printed, re.M)}
    measured = {name: dict(zip(rows["method"], row, strict=True)) for name, row in rows.items()}
    assert list(rows)[1:] == [
        *("popularity", "recent popularity", "Markov chain", "item kNN", "EASE"),
        *("Recommender", "Recommender of sequences", "SASRec"),
    ]
    best = measured["Markov chain"]
    assert best["HR@10"] == best["MRR@10"] == best["validation NDCG@10"] == "1.0000"
    assert all(float(row["NDCG@10"]) < 1.0 and float(row["MB"]) > 0.0 for row in map(measured.get, list(rows)[1:3]))
    assert float(measured["SASRec"]["seconds per epoch"]) >= 0.0
    stored = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")}
    assert len(stored) == 8 and helpers.check_run("benchmarks/sequences.py", *flags) == printed
    assert stored == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")}


# Two sides that take 2 and 6 ms on a simulated clock.
RACE = """
import time
import harness
import numpy as np
import pandas as pd
import pytest
from absl import app

now = 0.0

def side(milliseconds):
    def run():
        global now
        now += milliseconds / 1e3
    return run

def main(_):
    time.perf_counter = lambda: now
    harness.same((1.0, np.ones(2)), (1.00001, np.ones(2)), value=1e-4, gradient=1e-4, name="")
    with pytest.raises(AssertionError, match="far"):
        harness.same((1.0, np.ones(2)), (1.0, np.array([1.0, 1.1])), value=1e-4, gradient=1e-2, name="far")
    result = harness.race({"ours": side(2), "theirs": side(6)}, shape="4x6")
    harness.report([result])

app.run(main)
"""


def test_a_race_reports_medians_and_ratios(tmp_path):
    (tmp_path / "race.py").write_text(RACE)
    report, printed = run(tmp_path / "race.py", QUICK + "--runs=2", tmp_path)
    assert "| 4x6 | 2.00 (1x) | 6.00 (3x) |" in printed
    assert report["results"][0]["milliseconds"] == pytest.approx({"ours": 2.0, "theirs": 6.0})


def test_the_published_growth_is_that_of_the_stored_report(tmp_path):
    table = helpers.check_run("benchmarks/growth.py", "--report=docs/images/growth.json").strip()
    assert table.count("|") > 20 and table in read("benchmarks/README.md")


def test_calibration_is_measured_for_each_loss_and_method(tmp_path):
    folds = helpers.write_folds(tmp_path / "data", num_queries=(20, 40, 12), max_documents=8)
    flags = [f"--data={folds}", f"--output={tmp_path / 'scores'}", "--seeds=1", "--hidden=4", "--epochs=2"]
    printed = helpers.check_run("benchmarks/calibration.py", *flags)
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([\d.]+) ± [\d.]+ \| ([\d.]+) ± [\d.]+ \| ", printed, re.M)
    assert len(rows) == 4 * 3 and {method for _, method, *_ in rows} == {"none", "platt", "isotonic"}
    assert all(0.0 < float(ndcg) <= 1.0 and 0.0 <= float(error) <= 1.0 for *_, ndcg, error in rows)


def test_rerankers_have_a_rate(tmp_path):
    pytest.importorskip("keras_hub", reason="text reranking needs Keras 3")
    from tests.text.conftest import VOCABULARY, write_checkpoint

    folder = write_checkpoint(tmp_path / "bert")
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY))
    flags = f"{QUICK} --model_dir={folder} --queries=8 --depth=4 --words=4 --length=16"
    report, _ = run("rerankers.py", flags, tmp_path)
    assert {result["what"]: result["pairs"] for result in report["results"]} == {"reranking": 32, "training": 32}
    assert all(result["milliseconds"]["ours"] > 0.0 for result in report["results"])
