"""Ids have one meaning through every door: 7, 7.0 and "7" are one id, and the type of the training governs."""

import datetime
import decimal
import io
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from tfr_smooth import recommendation
from tfr_smooth.data.reading.ids import id_lists, read_ids
from tfr_smooth.recommendation import tables

BIG = 2**63 - 1
NOON = datetime.datetime(2026, 1, 5, 12)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([7, 7.0, np.int8(7), np.float32(7), decimal.Decimal("7.00")], [7] * 5),
        ([BIG, -(2**63)], [BIG, -(2**63)]),
        ([BIG + 1, 7], [str(BIG + 1), "7"]),
        (["7", 7.0, "007", b"x"], ["7", "7", "007", "x"]),
        (pd.array([7, 8], "Int64"), [7, 8]),
        (pd.Series([7.0, 8.0], index=[3, 4]), [7, 8]),
        (pd.Series([7, 8], dtype="category"), [7, 8]),
        (pl.Series(["a", "b"], dtype=pl.Categorical), ["a", "b"]),
        (pa.chunked_array([["a"], ["b"]]).dictionary_encode(), ["a", "b"]),
        (pa.array([NOON], pa.timestamp("ns")), ["2026-01-05 12:00:00"]),
        (np.array(["2026-01-05"], "datetime64[ns]"), ["2026-01-05"]),
        ([NOON, datetime.date(2026, 1, 5)], ["2026-01-05 12:00:00", "2026-01-05"]),
        ((value for value in (1, 2)), [1, 2]),
        ([], []),
    ],
)
def test_ids_are_integers_if_all_are_whole_numbers_and_else_text(ids, expected):
    assert read_ids("`ids`", ids).tolist() == expected


@pytest.mark.parametrize(
    ("is_text", "ids", "expected"),
    [
        (False, ["7", 7.0, "-8", "0"], [7, 7, -8, 0]),
        (True, [7, 7.0, decimal.Decimal(2**70), "007"], ["7", "7", str(2**70), "007"]),
        (False, [], []),
    ],
)
def test_the_type_of_the_training_governs(is_text, ids, expected):
    found = read_ids("`ids`", ids, is_text=is_text)
    assert found.tolist() == expected and found.dtype == (object if is_text else np.int64)


@pytest.mark.parametrize("value", [None, np.nan, pd.NA, pd.NaT, True, np.True_, 7.5, 2.0**53, np.inf, [7], {}])
@pytest.mark.parametrize("is_text", [None, False, True])
def test_what_is_no_id_is_refused_with_its_row(value, is_text):
    with pytest.raises(ValueError, match=r"^`ids` must be (integers|text).*, got .* in row 1\.$"):
        read_ids("`ids`", [7, value], is_text=is_text)


@pytest.mark.parametrize("value", ["007", "+7", "7.0", " 7", "", "x", str(BIG + 1), BIG + 1, "٧", NOON])
def test_what_is_no_integer_is_refused_where_ids_are_integers(value):
    with pytest.raises(ValueError, match=r"^`ids` must be integers of 64 bits, as the ids of the training are, got "):
        read_ids("`ids`", [7, value], is_text=False)


@pytest.mark.parametrize("ids", ["7", b"7", 7, {7: 1}, None])
def test_ids_are_in_a_list(ids):
    with pytest.raises(ValueError, match="^`ids` must be a list of ids, got "):
        read_ids("`ids`", ids)


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ([], [[]]),
        ([3, 4], [[3, 4]]),
        ({3}, [[3]]),
        (pd.Series([3, 4], index=[7, 8]), [[3, 4]]),
        (range(2), [[0, 1]]),
        ((value for value in [3]), [[3]]),
        (["ab", "c"], [["ab", "c"]]),
        ([[3], []], [[3], []]),
        (np.array([[3], [4]]), [[3], [4]]),
        ([{3}, pl.Series([4])], [[3], [4]]),
        (pa.array([[3], [4]]), [[3], [4]]),
        (pd.Series([[3], [4]]), [[3], [4]]),
    ],
)
def test_a_filter_is_one_list_or_one_per_user(lists, expected):
    assert id_lists("`exclude`", lists, 2) == expected


@pytest.mark.parametrize(
    ("lists", "got"),
    [
        ([[3]], "1 list"),
        ([[1], [2], [3]], "3 lists"),
        ([[3], None], "None beside lists"),
        ([3, [4]], "3 beside lists"),
        ("3", "'3'"),
        (3, "3"),
        ({3: 4}, "{3: 4}"),
    ],
)
def test_a_filter_of_another_form_is_refused(lists, got):
    message = "`exclude` must be one list of ids for all users, or one list for each of the 2 users"
    with pytest.raises(ValueError, match="^" + re.escape(f"{message}, got {got}.")):
        id_lists("`exclude`", lists, 2)


# Forms of a table.


def parquet_of(frame):
    file = io.BytesIO()
    frame.to_parquet(file)
    return parquet.read_table(file)


