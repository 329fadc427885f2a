"""Factors that are propagated over the graph of users and items, as in LightGCN."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth.recommendation.factors import CatalogFactors
from tfr_smooth.recommendation.interactions import Interactions, sparse
from tfr_smooth.recommendation.sequences import gather


class PropagatedFactors(CatalogFactors):
    r"""`CatalogFactors` whose vectors are factors averaged over the graph of users and items.

    $$E = \frac{1}{L + 1} \sum_{l=0}^L (D^{-1/2} A D^{-1/2})^l E_0$$

    with the trained factors $E_0$, the adjacency matrix A of the graph, and its diagonal matrix of degrees D (He et
    al., "LightGCN", SIGIR 2020, Eqs. 3, 4 and 8, with equal weights of the layers).

    Args:
      interactions: The edges of the graph.
      layers: L, the number of propagations, >= 1.
      **options: Arguments of `CatalogFactors` for factors.

    Time O(L * interactions * dim) per batch, besides that of `CatalogFactors`.
    """

    def __init__(self, interactions: Interactions, layers: int, **options: Any) -> None:
        super().__init__(num_users=interactions.num_users, num_items=interactions.num_items, **options)
        self._num_layers, self.supports_jit = layers, False
        edges = sparse.coo_array(interactions.matrix)
        degrees = np.concatenate([edges.sum(axis=1), edges.sum(axis=0)])
        items = edges.col + interactions.num_users
        places = np.concatenate([np.stack([edges.row, items], axis=1), np.stack([items, edges.row], axis=1)])
        places = places[np.lexsort((places[:, 1], places[:, 0]))].astype(np.int64)
        values = 1.0 / np.sqrt(degrees[places].prod(axis=1))
        self._edges = tf.constant(places), tf.constant(values, tf.float32), tf.constant([len(degrees)] * 2, tf.int64)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments except the interactions."""
        return {**super().get_config(), "propagation_layers": self._num_layers}

    def user_vectors(self, users: tf.Tensor | None = None) -> tf.Tensor:
        """Returns the vectors of users, or of all users."""
        return self._vectors(users, None)[0]

    def item_vectors(self) -> tf.Tensor:
        """Returns the vectors of the items."""
        return self._vectors(None, None)[1]

    def _vectors(self, users: tf.Tensor | None, items: tf.Tensor | None) -> tuple[tf.Tensor, tf.Tensor]:
        pairs = zip(self._propagated(), (users, items), strict=True)
        chosen = [table if rows is None else gather(table, rows) for table, rows in pairs]
        return self._of_users(chosen[0]), self._of_items(chosen[1], items)

    def _propagated(self) -> list[tf.Tensor]:
        """Returns the vectors of all users and all items."""
        factors = self._users.vectors(), self._items.vectors()
        layer = total = tf.concat(factors, axis=0)
        places, values, shape = self._edges
        matrix = tf.raw_ops.SparseTensorToCSRSparseMatrix(indices=places, values=values, dense_shape=shape)

        # Eight times as fast as `tf.sparse.sparse_dense_matmul`. The matrix is symmetric, so it is its own transpose.
        def multiply(right: tf.Tensor) -> tf.Tensor:
            return tf.raw_ops.SparseMatrixMatMul(a=matrix, b=right)

        neighbors = tf.custom_gradient(lambda right: (multiply(right), multiply))
        for _ in range(self._num_layers):
            layer = neighbors(layer)
            total += layer
        return tf.split(total / (self._num_layers + 1.0), [table.shape[0] for table in factors])
