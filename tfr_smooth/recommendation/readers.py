"""Readers of interactions: files with the items of each user, and DataFrames."""

from __future__ import annotations

import array
import bisect
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfr_smooth import _arguments
from tfr_smooth.data.column_values import NUMBERS, TEXTS, value_type
from tfr_smooth.data.reading import checks
from tfr_smooth.data.reading.checks import Where
from tfr_smooth.data.reading.ids import plain_array
from tfr_smooth.data.reading.sources import of_files
from tfr_smooth.data.reading.text_files import FilePattern, expand_paths, numbered_lines
from tfr_smooth.data.reading.value_types import parsed_dates
from tfr_smooth.recommendation.events import wrong_numbers
from tfr_smooth.recommendation.interaction_sources import IdTable, Source, joined

_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def read_lists(*files: FilePattern, users: Iterable[Any] | None = None, items: Iterable[Any] | None = None) -> Any:
    r"""Reads files with one line per user: `user item item ...`, the form of LightGCN's data sets and of sequences.

    Fields are separated by spaces or tabs. A user may have several lines, or a line without items. Empty lines are
    skipped. The order of a user's items, over all lines, is that of sequences and of `hold_out(by="time")`; there are
    no times. Ids that are all integers of 64 bits, without leading zeros, become integers; otherwise, ids are strings.

    Args:
      *files: The parts of a data set, such as a training and a test file, which share the numbers of users and items.
        Each is a path, a pattern or a list of these; files may be compressed, as for `data.read_letor`.
      users: The ids of all users, in the order of their numbers. None: the ids in the files, ascending.
      items: The ids of all items, in the order of their numbers. None: the ids in the files, ascending.

    Returns:
      The interactions, or a tuple of those of each part. A part contains the users and items of all parts.

    Raises:
      ValueError: If a file has no pairs or is malformed, an id is not in `users` or `items`, or a pair is in two parts
        (`path:line: problem`); or if all lines of a part have 3 fields or all have 4, and users have several lines, as
        in files of `user item rating timestamp`.

    Linear time; memory is that of the interactions.

    Example:
      >>> import pathlib, tempfile
      >>> from tfr_smooth import recommendation
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> _ = (folder / "train.txt").write_text("0 10 12\n1 10\n"), (folder / "test.txt").write_text("0 11\n")
      >>> train, test = recommendation.read_lists(folder / "train.txt", folder / "test.txt")
      >>> print(train)
      2 users, 3 items, 3 interactions (density 50%); 1 item without users
      >>> test.item_ids[test.matrix.indices].tolist()
      [11]
    """
    if not files:
        raise ValueError("`files` must contain at least one file, got none.")
    tables = IdTable("users", users, from_text=True), IdTable("items", items, from_text=True)
    return joined([_file_pairs(expand_paths(part, "files"), *tables) for part in files], *tables)


def from_dataframe(
    *frames: Any,
    user: str,
    item: str,
    rating: str | None = None,
    time: str | None = None,
    weight: str | None = None,
    least_rating: float | None = None,
    users: Iterable[Any] | None = None,
    items: Iterable[Any] | None = None,
) -> Any:
    """Returns the interactions of DataFrames with one row per event.

    Several rows of the same user and item are one interaction, at the latest of their times and with the sum of their
    weights. With times, sequences have all of them.

    Args:
      *frames: The parts of a data set, such as a training and a test frame, which share the numbers of users and items:
        tables of pandas, Polars, PyArrow or DuckDB, or with the Arrow PyCapsule interface, or paths of files.
      user: The column of the users' ids: whole numbers of any type, text or dates. Ids become integers if all are
        numbers of 64 bits, in all frames; otherwise, they are text.
      item: The column of the items' ids, in the same form.
      rating: The column of ratings, used only with `least_rating`.
      time: The column of times, numbers or dates, also in text as in ISO 8601. Equal times are in the order of the
        rows. None: no times, and no order.
      weight: The column of weights > 0; see `Interactions`. None: no weights.
      least_rating: The lowest rating of an interaction; pairs with a lower one are dropped. None keeps all pairs.
      users: As for `read_lists`.
      items: As for `read_lists`.

    Returns:
      The interactions, or a tuple of those of each part.

    Raises:
      ValueError: If a column is missing or has invalid values, a frame has no pairs, an id is not in `users` or
        `items`, or a pair is in two parts. The message names the frame and the row.

    Example:
      >>> import pandas as pd
      >>> from tfr_smooth import recommendation
      >>> frame = pd.DataFrame({"who": [7, 7, 9], "what": ["up", "up", "heat"]})
      >>> print(recommendation.from_dataframe(frame, user="who", item="what"))
      2 users, 2 items, 2 interactions (density 50%); 1 duplicate merged
    """
    if not frames:
        raise ValueError("`frames` must contain at least one table, got none.")
    if least_rating is not None:
        _arguments.real("least_rating", least_rating)
        if rating is None:
            raise ValueError(f"`least_rating` must be None without `rating`, got {least_rating:g}.")
    tables = IdTable("users", users, from_text=False), IdTable("items", items, from_text=False)
    sources = []
    for number, frame in enumerate(frames):
        name = "frame" if len(frames) == 1 else f"frame {number}"
        columns = (user, item), rating, (time, weight)
        sources.append(_frame_pairs(name, checks.as_arrow(of_files(frame)), *columns, least_rating, tables))
    return joined(sources, *tables)


