"""What a column of a table is: its kind, how the kind is inferred, and what every kind of column brings."""

from __future__ import annotations

import abc
import dataclasses
import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf

from tfr_smooth import _arguments, _serialization
from tfr_smooth._arguments import printable
from tfr_smooth.data.column_values import ColumnValues, value_type
from tfr_smooth.data.reading.checks import Where, refuse, vectors_of_one_length
from tfr_smooth.data.reading.value_types import as_type

KINDS: dict[str, type[Column]] = {}  # by name; each class adds itself
_MOST_LISTED = 20  # Longer lists of names would hide the rest of a message, or the other columns of a model card.
# Not tuned: they tell texts from names and ids in the tables of the tests.
_WORDS = 2.5  # words per value of a column of text, at least
_SAMPLED = 2**12  # rows whose words are counted
_COUNTED = 2**16  # rows whose different numbers are counted
_WITHOUT_BLANKS = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_LETTERS = 3.0  # of these scripts, for each word; names of people and places have fewer
_ID_NAME = r"(^|[\W_])(id|uid|uuid|guid|sku|asin|isbn|ean|gtin|upc)$"  # of a name in small letters


class NoKnownValues(ValueError):
    """A column has only missing values."""


class TrainingValues:
    """The values of a column in the training rows, from which a kind learns.

    Args:
      name: The name of the column.
      column: The values, as `Column.raw` returns them.
      max_categories: The most values of a category of unknown kind.
      option: What follows the kind in the argument `kinds`, such as "|" in "set:|"; None if it was inferred, "" for
        nothing.

    Raises:
      NoKnownValues: If all are missing.
    """

    def __init__(self, name: str, column: pa.ChunkedArray, max_categories: int, option: str | None = None) -> None:
        self.name, self.column, self.max_categories, self.option = name, column, max_categories, option
        if self.is_missing.all():
            raise NoKnownValues(f"column {name!r} must have known values, got only missing ones.")

    @functools.cached_property
    def is_missing(self) -> np.ndarray:
        """Whether each value is missing, [rows]."""
        absent = pc.is_null(self.column, nan_is_null=True)
        if value_type(self.column.type) == "text":
            absent = pc.or_kleene(absent, pc.equal(self.column, ""))
        return absent.to_numpy()

    @property
    def has_missing(self) -> bool:
        """Whether a value is missing."""
        return bool(self.is_missing.any())

    @functools.cached_property
    def known(self) -> pa.ChunkedArray:
        """The values that are not missing."""
        return self.column.filter(pa.array(~self.is_missing)) if self.has_missing else self.column

    @functools.cached_property
    def counts(self) -> tuple[pa.Array, pa.Array]:
        """The different values and how often each occurs."""
        return counts_of(self.known)

    @property
    def is_category(self) -> bool:
        """Whether there are few different texts."""
        return len(self.counts[0]) <= self.max_categories

    @functools.cached_property
    def are_ids(self) -> bool:
        """Whether these are whole numbers beyond 64 bits, or of a column whose last word says that they are ids."""
        if pa.types.is_decimal(self.column.type) and pc.max(pc.abs(self.known.cast(pa.float64()))).as_py() >= 2.0**63:
            return pc.all(pc.equal(self.known, pc.round(self.known))).as_py()
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.name).lower()  # of names such as productId
        if not re.search(_ID_NAME, words) or value_type(self.column.type) != "number":
            return False
        return pa.types.is_integer(self.column.type) or pc.all(pc.equal(self.known, pc.round(self.known))).as_py()

    @property
    def different(self) -> int | None:
        """The number of different values, of numbers and dates in a sample; None for vectors and sets."""
        taken, known = value_type(self.column.type), self.known
        if taken == "text":
            return len(self.counts[0])
        if taken in ("vector", "set"):  # Arrow does not count these.
            return None
        count = pc.count_distinct(known.take(np.arange(0, len(known), len(known) // _COUNTED + 1))).as_py()
        return count if count > 1 else pc.count_distinct(known).as_py()  # a rare value may be in no sample


def has_words(texts: pa.ChunkedArray, least: float = _WORDS) -> bool:
    """Returns whether values are texts with several words each, at least so many in the mean."""
    if value_type(texts.type) != "text":
        return False
    sample = texts[:_SAMPLED]
    blanks, letters = (pc.count_substring_regex(sample, pattern) for pattern in (r"\S\s+\S", _WITHOUT_BLANKS))
    words = pc.add(pc.add(blanks, 1), pc.divide(letters, _LETTERS))
    return (pc.mean(words).as_py() or 0.0) >= least


def counts_of(values: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """Returns the different values and how often each occurs."""
    counts = pc.value_counts(values)
    return counts.field(0), counts.field(1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Column(_serialization.Configurable, abc.ABC):
    """One column of a table: its kind, and what was learned of it from the training table.

    A kind is one subclass in a module of its own, which `columns/__init__.py` imports.

    Args:
      name: The name in the table, not empty.
      has_missing: Whether values were missing in training. If so, the column has a feature that indicates this.
      type: The type of its values in training, by which others are read: "number", "boolean", "text", "date", "vector"
        or "set"; "" if it is unknown.
      reason: Why it has this kind.
      values: The number of different values in training, of numbers and dates in a sample of 65,536 rows; None for
        vectors and sets.
      missing: The fraction of missing values in training.

    Raises:
      ValueError: If an argument is invalid.

    Example:
      >>> from tfr_smooth import columns
      >>> issubclass(columns.Date, columns.Column), columns.Date(name="day").get_config()["fill"]
      (True, 0.0)
    """

    name: str
    has_missing: bool = False
    type: str = dataclasses.field(default="", compare=False)
    reason: str = dataclasses.field(default="", compare=False)
    values: int | None = dataclasses.field(default=None, compare=False)
    missing: float = dataclasses.field(default=0.0, compare=False)

    kind: ClassVar[str]  # the name of the kind
    contains: ClassVar[str]  # what a table has in such a column, for messages
    raw_values: ClassVar[str] = ""  # what a model takes, for a model card; "" for what the table has
    default_for: ClassVar[tuple[str, ...]] = ()  # the types of values, as of `value_type`, from which it is inferred
    accepts: ClassVar[tuple[str, ...]]  # the types of values that it takes
    dtype: ClassVar[tf.DType] = tf.string
    missing_value: ClassVar[Any] = ""  # the raw value that means missing
    empty_type: ClassVar[Any] = pa.large_string()  # of values that are all missing
    ordered: ClassVar[bool] = False  # whether the values have ranks
    shared: ClassVar[bool] = False  # whether documents may have equal values: these have statistics, and shares
    stacked: ClassVar[bool] = False  # whether the raw values are numbers, of which a layer takes all columns at once
    has_terms: ClassVar[bool] = False  # whether `prepare` splits texts, whose parts matches and statistics compare
    several: ClassVar[bool] = False  # whether a value that documents share may have several parts
    has_numbers: ClassVar[bool] = False  # whether numbers of a text may be further features
    one_hot: ClassVar[bool] = False  # whether each value has a feature, which trees take as codes
    is_encoded: ClassVar[bool] = False  # whether an encoder maps the values to vectors
    # These may depend on what was learned: some kinds have them as properties.
    option: ClassVar[Any] = None  # with which `raw` was called
    reads: ClassVar[Any] = "id"  # by which readers of files take the values, as in the argument `types`
    shape: ClassVar[Any] = []  # of the raw value of a row
    codes: ClassVar[Any] = []  # if the features are codes, how many, and the number of different codes
    vector: ClassVar[Any] = []  # if features are not to be normalized, how many at the start
    has_values: ClassVar[Any] = True  # whether the features tell more than whether a value is missing

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Registers a kind."""
        super().__init_subclass__(**kwargs)
        if "kind" in cls.__dict__:
            KINDS[cls.kind] = _serialization.register(cls)

    def __post_init__(self) -> None:
        """Checks the arguments."""
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"`name` must be a string that is not empty, got {self.name!r}.")
        _arguments.boolean("has_missing", self.has_missing)

    @classmethod
    def reason_for(cls, values: TrainingValues) -> str:
        """Returns why this kind is inferred from values of a type in `default_for`; "" if it is not.

        Of several kinds, the first in `KINDS` is taken.
        """
        return cls.contains

    @classmethod
    @abc.abstractmethod
    def learn(cls, values: TrainingValues) -> Column:
        """Returns the column of training values."""

    @classmethod
    def raw(cls, where: Where, values: Any, option: str | None = None) -> Any:
        """Returns checked Arrow values in the type in which the layer takes them, such as ids as text.

        Args:
          where: Names the column, for messages.
          values: The values, of an accepted type.
          option: As for `TrainingValues`.
        """
        return values

    def as_trained(self, where: Where, values: Any) -> Any:
        """Returns checked Arrow values in the type of the training, or refuses the first one that has no equal one."""
        return as_type(where, values, self.reads)

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """Number of features."""

    def resource(self) -> Any:
        """Returns what the layer holds for this column, such as a lookup table; None for nothing."""
        return None

    def prepare(self, values: tf.Tensor) -> Any:
        """Returns what `features` and matches compute from raw values [..., *shape] in common."""
        return values

    def features(self, values: Any, resource: Any) -> tf.Tensor:
        """Returns the features.

        Args:
          values: What `prepare` returned.
          resource: What `resource` returned.

        Returns:
          float32 [..., width].
        """
        raise NotImplementedError

    def ordered_values(self, values: tf.Tensor) -> tf.Tensor:
        """Returns the numbers that have ranks, float32 [...], NaN if missing, of the raw values [...] of a column."""
        raise NotImplementedError

    @property
    def description(self) -> str:
        """The raw values, for a model card."""
        return f"{self.raw_values or self.contains}; {self.missing_value!r} is missing"


class Columns(tuple[Column, ...]):
    """The columns of a table. Print them for a table of their kinds, and why they have these.

    Example:
      >>> from tfr_smooth.columns import Columns, Number
      >>> print(Columns([Number(name="price", reason="numbers", values=70, missing=0.1)]))
      column  kind    values  missing  reason
      price   number      70      10%  numbers
    """

    def __str__(self) -> str:
        """Returns the table, a line for each column."""
        rows = [("column", "kind", "values", "missing", "reason")]
        for column in self:
            values = "" if column.values is None else f"{column.values:,}"
            rows.append((printable(column.name), column.kind, values, f"{column.missing:.0%}", column.reason))
        first, second, third, fourth, _ = (max(map(len, cells)) for cells in zip(*rows, strict=True))
        return "\n".join(f"{a:<{first}}  {b:<{second}}  {c:>{third}}  {d:>{fourth}}  {e}" for a, b, c, d, e in rows)


def learn_column(
    name: str,
    values: Any,
    *,
    rows: np.ndarray | None = None,
    max_categories: int = 100,
    kind: str | None = None,
    reason: str = "`kinds`",
) -> tuple[Column, Any]:
    """Learns a column, in one pass: its kind, its raw values, and what the kind learns from the training rows.

    Args:
      name: The name.
      values: The Arrow values, as checked by a reader.
      rows: The training rows. None for all.
      max_categories: The most values of a category of unknown kind.
      kind: The kind, possibly with ":" and an option. None infers it.
      reason: What says the kind, if it is given.

    Returns:
      The column, and the raw values of all rows.

    Raises:
      ValueError: If the values are not those of a kind, or none is known in the training rows. The message names the
        column.
    """
    where = Where(f"column {name!r}")
    values = vectors_of_one_length(values)  # readers of files see parts of a column only
    taken = value_type(values.type)
    if taken in ("", "bytes"):
        raise ValueError(f"{where} must be numbers, booleans, text or dates, got the type {values.type}.")

    def training(raw: Any, option: str | None) -> TrainingValues:
        return TrainingValues(name, raw if rows is None else raw.take(pa.array(rows)), max_categories, option)

    if kind is None:
        option, given = None, training(values, None)
        reasons = ((other, other.reason_for(given)) for other in KINDS.values() if taken in other.default_for)
        cls, reason = next((other, why) for other, why in reasons if why)
    else:
        kind, _, option = str(kind).partition(":")
        cls = KINDS[_arguments.choice(f"kinds[{name!r}]", kind, sorted(KINDS))]
        if taken not in cls.accepts:
            others = sorted(name for name, other in KINDS.items() if taken in other.accepts and name != "encoded")
            raise ValueError(
                f"{where} must have {cls.contains} for the kind {kind!r}, got the type {values.type}, which the kinds "
                f"{listed(others)} take: convert the column, or change its kind."
            )
        given = training(values, option)
    different, raw = given.different, cls.raw(where, values, option)
    given = given if raw is values else training(raw, option)
    column, missing = cls.learn(given), float(given.is_missing.mean())
    reason += "" if column.has_values else "; no embedding, since each value is rare"
    return dataclasses.replace(column, type=taken, reason=reason, values=different, missing=missing), raw


def raw_values(column: Column, values: Any) -> Any:
    """Returns the raw values of a known column in another table, read by the type of the training.

    Args:
      column: The column.
      values: The Arrow values, as checked by a reader.

    Returns:
      The values in the type of the column; if all are missing, of any type.

    Raises:
      ValueError: If a value is of another type. The message names the column and the row.
    """
    where = Where(f"column {column.name!r}")
    if column.shape:
        values = vectors_of_one_length(values)
    taken = value_type(values.type)
    if taken != column.type:
        values = column.as_trained(where, values)
        taken = value_type(values.type)
    if taken in column.accepts and (taken != "vector" or [values.type.list_size] == column.shape or not column.shape):
        return column.raw(where, values, column.option)
    row = pc.index(pc.invert(pc.is_null(values, nan_is_null=True)), True).as_py()
    if row < 0:
        return pa.chunked_array([pa.nulls(len(values), column.empty_type)])
    if taken in column.accepts:
        raise ValueError(f"{where} must be vectors of {column.shape[0]} numbers, got {values.type.list_size}.")
    refuse(where, column.contains, values[row], row)


def raw_array(column: Column, values: Any) -> np.ndarray:
    """Returns the raw values of a known column [rows, ...] as NumPy values; the rest is as for `raw_values`."""
    raw = raw_values(column, values)
    return ColumnValues(raw if isinstance(raw, pa.ChunkedArray) else pa.chunked_array([raw]))(np.arange(len(raw)))


def types_of_kinds(kinds: Mapping[str, Any]) -> dict[str, str]:
    """Returns the types by which readers of files take columns of given kinds, before anything is learned of them."""
    by_content = {str(name): str(kind) for name, kind in kinds.items() if kind not in ("category", "id")}
    typed = ("number", "boolean", "date")
    return {name: kind if kind.partition(":")[0] in typed else "id" for name, kind in by_content.items()}


def check_names(names: Sequence[str], columns: Sequence[Column]) -> None:
    """Checks that a table has columns.

    Args:
      names: The names of the columns of the table.
      columns: The columns that it must have.

    Raises:
      ValueError: If one is missing.
    """
    known, own = set(names), {column.name for column in columns}
    for name in (column.name for column in columns if column.name not in known):
        hint = _arguments.hint(name, [other for other in names if other not in own])
        raise ValueError(f"The table must have the column {name!r}, got the columns {listed(names)}.{hint}")


def listed(names: Sequence[Any]) -> str:
    """Returns names for a message; of many, the first ones."""
    first, more = ", ".join(map(repr, names[:_MOST_LISTED])), len(names) - _MOST_LISTED
    return f"[{first} and {more:,} more]" if more > 0 else f"[{first}]"
