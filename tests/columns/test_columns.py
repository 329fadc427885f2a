"""Columns learned from a training table, and the raw values of tables in them."""

import dataclasses
import datetime
import decimal
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tensorflow as tf

from tfr_smooth import _serialization, data
from tfr_smooth.columns import (
    Boolean,
    Category,
    Date,
    Id,
    Number,
    Set,
    TableFeatures,
    Vector,
    column_arrays,
    infer_columns,
)
from tfr_smooth.columns.kinds import KINDS
from tfr_smooth.columns.learning import time_order
from tfr_smooth.columns.number import columns_of_matrix

UTC, TOKYO = datetime.timezone.utc, datetime.timezone(datetime.timedelta(hours=9))
NO_DATE = np.iinfo(np.int64).min
DAYS = pd.to_datetime(["2024-02-29", None, "1969-12-31"])
SECONDS = [1709164800, NO_DATE, -86400]

# Values of a column -> kind, raw values.
SERIES = {
    "int": ([3, 1, 2], "number", [3.0, 1.0, 2.0]),
    "nullable int": (pd.array([3, None, 2], "Int64"), "number", [3.0, np.nan, 2.0]),
    "objects of numbers": (np.array([3, None, 0.5], object), "number", [3.0, np.nan, 0.5]),
    "decimals": (np.array([decimal.Decimal("3.25"), None, decimal.Decimal("0.5")]), "number", [3.25, np.nan, 0.5]),
    "bool": ([True, False, True], "boolean", [1.0, 0.0, 1.0]),
    "nullable boolean": (pd.array([True, None, False], "boolean"), "boolean", [1.0, np.nan, 0.0]),
    "objects of text": (np.array(["b", None, "ä"], object), "category", ["b", "", "ä"]),
    "categorical floats": (pd.Categorical([7.0, None, 0.5]), "category", ["7", "", "0.5"]),
    "datetime": (DAYS, "date", SECONDS),
    "fractions of a second": (pd.to_datetime(["1969-12-31 23:59:59.5", "1970-01-01 00:00:00.5"]), "date", [-1, 0]),
    "time zone": (DAYS.tz_localize("Asia/Tokyo"), "date", [second - 9 * 3600 for second in SECONDS]),
    "objects of dates": (np.array([datetime.date(1970, 1, 2), None], object), "date", [86400, NO_DATE]),
    "durations": (pd.to_timedelta(["36h", None, "-12h"]), "number", [1.5, np.nan, -0.5]),
    "times of a zone": (np.array([datetime.datetime(1970, 1, 2, 9, tzinfo=TOKYO), None]), "date", [86400, NO_DATE]),
}
SERIES["time zone"][2][1] = NO_DATE


@pytest.mark.parametrize("name", SERIES)
def test_kinds_raw_values_and_json(name):
    values, kind, expected = SERIES[name]
    for frame in (pd.DataFrame({"x": values}), pa.Table.from_pandas(pd.DataFrame({"x": values}))):
        (column,) = infer_columns(frame)
        raw = column_arrays(frame, [column])["x"]
        assert column.kind == kind and column.dtype == tf.as_dtype(tf.convert_to_tensor(raw).dtype)
        assert raw.dtype == (object if kind == "category" else column.dtype.as_numpy_dtype)
        encoded = [value.encode() for value in expected] if kind == "category" else expected
        np.testing.assert_array_equal(raw, np.array(encoded, raw.dtype))
        missing = [value == column.missing_value or value != value for value in expected]
        assert column.has_missing == any(missing)
        known = [value for value, is_missing in zip(expected, missing, strict=True) if not is_missing]
        if kind == "category":
            assert column.categories == tuple(sorted(known))
        else:
            mean = np.mean(known, dtype=np.float64) / (86400 if kind == "date" else 1)
            assert column.fill == pytest.approx(mean, rel=1e-12)
        assert column.width == (len(known) if kind == "category" else 1) + any(missing)
    # Only missing values, such as in a table of one row; pandas does not know their type.
    for nothing in ([None, None], pd.to_datetime([None, None]), pd.Categorical([None, None])):
        raw = column_arrays(pd.DataFrame({"x": nothing}), [column])["x"]
        np.testing.assert_array_equal(
            raw, np.array([b"" if kind == "category" else column.missing_value] * 2, raw.dtype)
        )
    assert _serialization.deserialize(json.loads(json.dumps(_serialization.serialize(column)))) == column
    assert hash(column) == hash(dataclasses.replace(column))


