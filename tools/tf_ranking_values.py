"""Computes the values in TF-Ranking's own tests with this library's losses and metrics, and compares both.

    git clone https://github.com/tensorflow/ranking
    python tools/tf_ranking_values.py --clone=ranking

Runs TF-Ranking's tests of the losses and metrics that both libraries have, and calls this library's version with the
same inputs. Prints how many values are equal to five decimal places (above 1, relatively) and, for the others, the
reason and the tests. The exit status is 1 if a value differs for an unknown reason, or a test fails.
"""

from __future__ import annotations

import collections
import importlib
import importlib.util
import inspect
import os
import pathlib
import sys
import unittest
from collections.abc import Callable
from typing import Any

from absl import app, flags

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf

from tfr_smooth import losses, metrics
from tfr_smooth.tf_ranking import tfr

# Only importable after tfr_smooth.tf_ranking.
metrics_impl = importlib.import_module("tensorflow_ranking.python.metrics_impl")

_CLONE = flags.DEFINE_string("clone", None, "Path of a clone of TF-Ranking's repository.", required=True)

# TF-Ranking's Keras metrics call those of metrics_impl.
FILES = ("keras/losses_test.py", "keras/metrics_test.py", "metrics_impl_test.py")
# All but those with random numbers.
LOSSES = tuple(
    getattr(tfr.keras.losses, f"{name}Loss")
    for name in (
        *("ApproxNDCG", "ListMLE", "Softmax", "CalibratedSoftmax", "UniqueSoftmax", "SigmoidCrossEntropy"),
        *("PairwiseLogistic", "PairwiseHinge", "PairwiseSoftZeroOne", "PairwiseMSE", "MeanSquared"),
        *("Ordinal", "ClickEM", "MixtureEM"),
    )
)
LISTWISE = ("ApproxNDCGLoss", "ListMLELoss", "UniqueSoftmaxLoss", "MixtureEMLoss")
METRICS = {
    getattr(metrics_impl, name): getattr(metrics, name)
    for name in (
        *("NDCGMetric", "DCGMetric", "MRRMetric", "PrecisionMetric", "RecallMetric", "HitsMetric", "ARPMetric"),
        *("MeanAveragePrecisionMetric", "OPAMetric", "AlphaDCGMetric", "PrecisionIAMetric"),
    )
}

NO_RELEVANT = "a list without a relevant document counts in the mean"
TIES = "tied labels are in random order"
PADDING = "padding counts in the divisor"
ONE_LABEL = "a list with one distinct label counts in the mean"
DOCUMENT_WEIGHTS = "weights of documents"
SHORT = "lists with fewer than `topn` documents"
GAIN = "the gain is neither linear nor exponential"
UNKNOWN = "unknown"


class NegatedNDCGLoss(losses.ApproxNDCGLoss):
    """-NDCG, as in TF-Ranking, instead of 1 - NDCG."""

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        return super().compute(labels, scores, mask) - 1.0


def our_loss(theirs: Any, labels: Any, scores: Any, weights: Any) -> tuple[tf.Tensor, str]:
    """Returns this library's value, and the reason why it may differ."""
    name, config = type(theirs).__name__, theirs.get_config()
    options: dict[str, Any] = {"reduction": theirs.reduction, "ragged": config["ragged"]}
    ours: Any = NegatedNDCGLoss if name == "ApproxNDCGLoss" else getattr(losses, name)
    known = set(inspect.signature(ours).parameters)
    options |= {key: config[key] for key in ("temperature", "exam_loss_weight", "rel_loss_weight") if key in known}
    if name == "ApproxNDCGLoss":
        options["alpha"] = 1.0 / config["temperature"]
    elif name == "CalibratedSoftmaxLoss":
        options["virtual_label"] = theirs._virtual_label
    elif name == "MixtureEMLoss":
        options |= {"alpha": config["alpha"], "temperature": 1.0}
    elif name == "OrdinalLoss":
        options |= {key: getattr(theirs._loss, f"_{key}") for key in ("ordinal_size", "use_fraction_label")}
    weight = getattr(theirs, "_lambda_weight", None)
    # Their losses ignore weights of other kinds.
    needed = {"ListMLELoss": "ListMLELambdaWeight", "SoftmaxLoss": "DCGLambdaWeight"}.get(name, "_LambdaWeight")
    if "lambda_weight" in known and weight is not None and needed in [each.__name__ for each in type(weight).__mro__]:
        options["lambda_weight"] = our_weight(weight)
    return ours(**options)(labels, scores, sample_weight=weights), why_different(name, labels, weights)


def our_weight(theirs: Any) -> Any:
    """Returns this library's weights of pairs."""
    ours = getattr(losses, type(theirs).__name__)
    names = ("topn", "gain_fn", "rank_discount_fn", "normalized", "smooth_fraction", "positive_fn")
    known = set(inspect.signature(ours).parameters)
    return ours(**{name: getattr(theirs, f"_{name}") for name in names if name in known})


