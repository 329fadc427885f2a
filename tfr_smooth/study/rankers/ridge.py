"""Ridge regression on the labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfr_smooth import _extras
from tfr_smooth.study.folds import Fold
from tfr_smooth.study.rankers.base import Fitted, Ranker


def fit_ridge(features: np.ndarray, labels: np.ndarray, strength: float) -> np.ndarray:
    r"""Returns the weights of ridge regression.

    $$w = (X^\top X / D + \lambda I)^{-1} X^\top y / D$$

    with X and y centered. The intercept is left out, as it changes no ranking.

    Args:
      features: X, [documents, num_features].
      labels: y, [documents].
      strength: $\lambda$, > 0, relative to the variance of the features.

    Returns:
      float64 [num_features].
    """
    with _extras.needed("scipy", extra="study", by="Ridge regression"):
        import scipy.linalg
    centered = features.astype(np.float64) - features.mean(axis=0, dtype=np.float64)
    targets = labels.astype(np.float64) - labels.mean(dtype=np.float64)
    covariance = centered.T @ centered / len(targets) + strength * np.eye(centered.shape[1])
    return scipy.linalg.solve(covariance, centered.T @ targets / len(targets), assume_a="pos")


class Ridge(Ranker):
    """Ridge regression of the labels on the standardized features.

    Settings: `strength`, searched from 1e-4 to 10; `normalization` of the features, as in `Recipe`.
    """

    defaults = {"strength": 0.01, "normalization": "standardize"}

    def grid(self) -> dict[str, tuple[Any, ...]]:
        """Returns the values that a study searches."""
        return {"strength": (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)}

    def fit(self, fold: Fold, settings: Mapping[str, Any], seed: int) -> Fitted:
        """Solves for the weights."""
        settings = {**self.defaults, **settings}
        features = fold.features(settings["normalization"])
        weights = fit_ridge(features["train"], fold.parts["train"].labels, settings["strength"])
        return Fitted(features["valid"] @ weights, features["test"] @ weights, details={"weights": weights.tolist()})
