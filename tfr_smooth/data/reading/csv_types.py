"""The types of the columns of CSV files, which are read as text: the first types that hold all values without loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from tfr_smooth.data.column_values import without
from tfr_smooth.data.reading.checks import Where, refuse

if TYPE_CHECKING:
    from pyarrow import dataset  # which imports pandas if it can

_MISSING = csv.ConvertOptions().null_values
ID = pa.large_string()  # the type of ids; other text is `pa.string()`
_SECONDS, _NANOSECONDS = pa.timestamp("s"), pa.timestamp("ns")
# The types to try where values do not have a type; then, they are text.
_NEXT: dict[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.null(): (pa.int64(), pa.bool_(), pa.date32(), _SECONDS, _NANOSECONDS, pa.float64()),
    pa.int64(): (pa.float64(),),
    pa.date32(): (_SECONDS, _NANOSECONDS),
    _SECONDS: (_NANOSECONDS,),
}
_NUMBER, _COMMA = r"^[+-]?[\d.,]+$", r"^[+-]?[\d.]*\d,\d+$"


class WiderError(Exception):
    """Values need other types than those before; its argument is the types by column."""


def initial(files: dataset.FileSystemDataset) -> dict[str, pa.DataType]:
    """Returns the columns of all files and folders, those of files with the type of only missing values."""
    types = {field.name: field.type for field in files.schema}
    for fragment in files.get_fragments():
        types.update((name, pa.null()) for name in fragment.physical_schema.names)
    return types


def converted(table: pa.Table, types: dict[str, pa.DataType], where: Callable[[str], Where]) -> pa.Table:
    """Returns a table of text in the given types.

    Args:
      table: The table. Columns of another type than text are left as they are.
      types: The types by column.
      where: Describes a column by its name, for messages.

    Raises:
      WiderError: If values do not have the type of their column.
      ValueError: If a column has numbers with decimal commas.
    """
    columns, wider = {}, {}
    for name, texts in zip(table.column_names, table.columns, strict=True):
        columns[name] = _converted(texts, types[name]) if pa.types.is_string(texts.type) else texts
        if columns[name] is None:
            wider[name] = _wider(texts, types[name])
        elif pa.types.is_string(types[name]):
            _check_commas(where(name), texts)
    if wider:
        raise WiderError(wider)
    return pa.table(columns)


def _wider(texts: Any, kind: pa.DataType) -> pa.DataType:
    """Returns the next type that holds the values; for integers with more digits than float64 has, text."""
    known = pc.utf8_trim_whitespace(texts)
    whole, large = (pc.match_substring_regex(known, pattern) for pattern in (r"^\d*$", r"^\d{17,}$"))
    if pc.any(large).as_py() and pc.all(whole).as_py() and _converted(texts, pa.int64()) is None:
        return pa.string()
    others = (other for other in _NEXT.get(kind, ()) if _converted(texts, other) is not None)
    return next(others, pa.string())


def _converted(texts: Any, kind: pa.DataType) -> Any:
    """Returns the values of texts; None if they do not have this type, or if it would lose digits."""
    if pa.types.is_string(kind):
        return texts
    if kind == ID:
        trimmed = pc.utf8_trim_whitespace(texts)
        return without(trimmed, pc.equal(trimmed, ""))
    known = pc.utf8_trim_whitespace(_known(texts))
    if kind in (pa.int64(), pa.float64()) and pc.any(pc.match_substring_regex(known, r"^[+-]?0\d")).as_py():
        return None
    try:
        return known.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # Nothing can be cast to the type of missing values.
        return pa.nulls(len(known)) if kind == pa.null() and known.null_count == len(known) else None


def _known(texts: Any) -> Any:
    return without(texts, pc.is_in(texts, pa.array(_MISSING)))


def _check_commas(where: Where, texts: Any) -> None:
    """Refuses a column of numbers some of which have decimal commas."""
    known = _known(texts)
    row = pc.index(pc.match_substring_regex(known, _COMMA), True).as_py()
    if row >= 0 and pc.all(pc.match_substring_regex(known, _NUMBER)).as_py():
        hint = "numbers with decimal points (pandas.read_csv has the option `decimal` for commas; pass its table)"
        refuse(where, hint, texts[row], row)
