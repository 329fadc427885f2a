"""Which columns of ids and sets help to rank other queries: the embeddings of others only learn noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _compiled, data
from tfr_smooth.columns import TableFeatures
from tfr_smooth.columns.statistics import is_constant
from tfr_smooth.measures import NDCG
from tfr_smooth.models.encoded_scorer import EncodedScorer
from tfr_smooth.ranker.plan import TrainingPlan
from tfr_smooth.rankings import ExactRanking

_KINDS = ("id", "set")
_HELD_OUT = 5  # one query in this number
_LEAST_QUERIES, _MOST_QUERIES = 30, 5_000  # held out
_EPOCHS = 3  # one epoch for this number of the training
_SHORT = {"loss": "softmax", "members": 1, "network": None, "label_aggregation": "sum", "select_by": "last"}


def columns_without_use(
    params: Mapping[str, Any], plan: TrainingPlan, layer: TableFeatures, raw: data.Lists, lists: data.Lists
) -> list[str]:
    """Returns the columns whose values do not help to rank other queries.

    Candidates are ids and sets that have no statistic, though they differ in a list: their values tell nothing by
    themselves, but may do so together with other columns. One network is trained for a short time on the first queries,
    and ranks the last ones with and without the values of a column, which are then unseen ones. The values stay only if
    NDCG is less without them, by more than its standard error.

    Args:
      params: The arguments of the ranker.
      plan: The plan of its training.
      layer: The features.
      raw: The training lists, with raw values.
      lists: The same, as of `layer.transform`.

    Returns:
      The names of the columns; none for few queries.
    """
    coded = [column for column in layer.columns if column.codes]
    held_out = len(lists) // _HELD_OUT
    blocks = {
        column.name: block
        for column, block in zip(coded, layer.embeddings, strict=True)
        if column.kind in _KINDS and column.has_values and column.name not in layer.statistics
        if held_out >= _LEAST_QUERIES and not is_constant(raw, raw.source[column.name])
    }
    if not blocks:
        return []
    every = math.ceil(held_out / _MOST_QUERIES)
    split = len(lists) - held_out
    first, last = (lists.take(np.arange(*ends, every)).without("weight") for ends in ((0, split), (split, len(lists))))
    short = {**params, **_SHORT, "epochs": math.ceil(plan.epochs / _EPOCHS), "verbose": False}
    size, order = params["batch_size"], {"shuffle": True, "seed": params["seed"], "group_by_length": True}
    trained = TrainingPlan(short, (), plan.label_weights, len(first)).run(
        layer,
        lambda finished: layer.batches(first, size, first_epoch=finished, num_epochs=None, **order),
        layer.batches(first.without("propensity"), size),
    )
    value = _values(trained.scorer, [*layer.batches(last.without("propensity"), size)], plan.label_weights)
    with_all = value([])

    def loss(names: Sequence[str]) -> np.ndarray:
        return with_all - value([blocks[name] for name in names])

    useless: list[str] = []
    for name in sorted(blocks, key=lambda name: loss([name]).sum()):
        drop = loss([*useless, name])
        if drop.sum() <= np.sqrt(np.square(drop - drop.mean()).sum()):
            useless.append(name)
    return useless


def _values(
    scorer: EncodedScorer, batches: Sequence[Any], weights: Sequence[float] | None
) -> Callable[[Sequence[Sequence[int]]], np.ndarray]:
    """Returns the function from blocks of codes without values to the NDCG of each list with a relevant document."""
    measure, ranking = NDCG(gain="linear"), ExactRanking()

    def values(inputs: dict[str, tf.Tensor], labels: tf.Tensor, largest: tf.Tensor) -> tf.Tensor:
        scores = scorer({**inputs, "features": tf.minimum(inputs["features"], largest)}, training=False)
        return measure.compute(labels, scores, inputs["mask"], ranking)

    traced, labeled = _compiled.traced(values, reduce_retracing=True), []
    for inputs, labels, *_ in batches:
        labels = labels if weights is None else tf.linalg.matvec(labels, tf.constant(weights, labels.dtype))
        labeled.append((inputs, tf.where(inputs["mask"], labels, 0.0)))
    is_relevant = np.concatenate([tf.reduce_any(labels > 0.0, axis=1) for _, labels in labeled])

    def function(blocks: Sequence[Sequence[int]]) -> np.ndarray:
        largest = np.full([scorer.num_features or 0], np.inf, np.float32)
        for first, length, *_ in blocks:
            largest[first : first + length] = 1.0  # the code of unseen values
        by_batch = [traced(inputs, labels, tf.constant(largest)) for inputs, labels in labeled]
        return np.concatenate(by_batch)[is_relevant]

    return function
