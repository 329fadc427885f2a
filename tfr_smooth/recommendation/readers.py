"""Readers of interactions: files with the items of each user, and DataFrames."""

from __future__ import annotations

import array
import contextlib
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfr_smooth.data.column_values import NUMBERS, TEXTS, value_type
from tfr_smooth.data.reading import checks
from tfr_smooth.data.reading.ids import as_integer, checked_ids, named_pair, plain_array, read_ids
from tfr_smooth.data.reading.sources import of_files
from tfr_smooth.data.reading.text_files import FilePattern, expand_paths, numbered_lines
from tfr_smooth.data.reading.value_types import parsed_dates
from tfr_smooth.recommendation.interactions import counted, from_events, wrong_numbers

_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def read_interactions(*files: FilePattern) -> Any:
    r"""Reads files with one line per user: `user item item ...`, the form of LightGCN's data sets and of sequences.

    Fields are separated by spaces or tabs. A user may have several lines, or a line without items. Empty lines are
    skipped. The order of a user's items, over all lines, is that of sequences and of `hold_out(by="time")`; there are
    no times. Ids that are all integers of 64 bits, without leading zeros, become integers; otherwise, ids are strings.

    Args:
      *files: The parts of a data set, such as a training and a test file, which share the numbers of users and items.
        Each is a path, a pattern or a list of these; files may be compressed, as for `data.read_letor`.

    Returns:
      The interactions, or a tuple of those of each part. A part contains the users and items of all parts, in ascending
      order of the ids.

    Raises:
      ValueError: If a file has no pairs or is malformed (`path:line: problem`), or a pair is in two parts; or if all
        lines of a part have 3 fields or all have 4, and users have several lines, as in files of `user item rating
        timestamp`.

    Linear time; memory is that of the interactions.

    Example:
      >>> import pathlib, tempfile
      >>> from tfr_smooth import recommendation
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> _ = (folder / "train.txt").write_text("0 10 12\n1 10\n"), (folder / "test.txt").write_text("0 11\n")
      >>> train, test = recommendation.read_interactions(folder / "train.txt", folder / "test.txt")
      >>> print(train)
      2 users, 3 items, 3 interactions (density 50%); 1 item without users
      >>> test.item_ids[test.matrix.indices].tolist()
      [11]
    """
    if not files:
        raise ValueError("`files` must contain at least one file, got none.")
    return _joined([_file_events(expand_paths(part, "files")) for part in files])


