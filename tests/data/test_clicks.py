"""`one_list_per_click`: its lists, and that inverse propensity weights then remove position bias exactly."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth import data, losses

RELEVANCE = np.array([0.1, 0.9, 0.4, 0.7])
PROPENSITIES = np.array([1.0, 0.5, 0.3, 0.2])


def test_each_click_becomes_a_list():
    clicks = tf.constant([[1.0, 0.0, 1.0], [0.0, 0.0, -1.0], [0.0, 2.0, -1.0]])
    inputs = {"mask": clicks >= 0.0, "features": tf.reshape(tf.range(18.0), [3, 3, 2]), "query_id": list("abc")}
    weights = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 0.0], [6.0, 7.0, 0.0]])
    found, labels, found_weights = data.one_list_per_click(inputs, clicks, weights)
    assert labels.numpy().tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, -1]]
    assert found_weights.numpy().tolist() == [1.0, 3.0, 7.0]
    assert found["query_id"].numpy().tolist() == [b"a", b"a", b"c"]
    np.testing.assert_array_equal(found["features"], inputs["features"].numpy()[[0, 0, 2]])
    np.testing.assert_array_equal(found["mask"], inputs["mask"].numpy()[[0, 0, 2]])
    without_weights = data.one_list_per_click(inputs, clicks)
    assert len(without_weights) == 2
    np.testing.assert_array_equal(without_weights[1], labels)


def test_batches_without_clicks_become_empty_and_have_loss_0():
    features, clicks = np.ones([6, 2]), np.array([0, 0, 0, 0, 1, 0])
    dataset = data.Lists.from_arrays(features, clicks, [1, 1, 2, 2, 3, 3], weights=np.ones(6)).batches(1)
    found = list(dataset.map(data.one_list_per_click))
    assert [labels.shape for _, labels, _ in found] == [(0, 2), (0, 2), (1, 2)]
    assert float(losses.ListNetLoss()(found[0][1], tf.zeros([0, 2]), found[0][2])) == 0.0


def click_patterns():
    """All click patterns on one list, and their probabilities under the position-based model."""
    patterns = np.array(list(itertools.product([0.0, 1.0], repeat=4)), np.float32)
    rates = RELEVANCE * PROPENSITIES
    return patterns, np.prod(np.where(patterns, rates, 1.0 - rates), axis=1)


@pytest.mark.parametrize(
    "name",
    [
        *("list_net", "rank_net", "mean_squared"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("smoothi_ndcg", "approx_mrr", "soft_ndcg")),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("list_mle", "lambda_loss")),
    ],
)
def test_the_expected_weighted_loss_does_not_depend_on_positions(name):
    """It is the sum over documents of relevance times the loss of a list with only that document relevant."""
    scores = tf.constant([[0.3, -0.2, 0.8, 0.1]])
    loss = losses.get(name, reduction="sum")
    patterns, probabilities = click_patterns()
    weights = (probabilities[:, np.newaxis] / PROPENSITIES).astype(np.float32)
    inputs = {"mask": tf.ones(patterns.shape, tf.bool), "scores": tf.repeat(scores, len(patterns), axis=0)}
    inputs, labels, weights = data.one_list_per_click(inputs, tf.constant(patterns), tf.constant(weights))
    expected = loss(tf.eye(4), tf.repeat(scores, 4, axis=0), tf.constant(RELEVANCE, tf.float32))
    assert float(loss(labels, inputs["scores"], weights)) == pytest.approx(float(expected), rel=1e-5)

    # The same weights without one list per click give a biased loss.
    patterns, probabilities = patterns[1:], probabilities[1:]
    weights = (probabilities[:, np.newaxis] / PROPENSITIES).astype(np.float32)
    biased = loss(tf.constant(patterns), tf.repeat(scores, len(patterns), axis=0), tf.constant(weights))
    assert abs(float(biased) / float(expected) - 1.0) > 0.02
