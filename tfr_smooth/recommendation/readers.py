"""Readers of interactions: files with the items of each user, files of ratings, and DataFrames."""

from __future__ import annotations

import array
import dataclasses
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, overload

import numpy as np

from tfr_smooth import _arguments
from tfr_smooth.data.text_files import FilePattern, expand_paths, numbered_lines
from tfr_smooth.recommendation.interaction_sources import IdTable, Source, joined
from tfr_smooth.recommendation.interactions import Interactions

_ROLES = ("user", "item", "rating", "time")
# Line number, user, item and time. No item: a user without items. No user: a pair that was dropped.
_Line: TypeAlias = "tuple[int, bytes | None, bytes | None, float | None]"


@overload
def read_lists(
    file: FilePattern, /, *, users: Iterable[Any] | None = None, items: Iterable[Any] | None = None
) -> Interactions: ...
@overload
def read_lists(
    first: FilePattern,
    second: FilePattern,
    /,
    *more: FilePattern,
    users: Iterable[Any] | None = None,
    items: Iterable[Any] | None = None,
) -> tuple[Interactions, ...]: ...
def read_lists(*files: FilePattern, users: Iterable[Any] | None = None, items: Iterable[Any] | None = None) -> Any:
    r"""Reads files with one line per user: `user item item ...`, the form of LightGCN's data sets.

    Fields are separated by spaces or tabs. A user may have several lines, or a line without items. Empty lines are
    skipped. Ids that are all integers, without leading zeros, become integers; otherwise, ids are strings.

    Args:
      *files: The parts of a data set, such as a training and a test file, which share the numbers of users and items.
        Each is a path, a pattern or a list of these; files may be compressed, as for `data.read_letor`.
      users: The ids of all users, in the order of their numbers. None: the ids in the files, ascending.
      items: The ids of all items, in the order of their numbers. None: the ids in the files, ascending.

    Returns:
      The interactions, or a tuple of those of each part. A part contains the users and items of all parts.

    Raises:
      ValueError: If a file has no pairs or is malformed, an id is not in `users` or `items`, or a pair is in two parts
        (`path:line: problem`).

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
    return _read(files, _list_lines, users, items)


@overload
def read_ratings(
    file: FilePattern,
    /,
    *,
    separator: str = ",",
    columns: Sequence[str | None] = _ROLES,
    header: bool = False,
    least_rating: float | None = None,
    users: Iterable[Any] | None = None,
    items: Iterable[Any] | None = None,
) -> Interactions: ...
@overload
def read_ratings(
    first: FilePattern,
    second: FilePattern,
    /,
    *more: FilePattern,
    separator: str = ",",
    columns: Sequence[str | None] = _ROLES,
    header: bool = False,
    least_rating: float | None = None,
    users: Iterable[Any] | None = None,
    items: Iterable[Any] | None = None,
) -> tuple[Interactions, ...]: ...
def read_ratings(
    *files: FilePattern,
    separator: str = ",",
    columns: Sequence[str | None] = _ROLES,
    header: bool = False,
    least_rating: float | None = None,
    users: Iterable[Any] | None = None,
    items: Iterable[Any] | None = None,
) -> Any:
    r"""Reads files with one line per pair: `user,item,rating,time`.

    Several lines of the same user and item are one interaction, at the latest of their times. Empty lines are skipped.

    Args:
      *files: The parts of a data set, as for `read_lists`.
      separator: What separates the fields, such as "\t" or "::". Quotes have no meaning.
      columns: The roles of the fields: "user", "item", "rating", "time", or None for a field to ignore. "user" and
        "item" are required.
      header: Whether the first line of each file is a header, which is skipped.
      least_rating: The lowest rating of an interaction; pairs with a lower one are dropped. None keeps all pairs.
      users: As for `read_lists`.
      items: As for `read_lists`.

    Returns:
      The interactions, or a tuple of those of each part. Users and items without an interaction in any part are
      missing, unless `users` or `items` contains them.

    Raises:
      ValueError: If an argument is invalid, or as for `read_lists` (`path:line: problem`).

    Linear time; memory is that of the interactions.

    Example:
      >>> import pathlib, tempfile
      >>> from tfr_smooth import recommendation
      >>> path = pathlib.Path(tempfile.mkdtemp(), "ratings.dat")
      >>> _ = path.write_text("ann::up::5::978300760\nann::heat::2::978302109\nbob::alien::4::978301968\n")
      >>> interactions = recommendation.read_ratings(path, separator="::", least_rating=4)
      >>> print(interactions)
      2 users, 2 items, 2 interactions (density 50%); 1 interaction dropped because of a low rating
      >>> interactions.item_ids.tolist(), interactions.times.tolist()
      (['alien', 'up'], [978300760.0, 978301968.0])
    """
    return _read(files, _RatingLines(separator, columns, header, least_rating), users, items)


def from_dataframe(
    *frames: Any,
    user: str,
    item: str,
    rating: str | None = None,
    time: str | None = None,
    least_rating: float | None = None,
    users: Iterable[Any] | None = None,
    items: Iterable[Any] | None = None,
) -> Any:
    """Returns the interactions of DataFrames with one row per pair.

    Several rows of the same user and item are one interaction, at the latest of their times.

    Args:
      *frames: The parts of a data set, such as a training and a test frame, which share the numbers of users and items:
        pandas DataFrames, or tables with a `to_pandas` method.
      user: The column of the users' ids, integers or strings.
      item: The column of the items' ids, integers or strings.
      rating: The column of ratings, used only with `least_rating`.
      time: The column of times, numbers or timestamps. None: no times.
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
    least = _least_rating(least_rating, rating is not None)
    tables = IdTable("users", users, from_text=False), IdTable("items", items, from_text=False)
    sources = []
    for number, frame in enumerate(frames):
        name = "frame" if len(frames) == 1 else f"frame {number}"
        if not hasattr(frame, "iloc"):
            if not hasattr(frame, "to_pandas"):
                expected = "a pandas DataFrame or a table with a `to_pandas` method"
                raise ValueError(f"`{name}` must be {expected}, got {type(frame).__name__}.")
            frame = frame.to_pandas()
        sources.append(_FrameReader(name, frame).pairs((user, item), rating, time, least, tables))
    return joined(sources, *tables)


