"""Ids have one meaning through every door: 7, 7.0 and "7" are one id, and the type of the training governs."""

import datetime
import decimal
import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.helpers import assert_error
from tfr_smooth import recommendation
from tfr_smooth.data.reading.ids import id_lists, read_ids
from tfr_smooth.recommendation import tables

BIG = 2**63 - 1
NOON = datetime.datetime(2026, 1, 5, 12)


def test_ids_are_integers_if_all_are_whole_numbers_and_else_text():
    for ids, expected in (
        ([7, 7.0, np.int8(7), np.float32(7), decimal.Decimal("7.00")], [7] * 5),
        ([BIG + 1, 7], [str(BIG + 1), "7"]),
        (["7", 7.0, "007", b"x"], ["7", "7", "007", "x"]),
        (pd.Series([7.0, 8.0], index=[3, 4], dtype="category"), [7, 8]),
        (pl.Series(["a", "b"], dtype=pl.Categorical), ["a", "b"]),
        (pa.chunked_array([["a"], ["b"]]).dictionary_encode(), ["a", "b"]),
        (pa.array([NOON], pa.timestamp("ns")), ["2026-01-05 12:00:00"]),
        ([NOON, datetime.date(2026, 1, 5)], ["2026-01-05 12:00:00", "2026-01-05"]),
        ((value for value in (1, 2)), [1, 2]),
        ([], []),
    ):
        assert read_ids("`ids`", ids).tolist() == expected


def test_the_type_of_the_training_governs():
    found = read_ids("`ids`", ["7", 7.0, "-8", "0"], is_text=False)
    assert found.tolist() == [7, 7, -8, 0] and found.dtype == np.int64
    found = read_ids("`ids`", [7, 7.0, decimal.Decimal(2**70), "007"], is_text=True)
    assert found.tolist() == ["7", "7", str(2**70), "007"] and found.dtype == object


@pytest.mark.parametrize("is_text", [None, False, True])
def test_what_is_no_id_is_refused_with_its_row(is_text):
    for value in (None, np.nan, pd.NA, pd.NaT, True, np.True_, 7.5, 2.0**53, np.inf, [7], {}):
        with pytest.raises(ValueError, match=r"^`ids` must be (integers|text).*, got .* in row 1\.$"):
            read_ids("`ids`", [7, value], is_text=is_text)


def test_what_is_no_integer_or_no_list_is_refused():
    message = "`ids` must be integers of 64 bits, as the ids of the training are, got "
    for value in ("007", "+7", "7.0", " 7", "", "x", str(BIG + 1), BIG + 1, "٧", NOON):
        assert_error(message, read_ids, "`ids`", [7, value], is_text=False)
    for ids in ("7", b"7", 7, {7: 1}, None):
        assert_error("`ids` must be a list of ids, got ", read_ids, "`ids`", ids)


def test_a_filter_is_one_list_or_one_per_user():
    for one in ([3, 4], (3, 4), pd.Series([3, 4], index=[7, 8])):
        assert id_lists("`exclude`", one, 2) == [[3, 4]]
    for two in ([[3], [4]], [{3}, pl.Series([4])], pa.array([[3], [4]]), pd.Series([[3], [4]])):
        assert id_lists("`exclude`", two, 2) == [[3], [4]]
    assert id_lists("`exclude`", [], 2) == [[]] and id_lists("`exclude`", ["ab", "c"], 2) == [["ab", "c"]]
    for lists, message in (
        ([[3]], "one list of ids for all users, or one list for each of the 2 users, got 1 list"),
        ([[3], None], "a list of ids, got None"),
        ([3, [4]], "a list of ids, got 3"),
        ("3", "a list of ids, got '3'"),
        ({3: 4}, "a list of ids, got {3: 4}"),
    ):
        assert_error(f"`exclude` must be {message}.", id_lists, "`exclude`", lists, 2)


# Forms of a table.


FORMS = {
    "pandas": lambda frame: frame,
    "floats": lambda frame: frame.astype({name: float for name, kind in frame.dtypes.items() if kind == np.int64}),
    "decimals": lambda frame: frame.map(lambda value: decimal.Decimal(value) if isinstance(value, int) else value),
    "nullable": lambda frame: frame.convert_dtypes(),
    "categories": lambda frame: frame.astype({name: "category" for name in ("user", "item") if name in frame}),
    "Polars": pl.from_pandas,
    "PyArrow": pa.Table.from_pandas,
    "CSV": lambda frame: pd.read_csv(io.StringIO(frame.to_csv(index=False))),
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


def interactions_of(table):
    return recommendation.from_dataframe(table, user="user", item="item", time="time")


@pytest.mark.parametrize("kind", IDS)
def test_interactions_and_tables_are_the_same_in_every_form(kind):
    expected = interactions_of(log(kind))
    ids, first = tables.read_table("items", catalog(kind), "item", expected.item_ids, {}, None)
    # Some have no integers of more than 64 bits.
    forms = FORMS.keys() - (["Polars", "PyArrow", "nullable"] if kind == "numbers as text" else [])
    for form in sorted(forms):
        found = interactions_of(FORMS[form](log(kind))).arrays()
        for name, values in expected.arrays().items():
            np.testing.assert_array_equal(found[name], values, err_msg=form)
        table = FORMS[form](catalog(kind))
        again, second = tables.read_table("items", table, "item", expected.item_ids, {}, first.columns)
        np.testing.assert_array_equal(again, ids, err_msg=form)
        np.testing.assert_array_equal(second.values, first.values, err_msg=form)


@pytest.mark.slow
def test_ids_of_another_type_are_those_of_the_training():
    found = interactions_of(log("integers"))
    options = {"dim": 4, "softmax_epochs": 1, "loss": None, "verbose": False, "refit": False}
    fitted = recommendation.Recommender(**options).fit(found)
    users, items = found.user_ids[:2], found.item_ids[:3]
    expected = fitted.recommend(users, exclude=items, topn=3)
    forms = {name: form(pd.DataFrame({"user": users.tolist()}))["user"] for name, form in FORMS.items()}
    for asked in (*forms.values(), list(map(str, users)), list(map(decimal.Decimal, users.tolist()))):
        top = fitted.recommend(asked, exclude=set(map(str, items)), topn=3)
        np.testing.assert_array_equal(top.items, expected.items)
    new = pd.DataFrame({"user": [str(users[0]), "7"], "item": ["77", str(items[0])]})
    test = recommendation.from_dataframe(new[1:].assign(user=str(users[0]), item="0"), user="user", item="item")
    assert test.user_ids.dtype == object and test.renumbered(found.user_ids, found.item_ids).num_interactions == 1
    fitted.update(interactions_of(new.assign(time=NOON)))
    assert fitted.interactions_.user_ids.tolist() == [*found.user_ids.tolist(), 7]
    assert fitted.interactions_.item_ids.tolist() == [*found.item_ids.tolist(), 77]


def test_frames_of_different_types_share_their_ids():
    first, second = pd.DataFrame({"u": [7, 8], "i": [1, 1]}), pd.DataFrame({"u": ["7", "x"], "i": [2.0, 2.0]})
    found = recommendation.from_dataframe(first, second, user="u", item="i")
    assert found[0].user_ids.tolist() == ["7", "8", "x"] and found[0].item_ids.tolist() == [1, 2]
    whole = recommendation.from_dataframe(second[:1], user="u", item="i")
    fixed = whole.renumbered(pd.Series(["8", "7"]), ["1", 2])
    assert fixed.user_ids.tolist() == ["8", "7"] and fixed.dense([1]).tolist() == [[False, True]]