FORMS = {
    "pandas": lambda frame: frame,
    "floats": lambda frame: frame.astype({name: float for name, kind in frame.dtypes.items() if kind == np.int64}),
    "decimals": lambda frame: frame.map(lambda value: decimal.Decimal(value) if isinstance(value, int) else value),
    "nullable": lambda frame: frame.convert_dtypes(),
    "categories": lambda frame: frame.astype({name: "category" for name in ("user", "item") if name in frame}),
    "Polars": pl.from_pandas,
    "PyArrow": pa.Table.from_pandas,
    "CSV": lambda frame: pd.read_csv(io.StringIO(frame.to_csv(index=False))),
    "Parquet": parquet_of,
    "Python": lambda frame: {name: column.tolist() for name, column in frame.items()},
}
IDS = {
    "integers": (lambda number: 100_000_001 + 7 * number, lambda number: number),
    "text": (lambda number: f"user {number}", lambda number: f"{number:03} é"),
    "numbers as text": (lambda number: 10**20 + number, lambda number: 2**63 + number),
}


def log(kind):
    user, item = IDS[kind]
    rows = np.random.default_rng(0).permutation([(a, b) for a in range(12) for b in range(10) if (a + b) % 4])
    frame = pd.DataFrame({"user": [user(int(a)) for a, _ in rows], "item": [item(int(b)) for _, b in rows]})
    return frame.assign(time=pd.to_datetime("9999-01-01") + pd.to_timedelta(np.arange(len(rows)), "s"))


def catalog(kind):
    item = IDS[kind][1]
    columns = {"item": [item(number) for number in range(11)], "size": [number * 0.5 for number in range(11)]}
    return pd.DataFrame({**columns, "title": [f"a film of genre {number % 3}" for number in range(11)]})


@pytest.fixture(scope="module", params=IDS)
def known(request):
    """The kind of the ids, the interactions, a recommender of them with a table, and its recommendations."""
    kind = request.param
    found = recommendation.from_dataframe(log(kind), user="user", item="item", time="time")
    options = {"dim": 4, "softmax_epochs": 1, "epochs": 1, "verbose": False}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_STEPS", 20)
        fitted = recommendation.Recommender(**options).fit(found, items=catalog(kind))
    return kind, found, fitted, fitted.recommend(found.user_ids[:5], topn=3)


@pytest.mark.parametrize("form", FORMS)
def test_a_recommender_is_the_same_by_every_door(known, form):
    kind, interactions, fitted, expected = known
    if kind == "numbers as text" and form in ("Polars", "PyArrow", "nullable", "Parquet"):
        form = "pandas"  # These have no such integers.
    table, items = FORMS[form](log(kind)), FORMS[form](catalog(kind))
    found = recommendation.from_dataframe(table, user="user", item="item", time="time")
    for name, values in interactions.arrays().items():
        np.testing.assert_array_equal(found.arrays()[name], values)
    ids, features = zip(
        *(
            tables.read_all({"items": (each, "item")}, [found.item_ids], {}, {"items": fitted._columns["items"]})
            for each in (catalog(kind), items)
        ),
        strict=True,
    )
    np.testing.assert_array_equal(ids[1], ids[0])
    np.testing.assert_array_equal(features[1]["items"].values, features[0]["items"].values)
    # Of the table, with the first row of each user of `expected`.
    rows = [log(kind)["user"].astype(str).tolist().index(str(user)) for user in found.user_ids[:5]]
    take = getattr(table["user"], "take", None) or getattr(table["user"], "gather", None)
    users = take(rows) if take else [table["user"][row] for row in rows]
    top = fitted.recommend(users, topn=3)
    np.testing.assert_array_equal(top.items, expected.items)
    np.testing.assert_array_equal(top.scores, expected.scores)


def test_ids_of_another_type_are_those_of_the_training():
    frame = log("integers")
    found = recommendation.from_dataframe(frame, user="user", item="item", time="time")
    options = {"dim": 4, "softmax_epochs": 1, "loss": None, "verbose": False, "refit": False}
    fitted = recommendation.Recommender(**options).fit(found)
    users, items = found.user_ids[:2], found.item_ids[:3]
    expected = fitted.recommend(users, exclude=items, topn=3)
    for change in (str, float, decimal.Decimal):
        asked = [change(int(value)) for value in users]
        top = fitted.recommend(asked, exclude={change(int(value)) for value in items}, topn=3)
        np.testing.assert_array_equal(top.items, expected.items)
    new = pd.DataFrame({"user": [str(users[0]), "7"], "item": ["77", str(items[0])]})
    test = recommendation.from_dataframe(new[1:].assign(user=str(users[0]), item="0"), user="user", item="item")
    assert test.user_ids.dtype == object and test.renumbered(found.user_ids, found.item_ids).num_interactions == 1
    fitted.update(recommendation.from_dataframe(new.assign(time=NOON), user="user", item="item", time="time"))
    assert fitted.interactions_.user_ids.tolist() == [*found.user_ids.tolist(), 7]
    assert fitted.interactions_.item_ids.tolist() == [*found.item_ids.tolist(), 77]


def test_frames_of_different_types_share_their_ids():
    first, second = pd.DataFrame({"u": [7, 8], "i": [1, 1]}), pd.DataFrame({"u": ["7", "x"], "i": [2.0, 2.0]})
    found = recommendation.from_dataframe(first, second, user="u", item="i")
    assert found[0].user_ids.tolist() == ["7", "8", "x"] and found[0].item_ids.tolist() == [1, 2]
    fixed = recommendation.from_dataframe(second[:1], user="u", item="i", users=pd.Series([8, 7]), items=["1", "2"])
    assert fixed.user_ids.tolist() == [8, 7] and fixed.dense([1]).tolist() == [[False, True]]
