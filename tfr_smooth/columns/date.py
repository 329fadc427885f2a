"""Columns of dates and times."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.columns.kinds import Column, TrainingValues
from tfr_smooth.columns.number import mean_of
from tfr_smooth.data import column_values
from tfr_smooth.data.reading.checks import Where

_SECONDS_PER_DAY = 86400.0
_SAMPLED = 2**12  # texts that are parsed first: most texts are no dates
_ZONE = r"[T ]\d\d.*(Z|[+-]\d\d(:?\d\d)?)$"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Date(Column):
    """A column of dates: the feature is the number of days since the mean date in training, computed in float64.

    Args:
      name: The name in the table, not empty.
      has_missing: Whether values were missing in training. If so, a second feature indicates this.
      fill: The mean of the known dates in training, in days since 1970-01-01 UTC, which replaces missing ones.

    Raises:
      ValueError: If an argument is invalid.

    Example:
      >>> from tfr_smooth.columns import Date
      >>> Date(name="day", fill=19000.0).dtype
      tf.int64
    """

    fill: float = 0.0

    kind = "date"
    contains = "dates"
    default_for = ("date", "text")
    accepts = ("date", "text")
    dtype = tf.int64
    ordered = True
    missing_value = int(np.iinfo(np.int64).min)
    empty_type = pa.timestamp("s")

    def __post_init__(self) -> None:
        """Checks the arguments."""
        super().__post_init__()
        object.__setattr__(self, "fill", _arguments.real("fill", self.fill))

    @classmethod
    def reason(cls, values: TrainingValues) -> str:
        """Returns whether these are dates, or all texts are."""
        if values.column.type not in (pa.string(), pa.large_string()):
            return cls.contains
        try:
            for texts in (values.known[:_SAMPLED], values.known):
                _parsed(texts)
        except pa.ArrowInvalid:
            return ""
        return "texts that are all dates"

    @classmethod
    def learn(cls, values: TrainingValues) -> Date:
        """Returns the column of training values."""
        return cls(name=values.name, fill=mean_of(values) / _SECONDS_PER_DAY, has_missing=values.has_missing)

    @classmethod
    def raw(cls, where: Where, values: Any, option: str | None = None) -> Any:
        """Returns dates, also those written in text as in ISO 8601, such as 2026-11-27 or 2026-11-27T08:30:00Z."""
        if not column_values.is_text(values.type):
            return values
        try:
            return _parsed(values)
        except pa.ArrowInvalid as error:
            expected = "dates as in ISO 8601, such as 2026-11-27, for the kind 'date': parse other texts before"
            raise ValueError(f"{where} must be {expected}; {error}.") from None

    @property
    def width(self) -> int:
        """Number of features."""
        return 1 + self.has_missing

    def features(self, values: tf.Tensor, resource: Any) -> tf.Tensor:
        """Returns the features of seconds since 1970-01-01 UTC."""
        days = self.ordered_values(values)
        missing = tf.math.is_nan(days)
        features = tf.where(missing, 0.0, days)[..., tf.newaxis]
        return with_flag(features, missing) if self.has_missing else features

    def ordered_values(self, values: tf.Tensor) -> tf.Tensor:
        """Returns the days since the mean date, float32, NaN if missing, of seconds since 1970-01-01 UTC."""
        missing = tf.equal(values, tf.constant(self.missing_value, values.dtype))
        days = tf.cast(values, tf.float64) / _SECONDS_PER_DAY - tf.constant(self.fill, tf.float64)
        return tf.cast(tf.where(missing, tf.constant(np.nan, tf.float64), days), tf.float32)

    @property
    def description(self) -> str:
        """The raw values, for a model card."""
        return f"seconds since 1970-01-01 UTC; {self.missing_value} is missing"


def _parsed(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns the dates of texts in ISO 8601, in UTC if they have no time zone; "" is missing."""
    texts = pc.utf8_trim_whitespace(column_values.without(texts, pc.equal(texts, "")))
    texts = pc.replace_substring_regex(texts, r"(\.\d{6})\d+", r"\1")
    has_zone, days = pc.match_substring_regex(texts, _ZONE), pa.timestamp("us")
    zoned = column_values.without(texts, pc.invert(has_zone)).cast(pa.timestamp("us", "UTC")).cast(days)
    return pc.coalesce(zoned, column_values.without(texts, has_zone).cast(days))


def with_flag(features: tf.Tensor, missing: tf.Tensor) -> tf.Tensor:
    """Returns features [..., width] with one more: 1 for missing values [...], else 0."""
    return tf.concat([features, tf.cast(missing, tf.float32)[..., tf.newaxis]], axis=-1)
