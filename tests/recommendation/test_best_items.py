"""A loss of the best scored items: the same list chosen by NumPy, and the limit of all items."""

import numpy as np
import pytest

from tests.helpers import value_and_gradient
from tests.helpers.modes import quick_or_slow
from tfr_smooth import losses
from tfr_smooth.recommendation.catalog_losses import BestItemsLoss

LOSSES = {
    "smoothi_ndcg": losses.get("smoothi_ndcg", alpha=3.0, delta=0.01, topn=5, reduction="none"),
    "lambda_loss": losses.get("lambda_loss", reduction="none"),
}


def a_batch(items=60):
    """Users with 0, 1, 5 and 20 relevant items; distinct scores."""
    random = np.random.RandomState(0)
    scores = np.stack([random.permutation(items) for _ in range(4)]).astype(np.float32) / 10.0
    labels = np.zeros([4, items], np.float32)
    for row, count in enumerate((0, 1, 5, 20)):
        labels[row, random.permutation(items)[:count]] = 1.0
    return labels, scores


@quick_or_slow(LOSSES, quick=["smoothi_ndcg"])
def test_it_is_the_loss_of_the_chosen_list_or_of_all_items(name):
    labels, scores = a_batch()
    for number in (60, 2**63):
        whole = value_and_gradient(BestItemsLoss(LOSSES[name], number), labels, scores)
        for found, expected in zip(whole, value_and_gradient(LOSSES[name], labels, scores), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    value, gradient = value_and_gradient(BestItemsLoss(LOSSES[name], 7), labels, scores)
    for row, worst in enumerate(scores.argmin(axis=1)):
        others = [item for item in np.argsort(-scores[row]) if labels[row, item] == 0.0 and item != worst]
        chosen = sorted({*np.flatnonzero(labels[row]), worst, *others[:7]})
        expected = value_and_gradient(LOSSES[name], labels[row : row + 1, chosen], scores[row : row + 1, chosen])
        assert value[row] == pytest.approx(expected[0][0], rel=1e-5)
        np.testing.assert_allclose(gradient[row, chosen], expected[1][0], rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(np.delete(gradient[row], chosen), 0.0)


def test_padding_reaches_nothing():
    labels, scores = a_batch()
    labels[1, :30], labels[2] = -1.0, -1.0
    loss = BestItemsLoss(LOSSES["smoothi_ndcg"], 7)
    expected = value_and_gradient(loss, labels, scores)
    found = value_and_gradient(loss, labels, np.where(labels < 0.0, np.nan, scores).astype(np.float32))
    for with_nan, without in zip(found, expected, strict=True):
        np.testing.assert_array_equal(with_nan, without)
        assert np.isfinite(without).all()
    assert expected[0][2] == 0.0 and (expected[1][labels < 0.0] == 0.0).all()
