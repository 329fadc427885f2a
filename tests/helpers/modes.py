"""Values and gradients of losses in eager mode, graphs and XLA."""

import re

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import a_batch, step
from tests.helpers.facts import BASELINES
from tfr_smooth import losses, rankings

# One loss per code path: loops and gradients of their own, positions and indicators, steps, pairs, orders, noise.
SAMPLE = (
    *("smoothi_ndcg", "approx_err", "approx_spearman", "soft_ndcg", "neuralsort_recall", "softsort_mrr"),
    *("fastsort_ndcg", "sinkhorn_ndcg", "lapsum_precision", "sortingnetwork_ndcg", "list_mle", "lambda_loss"),
    *("softsort_map", "softmax_at_k", "mean_squared", "yeti_logistic", "pl_rank_ndcg"),
)
# Those of them that differ most, where the path matters less.
FEW = ("smoothi_ndcg", "approx_err", "soft_ndcg", "sinkhorn_ndcg", "list_mle", "yeti_logistic")
# Losses with noise, which other processes draw anew.
RANDOM = tuple(name for name in BASELINES if "seed" in losses.hyperparameters(name))
# Measures that are equal for all orders of a list that is not longer than the cutoff.
NEED_A_CUTOFF = ("precision", "recall")
# One measure of each ranking, and each measure with a cheap ranking.
ONE_OF_EACH = [f"{ranking}_ndcg" for ranking in rankings.RANKINGS] + ["approx_spearman"]
ONE_OF_EACH += [name for name in losses.NAMES if name.startswith("softsort_") and name != "softsort_ndcg"]
# The losses that stand for all: each ranking with two measures, each measure with two rankings, and all baselines. What
# a measure does with a ranking is the same code for all of these.
COVERING = [
    name for name in losses.NAMES if re.match(r"(softsort|approx)_|[a-z]+_(ndcg|err)$", name) or name in BASELINES
]
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