def from_dataframe(
    *frames: Any,
    user: str,
    item: str,
    time: str | None = None,
    weight: str | None = None,
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
      time: The column of times, numbers or dates, also in text as in ISO 8601. Equal times are in the order of the
        rows. None: no times, and no order.
      weight: The column of weights > 0; see `Interactions`. None: no weights.

    Returns:
      The interactions, or a tuple of those of each part, as from `read_interactions`.

    Raises:
      ValueError: If a column is missing or has invalid values, whose row the message names, a frame has no pairs, or a
        pair is in two parts.

    Example:
      >>> import pandas as pd
      >>> from tfr_smooth import recommendation
      >>> frame = pd.DataFrame({"who": [7, 7, 9], "what": ["up", "up", "heat"]})
      >>> print(recommendation.from_dataframe(frame, user="who", item="what"))
      2 users, 2 items, 2 interactions (density 50%); 1 duplicate merged
    """
    if not frames:
        raise ValueError("`frames` must contain at least one table, got none.")
    names = ["frame"] if len(frames) == 1 else [f"frame {number}" for number in range(len(frames))]
    columns = user, item, time, weight
    return _joined([_frame_events(name, frame, *columns) for name, frame in zip(names, frames, strict=True)])


class _Events(NamedTuple):
    """The events of a source in their order.

    Attributes:
      name: The source, for messages.
      users: The place of each event among the ids of users, int64 [events], and these.
      items: The same of items.
      values: The "times" and "weights" of the events, float64 [events], if they have some.
      ordered: Whether the events of each user are in order of time.
    """

    name: str
    users: tuple[np.ndarray, list[Any]]
    items: tuple[np.ndarray, list[Any]]
    values: dict[str, np.ndarray]
    ordered: bool


def _joined(sources: Sequence[_Events]) -> Any:
    """Returns the interactions of a source, or of each of several sources, which must be disjoint."""
    for source in sources:
        if len(source.items[0]) == 0:
            raise ValueError(f"{source.name}: no pairs of a user and an item")
    user_ids, users = _numbered("users", [source.users for source in sources], sources[0].ordered)
    item_ids, items = _numbered("items", [source.items for source in sources], sources[0].ordered)
    parts = []
    for source, of_users, of_items in zip(sources, users, items, strict=True):
        table = {"users": of_users, "items": of_items, **source.values}
        parts.append(from_events(table, user_ids, item_ids, ordered=source.ordered))
    for a, b in itertools.combinations(range(len(parts)), 2):
        both = parts[a].matrix.multiply(parts[b].matrix).tocoo()
        if both.nnz:
            pair = named_pair(user_ids, item_ids, int(both.row[0]), int(both.col[0]))
            found = f"{pair} are also in {sources[a].name} ({counted(both.nnz, 'pair')} in both)"
            raise ValueError(f"{sources[b].name}: {found}")
    return tuple(parts) if len(parts) > 1 else parts[0]


def _numbered(name: str, parts: Sequence[tuple[Any, list[Any]]], of_files: bool) -> tuple[np.ndarray, list[np.ndarray]]:
    """Returns the ids of all parts, ascending, and their places for each event of the parts."""
    given = [value for _, ids in parts for value in ids]
    # All ids of files are text, also integers.
    ids = read_ids(f"`{name}`", given, is_text=None in map(as_integer, given) if of_files else None)
    unique, places = np.unique(ids, return_inverse=True)
    ends = np.cumsum([len(own) for _, own in parts])
    own_places = np.split(places, ends[:-1])
    return checked_ids(name, unique, None), [own[events] for own, (events, _) in zip(own_places, parts, strict=True)]


def _file_events(paths: Sequence[str]) -> _Events:
    """Reads the files of one part."""
    # Arrays of numbers: lists of Python objects would take several times the memory.
    users, items = array.array("q"), array.array("q")
    known: tuple[dict[str, int], dict[str, int]] = {}, {}
    lengths: set[int] = set()
    num_lines = 0
    for path in paths:
        for number, line in numbered_lines(path):
            try:
                fields = line.decode().split()
            except ValueError as error:
                raise ValueError(f"{path}:{number}: {error}") from None
            if fields:
                user, count = known[0].setdefault(fields[0], len(known[0])), len(fields) - 1
                items.extend(known[1].setdefault(item, len(known[1])) for item in fields[1:])
                users.extend([user] * count)
                lengths.add(count)
                num_lines += 1

    if lengths in ({2}, {3}) and num_lines > len(known[0]):
        form = "`user item rating`" if lengths == {2} else "`user item rating timestamp`"
        way_out = "read these with `from_dataframe`, or put all items of a user on one line"
        raise ValueError(f"{paths[0]}: users have several lines, all of the form {form}: {way_out}")
    user_of, item_of = (np.frombuffer(each, np.int64) for each in (users, items))
    return _Events(paths[0], (user_of, list(known[0])), (item_of, list(known[1])), {}, True)


def _frame_events(name: str, given: Any, user: str, item: str, time: str | None, weight: str | None) -> _Events:
    """Returns the events of the rows of a DataFrame, in order of time; `name` is that of the frame in messages."""
    frame = checks.as_arrow(of_files(given))
    users, items = (_ids(*_column(name, frame, column)) for column in (user, item))
    values = {}
    if weight is not None:
        values["weights"] = _numbers(*_column(name, frame, weight), is_weight=True).astype(np.float64)
    if time is not None:
        exact, values["times"] = _times(*_column(name, frame, time))
        # Integers, such as nanoseconds, may be equal as float64.
        order = np.argsort(exact, kind="stable")
        users, items = ((places[order], ids) for places, ids in (users, items))
        values = {column: numbers[order] for column, numbers in values.items()}
    return _Events(name, users, items, values, ordered=False)


def _column(name: str, frame: pa.Table, column: str) -> tuple[checks.Where, Any]:
    """Returns the known values of a column, and its name for messages."""
    if column not in frame.column_names:
        raise ValueError(f"{name}: no column {column!r} among {frame.column_names}")
    where, values = checks.Where(f"{name}: column {column!r}"), plain_array(frame[column])
    checks.refuse_where(pc.is_null(values, nan_is_null=True), where, "known values", values)
    return where, values


def _numbers(where: checks.Where, values: Any, *, is_weight: bool = False) -> np.ndarray:
    """Returns numbers, integers or float64; weights are > 0."""
    if value_type(values.type) not in NUMBERS:
        raise ValueError(f"{where} must be numbers, got the type {values.type}.")
    numbers = values if pa.types.is_integer(values.type) else values.cast(pa.float64())
    numbers = numbers.to_numpy(zero_copy_only=False)
    for row in wrong_numbers(numbers, is_weight)[:1].tolist():
        checks.refuse(where, "finite numbers" + " > 0" * is_weight, values[row], row)
    return numbers


def _times(where: checks.Where, values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Returns times, exact for their order, and as float64: seconds of dates, and numbers as they are."""
    if value_type(values.type) in TEXTS:
        values = parsed_dates(where, values)
        checks.refuse_where(pc.is_null(values), where, "known values", values)
    if value_type(values.type) != "date":
        numbers = _numbers(where, values)
        return numbers, numbers.astype(np.float64)
    # In the unit of the type: nanoseconds have no far years.
    unit = "s" if pa.types.is_date32(values.type) else values.type.unit
    exact = values.cast(pa.timestamp(unit)).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return exact, exact / _PER_SECOND[unit]


def _ids(where: checks.Where, values: Any) -> tuple[np.ndarray, list[Any]]:
    """Returns the place of each id among different ones, and these."""
    if value_type(values.type) not in (*NUMBERS, *TEXTS, "date"):
        raise ValueError(f"{where} must be whole numbers or text, got the type {values.type}.")
    if value_type(values.type) in TEXTS:
        checks.refuse_where(pc.equal(pc.binary_length(values), 0), where, "known values", values)
    codes = values.dictionary_encode()
    with contextlib.suppress(ValueError):
        return codes.indices.to_numpy(), read_ids(str(where), codes.dictionary).tolist()
    return codes.indices.to_numpy(), read_ids(str(where), values).tolist()  # which names the row
