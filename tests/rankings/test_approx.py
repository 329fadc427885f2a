"""Approx: positions and the metrics computed from them equal the papers."""

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import references
from tests.helpers.references import sigmoid
from tests.rankings import evaluate
from tfr_smooth import rankings


@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0, 100.0])
def test_positions_and_their_gradients_equal_the_papers(alpha):
    rows = [np.random.RandomState(length).randn(length) for length in (1, 2, 9, 60)]
    scores, mask = evaluate.padded(rows)
    weights = np.random.RandomState(0).randn(*scores.shape)
    found, gradient = evaluate.value_and_gradient(
        lambda s, m: tf.where(m, rankings.Approx(alpha).positions(s, m), 0.0), scores, weights, mask
    )
    for i, row in enumerate(rows):
        np.testing.assert_allclose(found[i, : len(row)], references.approx_positions(row, alpha), rtol=1e-12)
        slopes = sigmoid(alpha * (row[:, None] - row)) * sigmoid(alpha * (row - row[:, None])) * alpha
        of_row = weights[i, : len(row)]
        np.testing.assert_allclose(gradient[i, : len(row)], slopes @ of_row - slopes.sum(axis=0) * of_row, atol=1e-10)
    np.testing.assert_array_equal(gradient[~mask], 0.0)


@pytest.mark.parametrize("topn", [3, None])
def test_document_discounts_are_the_discounts_at_the_positions(topn):
    scores = np.random.RandomState(5).randn(8)
    ranking = rankings.Approx(2.0, beta=3.0)
    found = evaluate.value(lambda s, m: ranking.document_discounts(s, m, discount=[2.0, 1.0, 0.5], topn=topn), scores)
    places = references.approx_positions(scores, 2.0)
    expected = np.interp(places - 1.0, [0.0, 1.0, 2.0, 3.0], [2.0, 1.0, 0.5, 0.0])
    within = sigmoid(3.0 * (3.5 - places)) if topn else 1.0
    np.testing.assert_allclose(found, expected * within, rtol=1e-12)
