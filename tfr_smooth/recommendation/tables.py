"""Tables of items or users: their columns as features of an encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, models
from tfr_smooth.columns import Column, TableFeatures, column_arrays, infer_columns
from tfr_smooth.data.reading import checks
from tfr_smooth.models.normalization import Quantiles
from tfr_smooth.recommendation.ids import checked_ids, ids_after, indices_of

_EMBEDDING_DIM = 16


class Table(NamedTuple):
    """The features of all users or items.

    Attributes:
      columns: The columns.
      values: float32 [rows, features], as from `columns.TableFeatures`.
    """

    columns: list[Column]
    values: np.ndarray

    def encoder(self, name: str, network: tf.keras.layers.Layer | None, dim: int, seed: int) -> TableEncoder:
        """Returns a new encoder.

        Args:
          name: The argument that the network is.
          network: The layer of the encoded features, of which a new one with the same config is used. None for two
            dense layers.
          dim: The size of the vectors without a network.
          seed: Seed of the weights.
        """
        if network is None:
            initial = [tf.keras.initializers.GlorotUniform(seed=2 * seed + place) for place in range(2)]
            hidden = tf.keras.layers.Dense(2 * dim, activation="relu", kernel_initializer=initial[0])
            network = tf.keras.Sequential([hidden, tf.keras.layers.Dense(dim, kernel_initializer=initial[1])])
        network = type(network).from_config(network.get_config())
        layer = TableFeatures(self.columns)
        own: dict[str, Any] = {"embeddings": layer.embeddings, "vectors": layer.vectors, "name": name}
        return TableEncoder(network, num_features=layer.num_features, seed=seed, **own)


def read_all(
    given: Mapping[str, tuple[Any, str]],
    ids: Sequence[np.ndarray],
    kinds: Mapping[str, str],
    columns: Mapping[str, Sequence[Column]],
) -> tuple[list[np.ndarray], dict[str, Table | None]]:
    """Returns the ids of users and items, and the features of their tables.

    Args:
      given: The tables of "users" and "items", or None, and their columns of ids.
      ids: The ids of users and of items that the tables must have. Further ones come after them.
      kinds: The kinds of columns that are not to be inferred.
      columns: The columns of "users" and "items" that are known; others are inferred.
    """
    all_ids, found = [], dict.fromkeys(given)
    for (what, (table, name)), known in zip(given.items(), ids, strict=True):
        if table is None and what in columns:
            raise ValueError(f"`{what}` must be a table as in the first `fit`, got None.")
        if table is not None:
            known, found[what] = _read(what, table, name, known, kinds, columns.get(what))
        all_ids.append(known)
    names = [column.name for table in found.values() if table is not None for column in table.columns]
    for name in kinds:
        _arguments.name("kinds", name, names)
    return all_ids, found


def _read(
    what: str, table: Any, name: str, ids: np.ndarray, kinds: Mapping[str, str], columns: Sequence[Column] | None
) -> tuple[np.ndarray, Table]:
    """Returns the ids of a table, the known ones first, and its features in their order."""
    found = checks.as_arrow(table)
    if name not in found.column_names or found.num_columns < 2:
        raise ValueError(f"`{what}` must have the column {name!r} of ids and others, got {found.column_names}.")
    own = checked_ids(what, found[name].to_pylist(), None)
    missing = sorted(set(ids.tolist()).difference(own.tolist()), key=str)
    if missing:
        raise ValueError(f"`{what}` must have a row for each id of the interactions, got none for {missing[0]!r}.")
    order = ids_after(ids, own)
    found = found.drop_columns([name]).take(indices_of(what[:-1], own, order))
    if columns is None:
        given = {column: kind for column, kind in kinds.items() if column in found.column_names}
        columns = infer_columns(found, kinds=given)
    return order, Table(list(columns), TableFeatures(columns)(column_arrays(found, columns)).numpy())


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class TableEncoder(tf.keras.layers.Layer):
    """Maps the features of a table to vectors: numbers by value and quantile, codes by vectors of their own.

    Args:
      network: The layer of the encoded features, [rows, width] to vectors [rows, size].
      num_features: Features per row, >= 1.
      embeddings: The features that are codes, as `tables` of `models.Embeddings`.
      vectors: The features that are vectors, (first, length), which are not normalized.
      seed: Seed of the vectors of codes.
      **kwargs: `name` and other arguments of a Keras layer.
    """

    def __init__(
        self,
        network: tf.keras.layers.Layer,
        *,
        num_features: int,
        embeddings: Sequence[Sequence[int]] = (),
        vectors: Sequence[Sequence[int]] = (),
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"dtype": "float32", **kwargs})
        self._own: dict[str, Any] = {
            "num_features": num_features,
            "embeddings": embeddings,
            "vectors": vectors,
            "seed": seed,
        }
        others = {first + place for first, length, *_ in [*embeddings, *vectors] for place in range(length)}
        self._numbers = [place for place in range(num_features) if place not in others]
        self._quantiles, self._embeddings, self._network = None, None, network
        if self._numbers:
            self._quantiles = Quantiles()
            self._quantiles.build((None, None, len(self._numbers)))
        if embeddings:
            self._embeddings = models.Embeddings(embeddings, dim=_EMBEDDING_DIM, seed=seed)
        self.built = True
        shape = self(tf.zeros([1, num_features])).shape  # creates the weights of the network
        if len(shape) != 2:
            raise ValueError(f"`{self.name}` must return vectors [batch, size], got shape {tuple(shape)}.")
        self.num_features, self.size = num_features, int(shape[1])

    def learn(self, features: np.ndarray) -> None:
        """Computes the statistics of the numbers among features [rows, features]."""
        if self._quantiles is not None:
            self._quantiles.learn([features[:, self._numbers].astype(np.float64)])

    def call(self, features: tf.Tensor) -> tf.Tensor:
        """Returns the vectors [rows, size]."""
        parts = [features[:, first : first + length] for first, length in self._own["vectors"]]
        if self._quantiles is not None:
            # Not the call, which requires statistics that a loaded layer does not have at first.
            numbers = tf.gather(features, self._numbers, axis=1)
            parts.append(self._quantiles.normalize(numbers, tf.ones_like(numbers, tf.bool)))
        if self._embeddings is not None:
            parts.append(self._embeddings(features))
        return self._network(tf.concat(parts, axis=1))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        network = tf.keras.utils.serialize_keras_object(self._network)
        return {**super().get_config(), **self._own, "network": network}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> TableEncoder:
        """Creates the layer from the result of `get_config`."""
        return cls(**{**config, "network": tf.keras.utils.deserialize_keras_object(config["network"])})