def test_the_most_frequent_categories_are_known_and_ties_are_in_the_order_of_the_text():
    frame = pd.DataFrame({"x": ["b", "z", "a", "z", "c", None]})
    kinds = {"x": "category"}
    found = [infer_columns(frame, max_categories=most, kinds=kinds)[0].categories for most in (1, 2, 3, 9)]
    assert found == [("z",), ("z", "a"), ("z", "a", "b"), ("z", "a", "b", "c")]


def test_words_and_pairs_of_words_in_enough_rows_are_known(monkeypatch):
    texts = ["Red wine"] * 5 + ["red, BEER!"] * 4 + ["wine: red"]
    (column,) = infer_columns(pd.DataFrame({"x": texts}), kinds={"x": "text"})
    assert (column.categories, column.length) == (("red", "wine", "red wine"), 3)
    monkeypatch.setattr("tfr_smooth.columns.text._MOST_TEXTS", 5)  # every seventh row
    assert infer_columns(pd.DataFrame({"x": texts * 3}), kinds={"x": "text"})[0].categories == ("red",)


BAD_TABLES = [
    (pd.DataFrame(index=[1]), "`table` must have at least one column, got none."),
    (pd.DataFrame({"": [1]}), "`name` must be a string that is not empty, got ''."),
    (pd.DataFrame([[1, 2]], columns=["x", "x"]), "`table` must have each column once, got 'x' 2 times."),
    (
        pd.DataFrame({"x": [None, ""], "y": [1, 2], "z": [np.nan] * 2}),
        "The columns ['x', 'z'] must have known values, got only missing ones.",
    ),
    *(
        (
            pd.DataFrame({"x": [1.0, value]}, index=["a", "b"]),
            f"column 'x' must be finite float32 numbers or missing, got {value} in row 1.",
        )
        for value in (-np.inf, 1e39)
    ),
]
UNKNOWN = [
    [None, [pd.Timestamp(0)]],
    np.array(["a", 2.5], object),
    np.array([True, "a"], object),
]


def test_tables_that_are_not_columns_are_refused():
    for frame, message in BAD_TABLES:
        with pytest.raises(ValueError) as error:
            infer_columns(frame)
        assert str(error.value) == message
    for values in UNKNOWN:
        with pytest.raises(ValueError, match="column 'x' must (be numbers, .* got the type|have values of one type: )"):
            infer_columns(pd.DataFrame({"y": 1, "x": values}))


COLLAPSED = {
    "epoch seconds of a minute": 1_700_000_000 + np.arange(60),
    "below float32": 1e-60 * np.arange(1, 9),
}
DIFFERENT = {
    "epoch seconds of a day": 1_700_000_000 + 60 * np.arange(1440),
    "one value": np.full(9, 2**40),
    "rounding errors": 0.3 + 5e-17 * np.arange(9),
}


def test_numbers_that_are_equal_as_float32_are_refused_and_those_that_only_lose_digits_are_numbers():
    for name, values in COLLAPSED.items():
        with pytest.raises(
            ValueError, match="^column 'x' must be numbers that differ as float32, got .* Pass times as"
        ):
            infer_columns(pd.DataFrame({"x": values})), name
    for name, values in DIFFERENT.items():
        assert infer_columns(pd.DataFrame({"x": values}))[0].kind == "number", name


def test_columns_may_be_learned_from_some_rows():
    frame = pd.DataFrame({"price": [1.0, None, 4.0], "brand": ["a", "b", "b"]})
    assert infer_columns(frame, rows=np.array([0, 2])) == infer_columns(frame.iloc[[0, 2]])


