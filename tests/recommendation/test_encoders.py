"""Tables of items and users: encoders of features give vectors to those without interactions."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tensorflow as tf

from tests.helpers import assert_error
from tests.recommendation.groups import GROUPS, in_time, likes
from tfr_smooth import recommendation
from tfr_smooth.recommendation import tables
from tfr_smooth.recommendation.fit_data import FitData

OPTIONS = {"dim": 16, "validation_fraction": 0.3, "softmax_epochs": 20, "softmax_batch_size": 4}
OPTIONS |= {"loss": None, "verbose": False, "refit": False}
NOISE = np.random.RandomState(0).normal(0.0, 0.05, [28, 4])  # no two items have equal scores
# The last four items are only in the table.
OF_GROUPS = np.append(GROUPS[1], np.arange(4))


def table(name="item", prefix="item "):
    """Numbers that say the group."""
    columns = {name: [f"{prefix}{item}" if prefix else item for item in range(28)]}
    columns |= {f"x{place}": values for place, values in enumerate((np.eye(4)[OF_GROUPS] + NOISE).T)}
    rows = np.random.RandomState(1).permutation(28)  # in another order than the interactions
    return pd.DataFrame(columns).iloc[rows].reset_index(drop=True)


@pytest.fixture(scope="module")
def cold():
    """The group's features of all items are known, but the last two items of each group have no users."""
    matrix = likes().copy()
    matrix[:, np.arange(24) % 6 >= 4] = False
    return recommendation.Interactions(matrix, item_ids=[f"item {item}" for item in range(24)])


@pytest.fixture(scope="module")
def fitted(cold):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # such as Keras's of `shuffle`
        return recommendation.Recommender(**OPTIONS).fit(cold, items=pa.Table.from_pandas(table()))


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_only_new_users_and_items_get_vectors_of_their_features(similarity):
    """The encoders return the vectors of the users and items before these, of another length."""
    model = recommendation.CatalogFactors(num_users=4, num_items=5, dim=2, similarity=similarity, item_bias=True)
    users, items = np.random.RandomState(0).rand(4, 2), np.random.RandomState(1).rand(5, 2)
    model.set_weights([users, items, np.arange(5.0)])
    seen = np.ones([4, 5])
    seen[3] = seen[:, 4] = 0.0

    def encoder(vectors, is_known):
        np.testing.assert_array_equal(is_known, [True] * (len(vectors) - 1) + [False])
        return 3.0 * np.roll(vectors, 1, axis=0)

    model.set_new(recommendation.Interactions(seen), {"users": encoder, "items": encoder})
    norms = np.linalg.norm(users[:3], axis=1), np.linalg.norm(items[:4], axis=1)
    users[3] = users[2] * norms[0].mean() / norms[0][2]
    items[4] = items[3] * norms[1].mean() / norms[1][3]
    found = model.get_weights()
    np.testing.assert_array_equal(found[0][:3], users[:3].astype(np.float32))
    if similarity == "dot":
        np.testing.assert_allclose(found[0], users, rtol=1e-5)
        np.testing.assert_allclose(found[1], items, rtol=1e-5)
    np.testing.assert_allclose(found[2], [0.0, 1.0, 2.0, 3.0, 1.5], rtol=1e-6)
    cosines = model.item_cosines(np.array([3])).numpy()[0]
    np.testing.assert_allclose(cosines[3:], [1.0, 1.0], rtol=1e-5)


@pytest.mark.slow
def test_a_table_changes_no_score_of_known_items(fitted, cold):
    # The same items, so that the initial factors are the same.
    without = recommendation.Recommender(**OPTIONS).fit(cold.renumbered(cold.user_ids, fitted.interactions_.item_ids))
    known = fitted.interactions_.users_per_item > 0
    scores = [recommender.predict(np.arange(24)) for recommender in (fitted, without)]
    np.testing.assert_array_equal(scores[0][:, known], scores[1][:, known])
    assert fitted.history_ == without.history_ and (scores[0] != scores[1])[:, ~known].all()


@pytest.mark.slow
def test_items_without_users_are_found_by_their_features(fitted, cold):
    is_cold = fitted.interactions_.users_per_item == 0
    best = OF_GROUPS[is_cold][fitted.predict(np.arange(24))[:, is_cold].argmax(axis=1)]
    assert is_cold.sum() == 12 and (best == GROUPS[0]).mean() > 0.6
    top = fitted.recommend(cold.user_ids, topn=2)
    found = fitted.interactions_.item_indices(top.items.ravel()).reshape(-1, 2)
    assert (OF_GROUPS[found] == GROUPS[0][:, None]).mean() > 0.8
    assert is_cold[found].mean() > 0.5  # most of the group that is left


@pytest.mark.slow
def test_sequences_find_items_without_users(cold, tmp_path):
    """Those of the training, of the table, and of a later table."""
    times = np.random.default_rng(0).random(cold.num_interactions)
    ordered = recommendation.Interactions(cold.matrix, item_ids=cold.item_ids, times=times)
    recommender = recommendation.Recommender(**{**OPTIONS, "softmax_epochs": 12}, dropout=0.1, history_items="sequence")
    recommender.fit(ordered, items=table()[lambda rows: rows["item"] != "item 27"])
    new = recommendation.Interactions([[1, 1]], user_ids=[99], item_ids=["item 9", "item 6"], times=[1.0, 2.0])
    for when in ("fit", "update"):
        if when == "update":
            recommender.update(new, items=table())
        known = recommender.interactions_
        is_new, users = known.users_per_item == 0, known.user_ids[:24]
        found = known.item_indices(recommender.recommend(users, topn=2).items.ravel()).reshape(-1, 2)
        assert is_new.sum() == {"fit": 11, "update": 12}[when] and is_new[found].mean() > 0.3, when
        assert (OF_GROUPS[found] == GROUPS[0][:, None]).mean() > 0.6, when
    recommender.save(tmp_path / "recommender.keras")
    loaded = recommendation.Recommender.load(tmp_path / "recommender.keras")
    np.testing.assert_array_equal(loaded.predict([0, 24]), recommender.predict([0, 24]))


