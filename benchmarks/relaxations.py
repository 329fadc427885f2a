"""Compares value and gradient of the NeuralSort, SoftSort, FastSort and Sinkhorn losses with their authors' code.

python benchmarks/relaxations.py --neuralsort_path=neuralsort --softsort_path=softsort
    --fast_soft_sort_path=fast-soft-sort --threads=1 --output=relaxations.json

The paths are clones of https://github.com/ermongroup/neuralsort, https://github.com/sprillo/softsort and
https://github.com/google-research/fast-soft-sort. torchsort (FastSort in C++) and ott-jax (Sinkhorn, by its author) are
used if they are installed. Missing peers are skipped.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import harness
import numpy as np
import tensorflow as tf
from absl import app, flags

from tfr_smooth import losses, rankings

_SHAPES = flags.DEFINE_list("shapes", ["128x120", "32x500"], "Batch shapes: lists x documents.")
_NEURALSORT = flags.DEFINE_string("neuralsort_path", None, "Path of a clone of ermongroup/neuralsort.")
_SOFTSORT = flags.DEFINE_string("softsort_path", None, "Path of a clone of sprillo/softsort.")
_FAST_SOFT_SORT = flags.DEFINE_string("fast_soft_sort_path", None, "Path of a clone of google-research/fast-soft-sort.")

Loss = Callable[[Any, Any], Any]

# Our defaults, except for SoftSort's power, which is the authors' default, |s_i - s_j|.
TEMPERATURE, POWER, STRENGTH, EPSILON, THRESHOLD = 1.0, 1.0, 1.0, 0.1, 1e-3
OURS: dict[str, dict[str, Any]] = {
    "neuralsort_ndcg": {"temperature": TEMPERATURE},
    "softsort_ndcg": {"temperature": TEMPERATURE, "power": POWER},
    "fastsort_ndcg": {"regularization_strength": STRENGTH, "regularization": "l2"},
    "sinkhorn_ndcg": {"epsilon": EPSILON, "threshold": THRESHOLD},
}
_NAMES = flags.DEFINE_list("names", list(OURS), "Losses to run.")

# Largest differences of value and gradient due to rounding. NeuralSort's logits, sums of N gaps, are large.
CLOSE = {
    "neuralsort_ndcg": {"value": 1e-4, "gradient": 1e-3},
    "softsort_ndcg": {"value": 1e-5, "gradient": 1e-4},
    "fastsort_ndcg": {"value": 1e-5, "gradient": 1e-4},
    "sinkhorn_ndcg": {"value": 1e-4, "gradient": 1e-3},
}

# Differences between both sides, except for rounding.
DIFFERENCES = {
    "neuralsort_ndcg": "The authors' code has no padding and builds the N x N matrix of gaps; ours needs only sums.",
    "softsort_ndcg": "The authors' code has no padding.",
    "fastsort_ndcg": "The authors' code has no padding and solves one list after the other, on one thread.",
    "sinkhorn_ndcg": (
        "ott-jax starts from 0, scales in float32 logarithms, checks for convergence every 10 steps and stops by the "
        "sum over ranks of the errors of a plan with mass 1, that is, their mean in our unit; ours stops by the "
        "largest error. A batch continues until its last list has converged. Squashing and targets are the same here "
        "(ott-jax would not multiply by pi / sqrt(3)). The linear system of ott-jax's implicit gradient is singular (a "
        "shift of one potential is a shift of the other), and lineax rejects the result, hence ridge_kernel. The "
        "unrolled variant differentiates through the steps."
    ),
}


def ours(name: str, **more: Any) -> Loss:
    return losses.get(name, reduction="sum", **{**OURS[name], **more})


def torch_discounts(documents: int) -> Any:
    torch = harness.torch()
    return 1.0 / torch.log2(torch.arange(documents, dtype=torch.float32) + 2.0)


def torch_ideal(labels: Any) -> Any:
    best = labels.sort(dim=1, descending=True).values
    return ((2.0**best - 1.0) * torch_discounts(labels.shape[1])).sum(dim=1)


def from_indicators(indicators: Callable[[Any], Any]) -> Loss:
    """Sum over lists of 1 - NDCG in PyTorch: the gain of the smooth relevance at each rank."""

    def loss(labels: Any, scores: Any) -> Any:
        found = (indicators(scores) @ labels.unsqueeze(-1)).squeeze(-1)
        gained = ((2.0**found - 1.0) * torch_discounts(labels.shape[1])).sum(dim=1)
        return (1.0 - gained / torch_ideal(labels)).sum()

    return loss


def from_positions(positions: Callable[[Any], Any]) -> Loss:
    """Sum over lists of 1 - NDCG in PyTorch: the gain of each document, discounted at its position."""

    def loss(labels: Any, scores: Any) -> Any:
        gained = ((2.0**labels - 1.0) / harness.torch().log2(1.0 + positions(scores))).sum(dim=1)
        return (1.0 - gained / torch_ideal(labels)).sum()

    return loss


def torch_peers(name: str) -> Iterator[tuple[str, Loss]]:
    if name == "neuralsort_ndcg" and harness.is_given(_NEURALSORT):
        cuda = harness.torch().cuda
        # The code supports only CUDA. These are the tensor types that it creates.
        cuda.FloatTensor, cuda.LongTensor = harness.torch().FloatTensor, harness.torch().LongTensor
        module = harness.module_at(pathlib.Path(_NEURALSORT.value) / "pytorch" / "neuralsort.py", "authors_neuralsort")
        yield "authors' PyTorch", from_indicators(module.NeuralSort(TEMPERATURE))
    if name == "softsort_ndcg" and harness.is_given(_SOFTSORT):
        module = harness.module_at(pathlib.Path(_SOFTSORT.value) / "pytorch" / "softsort.py", "authors_softsort")
        yield "authors' PyTorch", from_indicators(module.SoftSort(TEMPERATURE, pow=POWER))
    if name == "fastsort_ndcg" and harness.is_given(_FAST_SOFT_SORT):
        sys.path.insert(0, _FAST_SOFT_SORT.value)
        from fast_soft_sort import pytorch_ops

        # It keeps the type of its input: float32, the default type of PyTorch models.
        theirs = {"direction": "DESCENDING", "regularization_strength": STRENGTH, "regularization": "l2"}
        yield "authors' NumPy", from_positions(lambda scores: pytorch_ops.soft_rank(scores, **theirs))
    if name == "fastsort_ndcg" and harness.is_installed("torchsort"):
        harness.torch()
        import torchsort

        rising = {"regularization_strength": STRENGTH, "regularization": "l2"}
        yield "torchsort", from_positions(lambda scores: torchsort.soft_rank(-scores, **rising))


def squash(scores: Any) -> Any:
    """Our squashing, in JAX."""
    jnp = harness.jax().numpy
    deviation = jnp.maximum(jnp.std(scores), 1e-6)
    return harness.jax().nn.sigmoid((scores - jnp.mean(scores)) / deviation * np.pi / np.sqrt(3.0))


def ott_peers(name: str, threshold: float = THRESHOLD) -> Iterator[tuple[str, Loss]]:
    if name != "sinkhorn_ndcg" or not harness.is_installed("ott"):
        return
    jnp = harness.jax().numpy
    from ott.solvers.linear import implicit_differentiation
    from ott.tools import soft_sort

    ways = {
        "OTT-JAX, implicit": implicit_differentiation.ImplicitDiff(solver_kwargs={"ridge_kernel": 1e-2}),
        "OTT-JAX, unrolled": None,
    }
    for side, way in ways.items():
        options = {"squashing_fun": squash, "epsilon": EPSILON, "threshold": threshold, "implicit_diff": way}

        def loss(labels: Any, scores: Any, options: dict[str, Any] = options) -> Any:
            documents = labels.shape[1]
            positions = documents - soft_sort.ranks(scores, axis=1, **options)  # Ranks of ott-jax ascend from 0.
            discounts = 1.0 / jnp.log2(jnp.arange(documents) + 2.0)
            best = -jnp.sort(-labels, axis=1)
            ideal = ((2.0**best - 1.0) * discounts).sum(axis=1)
            gained = ((2.0**labels - 1.0) / jnp.log2(1.0 + positions)).sum(axis=1)
            return (1.0 - gained / ideal).sum()

        yield side, loss


def sinkhorn_steps(scores: np.ndarray) -> dict[str, int]:
    """The number of scalings of rows and columns until the batch converges, of ours and of ott-jax if installed."""

    mask = tf.ones(scores.shape, tf.bool)

    def after(most: int) -> np.ndarray:
        return rankings.Sinkhorn(EPSILON, THRESHOLD, most).positions(tf.constant(scores), mask).numpy()

    stopped = after(2000)
    found = {"ours": next((steps for steps in range(1, 100) if np.allclose(after(steps), stopped, rtol=1e-6)), 100)}
    if harness.is_installed("ott"):
        jax = harness.jax()
        from ott.tools import soft_sort

        weights = jax.numpy.ones(scores.shape[1]) / scores.shape[1]
        options = {"squashing_fun": squash, "epsilon": EPSILON, "threshold": THRESHOLD}
        steps = jax.vmap(lambda row: soft_sort.transport_for_sort(row, weights, weights, **options).n_iters)
        found["OTT-JAX"] = int(np.max(jax.jit(steps)(scores)))
    return found


def strictly_same(name: str, labels: np.ndarray, scores: np.ndarray) -> None:
    """Checks a few lists with a threshold so small that different stopping rules do not matter."""
    labels, scores = labels[:4], scores[:4]
    expected = harness.TensorFlowSide(ours(name, threshold=1e-6), labels, scores)()
    for side, loss in ott_peers(name, threshold=1e-6):
        harness.same(harness.jax_side(loss, labels, scores)(), expected, **CLOSE[name], name=side)


def measure(name: str, shape: str) -> dict[str, Any]:
    labels, scores = harness.a_batch(*harness.shape_of(shape))
    sides = {
        "ours": harness.TensorFlowSide(ours(name), labels, scores),
        "ours, step in XLA": harness.TensorFlowSide(ours(name), labels, scores, jit_compile=True),
    }
    sides |= {side: harness.torch_side(loss, labels, scores) for side, loss in torch_peers(name)}
    sides |= {side: harness.jax_side(loss, labels, scores) for side, loss in ott_peers(name)}
    expected = sides["ours"]()
    apart = {}
    for side, run in sides.items():
        # With different stopping rules, results differ by about the threshold.
        by_threshold = {"value": 1e-2, "gradient": 5e-2} if side.startswith("OTT") else CLOSE[name]
        apart[side] = harness.differences(run(), expected)
        harness.same(run(), expected, **by_threshold, name=f"{name}, {side}")
    if name == "sinkhorn_ndcg":
        strictly_same(name, labels, scores)
    result = harness.race(sides, name=name, shape=shape)
    result["differences"] = apart
    if name == "sinkhorn_ndcg":
        result["steps"] = sinkhorn_steps(scores)
    print(f"    { ({key: result[key] for key in ('differences', 'steps') if key in result}) }", flush=True)
    return result


def main(_: list[str]) -> None:
    harness.use_threads()
    results = [measure(name, shape) for name in _NAMES.value for shape in _SHAPES.value]
    for name in _NAMES.value:
        print(f"{name}: {DIFFERENCES[name]}")
    packages = [name for name in ("torch", "numba", "torchsort", "jax", "ott") if name in sys.modules]
    harness.report(results, packages=packages, ours=OURS, not_the_same=DIFFERENCES)


if __name__ == "__main__":
    app.run(main)
