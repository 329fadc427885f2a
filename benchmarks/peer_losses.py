"""Losses of other libraries that several scripts compare with, as functions of labels and scores. No TensorFlow."""

from __future__ import annotations

import importlib
import os
import pathlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import harness
import numpy as np

Loss = Callable[[Any, Any], Any]


def rax_approx_ndcg(jax: ModuleType, temperature: float) -> Loss:
    """Rax's ApproxNDCG, summed over lists: minus NDCG.

    Equals Rax's approx_t12n(ndcg_metric, temperature), which requires an older JAX in Rax 0.4.0 (`jax.util`).
    """
    rax = importlib.import_module("rax")

    def ranks(*arguments: Any, **options: Any) -> Any:
        return rax.utils.approx_ranks(*arguments, step_fn=lambda gap: jax.nn.sigmoid(gap / temperature), **options)

    return lambda labels, scores: -rax.ndcg_metric(scores, labels, rank_fn=ranks, reduce_fn=jax.numpy.sum)


def smoothi(source: str | os.PathLike[str]) -> ModuleType:
    """The losses of the SmoothI authors, from the src/ folder of https://github.com/ygcinar/SmoothI."""
    return harness.module_at(pathlib.Path(source) / "losses.py", "authors_losses")


def smoothi_ndcg(
    source: str | os.PathLike[str],
    *,
    alpha: float,
    delta: float,
    documents: int,
    topn: int | None = None,
    device: str = "cpu",
) -> Loss:
    """The authors' SmoothI-NDCG, summed over lists."""
    # K=0 selects NDCG over the whole list.
    options = {"K": topn or 0, "rank_list_length": documents, "device": device}
    loss = smoothi(source).ListwiseSmoothINDCGKLoss(alpha, delta, **options)
    return lambda labels, scores: loss(scores, labels)


def in_our_gain(
    loss: Loss, labels: np.ndarray, scores: np.ndarray, *, topn: int | None = None, device: str = "cpu"
) -> tuple[Any, Any]:
    """The value and gradient of `smoothi_ndcg`, converted from the authors' gain 2^y to ours, 2^y - 1.

    For any ranking, their DCG is ours plus the sum D of the discounts. Their loss of a list is therefore
    L = 1 - (DCG + D) / (IDCG + D), and ours is 1 - DCG / IDCG = L (IDCG + D) / IDCG. The same holds for the gradient.
    """
    ranks = topn or labels.shape[1]
    discounts = 1.0 / np.log2(np.arange(ranks) + 2.0)
    ideal = (2.0 ** -np.sort(-labels.astype(np.float64), axis=1)[:, :ranks] - 1.0) @ discounts
    factors = (ideal + discounts.sum()) / ideal
    _, gradient = harness.torch_side(loss, labels, scores, device)()
    # The authors' loss sums over lists, so each list needs a separate call.
    each = [harness.torch_side(loss, labels[i : i + 1], scores[i : i + 1], device)()[0] for i in range(len(labels))]
    return np.dot(factors, np.array(each, np.float64)), factors[:, np.newaxis] * gradient