@pytest.mark.slow
def test_users_without_items_get_items_by_their_features():
    matrix, is_new = likes().copy(), np.arange(24) % 6 >= 4
    matrix[is_new] = False
    recommender = recommendation.Recommender(**{**OPTIONS, "loss": "list_net", "epochs": 2, "learning_rate": 0.01})
    recommender.fit(recommendation.Interactions(matrix), users=table(name="user", prefix=""))
    top = recommender.recommend(np.flatnonzero(is_new), topn=3).items
    assert (GROUPS[1][top] == GROUPS[0][is_new][:, None]).mean() > 0.6


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
    assert OF_GROUPS[top[0]] == 0 and (loaded.history_, fitted.history_)[0] != fitted.history_
    assert_error("`items` must be a table as in the first `fit`, got None.", loaded.update, new)


def test_errors_name_the_argument(cold):
    fit = recommendation.Recommender(**OPTIONS, kinds={"z": "id"}).fit
    for arguments, message in (
        ({"items": table(), "item_id": "movie"}, "`items` must have the column 'movie' of ids and others, got"),
        ({"items": table()[5:]}, "`items` must have a row for each id of the interactions, got none for 'item "),
        ({"items": pd.concat([table()] * 2)}, "`items` must be unique, got 'item "),
        ({"items": table()}, "`kinds` must be one of 'x0'"),
    ):
        assert_error(message, fit, cold, **arguments)


def test_rows_are_similar_by_their_terms(monkeypatch):
    monkeypatch.setattr(tables, "_SIMILAR", 2)
    monkeypatch.setattr(tables, "_PAIRS_AT_ONCE", 12)
    frame = pd.DataFrame({"item": range(6), "price": np.arange(6.0), "brand": ["a", None, "a", None, "c", "c"]})
    frame["tags"] = ["new|red", "red", "new|red|big", "new|new", "big|new", ""]
    frame["title"] = ["red car", "Red cars", "a car", "", "train", "the a train"]
    kinds = {"brand": "category", "tags": "set:|", "title": "text"}
    order, table = tables.read_table("items", frame[::-1], "item", np.arange(6), kinds, None)
    terms = [{"brand a", "red", "title red", "car"}, {"red", "title red", "cars"}]
    terms += [
        {"brand a", "red", "big", "a", "car"},
        set(),
        {"brand c", "big", "train"},
        {"brand c", "the", "a", "train"},
    ]
    pairs = sum(sum(each in own for own in terms) ** 2 for each in set().union(*terms))
    monkeypatch.setattr(tables, "_MOST_PAIRS", pairs + 4**2 - 1)  # So "new" does not count, which four rows have.
    names = sorted(set().union(*terms))
    vectors = np.array([[each in own for each in names] for own in terms], float)
    vectors *= np.log(6 / vectors.sum(axis=0))
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    expected = vectors @ vectors.T * (1.0 - np.eye(6))
    for row in expected:
        row[np.argsort(-row)[2:]] = 0.0
    expected /= np.maximum(expected.sum(axis=1, keepdims=True), 1e-9)
    np.testing.assert_array_equal(order, np.arange(6))
    np.testing.assert_allclose(tables.similarities(table.terms()).toarray(), expected, atol=1e-12)
    _, numbers = tables.read_table("items", frame[["item", "price"]], "item", np.arange(6), {}, None)
    assert tables.similarities(numbers.terms()).nnz == 0


def test_similar_items_follow_in_sequences():
    """Without the second item of each pair, which has the color of the first one, there are no transitions."""
    colors = np.arange(24) % 4
    pairs = [(first, second) for first in range(24) for second in range(first % 4, 24, 4) if first != second]
    table = pd.DataFrame({"item": range(24), "color": [f"color {color}" for color in colors]})
    options = {"history_items": "sequence", "dim": 4, "softmax_epochs": 1, "refit": False, "verbose": False}
    recommender = recommendation.Recommender(**options, kinds={"color": "id"}, validation_fraction=0.5)
    top = recommender.fit(in_time(pairs, 24), items=table).recommend(histories=[[item] for item in range(24)], topn=5)
    assert (colors[top.items] == colors[:, np.newaxis]).all()
    assert recommender.model_.baselines.similarity == 1.0


def test_rare_values_are_part_of_what_identifies_the_data():
    """They have the same code among the features, but not the same similarities."""
    params = {"kinds": {"brand": "id"}, "validation_fraction": 0.5, "seed": 0}
    brands, digests = [f"brand {place // 2}" for place in range(24)], []
    for rows in (brands, brands, brands[1:] + brands[:1]):
        data = FitData(params, "time", in_time([[item, (item + 1) % 24] for item in range(24)], 24), None, None)
        data.read_tables((None, "user"), (pd.DataFrame({"item": range(24), "brand": rows}), "item"))
        data.number()
        data.hold_out()
        digests.append(data.digest)
    assert digests[0] == digests[1] != digests[2]
