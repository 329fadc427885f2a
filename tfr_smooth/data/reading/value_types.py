"""The types by which values are read, so that a value is the same from tables, files and requests."""

from __future__ import annotations

import bisect
import codecs
import dataclasses
import datetime
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from tfr_smooth import _arguments
from tfr_smooth.data.column_values import NESTED, TEXTS, value_type, without
from tfr_smooth.data.reading.checks import Where, by_value, id_text, refuse, refuse_where

MISSING = csv.ConvertOptions().null_values  # words that mean a missing number, boolean or date
_EXPECTED = {
    "number": "numbers",
    "boolean": "booleans: true and false, or 1 and 0",
    "text": "text or whole numbers",
    "date": "dates as in ISO 8601, such as 2026-11-27",
}
LARGE = pa.decimal256(76, 0)  # of integers with more than 64 bits
_START = 64  # bytes in which UTF-16 has a zero
TYPES = (*_EXPECTED, "id")
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$"
_BOOLEAN = r"(?i)^(true|false|[01](\.0*)?)$"
_WORD = r"(?i)^(true|false)$"
_ZONE = r"[T ]\d\d.*(Z|[+-]\d\d(:?\d\d)?)$"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reading:
    """How values are written in files.

    Args:
      types: The types of columns by name, each one of `TYPES`; a date may have a format. None infers all.
      nulls: Further words that mean a missing value.
      delimiter: What separates the columns of CSV files. None for that of the format.
      decimal: The decimal point of CSV files, "." or ",".
      encoding: The encoding of CSV and JSON lines files.

    Raises:
      ValueError: If an argument is invalid.
    """

    types: Mapping[str, str] = dataclasses.field(default_factory=dict)
    nulls: Sequence[str] = ()
    delimiter: str | None = None
    decimal: str = "."
    encoding: str = "utf8"

    def __post_init__(self) -> None:
        """Checks the arguments."""
        types = _arguments.instance("types", self.types or {}, Mapping)
        for name, kind in types.items():
            is_date = str(kind).startswith("date:") and "%Z" not in kind  # names of time zones are not unique
            if str(kind).partition(":")[0] not in TYPES or (":" in str(kind) and not is_date):
                expected = "'number', 'boolean', 'text', 'id', 'date' or 'date:FORMAT', such as 'date:%d.%m.%Y'"
                raise ValueError(f"`types[{name!r}]` must be {expected}, got {kind!r}.")
        object.__setattr__(self, "types", {str(name): kind for name, kind in types.items()})
        if isinstance(self.nulls, str) or not all(isinstance(word, str) for word in self.nulls):
            raise ValueError(f"`nulls` must be a list of words, got {self.nulls!r}.")
        object.__setattr__(self, "nulls", tuple(self.nulls))
        if self.delimiter is not None and (not isinstance(self.delimiter, str) or len(self.delimiter) != 1):
            raise ValueError(f"`delimiter` must be one character, got {self.delimiter!r}.")
        _arguments.choice("decimal", self.decimal, (".", ","))
        try:
            codecs.lookup(self.encoding)
        except (LookupError, TypeError):
            raise ValueError(f"`encoding` must be one of Python's, such as 'cp1252', got {self.encoding!r}.") from None

    def with_types(self, types: Mapping[str, str]) -> Reading:
        """Returns the same way of reading with the types of further columns."""
        return dataclasses.replace(self, types={**types, **self.types})

    def typed(self, table: pa.Table, where: Callable[[str], Where]) -> pa.Table:
        """Returns a table with the types of the columns, and without the words that are missing.

        Args:
          table: The table.
          where: Describes a column by its name, for messages.

        Raises:
          ValueError: If a value has no equal one of the type of its column.
        """
        columns = {}
        for name, column in zip(table.column_names, table.columns, strict=True):
            if self.nulls and value_type(column.type) in TEXTS:
                column = without(column, pc.is_in(column, pa.array(self.nulls, column.type)))
            kind = self.types.get(name, "id")
            columns[name] = as_type(where(name), column, kind, decimal=self.decimal)
        return pa.table(columns)


def as_type(where: Where, values: Any, kind: str, *, decimal: str = ".") -> Any:
    """Returns values of a column as values of a type, without a loss.

    Args:
      where: Describes the column, for messages.
      values: The Arrow values: numbers, booleans, text or dates. Others are returned as they are.
      kind: One of `TYPES`. "text" takes whole numbers as they are written, and "id" anything as it is.
      decimal: The decimal point of numbers in text, "." or ",".

    Returns:
      The values.

    Raises:
      ValueError: If a value has no equal one of this type, or several. The message names the row.
    """
    name, _, date_format = kind.partition(":")
    given = value_type(values.type)
    if name not in _EXPECTED or given in (name, "", "bytes", *NESTED):
        return values
    expected = _EXPECTED[name]
    if given == "text" and name == "date":
        return parsed_dates(where, values, date_format)
    if given == "text":
        return _of_words(where, values, name, decimal)
    if given == "boolean" and name == "number":
        return values.cast(pa.int8())
    if given == "number" and name in ("boolean", "text"):
        numbers = without(values, pc.is_nan(values)) if pa.types.is_floating(values.type) else values
        if name == "boolean":
            known = numbers.cast(pa.float64(), safe=False)
            refuse_where(pc.invert(pc.is_in(known, pa.array([0.0, 1.0, None]))), where, expected, values)
            return pc.equal(known, 1.0)
        refuse_where(pc.not_equal(numbers, pc.round(numbers)), where, expected, values)
        return id_text(where, values)
    refuse_where(pc.is_valid(values), where, expected, values)
    return values


