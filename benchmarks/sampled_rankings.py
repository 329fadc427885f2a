"""Compares the gradients of losses of sampled rankings: their standard deviation, their norm, and the time of a batch.

python benchmarks/sampled_rankings.py --output=sampled_rankings.json
"""

from __future__ import annotations

import time

import harness
import numpy as np
import tensorflow as tf
from absl import app, flags

from tfr_smooth import losses, measures
from tfr_smooth.losses.gumbel import gumbel_noise

_SHAPES = flags.DEFINE_list("shapes", ["32x20", "32x100"], "Lists x documents.")
_SAMPLES = flags.DEFINE_list("samples", ["8", "64"], "Numbers of samples.")
_DRAWS = flags.DEFINE_integer("draws", 100, "Gradients of each loss.", lower_bound=2)


class Reinforce(losses.RankingLoss):
    """The gradient of the logarithm of the probability of each sample, times 1 - NDCG."""

    def __init__(self, sample_size: int) -> None:
        super().__init__()
        self.sample_size = sample_size

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        noisy = tf.stop_gradient(scores)[:, tf.newaxis] + gumbel_noise(labels, self.sample_size, None)
        noisy = tf.reshape(noisy, [-1, tf.shape(scores)[1]])
        labels, scores = (tf.repeat(tensor, self.sample_size, axis=0) for tensor in (labels, scores))
        ordered = tf.gather(scores, tf.argsort(noisy, direction="DESCENDING"), batch_dims=1)
        logs = tf.reduce_sum(ordered - tf.math.cumulative_logsumexp(ordered, axis=1, reverse=True), axis=1)
        return tf.reduce_mean(tf.reshape((1.0 - measures.NDCG()(labels, noisy)) * logs, [-1, self.sample_size]), axis=1)


def gradient_of(loss: losses.RankingLoss):
    @tf.function
    def gradient(labels: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(scores)
            value = loss(labels, scores)
        return tape.gradient(value, scores)

    return gradient


def main(_: list[str]) -> None:
    harness.use_threads()
    results = []
    for shape in _SHAPES.value:
        size, random = [int(part) for part in shape.split("x")], np.random.RandomState(0)
        labels = tf.constant(random.choice([0, 0, 0, 1, 2, 3, 4], size).astype(np.float32))
        batch = labels, tf.constant(random.randn(*size).astype(np.float32))
        tf.random.set_seed(0)
        for samples in map(int, _SAMPLES.value):
            sides = {
                "PL-Rank-3": losses.PLRankNDCGLoss(sample_size=samples),
                "REINFORCE": Reinforce(samples),
                "GumbelApproxNDCG": losses.GumbelApproxNDCGLoss(sample_size=samples),
            }
            for name, loss in sides.items():
                gradient, times, found = gradient_of(loss), [], []
                gradient(*batch)
                for _ in range(_DRAWS.value):
                    start = time.perf_counter()
                    found.append(gradient(*batch).numpy())
                    times.append(time.perf_counter() - start)
                mean = np.mean(found, axis=0)
                results.append(
                    {
                        "lists x documents": shape,
                        "samples": samples,
                        "loss": name,
                        "ms": float(1e3 * np.median(times)),
                        "deviation": float(np.sqrt(((found - mean) ** 2).sum(axis=(1, 2)).mean())),
                        "norm of the mean": float(np.linalg.norm(mean)),
                    }
                )
    rows = [[f"{each:.3g}" if isinstance(each, float) else str(each) for each in row.values()] for row in results]
    print(harness.markdown(list(results[0]), rows, left=3))
    harness.write(results, draws=_DRAWS.value)


if __name__ == "__main__":
    app.run(main)
