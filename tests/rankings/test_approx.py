"""Approx: positions and the metrics computed from them equal the papers."""

import numpy as np
import pytest

from tests.helpers import references
from tests.helpers.references import sigmoid
from tests.rankings import evaluate
from tfr_smooth import rankings


@pytest.mark.parametrize("topn", [3, None])
def test_document_discounts_are_the_discounts_at_the_positions(topn):
    scores = np.random.RandomState(5).randn(8)
    ranking = rankings.Approx(2.0, beta=3.0)
    found = evaluate.value(lambda s, m: ranking.document_discounts(s, m, discount=[2.0, 1.0, 0.5], topn=topn), scores)
    places = references.approx_positions(scores, 2.0)
    expected = np.interp(places - 1.0, [0.0, 1.0, 2.0, 3.0], [2.0, 1.0, 0.5, 0.0])
    within = sigmoid(3.0 * (3.5 - places)) if topn else 1.0
    np.testing.assert_allclose(found, expected * within, rtol=1e-12)
