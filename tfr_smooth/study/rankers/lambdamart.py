"""LambdaMART by LightGBM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfr_smooth import _extras
from tfr_smooth.study.folds import Fold
from tfr_smooth.study.rankers.method import Fitted, Method

_ROUNDS, _PATIENCE = 1000, 50


class LambdaMart(Method):
    """Boosted regression trees with LambdaRank's gradients (Burges 2010), by LightGBM.

    Validation NDCG@10 selects the number of trees. Settings, named as in LightGBM: `num_leaves`, `learning_rate`,
    `min_data_in_leaf` (these three are searched), `feature_fraction`, `lambda_l2` and `lambdarank_truncation_level`.
    """

    defaults = {
        "num_leaves": 31,
        "learning_rate": 0.1,
        "min_data_in_leaf": 20,
        "feature_fraction": 1.0,
        "lambda_l2": 0.0,
        "lambdarank_truncation_level": 30,
    }

    def grid(self) -> dict[str, tuple[Any, ...]]:
        """Returns the values that a study searches."""
        return {"num_leaves": (7, 15, 31), "learning_rate": (0.03, 0.1), "min_data_in_leaf": (20, 100)}

    def fit(self, fold: Fold, settings: Mapping[str, Any], seed: int) -> Fitted:
        """Trains the trees."""
        with _extras.needed("lightgbm", extra="study", by="The ranker 'lambdamart'"):
            import lightgbm
        data = {
            name: lightgbm.Dataset(part.features, part.labels, group=part.lengths) for name, part in fold.parts.items()
        }
        parameters = {
            **self.defaults,
            **settings,
            "objective": "lambdarank",
            "metric": "ndcg",
            "eval_at": [10],
            "seed": seed,
            "num_threads": 1,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        }
        curves: dict[str, Any] = {}
        booster = lightgbm.train(
            parameters,
            data["train"],
            num_boost_round=_ROUNDS,
            valid_sets=[data["valid"]],
            valid_names=["valid"],
            callbacks=[
                lightgbm.early_stopping(_PATIENCE, verbose=False),
                lightgbm.record_evaluation(curves),
            ],
        )
        valid, test = (
            np.asarray(booster.predict(fold.parts[part].features, num_threads=1)) for part in ("valid", "test")
        )
        details = {"trees": booster.best_iteration}
        return Fitted(valid, test, {"lightgbm_ndcg_10": curves["valid"]["ndcg@10"]}, details)
