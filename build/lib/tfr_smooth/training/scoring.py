"""The scores of a dataset, query by query."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import tensorflow as tf

from tfr_smooth.evaluation.trec import ScoredQuery, document_names

# The graph of each model, as long as there is the model: a new one for each call would be traced each time.
_scorers: weakref.WeakKeyDictionary[tf.keras.Model, Callable[[Any], tf.Tensor]] = weakref.WeakKeyDictionary()


def score_queries(model: tf.keras.Model, dataset: Iterable[Any]) -> Iterator[ScoredQuery]:
    """Scores a dataset that carries ids, for `evaluation.trec_eval` or `evaluation.write_run`.

    Args:
      model: A model that takes a dict with `features` and `mask`.
      dataset: Batches of (inputs, labels) as `data.read_letor(..., return_ids=True)` makes them.

    Yields:
      A `ScoredQuery` for each list, without padding, in the order of the dataset. Documents have their ids for names,
      or their positions where ids are missing or not unique.

    Time: one forward pass. Memory: a batch.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> inputs = {"features": tf.ones([1, 2, 3]), "mask": tf.constant([[True, False]])}
      >>> ids = {"query_id": tf.constant(["q1"]), "doc_id": tf.constant([["d1", ""]])}
      >>> dataset = [({**inputs, **ids}, tf.constant([[1.0, -1.0]]))]
      >>> model = tfr_smooth.models.FeedForwardScorer(hidden=[4])
      >>> next(tfr_smooth.training.score_queries(model, dataset))[:3]
      ('q1', ['d1'], array([1.], dtype=float32))
    """
    score = _scorer(model)
    for inputs, labels in dataset:
        scores, labels = score({name: inputs[name] for name in ("features", "mask")}).numpy(), labels.numpy()
        masks, queries, documents = (inputs[name].numpy() for name in ("mask", "query_id", "doc_id"))
        for row, mask in enumerate(masks):
            names = document_names(list(documents[row][mask]))
            yield ScoredQuery(queries[row].decode(), names, labels[row][mask], scores[row][mask])


def _scorer(model: tf.keras.Model) -> Callable[[Any], tf.Tensor]:
    score = _scorers.get(model)
    if score is None:
        # A reference that keeps the model would keep its entry too. TensorFlow warns of retracing by the code of a
        # function, which all models share, but by the object where that is a partial one.
        score = tf.function(functools.partial(_scores, weakref.ref(model)), reduce_retracing=True, autograph=False)
        _scorers[model] = score
    return score


def _scores(reference: Callable[[], tf.keras.Model], inputs: dict[str, tf.Tensor]) -> tf.Tensor:
    return reference()(inputs, training=False)