def _read(
    files: Sequence[FilePattern],
    lines: Callable[[str], Iterator[_Line]],
    users: Iterable[Any] | None,
    items: Iterable[Any] | None,
) -> Any:
    if not files:
        raise ValueError("`files` must contain at least one file, got none.")
    tables = IdTable("users", users, from_text=True), IdTable("items", items, from_text=True)
    return joined([_file_pairs(expand_paths(each, "files"), lines, *tables) for each in files], *tables)


def _file_pairs(
    paths: Sequence[str], lines: Callable[[str], Iterator[_Line]], users: IdTable, items: IdTable
) -> Source:
    """Reads the files of one part."""
    # Arrays of numbers: lists of Python objects would take several times the memory.
    found = array.array("q"), array.array("q")
    times, below_rating = array.array("d"), 0
    for path in paths:
        for number, user, item, time in lines(path):
            if user is None:
                below_rating += 1
                continue
            try:
                user_number = users.number(user)
                if item is not None:
                    found[1].append(items.number(item))
                    found[0].append(user_number)
            except ValueError as error:
                raise ValueError(f"{path}:{number}: {error}") from None
            if time is not None:
                times.append(time)

    def place(user_number: int, item_number: int) -> str:
        pair = user_number, item_number
        for path in paths:
            for number, user, item, _ in lines(path):
                if item is not None and pair == (users.numbers.get(user), items.numbers.get(item)):
                    return f"{path}:{number}"
        raise AssertionError(f"no pair {pair}")

    user_numbers, item_numbers = (np.frombuffer(each, np.int64) for each in found)
    return Source(paths[0], user_numbers, item_numbers, np.frombuffer(times) if times else None, below_rating, place)


def _list_lines(path: str) -> Iterator[_Line]:
    for number, line in numbered_lines(path):
        fields = line.split()
        if len(fields) == 1:
            yield number, fields[0], None, None
        for item in fields[1:]:
            yield number, fields[0], item, None


