"""Compares value and gradient of SmoothI with the authors' PyTorch code and with plain TensorFlow.

python benchmarks/smoothi.py --authors_src=SmoothI/src --threads=1 --output=smoothi.json
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import harness
import numpy as np
import peer_losses
import tensorflow as tf
from absl import app, flags

from tfr_smooth import losses

_SHAPES = flags.DEFINE_list("shapes", ["128x40", "128x120", "32x500", "8x1000"], "Batch shapes: lists x documents.")
_METRICS = flags.DEFINE_list("metrics", ["ndcg", "ndcg@10", "p@10", "map"], "Metrics to run.")
_AUTHORS_SRC = flags.DEFINE_string(
    "authors_src", None, "The src/ folder of https://github.com/ygcinar/SmoothI. Default: skip the authors' code."
)

ALPHA, DELTA = 1.0, 0.1
OURS = {
    "ndcg": losses.SmoothINDCGLoss(alpha=ALPHA, delta=DELTA, reduction="sum"),
    "ndcg@10": losses.SmoothINDCGLoss(alpha=ALPHA, delta=DELTA, topn=10, reduction="sum"),
    "p@10": losses.SmoothIPrecisionLoss(alpha=ALPHA, delta=DELTA, topn=10, reduction="sum"),
    "map": losses.SmoothIMAPLoss(alpha=ALPHA, delta=DELTA, reduction="sum"),
}
TOPN = {"ndcg": None, "ndcg@10": 10, "p@10": 10, "map": None}


def plain_tensorflow(metric: str) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """Direct implementation of Eq. 9 to 12 of the SmoothI paper, differentiated by TensorFlow."""

    def found_at_ranks(relevance: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
        ranks = TOPN[metric] or scores.shape[1]
        scores -= tf.reduce_min(scores, axis=1, keepdims=True)

        def body(rank: tf.Tensor, factors: tf.Tensor, found: tf.TensorArray) -> tuple[Any, ...]:
            indicators = tf.nn.softmax(ALPHA * scores * factors)
            found = found.write(rank, tf.reduce_sum(relevance * indicators, axis=1))
            return rank + 1, factors * tf.stop_gradient(1.0 - indicators - DELTA), found

        state = (0, tf.ones_like(scores), tf.TensorArray(tf.float32, size=ranks))
        # XLA differentiates only loops with a static maximum.
        return tf.transpose(tf.while_loop(lambda *_: True, body, state, maximum_iterations=ranks)[2].stack())

    def loss(labels: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
        if metric.startswith("ndcg"):
            found = found_at_ranks(labels, scores)
            best = tf.sort(labels, direction="DESCENDING")[:, : found.shape[1]]
            discounts = tf.constant(1.0 / np.log2(np.arange(found.shape[1]) + 2.0), tf.float32)
            value = tf.linalg.matvec(2.0**found - 1.0, discounts) / tf.linalg.matvec(2.0**best - 1.0, discounts)
            return tf.reduce_sum(1.0 - value)
        relevance = tf.cast(labels >= 1.0, tf.float32)
        found = found_at_ranks(relevance, scores)
        if metric == "p@10":
            return tf.reduce_sum(1.0 - tf.reduce_mean(found, axis=1))
        ranks = tf.range(1.0, found.shape[1] + 1.0)
        precisions = tf.cumsum(found, axis=1) / ranks
        return tf.reduce_sum(1.0 - tf.reduce_sum(found * precisions, axis=1) / tf.reduce_sum(relevance, axis=1))

    return loss


def authors(metric: str, documents: int) -> Callable[[Any, Any], Any]:
    """The authors' loss, summed over lists; for MAP, which they do not publish, computed from the same recursion."""
    torch = harness.torch()
    if metric.startswith("ndcg"):
        options = {"alpha": ALPHA, "delta": DELTA, "documents": documents, "topn": TOPN[metric]}
        return peer_losses.smoothi_ndcg(_AUTHORS_SRC.value, **options)
    if metric == "p@10":
        precision = peer_losses.smoothi(_AUTHORS_SRC.value).ListwiseSmoothIPKLoss(ALPHA, DELTA, K=10)
        return lambda labels, scores: precision(scores, labels)

    def average_precision(labels: Any, scores: Any) -> Any:
        relevance = (labels >= 1).to(scores.dtype)
        positive = scores - scores.min(dim=-1, keepdim=True).values
        factors, found = torch.ones(1), []
        for _ in range(documents):
            indicators = torch.softmax(ALPHA * positive * factors, dim=-1)
            found.append((relevance * indicators).sum(dim=-1))
            factors = factors * (1 - indicators - DELTA).detach()
        at_ranks = torch.stack(found, dim=-1)
        precisions = at_ranks.cumsum(dim=-1) / torch.arange(1, documents + 1)
        return (1 - (at_ranks * precisions).sum(dim=-1) / relevance.sum(dim=-1)).sum()

    return average_precision


def measure(metric: str, shape: str) -> dict[str, Any]:
    lists, documents = harness.shape_of(shape)
    labels, scores = harness.a_batch(lists, documents)
    sides = {
        "ours": harness.TensorFlowSide(OURS[metric], labels, scores),
        "ours, step in XLA": harness.TensorFlowSide(OURS[metric], labels, scores, jit_compile=True),
        "plain TensorFlow": harness.TensorFlowSide(plain_tensorflow(metric), labels, scores),
        "plain, XLA": harness.TensorFlowSide(plain_tensorflow(metric), labels, scores, jit_compile=True),
    }
    expected = sides["ours"]()
    for name, side in sides.items():
        harness.same(side(), expected, value=1e-5, gradient=1e-4, name=name)
    if harness.is_given(_AUTHORS_SRC):
        name = "authors' PyTorch" if metric != "map" else "naive PyTorch"
        loss = authors(metric, documents)
        sides[name] = harness.torch_side(loss, labels, scores)
        in_gain = metric.startswith("ndcg")
        theirs = peer_losses.in_our_gain(loss, labels, scores, topn=TOPN[metric]) if in_gain else sides[name]()
        harness.same(theirs, expected, value=1e-5, gradient=1e-4, name=name)
    return harness.race(sides, repeats=harness.repeats(), metric=metric, shape=shape)


def main(_: list[str]) -> None:
    harness.use_threads()
    results = [measure(metric, shape) for metric in _METRICS.value for shape in _SHAPES.value]
    packages = ["torch"] if _AUTHORS_SRC.value else []
    harness.report(results, packages=packages, alpha=ALPHA, delta=DELTA)


if __name__ == "__main__":
    app.run(main)
