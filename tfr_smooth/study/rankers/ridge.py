"""Ridge regression of the labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfr_smooth.models.ridge_regression import RidgeRegression
from tfr_smooth.study.folds import Fold
from tfr_smooth.study.rankers.method import Fitted, Method


def fit_ridge(features: np.ndarray, labels: np.ndarray) -> RidgeRegression:
    """Returns the ridge regression of labels [documents] on features [documents, num_features]."""
    regression = RidgeRegression()
    regression.add(features, labels)
    return regression


class Ridge(Method):
    """Ridge regression of the labels on the standardized features.

    Settings: `strength`, the L2 penalty, searched from 1e-4 to 10; `normalization` of the features, as in
    `tfr_smooth.Ranker`.
    """

    defaults = {"strength": 0.01, "normalization": "standardize"}

    def grid(self) -> dict[str, tuple[Any, ...]]:
        """Returns the values that a study searches."""
        return {"strength": (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)}

    def fit(self, fold: Fold, settings: Mapping[str, Any], seed: int) -> Fitted:
        """Solves for the weights."""
        settings = {**self.defaults, **settings}
        features = fold.features(settings["normalization"])
        weights = fit_ridge(features["train"], fold.parts["train"].labels).weights(settings["strength"])
        return Fitted(features["valid"] @ weights, features["test"] @ weights, details={"weights": weights.tolist()})
