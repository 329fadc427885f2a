"""Labels of lists: one list per click, and stochastic label aggregation."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import value_and_gradient
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
    for name in ("features", "mask"):
        np.testing.assert_array_equal(found[name], inputs[name].numpy()[[0, 0, 2]])
    _, without_weights = data.one_list_per_click(inputs, clicks)
    np.testing.assert_array_equal(without_weights, labels)


def test_batches_without_clicks_become_empty_and_have_loss_0():
    features, clicks = np.ones([6, 2]), np.array([0, 0, 0, 0, 1, 0])
    dataset = data.from_arrays(features, clicks, [1, 1, 2, 2, 3, 3], weights=np.ones(6)).batches(1)
    found = list(dataset.map(data.one_list_per_click))
    assert [labels.shape for _, labels, _ in found] == [(0, 2), (0, 2), (1, 2)]
    assert float(losses.ListNetLoss()(found[0][1], tf.zeros([0, 2]), found[0][2])) == 0.0


def click_patterns():
    """All click patterns on one list, and their probabilities under the position-based model."""
    patterns = np.array(list(itertools.product([0.0, 1.0], repeat=4)), np.float32)
    rates = RELEVANCE * PROPENSITIES
    return patterns, np.prod(np.where(patterns, rates, 1.0 - rates), axis=1)


@pytest.mark.parametrize("name", ["list_net", "mean_squared", pytest.param("smoothi_ndcg", marks=pytest.mark.slow)])
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


def many(count=20_000):
    """Lists with the same two documents, of which each label prefers another."""
    labels = np.tile([[1.0, 0.0], [0.0, 2.0]], [count, 1])
    return data.from_arrays(np.zeros([2 * count, 1]), labels, np.repeat(np.arange(count), 2)).batches(count)


def test_expected_loss_and_gradient_are_those_of_the_weighted_sum():
    weights, scores = [0.75, 0.25], np.float32([[0.3, -0.4]])
    ((_, labels),) = data.draw_labels(many(), weights, seed=3)
    (_, both) = next(iter(many()))
    loss = losses.SoftmaxLoss(reduction="none")
    value, gradient = value_and_gradient(loss, labels, np.tile(scores, [len(labels), 1]))
    of_both = losses.MultiObjectiveLoss("softmax", weights=weights, reduction="none")
    expected = value_and_gradient(of_both, both[:1], scores)
    # Five standard errors of the mean.
    for found, wanted in ((value, expected[0][0]), (gradient, expected[1][0])):
        error = found.std(axis=0) / np.sqrt(len(found))
        assert (np.abs(found.mean(axis=0) - wanted) < 5.0 * error + 1e-6).all()
        assert (error > 1e-4).all()


def test_weights_above_0_are_proportional_to_frequencies_and_0_is_never_drawn():
    labels = np.tile([[1.0, 2.0, 3.0]], [30_000, 1])
    dataset = data.from_arrays(np.zeros([30_000, 1]), labels, np.arange(30_000)).batches(30_000)
    ((_, drawn),) = data.draw_labels(dataset, [3.0, 0.0, 1.0], seed=0)
    values, counts = np.unique(drawn.numpy(), return_counts=True)
    assert values.tolist() == [1.0, 3.0]
    np.testing.assert_allclose(counts / 30_000, [0.75, 0.25], atol=0.0125)  # five standard deviations


def test_draws_depend_on_seed_and_batch_only_and_resume():
    def drawn(seed=1, start=0, epochs=6):
        options = {"batch_size": 8, "shuffle": True, "seed": 0, "first_epoch": start, "num_epochs": epochs - start}
        labels = np.random.default_rng(0).integers(0, 9, [120, 3])
        dataset = data.from_arrays(np.zeros([120, 1]), labels, np.repeat(np.arange(40), 3)).batches(**options)
        batches = data.draw_labels(dataset, [1.0, 1.0, 1.0], seed=seed, first_batch=5 * start)
        return [labels.numpy().tolist() for _, labels in batches]

    whole = drawn()
    tf.random.set_seed(7)
    assert drawn() == whole and drawn(start=4) == whole[20:] and len(whole) == 30
    assert drawn(seed=2) != whole


def test_bad_arguments_are_named():
    for weights, options, message in (
        ([1.0], {}, r"`dataset` must have labels \[batch, list, 1\]"),
        ([1.0, -1.0], {}, "`weights` must be .* >= 0, got -1.0"),
        ([1.0, 1.0], {"seed": -1}, "`seed` must be an integer >= 0, got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            data.draw_labels(many(2), weights, **{"seed": 0, **options})
