"""`PositionBias`: the logits of positions enter training only, and find the propensities of simulated users."""

import numpy as np
import pytest
import tensorflow as tf

from experiments.click_simulation import User, simulate
from tests import helpers
from tfr_smooth import data, losses, models

USER = User(eta=1.0, noise=0.1, max_label=2)


def a_scorer():
    return models.FeedForwardScorer(hidden=[], batch_norm=False, seed=0)


def inputs_of(positions, seed=0):
    positions = tf.constant(positions)
    features = tf.constant(np.random.default_rng(seed).normal(size=[*positions.shape, 3]), tf.float32)
    return {"features": features, "mask": positions > 0, "position": positions}


@pytest.fixture
def model():
    """Logits 1, 2, 3 of three positions."""
    model = models.PositionBias(a_scorer(), num_positions=3, position_rate=2.0)
    model.positions.assign(np.array([1.0, 2.0, 3.0]) / model.position_rate)
    return model


def test_the_bias_is_added_in_training_and_does_not_reach_inference(model):
    inputs = inputs_of([[1, 2, 3, 7], [3, 1, 0, 0]])
    real = inputs["mask"].numpy()
    scores = model.scorer({name: inputs[name] for name in ("features", "mask")})
    np.testing.assert_array_equal(model(inputs), scores)
    np.testing.assert_array_equal(model(inputs, training=False), scores)
    without = {name: inputs[name] for name in ("features", "mask")}
    np.testing.assert_array_equal(model(without), scores)
    added = np.array([[1.0, 2.0, 3.0, 3.0], [3.0, 1.0, 0.0, 0.0]])
    np.testing.assert_allclose(model(inputs, training=True).numpy()[real], (scores + added)[real], rtol=1e-6)
    both = models.PositionBias(model.scorer, num_positions=3, additive=False, position_rate=2.0)
    both.positions.assign(model.positions)
    found = both(inputs, training=True).numpy()
    np.testing.assert_array_equal(found[real][:, 0], added[real])
    np.testing.assert_array_equal(found[:, :, 1], scores)
    np.testing.assert_array_equal(both(inputs), scores)


def test_the_gradient_of_a_position_is_dense_and_the_sum_over_documents(model):
    # Optimizers that square the gradient would see each document of a position alone in a sparse one.
    with tf.GradientTape() as tape:
        output = model(inputs_of([[1, 2, 3, 7], [3, 1, 0, 0]]), training=True)
        total = tf.reduce_sum(output * [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 0.0, 0.0]])
    gradient = tape.gradient(total, model.positions)
    assert isinstance(gradient, tf.Tensor)
    np.testing.assert_allclose(gradient, np.array([7.0, 2.0, 12.0]) * model.position_rate)


def test_propensities_are_relative_to_the_first_position(model):
    np.testing.assert_allclose(model.propensities(), np.exp([0.0, 1.0, 2.0]))
    sigmoids = 1.0 / (1.0 + np.exp(-np.array([1.0, 2.0, 3.0])))
    np.testing.assert_allclose(model.propensities("sigmoid"), sigmoids / sigmoids[0])
    with pytest.raises(ValueError, match="`link` must be one of 'exp', 'sigmoid', got 'log'"):
        model.propensities("log")


@pytest.mark.keras_2
def test_a_saved_model_has_the_same_scores_and_logits(model, tmp_path):
    inputs = inputs_of([[1, 2, 3]])
    expected = model(inputs, training=True)
    model.save(tmp_path / "model.keras")
    again = tf.keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again(inputs, training=True), expected, rtol=1e-6)
    np.testing.assert_array_equal(again.propensities(), model.propensities())


def test_bad_arguments_are_refused():
    cases = [
        (lambda: models.PositionBias(a_scorer(), num_positions=0), "`num_positions` must be an integer >= 1, got 0"),
        (
            lambda: models.PositionBias(models.FeedForwardScorer(hidden=[2], members=2), num_positions=3)(
                inputs_of([[1, 2]]), training=True
            ),
            "`scorer` must return scores [batch, list] in training, got shape (2, 1, 2)",
        ),
        (
            lambda: models.PositionBias(a_scorer(), num_positions=3)({"features": tf.ones([1, 2, 3])}, training=True),
            "`inputs` must include 'position' in training, got ['features']",
        ),
    ]
    helpers.assert_refused(cases)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "additive", "per_click", "link"),
    [
        ("softmax", True, False, "exp"),
        ("list_net", True, True, "exp"),
        ("dual_learning", False, False, "exp"),
        ("click_em", False, False, "sigmoid"),
    ],
)
def test_models_of_random_rankings_find_the_propensities_and_rank_by_relevance(loss, additive, per_click, link):
    labels, queries = np.tile([0, 0, 1, 2], 20), np.repeat(np.arange(20), 4)
    log = simulate(labels, queries, None, USER, num_sessions=3000, topn=4)
    features = np.eye(3)[labels]
    lists = data.from_arrays(features[log.rows], log.clicks, log.sessions, positions=log.positions)
    dataset = lists.batches(100, shuffle=True, seed=1, num_epochs=6)
    if per_click:
        sharp = lambda inputs, labels: (inputs, tf.where(labels > 0.0, 50.0, labels))  # noqa: E731
        dataset = dataset.map(data.one_list_per_click).map(sharp)
    model = models.PositionBias(a_scorer(), num_positions=4, additive=additive)
    rate = 0.02 if loss == "dual_learning" else 0.05  # its two models learn from each other's noise
    model.compile(tf.keras.optimizers.Adam(rate), losses.get(loss))
    model.fit(dataset, verbose=0)
    np.testing.assert_allclose(model.propensities(link), USER.propensities(4), atol=0.12)
    scores = model.scorer(tf.eye(3)[tf.newaxis])
    assert (np.diff(scores.numpy()[0]) > 0.3).all()
