"""Compares ApproxNDCG, ListMLE, LambdaLoss, ListNet and the exact NDCG metric with TF-Ranking's.

python benchmarks/against_tf_ranking.py --threads=1 --output=tf_ranking.json  (TensorFlow 2.15 with tensorflow-ranking)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import harness
import numpy as np
import tensorflow as tf
import tensorflow_ranking as tfr
from absl import app, flags

from tfr_smooth import losses, metrics

_SHAPES = flags.DEFINE_list("shapes", ["128x120", "32x500"], "Batch shapes: lists x documents.")
_NAMES = flags.DEFINE_list(
    "names", ["approx_ndcg", "list_mle", "lambda", "list_net", "ndcg_metric"], "Benchmarks to run."
)
_ALONE = flags.DEFINE_string("alone", None, "Internal, for measuring memory: NAME,SHAPE,SIDE.")

# Differences between the two libraries:
#   approx_ndcg  only rounding (TF-Ranking's temperature of 0.1 is our alpha of 10; neither has a cutoff here);
#   list_mle     documents with the same label: TF-Ranking uses a random order, we use the mean over orders;
#   lambda       TF-Ranking lacks NDCG-Loss2++, so both use LambdaRank's weights. For ties, TF-Ranking uses the order by
#                position, we use the mean over orders. TF-Ranking uses natural logarithms, we use base 2;
#   list_net     TF-Ranking's targets are y / sum(y), ours are softmax(y).


def pairs() -> dict[str, tuple[Any, Any]]:
    theirs = tfr.keras.losses
    swaps = theirs.DCGLambdaWeight(
        gain_fn=lambda y: tf.pow(2.0, y) - 1.0, rank_discount_fn=lambda r: 1.0 / tf.math.log1p(r), normalized=True
    )
    return {
        "approx_ndcg": (losses.ApproxNDCGLoss(alpha=10.0, reduction="sum"), theirs.ApproxNDCGLoss(reduction="sum")),
        "list_mle": (losses.ListMLELoss(reduction="sum"), theirs.ListMLELoss(reduction="sum")),
        "lambda": (
            losses.LambdaLoss(metric="lambda_rank", reduction="sum"),
            theirs.PairwiseLogisticLoss(reduction="sum", lambda_weight=swaps),
        ),
        "list_net": (losses.ListNetLoss(reduction="sum"), theirs.SoftmaxLoss(reduction="sum")),
    }


class MetricSide:
    """Updates of a metric in a `tf.function`, and its result."""

    def __init__(self, metric: tf.keras.metrics.Metric, labels: np.ndarray, scores: np.ndarray) -> None:
        @tf.function
        def update(labels: tf.Tensor, scores: tf.Tensor) -> None:
            for i in tf.range(tf.shape(labels)[0]):
                metric.update_state(labels[i], scores[i])

        self._metric, self._update = metric, update
        self._inputs = labels, scores
        self._repeated = {1: (tf.constant(labels[np.newaxis]), tf.constant(scores[np.newaxis]))}

    def __call__(self) -> Any:
        return self.repeat(1)

    def repeat(self, times: int) -> Any:
        if times not in self._repeated:
            self._repeated[times] = tuple(tf.stack([values] * times) for values in self._inputs)
        self._metric.reset_state()
        self._update(*self._repeated[times])
        return self._metric.result().numpy()


def sides_of(name: str, shape: str) -> dict[str, Callable[[], Any]]:
    labels, scores = harness.a_batch(*harness.shape_of(shape))
    if name == "ndcg_metric":
        return {
            "ours": MetricSide(metrics.NDCGMetric(topn=10), labels, scores),
            "TF-Ranking": MetricSide(tfr.keras.metrics.NDCGMetric(topn=10), labels, scores),
        }
    ours, theirs = pairs()[name]
    return {
        "ours": harness.TensorFlowSide(ours, labels, scores),
        "TF-Ranking": harness.TensorFlowSide(theirs, labels, scores),
        "ours, XLA": harness.TensorFlowSide(ours, labels, scores, jit_compile=True),
    }


def check(name: str, sides: dict[str, Callable[[], Any]], lists: int) -> None:
    if name == "ndcg_metric":
        np.testing.assert_allclose(sides["ours"](), sides["TF-Ranking"](), rtol=1e-5)
    elif name == "approx_ndcg":  # TF-Ranking's loss is minus the metric, ours is one minus the metric.
        value, gradient = sides["TF-Ranking"]()
        harness.same((lists + value, gradient), sides["ours"](), value=1e-4, gradient=1e-3, name=name)


def main(_: list[str]) -> None:
    harness.use_threads()
    if _ALONE.value:
        name, shape, side = _ALONE.value.split(",")
        sides_of(name, "1x1024")[side]()  # Excludes the memory for starting TensorFlow and XLA.
        return harness.alone(sides_of(name, shape)[side])
    results = []
    for name in _NAMES.value:
        for shape in _SHAPES.value:
            sides = sides_of(name, shape)
            check(name, sides, harness.shape_of(shape)[0])
            result = harness.race(sides, repeats=harness.repeats(), name=name, shape=shape)
            if name != "ndcg_metric":
                memory = {s: harness.peak_megabytes([f"--alone={name},{shape},{s}"]) for s in ("ours", "TF-Ranking")}
                print(f"    megabytes: {memory}", flush=True)
                result["megabytes"] = memory
            results.append(result)
    harness.report(results, packages=["tensorflow_ranking"])
    return None


if __name__ == "__main__":
    app.run(main)
