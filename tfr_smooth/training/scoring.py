"""The scores of a dataset, list by list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf


class ScoredList(NamedTuple):
    """The real documents of one list: ids as the dataset has them, labels and scores [documents]."""

    query_id: str
    doc_ids: list[str]
    labels: np.ndarray
    scores: np.ndarray


def score_lists(model: tf.keras.Model, dataset: Iterable[Any]) -> Iterator[ScoredList]:
    """Scores a dataset that carries ids, for evaluation or a run file.

    Args:
      model: A model that takes a dict with `features` and `mask`.
      dataset: Batches of (inputs, labels) as `data.read_letor(..., return_ids=True)` makes them.

    Yields:
      A `ScoredList` for each list, without padding, in the order of the dataset.

    Time: one forward pass. Memory: a batch.

    Example:
      >>> import numpy as np
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> inputs = {"features": tf.ones([1, 2, 3]), "mask": tf.constant([[True, False]])}
      >>> ids = {"query_id": tf.constant(["q1"]), "doc_id": tf.constant([["d1", ""]])}
      >>> dataset = [({**inputs, **ids}, tf.constant([[1.0, -1.0]]))]
      >>> model = tfr_smooth.models.FeedForwardScorer(hidden=[4])
      >>> next(tfr_smooth.training.score_lists(model, dataset))[:3]
      ('q1', ['d1'], array([1.], dtype=float32))
    """
    score = tf.function(lambda inputs: model(inputs, training=False), reduce_retracing=True)
    for inputs, labels in dataset:
        scores = score({name: inputs[name] for name in ("features", "mask")}).numpy()
        masks, queries, documents = (inputs[name].numpy() for name in ("mask", "query_id", "doc_id"))
        for row, mask in enumerate(masks):
            names = [name.decode() for name in documents[row][mask]]
            yield ScoredList(queries[row].decode(), names, labels.numpy()[row][mask], scores[row][mask])