COLUMNS = [Number(name="price"), Boolean(name="new"), Category(name="brand", categories=("a", "b")), Date(name="day")]
RIGHT = {"price": [1.5, 2.0], "new": [True, False], "brand": ["a", "c"], "day": pd.to_datetime(["2024-01-01"] * 2)}
DAY = f"{pa.array(RIGHT['day'])[0].as_py()!r} in row 0."
BAD_VALUES = {
    "price": (RIGHT["day"], "numbers", DAY),
    "new": ([None, 0.5], "booleans: true and false, or 1 and 0", "0.5 in row 1."),
    "brand": (RIGHT["day"], "text, numbers or booleans", DAY),
    "day": ([20240101, 20240102], "dates as in ISO 8601, such as 2026-11-27", "20240101 in row 0."),
}


def test_values_of_another_kind_and_missing_columns_are_refused():
    for name, (values, expected, got) in BAD_VALUES.items():
        with pytest.raises(ValueError) as error:
            column_arrays(pd.DataFrame({**RIGHT, name: values}), COLUMNS)
        assert str(error.value) == f"column {name!r} must be {expected}, got {got}"
    for other, hint in {"Price": " Did you mean 'Price'?", "q": ""}.items():
        with pytest.raises(ValueError) as error:
            column_arrays(pd.DataFrame(RIGHT).rename(columns={"price": other}), COLUMNS)
        got = f"got the columns ['{other}', 'new', 'brand', 'day'].{hint}"
        assert str(error.value) == f"The table must have the column 'price', {got}"


@pytest.mark.parametrize("rows", [1, 70000])
def test_a_matrix_has_the_columns_of_its_table(rows):
    random = np.random.RandomState(0)
    matrix = random.randn(rows, 4).astype(np.float32)
    matrix[1:, 2] = np.nan
    found = columns_of_matrix(np.array_split(matrix, 3))
    expected = infer_columns(pd.DataFrame(matrix, columns=["1", "2", "3", "4"]))
    for one, other in zip(found, expected, strict=True):
        assert one.fill == pytest.approx(other.fill, rel=1e-6)
        assert dataclasses.replace(one, fill=0.0) == dataclasses.replace(other, fill=0.0)
    with pytest.raises(ValueError, match="^column '2' must have known values, got only missing ones.$"):
        columns_of_matrix([np.array([[1.0, np.nan]], np.float32)])


def test_invalid_columns_are_refused():
    for kind, arguments, message in [
        ("number", {"name": ""}, "`name` must be a string that is not empty, got ''."),
        ("number", {"has_missing": 1}, "`has_missing` must be True or False, got 1."),
        ("vector", {"scale": 0.0}, "`scale` must be a finite number > 0, got 0.0."),
        ("text", {"buckets": -1}, "`buckets` must be an integer >= 0, got -1."),
        ("id", {"categories": [""]}, "`categories` must be unique strings that are not empty, got ['']."),
    ]:
        with pytest.raises(ValueError) as error:
            KINDS[kind](**{"name": "x", **arguments})
        assert str(error.value) == message


# Kinds.


def test_a_match_of_vectors_is_their_product_in_their_units_and_their_cosine():
    columns = [Vector(name="a", length=2, scale=2.0), Vector(name="b", length=2, scale=5.0)]
    layer = TableFeatures(columns, matches=[("a", "b")])
    features = layer({"a": tf.constant([[3.0, 4.0]]), "b": tf.constant([[5.0, 12.0]])})
    product = 3.0 * 5.0 + 4.0 * 12.0
    np.testing.assert_allclose(features[0], [1.5, 2.0, 1.0, 2.4, product / 10.0, product / 65.0], rtol=1e-6)


@pytest.mark.parametrize("column", [Id(name="x", buckets=4), Set(name="x", buckets=4, length=1)])
def test_hashed_values_share_no_code_with_missing_and_unseen_ones(column):
    values = tf.constant([f"value{number}" for number in range(100)] + [""])
    codes = column.features(column.prepare(values), column.resource()).numpy().ravel()
    assert set(codes[:-1]) == {2.0, 3.0, 4.0, 5.0} and codes[-1] == 0.0
    assert column.codes == [1, 6]


