"""Batches of sequences of users, packed without padding into rows of equal length."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth._compiled import dataset_of
from tfr_smooth.recommendation.batches import sampled_items
from tfr_smooth.recommendation.interactions import Interactions


class SequenceBatches:
    """The sequences of all users as batches of rows; each position of a row predicts an item.

    A user with n items has n positions: the first one predicts the first item from an empty history, and the others
    follow an item and predict the next one. Sequences longer than a row are cut into windows from their end, so that
    all items are predicted, and the last window has what serving sees. Windows are packed into rows, largest first,
    each into the fullest row with room. The number of rows depends on the lengths only: it is equal in all epochs.

    Args:
      interactions: The interactions, whose events have an order.
      length: Positions per row, >= 1.
      batch_size: Rows per batch, >= 1.
      negatives: Number of sampled items per batch; None for the whole catalog. See `candidate_batches`.
      seed: Seed of the order of windows and rows, and of the sample.

    Attributes:
      steps: Batches per epoch.

    Time O(events + windows * length) per epoch, on another thread than the training.
    """

    def __init__(
        self, interactions: Interactions, *, length: int, batch_size: int, negatives: int | None, seed: int
    ) -> None:
        self._items, self._weights, starts = interactions.sequences()
        self._num_items, self._length, self._batch_size = interactions.num_items, length, batch_size
        self._negatives, self._seed = negatives, seed
        counts = np.diff(starts)
        windows = -(-counts // length)
        # Windows of a user are numbered from the last one, which ends with the user's last item.
        number = np.arange(windows.sum()) - np.repeat(np.cumsum(windows) - windows, windows)
        ends = np.repeat(starts[1:], windows) - length * number
        begins = np.maximum(ends - length, np.repeat(starts[:-1], windows))
        self._begins, self._sizes = begins, ends - begins
        self._is_start = np.zeros(len(self._items), bool)
        self._is_start[starts[:-1][counts > 0]] = True
        self.steps = -(-len(self._packed(np.arange(len(ends)))) // batch_size)

    def dataset(self, num_epochs: int, first_epoch: int) -> tf.data.Dataset:
        """Creates the dataset of batches of some epochs.

        Args:
          num_epochs: Number of epochs, >= 1.
          first_epoch: Index of the first epoch, >= 0, so that a resumed training sees the same batches.

        Returns:
          A dataset of (inputs, items). Inputs are a dictionary of "items", int32 [batch, length], the item before each
          position, or -1; "segments", int32 [batch, length], equal for the positions of one window, or -1 for padding;
          "weights", float32 [batch, length], of the items to predict; and for sampled items "candidates", int32
          [batch, candidates], -1 for padding, and "offsets", float32 [batch, candidates], the same in each row. The
          others are the items to predict, int32 [batch, length]: indices, or places among the candidates; -1 for
          padding.
        """
        integers, numbers = tf.TensorSpec([None, self._length], tf.int32), tf.TensorSpec([None, self._length])
        inputs = {"items": integers, "segments": integers, "weights": numbers}
        if self._negatives is not None:
            inputs |= {"candidates": tf.TensorSpec([None, None], tf.int32), "offsets": tf.TensorSpec([None, None])}

        def batches() -> Iterator[Any]:
            for epoch in range(first_epoch, first_epoch + num_epochs):
                yield from self._epoch(np.random.default_rng([self._seed, epoch]))

        return dataset_of(batches, (inputs, integers)).prefetch(2)

    def _epoch(self, random: np.random.Generator) -> Iterator[Any]:
        packed = self._packed(random.permutation(len(self._sizes)))
        random.shuffle(packed)
        for first in range(0, len(packed), self._batch_size):
            rows = packed[first : first + self._batch_size]
            windows = np.array([window for row in rows for window in row])
            sizes = self._sizes[windows]
            segments = np.concatenate([np.arange(len(row)) for row in rows])
            # The places in the batch and among the events.
            row = np.repeat(np.arange(len(rows)), [self._sizes[row].sum() for row in rows])
            within = np.arange(len(row)) - np.searchsorted(row, row)
            event = np.arange(len(row)) + np.repeat(self._begins[windows] - (np.cumsum(sizes) - sizes), sizes)
            shape = len(rows), self._length
            inputs = {"items": np.full(shape, -1, np.int32), "segments": np.full(shape, -1, np.int32)}
            inputs["weights"] = np.zeros(shape, np.float32)
            following = np.full(shape, -1, np.int32)
            inputs["items"][row, within] = np.where(self._is_start[event], -1, self._items[event - 1])
            inputs["segments"][row, within] = np.repeat(segments, sizes)
            inputs["weights"][row, within] = self._weights[event]
            following[row, within] = self._items[event]
            if self._negatives is not None:
                relevant = np.unique(self._items[event])
                candidates, offsets = sampled_items(relevant, self._num_items, self._negatives, random)
                following[row, within] = np.searchsorted(relevant, self._items[event])
                tiled = {"candidates": candidates, "offsets": offsets}
                inputs |= {name: np.tile(values, [len(rows), 1]) for name, values in tiled.items()}
            yield inputs, following

    def _packed(self, order: np.ndarray) -> list[list[int]]:
        """Returns the windows of each row; windows of equal size are in the given order."""
        order = order[np.argsort(-self._sizes[order], kind="stable")]
        rows: list[list[int]] = []
        with_space: list[list[int]] = [[] for _ in range(self._length + 1)]  # the rows by their space
        for window, size in zip(order.tolist(), self._sizes[order].tolist(), strict=True):
            space = next(itertools.chain((room for room in range(size, self._length) if with_space[room]), [0]))
            if space:
                row = with_space[space].pop()
            else:
                row, space = len(rows), self._length
                rows.append([])
            rows[row].append(window)
            with_space[space - size].append(row)
        return rows
