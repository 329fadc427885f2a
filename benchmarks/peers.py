"""Compares value and gradient of this library's losses with those of allRank, PT-Ranking and Rax.

python benchmarks/peers.py --allrank_path=allRank --ptranking_path=ptranking --threads=1 --output=peers.json

The paths are clones of https://github.com/allegro/allRank and https://github.com/wildltr/ptranking. Rax (JAX) is used
if it is installed. Missing peers are skipped.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import io
import math
import sys
import types
from collections.abc import Callable
from typing import Any

import harness
import numpy as np
import peer_losses
from absl import app, flags

from tfr_smooth import losses

_SHAPES = flags.DEFINE_list("shapes", ["128x120", "32x500"], "Batch shapes: lists x documents.")
_ALLRANK = flags.DEFINE_string("allrank_path", None, "Path of a clone of allegro/allRank.")
_PTRANKING = flags.DEFINE_string("ptranking_path", None, "Path of a clone of wildltr/ptranking.")

Loss = Callable[[Any, Any], Any]
SideOf = Callable[[np.ndarray, np.ndarray], harness.Side]
# Converts a peer's value and gradient, given the numbers of lists and documents, to those of our sum over lists.
InOurs = Callable[[Any, Any, int, int], tuple[Any, Any]]


def minus_mean(value: Any, gradient: Any, lists: int, _: int) -> tuple[Any, Any]:
    """For losses that are minus the mean of the metric over lists; ours are one minus the metric."""
    return lists * (1.0 + value), lists * gradient


def minus_sum(value: Any, gradient: Any, lists: int, _: int) -> tuple[Any, Any]:
    return lists + value, gradient


def as_it_is(value: Any, gradient: Any, *_: int) -> tuple[Any, Any]:
    return value, gradient


def rax_pairs(value: Any, gradient: Any, _: int, documents: int) -> tuple[Any, Any]:
    """For Rax's weighted pairs, with weights times the number of documents and natural logarithms."""
    factor = 1.0 / (documents * math.log(2.0))
    return factor * value, factor * gradient


@dataclasses.dataclass(frozen=True)
class Pair:
    """Our loss and a peer's; `difference` describes differences other than rounding."""

    ours: Loss
    side: SideOf
    in_ours: InOurs
    difference: str = ""
    without_ties: bool = False


def stand_in(name: str, **contents: Any) -> None:
    """Replaces a missing module that is imported but not used by a stand-in."""
    try:
        importlib.import_module(name)
    except ImportError:
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(contents)


def allrank() -> dict[str, Pair]:
    # allRank uses these for data and configuration; its losses import one constant from there.
    stand_in("torchvision", transforms=None)
    stand_in("torchvision.transforms", Compose=None)
    stand_in("gcsfs")
    stand_in("attr", attrib=None, attrs=None)
    stand_in("pkg_resources", Requirement=None, resource_filename=None)
    sys.path.insert(0, _ALLRANK.value)
    harness.torch()
    theirs = importlib.import_module("allrank.models.losses")

    def side(loss: Callable[..., Any], **options: Any) -> SideOf:
        return lambda *batch: harness.torch_side(lambda labels, scores: loss(scores, labels, **options), *batch)

    def lambdas(scheme: str, metric: str) -> Pair:
        ours = losses.LambdaLoss(metric=metric, mu=10.0, reduction="sum")
        return Pair(ours, side(theirs.lambdaLoss, weighing_scheme=scheme, mu=10.0), as_it_is)

    return {
        "allRank approxNDCGLoss": Pair(
            losses.ApproxNDCGLoss(alpha=1.0, reduction="sum"), side(theirs.approxNDCGLoss, alpha=1.0), minus_mean
        ),
        "allRank lambdaLoss, LambdaRank": lambdas("lambdaRank_scheme", "lambda_rank"),
        "allRank lambdaLoss, NDCG-Loss2++": lambdas("ndcgLoss2PP_scheme", "ndcg_loss2++"),
        "allRank neuralNDCG": Pair(
            losses.get("neuralsort_ndcg", temperature=1.0, reduction="sum"),
            side(theirs.neuralNDCG, temperature=1.0),
            minus_mean,
            "NeuralNDCG scales NeuralSort's matrix by up to 50 Sinkhorn steps and uses the expected gain at a rank; "
            "ours does not scale the matrix and uses the gain of the expected relevance.",
        ),
    }


class _NoStep:
    """An optimizer without effect, since PT-Ranking's losses call `step` of their optimizer."""

    def zero_grad(self) -> None:
        pass

    def step(self) -> None:
        pass


