"""Fuses the runs of several rankers into one, with a ranker trained on their scores and ranks.

    python examples/fuse_runs.py bm25.run splade.run dense.run --qrels=qrels.txt --output=fused.run

Runs and judgments are files in TREC format. The features of a document are, for each run, its score, scaled to [0, 1]
per query, and its reciprocal rank 1 / (60 + rank); scores of documents that are not in a run are missing values. The
fused run contains each judged query as scored by a ranker that was not trained on it (cross-validation), and other
queries as scored by a ranker trained on all judged ones. The table compares it with each run and with reciprocal rank
fusion (Cormack et al., SIGIR 2009); p-values are those of paired randomization tests against the fused run.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import startup

# isort: split
import numpy as np
import pandas as pd
from absl import flags
from command_line import errors_in_one_line

import tfr_smooth
from tfr_smooth import evaluation

_QRELS = flags.DEFINE_string("qrels", None, "A qrels file with the judgments.", required=True)
_OUTPUT = flags.DEFINE_string("output", "output/fused.run", "The file of the fused run.")
_FOLDS = flags.DEFINE_integer("folds", 5, "Parts of the judged queries for cross-validation.", lower_bound=2)
_LOSS = flags.DEFINE_string("loss", "smoothi_ndcg", "Name of the loss.")
_HIDDEN = flags.DEFINE_integer("hidden", 16, "Width of the hidden layer.", lower_bound=1)
_MEMBERS = flags.DEFINE_integer("members", 5, "Networks whose scores are averaged.", lower_bound=1)
_EPOCHS = flags.DEFINE_integer("epochs", 30, "Most passes over the training queries.", lower_bound=1)
_MEASURES = flags.DEFINE_list("measures", ["ndcg_cut_10", "map"], "trec_eval measures.")
_SEED = flags.DEFINE_integer("seed", 0, "Seed of the folds and of the training.", lower_bound=0)

Run = Mapping[str, Mapping[str, float]]
RRF, FUSED = "reciprocal rank fusion", "fused"


def main(argv: list[str]) -> None:
    with errors_in_one_line(ImportError, OSError, ValueError):
        if len(argv) < 3:
            raise ValueError(f"Expected at least two run files, got {len(argv) - 1}.")
        paths = {pathlib.Path(path).stem: path for path in argv[1:]}
        if len({*paths, RRF, FUSED}) < len(argv) + 1:
            raise ValueError(f"The names of the run files must differ and not be {FUSED!r}, got {', '.join(argv[1:])}.")
        runs = {name: evaluation.read_run(path) for name, path in paths.items()}
        qrels = evaluation.read_qrels(_QRELS.value)
        frame = documents(runs, qrels)
        judged = frame["query"].isin(qrels).to_numpy()
        count = frame["query"][judged].nunique()
        if count < _FOLDS.value:
            raise ValueError(f"--folds must be at most the number of judged queries in the runs, {count}.")
        print(f"{len(runs)} runs, {frame['query'].nunique()} queries, {count} of them judged, {len(frame):,} documents")
        frame["score"] = fused(frame, judged)
        frame["rrf"] = frame.filter(like="rank of ").sum(axis=1)
        compare({**runs, RRF: as_run(frame, "rrf"), FUSED: as_run(frame, "score")}, qrels)
        queries = [
            evaluation.ScoredQuery(query, list(found["doc"]), found["label"].to_numpy(), found["score"].to_numpy())
            for query, found in frame.groupby("query", sort=False)
        ]
        pathlib.Path(_OUTPUT.value).absolute().parent.mkdir(parents=True, exist_ok=True)
        evaluation.write_run(_OUTPUT.value, queries)
    print(f"Output: {_OUTPUT.value}")


def documents(runs: Mapping[str, Run], qrels: Mapping[str, Mapping[str, int]]) -> pd.DataFrame:
    """Returns one row per document of a query in any run, with its label, 0 without a judgment."""
    columns = []
    for name, run in runs.items():
        rows = [(query, doc, score) for query, scores in run.items() for doc, score in scores.items()]
        found = pd.DataFrame(rows, columns=["query", "doc", "score"])
        scores = found.groupby("query")["score"]
        lowest, highest = scores.transform("min"), scores.transform("max")
        found[f"score of {name}"] = (found["score"] - lowest) / (highest - lowest).where(highest > lowest, 1.0)
        found[f"rank of {name}"] = 1.0 / (60.0 + scores.rank(ascending=False, method="first"))
        columns.append(found.drop(columns="score").set_index(["query", "doc"]))
    frame = pd.concat(columns, axis=1)
    ranks = [name for name in frame if name.startswith("rank of ")]
    frame[ranks] = frame[ranks].fillna(0.0)
    frame = frame.reset_index()
    frame["label"] = [
        max(qrels.get(query, {}).get(doc, 0), 0) for query, doc in zip(frame["query"], frame["doc"], strict=True)
    ]
    return frame


def fused(frame: pd.DataFrame, judged: np.ndarray) -> np.ndarray:
    """Returns the scores of rankers, each of which was not trained on the queries that it scores."""
    queries = np.random.default_rng(_SEED.value).permutation(frame["query"][judged].unique())
    fold_of = dict(zip(queries, np.arange(len(queries)) % _FOLDS.value, strict=True))
    fold = frame["query"].map(fold_of).fillna(-1).to_numpy()
    scores = np.zeros(len(frame), np.float32)
    for number in np.unique(fold):
        train, test = frame[judged & (fold != number)], frame[fold == number]
        ranker = tfr_smooth.Ranker(
            loss=_LOSS.value,
            hidden=[_HIDDEN.value],
            members=_MEMBERS.value,
            epochs=_EPOCHS.value,
            dropout=0.2,
            seed=_SEED.value,
            verbose=False,
        )
        features = [name for name in frame if name.startswith(("score of ", "rank of "))]
        ranker.fit(train, label="label", query="query", features=features)
        scores[fold == number] = ranker.predict(test)
        part = "the other queries" if number < 0 else f"fold {number + 1:.0f} of {_FOLDS.value}"
        print(f"Scored {part}: {test['query'].nunique()} queries", flush=True)
    return scores


def as_run(frame: pd.DataFrame, column: str) -> Run:
    return {query: dict(zip(found["doc"], found[column], strict=True)) for query, found in frame.groupby("query")}


def compare(runs: Mapping[str, Run], qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Prints the mean of each measure over the judged queries, and p-values against the last run."""
    found = {name: evaluation.trec_eval_by_query(run, _MEASURES.value, qrels=qrels) for name, run in runs.items()}
    width = max(map(len, runs))
    print(" " * width + "".join(f"{measure:>22}" for measure in _MEASURES.value))
    for name, by_query in found.items():
        line = f"{name:<{width}}"
        for measure in _MEASURES.value:
            values, best = ({query: each[measure] for query, each in one.items()} for one in (by_query, found[FUSED]))
            test = "" if name == FUSED else f"p = {evaluation.randomization_test(best, values).p_value:.4f}"
            line += f"{np.mean(list(values.values())):>10.4f}  {test:<10}"
        print(line.rstrip())


if __name__ == "__main__":
    startup.run(main)