@dataclasses.dataclass
class _RatingLines:
    """The lines of files of ratings, with the arguments of `read_ratings`."""

    separator: str
    columns: Sequence[str | None]
    header: bool
    least_rating: float | None

    def __post_init__(self) -> None:
        if not isinstance(self.separator, str) or not self.separator:
            raise ValueError(f"`separator` must be a non-empty string, got {self.separator!r}.")
        _arguments.boolean("header", self.header)
        roles = [role for role in self.columns if role is not None]
        if not {"user", "item"} <= set(roles) <= set(_ROLES) or len(set(roles)) < len(roles):
            expected = "'user', 'item' and, optionally, 'rating' and 'time', once each, and None"
            raise ValueError(f"`columns` must be {expected}, got {self.columns!r}.")
        self.least_rating = _least_rating(self.least_rating, "rating" in roles)

    def __call__(self, path: str) -> Iterator[_Line]:
        """Yields the lines of a file."""
        columns, separator, least = list(self.columns), self.separator.encode(), self.least_rating
        user, item = columns.index("user"), columns.index("item")
        rating = columns.index("rating") if least is not None else -1
        time = columns.index("time") if "time" in columns else -1
        expected = self.separator.join(role or "..." for role in columns)
        for number, line in numbered_lines(path):
            fields = line.rstrip(b"\r\n").split(separator)
            if number == 1 and self.header or not line.strip():
                continue
            if len(fields) != len(columns):
                raise ValueError(f"{path}:{number}: expected {expected!r}, {len(columns)} fields, got {len(fields)}")
            if least is not None and _number(path, number, "rating", fields[rating], self.header) < least:
                yield number, None, None, None
                continue
            when = None if time < 0 else _number(path, number, "time", fields[time], self.header)
            yield number, fields[user].strip(), fields[item].strip(), when


def _number(path: str, line: int, what: str, field: bytes, header: bool) -> float:
    try:
        value = math.nan if b"_" in field else float(field)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        hint = " (`header=True` skips the first line)" if line == 1 and not header else ""
        raise ValueError(f"{path}:{line}: {what} {os.fsdecode(field)!r} is not a finite number{hint}")
    return value


def _least_rating(value: float | None, has_ratings: bool) -> float | None:
    if value is None:
        return None
    value = _arguments.real("least_rating", value)
    if not has_ratings:
        raise ValueError(f"`least_rating` must be None without ratings, got {value:g}.")
    return value


@dataclasses.dataclass
class _FrameReader:
    """Reads the columns of a DataFrame; `name` is that of the frame in messages."""

    name: str
    frame: Any

    def pairs(
        self,
        ids: tuple[str, str],
        rating: str | None,
        time: str | None,
        least: float | None,
        tables: tuple[IdTable, IdTable],
    ) -> Source:
        """Returns the pairs of the rows."""
        kept = np.ones(len(self.frame), bool)
        if least is not None and rating is not None:
            kept = self._numbers(rating) >= least
        rows = np.flatnonzero(kept)
        users, items = (self._ids(column, rows, table) for column, table in zip(ids, tables, strict=True))
        times = None if time is None else self._numbers(time)[rows]

        def place(user: int, item: int) -> str:
            return f"{self.name}, row {rows[np.argmax((users == user) & (items == item))]}"

        return Source(self.name, users, items, times, len(kept) - len(rows), place)

    def _column(self, name: str) -> Any:
        if name not in self.frame.columns:
            raise ValueError(f"{self.name}: no column {name!r} among {list(self.frame.columns)}")
        values = self.frame[name]
        missing = values.isna().to_numpy(bool)
        if missing.any():
            raise ValueError(f"{self.name}, row {missing.argmax()}: column {name!r} has no value")
        return values

    def _numbers(self, name: str) -> np.ndarray:
        values = self._column(name)
        if values.dtype.kind == "M":
            return values.to_numpy("datetime64[ns]").astype(np.int64) / 1e9
        try:
            numbers = values.to_numpy(np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{self.name}: column {name!r} must have numbers, got {values.dtype}") from None
        if not np.isfinite(numbers).all():
            raise ValueError(f"{self.name}, row {(~np.isfinite(numbers)).argmax()}: column {name!r} is not finite")
        return numbers

    def _ids(self, name: str, rows: np.ndarray, table: IdTable) -> np.ndarray:
        codes, values = self._column(name).iloc[rows].factorize()
        numbers = np.empty(len(values), np.int64)
        for code, value in enumerate(values.tolist()):
            try:
                if isinstance(value, bool) or not isinstance(value, (int, str)):
                    raise ValueError(f"column {name!r} must have integers or strings, got {value!r}")
                numbers[code] = table.number(value)
            except ValueError as error:
                raise ValueError(f"{self.name}, row {rows[(codes == code).argmax()]}: {error}") from None
        return numbers[codes]