def ptranking() -> dict[str, Pair]:
    sys.path.insert(0, _PTRANKING.value)
    torch = harness.torch()
    listwise = "ptranking.ltr_adhoc.listwise"
    softrank = importlib.import_module(f"{listwise}.softrank")
    wassrank = importlib.import_module(f"{listwise}.wassrank.wassRank")
    scorer = {"sf_id": "pointsf", "opt": "Adam", "lr": 1e-3, "pointsf": {"TL_AF": "R"}}

    def side(ranker: Any, **options: Any) -> SideOf:
        """PT-Ranking's loss calls `backward` itself, which leaves the gradient in the tensor, and may print."""
        ranker.optimizer = _NoStep()

        def of(labels: np.ndarray, scores: np.ndarray) -> harness.Side:
            tensors = torch.from_numpy(labels), torch.from_numpy(scores)

            def run() -> tuple[Any, Any]:
                leaf = tensors[1].detach().requires_grad_()
                with contextlib.redirect_stdout(io.StringIO()):
                    value = ranker.custom_loss_function(leaf, tensors[0], **options)
                return value.detach().numpy(), leaf.grad.numpy()

            return run

        return of

    sigma = 1.0
    soft = softrank.SoftRank(scorer, model_para_dict={"delta": sigma, "top_k": None, "metric": "nDCG"})
    transport = {**wassrank.WassRankParameter().default_para_dict(), "mode": "EntropicOT"}
    wass = wassrank.WassRank(scorer, wass_para_dict=transport)
    wass.dict_std_dists = None
    return {
        "PT-Ranking SoftRank": Pair(
            losses.SoftNDCGLoss(sigma=sigma, reduction="sum"),
            side(soft, presort=True, label_type=softrank.LABEL_TYPE.MultiLabel),
            minus_sum,
            "PT-Ranking uses the discount of the expected rank, as ApproxNDCG does, with the normal instead of the "
            "logistic distribution; ours is the paper's expectation of the discount over the distribution of ranks.",
        ),
        "PT-Ranking WassRank": Pair(
            losses.get("sinkhorn_ndcg", reduction="sum"),
            side(wass, batch_ids=[""]),
            as_it_is,
            "This library has no WassRank, which transports softmax(scores) to softmax(labels) under a cost between "
            "documents; Sinkhorn transports scores to ranks. WassRank runs in mode EntropicOT (regularization 0.1, up "
            "to 20 steps, mean over lists), since the default mode, SinkhornOT, processes one list at a time. The time "
            "includes its printing of the scores.",
        ),
    }


def rax() -> dict[str, Pair]:
    jax = harness.jax()
    theirs = importlib.import_module("rax")
    total = jax.numpy.sum

    def side(loss: Callable[..., Any], **options: Any) -> SideOf:
        def called(labels: Any, scores: Any) -> Any:
            return loss(scores, labels, reduce_fn=total, **options)

        return lambda *batch: harness.jax_side(called, *batch)

    def lambdas(weights: Callable[..., Any], metric: str) -> Pair:
        def normalized(*arguments: Any, **options: Any) -> Any:
            return weights(*arguments, normalize=True, **options)

        ours = losses.LambdaLoss(metric=metric, reduction="sum")
        return Pair(ours, side(theirs.pairwise_logistic_loss, lambdaweight_fn=normalized), rax_pairs)

    def approx_ndcg(*batch: np.ndarray) -> harness.Side:
        return harness.jax_side(peer_losses.rax_approx_ndcg(jax, temperature=0.1), *batch)

    def softmax(labels: Any, where: Any) -> Any:
        return jax.nn.softmax(labels, axis=-1, where=where)

    return {
        "Rax ApproxNDCG": Pair(losses.ApproxNDCGLoss(alpha=10.0, reduction="sum"), approx_ndcg, minus_sum),
        "Rax softmax_loss": Pair(
            losses.ListNetLoss(reduction="sum"), side(theirs.softmax_loss, label_fn=softmax), as_it_is
        ),
        "Rax listmle_loss": Pair(
            losses.ListMLELoss(reduction="sum"),
            side(theirs.listmle_loss),
            as_it_is,
            without_ties=True,  # Rax orders tied labels by position or randomly; ours is the mean over orders.
        ),
        "Rax LambdaRank": lambdas(theirs.dcg_lambdaweight, "lambda_rank"),
        "Rax NDCG-Loss2": lambdas(theirs.dcg2_lambdaweight, "ndcg_loss2"),
    }


def pairs() -> dict[str, Pair]:
    found = allrank() if harness.is_given(_ALLRANK) else {}
    found |= ptranking() if harness.is_given(_PTRANKING) else {}
    found |= rax() if harness.is_installed("rax") else {}
    return found


def inputs(shape: str, without_ties: bool) -> tuple[np.ndarray, np.ndarray]:
    """A batch with descending labels, which PT-Ranking requires, and independent scores."""
    labels, scores = harness.a_batch(*harness.shape_of(shape))
    labels = -np.sort(-labels, axis=1)
    if without_ties:
        labels = np.broadcast_to(np.linspace(4.0, 0.0, labels.shape[1], dtype=np.float32), labels.shape).copy()
    return labels, scores


def measure(name: str, pair: Pair, shape: str) -> dict[str, Any]:
    labels, scores = inputs(shape, pair.without_ties)
    sides = {
        "ours": harness.TensorFlowSide(pair.ours, labels, scores),
        "theirs": pair.side(labels, scores),
        "ours, XLA": harness.TensorFlowSide(pair.ours, labels, scores, jit_compile=True),
    }
    expected = sides["ours"]()
    found = pair.in_ours(*sides["theirs"](), *scores.shape)
    assert np.isfinite(found[0]) and np.isfinite(found[1]).all(), name
    # Losses of weighted pairs are sums of N^2 terms, and allRank takes the logarithm of a power near 1.
    harness.same(sides["ours, XLA"](), expected, value=1e-4, gradient=1e-3, name=name)
    if not pair.difference:
        harness.same(found, expected, value=1e-4, gradient=1e-3, name=name)
    result = harness.race(sides, repeats=harness.repeats(), name=name, shape=shape)
    result["differences"] = harness.differences(found, expected)
    print(f"    {'another quantity' if pair.difference else 'the same'}: {result['differences']}", flush=True)
    return result


def main(_: list[str]) -> None:
    harness.use_threads()
    found = pairs()
    results = [measure(name, pair, shape) for name, pair in found.items() for shape in _SHAPES.value]
    for name, pair in found.items():
        print(f"{name}: {pair.difference or 'the same quantity'}")
    packages = [name for name in ("torch", "jax", "rax") if name in sys.modules]
    harness.report(results, packages=packages, not_the_same={name: pair.difference for name, pair in found.items()})


if __name__ == "__main__":
    app.run(main)
