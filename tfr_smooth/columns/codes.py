"""What columns of ids, sets and texts have in common: their values become codes, for embeddings."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.columns.kinds import Column
from tfr_smooth.data.column_values import TEXTS, value_type
from tfr_smooth.data.reading.checks import Where, id_text, number_text, shown
from tfr_smooth.data.reading.value_types import as_type, numbers_as_text

# Not tuned: limits of memory.
MOST_CODES = 64  # values of a set, or words and word pairs of a text
_DECIMALS = r"^([+-]?\d+)\.0+$"
_MOST_VALUES = 100_000  # with a vector of their own; columns with more are hashed
_MOST_BUCKETS = 2**23  # float32 has all integers up to twice this


class DistinctValues(NamedTuple):
    """The different values of a column, split once.

    Attributes:
      parts: The parts of each different value, such as the words of a text, string [distinct, (parts)].
      places: The different value of each row, [...].
      texts: The different values, string [distinct].
    """

    parts: tf.RaggedTensor
    places: tf.Tensor
    texts: tf.Tensor


class SplitColumn(Column):
    """Base class of columns of texts that have parts, such as words, or are one part each."""

    shared = has_terms = True

    @classmethod
    def raw(cls, where: Where, values: Any, option: str | None = None) -> Any:
        """Returns the values as text, the same for all types of a value."""
        return whole(values) if value_type(values.type) in TEXTS else id_text(where, values)

    @property
    def reads(self) -> str:
        """The type "text" for texts, and "id" for other values, which `as_trained` converts."""
        return "text" if self.type == "text" else "id"

    def as_trained(self, where: Where, values: Any) -> Any:
        """Returns the values in the type of the training: numbers may be written with a fraction of zeros."""
        if self.type == "number":
            is_written = value_type(values.type) in TEXTS  # Float64 does not have all integers.
            return number_text(numbers_as_text(where, values)) if is_written else as_type(where, values, "number")
        return as_type(where, values, "boolean" if self.type == "boolean" else self.reads)

    def split(self, values: tf.Tensor) -> tf.RaggedTensor:
        """Returns the parts [values, (parts)] of strings [values]; empty ones mean nothing."""
        return tf.RaggedTensor.from_tensor(whole_strings(values)[:, tf.newaxis])

    def prepare(self, values: tf.Tensor) -> DistinctValues:
        """Returns the different values, split."""
        distinct, places = tf.unique(tf.reshape(values, [-1]))
        return DistinctValues(self.split(distinct), tf.reshape(places, tf.shape(values)), distinct)


def whole(texts: Any) -> Any:
    """Returns Arrow texts in which whole numbers have no decimals: "7.0" is the id 7 of a column with missing ids."""
    has_decimals = pc.any(pc.match_substring_regex(texts, _DECIMALS)).as_py()
    return pc.replace_substring_regex(texts, _DECIMALS, r"\1") if has_decimals else texts


def whole_strings(values: tf.Tensor) -> tf.Tensor:
    """Returns strings in which whole numbers have no decimals, as `whole`."""
    return tf.strings.regex_replace(values, _DECIMALS, r"\1")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Coded(SplitColumn):
    """Base class of columns whose features are codes: 0 for nothing, 1 for rare and unseen values, then the others.

    Args:
      name: The name in the table, not empty.
      has_missing: Whether values were missing in training.
      categories: The values that have a vector of their own; () if values are hashed, or only told from missing ones.
      length: The most codes of a row, >= 1.
      buckets: The number of values of hashed ones; 0 if they are not hashed.
    """

    categories: tuple[str, ...] = ()
    length: int = 1
    buckets: int = 0

    def __post_init__(self) -> None:
        """Checks the arguments."""
        super().__post_init__()
        texts = checked_categories(self.categories, "unique strings that are not empty")
        object.__setattr__(self, "categories", texts)
        _arguments.integer("length", self.length, least=1)
        _arguments.integer("buckets", self.buckets, least=0)

    @classmethod
    def of_counts(cls, values: pa.Array, numbers: pa.Array, least: int, **options: Any) -> Any:
        """Returns the column of values and how often each occurs.

        Args:
          values: The different values.
          numbers: How often each occurs.
          least: How often a value must occur to have a vector of its own.
          **options: The other arguments of the constructor.
        """
        often = pc.greater_equal(numbers, least)
        values, numbers = values.filter(often), numbers.filter(often)
        if len(values) > _MOST_VALUES:
            return cls(buckets=min(2 ** len(values).bit_length(), _MOST_BUCKETS), **options)
        return cls(categories=most_frequent(values, numbers, _MOST_VALUES), **options)

    @property
    def has_values(self) -> bool:
        """Whether the features tell more than whether a value is missing."""
        return bool(self.categories or self.buckets)

    @property
    def width(self) -> int:
        """Number of features."""
        return self.codes[0]

    @property
    def codes(self) -> list[int]:
        """How many codes there are, and the number of different ones."""
        return [self.length if self.has_values else 1, 2 + (self.buckets or len(self.categories))]

    def resource(self) -> Any:
        """Returns the lookup table; None if values are hashed."""
        return None if self.buckets else lookup_table(self.categories)

    def coded(self, parts: tf.RaggedTensor) -> tf.RaggedTensor:
        """Returns the texts that have codes [values, (codes)] of what `split` returned."""
        return parts

    def features(self, values: DistinctValues, resource: Any) -> tf.Tensor:
        """Returns the codes; if no value has one of its own, 1 for rows with a value, which is the first code."""
        parts = self.coded(values.parts)
        texts = parts.values
        if self.buckets:
            codes = 2 + tf.strings.to_hash_bucket_fast(texts, self.buckets)
        else:
            codes = tf.cast(2 + resource.lookup(texts), tf.int64)  # 1 for unseen values
        codes = tf.cast(tf.where(tf.equal(texts, ""), tf.zeros([], tf.int64), codes), tf.float32)
        return tf.gather(parts.with_values(codes).to_tensor(shape=[None, self.codes[0]]), values.places)


def most_frequent(values: pa.Array, numbers: pa.Array, most: int) -> tuple[str, ...]:
    """Returns the most frequent values, ties in the order of the text."""
    counts = {value: number for value, number in zip(values.to_pylist(), numbers.to_pylist(), strict=True) if value}
    return tuple(sorted(counts, key=lambda value: (-counts[value], value))[:most])


def checked_categories(values: Any, expected: str, least: int = 0) -> tuple[str, ...]:
    """Returns unique texts that are not empty, at least some."""
    texts = () if isinstance(values, str) else tuple(values)
    fits = all(isinstance(text, str) and text for text in texts) and len(set(texts)) == len(texts)
    if not fits or len(texts) < least or isinstance(values, str):
        raise ValueError(f"`categories` must be {expected}, got {shown(values)}.")
    return texts


def lookup_table(categories: Sequence[str]) -> tf.lookup.StaticHashTable:
    """Returns a table from the text of a category to its index, -1 for other text."""
    categories = categories or [""]  # TensorFlow has no empty tables
    with tf.init_scope():
        texts, places = tf.constant(list(categories), tf.string), tf.range(len(categories), dtype=tf.int32)
        # A table without a name shares nothing with others.
        return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(texts, places), -1)
