"""The benchmark scripts run without the peers that they compare with, and write their measurements."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from tests import helpers
from tests.helpers import scripts
from tests.helpers.documents import ROOT, read

pytestmark = pytest.mark.slow
# The smallest settings: the tests check that the scripts run, not how fast they are.
QUICK = "--threads=1 --runs=1 --warm_runs=1 --repeats=1 "
SCRIPTS = {
    "catalog": QUICK + "--items=60 --topns=5 --users=4 --dim=4",
    "first_epoch": "--threads=1 --runs=1 --warm_runs=0 --losses=list_net",
    "growth": QUICK + "--names=list_net,soft_err --lengths=4,8 --lists=2 --batches=1,2 --documents=4 --plot={plot}",
    "input_pipelines": QUICK + "--workers=1 --epochs=1",
    "padding": QUICK + "--queries=200 --batch_sizes=4 --epochs=3",
    "peers": QUICK + "--shapes=4x6",
    "rankers": '--queries=40 --documents=10 --features=8 --settings={{"members":1,"epochs":1,"trees":false}}',
    "reading": "--rows=1000 --runs=1",
    "relaxations": QUICK + "--repeats=2 --shapes=4x6 --names=neuralsort_ndcg,softsort_ndcg",
    "sampled_rankings": "--threads=1 --shapes=2x4 --samples=2 --draws=3",
    "scaling": "--replicas=2 --batch_size=4 --list_size=5 --num_features=3 --hidden=4 --steps=2 --epochs=1",
    "serving": QUICK + "--queries=4 --documents=8 --clients=2",
    "calibration": "--seeds=1 --hidden=4 --epochs=2 --data={folds}",
    "rerankers": QUICK + "--model_dir={checkpoint} --queries=8 --depth=4 --words=4 --length=16",
    "sizes": QUICK + "--names=approx_ndcg --sizes=10 --losses=10 --lists=2 --documents=12",
    "smoothi": QUICK + "--shapes=4x6 --metrics=ndcg",
    "softndcg": QUICK + "--shapes=4x6 --only_ours=",
    "softrank_errors": "--threads=1 --lengths=4 --sigmas=1 --steps=0,1 --draws=100",
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_prints_and_writes_what_it_measured(script, tmp_path, monkeypatch):
    if script != "calibration":  # of rankers that have learned something
        scripts.small_rankers(monkeypatch)
    given = {"plot": tmp_path / "a.png"}
    if "{folds}" in SCRIPTS[script]:
        given["folds"] = helpers.write_folds(tmp_path / "data", num_queries=(20, 40, 12), max_documents=8)
    if "{checkpoint}" in SCRIPTS[script]:
        pytest.importorskip("keras_hub", reason="text reranking needs Keras 3")
        given["checkpoint"] = ROOT / "tests" / "text" / "published" / "bert"
    output = tmp_path / "report.json"
    # Which divides the processor into logical devices.
    check_run = helpers.check_run if script == "scaling" else scripts.check_run
    printed = check_run(f"benchmarks/{script}.py", *SCRIPTS[script].format(**given).split(), f"--output={output}")
    if script == "calibration":  # writes scores
        assert printed.count("| platt |") == printed.count("| isotonic |") == 4
        return
    report = json.loads(output.read_text(encoding="utf-8"))
    results = report.get("results", report)
    text = json.dumps(results, allow_nan=False)  # refuses NaN and infinity
    if script == "peers":  # Rax is measured if it is installed.
        assert "--allrank_path is not given" in printed and ("rax is not installed" in printed) == (not results)
    else:
        assert max(map(float, re.findall(r"\d+\.\d+", text))) > 0.0 and len(printed.splitlines()) >= 2


def test_the_checks_for_gpus_pass_on_a_cpu_and_write_their_results(tmp_path):
    flags = [f"--results={tmp_path}", "--small"]
    parts = ["cuda_graphs", "right0", "steps0", "replicas"]
    for part in parts[:-1]:
        scripts.check_run("benchmarks/gpu.py", *flags, f"--process={part},cpu")
    # In a process, and then the checks of all results.
    assert "All checks passed." in scripts.check_run("benchmarks/gpu.py", *flags, "--limit=300", "--parts=replicas")
    rows = {part: json.loads((tmp_path / f"{part}_cpu.json").read_text(encoding="utf-8")) for part in parts}
    assert {"gradient", "value"} <= set(rows["right0"][0]) and rows["replicas"][0]["weights"] <= 1e-6
    assert all(row["difference"] <= 1e-4 for row in rows["steps0"] if "change" not in row)
    assert {row["loss"] for row in rows["cuda_graphs"]} >= {"none", "smoothi_ndcg", "lapsum_ndcg"}


def rows_of(table, pattern):
    """Returns the cells of the rows that match by the first cell."""
    return {row.split(" | ")[0]: row.split(" | ")[1:] for row in re.findall(rf"^\| ({pattern}) \|$", table, re.M)}


def test_real_tables_compares_sides_and_continues(tmp_path):
    pytest.importorskip("lightgbm")
    flags = [f"--table={tmp_path / 'my.csv'}", "--label=grade", "--query=session", "--time=day"]
    flags += ['--kinds={"shop": "id"}', "--sides=lightgbm,lightgbm+,ranker", "--trials=2", "--seeds=1", "--trees=5"]
    flags += [
        "--matches=title:search",
        '--settings={"members": 1, "epochs": 1, "trees": false}',
        f"--output={tmp_path}",
    ]
    random = np.random.default_rng(0)
    shop = random.integers(0, 5, 400)
    frame = pd.DataFrame({"session": np.repeat(np.arange(40), 10), "shop": np.char.add("shop ", shop.astype(str))})
    frame["day"], frame["grade"], frame['a, "price"'] = frame["session"] // 2, shop % 3, random.random(400)
    frame["search"], frame["title"] = "a red lamp", random.choice(["a red lamp", "a big chair"], 400)
    frame.sample(frac=1, random_state=0).to_csv(tmp_path / "my.csv", index=False)
    # In processes of their own, because the script forks.
    assert "| lightgbm+ | " in helpers.check_run("benchmarks/real_tables.py", *flags, "--validate_only")
    printed = helpers.check_run("benchmarks/real_tables.py", *flags)
    rows = rows_of(printed, "lightgbm.*|ranker.*")
    assert list(rows) == ["lightgbm", "lightgbm+", "ranker"]
    assert "test, seed 0:" in printed and "trial 0, seed 0:" not in printed  # continues after the trials
    assert float(rows["lightgbm+"][1]) > 0.9  # The shop decides.
    values = pd.read_csv(tmp_path / "values.csv", index_col="query")
    assert set(values.index) == set(range(30, 40)) and values.notna().all(axis=None)  # the last quarter of the days
    assert values["ranker"].mean() == pytest.approx(float(rows["ranker"][1]), abs=1e-4)


MISSING = {
    "yandex": "features.txt, featuresTest.txt",
    "trivago": "trivago_val_100k.parquet",
    "movielens": "u.item, u.user",
    "eurovision": "contestants.csv, countries.csv",
    "crowdflower": "train.csv",
    "cars": "car.csv",
    "letor": "train.txt, vali.txt, test.txt",
}


def test_real_tables_says_in_one_line_which_files_are_missing_and_where_they_come_from(tmp_path):
    for name in ("u.data.gz", "u.genre", "votes.csv.gz"):
        (tmp_path / name).touch()
    page = read("docs/data_sets.md")
    for table, missing in MISSING.items():
        done = scripts.run("benchmarks/real_tables.py", f"--table={table}", f"--data={tmp_path}")
        expected, found = re.fullmatch(
            r"--data: .* must contain (.*), as published or gzipped, got none named (.*); docs/data_sets.md .*\n",
            done.stderr,
        ).groups()
        assert done.returncode == 1 and found == missing
        assert all(f"`{name}`" in page for name in expected.split(", "))


def test_sequences_compares_methods_by_the_last_items_and_continues(tmp_path):
    # Item i + 1 follows item i.
    starts = np.random.default_rng(0).integers(0, 20, 60)
    lists = [f"u{user} " + " ".join(str((start + k) % 20) for k in range(8)) for user, start in enumerate(starts)]
    (tmp_path / "lists.txt").write_text("\n".join(lists))
    small = {"dim": 4, "loss": None, "softmax_epochs": 1}
    settings = {
        "Recommender": small,
        "Recommender of sequences": {"history_length": 6, **small},
        "SASRec": [{"dim": 16, "length": 6, "dropout": 0.0, "batch_size": 8, "epochs": 1}],
        "EASE": [{"strength": 1.0}, {"strength": 10.0}],
    }
    flags = [f"--data={tmp_path / 'lists.txt'}", f"--output={tmp_path}", "--workers=0"]
    flags.append(f"--settings={json.dumps(settings)}")
    printed = scripts.check_run("benchmarks/sequences.py", *flags)
    rows = rows_of(printed, r"\w.*")
    assert {"popularity", "Markov chain", "item kNN", *settings} < set(rows)
    assert "1.0000" in rows["Markov chain"]
    stored = scripts.results_in(tmp_path)
    assert len(stored) == 8 and scripts.check_run("benchmarks/sequences.py", *flags) == printed
    assert scripts.results_in(tmp_path) == stored


def test_the_published_growth_is_that_of_the_stored_report(tmp_path):
    table = scripts.check_run("benchmarks/growth.py", "--report=docs/images/growth.json").strip()
    assert table.count("|") > 20 and table in read("benchmarks/README.md")
