"""The values of Arrow columns by row, as NumPy arrays for TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# The blanks of Unicode at the ends of a text, for Arrow and TensorFlow.
OUTER_BLANKS = r"^[\s\v\x1c-\x1f\x{85}\pZ]+|[\s\v\x1c-\x1f\x{85}\pZ]+$"
_HASHED = 1 << 20  # rows that are hashed at once; not tuned


_INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
_TYPES = {
    "number": [*_INTEGERS, pa.float16(), pa.float32(), pa.float64(), pa.decimal128(1), pa.decimal256(1)],
    "boolean": [pa.bool_()],
    "text": [pa.string(), pa.large_string(), pa.string_view()],
    "bytes": [pa.binary(), pa.large_binary()],
    "date": [pa.timestamp("s"), pa.date32(), pa.date64()],
    "vector": [pa.list_(pa.null(), 1)],
    "set": [pa.list_(pa.null()), pa.large_list(pa.null())],
}
_NAMES = {kind.id: name for name, kinds in _TYPES.items() for kind in kinds}
_NAMES |= {getattr(pa.lib, f"Type_DECIMAL{bits}", -1): "number" for bits in (32, 64)}  # not in all versions of Arrow
NUMBERS, TEXTS, NESTED = ("number", "boolean"), ("text", "bytes"), ("vector", "set")


def value_type(values: pa.DataType) -> str:
    """Returns the type of the values of a column: "number", "boolean", "text", "bytes", "date", "vector" or "set".

    Args:
      values: The Arrow type.

    Returns:
      The type; "" for others.
    """
    return _NAMES.get(values.id, "")


def without(values: Any, missing: Any) -> Any:
    """Returns a column with nulls where `missing` is True.

    With a scalar null, `if_else` of Arrow before 24 returns wrong text for a slice of a column.
    """
    return pc.if_else(missing, pa.nulls(len(values), values.type), values)


def dense_column(matrix: np.ndarray) -> pa.Array:
    """Returns float32 [rows, num_features] as a column, without a copy."""
    values = pa.array(np.ascontiguousarray(matrix, np.float32).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(values, matrix.shape[1])


def update_hash(checksum: Any, column: Any) -> None:
    """Adds a column to a hash of `hashlib`, without what Arrow stores for missing values."""
    checksum.update(str(column.type).encode())
    for start in range(0, len(column), _HASHED):
        part = column.slice(start, _HASHED)
        checksum.update(part.is_valid().to_numpy(zero_copy_only=False))
        checksum.update(pa.record_batch([part.drop_null()], names=["values"]).serialize())


def varying(values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Returns the places of values that are not those of the first document of their list; missing ones are equal."""
    others = values[np.repeat(np.cumsum(lengths) - lengths, lengths)]
    differ = (values != others) & ((values == values) | (others == others))
    return np.flatnonzero(differ.any(axis=tuple(range(1, differ.ndim))))


class ColumnValues:
    """The values of a column by row, as NumPy arrays for TensorFlow.

    Numbers and booleans are float32, NaN if missing; text and integers beyond 64 bits are bytes, b"" if missing; dates
    are int64 seconds since 1970-01-01 UTC, the smallest int64 if missing; positions are int32; vectors are float32
    [rows, d]; sets are padded to the largest of the rows, with NaN or b"".

    Args:
      column: The column, in memory or memory-mapped.
      is_position: Whether the values are int32, without missing ones.
    """

    def __init__(self, column: pa.ChunkedArray, is_position: bool = False) -> None:
        kind = column.type
        self._chunks = list(filter(len, column.chunks)) or [pa.array([], kind)]
        self._ends = np.cumsum(list(map(len, self._chunks)))
        nested = value_type(kind)
        values = kind.value_type if nested in NESTED else kind
        self.is_set = nested == "set"
        self.width: int | None = kind.list_size if nested == "vector" else None
        self.shape = [] if nested not in NESTED else [self.width]  # of the value of a row; None for sets
        given = value_type(values)
        as_text = given in TEXTS or values.id == pa.lib.Type_DECIMAL256
        self.dtype = np.dtype(object if as_text else np.int64 if given == "date" else np.float32)
        if is_position:
            self.dtype = np.dtype(np.int32)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Returns the values of rows, int64 [n]."""
        if len(self._chunks) == 1:
            return self._final(self._chunks[0].take(pa.array(rows)))
        chunks = np.searchsorted(self._ends, rows, side="right")
        taken, places = [], []
        for number in np.unique(chunks).tolist() or [0]:
            places.append(np.flatnonzero(chunks == number))
            chunk = self._chunks[number]
            taken.append(chunk.take(pa.array(rows[places[-1]] - (self._ends[number] - len(chunk)))))
        back = np.argsort(np.concatenate(places))
        return self._final(pa.concat_arrays(taken).take(pa.array(back)))

    def _final(self, array: pa.Array) -> np.ndarray:
        if self.width is not None:
            flat = array.values.slice(array.offset * self.width, len(array) * self.width)
            values = _as_numpy(flat).reshape(-1, self.width)
            return np.where(array.is_null().to_numpy(False)[:, None], np.nan, values) if array.null_count else values
        if not self.is_set:
            return array.to_numpy() if self.dtype == np.int32 else _as_numpy(array)
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(False)
        shape, fill = (len(array), max(1, lengths.max(initial=0))), b"" if self.dtype == object else np.nan
        padded = np.full(shape, fill, self.dtype)
        padded[np.arange(shape[1]) < lengths[:, None]] = _as_numpy(array.flatten())
        return padded


def number_matrix(table: pa.Table, names: Sequence[str], rows: np.ndarray) -> np.ndarray:
    """Returns numbers and booleans of rows, float32 [rows, columns], NaN if missing.

    Args:
      table: The table.
      names: Its columns.
      rows: int64 [n].
    """
    matrix, taken = np.empty((len(rows), len(names)), np.float32), pa.array(rows)
    for place, name in enumerate(names):
        column = table[name]
        if column.num_chunks == 1:  # Without a reader for each column, one row of many columns is fast.
            matrix[:, place] = column.chunk(0).take(taken).cast(pa.float32(), safe=False).to_numpy(False)
        else:
            matrix[:, place] = ColumnValues(column)(rows)
    return matrix


def _as_numpy(array: pa.Array) -> np.ndarray:
    kind = array.type
    if pa.types.is_decimal256(kind):
        array, kind = array.cast(pa.large_string()), pa.large_string()
    given = value_type(kind)
    if given in TEXTS:
        as_bytes = array if given == "bytes" else array.cast(pa.large_binary())
        return pc.fill_null(as_bytes, b"").to_numpy(zero_copy_only=False)
    if given == "date":
        # Arrow rounds the times before 1970 up.
        seconds = array.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).fill_null(0).to_numpy() // 1_000_000
        return np.where(array.is_valid().to_numpy(False), seconds, np.iinfo(np.int64).min)
    if not pa.types.is_float32(kind):
        array = array.cast(pa.float32(), safe=False)
    return (pc.fill_null(array, np.nan) if array.null_count else array).to_numpy()
