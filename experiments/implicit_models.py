"""Recommenders of the package implicit as baselines for `tfr_smooth.recommendation.evaluate`."""

from __future__ import annotations

from typing import Any

import numpy as np
import threadpoolctl
from scipy import sparse

from tfr_smooth import recommendation


class Implicit:
    """A model of the package implicit, with the methods of `recommendation.Baseline`.

    Args:
      model: A model for processors with user and item factors, such as `implicit.cpu.als.AlternatingLeastSquares` and
        `implicit.cpu.bpr.BayesianPersonalizedRanking`, or one of the nearest neighbors, such as
        `implicit.nearest_neighbours.CosineRecommender`.
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    def fit(self, interactions: recommendation.Interactions) -> Implicit:
        """Trains on interactions; returns the recommender."""
        self._matrix = sparse.csr_matrix(interactions.matrix)
        with threadpoolctl.threadpool_limits(1, "blas"):  # implicit has threads of its own
            self._model.fit(self._matrix, show_progress=False)
        self.interactions_ = interactions
        return self

    def predict(self, users: Any) -> np.ndarray:
        """Returns the scores of all items for the indices of users, float32 [batch, items]."""
        users = np.asarray(users, int)
        if hasattr(self._model, "similarity"):
            return (self._matrix[users] @ self._model.similarity).toarray().astype(np.float32)
        return self._model.user_factors[users] @ self._model.item_factors.T