def _file_pairs(paths: Sequence[str], users: IdTable, items: IdTable) -> Source:
    """Reads the files of one part."""
    # Arrays of numbers: lists of Python objects would take several times the memory.
    users_of, items_of, lines = array.array("q"), array.array("q"), array.array("q")
    starts: list[int] = []
    lengths: set[int] = set()
    num_lines = 0
    for path in paths:
        starts.append(len(lines))
        for number, line in numbered_lines(path):
            try:
                fields = line.decode().split()
                if not fields:
                    continue
                user = users.number(fields[0])
                items_of.extend(map(items.number, fields[1:]))
            except ValueError as error:
                raise ValueError(f"{path}:{number}: {error}") from None
            count = len(fields) - 1
            users_of.extend([user] * count)
            lines.extend([number] * count)
            lengths.add(count)
            num_lines += 1

    def line_of(event: int) -> str:
        return f"{paths[bisect.bisect(starts, event) - 1]}:{lines[event]}"

    user_numbers, item_numbers = (np.frombuffer(numbers, np.int64) for numbers in (users_of, items_of))
    if lengths in ({2}, {3}) and num_lines > len(np.unique(user_numbers)):
        form = "`user item rating`" if lengths == {2} else "`user item rating timestamp`"
        way_out = "read these with `from_dataframe`, or put all items of a user on one line"
        raise ValueError(f"{paths[0]}: users have several lines, all of the form {form}: {way_out}")
    return Source(paths[0], user_numbers, item_numbers, None, None, True, 0, line_of)


def _frame_pairs(
    name: str,
    frame: pa.Table,
    ids: tuple[str, str],
    rating: str | None,
    values: tuple[str | None, str | None],
    least_rating: float | None,
    tables: tuple[IdTable, IdTable],
) -> Source:
    """Returns the events of the rows of a DataFrame; `name` is that of the frame in messages."""
    rows = np.arange(len(frame))
    if least_rating is not None and rating is not None:
        rows = np.flatnonzero(_numbers(name, frame, rating, rows) >= least_rating)
    dropped = len(frame) - len(rows)
    users, items = (_ids(name, frame, column, rows, table) for column, table in zip(ids, tables, strict=True))
    time, weight = values
    weights = None if weight is None else _numbers(name, frame, weight, rows, is_weight=True)
    times = None
    if time is not None:
        exact, times = _times(name, frame, time, rows)
        # Integers, such as nanoseconds, may be equal as float64.
        order = np.argsort(exact, kind="stable")
        rows, users, items, times = rows[order], users[order], items[order], times[order]
        weights = None if weights is None else weights[order]
    return Source(name, users, items, times, weights, False, dropped, lambda event: f"{name}, row {rows[event]}")


def _column(name: str, frame: pa.Table, column: str) -> tuple[Where, Any]:
    """Returns the known values of a column, and its name for messages."""
    if column not in frame.column_names:
        raise ValueError(f"{name}: no column {column!r} among {frame.column_names}")
    where, values = Where(f"{name}: column {column!r}"), plain_array(frame[column])
    checks.refuse_where(pc.is_null(values, nan_is_null=True), where, "known values", values)
    return where, values


def _numbers(name: str, frame: pa.Table, column: str, rows: np.ndarray, *, is_weight: bool = False) -> np.ndarray:
    """Returns the numbers of rows, integers or float64; weights are > 0."""
    where, values = _column(name, frame, column)
    if value_type(values.type) not in NUMBERS:
        raise ValueError(f"{where} must be numbers, got the type {values.type}.")
    numbers = values if pa.types.is_integer(values.type) else values.cast(pa.float64())
    numbers = numbers.to_numpy(zero_copy_only=False)[rows]
    for place in wrong_numbers(numbers, is_weight)[:1]:
        row = int(rows[place])
        checks.refuse(where, "finite numbers" + " > 0" * is_weight, values[row], row)
    return numbers


def _times(name: str, frame: pa.Table, column: str, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the times of rows, exact for their order, and as float64: seconds of dates, and numbers as they are."""
    where, values = _column(name, frame, column)
    if value_type(values.type) in TEXTS:
        values = parsed_dates(where, values)
        checks.refuse_where(pc.is_null(values), where, "known values", values)
    if value_type(values.type) != "date":
        numbers = _numbers(name, frame, column, rows)
        return numbers, numbers.astype(np.float64)
    # In the unit of the type: nanoseconds have no far years.
    unit = "s" if pa.types.is_date32(values.type) else values.type.unit
    exact = values.cast(pa.timestamp(unit)).cast(pa.int64()).to_numpy(zero_copy_only=False)[rows]
    return exact, exact / _PER_SECOND[unit]


def _ids(name: str, frame: pa.Table, column: str, rows: np.ndarray, table: IdTable) -> np.ndarray:
    """Returns the numbers of the ids of rows."""
    where, values = _column(name, frame, column)
    values = checks.id_text(where, values) if value_type(values.type) == "date" else values
    if value_type(values.type) not in (*NUMBERS, *TEXTS):
        raise ValueError(f"{where} must be whole numbers or text, got the type {values.type}.")
    codes, numbers = values.take(pa.array(rows)).dictionary_encode(), []
    for code, value in enumerate(codes.dictionary.to_pylist()):
        try:
            numbers.append(table.number(value))
        except ValueError as error:
            raise ValueError(f"{name}, row {rows[pc.index(codes.indices, code).as_py()]}: {error}") from None
    return np.array(numbers, np.int64)[codes.indices.to_numpy()]