def test_dates_in_text_are_dates_if_the_kind_says_so():
    days = ["2026-11-27", "", "2026-11-29T12:00:00", None]
    (column,) = infer_columns(pd.DataFrame({"day": days}), kinds={"day": "date"})
    features = TableFeatures([column])(column_arrays(pd.DataFrame({"day": days}), [column]))
    np.testing.assert_allclose(features, [[-1.25, 0.0], [0.0, 1.0], [1.25, 0.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="column 'day' must be dates as in ISO 8601, .*27 Nov"):
        infer_columns(pd.DataFrame({"day": ["27 Nov 2026"]}), kinds={"day": "date"})


def test_kinds_follow_from_values_and_names():
    cases = [(name, [7, 8, 9], "id") for name in ("id", "brand_id", "productId", "itemID", "SKU", "shop.id")]
    cases += [(name, [7, 8, 9], "number") for name in ("paid", "bid", "num_reviews", "idle", "id_count")]
    cases += [("brand_id", [7.0, None], "id"), ("brand_id", [7.5, 8.0], "number"), ("brand_id", [True], "boolean")]
    times = ("2026-11-27", "2026-11-27 08:30", "2026-11-27T08:30:00.123456789+02:00")
    cases += [("x", [time, None], "date") for time in times]
    cases += [("x", [text, "2026-11-27"], "category") for text in ("7", "27 Nov 2026", "2026", "20261127")]
    for name, values, kind in cases:
        assert infer_columns(pd.DataFrame({name: values}))[0].kind == kind, (name, values)

    # Times of a zone are in UTC.
    (column,) = infer_columns(pd.DataFrame({"x": ["1970-01-01T02:00:01+02:00", "1970-01-01T00:00:03Z", "1970-01-01"]}))
    raw = column_arrays(pd.DataFrame({"x": ["1970-01-01T02:00:01+02:00", "1970-01-01T00:00:03Z", ""]}), [column])["x"]
    assert raw.tolist() == [1, 3, column.missing_value]

    # Numbers are categories if the kind says so.
    frame = pd.DataFrame({"grade": [3.0, 1.0, None]})
    (column,) = infer_columns(frame, kinds={"grade": "category"})
    assert column.categories == ("1", "3")
    singles = pd.DataFrame({"x": np.float32([0.1, 0.7])})
    assert infer_columns(singles, kinds={"x": "category"})[0].categories == ("0.1", "0.7")
    assert column_arrays(frame, [column])["grade"].tolist() == [b"3", b"1", b""]


def test_the_order_of_the_queries_is_that_of_a_date_that_rises_or_falls_along_them():
    days, random = pd.date_range("2026-01-01", periods=40, freq="12h"), np.random.default_rng(0)
    frame = pd.DataFrame({"query": np.repeat(np.arange(40), 3), "label": 1, "price": 2.0, "day": days.repeat(3)})
    upwards, downwards = np.arange(40), np.arange(40)[::-1]
    texts = {column: frame["day"].dt.strftime(column) for column in ("%Y-%m-%d", "%d.%m.%Y")}
    some = frame["day"].where(random.random(120) < 0.8)  # some are missing
    shuffled = pd.Series(random.permutation(days).repeat(3))
    for values, kinds, expected in (
        (frame["day"], {}, upwards),
        (frame["day"][::-1].to_numpy(), {}, downwards),
        (some, {}, upwards),
        (texts["%Y-%m-%d"], {}, upwards),
        (texts["%Y-%m-%d"], {"day": "category"}, None),
        (texts["%d.%m.%Y"], {"day": "date:%d.%m.%Y"}, upwards),
        (texts["%d.%m.%Y"], {"day": "date"}, None),  # is refused where all rows are learned
        (shuffled, {}, None),
        (days[0], {}, None),
    ):
        found = time_order(data.from_table(frame.assign(day=values), query="query", label="label"), kinds)
        assert found is None if expected is None else found[0] == "day" and found[1].tolist() == expected.tolist()
    assert time_order(data.from_arrays(np.zeros([4, 2]), np.ones(4), np.arange(4)), {}) is None
