"""Compares value and gradient of SoftNDCG with the paper's Rank-Binomial recursion in TensorFlow.

python benchmarks/softndcg.py --threads=1 --output=softndcg.json
"""

from __future__ import annotations

from typing import Any

import harness
import numpy as np
import tensorflow as tf
from absl import app, flags

from tfr_smooth import losses

_SHAPES = flags.DEFINE_list("shapes", ["128x40", "32x120"], "Batch shapes for both sides: lists x documents.")
_ONLY_OURS = flags.DEFINE_list("only_ours", ["8x1000"], "Batch shapes for this library only.")
_ALONE = flags.DEFINE_string("alone", None, "Internal, for measuring memory: SHAPE:SIDE.")

SIGMA = 1.0
VARIANTS: dict[str, dict[str, Any]] = {
    "ours": {},
    "normal": {"distribution": "normal"},
    "10 Sinkhorn steps": {"sinkhorn_steps": 10},
    "normal, 10 Sinkhorn steps": {"distribution": "normal", "sinkhorn_steps": 10},
}


def recursion(labels: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
    """Sum over lists of 1 - SoftNDCG by Eq. 9 to 15 of the SoftRank paper: one contest after another, O(N^3)."""
    documents = scores.shape[1]
    gaps = scores[:, :, tf.newaxis] - scores[:, tf.newaxis, :]  # [batch, i, j]: i against j
    wins = 0.5 * tf.math.erfc(-gaps / (SIGMA * np.sqrt(2.0) * np.sqrt(2.0)))
    wins = tf.linalg.set_diag(wins, tf.zeros_like(scores))  # no contest with itself: the rank stays
    ranks = tf.one_hot(tf.zeros_like(scores, tf.int32), documents)  # [batch, j, r]

    def body(i: tf.Tensor, ranks: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        won = wins[:, i, :, tf.newaxis]
        moved = tf.pad(ranks, [[0, 0], [0, 0], [1, 0]])[:, :, :-1]
        return i + 1, moved * won + ranks * (1.0 - won)

    ranks = tf.while_loop(lambda *_: True, body, (0, ranks), maximum_iterations=documents)[1]
    discounts = tf.constant(1.0 / np.log2(np.arange(documents) + 2.0), tf.float32)
    expected = tf.linalg.matvec(ranks, discounts)
    dcg = tf.reduce_sum((2.0**labels - 1.0) * expected, axis=1)
    ideal = tf.linalg.matvec(2.0 ** tf.sort(labels, direction="DESCENDING") - 1.0, discounts)
    return tf.reduce_sum(1.0 - dcg / ideal)


def side_of(shape: str, name: str) -> harness.TensorFlowSide:
    loss = losses.SoftNDCGLoss(sigma=SIGMA, reduction="sum", **VARIANTS[name]) if name in VARIANTS else recursion
    return harness.TensorFlowSide(loss, *harness.a_batch(*harness.shape_of(shape)))


def sides_of(shape: str) -> dict[str, harness.TensorFlowSide]:
    if shape in _ONLY_OURS.value:
        return {"ours": side_of(shape, "ours")}
    sides = {name: side_of(shape, name) for name in (*VARIANTS, "recursion")}
    harness.same(sides["recursion"](), sides["ours"](), value=1e-5, gradient=1e-4, name=shape)
    return sides


def main(_: list[str]) -> None:
    harness.use_threads()
    if _ALONE.value:
        shape, name = _ALONE.value.split(":")
        side_of("1x256", name)()  # Excludes the memory for starting TensorFlow and XLA.
        return harness.alone(side_of(shape, name))
    results = []
    for shape in _SHAPES.value + _ONLY_OURS.value:
        sides = sides_of(shape)
        result = harness.race(sides, shape=shape)
        measured = [name for name in VARIANTS if name in sides]
        result["megabytes"] = {name: harness.peak_megabytes([f"--alone={shape}:{name}"]) for name in measured}
        print(f"    megabytes: {result['megabytes']}", flush=True)
        results.append(result)
    harness.report(results, sigma=SIGMA)
    return None


if __name__ == "__main__":
    app.run(main)
