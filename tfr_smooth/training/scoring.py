"""Scores of a dataset, by query or by row."""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _compiled, _padded, data
from tfr_smooth.evaluation.trec import ScoredQuery, document_names

_IDS = ("query_id", "doc_id")
# One graph per model, as long as the model exists, so that calls do not trace it again.
_scorers: weakref.WeakKeyDictionary[tf.keras.Model, Callable[[Any], tf.Tensor]] = weakref.WeakKeyDictionary()


def score_queries(model: Callable[..., tf.Tensor], dataset: Iterable[Any]) -> Iterator[ScoredQuery]:
    """Scores a dataset, for `evaluation.trec_eval` or `evaluation.write_run`.

    Args:
      model: A Keras model of the dataset's inputs, or any function of them, that returns scores [batch, list] or
        [batch, list, 1], dense or ragged.
      dataset: Batches of (inputs, labels), (inputs, labels, weights) or inputs, dense or ragged, as the model is
        trained on. If the inputs are a dict, "query_id" and "doc_id" are the ids, as created by
        `data.Lists.batches(..., ids=True)`, which the model does not get. Without "query_id", the ids are numbers from
        0. Documents are real where "mask" in a dict of inputs is True, or, without a mask, where labels are >= 0.
        Without labels and mask, all documents are real. Missing labels are 0.

    Yields:
      A `ScoredQuery` for each list, in the order of the dataset, with its real documents in their order. The document
      names are the ids, or the positions if ids are missing or not unique.

    Raises:
      ValueError: If a batch has another structure, or the model returns scores of another shape.

    A Keras model is traced once, not in each call. Time: one forward pass. Memory: one batch.

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
    score = compiled_scorer(model) if isinstance(model, tf.keras.Model) else model
    number = 0
    for element in dataset:
        inputs, labels, _ = tf.keras.utils.unpack_x_y_sample_weight(element)
        inputs = tf.nest.map_structure(_tensor, inputs)
        labels = None if labels is None else _tensor(labels)
        named = inputs if isinstance(inputs, dict) else {}
        if named:
            inputs = {name: values for name, values in inputs.items() if name not in _IDS}
        for query in _queries(named, labels, score(inputs), number):
            number += 1
            yield query


def score_rows(model: Callable[..., tf.Tensor], lists: data.Lists, *, batch_size: int = 128) -> np.ndarray:
    """Scores the documents of lists in the order of the rows that they were made from.

    Args:
      model: A Keras model or a function, as for `score_queries`.
      lists: The lists, such as from `data.from_table`.
      batch_size: Queries per batch, >= 1.

    Returns:
      float32 [documents], in the order of their rows in the table, arrays or files.

    Raises:
      ValueError: As in `score_queries`.

    Example:
      >>> import pandas as pd
      >>> import tfr_smooth
      >>> frame = pd.DataFrame({"qid": [7, 8, 7], "bm25": [0.5, 0.9, 0.1]})
      >>> lists = tfr_smooth.data.from_table(frame, query="qid", label=None, stack=True)
      >>> frame["score"] = tfr_smooth.training.score_rows(lambda inputs: 2 * inputs["features"], lists)
      >>> frame["score"].round(1).astype(str).tolist()
      ['1.0', '1.8', '0.2']
    """
    found = [query.scores for query in score_queries(model, lists.batches(batch_size))]
    return np.concatenate(found)[np.argsort(lists.rows)]


def _tensor(values: Any) -> Any:
    return values if isinstance(values, (tf.RaggedTensor, tf.SparseTensor)) else tf.convert_to_tensor(values)


def _queries(inputs: dict[str, Any], labels: Any, scores: Any, number: int) -> Iterator[ScoredQuery]:
    """Yields the queries of a batch, whose first query has the given number."""
    by_query = _lists("scores of `model`", scores)
    by_label = [np.zeros(len(each), np.float32) for each in by_query]
    if labels is not None:
        by_label = _lists("labels of `dataset`", labels)
    masks = [each >= 0 for each in by_label]
    is_ragged = isinstance(labels, tf.RaggedTensor)  # Ragged labels have no padding, but the scores may.
    if "mask" in inputs and not is_ragged:
        masks = [each.astype(bool) for each in _lists("`mask`", inputs["mask"])]
    for found in (by_label, masks):
        lengths = [(len(ours), len(each)) for ours, each in itertools.zip_longest(by_query, found, fillvalue=())]
        if any(ours != each and not (is_ragged and ours > each) for ours, each in lengths):
            expected = f"{len(found)} lists of up to {max(map(len, found), default=0)}"
            got = f"shape {tuple(scores.shape)}"
            raise ValueError(f"`model` must return a score for each document, {expected}, got {got}.")
    doc_ids = _lists("`doc_id`", inputs["doc_id"]) if "doc_id" in inputs else None
    query_ids = _texts(inputs["query_id"].numpy()) if "query_id" in inputs else None
    for row, (mask, its_labels) in enumerate(zip(masks, by_label, strict=True)):
        names = [""] * int(mask.sum()) if doc_ids is None else _texts(doc_ids[row][: len(mask)][mask])
        query_id = str(number + row) if query_ids is None else query_ids[row]
        yield ScoredQuery(query_id, document_names(names), its_labels[mask], by_query[row][: len(mask)][mask])


def _texts(ids: Any) -> list[str]:
    """Returns ids, which may be numbers, as strings."""
    return [name.decode() if isinstance(name, bytes) else str(name) for name in np.ravel(ids).tolist()]


def _lists(what: str, values: Any) -> list[np.ndarray]:
    """Returns an array for each list of a batch."""
    if isinstance(values, tf.RaggedTensor) and values.shape.rank == 3:
        values = tf.squeeze(values, -1) if values.shape[-1] == 1 else values
    elif not isinstance(values, tf.RaggedTensor):
        values = _padded.squeezed(tf.convert_to_tensor(values))
    if values.shape.rank != 2:
        raise ValueError(f"The {what} must be [batch, list], got shape {tuple(values.shape)}.")
    if isinstance(values, tf.RaggedTensor):
        return np.split(values.flat_values.numpy(), values.row_splits.numpy()[1:-1])
    return list(values.numpy())


def compiled_scorer(model: tf.keras.Model) -> Callable[[Any], tf.Tensor]:
    """Returns the function from inputs to scores, traced once per model."""
    score = _scorers.get(model)
    if score is None:
        # A strong reference to the model would keep its entry alive.
        score = _compiled.traced(functools.partial(_scores, weakref.ref(model)), reduce_retracing=True)
        _scorers[model] = score
    return score


def _scores(reference: Callable[[], tf.keras.Model], inputs: Any) -> tf.Tensor:
    return reference()(inputs, training=False)
