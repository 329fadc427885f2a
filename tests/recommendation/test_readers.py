"""Readers of interactions: shared numbers of users and items, merged pairs, and errors with their line."""

import gzip

import numpy as np
import pandas as pd

from tests.helpers import assert_error
from tfr_smooth import recommendation


def write(folder, name, text):
    path = folder / name
    (gzip.open if name.endswith(".gz") else open)(path, "wb").write(text.encode() if isinstance(text, str) else text)
    return path


def pairs(interactions):
    """Returns the pairs of ids."""
    coo = interactions.matrix.tocoo()
    users, items = interactions.user_ids[coo.row], interactions.item_ids[coo.col]
    return set(zip(users.tolist(), items.tolist(), strict=True))


# Files with the items of each user.


def test_parts_share_the_numbers_of_users_and_items(tmp_path):
    train, test = write(tmp_path, "train.txt", "2 10 7\n0 7\n"), write(tmp_path, "test.txt.gz", "0 9\n5 10")
    train, test = recommendation.read_interactions(train, test)
    assert train.user_ids.tolist() == test.user_ids.tolist() == [0, 2, 5]
    assert train.item_ids.tolist() == test.item_ids.tolist() == [7, 9, 10]
    assert pairs(train) == {(2, 10), (2, 7), (0, 7)} and pairs(test) == {(0, 9), (5, 10)}
    assert (train.num_users, train.num_items, train.num_interactions) == (3, 3, 3)


def test_a_part_may_have_several_files_and_a_user_several_lines(tmp_path):
    write(tmp_path, "part-1", "0 1 2\n\n1 2\r\n"), write(tmp_path, "part-2", "\ufeff0 3\n1\t3  1 \n2\n")
    found = recommendation.read_interactions(tmp_path / "part-*")
    assert pairs(found) == {(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)}
    assert found.user_ids.tolist() == [0, 1, 2]
    assert str(found).endswith("; 1 user without items")


def test_ids_that_are_not_all_integers_remain_text_and_duplicate_pairs_are_counted(tmp_path):
    found = recommendation.read_interactions(write(tmp_path, "lists", "9 é 10 007 7\n10 é"))
    assert found.user_ids.tolist() == [9, 10] and found.user_ids.dtype == np.int64
    assert found.item_ids.tolist() == ["007", "10", "7", "é"]
    found = recommendation.read_interactions(write(tmp_path, "lists", "0 1 1 2\n0 1\n"))
    assert (found.num_interactions, found.duplicates) == (2, 2)
    assert str(found) == "1 user, 2 items, 2 interactions (density 100%); 2 duplicates merged"


def test_missing_empty_damaged_and_binary_files_are_refused(tmp_path):
    read, other = recommendation.read_interactions, write(tmp_path, "train", "1 2\n3 4 5 6\n")
    test = write(tmp_path, "test", "7 2\n3 8 5 6\n")
    assert_error(f"{test}: user 3 and item 5 are also in {other} (2 pairs in both)", read, other, test)
    for text in ("", "7\n8\n"):
        path = write(tmp_path, "empty", text)
        assert_error(f"{path}: no pairs of a user and an item", read, other, path)
    assert_error(f"`files` must match files, got '{tmp_path / 'none'}'", read, tmp_path / "none")
    assert_error("`files` must contain at least one file, got none", read)
    damaged = tmp_path / "lists.gz"
    damaged.write_bytes(gzip.compress(b"0 1\n" * 100)[:-9])
    assert_error(": truncated or damaged gzip data", read, damaged)
    assert_error("bytes:2: 'utf-8' codec can't decode byte 0xff", read, write(tmp_path, "bytes", b"0 1\n1 \xff\n"))


def test_the_items_of_a_user_keep_their_order_over_all_lines(tmp_path):
    found = recommendation.read_interactions(write(tmp_path, "a", "0 3 1 3\n1 2\n0 2 3\n"))
    items, _, starts = found.sequences()
    assert (found.item_ids[items].tolist(), starts.tolist()) == ([3, 1, 3, 2, 3, 2], [0, 5, 6])
    assert found.times is None and found.duplicates == 2
    train, held = recommendation.hold_out(found, items=1, by="time")
    assert pairs(held) == {(0, 3)} and train.item_ids[train.sequences()[0]].tolist() == [1, 2, 2]


