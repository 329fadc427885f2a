"""Arrays and tables yield the same batches as a LETOR file with the same rows."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from tests.data.readers import OPTIONS, assert_same_batches
from tfr_smooth import data, losses, models

QUERIES = ["b", "a", "b", "c", "a", "b", "c", "d"]


@pytest.fixture
def rows():
    random = np.random.RandomState(0)
    return random.randn(8, 3).astype(np.float32), np.array([0, 1, 2, 0, 0, 1, 3, 1])


def letor(tmp_path, features, labels, queries):
    """Writes a file of these rows, grouped by query, with the row numbers as document ids."""
    lines = []
    for query in dict.fromkeys(queries):
        for row in np.flatnonzero(np.array(queries) == query):
            values = " ".join(f"{i}:{value!r}" for i, value in enumerate(features[row].tolist(), 1))
            lines.append(f"{labels[row]} qid:{query} {values} #docid = {row}")
    path = tmp_path / "rows.txt"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_arrays_yield_the_batches_of_a_file_with_the_same_rows(rows, tmp_path, options):
    features, labels = rows
    options = {"batch_size": 3, "return_ids": True, **options}
    expected = data.read_letor(letor(tmp_path, features, labels, QUERIES), cache=True, **options)
    found = data.from_arrays(features, labels, QUERIES, **options)
    assert found.cardinality() == expected.cardinality()
    assert_same_batches(found, expected)


def test_group_sizes_split_the_rows_into_queries_in_order(rows):
    features, labels = rows
    expected = data.from_arrays(features, labels, [0, 0, 0, 1, 2, 2, 2, 2], batch_size=2, return_ids=True)
    assert_same_batches(
        data.from_arrays(features, labels, group_sizes=[3, 1, 4], batch_size=2, return_ids=True), expected
    )


def test_weights_stay_with_their_documents(rows):
    features, labels = rows
    weights = np.arange(8.0)
    with_ids = data.from_arrays(features, labels, QUERIES, weights=weights, batch_size=3, return_ids=True)
    for inputs, _, found in with_ids:
        mask = inputs["mask"].numpy()
        np.testing.assert_array_equal(found[~mask], np.zeros((~mask).sum()))
        np.testing.assert_array_equal(found[mask], weights[inputs["doc_id"].numpy()[mask].astype(int)])
    without = data.from_arrays(features, labels, QUERIES, weights=weights, batch_size=3)
    names = ("features", "mask")
    assert_same_batches(without, with_ids.map(lambda x, y, w: ({name: x[name] for name in names}, y, w)))
    model = models.FeedForwardScorer(hidden=[4])
    model.compile("adam", losses.ListNetLoss())
    assert np.isfinite(model.fit(without, verbose=0).history["loss"][0])


def test_documents_without_labels_get_label_0_and_are_not_padding(rows):
    features, _ = rows
    inputs, labels = next(iter(data.from_arrays(features, query_ids=QUERIES, batch_size=4)))
    assert int(tf.reduce_sum(tf.cast(inputs["mask"], tf.int32))) == 8
    np.testing.assert_array_equal(labels, np.where(inputs["mask"], 0.0, -1.0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": [[0.0], [np.nan]]}, r"`features` must be finite float32 numbers, got nan in row 1, column 0"),
        ({"features": [[0.0], [1e39]]}, r"`features` must be finite float32 numbers, got inf in row 1, column 0"),
        ({"features": [["a"], ["b"]]}, r"`features` must be numbers \[rows, columns\], got <U1"),
        ({"features": [1.0, 2.0]}, r"`features` must be numbers \[rows, columns\], got float64 of shape \(2,\)"),
        (
            {"features": np.zeros((0, 1)), "labels": [], "query_ids": []},
            "`features` must have at least one row, got none",
        ),
        ({"labels": [0.0]}, "`labels` must have one value for each of the 2 rows of `features`, got 1"),
        ({"labels": [0.0, -1.0]}, r"`labels` must be >= 0, got -1.0 in row 1"),
        ({"labels": [0.0, np.inf]}, "`labels` must be finite float32 numbers, got inf in row 1"),
        ({"weights": [1.0, -2.0]}, r"`weights` must be >= 0, got -2.0 in row 1"),
        ({"query_ids": ["a"]}, r"`query_ids` must have shape \(2,\), one id per row of `features`, got \(1,\)"),
        ({"query_ids": [1.0, np.nan]}, "`query_ids` must have no missing values, got nan in row 1"),
        ({"query_ids": None}, "Exactly one of `query_ids` and `group_sizes` must be given, got neither"),
        ({"group_sizes": [2]}, "Exactly one of `query_ids` and `group_sizes` must be given, got both"),
        (
            {"query_ids": None, "group_sizes": [1]},
            "`group_sizes` must add up to the 2 rows of `features`, got a sum of 1",
        ),
        ({"query_ids": None, "group_sizes": [2, 0]}, r"`group_sizes` must be integers >= 1, got \[2, 0\]"),
        ({"batch_size": 0}, "`batch_size` must be an integer >= 1, got 0"),
        ({"seed": -1}, "`seed` must be an integer >= 0 or None, got -1"),
    ],
)
def test_invalid_arrays_are_refused(arguments, message):
    right = {"features": [[0.0], [1.0]], "labels": [0, 1], "query_ids": ["a", "a"], "batch_size": 2}
    with pytest.raises(ValueError, match=message):
        data.from_arrays(**{**right, **arguments})


def frame_of(features, labels):
    columns = {f"f{i}": features[:, i] for i in range(3)}
    return pd.DataFrame({"title": list("abcdefgh"), "qid": QUERIES, **columns, "label": labels, "w": np.arange(8.0)})


class Table:
    """A table of another library, with `to_pandas`."""

    def __init__(self, frame):
        self._frame = frame

    def to_pandas(self):
        return self._frame


@pytest.mark.parametrize("kind", [lambda frame: frame, Table])
def test_a_dataframe_yields_the_batches_of_its_columns(rows, kind):
    frame = frame_of(*rows)
    options = {"batch_size": 3, "return_ids": True}
    found = data.from_dataframe(kind(frame), query="qid", label="label", features=["f2", "f0"], weight="w", **options)
    expected = data.from_arrays(rows[0][:, [2, 0]], rows[1], QUERIES, weights=np.arange(8.0), **options)
    assert_same_batches(found, expected)


def test_all_numeric_columns_without_another_role_are_features(rows):
    inputs, _ = next(iter(data.from_dataframe(frame_of(*rows), query="qid", label="label", batch_size=8)))
    assert inputs["features"].shape[2] == 4  # including the weights
    inputs, *_ = next(iter(data.from_dataframe(frame_of(*rows), query="qid", label="label", weight="w", batch_size=8)))
    assert inputs["features"].shape[2] == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query": "id"}, r"`query` must be one of the columns \['title', 'qid', .*\], got 'id'"),
        ({"features": ["f0", "f9"]}, r"`features` must be among the columns \['title', .*\], got 'f9'"),
        ({"features": ["title"]}, "`features` must be numeric columns, got 'title' of type"),
        ({"label": "title"}, "`labels` must be numbers"),
    ],
)
def test_invalid_columns_are_named_in_the_error(rows, arguments, message):
    with pytest.raises(ValueError, match=message):
        data.from_dataframe(frame_of(*rows), **{"query": "qid", "label": "label", "batch_size": 2, **arguments})


def test_a_missing_value_is_named_in_the_error(rows):
    frame = frame_of(*rows)
    frame.loc[2, "f1"] = None
    with pytest.raises(ValueError, match="`features` must be finite float32 numbers, got nan in row 2, column 1"):
        data.from_dataframe(frame, query="qid", label="label", features=["f0", "f1"], batch_size=2)


def test_an_object_that_is_not_a_table_is_refused():
    with pytest.raises(ValueError, match="`frame` must be a pandas DataFrame or have a `to_pandas` method, got dict"):
        data.from_dataframe({}, query="qid", label="label", batch_size=2)


@pytest.mark.parametrize("weighted", [False, True])
def test_positions_stay_with_their_documents(rows, weighted):
    features, labels = rows
    positions = np.arange(1, 9)
    options = {"weights": positions} if weighted else {}
    for batch in data.from_arrays(
        features, labels, QUERIES, positions=positions, batch_size=3, return_ids=True, **options
    ):
        inputs, mask = batch[0], batch[0]["mask"].numpy()
        found = inputs["position"].numpy()
        assert found.dtype == np.int32 and (found[~mask] == 0).all()
        np.testing.assert_array_equal(found[mask], inputs["doc_id"].numpy()[mask].astype(int) + 1)
        if weighted:
            np.testing.assert_array_equal(batch[2], found)
    frame = pd.DataFrame(features, columns=list("abc")).assign(qid=QUERIES, label=labels, place=positions)
    expected = data.from_arrays(features, labels, QUERIES, positions=positions, batch_size=3)
    assert_same_batches(
        data.from_dataframe(frame, query="qid", label="label", position="place", batch_size=3), expected
    )


def test_positions_must_be_numbers_of_at_least_0(rows):
    with pytest.raises(ValueError, match="`positions` must be >= 0, got -1.0 in row 0"):
        data.from_arrays(*rows, QUERIES, positions=-np.ones(8), batch_size=3)
