"""Columns of dates and times."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from tfr_smooth.columns import kinds, number
from tfr_smooth.data.column_values import TEXTS, value_type
from tfr_smooth.data.reading import checks, value_types

_SECONDS_PER_DAY = 86400.0
_SAMPLED = 2**12  # texts that are parsed first; not tuned
_WRITTEN = re.compile(
    r"(?=\d{4}\D|\d\d?\D\d\d?\D\d\d)(\d+)([./-])(\d\d?)\2(\d{4}|\d\d?)(?=\D|$)([ T]\d\d?:\d\d(:\d\d)?$)?"
)
_LIKE_DATES = 0.9  # of different texts, so many; not tuned


@dataclasses.dataclass(frozen=True, kw_only=True)
class Date(number.Filled):
    """A column of dates: the feature is the number of days since the mean date in training, computed in float64.

    Args:
      name: The name in the table, not empty.
      has_missing: Whether values were missing in training. If so, a second feature indicates this.
      fill: The mean of the known dates in training, in days since 1970-01-01 UTC, which replaces missing ones.
      format: The format of dates in text, as of `strptime`; "" for ISO 8601.

    Raises:
      ValueError: If an argument is invalid.

    Example:
      >>> from tfr_smooth.columns import Date
      >>> Date(name="day", fill=19000.0).dtype
      tf.int64
    """

    format: str = ""

    kind = "date"
    contains = "dates"
    raw_values = "seconds since 1970-01-01 UTC"
    default_for = ("date", "text")
    accepts = ("date", "text")
    dtype = tf.int64
    missing_value = int(np.iinfo(np.int64).min)
    empty_type = pa.timestamp("s")

    @classmethod
    def reason_for(cls, values: kinds.TrainingValues) -> str:
        """Returns whether these are dates, or all texts are."""
        if values.column.type not in (pa.string(), pa.large_string()):
            return cls.contains
        return "texts that are all dates" if are_dates(values.known) else ""

    @classmethod
    def learn(cls, values: kinds.TrainingValues) -> Date:
        """Returns the column of training values."""
        fill = number.mean_of(values) / _SECONDS_PER_DAY
        return cls(name=values.name, fill=fill, has_missing=values.has_missing, format=values.option or "")

    @classmethod
    def raw(cls, where: checks.Where, values: Any, option: str | None = None) -> Any:
        """Returns dates, also those written in text: in the format that is the option, or as in ISO 8601."""
        return value_types.parsed_dates(where, values, option or "") if value_type(values.type) in TEXTS else values

    @property
    def option(self) -> str:
        """The format."""
        return self.format

    @property
    def reads(self) -> str:
        """The kind, with the format."""
        return f"date:{self.format}" if self.format else "date"

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


def are_dates(texts: pa.ChunkedArray) -> bool:
    """Returns whether all texts are dates in ISO 8601."""
    try:
        for part in (texts[:_SAMPLED], texts):  # most texts are no dates
            dates = value_types.iso_dates(value_types.known_words(part))
    except pa.ArrowInvalid:
        return False
    return dates.null_count < len(dates)


def with_flag(features: tf.Tensor, missing: tf.Tensor) -> tf.Tensor:
    """Returns features [..., width] with one more: 1 for missing values [...], else 0."""
    return tf.concat([features, tf.cast(missing, tf.float32)[..., tf.newaxis]], axis=-1)


def date_format_of(texts: Any) -> str:
    """Returns the format of different texts that look like dates, the day first if both can be; "" for others."""
    dates = [date.groups() for date in map(_WRITTEN.match, texts.to_pylist()) if date]
    if not dates or len(dates) < _LIKE_DATES * len(texts):
        return ""
    first, second = (max(int(date[place]) for date in dates) for place in (0, 2))
    separator, year = dates[0][1], "%Y" if max(len(date[3]) for date in dates) == 4 else "%y"
    time, seconds = dates[0][4:]
    time = (time[0] + "%H:%M" + (":%S" if seconds else "")) if time else ""
    if len(dates[0][0]) == 4:
        return separator.join(["%Y", "%m", "%d"]) + time
    return separator.join(["%m", "%d", year] if second > 12 and first <= 12 else ["%d", "%m", year]) + time
