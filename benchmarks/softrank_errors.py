"""Compares SoftRank's rank distributions with simulated ranks of noisy scores, and with the Rank-Binomial distribution.

python benchmarks/softrank_errors.py --output=softrank_errors.json
"""

from __future__ import annotations

import harness
import numpy as np
import tensorflow as tf
from absl import app, flags

from tfr_smooth.rankings import SoftRank

_LENGTHS = flags.DEFINE_list("lengths", ["10", "30", "100"], "Documents per list.")
_SIGMAS = flags.DEFINE_list(
    "sigmas", ["0.1", "0.3", "1", "3"], "Standard deviations of the noise; that of scores is 1."
)
_STEPS = flags.DEFINE_list("steps", ["0", "1", "10", "100"], "Numbers of Sinkhorn steps, the first 0.")
_DRAWS = flags.DEFINE_integer("draws", 400_000, "Simulated sorts of each list.", lower_bound=1)


def simulated(scores: np.ndarray, sigma: float, draws: int) -> np.ndarray:
    """The frequency of each document at each rank, [document, rank]."""
    random, counts = np.random.default_rng(0), np.zeros([len(scores)] * 2)
    for part in range(0, draws, 10_000):
        noisy = scores + sigma * random.standard_normal((min(10_000, draws - part), len(scores)))
        order = np.argsort(-noisy, axis=1)
        for rank in range(len(scores)):
            counts[:, rank] += np.bincount(order[:, rank], minlength=len(scores))
    return counts / draws


def distance(chances: np.ndarray, expected: np.ndarray) -> float:
    """The share of probability at another rank (total variation), mean over documents."""
    return float(np.abs(chances - expected).sum(axis=1).mean() / 2.0)


def errors(length: int, sigma: float) -> dict[str, float]:
    scores = np.random.RandomState(0).randn(length)
    scores = (scores - scores.mean()) / scores.std()
    exact = simulated(scores, sigma, _DRAWS.value)
    mask = tf.ones([1, length], tf.bool)
    chances = {
        (kind, steps): SoftRank(sigma, kind, steps).indicators(scores[np.newaxis], mask).numpy()[0].T
        for kind in ("binomial", "normal")
        for steps in map(int, _STEPS.value)
    }
    measured = {f"{kind}, {steps} steps": distance(array, exact) for (kind, steps), array in chances.items()}
    discounts = 1.0 / np.log2(np.arange(length) + 2.0)
    for steps in map(int, _STEPS.value):
        relative = chances["binomial", steps] @ discounts / (exact @ discounts) - 1.0
        measured[f"discount, {steps} steps"] = float(np.abs(relative).mean())
    measured["largest change by normal"] = float(np.abs(chances["normal", 0] - chances["binomial", 0]).max())
    sums = chances["binomial", int(_STEPS.value[-1])].sum(axis=0)
    measured["error of sums, most steps"] = float(np.abs(sums - 1.0).max())
    return measured


def main(_: list[str]) -> None:
    results = []
    for length in map(int, _LENGTHS.value):
        for sigma in map(float, _SIGMAS.value):
            results.append({"documents": length, "sigma": sigma, **errors(length, sigma)})
    names = list(results[0])
    rows = [[f"{result[name]:.2g}" if result[name] < 10 else str(result[name]) for name in names] for result in results]
    print(harness.markdown(names, rows, left=2))
    harness.write(results, draws=_DRAWS.value)


if __name__ == "__main__":
    app.run(main)
