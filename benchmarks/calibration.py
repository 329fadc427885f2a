"""Compares the calibration of scores: losses, and Platt scaling and isotonic regression after training.

python benchmarks/calibration.py --data=/data/MQ2008 --output=output/calibration

The folder of the data contains Fold1 to Fold5 with train.txt, vali.txt and test.txt, which may be .gz files. Documents
with a label >= 1 are relevant; all losses are trained on these binary labels. The epoch and the calibration are
selected on the validation queries. The output folder contains the scores of each training, so the same command
resumes. The table is in Markdown: the mean over test folds and its standard error.
"""

from __future__ import annotations

import pathlib
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf
from absl import app, flags

from tfr_smooth import Ranker, evaluation, losses, training

sys.path.append(str(pathlib.Path(__file__).absolute().parents[1]))
import experiments  # noqa: E402

_DATA = flags.DEFINE_string("data", None, "Folder with Fold1 .. FoldK; see docs/data_sets.md.", required=True)
_OUTPUT = flags.DEFINE_string("output", "output/calibration", "Folder of the scores.")
_SEEDS = flags.DEFINE_integer("seeds", 3, "Trainings per fold and loss.", lower_bound=1)
_HIDDEN = flags.DEFINE_integer("hidden", 256, "Width of the hidden layer.", lower_bound=1)
_EPOCHS = flags.DEFINE_integer("epochs", 30, "Passes over the training queries.", lower_bound=1)
_BINS = flags.DEFINE_integer("bins", 10, "Bins of the calibration error.", lower_bound=1)

# The loss, and the probability of relevance that it trains the score to give.
LOSSES: dict[str, tuple[tf.keras.losses.Loss, Callable[[np.ndarray], np.ndarray]]] = {
    "smoothi_ndcg": (losses.get("smoothi_ndcg", alpha=10.0), lambda scores: 1.0 / (1.0 + np.exp(-scores))),
    "sigmoid_cross_entropy": (losses.SigmoidCrossEntropyLoss(), lambda scores: 1.0 / (1.0 + np.exp(-scores))),
    "calibrated_softmax": (
        losses.CalibratedSoftmaxLoss(virtual_label=1.0),
        lambda scores: np.exp(np.minimum(scores, 0.0)),
    ),
    "regression_compatible": (losses.RegressionCompatibleLoss(), lambda scores: 1.0 / (1.0 + np.exp(-scores))),
}
_PARTS = ("valid", "test")


def train(fold_name: str, files: Mapping[str, Sequence[str]], output: pathlib.Path) -> None:
    """Trains all losses on a fold, and writes the labels, queries and scores of its validation and test documents."""
    fold = experiments.load_fold(files)
    parts = {
        name: (queries.features, (queries.labels >= 1.0).astype(np.float32), queries.qid)
        for name, queries in fold._asdict().items()
    }
    for seed in range(_SEEDS.value):
        for name, (loss, _) in LOSSES.items():
            path = output / f"{fold_name}-{name}-{seed}.npz"
            if path.exists():
                continue
            options = {"hidden": [_HIDDEN.value], "members": 1, "epochs": _EPOCHS.value, "seed": seed}
            ranker = Ranker(loss=loss, verbose=False, **options)
            features, labels, queries = parts["train"]
            ranker.fit(features, labels, qid=queries, validation=parts["valid"])
            found = {}
            for part in _PARTS:
                features, labels, queries = parts[part]
                found |= {f"{part}_labels": labels, f"{part}_queries": queries}
                found[f"{part}_scores"] = ranker.predict(features, qid=queries)
            np.savez(path, **found)
            print(path.stem, flush=True)


def measured(
    labels: np.ndarray, queries: np.ndarray, scores: np.ndarray, probabilities: np.ndarray
) -> dict[str, float]:
    """Returns NDCG of the scores, and the calibration error and the log loss of the probabilities."""
    bins = np.minimum((probabilities * _BINS.value).astype(int), _BINS.value - 1)
    inside = np.clip(probabilities.astype(np.float64), 1e-6, 1.0 - 1e-6)
    return {
        "NDCG": evaluation.evaluate_rows(labels, scores, queries, ["ndcg"])["ndcg"].mean,
        "ECE": float(np.abs(np.bincount(bins, labels - probabilities)).sum() / len(labels)),
        "log loss": float(-np.mean(np.where(labels > 0, np.log(inside), np.log1p(-inside)))),
    }


def evaluate(path: pathlib.Path, name: str) -> dict[str, dict[str, float]]:
    """Returns the measures of a training, by calibration."""
    found = np.load(path)
    scores, test = found["test_scores"], (found["test_labels"], found["test_queries"])
    # Large scores have equal sigmoids in float32, so the scores themselves are ranked.
    result = {"": measured(*test, scores, LOSSES[name][1](scores.astype(np.float64)))}
    for method in ("platt", "isotonic"):
        calibration = training.fit_calibration(found["valid_labels"], found["valid_scores"], method=method)
        calibrated = calibration(scores).numpy()
        result[method] = measured(*test, calibrated, calibrated)
    return result


def table(output: pathlib.Path) -> str:
    """Returns the table of all finished trainings: the mean over folds, each the mean over seeds."""
    measures = ("NDCG", "ECE", "log loss")
    lines = [f"| loss | calibration | {' | '.join(measures)} |", "|---|---|---|---|---|"]
    for name in LOSSES:
        folds: dict[str, list[dict[str, dict[str, float]]]] = {}
        for path in sorted(output.glob(f"*-{name}-*.npz")):
            folds.setdefault(path.name.partition("-")[0], []).append(evaluate(path, name))
        for method in ("", "platt", "isotonic"):
            cells = []
            for measure in measures:
                means = [statistics.fmean(each[method][measure] for each in seeds) for seeds in folds.values()]
                error = statistics.stdev(means) / len(means) ** 0.5 if len(means) > 1 else float("nan")
                cells.append(f"{statistics.fmean(means):.4f} ± {error:.4f}")
            lines.append(f"| `{name}` | {method or 'none'} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(_: list[str]) -> None:
    output = pathlib.Path(_OUTPUT.value)
    output.mkdir(parents=True, exist_ok=True)
    for name, files in experiments.find_folds(_DATA.value).folds.items():
        train(name, files, output)
    print(table(output))


if __name__ == "__main__":
    app.run(main)
