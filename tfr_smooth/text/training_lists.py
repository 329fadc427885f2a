"""Sampled lists of relevant and other documents for training rerankers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.data.batches import share_by_data
from tfr_smooth.text.token_inputs import Inputs, padded


class TrainingLists:
    """Samples a list of relevant and other documents per query and epoch.

    Relevant documents are sampled from all documents with a label > 0, other documents from the query's remaining
    candidates, both without replacement. If fewer exist than requested, the list is shorter. Queries without a relevant
    document or without another candidate are skipped.

    Args:
      queries: The query ids.
      labels: For each query id, the labels of its judged documents.
      run: For each query id, the candidates, such as the return value of `bm25`.
      relevant: Maximum number of relevant documents per list, >= 1.
      others: Maximum number of other documents per list, >= 1.
      seed: Random seed, >= 0. The lists of an epoch depend only on the seed and the number of the epoch.

    Raises:
      ValueError: If an argument is out of its range, or no query has both a relevant and another document.

    Example:
      >>> from tfr_smooth import text
      >>> run = {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}}
      >>> lists = text.TrainingLists(["q1"], {"q1": {"c": 2}}, run, relevant=2, others=1)
      >>> query, documents, labels = next(lists.epoch(0))
      >>> query, documents[0], labels
      ('q1', 'c', [2, 0])
    """

    def __init__(
        self,
        queries: Sequence[str],
        labels: Mapping[str, Mapping[str, int]],
        run: Mapping[str, Mapping[str, float]],
        *,
        relevant: int = 2,
        others: int = 2,
        seed: int = 0,
    ) -> None:
        self._sizes = (
            _arguments.integer("relevant", relevant, least=1),
            _arguments.integer("others", others, least=1),
        )
        self._seed = _arguments.integer("seed", seed, least=0)
        self._labels = labels
        self._pools: dict[str, tuple[list[str], list[str]]] = {}
        for query_id in queries:
            good = sorted(doc_id for doc_id, label in labels.get(query_id, {}).items() if label > 0)
            bad = sorted(doc_id for doc_id in run.get(query_id, {}) if doc_id not in good)
            if good and bad:
                self._pools[query_id] = (good, bad)
        if not self._pools:
            raise ValueError(
                "`queries` must contain a query with a relevant and another document, "
                f"got none among {len(queries)} queries."
            )

    def __len__(self) -> int:
        """The number of lists per epoch."""
        return len(self._pools)

    def epoch(self, number: int) -> Iterator[tuple[str, list[str], list[int]]]:
        """Yields the lists of an epoch in random order.

        Args:
          number: Number of the epoch, >= 0.

        Yields:
          The query id, the doc ids and the labels of a list.
        """
        random = np.random.RandomState([self._seed, number])
        queries = list(self._pools)
        random.shuffle(queries)
        for query_id in queries:
            documents: list[str] = []
            for pool, size in zip(self._pools[query_id], self._sizes, strict=True):
                documents += random.choice(pool, min(size, len(pool)), replace=False).tolist()
            yield query_id, documents, [self._labels[query_id].get(doc_id, 0) for doc_id in documents]

    def dataset(self, inputs: Inputs, *, batch_size: int = 8, epochs: range = range(1)) -> tf.data.Dataset:
        """Returns a dataset of the batches of several epochs.

        Args:
          inputs: The inputs of the model.
          batch_size: Lists per batch, >= 1.
          epochs: The numbers of the epochs.

        Returns:
          A dataset of (model inputs, labels). Labels are float32 [batch, list], -1 for padding. The last batch of an
          epoch may be smaller.

        Raises:
          ValueError: If `batch_size` is out of its range.
        """
        batch_size = _arguments.integer("batch_size", batch_size, least=1)

        def batches() -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
            for number in epochs:
                lists = list(self.epoch(number))
                for start in range(0, len(lists), batch_size):
                    queries, documents, labels = zip(*lists[start : start + batch_size], strict=True)
                    yield inputs.batch(queries, documents), padded(labels, dtype=np.float32)

        def spec(name: str, array: np.ndarray) -> tf.TensorSpec:
            # All sizes may change except the width of hidden states.
            width = array.shape[-1] if name.endswith("_hidden") else None
            return tf.TensorSpec([*[None] * (array.ndim - 1), width], array.dtype)

        first, _ = next(batches())
        specs = {name: spec(name, array) for name, array in first.items()}
        signature = (specs, tf.TensorSpec([None, None], tf.float32))
        dataset = tf.data.Dataset.from_generator(batches, output_signature=signature)
        return share_by_data(dataset.prefetch(1))
