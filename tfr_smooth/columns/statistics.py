"""What columns tell of labels: the mean labels and the numbers of documents of ids, and which numbers of texts."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf

from tfr_smooth import _serialization
from tfr_smooth.columns.codes import DistinctValues, checked_categories, lookup_table
from tfr_smooth.columns.kinds import Column
from tfr_smooth.columns.set import split_sets
from tfr_smooth.columns.text import NUMBERS, numbers_of
from tfr_smooth.data.column_values import varying, without
from tfr_smooth.data.lists import Lists

WIDTH = 2  # features of a statistic
# Not tuned, except that of the strengths the training set selects one.
_PARTS = 10  # of the training queries
_STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
# A statistic must explain this fraction of the labels' variance, by this many standard errors over queries.
_LEAST_FRACTION, _LEAST_ERRORS = 1e-4, 2.0
_MOST_VALUES = 100_000
# A number of texts, which is a feature of its own, must explain more, but by one standard error over parts: on training
# queries, so CrowdFlower and WikiQA have some, and Eurovision and MovieLens none.
_LEAST_FRACTION_OF_NUMBERS = 1e-3
_TEXTS_AT_ONCE = 2**12
_JOINT = "\x1f"


@_serialization.register
@dataclasses.dataclass(frozen=True, kw_only=True)
class Statistic(_serialization.Configurable):
    r"""The mean label and the number of the training documents with a value, or with a pair of values.

    $$\left(\frac{\sum_{i \in D_v} (y_i - \bar{y}_{q_i})}{|D_v| + s}, \; \log (1 + |D_v|)\right)$$

    of the documents $D_v$ with the value $v$, where $\bar{y}_q$ is the mean label of a list and $s$ the strength of the
    shrinkage to 0. Both are 0 for values that training did not have. A row with several values has their mean.

    Args:
      columns: The name of a column, or the names of two, whose values are crossed to pairs.
      values: The values, for pairs the number of bytes of the first one, "\x1f" and both.
      means: The shrunk mean of each value.
      counts: The number of training documents of each value.

    Raises:
      ValueError: If the arguments have not the same length, at least 1.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.columns import Id, Statistic, TableFeatures
      >>> statistic = Statistic(columns=("host",), values=("a", "b"), means=(0.5, -0.1), counts=(3, 9))
      >>> layer = TableFeatures([Id(name="host", categories=("b",))], statistics=[statistic])
      >>> print(layer({"host": tf.constant(["a", "unseen"])}).numpy().round(3))
      [[1.    0.5   1.386]
       [1.    0.    0.   ]]
    """

    columns: tuple[str, ...]
    values: tuple[str, ...]
    means: tuple[float, ...]
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        """Checks the arguments."""
        for name in ("columns", "means", "counts"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "values", checked_categories(self.values, "unique strings", least=1))
        if len({len(self.values), len(self.means), len(self.counts)}) > 1:
            got = f"{len(self.values)}, {len(self.means)} and {len(self.counts)}"
            raise ValueError(f"`values`, `means` and `counts` must have the same length, got {got}.")

    @property
    def name(self) -> str:
        """The names of the columns, as text."""
        return " x ".join(self.columns)

    @functools.cached_property
    def _table(self) -> np.ndarray:
        """The features of each value, those of other values first."""
        known = np.stack([self.means, np.log1p(self.counts)], axis=1)
        return np.concatenate([np.zeros([1, WIDTH]), known]).astype(np.float32)

    def resource(self) -> Any:
        """Returns the lookup table of the values."""
        return lookup_table(self.values)

    def features(self, values: Sequence[DistinctValues], resource: Any) -> tf.Tensor:
        """Returns the features of rows.

        Args:
          values: The values [...] of each column, as of its `prepare`.
          resource: What `resource` returned.

        Returns:
          float32 [..., 2].
        """
        if len(values) == 1:
            return tf.gather(self._mean(values[0].parts.to_tensor(), resource), values[0].places)
        first, second = (side.parts.to_tensor() for side in values)
        # With its length, the first value ends at one place only, whatever the values contain.
        first = tf.where(tf.equal(first, ""), "", tf.strings.as_string(tf.strings.length(first)) + _JOINT + first)
        first = tf.gather(first, values[0].places)[..., :, tf.newaxis]
        second = tf.gather(second, values[1].places)[..., tf.newaxis, :]
        joint = tf.where(tf.equal(first, "") | tf.equal(second, ""), "", first + second)
        return self._mean(tf.reshape(joint, tf.concat([tf.shape(joint)[:-2], [-1]], axis=0)), resource)

    def _mean(self, values: tf.Tensor, resource: Any) -> tf.Tensor:
        """Returns the mean features [..., 2] of values [..., n], "" for none."""
        is_known = tf.cast(tf.not_equal(values, ""), tf.float32)[..., tf.newaxis]
        total = tf.reduce_sum(tf.gather(self._table, 1 + resource.lookup(values)) * is_known, axis=-2)
        return tf.math.divide_no_nan(total, tf.reduce_sum(is_known, axis=-2))


def learn_statistics(
    columns: Sequence[Column],
    raw: Mapping[str, pa.ChunkedArray],
    lists: Lists,
    crosses: Sequence[Sequence[str]] = (),
    *,
    order: np.ndarray | None = None,
) -> tuple[list[Statistic], np.ndarray]:
    """Learns the statistics of ids, categories, sets and crosses that predict labels of other queries.

    The training queries are divided into parts. A training document has the statistics of the other parts: so they know
    neither its label nor those of its list. Their squared error selects the strength of the shrinkage, and a statistic
    without signal is left out. So is a column that is the same in each list, which cannot change an order.

    Args:
      columns: The columns.
      raw: Their raw values, of all rows.
      lists: The training lists.
      crosses: Pairs of names of columns.
      order: The order of the lists whose runs are the parts, as for `parts_of_queries`. None is that of the table.

    Returns:
      The statistics, and the features of all rows, float32 [rows, 2 * statistics].

    Raises:
      ValueError: If a cross is no pair of different columns of ids, categories or sets.

    Time O(values * strengths), memory O(values), one column at a time.
    """
    kept, matrices, by_name = [], [], {column.name: column for column in columns if column.shared}
    for pair in crosses:
        if isinstance(pair, str) or len(set(pair)) != 2 or len(pair) != 2 or not set(pair) <= set(by_name):
            expected = f"pairs of names of feature columns of ids, categories or sets, {[*by_name]}"
            raise ValueError(f"`crosses` must be {expected}, got {pair!r}.")
    rows = _Rows.of(lists, order)
    # The features of a category of two values are as good as a statistic.
    binary = [name for name, column in by_name.items() if column.one_hot and column.width - column.has_missing <= 2]
    alone = [(name,) for name in by_name if name not in binary]
    for names in [*alone, *map(tuple, crosses)]:
        # Those that are the same in each list cannot change an order.
        if rows is None or not any(len(varying(_codes(raw[name])[0][lists.rows], lists.lengths)) for name in names):
            continue
        values = _occurrences(by_name[names[0]], raw[names[0]])
        if len(names) == 2:
            values = _pairs(values, _occurrences(by_name[names[1]], raw[names[1]]), len(rows.part))
        if (learned := _learn(names, values, rows)) is not None:
            kept.append(learned[0])
            matrices.append(learned[1])
        lists.release()
    return kept, np.concatenate(matrices, axis=1) if kept else np.zeros([len(lists.source), 0], np.float32)


def with_numbers(
    columns: Sequence[Column],
    raw: Mapping[str, pa.ChunkedArray],
    lists: Lists,
    *,
    order: np.ndarray | None = None,
) -> list[Column]:
    """Returns the columns, those of text with the numbers that predict labels of other queries.

    The slope of a line from the number to the label, both minus their means in the list, is learned from the other
    parts of the queries, as of `learn_statistics`. A number stays if the squared error is clearly less than without it.

    Args:
      columns: The columns.
      raw: Their raw values, of all rows.
      lists: The training lists.
      order: As for `learn_statistics`.
    """
    rows, learned = _Rows.of(lists, order), list(columns)
    for place, column in enumerate(columns):
        if rows is None or not column.has_numbers:
            continue
        codes, texts = _codes(raw[column.name])
        numbers = np.zeros([len(texts) + 1, len(NUMBERS)])  # the last row is that of missing texts
        for first in range(0, len(texts), _TEXTS_AT_ONCE):
            part = tf.constant(texts[first : first + _TEXTS_AT_ONCE].to_pylist(), tf.string)
            numbers[first : first + len(part)] = numbers_of(part, [*NUMBERS])
        values, target = numbers[codes[rows.in_order]], rows.target[rows.in_order]
        values -= np.repeat(np.add.reduceat(values, rows.starts) / lists.lengths[:, np.newaxis], lists.lengths, axis=0)
        in_parts = np.eye(rows.parts)[rows.part[rows.in_order]].T
        products, squares = in_parts @ (values * target[:, np.newaxis]), in_parts @ np.square(values)
        slopes = (products.sum(axis=0) - products) / np.maximum(squares.sum(axis=0) - squares, 1e-9)
        gains = slopes * (2.0 * products - slopes * squares)
        least = _LEAST_FRACTION_OF_NUMBERS * np.square(target).sum(), np.sqrt(np.square(gains).sum(axis=0))
        chosen = tuple(np.array([*NUMBERS])[gains.sum(axis=0) > np.maximum(*least)].tolist())
        if chosen:
            reason = f"{column.reason}; also {', '.join(chosen)}"
            learned[place] = dataclasses.replace(column, numbers=chosen, reason=reason)  # type: ignore[call-arg]
        lists.release()
    return learned


def parts_of_queries(order: np.ndarray, parts: int) -> np.ndarray:
    """Returns the part of each query, from 0 on: runs of about the same length.

    Args:
      order: The place of each query in an order, different numbers [queries].
      parts: The number of parts.
    """
    return np.argsort(np.argsort(order)) * parts // len(order)


def mean_labels(lists: Lists) -> np.ndarray:
    """Returns the weighted mean label of each document; of clicks, divided by their propensity."""
    weights = lists.roles.label_weights or [1.0] * len(lists.roles.labels)
    labels = np.average([lists.values(name) for name in lists.roles.labels], axis=0, weights=weights)
    return labels if lists.roles.propensity is None else labels / lists.values(lists.roles.propensity)


class _Rows(NamedTuple):
    """The rows of the table, of which only some are in training.

    Attributes:
      part: The part of the query of each row; the number of parts for those that are not in training.
      parts: The number of parts.
      target: The label minus the mean label of the list; 0 for others.
      in_order: The training rows by query.
      starts: The place of the first one of each query.
    """

    part: np.ndarray
    parts: int
    target: np.ndarray
    in_order: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, lists: Lists, order: np.ndarray | None) -> _Rows | None:
        """Returns the rows of training lists, whose parts are runs of an order; None if there are not two queries."""
        if len(lists) < 2 or not lists.roles.labels:
            return None
        labels = mean_labels(lists)
        means = np.add.reduceat(labels, lists.starts[:-1]) / lists.lengths
        count, parts, rows = len(lists.source), min(_PARTS, len(lists)), lists.rows
        part, target = np.full(count, parts), np.zeros(count)
        of_query = parts_of_queries(np.arange(len(lists)) if order is None else order, parts)
        part[rows] = of_query[lists.query_of_document]
        target[rows] = labels - np.repeat(means, lists.lengths)
        return cls(part, parts, target, rows, lists.starts[:-1])


class _Occurrences(NamedTuple):
    """The values of rows: for each value of a row, in the order of the rows, its code and the row."""

    codes: np.ndarray
    rows: np.ndarray
    texts: pa.Array  # of the codes


def _codes(texts: pa.ChunkedArray) -> tuple[np.ndarray, pa.Array]:
    """Returns the codes of texts, -1 for missing ones, and the different texts."""
    texts = texts.cast(pa.large_string())
    encoded = without(texts, pc.equal(texts, "")).combine_chunks().dictionary_encode()
    return encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary


def _occurrences(column: Column, texts: pa.ChunkedArray) -> _Occurrences:
    """Returns the values of a column, as its `split` returns them."""
    rows = np.arange(len(texts))
    if column.several:
        lengths, texts = split_sets(texts, column.option)
        rows = np.repeat(rows, pc.fill_null(lengths, 0).to_numpy())
    codes, different = _codes(texts)
    return _Occurrences(codes[codes >= 0], rows[codes >= 0], different)


def _pairs(first: _Occurrences, second: _Occurrences, count: int) -> _Occurrences:
    """Returns the pairs of values of two columns of this number of rows."""
    lengths = np.bincount(second.rows, minlength=count)
    starts, times = np.cumsum(lengths) - lengths, lengths[first.rows]
    left = np.repeat(np.arange(len(first.rows)), times)
    rows = first.rows[left]
    right = starts[rows] + np.arange(len(left)) - np.repeat(np.cumsum(times) - times, times)
    number = max(1, len(second.texts))
    different, codes = np.unique(first.codes[left] * number + second.codes[right], return_inverse=True)
    texts = [side.texts.take(pa.array(of)) for side, of in zip((first, second), divmod(different, number), strict=True)]
    lengths = pc.binary_length(texts[0]).cast(pa.large_string())
    parts = lengths, pa.scalar(_JOINT, pa.large_string()), *texts, pa.scalar("", pa.large_string())
    return _Occurrences(codes, rows, pc.binary_join_element_wise(*parts))


def _learn(names: tuple[str, ...], values: _Occurrences, rows: _Rows) -> tuple[Statistic, np.ndarray] | None:
    """Returns a statistic and the features of all rows; None without signal."""
    part, target = rows.part[values.rows], rows.target[values.rows]
    is_training = part < rows.parts
    totals = np.bincount(values.codes[is_training], minlength=len(values.texts))
    kept = np.argsort(-totals, kind="stable")[: min(_MOST_VALUES, np.count_nonzero(totals))]
    places = np.full(len(totals), len(kept))  # the last place is that of values that have no statistic
    places[kept] = np.arange(len(kept))
    # Of each value, the sums in the other parts, and last those in all parts, which rows outside of training have.
    cells, size = places[values.codes] * (rows.parts + 1) + part, (len(kept) + 1) * (rows.parts + 1)
    weights = (target, is_training.astype(float))
    sums, counts = (_of_other_parts(np.bincount(cells, of, size).reshape(-1, rows.parts + 1)) for of in weights)
    per_row = np.maximum(np.bincount(values.rows, minlength=len(rows.part)), 1)

    def mean(table: np.ndarray) -> np.ndarray:
        return np.bincount(values.rows, table.reshape(-1)[cells], len(rows.part)) / per_row

    def gain(strength: float) -> np.ndarray:
        """By how much the squared error of each query is less than that of 0."""
        predicted = mean(sums / (counts + strength))[rows.in_order]
        return np.add.reduceat(predicted * (2.0 * rows.target[rows.in_order] - predicted), rows.starts)

    gains = {strength: gain(strength) for strength in _STRENGTHS}
    best = max(_STRENGTHS, key=lambda strength: gains[strength].sum())
    least = [_LEAST_FRACTION * np.square(rows.target).sum(), _LEAST_ERRORS * np.sqrt(np.square(gains[best]).sum())]
    if gains[best].sum() <= max(least):
        return None
    means = sums / (counts + best)
    statistic = Statistic(
        columns=names,
        values=tuple(values.texts.take(pa.array(kept)).to_pylist()),
        means=tuple(means[:-1, -1].astype(np.float32).tolist()),
        counts=tuple(counts[:-1, -1].astype(int).tolist()),
    )
    return statistic, np.stack([mean(means), mean(np.log1p(counts))], axis=1).astype(np.float32)


def _of_other_parts(sums: np.ndarray) -> np.ndarray:
    """Returns for sums [values, parts + 1] those of the other parts, and last the sums of all; the last row is 0."""
    sums[:, -1] = 0.0
    others = sums.sum(axis=1, keepdims=True) - sums
    others[-1] = 0.0
    return others
