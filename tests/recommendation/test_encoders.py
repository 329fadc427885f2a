"""Two towers: encoders of features instead of factors."""

import numpy as np
import pytest
import tensorflow as tf

from tests.recommendation.groups import GROUPS, likes
from tfr_smooth import recommendation

SMALL = {
    "dim": 4,
    "validation_fraction": 0.3,
    "warm_start_epochs": 12,
    "warm_start_batch_size": 4,
    "loss": None,
    "verbose": False,
    "refit": False,
}
# The group, and noise, so that no two items have equal scores.
FEATURES = np.eye(4)[GROUPS[0]] + np.random.RandomState(0).normal(0.0, 0.05, [24, 4])


def encoder(size=4, **options):
    return tf.keras.layers.Dense(size, kernel_initializer=tf.keras.initializers.GlorotUniform(seed=1), **options)


def tower():
    return tf.keras.Sequential([encoder(8, activation="relu"), encoder(4)])


@pytest.fixture(scope="module")
def cold():
    """The group's features of all items are known, but the last two items of each group have no users."""
    matrix = likes().copy()
    matrix[:, np.arange(24) % 6 >= 4] = False
    return recommendation.Interactions(matrix, item_ids=[f"item {item}" for item in range(24)])


@pytest.fixture(scope="module")
def fitted(cold):
    recommender = recommendation.Recommender(**SMALL, item_encoder=tower())
    return recommender.fit(cold, item_features=FEATURES)


def test_vectors_are_the_outputs_of_the_encoders_for_the_features():
    users, items = np.random.RandomState(0).rand(2, 5, 3)
    layer = encoder(2)
    model = recommendation.CatalogFactors(
        num_users=5,
        num_items=5,
        similarity="dot",
        temperature=0.5,
        user_encoder=layer,
        item_encoder=layer,
        num_user_features=3,
        num_item_features=3,
    )
    model.set_features(users=users, items=items)
    assert len(model.trainable_variables) == 4  # kernels and biases: the towers share no weights
    kernel = layer(tf.zeros([1, 3])) is not None and layer.get_weights()[0].astype(np.float64)
    expected = (users @ kernel) @ (items @ kernel).T / 0.5
    np.testing.assert_allclose(model(tf.constant([3, 1])), expected[[3, 1]], rtol=1e-5)
    inputs = {"users": [4], "items": [[2, 0]], "offsets": [[0.0, 1.0]]}
    candidates = model({name: tf.constant(value) for name, value in inputs.items()})
    np.testing.assert_allclose(candidates, expected[[4]][:, [2, 0]] + [[0.0, 1.0]], rtol=1e-5)


def test_items_without_users_are_found_by_their_features(fitted, cold):
    scores = fitted.scores(np.arange(24))
    is_cold = cold.matrix.sum(axis=0) == 0
    assert is_cold.sum() == 8
    best = GROUPS[1][is_cold][scores[:, is_cold].argmax(axis=1)]
    assert (best == GROUPS[0]).mean() > 0.9
    top = fitted.recommend(cold.user_ids, topn=2)
    found = cold.item_indices(top.items.ravel()).reshape(-1, 2)
    assert (GROUPS[1][found] == GROUPS[0][:, None]).mean() > 0.9


@pytest.mark.slow
def test_both_parts_train_the_encoders(cold):
    options = {**SMALL, "loss": "list_net", "epochs": 2, "learning_rate": 0.01, "negatives": 5}
    recommender = recommendation.Recommender(**options, user_encoder=encoder(), item_encoder=tower())
    recommender.fit(cold, user_features=FEATURES, item_features=FEATURES)
    assert len(recommender.validation_) == 2 and recommender.validation_[1] > 0.6


@pytest.mark.slow
def test_files_and_exports_have_the_encoders(fitted, cold, tmp_path):
    fitted.save(tmp_path / "recommender.npz")
    loaded = recommendation.Recommender.load(tmp_path / "recommender.npz")
    np.testing.assert_array_equal(loaded.scores([0, 9]), fitted.scores([0, 9]))
    folder = fitted.export(tmp_path / "export", topn=3)
    signatures = tf.saved_model.load(str(folder)).signatures
    found = signatures["users"](users=tf.constant(cold.user_ids[:5].tolist(), tf.int64))
    expected = fitted.recommend(cold.user_ids[:5], topn=3)
    np.testing.assert_array_equal(found["items"].numpy().astype(str), expected.items)
    histories = fitted.recommend(histories=[["item 12", "item 13"]], topn=2).items[0]
    assert (GROUPS[1][cold.item_indices(histories)] == 2).all()


@pytest.mark.parametrize(
    ("options", "features", "message"),
    [
        ({}, {"item_features": FEATURES}, r"^`item_features` must be given with .*, and only with it, got \(24, 4\)"),
        ({"item_encoder": encoder()}, {}, "^`item_features` must be given with `item_encoder`, .* got None"),
        ({}, {"user_features": FEATURES}, "^`user_features` must be given with `user_encoder`"),
        (
            {"item_encoder": encoder()},
            {"item_features": FEATURES[:3]},
            r"of shape \(24, 4\), got float64 of shape \(3, 4\)",
        ),
        ({"item_encoder": encoder()}, {"item_features": FEATURES * np.nan}, "`item_features` must be finite numbers"),
        ({"user_encoder": encoder()}, {"user_features": [["a"]] * 24}, "`user_features` must be finite numbers"),
        ({"item_encoder": encoder(5)}, {"item_features": FEATURES}, "same size, .* got 4 for users and 5 for items"),
        (
            {"item_encoder": tf.keras.layers.Reshape([2, 2])},
            {"item_features": FEATURES},
            r"`item_encoder` must return vectors \[batch, size\], got shape \(1, 2, 2\)",
        ),
    ],
)
def test_errors_name_the_argument(cold, options, features, message):
    with pytest.raises(ValueError, match=message):
        recommendation.Recommender(**SMALL, **options).fit(cold, **features)


def test_a_model_checks_its_features():
    options = {"num_users": 2, "num_items": 3}
    with pytest.raises(ValueError, match="`num_item_features` must be given with `item_encoder`, .* got None"):
        recommendation.CatalogFactors(item_encoder=encoder(), **options)
    with pytest.raises(ValueError, match="`item_features` must be None without `item_encoder`"):
        recommendation.CatalogFactors(**options).set_features(items=np.ones([3, 4]))


def test_items_with_an_encoder_have_no_bias():
    options = {"num_users": 2, "num_items": 3, "num_item_features": 4, "item_encoder": encoder(64)}
    with pytest.raises(ValueError, match="`item_bias` must be False with `item_encoder`, got True"):
        recommendation.CatalogFactors(item_bias=True, **options)
