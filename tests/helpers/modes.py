"""Values and gradients of losses in eager mode, graphs and XLA."""

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import a_batch, step
from tests.helpers.facts import BASELINES, COMBINATIONS
from tfr_smooth import losses, measures, rankings

# One loss per code path; together they use every ranking, measure and baseline.
_MEASURES = [
    *("smoothi_ndcg", "smoothi_map", "smoothi_err", "approx_ndcg", "approx_precision", "soft_ndcg", "soft_map"),
    *("neuralsort_ndcg", "softsort_mrr", "fastsort_ndcg", "sinkhorn_ndcg"),
]
_MEASURES += [
    f"{ranking}_ndcg" for ranking in rankings.RANKINGS if not any(ranking in name.split("_") for name in _MEASURES)
]
for _measure in measures.MEASURES:
    if not any(_measure in name for name in _MEASURES):
        _MEASURES.append(next(name for name in COMBINATIONS if name.endswith(f"_{_measure}")))
# The other baselines share their code with one of these.
_SHARING = ("calibrated_softmax", "pairwise_hinge", "pairwise_soft_zero_one", "gumbel_approx_ndcg", "list_net")
SAMPLE = (*_MEASURES, *(name for name in BASELINES if name not in _SHARING))
# Losses with noise, which other processes draw anew.
RANDOM = tuple(name for name in BASELINES if "seed" in losses.hyperparameters(name))
# Measures that are equal for all orders of a list that is not longer than the cutoff.
NEED_A_CUTOFF = ("precision", "recall")
# One measure of each ranking, and one of each measure with a cheap ranking.
ONE_OF_EACH = [f"{ranking}_ndcg" for ranking in rankings.RANKINGS] + [f"softsort_{each}" for each in measures.MEASURES]
# The losses of the fast tests.
QUICK = ("smoothi_ndcg", "list_mle")
UNKNOWN = [tf.TensorSpec([None, None]), tf.TensorSpec([None, None])]


def quick_or_slow(names, quick=QUICK):
    marked = [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]
    return pytest.mark.parametrize("name", marked)


def batch(seed=0, lists=4, documents=7, dtype=np.float32):
    """Returns `a_batch` with some padding."""
    labels, scores = a_batch(seed, lists, documents, dtype)
    labels[0, -2:] = -1.0
    return labels, scores


def in_every_mode(loss, labels, scores, weights=None):
    """Yields each mode with the value and gradient computed in it."""
    arguments = [tf.constant(array) for array in (labels, scores, weights) if array is not None]
    signature = [tf.TensorSpec([None] * argument.shape.rank, argument.dtype) for argument in arguments]
    function = step(loss)
    yield "eager", function(*arguments)
    yield "graph", tf.function(function)(*arguments)
    yield "graph of unknown size", tf.function(function, input_signature=signature)(*arguments)
    yield "XLA", tf.function(function, jit_compile=True)(*arguments)