def why_different(name: str, labels: Any, weights: Any) -> str:
    """Returns the reason why the losses of this name may differ."""
    rows = labels.to_list() if isinstance(labels, tf.RaggedTensor) else np.asarray(labels).tolist()
    real = [[label for label in row if label >= 0.0] for row in rows]
    is_pairwise, is_listwise = name.startswith("Pairwise"), name in LISTWISE or "Softmax" in name
    by_document = isinstance(weights, tf.RaggedTensor) or (np.ndim(weights) == 2 and np.shape(weights)[1] > 1)
    if name not in LISTWISE and weights is not None and by_document:
        return DOCUMENT_WEIGHTS
    if name == "ListMLELoss" and any(len(set(row)) < len(row) for row in real):
        return TIES
    if not is_listwise and len({len(row) for row in real} | {len(row) for row in rows}) > 1:
        return PADDING
    if is_pairwise or name == "UniqueSoftmaxLoss":
        return ONE_LABEL if any(len(set(row)) < 2 for row in real) else UNKNOWN
    return NO_RELEVANT if is_listwise and any(max(row, default=0.0) <= 0.0 for row in real) else UNKNOWN


def our_metric(theirs: Any, labels: Any, scores: Any, weights: Any, mask: Any) -> tuple[tf.Tensor, str]:
    """Returns this library's value, and the reason why it may differ."""
    arguments = {"topn": "_topn", "alpha": "_alpha", "gain_fn": "_gain_fn", "rank_discount_fn": "_rank_discount_fn"}
    ours = METRICS[type(theirs)]
    known = set(inspect.signature(ours).parameters)
    options = {name: getattr(theirs, field) for name, field in arguments.items() if name in known}
    options["ragged"] = theirs._ragged
    why = UNKNOWN
    if isinstance(theirs, metrics_impl.NDCGMetric):
        none, one, two = (float(theirs._gain_fn(tf.constant(label))) for label in (0.0, 1.0, 2.0))
        options["gain"] = {(0.0, 2.0): "linear"}.get((none, two / one), "exponential")
        options["discount"] = lambda rank: theirs._rank_discount_fn(tf.cast(rank + 1.0, tf.float32))
        why = why if none == 0.0 else GAIN
    if not theirs._ragged:
        precisions = metrics_impl.PrecisionMetric, metrics_impl.PrecisionIAMetric
        labels, scores = tf.convert_to_tensor(labels), tf.convert_to_tensor(scores)
        if isinstance(theirs, precisions) and (theirs._topn or 0) > labels.shape[1]:
            why = SHORT
        if mask is not None:
            labels = tf.where(tf.reshape(mask, [*scores.shape, *[1] * (labels.shape.rank - 2)]), labels, -1.0)
        if weights is not None:
            weights = tf.broadcast_to(weights, scores.shape)
            # Weights that are equal within each list are per-list weights.
            weights = weights[:, 0] if bool(tf.reduce_all(weights == weights[:, :1])) else weights
    if weights is not None and weights.shape.rank == 2:
        why = DOCUMENT_WEIGHTS
    metric = ours(**options)
    metric.update_state(labels, scores, weights)
    return metric.result(), why


class Values(unittest.TestResult):
    """Counts the equal values of each class, and collects the tests of the other values by reason."""

    def __init__(self) -> None:
        super().__init__()
        self.equal: collections.Counter[str] = collections.Counter()
        self.others: dict[str, dict[str, list[str]]] = collections.defaultdict(lambda: collections.defaultdict(list))
        self._test = ""

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self._test = f"{type(test).__name__}.{test._testMethodName}"

    def add(self, name: str, theirs: tf.Tensor, ours: tf.Tensor, why: str) -> None:
        if abs(float(theirs) - float(ours)) < 5e-6 * max(1.0, abs(float(theirs))):
            self.equal[name] += 1
        else:
            self.others[name][why].append(self._test)


def watched_loss(loss: type, values: Values) -> Callable[..., tf.Tensor]:
    original = loss.__call__

    def call(self: Any, y_true: Any, y_pred: Any, sample_weight: Any = None) -> tf.Tensor:
        value = original(self, y_true, y_pred, sample_weight)
        if type(self) is loss:
            values.add(loss.__name__, value, *our_loss(self, y_true, y_pred, sample_weight))
        return value

    return call


def watched_metric(metric: Any, values: Values) -> Callable[..., Any]:
    original = metric.compute

    @tf.autograph.experimental.do_not_convert
    def compute(self: Any, labels: Any, scores: Any, weights: Any = None, mask: Any = None) -> Any:
        by_list, of_lists = original(self, labels, scores, weights, mask)
        mean = tf.math.divide_no_nan(tf.reduce_sum(by_list * of_lists), tf.reduce_sum(of_lists))
        values.add(metric.__name__, mean, *our_metric(self, labels, scores, weights, mask))
        return by_list, of_lists

    return compute


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    tf.get_logger().setLevel("WARNING")
    root = pathlib.Path(_CLONE.value) / "tensorflow_ranking" / "python"
    values = Values()
    for loss in LOSSES:
        loss.__call__ = watched_loss(loss, values)
    for metric in METRICS:
        metric.compute = watched_metric(metric, values)
    for file in FILES:
        spec = importlib.util.spec_from_file_location(file.replace("/", "_").removesuffix(".py"), root / file)
        if spec is None or spec.loader is None or not (root / file).exists():
            sys.exit(f"error: no {root / file}")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        unittest.defaultTestLoader.loadTestsFromModule(module).run(values)
    for name in (each.__name__ for each in (*LOSSES, *METRICS)):
        print(f"{name}: {values.equal[name]} equal")
        for why, tests in values.others[name].items():
            print(f"  {len(tests)} differ: {why} ({', '.join(dict.fromkeys(tests))})")
    problems = [*values.errors, *values.failures]
    for test, trace in problems:
        print(f"{test} failed: {trace}")
    sys.exit(bool(problems) or any(UNKNOWN in reasons for reasons in values.others.values()))


if __name__ == "__main__":
    app.run(main)
