"""The script that fuses runs: better than its inputs, also for queries without judgments, and errors in one line."""

import numpy as np
import pytest

from tests import helpers
from tfr_smooth import evaluation

pytestmark = pytest.mark.slow


def fuse(*arguments):
    return helpers.run_python("examples/fuse_runs.py", *map(str, arguments), TF_CPP_MIN_LOG_LEVEL=None)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two runs that see different halves of what makes a document relevant; the last queries have no judgments."""
    folder, random = tmp_path_factory.mktemp("fusion"), np.random.default_rng(0)
    lines = {"first": [], "second": [], "qrels": []}
    for query in range(40):
        parts = random.normal(size=[30, 2])
        labels = np.searchsorted([1.0, 2.0], parts.sum(axis=1))
        for name, scores in zip(("first", "second"), parts.T, strict=True):
            # Each run misses documents, in the scale of its own.
            kept = np.flatnonzero(random.random(30) < 0.8)
            ranked = kept[np.argsort(-scores[kept])]
            scaled = 20.0 * scores if name == "first" else scores
            lines[name] += [f"q{query} Q0 d{doc} {rank} {scaled[doc]} {name}" for rank, doc in enumerate(ranked, 1)]
        if query < 36:
            lines["qrels"] += [f"q{query} 0 d{doc} {label}" for doc, label in enumerate(labels)]
    paths = {name: folder / f"{name}.txt" for name in lines}
    for name, path in paths.items():
        path.write_text("\n".join(lines[name]) + "\n")
    return paths


def test_the_fused_run_is_better_than_each_run_and_contains_all_queries(files, tmp_path):
    output = tmp_path / "fused.run"
    done = fuse(files["first"], files["second"], f"--qrels={files['qrels']}", f"--output={output}", "--epochs=15")
    assert done.returncode == 0, done.stderr
    assert "2 runs, 40 queries, 36 of them judged" in done.stdout
    qrels = evaluation.read_qrels(files["qrels"])
    runs = {name: evaluation.read_run(files[name]) for name in ("first", "second")} | {
        "fused": evaluation.read_run(output)
    }
    assert set(runs["fused"]) == {f"q{number}" for number in range(40)}
    for query, scores in runs["fused"].items():
        assert set(scores) == set(runs["first"][query]) | set(runs["second"][query])
    # trec_eval's values are those of the table.
    values = {name: evaluation.trec_eval_by_query(run, ["ndcg_cut_10"], qrels=qrels) for name, run in runs.items()}
    means = {name: np.mean([each["ndcg_cut_10"] for each in found.values()]) for name, found in values.items()}
    assert means["fused"] > max(means["first"], means["second"]) + 0.1
    for name, mean in means.items():
        assert f"{name:<22}    {mean:.4f}" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["first"], "Expected at least two run files, got 1."),
        (["first", "first"], "The names of the run files must differ and not be 'fused', got"),
        (["first", "fused.run"], "The names of the run files must differ and not be 'fused', got"),
        (["first", "second", "--folds=37"], "--folds must be at most the number of judged queries in the runs, 36."),
        (["first", "qrels"], "{qrels}:1: "),
    ],
)
def test_errors_are_one_line(arguments, message, files):
    done = fuse(*(files.get(each, each) for each in arguments), f"--qrels={files['qrels']}")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: " + message.format(**files))
