"""Columns of numbers and of booleans."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.columns.kinds import Column, TrainingValues
from tfr_smooth.data.column_values import ColumnValues
from tfr_smooth.data.reading.checks import Where, check_differences, refuse_where


@dataclasses.dataclass(frozen=True, kw_only=True)
class Filled(Column):
    """Base class of columns of one number per row, in which the mean replaces missing values.

    Args:
      name: The name in the table, not empty.
      has_missing: Whether values were missing in training. If so, a second feature indicates this.
      fill: The mean of the known values in training.
    """

    fill: float = 0.0

    ordered = True

    def __post_init__(self) -> None:
        """Checks the arguments."""
        super().__post_init__()
        object.__setattr__(self, "fill", _arguments.real("fill", self.fill))

    @property
    def width(self) -> int:
        """Number of features."""
        return 1 + self.has_missing


@dataclasses.dataclass(frozen=True, kw_only=True)
class Number(Filled):
    """A column of numbers: the feature is the value, or the mean for a missing one.

    Args:
      name: The name in the table, not empty.
      has_missing: Whether values were missing in training. If so, a second feature indicates this.
      fill: The mean of the known values in training, which replaces missing ones.

    Raises:
      ValueError: If an argument is invalid.

    Example:
      >>> from tfr_smooth.columns import Number
      >>> Number(name="price", fill=2.0, has_missing=True).width
      2
    """

    kind = reads = "number"
    contains = "numbers"
    default_for = ("number",)
    accepts = ("number", "boolean")
    dtype = tf.float32
    missing_value = np.nan
    empty_type = pa.float32()
    stacked = True

    @classmethod
    def reason_for(cls, values: TrainingValues) -> str:
        """Returns "numbers" unless these are ids."""
        return "" if values.are_ids else cls.contains

    @classmethod
    def learn(cls, values: TrainingValues) -> Number:
        """Returns the column of training values."""
        check_differences(f"column {values.name!r}", values.column.to_numpy())
        return cls(name=values.name, fill=mean_of(values), has_missing=values.has_missing)

    @classmethod
    def raw(cls, where: Where, values: Any, option: str | None = None) -> Any:
        """Returns the values, decimals as float64."""
        if not pa.types.is_decimal(values.type):
            return values
        numbers = values.cast(pa.float64())
        refuse_where(pc.is_inf(numbers.cast(pa.float32(), safe=False)), where, "finite float32 numbers", values)
        return numbers


@dataclasses.dataclass(frozen=True, kw_only=True)
class Boolean(Number):
    """A column of booleans, or of the numbers 0 and 1: as `Number`.

    Args:
      name: The name in the table, not empty.
      has_missing: Whether values were missing in training. If so, a second feature indicates this.
      fill: The mean of the known values in training, which replaces missing ones.

    Raises:
      ValueError: If an argument is invalid.

    Example:
      >>> from tfr_smooth.columns import Boolean
      >>> Boolean(name="new").dtype
      tf.float32
    """

    kind = reads = "boolean"
    contains = "booleans"
    raw_values = "0, 1"
    default_for = ("boolean",)

    @classmethod
    def raw(cls, where: Where, values: Any, option: str | None = None) -> Any:
        """Returns the values, of which the known ones must be 0 or 1."""
        if not pa.types.is_boolean(values.type):
            good = pc.is_in(pc.cast(values, pa.float64(), safe=False), pa.array([0.0, 1.0, np.nan, None]))
            refuse_where(pc.invert(good), where, cls.contains, values)
        return values


def mean_of(values: TrainingValues) -> float:
    """Returns the mean of the known values."""
    return float(ColumnValues(values.column)(np.flatnonzero(~values.is_missing)).mean(dtype=np.float64))


def columns_of_matrix(parts: Any) -> list[Number]:
    """Returns the columns "1", "2", ... of a matrix of float32 numbers, NaN if missing, that is given in parts."""
    totals, counts, total = np.zeros(()), np.zeros((), int), 0
    for part in parts:
        missing = np.isnan(part)
        totals = totals + np.where(missing, 0.0, part).sum(axis=0, dtype=np.float64)
        counts = counts + (~missing).sum(axis=0)
        total += len(part)
    if not counts.all():
        place = np.flatnonzero(counts == 0)[0]
        raise ValueError(f"column {str(place + 1)!r} must have known values, got only missing ones.")
    learned = enumerate(zip((totals / counts).tolist(), (counts < total).tolist(), strict=True), 1)
    return [Number(name=str(number), fill=fill, has_missing=missing) for number, (fill, missing) in learned]


def number_features(values: tf.Tensor, columns: tuple[Number, ...]) -> tf.Tensor:
    """Returns the features of all columns of numbers at once, which is faster than one operation for each.

    Args:
      values: float32 [..., columns], NaN if missing.
      columns: The columns.

    Returns:
      float32 [..., features]: first the number of each column, then the flags of missing ones.
    """
    missing = tf.math.is_nan(values)
    filled = tf.where(missing, tf.constant([column.fill for column in columns], tf.float32), values)
    places = [place for place, column in enumerate(columns) if column.has_missing]
    if not places:
        return filled
    return tf.concat([filled, tf.cast(tf.gather(missing, places, axis=-1), tf.float32)], axis=-1)
