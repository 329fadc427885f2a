"""Columns of vectors, and of texts that an encoder maps to vectors."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.columns import date, kinds
from tfr_smooth.data.column_values import ColumnValues

_SAMPLED = 2**12  # vectors whose scale is computed; not tuned


@dataclasses.dataclass(frozen=True, kw_only=True)
class Vector(kinds.Column):
    """A column of vectors: the features are their numbers divided by `scale`, 0 for missing ones.

    Args:
      name: The name in the table, not empty.
      has_missing: Whether values were missing in training. If so, a last feature indicates this.
      length: The numbers of a vector, >= 1.
      scale: What the numbers are divided by, > 0.

    Raises:
      ValueError: If an argument is invalid.

    Example:
      >>> from tfr_smooth.columns import Vector
      >>> Vector(name="image", length=3, has_missing=True).width
      4
    """

    length: int = 1
    scale: float = 1.0

    kind = "vector"
    contains = "vectors"
    default_for: ClassVar[tuple[str, ...]] = ("vector",)
    accepts = ("vector",)
    dtype = tf.float32
    missing_value: ClassVar[Any] = np.nan

    def __post_init__(self) -> None:
        """Checks the arguments."""
        super().__post_init__()
        _arguments.integer("length", self.length, least=1)
        _arguments.real("scale", self.scale, above=0.0)

    @classmethod
    def learn(cls, values: kinds.TrainingValues) -> Vector:
        """Returns the column of training values."""
        known = np.flatnonzero(~values.is_missing)
        vectors = ColumnValues(values.column)(known[:: len(values.column) // _SAMPLED + 1])
        scale = float(np.sqrt(np.nanmean(np.square(vectors, dtype=np.float64)))) or 1.0
        return cls(name=values.name, has_missing=values.has_missing, length=vectors.shape[1], scale=scale)

    @property
    def empty_type(self) -> Any:
        """The type of values that are all missing."""
        return pa.list_(pa.float32(), self.length)

    @property
    def shape(self) -> list[int]:
        """The shape of the raw value of a row."""
        return [self.length]

    @property
    def width(self) -> int:
        """Number of features."""
        return self.length + self.has_missing

    @property
    def vector(self) -> list[int]:
        """How many features are not to be normalized."""
        return [self.length]

    def features(self, values: tf.Tensor, resource: Any) -> tf.Tensor:
        """Returns the features of vectors [..., length], NaN if missing; of texts, those of the encoder."""
        absent = tf.math.is_nan(values)
        features = tf.where(absent, 0.0, values) / self.scale
        return date.with_flag(features, tf.reduce_all(absent, axis=-1)) if self.has_missing else features


@dataclasses.dataclass(frozen=True, kw_only=True)
class Encoded(Vector):
    """A column of texts that an encoder, which is not trained, maps to vectors; 0 for missing texts.

    Args:
      name: The name in the table, not empty.
      has_missing: Whether values were missing in training. If so, a last feature indicates this.
      length: The numbers of a vector, >= 1.
      scale: What the numbers are divided by, > 0.

    Raises:
      ValueError: If an argument is invalid.

    Example:
      >>> from tfr_smooth.columns import Encoded
      >>> Encoded(name="title", length=3).width
      3
    """

    kind = "encoded"
    is_encoded = True
    contains = "text"
    reads = "text"
    default_for = ()
    accepts = ("text",)
    dtype = tf.string
    missing_value = ""
    empty_type = pa.large_string()
    shape = []

    @classmethod
    def learn(cls, values: kinds.TrainingValues) -> Encoded:
        """Returns the column of training values; the option is the length."""
        return cls(name=values.name, has_missing=values.has_missing, length=int(values.option or 0))
