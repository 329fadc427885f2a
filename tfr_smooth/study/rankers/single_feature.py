"""A single feature as the score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import metrics
from tfr_smooth.study.folds import Fold, padded
from tfr_smooth.study.rankers.method import Fitted, Method


class SingleFeature(Method):
    """Ranks by one feature, such as BM25.

    Settings: `feature`, the number of the feature, counted from 1; a negative number ranks low values first. None
    selects the feature with the best training NDCG.
    """

    defaults = {"feature": None}

    def fit(self, fold: Fold, settings: Mapping[str, Any], seed: int) -> Fitted:
        """Selects the feature and returns its values as scores."""
        feature = settings.get("feature") or _best_feature(fold)
        column, sign = abs(feature) - 1, np.sign(feature)
        valid, test = (sign * fold.parts[part].features[:, column] for part in ("valid", "test"))
        return Fitted(valid, test, details={"feature": int(feature)})


def _best_feature(fold: Fold) -> int:
    """Returns the number of the feature with the best training NDCG, negative if its lowest values are best."""
    train = fold.parts["train"]
    documents, labels = padded(train, int(train.lengths.max()))
    metric = metrics.NDCGMetric(gain="linear")
    by_feature = {}
    for column in range(train.num_features):
        values = tf.constant(train.features[:, column][documents])
        for sign in (1, -1):
            metric.reset_state()
            metric.update_state(labels, sign * values)
            by_feature[sign * (column + 1)] = float(metric.result())
    return max(by_feature, key=by_feature.__getitem__)
