"""Two towers: encoders of features instead of factors."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tensorflow as tf

from tests import helpers
from tests.recommendation.groups import GROUPS, likes
from tfr_smooth import losses, recommendation
from tfr_smooth.recommendation.tables import TableEncoder

SMALL = {
    "dim": 4,
    "validation_fraction": 0.3,
    "softmax_epochs": 12,
    "softmax_batch_size": 4,
    "loss": None,
    "verbose": False,
    "refit": False,
}
LARGER = {**SMALL, "dim": 16, "softmax_epochs": 20}
NOISE = np.random.RandomState(0).normal(0.0, 0.05, [28, 4])  # no two items have equal scores
# The last four items are only in the table.
OF_GROUPS = np.append(GROUPS[1], np.arange(4))
KINDS = {
    "numbers": lambda: {f"x{place}": (np.eye(4)[OF_GROUPS] + NOISE)[:, place] for place in range(4)},
    "category": lambda: {"genre": [f"g{group}" for group in OF_GROUPS], "noise": NOISE[:, 0]},
    "text": lambda: {"title": [f"A film of genre{group}" for group in OF_GROUPS], "noise": NOISE[:, 0]},
    "vector": lambda: {"embedding": list(np.eye(4)[OF_GROUPS] + NOISE)},
}


def table(kind="numbers", name="item", prefix="item "):
    rows = np.random.RandomState(1).permutation(28)  # in another order than the interactions
    columns = {name: [f"{prefix}{item}" if prefix else item for item in range(28)], **KINDS[kind]()}
    return pd.DataFrame(columns).iloc[rows].reset_index(drop=True)


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
    return recommendation.Recommender(**LARGER).fit(cold, items=table())


def test_vectors_are_the_outputs_of_the_encoders_for_the_features():
    users, items = np.random.RandomState(0).rand(2, 5, 3).astype(np.float32)
    layers = [TableEncoder(encoder(2), num_features=3, vectors=[[0, 3]]) for _ in range(2)]
    options = {"similarity": "dot", "temperature": 0.5, "item_bias": True}
    model = recommendation.CatalogFactors(
        num_users=5, num_items=5, user_encoder=layers[0], item_encoder=layers[1], **options
    )
    seen = np.eye(5)
    seen[:, 2] = seen[4] = 0.0
    model.set_features(recommendation.Interactions(seen), users=users, items=items)
    assert len(model.trainable_variables) == 7
    kernel = layers[0].get_weights()[0].astype(np.float64)  # both have the same seed
    outputs = [users @ kernel, items @ kernel]
    factors = np.random.RandomState(1).rand(5, 2)
    vectors = [own + factors * known[:, None] for own, known in zip(outputs, (seen.any(1), seen.any(0)), strict=True)]
    for table in (model._users, model._items):
        table.factors.assign(factors)
    biases = np.arange(5.0)
    model._items.bias.assign(biases)
    expected = vectors[0] @ vectors[1].T / 0.5 + biases * seen.any(0)
    np.testing.assert_allclose(model(tf.constant([3, 1])), expected[[3, 1]], rtol=1e-5)
    inputs = {"users": [4], "items": [[2, 0]], "offsets": [[0.0, 1.0]]}
    candidates = model({name: tf.constant(value) for name, value in inputs.items()})
    np.testing.assert_allclose(candidates, expected[[4]][:, [2, 0]] + [[0.0, 1.0]], rtol=1e-5)


def known_and_new(**options):
    """Returns a model of 40 users and 200 items, of which every fourth is new, with factors."""
    features = np.random.RandomState(0).rand(200, 3).astype(np.float32)
    sizes = {"num_users": 40, "num_items": 200, "dim": 2}
    model = recommendation.CatalogFactors(**sizes, item_encoder=TableEncoder(encoder(2), num_features=3), **options)
    is_new = np.arange(200) % 4 == 0
    model.set_features(recommendation.Interactions(np.tile(~is_new, [40, 1])), items=features)
    model._items.factors.assign(np.ones([200, 2]))
    return model, is_new


def test_a_random_fifth_of_the_items_has_no_factors_in_a_training_step():
    model, is_new = known_and_new(similarity="dot", temperature=1.0)
    optimizer = tf.keras.optimizers.SGD()
    model.compile(optimizer)
    users = tf.constant([3])
    own = model.user_vectors(users).numpy().sum()
    parts = []
    for step in (0, 0, 1):
        optimizer.iterations.assign(step)
        parts.append((model(users) - model(users, training=True)).numpy()[0] / own)
    assert np.abs(parts[0] - parts[0].round()).max() < 1e-4
    assert 0.1 < parts[0].round()[~is_new].mean() < 0.3 and not parts[0].round()[is_new].any()
    np.testing.assert_array_equal(parts[0], parts[1])
    assert 0.2 < (parts[2].round() != parts[0].round())[~is_new].mean() < 0.45


@pytest.mark.parametrize("places", [None, np.arange(50)], ids=["catalog", "candidates"])
def test_items_without_interactions_are_no_negatives(places):
    model, is_new = known_and_new()
    model.compile("sgd", losses.SoftmaxLoss())
    users, chosen = np.arange(2), np.arange(200) if places is None else places
    scores, labels = np.random.RandomState(2).rand(2, 2, len(chosen)).astype(np.float32)
    labels[:, is_new[chosen]] = 0.0
    inputs = tf.constant(users)
    if places is not None:
        inputs = {"users": inputs, "items": tf.constant([chosen] * 2), "offsets": tf.zeros([2, len(chosen)])}
    found = [model.compute_loss(inputs, tf.constant(labels), scores + rise * is_new[chosen]) for rise in (0.0, 9.0)]
    np.testing.assert_array_equal(*found)
    expected = losses.SoftmaxLoss()(labels[:, ~is_new[chosen]], scores[:, ~is_new[chosen]])
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)


def test_a_training_that_continues_starts_with_the_trained_encoders():
    features = np.random.RandomState(0).rand(5, 3).astype(np.float32)

    def model(value):
        layers = {name: TableEncoder(encoder(2), num_features=3) for name in ("user_encoder", "item_encoder")}
        made = recommendation.CatalogFactors(num_users=5, num_items=5, **layers)
        made.set_features(recommendation.Interactions(np.eye(5)), users=features, items=features)
        for variable in made.trainable_variables:
            variable.assign(np.full(variable.shape, value))
        return made

    trained, other = model(0.5), model(-1.0)
    other.continue_from(trained, np.arange(5), np.arange(5))
    helpers.assert_same(other.get_weights(), trained.get_weights())


def of_cold_items(recommender, num_users=24):
    """Returns how often the best item without users, known to the training or only to the table, is of the group."""
    is_cold = recommender.interactions_.users_per_item == 0
    assert is_cold.sum() == 12
    best = OF_GROUPS[is_cold][recommender.predict(np.arange(num_users))[:, is_cold].argmax(axis=1)]
    return (best == GROUPS[0]).mean()


@pytest.mark.parametrize(
    "kind",
    [
        "numbers",
        "category",
        pytest.param("vector", marks=pytest.mark.slow),
        pytest.param("text", marks=pytest.mark.slow),
    ],
)
def test_items_without_users_are_found_by_their_features(fitted, cold, kind):
    recommender = fitted
    if kind != "numbers":
        columns = {"title": "text"} if kind == "text" else None
        recommender = recommendation.Recommender(**LARGER, kinds=columns)
        recommender.fit(cold, items=pa.Table.from_pandas(table(kind)))
    assert of_cold_items(recommender) > 0.6
    top = recommender.recommend(cold.user_ids, topn=2)
    found = recommender.interactions_.item_indices(top.items.ravel()).reshape(-1, 2)
    assert (OF_GROUPS[found] == GROUPS[0][:, None]).mean() > 0.8
    assert (recommender.interactions_.users_per_item == 0)[found].mean() > 0.5  # most of the group that is left


def test_a_warning_says_that_popularity_is_better():
    """All users have the same items, which the features do not tell from others."""
    matrix = np.tile(np.arange(24) < 6, [24, 1])
    matrix[np.arange(24), np.arange(24) % 6] = False
    data = recommendation.Interactions(matrix, item_ids=[f"item {item}" for item in range(24)])
    validation = recommendation.Interactions(~matrix & (np.arange(24) < 6), item_ids=data.item_ids)
    noise = pd.DataFrame({"item": data.item_ids, "x": np.arange(24) % 2 + NOISE[:24, 0]})
    with pytest.warns(UserWarning, match=r"ndcg_cut_20 on the held-out items is 0\.\d{4}, and 1\.0000 by popularity"):
        recommendation.Recommender(**{**SMALL, "softmax_epochs": 1}).fit(data, items=noise, validation=validation)


@pytest.mark.slow
def test_both_parts_train_the_encoders(cold):
    options = {**SMALL, "softmax_epochs": 20, "loss": "list_net", "epochs": 2, "learning_rate": 0.01, "negatives": 5}
    recommender = recommendation.Recommender(**options, user_encoder=encoder(), item_encoder=tower())
    recommender.fit(cold, users=table(name="user", prefix=""), items=table())
    # Held-out items share the first ranks with three new items of their group.
    assert max(recommender.history_["val_ndcg_cut_20"]) > 0.5 and of_cold_items(recommender, 24) > 0.9
    has_factor = recommender.model_._items.has_factor.numpy()[:, 0]
    np.testing.assert_array_equal(has_factor, recommender.interactions_.users_per_item > 0)


@pytest.mark.slow
def test_files_exports_and_updates_have_the_encoders(fitted, cold, tmp_path):
    fitted.save(tmp_path / "recommender.keras")
    loaded = recommendation.Recommender.load(tmp_path / "recommender.keras")
    np.testing.assert_array_equal(loaded.predict([0, 9]), fitted.predict([0, 9]))
    folder = fitted.export(tmp_path / "export", topn=3)
    signatures = tf.saved_model.load(str(folder)).signatures
    found = signatures["users"](users=tf.constant(cold.user_ids[:5].tolist(), tf.int64))
    expected = fitted.recommend(cold.user_ids[:5], topn=3)
    np.testing.assert_array_equal(found["items"].numpy().astype(str), expected.items)
    histories = fitted.recommend(histories=[["item 12", "item 13"]], topn=2).items[0]
    assert (OF_GROUPS[fitted.interactions_.item_indices(histories)] == 2).all()
    new = recommendation.Interactions([[1, 1, 1]], user_ids=[99], item_ids=["item 4", "item 24", "item 1"])
    loaded.update(new, items=table())
    top = loaded.interactions_.item_indices(loaded.recommend([99], topn=2).items[0])
    assert (OF_GROUPS[top] == 0).all() and (loaded.history_, fitted.history_)[0] != fitted.history_
    with pytest.raises(ValueError, match="`items` must be a table as in the first `fit`, got None."):
        loaded.update(new)


@pytest.mark.parametrize(
    ("options", "tables", "message"),
    [
        ({"item_encoder": encoder()}, {}, "^`items` must be a table with `item_encoder`, got None"),
        ({}, {"items": [1]}, "^`table` must be a table of pandas, Polars"),
        (
            {},
            {"items": table(), "item_id": "movie"},
            r"^`items` must have the column 'movie' of ids and others, got \[",
        ),
        ({}, {"items": table()[5:]}, "^`items` must have a row for each id of the interactions, got none for 'item "),
        ({}, {"items": pd.concat([table()] * 2)}, "^`items` must be unique, got 'item .*' twice."),
        ({"kinds": {"z": "id"}}, {"items": table()}, "^`kinds` must be one of 'x0'.* got 'z'"),
        ({"item_encoder": encoder(5)}, {"items": table()}, "same size, .* got 4 for users and 5 for items"),
        (
            {"item_encoder": tf.keras.layers.Reshape([2, 4])},
            {"items": table()},
            r"`item_encoder` must return vectors \[batch, size\], got shape \(1, 2, 4\)",
        ),
    ],
)
def test_errors_name_the_argument(cold, options, tables, message):
    with pytest.raises(ValueError, match=message):
        recommendation.Recommender(**SMALL, **options).fit(cold, **tables)
