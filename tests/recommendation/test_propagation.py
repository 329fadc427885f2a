"""LightGCN's propagation of the factors."""

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import assert_error
from tests.recommendation.groups import GROUPS, likes
from tfr_smooth import recommendation
from tfr_smooth.recommendation.propagation import PropagatedFactors


@pytest.fixture
def interactions():
    random = np.random.RandomState(0)
    matrix = (random.rand(7, 5) < 0.4).astype(np.float32)
    matrix[3], matrix[:, 2] = 0.0, 0.0  # a user without items, an item without users
    return recommendation.Interactions(matrix)


def propagated(interactions, users, items, layers):
    """Eqs. 3, 4 and 8 of the LightGCN paper, with dense matrices in float64."""
    matrix = interactions.matrix.toarray().astype(np.float64)
    adjacency = np.block([[np.zeros((7, 7)), matrix], [matrix.T, np.zeros((5, 5))]])
    scale = np.where(adjacency.sum(axis=1) > 0.0, 1.0 / np.sqrt(np.maximum(adjacency.sum(axis=1), 1.0)), 0.0)
    normalized = scale[:, None] * adjacency * scale
    found = np.concatenate([users, items]).astype(np.float64)
    mean = sum(np.linalg.matrix_power(normalized, layer) @ found for layer in range(layers + 1)) / (layers + 1)
    return mean[:7], mean[7:]


def test_vectors_equal_the_paper(interactions):
    layers = 3
    model = PropagatedFactors(interactions, layers, dim=4, similarity="dot", temperature=0.5)
    users, items = propagated(interactions, *model.get_weights(), layers)
    np.testing.assert_allclose(model.user_vectors().numpy(), users, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.item_vectors().numpy(), items, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model(tf.constant([6, 3])), (users @ items.T / 0.5)[[6, 3]], rtol=1e-5, atol=1e-6)


def test_the_gradient_equals_finite_differences(interactions):
    model = PropagatedFactors(interactions, 2, dim=3)
    weights, random = model.get_weights(), np.random.default_rng(0)

    def value(*moved):
        model.set_weights(moved)
        return tf.reduce_sum(tf.square(model(tf.constant([1, 1, 4]))) * tf.range(5.0))

    with tf.GradientTape() as tape:
        loss = value(*weights)
    gradients = tape.gradient(loss, model.trainable_variables)
    for _ in range(4):
        direction = [random.normal(size=each.shape).astype(np.float32) for each in weights]
        slope = sum(float(tf.reduce_sum(each * along)) for each, along in zip(gradients, direction, strict=True))
        ends = [value(*(w + step * d for w, d in zip(weights, direction, strict=True))) for step in (1e-3, -1e-3)]
        assert slope == pytest.approx(float(ends[0] - ends[1]) / 2e-3, rel=0.005)


def test_the_model_without_graph_has_the_same_scores(interactions):
    model = PropagatedFactors(interactions, 2, dim=4, temperature=0.3, item_bias=True)
    model.set_weights([*model.get_weights()[:2], np.linspace(-1.0, 1.0, 5)])
    plain = model.renewed()
    assert type(plain) is recommendation.CatalogFactors
    np.testing.assert_allclose(plain.catalog_scores(np.arange(7)), model.catalog_scores(np.arange(7)), rtol=1e-5)


@pytest.mark.slow
def test_the_recommender_finds_groups_keeps_no_graph_and_is_not_continued(tmp_path):
    train = recommendation.Interactions(likes(), item_ids=np.arange(100, 124))
    options = {"dim": 8, "softmax_epochs": 4, "softmax_batch_size": 4, "loss": None, "verbose": False}
    recommender = recommendation.Recommender(propagation_layers=2, **options).fit(train)
    assert type(recommender.model_) is recommendation.CatalogFactors
    top = recommender.recommend(topn=1, users=train.user_ids)
    has_unseen = ((GROUPS[0][:, None] == GROUPS[1]) & ~likes()).any(axis=1)
    assert (GROUPS[1][top.items[has_unseen, 0] - 100] == GROUPS[0][has_unseen]).mean() > 0.9
    recommender.save(tmp_path / "recommender.keras")
    loaded = recommendation.Recommender.load(tmp_path / "recommender.keras")
    np.testing.assert_array_equal(loaded.predict([0, 9]), recommender.predict([0, 9]))
    assert loaded.recommend([2], topn=1).items.dtype == np.int64
    everything = recommendation.Interactions(np.ones([24, 24]))
    assert_error("`propagation_layers` must be 0 with `init_model`, got 2.", recommender.update, everything)
