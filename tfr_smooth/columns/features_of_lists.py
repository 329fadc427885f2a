"""The features of lists, as of the layer of the columns: raw values, prepared matrices in memory, and batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth.columns.kinds import Columns, check_names, raw_values
from tfr_smooth.columns.list_context import Raw, in_parts, raw_rows
from tfr_smooth.data.batches import prefetched
from tfr_smooth.data.column_values import dense_column
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.roles import DENSE, STATISTICS

# Prepared features of at most this size are kept in memory; larger ones are prepared for each batch. Not tuned.
_MOST_BYTES = 1 << 28
_ROWS_AT_ONCE = 2**14  # not tuned: splitting takes much more memory than the texts


class FeaturesOfLists:
    """The methods of `TableFeatures` that take lists, by these of its attributes and methods."""

    columns: Columns
    stacked: bool
    num_features: Any
    needs_lists: Any
    prepare: Any
    prepare_lists: Any
    _numbers: tuple[Any, ...]
    _others: list[Any]

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

    def raw(self, lists: Lists, rows: np.ndarray) -> Raw:
        """Returns the raw values of rows of the source of lists that `learn` or `raw_lists` returned.

        Args:
          lists: The lists.
          rows: int64 [n].

        Returns:
          The numbers [n, columns of numbers], and the values of the other columns by name.
        """
        numbers, others = (lists.column(DENSE)(rows), {}) if self.stacked else raw_rows(lists, rows, self.columns)
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
            return _prepared(lists.replace(lists.roles))
        if not is_all and 4 * count * width > _MOST_BYTES:
            return lists
        matrix = np.zeros([count, width], np.float32)
        all_rows = lists.rows
        for places, lengths in in_parts(lists, _ROWS_AT_ONCE, whole=self.needs_lists):
            rows = all_rows[places]
            matrix[rows] = self.features(lists, rows, lengths)
        return _prepared(lists.replace(lists.roles.stacked(), {DENSE: dense_column(matrix)}))

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
            features = self.prepare(inputs[DENSE], inputs, mask) if self.stacked else self(inputs, list_mask=mask)  # type: ignore[operator]
            return {"features": tf.where(mask[:, :, tf.newaxis], features, 0.0), "mask": mask}, *others

        return prefetched(dataset.map(prepare, num_parallel_calls=2, deterministic=True))


def _prepared(lists: Lists) -> Lists:
    lists.is_prepared = True
    return lists


def matrices(lists: Lists, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yields the dense features of rows in parts; the whole matrix may be larger than memory."""
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        yield lists.column(DENSE)(rows[start : start + _ROWS_AT_ONCE])
        lists.release()
