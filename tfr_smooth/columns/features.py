"""The layer of the columns of a table: it learns them once, and prepares them in training, in files and in exports."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _serialization
from tfr_smooth.columns import list_context
from tfr_smooth.columns.kinds import Column, Columns, check_names, listed, raw_values
from tfr_smooth.columns.matches import Match
from tfr_smooth.columns.number import number_features
from tfr_smooth.columns.statistics import WIDTH, Statistic
from tfr_smooth.columns.trees import Trees
from tfr_smooth.data import batches, column_values
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.roles import ALL_NUMBERS, DENSE, STATISTICS

TREES = "trees"  # stands for a column among the names of features
_MOST_PRINTED = 40  # columns
# Prepared features of at most this size are kept in memory; larger ones are prepared for each batch. Not tuned.
_MOST_BYTES = 1 << 28
_ROWS_AT_ONCE = 2**14  # not tuned: splitting takes much more memory than the texts


class Part(NamedTuple):
    """Features that are computed together.

    Attributes:
      kind: "numbers", "column", "match", "statistic", "ranks" or "share".
      names: For each feature, the name of its column, match or statistic.
      features: Returns them, float32 [..., len(names)], from the values of columns by name, as their `prepare` returns
        them; also the numbers of all columns of numbers, and the mask of lists [batch, list], or None.
    """

    kind: str
    names: tuple[str, ...]
    features: Callable[[Mapping[str, Any], tf.Tensor | None], tf.Tensor]


@_serialization.register
class TableFeatures(_serialization.ConfiguredLayer, tf.keras.layers.Layer):
    r"""Converts the raw columns of a table to numbers, as learned from a training table.

    The features of each column, in order, are those of its kind: see the classes of `tfr_smooth.columns`. After the
    columns come the matches of two columns. A match of two vectors gives their scalar product and their cosine. Other
    columns are compared by terms: the values of ids, categories and sets; of two texts, the words, and then again the
    trigrams of the letters of each word with its start and end, which stand in for stems. A term has the weight

        ln((1 + N) / (1 + n)) + 1

    if n of the N different texts of both columns in training have it; n is at least 1, also for unseen terms. The six
    features of a kind of terms are: the number and the weight of the terms that both values have, as a fraction of
    those of the first one, and of those of the second one; the cosine of the counts times the weights (TF-IDF); and
    the summed weight of the common terms.

    Then come two features of each statistic, and the ranks of numbers, booleans and dates within the list:

    $$\frac{|\{j: x_j < x\}| - |\{j: x_j > x\}|}{n - 1} \in [-1, 1]$$

    for a value x among the n known values of a list; 0 for a missing value, for padding and for n = 1. Then come the
    shares of ids, categories and sets: the fraction of the n - 1 other documents of the list with a value that have the
    same one; of several values, the mean; 0 in the same cases. Last comes the score of the trees.

    Args:
      columns: The columns, as from `infer_columns`.
      matches: Pairs of names of columns to compare, both vectors of the same length or both text; or the learned
        `Match` of two columns, with the frequencies of the terms.
      encoders: For each column of the kind "encoded", a layer such as `text.Encoder`, whose method `embed` maps strings
        [texts] to vectors [texts, length]. It is not trained.
      list_ranks: Names of columns of numbers, booleans and dates whose rank within the list is a feature.
      list_shares: Names of columns of ids, categories and sets whose share of equal values in the list is a feature.
      statistics: Instances of `Statistic`.
      trees: Trees whose score is the last feature. They take `tree_inputs` of the other features.
      stacked: Whether the input is one tensor of numbers instead of a dict; all columns must be numbers.
      dtype: Dtype policy of the layer; the computation uses float32.
      **kwargs: `name` and other arguments of a Keras layer.

    Call with a dict of the raw values by column name, each of the same shape [...], as from `column_arrays`; further
    entries are ignored. With `stacked`, call with numbers [..., columns]. With `list_ranks` or `list_shares`, the
    shape is [batch, list], and the argument `list_mask` is bool [batch, list], False for padding; None for no padding.
    Returns float32 [..., num_features]. Infinite numbers are not changed.

    Raises:
      ValueError: If the columns are invalid, or if a column is missing in a call.

    Time and memory O(values * features); with ranks in lists of n documents, time O(values * features * log n). Each
    different text of a batch is split once.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth.columns import Category, Number, TableFeatures
      >>> price = Number(name="price", fill=2.0, has_missing=True)
      >>> brand = Category(name="brand", categories=("a", "b"))
      >>> layer = TableFeatures([price, brand])
      >>> inputs = {"price": tf.constant([5.0, float("nan")]), "brand": tf.constant(["b", "unseen"])}
      >>> layer(inputs).numpy().tolist()
      [[5.0, 0.0, 0.0, 1.0], [2.0, 1.0, 0.0, 0.0]]
      >>> layer.feature_columns
      ('price', 'price', 'brand', 'brand')
    """

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        matches: Sequence[Sequence[str] | Match] = (),
        encoders: Mapping[str, Any] | None = None,
        list_ranks: Sequence[str] = (),
        list_shares: Sequence[str] = (),
        statistics: Sequence[Statistic] = (),
        trees: Trees | None = None,
        stacked: bool = False,
        dtype: Any = "float32",
        **kwargs: Any,
    ) -> None:
        # Raw numbers may exceed the range of float16, so a global mixed precision policy does not apply here.
        super().__init__(dtype=dtype, **kwargs)
        self.columns = Columns(_arguments.instance("columns", column, Column) for column in columns)
        names = [column.name for column in self.columns]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"`columns` must be at least one column, with unique names, got {listed(names)}.")
        self.stacked = _arguments.boolean("stacked", stacked)
        self.matches = tuple(each if isinstance(each, Match) else Match.of(each, self.columns) for each in matches)
        self.encoders = dict(encoders or {})
        encoded = {column.name for column in self.columns if column.is_encoded}
        if encoded != set(self.encoders):
            raise ValueError(f"`encoders` must be those of the columns {sorted(encoded)}, got {sorted(self.encoders)}.")
        for encoder in self.encoders.values():
            encoder.trainable = False
        others = [column.name for column in self.columns if column.kind != "number"]
        if stacked and others:
            raise ValueError(f"`stacked` must be False unless all columns are numbers, got True with {others[0]!r}.")
        self._numbers: tuple[Any, ...] = tuple(column for column in self.columns if column.stacked)
        self._others = [column for column in self.columns if not column.stacked]
        ordered = list_context.ordered_columns(self.columns)  # first those of numbers, then those of dates
        self.list_ranks = _chosen("list_ranks", list_ranks, ordered, "numbers, booleans or dates")
        shared = [column.name for column in self.columns if column.shared]
        self.list_shares = _chosen("list_shares", list_shares, shared, "ids, categories or sets")
        self.supports_jit = False  # XLA has no strings.
        for place, column in enumerate(self._others):
            setattr(self, f"_resource_{place}", column.resource())  # Keras 3 does not track tables in lists and dicts.
        split = {column.name for column in self.columns if column.has_terms}
        self.statistics = tuple(statistics)
        for place, statistic in enumerate(self.statistics):
            if absent := set(statistic.columns) - split:
                raise ValueError(f"`statistics` must be those of columns of ids or sets, got one of {min(absent)!r}.")
            setattr(self, f"_statistic_{place}", statistic.resource())
        self.trees = _arguments.instance("trees", trees, Trees, optional=True)
        self.built = True

    @functools.cached_property
    def parts(self) -> list[Part]:
        """The features, as `prepare` computes them: first all numbers at once, as there may be thousands of columns."""
        flags = [column.name for column in self._numbers if column.has_missing]
        parts = [Part("numbers", (*self.number_names, *flags), functools.partial(_of_numbers, self._numbers))]
        for place, column in enumerate(self._others):
            of_column = functools.partial(_of_column, column, getattr(self, f"_resource_{place}"))
            parts.append(Part("column", (column.name,) * column.width, of_column))
        for match in self.matches:
            parts.append(Part("match", (match.name,) * match.width, functools.partial(_of_match, match)))
        for place, statistic in enumerate(self.statistics):
            of_values = functools.partial(_of_statistic, statistic, getattr(self, f"_statistic_{place}"), place)
            parts.append(Part("statistic", (statistic.name,) * WIDTH, of_values))
        parts.append(Part("ranks", self.list_ranks, functools.partial(_ranks, self.columns, self.list_ranks)))
        parts += [Part("share", (name,), functools.partial(_share, name)) for name in self.list_shares]
        return [part for part in parts if part.names]

    @functools.cached_property
    def _places(self) -> np.ndarray:
        """The place of each feature among those of the parts: those of columns are in the order of the columns."""
        order = {column.name: place for place, column in enumerate(self.columns)}
        of_columns = [order[name] for part in self.parts if part.kind in ("numbers", "column") for name in part.names]
        count = sum(len(part.names) for part in self.parts)
        return np.array([*np.argsort(of_columns, kind="stable"), *range(len(of_columns), count)])

    @functools.cached_property
    def feature_columns(self) -> tuple[str, ...]:
        """The name of the column of each feature."""
        names = [name for part in self.parts for name in part.names]
        return (*(names[place] for place in self._places), *([TREES] if self.trees else []))

    def __str__(self) -> str:
        """Returns what was learned: the kinds of the columns, statistics, matches and ranks, one or more lines each."""
        lines = [] if self.stacked else str(self.columns).splitlines()
        if more := len(lines[_MOST_PRINTED:]):
            lines[_MOST_PRINTED:] = [f"... and {more:,} more columns: print `columns_`"]
        for title, names in (
            ("Statistics", [statistic.name for statistic in self.statistics]),
            ("Matches", [match.name for match in self.matches]),
            ("List ranks", self.list_ranks),
            ("List shares", self.list_shares),
        ):
            lines += [f"{title}: {listed(names)}"] if names else []
        if self.trees:
            lines.append(str(self.trees))
        return "\n".join(lines)

    @property
    def types(self) -> dict[str, str]:
        """The types of the columns, by which `data.read_files` reads other files as those of the training."""
        return {column.name: column.reads for column in self.columns}

    @property
    def num_features(self) -> int:
        """Number of features."""
        return len(self.feature_columns)

    @functools.cached_property
    def _placed(self) -> list[tuple[int, Any]]:
        """Each column after the place of its first feature."""
        ends = itertools.accumulate(column.width for column in self.columns)
        return [(end - column.width, column) for end, column in zip(ends, self.columns, strict=True)]

    def _blocks(self, name: str) -> list[list[int]]:
        """Returns the features that are codes or vectors: the place of the first one, and what the column says."""
        return [[first, *sizes] for first, column in self._placed if (sizes := getattr(column, name))]

    @property
    def embeddings(self) -> list[list[int]]:
        """The argument `embeddings` of `FeedForwardScorer`: the features that are codes."""
        return self._blocks("codes")

    @functools.cached_property
    def categories(self) -> list[list[int]]:
        """The features of the columns of categories: the place of the first one, and how many there are."""
        return [[first, column.width] for first, column in self._placed if column.one_hot]

    @functools.cached_property
    def _numbers_of_trees(self) -> np.ndarray:
        """The features that trees take as numbers."""
        blocks = [*self.embeddings, *self._blocks("vector"), *self.categories]
        others = [np.arange(first, first + length) for first, length, *_ in blocks]
        return np.setdiff1d(np.arange(self.num_features - bool(self.trees)), np.concatenate([*others, []]))

    def tree_inputs(self, features: tf.Tensor) -> tf.Tensor:
        """Returns what trees take of features [..., num_features]: numbers, and last each category as one code."""
        codes = [
            features[..., first : first + count] @ np.arange(1.0, 1.0 + count, dtype=np.float32)[:, np.newaxis]
            for first, count in self.categories
        ]
        return tf.concat([tf.gather(features, self._numbers_of_trees, axis=-1), *codes], axis=-1)

    @property
    def weak(self) -> list[int]:
        """The argument `weak` of `FeedForwardScorer`: what ranks no better in the trees than shuffled features."""
        of_trees = [[int(place)] for place in self._numbers_of_trees]
        of_trees += [list(range(first, first + count)) for first, count in self.categories]
        return [place for number in (self.trees.weak if self.trees else ()) for place in of_trees[number]]

    def replace(self, **arguments: Any) -> TableFeatures:
        """Returns a layer with other arguments of the constructor."""
        names = ("columns", "matches", "encoders", "list_ranks", "list_shares", "statistics", "trees", "stacked")
        return TableFeatures(**{**{name: getattr(self, name) for name in names}, **arguments})

    @property
    def needs_lists(self) -> bool:
        """Whether the features of a document depend on the others of its list."""
        return bool(self.list_ranks or self.list_shares)

    @property
    def vectors(self) -> list[list[int]]:
        """The argument `vectors` of `FeedForwardScorer`: the features that are vectors, and the ranks."""
        count = len(self.list_ranks)
        first = self.num_features - len(self.list_shares) - bool(self.trees) - count
        return [*self._blocks("vector"), *([[first, count]] if count else [])]

    @property
    def number_names(self) -> list[str]:
        """The names of the columns of numbers, in the order of `prepare`."""
        return [column.name for column in self._numbers]

    @property
    def example_feature_spec(self) -> dict[str, tf.io.FixedLenFeature]:
        """The argument `example_feature_spec` of `serving.export_ranker`: a column that a proto lacks is missing."""
        if self.stacked:
            return {"features": tf.io.FixedLenFeature([len(self.columns)], tf.float32)}
        missing = {column.name: np.full(column.shape, column.missing_value).tolist() for column in self.columns}
        return {c.name: tf.io.FixedLenFeature(c.shape, c.dtype, missing[c.name]) for c in self.columns}

    def call(self, inputs: Any, list_mask: tf.Tensor | None = None) -> tf.Tensor:
        """Converts raw values to features.

        Args:
          inputs: Raw values by column name, each of shape [...]; numbers [..., columns] with `stacked`.
          list_mask: bool [batch, list], False for padding; used for ranks and shares.

        Returns:
          float32 [..., num_features].
        """
        if self.stacked:
            values = tf.cast(inputs, tf.float32)
            if values.shape[-1] not in (None, len(self.columns)):
                raise ValueError(f"`inputs` must have {len(self.columns)} numbers per row, got shape {values.shape}.")
            return self.prepare(values, {}, list_mask)
        needed = self._others if ALL_NUMBERS in inputs else self.columns
        absent = [column.name for column in needed if column.name not in inputs]
        if absent:
            raise ValueError(f"`inputs` must contain the column {absent[0]!r}, got {sorted(inputs)}.")
        numbers = inputs.get(ALL_NUMBERS)
        if numbers is None and self._numbers:
            numbers = tf.stack([tf.cast(inputs[name], tf.float32) for name in self.number_names], axis=-1)
        return self.prepare(numbers, inputs, list_mask)

    def prepare_lists(self, numbers: Any, others: Mapping[str, Any], lengths: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the features of the raw values of whole lists.

        Args:
          numbers: float32 [rows, columns of numbers], as from `raw`.
          others: The values of the other columns by name.
          lengths: int64 [batch], the number of rows of each list.

        Returns:
          float32 [batch, list, num_features], and the mask [batch, list].
        """
        (numbers, others), mask = list_context.padded((numbers, dict(others)), lengths)
        return self.prepare(numbers, others, mask), mask

    def prepare(self, numbers: Any, others: Mapping[str, Any], mask: tf.Tensor | None = None) -> tf.Tensor:
        """Returns the features of raw values.

        Args:
          numbers: float32 [..., columns of numbers]; ignored if there are none.
          others: The values of the other columns by name, possibly with the statistics of training documents.
          mask: As for `call`.

        Returns:
          float32 [..., num_features].
        """
        values = {column.name: tf.convert_to_tensor(others[column.name]) for column in self._others}
        values.update({name: self._embedded(name, values[name]) for name in self.encoders})
        values = {column.name: column.prepare(values[column.name]) for column in self._others}
        values |= {name: others[name] for name in (STATISTICS,) if name in others} | {ALL_NUMBERS: numbers}
        features, places = tf.concat([part.features(values, mask) for part in self.parts], axis=-1), self._places
        if not np.array_equal(places, np.arange(len(places))):
            features = tf.gather(features, places, axis=-1)
        if self.trees and STATISTICS in others:
            return tf.concat([features, others[STATISTICS][..., -1:]], axis=-1)
        return self.with_score(features)

    def with_score(self, features: tf.Tensor) -> tf.Tensor:
        """Returns features [..., num_features - 1] and the score of the trees; without trees, the features."""
        if self.trees is None:
            return features
        score = self.trees(self.tree_inputs(features))
        return tf.concat([features, score[..., tf.newaxis]], axis=-1)

    def _embedded(self, name: str, texts: Any) -> tf.Tensor:
        """Returns the vectors [..., length] of texts [...], each computed once, NaN for ""; or of ids [..., tokens]."""
        encoder = self.encoders[name]
        if texts.dtype.is_integer:
            ids = encoder.unpadded(tf.reshape(texts, [-1, texts.shape[-1]]))
            vectors = tf.where(encoder.is_blank(ids)[:, tf.newaxis], np.nan, encoder.embed(ids))
            return tf.reshape(vectors, tf.concat([tf.shape(texts)[:-1], vectors.shape[1:]], axis=0))
        values, places = tf.unique(tf.reshape(texts, [-1]))
        vectors = tf.where(tf.equal(values, "")[:, tf.newaxis], np.nan, encoder.embed(values))
        return tf.reshape(tf.gather(vectors, places), tf.concat([tf.shape(texts), vectors.shape[1:]], axis=0))

    def raw_lists(self, lists: Lists) -> Lists:
        """Returns other lists with the raw values of the columns as features.

        Args:
          lists: The lists, with at least these features.

        Returns:
          The lists.

        Raises:
          ValueError: If a column is missing or has values of another kind. The message names the column and the row.
        """
        if self.stacked != lists.is_dense:
            got, expected = ("an array", "a table") if lists.is_dense else ("a table", "an array")
            raise ValueError(f"`X` must be {expected} as in `fit`, got {got} with {lists.num_features} features.")
        if self.stacked:
            if lists.num_features != len(self.columns):
                raise ValueError(f"`X` must have {len(self.columns)} features, got {lists.num_features}.")
            return lists
        check_names(lists.source.column_names, self.columns)
        raw = {column.name: raw_values(column, lists.source[column.name]) for column in self.columns}
        return lists.replace(dataclasses.replace(lists.roles, features=tuple(raw)), raw)

    @property
    def raw_specs(self) -> Any:
        """The specs of the tensors that `raw` returns, for any number of rows."""
        count = len(self.columns if self.stacked else self._numbers)
        others = {column.name: tf.TensorSpec([None, *column.shape], column.dtype) for column in self._others}
        return tf.TensorSpec([None, count], tf.float32), others

    def raw(self, lists: Lists, rows: np.ndarray) -> list_context.Raw:
        """Returns the raw values of rows of the source of lists that `learn` or `raw_lists` returned.

        Args:
          lists: The lists.
          rows: int64 [n].

        Returns:
          The numbers [n, columns of numbers], and the values of the other columns by name.
        """
        raw = (lists.column(DENSE)(rows), {}) if self.stacked else list_context.raw_rows(lists, rows, self.columns)
        numbers, others = raw
        if STATISTICS in lists.roles.features:
            others[STATISTICS] = lists.column(STATISTICS)(rows)
        return numbers, others

    def transform(self, lists: Lists) -> Lists:
        """Returns lists with prepared features in memory; as they are if these are large, for `batches`.

        Args:
          lists: The lists that `learn` or `raw_lists` returned.

        Returns:
          The lists.
        """
        count, width = len(lists.source), self.num_features
        # Numbers that are all known are their features.
        is_all = self.stacked and width == len(self.columns)
        if is_all and not any(np.isnan(part).any() for part in matrices(lists, np.arange(count))):
            prepared = lists.replace(lists.roles)
        elif not is_all and 4 * count * width > _MOST_BYTES:
            return lists
        else:
            matrix, all_rows = np.zeros([count, width], np.float32), lists.rows
            for places, lengths in list_context.in_parts(lists, _ROWS_AT_ONCE, whole=self.needs_lists):
                matrix[all_rows[places]] = self.features(lists, all_rows[places], lengths)
            prepared = lists.replace(lists.roles.stacked(), {DENSE: column_values.dense_column(matrix)})
        prepared.is_prepared = True
        return prepared

    def features(self, lists: Lists, rows: np.ndarray, lengths: Any) -> np.ndarray:
        """Returns the features of whole lists, which `transform` takes or returned.

        Args:
          lists: The lists.
          rows: Their rows in the source, int64 [n].
          lengths: The number of rows of each list.

        Returns:
          float32 [n, num_features].
        """
        if lists.is_prepared:
            return lists.column(DENSE)(rows)
        return tf.boolean_mask(*self.prepare_lists(*self.raw(lists, rows), lengths)).numpy()

    def batches(self, lists: Lists, batch_size: int, **options: Any) -> tf.data.Dataset:
        """Returns batches of prepared features.

        Args:
          lists: The lists that `transform` returned.
          batch_size: Queries per batch, >= 1.
          **options: As for `Lists.batches`.

        Returns:
          The dataset, with the inputs "features" and "mask".
        """
        dataset = lists.batches(batch_size, **options)
        if lists.is_prepared:
            return dataset

        @tf.autograph.experimental.do_not_convert
        def prepare(inputs: dict[str, tf.Tensor], *others: tf.Tensor) -> tuple[Any, ...]:
            mask = inputs["mask"]
            features = self.prepare(inputs[DENSE], inputs, mask) if self.stacked else self(inputs, list_mask=mask)
            return {"features": tf.where(mask[:, :, tf.newaxis], features, 0.0), "mask": mask}, *others

        return batches.prefetched(dataset.map(prepare, num_parallel_calls=2, deterministic=True))


