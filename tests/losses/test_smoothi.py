"""The SmoothI losses equal float64 references written from the paper (Eq. 10 to 12, gradients by Eq. 9)."""

import numpy as np
import pytest

from tests.helpers import references, value_and_gradient
from tfr_smooth import losses


def lists_of(lengths):
    """Returns labels and scores, [batch, list]; padding has the label -1."""
    labels = np.full((len(lengths), max(lengths)), -1.0, np.float32)
    scores = np.zeros_like(labels)
    for row, length in enumerate(lengths):
        random = np.random.RandomState(length)
        labels[row, :length] = random.randint(0, 5, length)
        labels[row, 0] = max(labels[row, 0], 1)
        scores[row, :length] = random.randn(length)
    return labels, scores


def check(loss, reference, labels, scores):
    """Compares the loss of each list and the gradient of their sum with the reference."""
    values, gradient = value_and_gradient(loss, labels, scores)
    assert values.dtype == np.float32 and gradient.dtype == np.float32
    for i, real in enumerate(labels >= 0):
        metric, slope = reference(labels[i, real], scores[i, real])
        # The error is relative to the metric, because the loss is computed as 1 - metric.
        np.testing.assert_allclose(1.0 - np.float64(values[i]), metric, rtol=1e-6, atol=6e-8)
        assert np.abs(gradient[i, real] + slope).max() <= 1e-5 * np.abs(slope).max() + 1e-6
        np.testing.assert_array_equal(gradient[i, ~real], 0.0)


@pytest.mark.parametrize("lengths", [[1, 2, 10, 121], pytest.param([1000], marks=pytest.mark.slow)], ids=str)
@pytest.mark.parametrize(
    ("alpha", "topn"),
    [
        *((0.1, None), (1.0, 5), (10.0, None)),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in [(1.0, 1), (1.0, 2000), (10.0, 500), (100.0, 5)]),
    ],
)
def test_ndcg_equals_the_paper(alpha, topn, lengths):
    loss = losses.SmoothINDCGLoss(alpha=alpha, topn=topn, reduction="none")
    check(loss, lambda y, s: references.smoothi_ndcg(y, s, alpha, topn=topn), *lists_of(lengths))


@pytest.mark.parametrize("delta", [0.001, 0.25, 0.499])
def test_ndcg_equals_the_paper_for_any_delta(delta):
    loss = losses.SmoothINDCGLoss(alpha=1.0, delta=delta, reduction="none")
    check(loss, lambda y, s: references.smoothi_ndcg(y, s, delta=delta), *lists_of([30, 7]))