def known_words(texts: Any, nulls: Sequence[str] = (), decimal: str = ".") -> Any:
    """Returns texts without blanks around them and without the words for missing values, with decimal points."""
    trimmed = pc.utf8_trim_whitespace(texts)
    known = without(trimmed, pc.is_in(trimmed, pa.array([*MISSING, *nulls], trimmed.type)))
    # A point separates thousands there.
    return known if decimal == "." else pc.replace_substring(pc.replace_substring(known, ".", ";"), ",", ".")


def numbers_as_text(where: Where, texts: Any, decimal: str = ".") -> Any:
    """Returns texts that must be numbers, without blanks and with decimal points; missing ones are null."""
    known = known_words(texts, decimal=decimal)
    if pc.any(pc.match_substring_regex(known, _WORD)).as_py():  # of a column of 0 and 1
        known = pc.replace_substring_regex(pc.replace_substring_regex(known, "(?i)^true$", "1"), "(?i)^false$", "0")
    refuse_where(pc.invert(pc.match_substring_regex(known, _NUMBER)), where, _EXPECTED["number"], texts)
    return known


def _of_words(where: Where, texts: Any, name: str, decimal: str) -> Any:
    """Returns the numbers or booleans of texts."""
    if name == "number":
        known = numbers_as_text(where, texts, decimal)
        numbers = pc.replace_substring(known, "+", "", max_replacements=1).cast(pa.float64())
        refuse_where(pc.is_inf(numbers.cast(pa.float32(), safe=False)), where, "finite float32 numbers", texts)
        return numbers
    known = known_words(texts)
    refuse_where(pc.invert(pc.match_substring_regex(known, _BOOLEAN)), where, _EXPECTED[name], texts)
    return pc.replace_substring_regex(known, r"\..*", "").cast(pa.bool_())


def parsed_dates(where: Where, texts: Any, date_format: str = "") -> Any:
    """Returns the dates of texts, in UTC if they have no time zone; the words for missing values are missing.

    Args:
      where: Describes the column, for messages.
      texts: The texts.
      date_format: The format, as of `strptime`; "" for ISO 8601.

    Raises:
      ValueError: If a text is no date. The message names the row.
    """
    known = known_words(texts)
    read = functools.partial(_dates_of_format, date_format=date_format) if date_format else iso_dates
    try:
        return read(known)
    except ValueError:  # also of Arrow
        expected = f"dates as {date_format!r}" if date_format else _EXPECTED["date"]
        # The first row with which the rows up to it cannot be read.
        row = bisect.bisect_left(range(len(known)), True, key=lambda row: _fails(read, known[: row + 1]))
        refuse(where, expected, texts[row], row)


def _dates_of_format(texts: Any, date_format: str) -> Any:
    """Returns dates, each different text once: Arrow takes 31.02. for 03.03., and ignores time zones."""

    def date_of(text: str) -> datetime.datetime:
        date = datetime.datetime.strptime(text, date_format)
        return date.astimezone(datetime.timezone.utc).replace(tzinfo=None) if date.tzinfo else date

    return by_value(texts, date_of, pa.timestamp("us"))


def iso_dates(texts: Any) -> Any:
    """Returns the dates of texts in ISO 8601, in UTC if they have no time zone; an `ArrowInvalid` if one is no date."""
    texts = pc.replace_substring_regex(texts, r"(\.\d{6})\d+", r"\1")
    has_zone, days = pc.match_substring_regex(texts, _ZONE), pa.timestamp("us")
    zoned = without(texts, pc.invert(has_zone)).cast(pa.timestamp("us", "UTC")).cast(days)
    return pc.coalesce(zoned, without(texts, has_zone).cast(days))


def _fails(read: Callable[[Any], Any], values: Any) -> bool:
    """Returns whether a value cannot be read."""
    try:
        read(values)
    except ValueError:
        return True
    return False


def check_utf8(content: bytes, path: str, line: int = 1) -> None:
    """Checks that the bytes of a file are UTF-8; `line` is the number of the first one."""
    start = content[:_START]
    hint = "utf-16" if 4 * start.count(0) > len(start) else "cp1252"  # of ASCII, every second byte is 0
    try:
        if hint == "cp1252":
            content.decode()
            return
    except UnicodeDecodeError as error:
        line += content.count(b"\n", 0, error.start)
    raise ValueError(f"{path}:{line}: bytes that are not UTF-8: pass the encoding of the file, such as {hint!r}")