def _of_numbers(columns: tuple[Any, ...], values: Mapping[str, Any], mask: Any) -> tf.Tensor:
    return number_features(tf.convert_to_tensor(values[ALL_NUMBERS]), columns)


def _of_column(column: Column, resource: Any, values: Mapping[str, Any], mask: Any) -> tf.Tensor:
    return column.features(values[column.name], resource)


def _of_match(match: Match, values: Mapping[str, Any], mask: Any) -> tf.Tensor:
    return match.features(*(values[name] for name in match.columns))


def _of_statistic(statistic: Statistic, resource: Any, place: int, values: Mapping[str, Any], mask: Any) -> tf.Tensor:
    """Returns the features of a statistic; of training documents, those that other documents made."""
    if STATISTICS in values:
        return values[STATISTICS][..., WIDTH * place : WIDTH * (place + 1)]
    return statistic.features([values[name] for name in statistic.columns], resource)


def _ranks(columns: Sequence[Column], names: Sequence[str], values: Mapping[str, Any], mask: Any) -> tf.Tensor:
    ordered = list_context.ordered_values(columns, values[ALL_NUMBERS], values, names)
    return list_context.list_ranks(ordered, list_context.checked_mask(ordered[..., 0], mask))


def _share(name: str, values: Mapping[str, Any], mask: Any) -> tf.Tensor:
    of_column = values[name]
    return list_context.list_shares(of_column, list_context.checked_mask(of_column.places, mask))[..., tf.newaxis]


def _chosen(argument: str, given: Sequence[str], names: Sequence[str], of: str) -> tuple[str, ...]:
    """Returns names of columns that are given, in their order."""
    if isinstance(given, str) or len(set(given)) < len(given) or not {*given} <= {*names}:
        raise ValueError(f"`{argument}` must be unique names of columns of {of}, got {given!r}.")
    return tuple(name for name in names if name in given)


def matrices(lists: Lists, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yields the dense features of rows in parts; the whole matrix may be larger than memory."""
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        yield lists.column(DENSE)(rows[start : start + _ROWS_AT_ONCE])
        lists.release()
