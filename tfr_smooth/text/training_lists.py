"""Sampled lists of relevant and non-relevant documents for training rerankers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from tfr_smooth._compiled import dataset_of
from tfr_smooth.data.batches import share_by_data
from tfr_smooth.data.lists import Lists
from tfr_smooth.text.rerankers import any_size
from tfr_smooth.text.token_inputs import Inputs


class TrainingLists:
    """Samples a list of relevant and non-relevant documents per query and epoch, without replacement.

    If fewer exist than requested, the list is shorter. Queries without both kinds are skipped.

    Args:
      lists: The queries with labels; documents are relevant if their label is > 0.
      relevant: Maximum number of relevant documents per list, >= 1.
      negatives: Maximum number of non-relevant documents per list, >= 1.
      seed: Random seed, >= 0. The lists of an epoch depend only on the seed and the number of the epoch.

    Raises:
      ValueError: If no query has both a relevant and a non-relevant document.
    """

    def __init__(self, lists: Lists, *, relevant: int, negatives: int, seed: int) -> None:
        self._sizes, self._seed = (relevant, negatives), seed
        self._labels = lists.values(lists.roles.labels[0])
        self._pools = []
        for start, end in itertools.pairwise(lists.starts):
            places = np.arange(start, end)
            is_good = self._labels[places] > 0.0
            if is_good.any() and not is_good.all():
                self._pools.append((places[is_good], places[~is_good]))
        if not self._pools:
            expected = "a query with a relevant and a non-relevant document"
            raise ValueError(f"`X` must have {expected}, got none among {len(lists)} queries.")

    def __len__(self) -> int:
        """The number of lists per epoch."""
        return len(self._pools)

    def epoch(self, number: int) -> list[list[int]]:
        """Returns the lists of an epoch in random order, as places of documents.

        Args:
          number: Number of the epoch, >= 0.
        """
        random = np.random.RandomState([self._seed, number])
        order = list(range(len(self)))
        random.shuffle(order)
        lists = []
        for query in order:
            pools = zip(self._pools[query], self._sizes, strict=True)
            drawn = [random.choice(pool, min(size, len(pool)), replace=False) for pool, size in pools]
            lists.append(np.concatenate(drawn).tolist())
        return lists

    def dataset(self, inputs: Inputs, *, batch_size: int, epochs: range) -> tf.data.Dataset:
        """Returns a dataset of the batches of several epochs.

        Args:
          inputs: The inputs of the model for all documents.
          batch_size: Lists per batch, >= 1. The last batch of an epoch may be smaller.
          epochs: The numbers of the epochs.

        Returns:
          A dataset of (model inputs, labels). Labels are float32 [batch, list], -1 for padding.
        """

        def batches() -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
            for number in epochs:
                lists = self.epoch(number)
                for start in range(0, len(lists), batch_size):
                    some = lists[start : start + batch_size]
                    places = tf.keras.utils.pad_sequences(some, padding="post", value=-1)
                    yield inputs.batch(places), np.where(places >= 0, self._labels[places], np.float32(-1.0))

        signature = tf.nest.map_structure(any_size, next(batches()))
        return share_by_data(dataset_of(batches, signature).prefetch(1))
