"""The types of the columns of CSV files, which are read as text: the first types that hold all values without loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tfr_smooth.data.column_values import without
from tfr_smooth.data.reading.checks import Where, refuse
from tfr_smooth.data.reading.value_types import LARGE, Reading, known_words

if TYPE_CHECKING:
    from pyarrow import dataset  # which imports pandas if it can

ID = pa.large_string()  # the type of ids; other text is `pa.string()`
_SECONDS, _NANOSECONDS = pa.timestamp("s"), pa.timestamp("ns")
# The types to try where values do not have a type; then, they are text.
_NEXT: dict[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.null(): (pa.int64(), pa.bool_(), pa.date32(), _SECONDS, _NANOSECONDS, pa.float64()),
    pa.int64(): (pa.float64(),),
    LARGE: (pa.float64(),),
    pa.date32(): (_SECONDS, _NANOSECONDS),
    _SECONDS: (_NANOSECONDS,),
}
_SAMPLED = 2**6  # texts that are converted first
_NO_NUMBER = r"^[+-]?0[\dxX]"  # leading zeros, and hexadecimal digits, which Arrow takes for numbers
_NUMBER, _COMMA = r"^[+-]?[\d.,]+$", r"^[+-]?[\d.]*\d,\d+$"


class WiderError(Exception):
    """Values need other types than those before; its argument is the types by column."""


def initial(files: dataset.FileSystemDataset, reading: Reading) -> dict[str, pa.DataType]:
    """Returns the columns of all files and folders, those of files with the first type to try; text, if it is given."""
    types = {field.name: field.type for field in files.schema}
    for fragment in files.get_fragments():
        names = fragment.physical_schema.names
        types.update((name, pa.string() if name in reading.types else pa.null()) for name in names)
    return types


def converted(
    table: pa.Table, types: dict[str, pa.DataType], reading: Reading, where: Callable[[str], Where]
) -> pa.Table:
    """Returns a table of text in the given types.

    Args:
      table: The table. Columns of another type than text are left as they are.
      types: The types by column.
      reading: How the values are written.
      where: Describes a column by its name, for messages.

    Raises:
      WiderError: If values do not have the type of their column.
      ValueError: If a column has numbers with decimal commas.
    """
    columns, wider = {}, {}
    for name, texts in zip(table.column_names, table.columns, strict=True):
        columns[name] = _converted(texts, types[name], reading) if pa.types.is_string(texts.type) else texts
        if columns[name] is None:
            wider[name] = _wider(texts, types[name], reading)
        elif pa.types.is_string(types[name]) and name not in reading.types and reading.decimal == ".":
            _check_commas(where(name), texts)
    if wider:
        raise WiderError(wider)
    return pa.table(columns)


def _wider(texts: Any, kind: pa.DataType, reading: Reading) -> pa.DataType:
    """Returns the next type that holds the values; float64 only if it has all digits of integers."""
    known = known_words(texts, reading.nulls)
    whole, large = (pc.match_substring_regex(known, pattern) for pattern in (r"^[+-]?\d{1,75}$", r"^[+-]?\d{17,}$"))
    if pc.any(large).as_py() and pc.all(whole).as_py() and kind not in (pa.float64(), LARGE):
        return next((kind for kind in (pa.int64(), LARGE) if _converted(texts, kind, reading) is not None), pa.string())
    parts = (texts[:_SAMPLED], texts)  # Arrow looks at all values, also after one that it cannot convert.
    others = _NEXT.get(kind, ())
    fits = (other for other in others if all(_converted(part, other, reading) is not None for part in parts))
    return next(fits, pa.string())


def _converted(texts: Any, kind: pa.DataType, reading: Reading) -> Any:
    """Returns the values of texts; None if they do not have this type, or if it would lose digits."""
    if pa.types.is_string(kind):
        return texts
    if kind == ID:
        trimmed = pc.utf8_trim_whitespace(texts)
        return without(trimmed, pc.equal(trimmed, ""))
    known = known_words(texts, reading.nulls, reading.decimal if kind == pa.float64() else ".")
    if kind in (pa.int64(), pa.float64(), LARGE) and pc.any(pc.match_substring_regex(known, _NO_NUMBER)).as_py():
        return None
    try:
        return known.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # Nothing can be cast to the type of missing values.
        return pa.nulls(len(known)) if kind == pa.null() and known.null_count == len(known) else None


def _check_commas(where: Where, texts: Any) -> None:
    """Refuses a column of numbers some of which have decimal commas."""
    known = known_words(texts)
    row = pc.index(pc.match_substring_regex(known, _COMMA), True).as_py()
    has_points = pc.any(pc.match_substring_regex(known, r",\d+\.")).as_py()  # commas separate thousands
    if row >= 0 and not has_points and pc.all(pc.match_substring_regex(known, _NUMBER)).as_py():
        hint = "numbers with decimal points (pass decimal=',' if these are decimals, or the type 'text' in `types`)"
        refuse(where, hint, texts[row], row)
