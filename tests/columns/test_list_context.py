"""Ranks and shares within the list: the definition, whatever surrounds the values."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from tfr_smooth import data
from tfr_smooth.columns import Category, Date, Id, Number, Set, TableFeatures, list_context
from tfr_smooth.columns.learning import learn_features

NAN, INF = np.nan, np.inf
LISTS = {
    "no ties": ([3.0, 1.0, 2.0], [1.0, -1.0, 0.0]),
    "ties": ([5.0, 5.0, 1.0, 7.0, 5.0], [0.0, 0.0, -1.0, 1.0, 0.0]),
    "all equal": ([4.0, 4.0, 4.0], [0.0, 0.0, 0.0]),
    "one": ([4.0], [0.0]),
    "missing": ([2.0, NAN, 1.0, NAN], [1.0, 0.0, -1.0, 0.0]),
    "infinite": ([INF, 0.0, INF, -INF, 1.0], [0.75, -0.5, 0.75, -1.0, 0.0]),
    "large": ([3e38, -3e38, 1e-38], [1.0, -1.0, 0.0]),
}


def ranks(values):
    """The definition, of a list without padding, by counting."""
    known = values[~np.isnan(values)]
    if len(known) < 2:
        return np.zeros(len(values))
    places = [(known < value).sum() + 0.5 * ((known == value).sum() - 1) for value in values]
    return np.where(np.isnan(values), 0.0, 2.0 * np.array(places) / (len(known) - 1) - 1.0)


@pytest.mark.parametrize(("padding", "fill"), [(0, 0.0), (3, NAN), (3, INF), (3, -INF)])
def test_ranks_are_those_of_the_definition_at_any_padding(padding, fill):
    longest = max(len(values) for values, _ in LISTS.values()) + padding
    values = np.full((len(LISTS), longest, 1), fill, np.float32)
    mask, expected = np.zeros(values.shape[:2], bool), np.zeros(values.shape)
    for place, (given, known) in enumerate(LISTS.values()):
        values[place, : len(given), 0], mask[place, : len(given)] = given, True
        expected[place, : len(given), 0] = known
        np.testing.assert_allclose(ranks(np.array(given)), known, atol=1e-6)
    np.testing.assert_allclose(list_context.list_ranks(tf.constant(values), tf.constant(mask)), expected, atol=1e-6)


@pytest.mark.parametrize("size", [2, 300])
def test_columns_have_their_own_ranks_and_a_permuted_list_has_permuted_ranks(size):
    random = np.random.default_rng(size)
    values = random.integers(0, size // 2 + 1, (4, size, 5)).astype(np.float32)
    values[random.random(values.shape) < 0.2] = np.nan
    mask, order = random.random((4, size)) < 0.9, random.permutation(size)
    found = list_context.list_ranks(tf.constant(values), tf.constant(mask)).numpy()
    for place, column in np.ndindex(4, 5):
        np.testing.assert_allclose(
            found[place, mask[place], column], ranks(values[place, mask[place], column]), atol=1e-5
        )
    again = list_context.list_ranks(tf.constant(values[:, order]), tf.constant(mask[:, order]))
    np.testing.assert_array_equal(again, found[:, order])


SHARES = {
    "equal values": (["a", "b", "a", "a"], [2 / 3, 0.0, 2 / 3, 2 / 3]),
    "missing": (["b", "", "b", "c", ""], [0.5, 0.0, 0.5, 0.0, 0.0]),
    "numbers": (["7", "7.0", "8"], [0.5, 0.5, 0.0]),
    "all equal": (["a", "a"], [1.0, 1.0]),
    "one": (["a"], [0.0]),
}
SETS = {
    "several values": (["a|b", "a", "c|a", "d"], [1 / 3, 2 / 3, 1 / 3, 0.0]),
    "twice": (["a|a", "b|a", "b"], [0.5, 0.5, 0.5]),
    "missing value": (["a", "", "a|c", "|"], [1.0, 0.0, 0.5, 0.0]),
}


@pytest.mark.parametrize(
    ("column", "lists"),
    [
        (Category(name="x", categories=("a",)), SHARES),
        (Id(name="x", buckets=2), SHARES),
        (Set(name="x", categories=("a",)), {**SHARES, **SETS}),
    ],
    ids=lambda given: getattr(given, "kind", ""),
)
def test_shares_are_those_of_the_definition_at_any_padding(column, lists):
    values = np.full((len(lists) + 1, 7), "a", object)
    values[:, 4:] = ["7", "", "new"]
    mask, expected = np.zeros(values.shape, bool), np.zeros(values.shape)
    for place, (given, known) in enumerate(lists.values()):
        values[place, : len(given)], mask[place, : len(given)], expected[place, : len(given)] = given, True, known
    layer, inputs = TableFeatures([column], list_shares=["x"]), {"x": tf.constant(values.astype(str))}
    found = layer(inputs, list_mask=tf.constant(mask))
    assert layer.feature_columns == ("x",) * layer.num_features and layer.needs_lists
    np.testing.assert_allclose(found[..., -1], expected, atol=1e-6)
    again = TableFeatures.from_config(layer.get_config())
    np.testing.assert_array_equal(again(inputs, list_mask=tf.constant(mask)), found)


COLUMNS = [
    Date(name="day", fill=100.0, has_missing=True),
    Category(name="brand", categories=("a", "b")),
    Number(name="price", fill=2.0, has_missing=True),
    Number(name="stars", fill=3.0),
]
DAY = 86400


def raw():
    return {
        "day": tf.constant([[DAY, 3 * DAY, Date.missing_value], [DAY, 2 * DAY, 0]], tf.int64),
        "brand": tf.constant([["a", "", "b"], ["b", "b", ""]]),
        "price": tf.constant([[1.0, NAN, 0.5], [7.0, 9.0, 3.0]]),
        "stars": tf.constant([[4.0, 4.0, 5.0], [2.0, 1.0, 0.0]]),
    }


MASK = tf.constant([[True, True, True], [True, True, False]])


def test_ranks_follow_the_features_of_the_columns():
    layer = TableFeatures(COLUMNS, list_ranks=["day", "price", "stars"])
    plain = TableFeatures(COLUMNS)
    found = layer(raw(), list_mask=MASK).numpy()
    assert layer.list_ranks == ("price", "stars", "day")  # numbers, then dates
    assert layer.feature_columns == (*plain.feature_columns, "price", "stars", "day")
    np.testing.assert_array_equal(found[..., :-3], plain(raw()))
    expected = [[[1, -0.5, -1], [0, -0.5, 1], [-1, 1, 0]], [[-1, 1, -1], [1, -1, 1], [0, 0, 0]]]
    np.testing.assert_allclose(found[..., -3:], expected, atol=1e-6)
    assert layer.vectors == [[layer.num_features - 3, 3]]
    again = TableFeatures.from_config(layer.get_config())
    np.testing.assert_array_equal(again(raw(), list_mask=MASK), found)


def frame(queries=200):
    random = np.random.default_rng(0)
    sizes = random.integers(2, 7, queries)
    rows = pd.DataFrame({"query": np.repeat(np.arange(queries), sizes), "label": 0.0})
    rows["price"] = random.normal(size=len(rows))
    rows["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 9, len(rows)), unit="D")
    rows["new"] = random.random(len(rows)) < 0.3
    rows["age"] = rows["query"] * 1.5  # of the query
    rows["color"] = random.choice(["red", "blue", "green"], len(rows))
    rows["shop"] = np.where(rows["query"] % 2, "a", None)  # of the query, or missing
    rows["tags"] = rows["color"] + "|" + rows["query"].astype(str)
    rows["url"] = [f"url{place}" for place in range(len(rows))]
    rows["nearly"] = rows["query"] + (np.arange(len(rows)) == 5)
    return rows.sample(frac=1.0, random_state=0)


@pytest.mark.parametrize("most", [None, 0], ids=["in memory", "by batch"])
def test_columns_that_vary_within_lists_have_ranks(monkeypatch, most):
    lists = data.from_table(frame(), query="query", label="label")
    layer, lists = learn_features(lists, list_context=True, kinds={"tags": "set"})
    assert layer.list_ranks == ("price", "new", "day") and layer.list_shares == ("color",)
    if most is not None:
        monkeypatch.setattr("tfr_smooth.columns.features._MOST_BYTES", most)
    places = np.arange(lists.documents)
    for inputs, _ in layer.batches(layer.transform(lists), 7):
        for features, mask in zip(inputs["features"].numpy(), inputs["mask"].numpy(), strict=True):
            first, places = places[: mask.sum()], places[mask.sum() :]
            for place, name in enumerate(layer.list_ranks, layer.num_features - 4):
                expected = ranks(lists.values(name).astype(float)[first])
                np.testing.assert_allclose(features[mask, place], expected, atol=1e-6)
            colors = lists.values("color")[first]
            expected = np.array([((colors == color).sum() - 1) / (len(first) - 1) for color in colors])
            np.testing.assert_allclose(features[mask, -1], expected, atol=1e-6)
    assert not len(places)
    assert not learn_features(lists)[0].needs_lists