def test_files_of_ratings_are_refused_and_lists_of_equal_lengths_are_read(tmp_path):
    for text, form in (
        ("1 10 5\n1 11 3\n2 10 4\n", "user item rating"),
        ("1 10 5 881250949\n1 11 3 891717742\n", "user item rating timestamp"),
    ):
        path = write(tmp_path, "u.data", text)
        message = f"{path}: users have several lines, all of the form `{form}`: read these with `from_dataframe`, or"
        assert_error(message, recommendation.read_interactions, path)
    for text in ("1 10 5\n2 10 4\n", "1 10\n1 11\n", "1 2 3\n1 4\n"):
        found = recommendation.read_interactions(write(tmp_path, "lists", text))
        assert found.num_interactions == len(text.split()) - text.count("\n")


# DataFrames.


def frame(**columns):
    names = {"who": ["bob", "ann", "ann"], "what": [7, 9, 7], "stars": [5, 1, 4], "when": [30, 20, 10]}
    return pd.DataFrame({**names, **columns})


_NANOSECONDS = 1_700_000_000_000_000_000 + np.array([30, 10, 20, 10])


def test_times_are_exact_and_equal_ones_in_the_order_of_the_rows():
    for times, expected in (
        ([5, 5, 5, 5], [3, 1, 0, 2]),
        (_NANOSECONDS, [1, 2, 0, 3]),
        (pd.array(_NANOSECONDS, "Int64"), [1, 2, 0, 3]),
        (pd.to_datetime(_NANOSECONDS, utc=True).tz_convert("Asia/Tokyo"), [1, 2, 0, 3]),
        ([f"9999-12-31 23:59:{second}" for second in (30, 10, 20, 10)], [1, 2, 0, 3]),
        (np.array(["9999-12-31", "0001-01-01", "9999-01-01", "0001-01-01"], "datetime64[s]"), [1, 2, 0, 3]),
    ):
        table = pd.DataFrame({"who": 1, "what": [3, 1, 0, 2], "when": times})
        found = recommendation.from_dataframe(table, user="who", item="what", time="when")
        assert found.sequences()[0].tolist() == expected
        assert recommendation.hold_out(found, items=1, by="time")[1].matrix.indices.tolist() == expected[-1:]
        assert found.times.dtype == np.float64


def test_frames_share_their_numbers_and_may_have_timestamps_and_categories():
    later = frame(who=pd.Categorical(["cid", "cid", "ann"]), what=[7, 8, 8])
    later["when"] = pd.to_datetime(["1970-01-01T00:00:01.5", "1970-01-02", "1970-01-01"], format="ISO8601")
    first, second = recommendation.from_dataframe(frame(), later, user="who", item="what", time="when")
    assert first.user_ids.tolist() == second.user_ids.tolist() == ["ann", "bob", "cid"]
    assert pairs(second) == {("cid", 7), ("cid", 8), ("ann", 8)}
    assert second.times.tolist() == [0.0, 1.5, 86400.0]


def test_bad_frames_are_refused_with_their_row():
    for columns, options, message in (
        ({"what": [7, None, 8]}, {}, "frame: column 'what' must be known values, got None in row 1."),
        ({"what": [7, 8, 8.5]}, {}, "frame: column 'what' must be integers or text, got 8.5 in row 2."),
        ({"what": [[7], [8], []]}, {}, "frame: column 'what' must be whole numbers or text, got the type list"),
        ({"stars": [3, 3, -1]}, {"weight": "stars"}, "frame: column 'stars' must be finite numbers > 0, got -1 in row"),
        ({"stars": list("abc")}, {"weight": "stars"}, "frame: column 'stars' must be numbers, got"),
        ({"when": ["2026-01-05", "soon", ""]}, {"time": "when"}, "frame: column 'when' must be dates as in ISO 8601"),
        ({"when": ["2026-01-05", "", ""]}, {"time": "when"}, "frame: column 'when' must be known values, got None in"),
        ({}, {"time": "date"}, "frame: no column 'date' among ['who', 'what', 'stars', 'when']"),
    ):
        assert_error(message, recommendation.from_dataframe, frame(**columns), user="who", item="what", **options)
    read, frames = recommendation.from_dataframe, (frame(), frame(what=[8, 8, 9]))
    assert_error("frame 1: user 'ann' and item 9 are also in frame 0 ", read, *frames, user="who", item="what")
    assert_error("`frames` must contain at least one table, got none", read, user="who", item="what")
