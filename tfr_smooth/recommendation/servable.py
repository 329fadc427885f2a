"""A recommender as a SavedModel: ids of users or items in, ids and scores of the best items out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _keras
from tfr_smooth.models import PADDING_SCORE
from tfr_smooth.recommendation.batches import dense_labels
from tfr_smooth.recommendation.factors import CatalogModel
from tfr_smooth.recommendation.interactions import Interactions
from tfr_smooth.serving import versions

Tensors = dict[str, tf.Tensor]


def export(
    path: str | os.PathLike[str],
    model: CatalogModel,
    interactions: Interactions,
    *,
    topn: int,
    exclude_seen: bool,
    version: int | None,
    card: Mapping[str, Any],
) -> Path:
    """Creates PATH/VERSION with the signatures that `Recommender.export` describes, and returns it."""
    servable = Servable(model, interactions, topn=topn, exclude_seen=exclude_seen)

    def write(folder: Path, number: int) -> None:
        signatures = {"serving_default": servable.functions["users"], **servable.functions}
        tf.saved_model.save(servable, os.fspath(folder), signatures=signatures)
        versions.write_card(
            folder,
            card,
            model={"class": type(model).__name__, "version": number, **model.get_config()},
            special_values={"id after the last item": servable.no_item, "its score": PADDING_SCORE},
        )

    return versions.publish(path, version, write)


class Servable(tf.Module):
    """Factors with the ids of users and items and the seen items.

    Args:
      model: The factors.
      interactions: The ids and the seen items.
      topn: Items per user, at most the size of the catalog.
      exclude_seen: Whether to exclude the seen items of users, and the items of histories.
    """

    def __init__(self, model: CatalogModel, interactions: Interactions, *, topn: int, exclude_seen: bool) -> None:
        super().__init__()
        self._topn, self._exclude_seen = topn, exclude_seen
        # Not the model itself, as Keras would also save all of its functions.
        self._variables = _keras.tensorflow_variables(model.served_variables)
        self._catalog = tf.Variable(model.item_vectors(), trainable=False)
        self._of_users, self._of_histories = model.answers(self._catalog)
        self.no_item = no_item(interactions.item_ids)
        ids = [*interactions.item_ids.tolist(), self.no_item]
        self._item_ids = tf.Variable(ids, trainable=False, dtype=_dtype(interactions.item_ids))
        self._user_table, self._item_table = _table(interactions.user_ids), _table(interactions.item_ids)
        matrix = interactions.matrix
        self._seen = tf.Variable(matrix.indices.astype(np.int32), trainable=False)
        self._row_splits = tf.Variable(matrix.indptr.astype(np.int64), trainable=False)
        item_dtype = _dtype(interactions.item_ids)
        users = tf.TensorSpec([None], _dtype(interactions.user_ids), name="users")
        histories, *filters = (
            tf.TensorSpec([None, None], item_dtype, name=name) for name in ("histories", "exclude", "only")
        )
        self.functions = {"item_vectors": tf.function(self._item_vectors, input_signature=[])}
        for count, prefix in enumerate(("", "excluding_", "filtered_")):
            for name, function, spec in (("users", self._users, users), ("histories", self._histories, histories)):
                signature = [spec, *filters[:count]]
                self.functions[f"{prefix}{name}"] = tf.function(function, input_signature=signature)

    # A server does not check the ranks of inputs, and operations on ragged tensors end the process for others.
    def _users(self, users: tf.Tensor, exclude: Any = None, only: Any = None) -> Tensors:
        rows = tf.cast(self._user_table.lookup(tf.ensure_shape(users, [None])), tf.int32)
        seen = tf.RaggedTensor.from_row_splits(self._seen, self._row_splits, validate=False)
        seen = tf.gather(seen, tf.maximum(rows, 0)).to_tensor(-1)
        return self._best(*self._of_users(rows), tf.where(rows[:, tf.newaxis] < 0, -1, seen), exclude, only)

    def _histories(self, histories: tf.Tensor, exclude: Any = None, only: Any = None) -> Tensors:
        items = self._items(histories)
        return self._best(*self._of_histories(items), items, exclude, only)

    def _item_vectors(self) -> Tensors:
        return {"items": self._item_ids[:-1], "vectors": tf.identity(self._catalog)}

    def _best(self, vectors: tf.Tensor, scores: tf.Tensor, seen: tf.Tensor, exclude: Any, only: Any) -> Tensors:
        hidden = [self._among(seen)] if self._exclude_seen else []
        hidden += [] if exclude is None else [self._among(self._items(exclude))]
        hidden += [] if only is None else [~self._among(self._items(only))]
        for mask in hidden:
            # Fails for another number of lists than that of users or one.
            scores = tf.where(tf.broadcast_to(mask, tf.shape(scores)), PADDING_SCORE, scores)
        best, items = tf.math.top_k(scores, self._topn)
        items = tf.where(best > PADDING_SCORE, items, self._item_ids.shape[0] - 1)
        return {"items": tf.gather(self._item_ids, items), "scores": best, "vectors": vectors}

    def _items(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns the indices of items, given by their ids [batch, longest]; -1 for unknown ones."""
        return tf.cast(self._item_table.lookup(tf.ensure_shape(ids, [None, None])), tf.int32)

    def _among(self, items: tf.Tensor) -> tf.Tensor:
        """Returns which items of the catalog are among given ones [batch, longest]: bool [batch, items]."""
        return dense_labels(items, self._item_ids.shape[0] - 1) > 0.0


def no_item(item_ids: np.ndarray) -> Any:
    """Returns the id after the last item: "" or -1, like the padding of histories."""
    return "" if item_ids.dtype == object else -1


def _dtype(ids: np.ndarray) -> tf.DType:
    return tf.string if ids.dtype == object else tf.int64


def _table(ids: np.ndarray) -> tf.lookup.StaticHashTable:
    keys = tf.constant(ids.tolist(), _dtype(ids))
    return tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(keys, tf.range(len(ids), dtype=tf.int64)), default_value=-1
    )
