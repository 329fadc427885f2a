"""The rankers that a study compares. To add one, write a subclass of `Method` and a line in `RANKERS`."""

from __future__ import annotations

import abc
import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

import tfr_smooth
from experiments.folds import Fold
from tfr_smooth import losses, metrics, rankings


@dataclasses.dataclass(frozen=True)
class Fitted:
    """The scores of a ranker fitted on one fold.

    Args:
      valid: Scores of the validation documents, [documents].
      test: Scores of the test documents, [documents].
      curves: Learning curves: one number per epoch, by name.
      details: Further values to store with the result, as JSON values.
    """

    valid: np.ndarray
    test: np.ndarray
    curves: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict)
    details: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class Method(abc.ABC):
    """Base class of rankers.

    Attributes:
      randomized: Whether the result depends on the seed.
      is_neural: Whether the arguments of `tfr_smooth.Ranker` are among its settings.
      defaults: The settings with their default values, as JSON values by name.
      searched: The values that a study searches, by setting; it tries all their combinations.
    """

    randomized = False
    is_neural = False
    defaults: Mapping[str, Any] = {}
    searched: Mapping[str, Sequence[Any]] = {}

    @abc.abstractmethod
    def fit(self, fold: Fold, settings: Mapping[str, Any], seed: int) -> Fitted:
        """Fits the ranker on the training queries, and scores those of validation and test.

        Args:
          fold: The fold; its test queries are only for scoring.
          settings: The settings that differ from the defaults, by name.
          seed: Random seed.
        """

    def expanded(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the settings with those that one of them stands for."""
        return dict(settings)

    def check(self, settings: Mapping[str, Any]) -> None:
        """Raises a `ValueError` if the ranker does not have one of these settings, or a value is out of its range."""
        for name in settings:
            if name not in self.defaults:
                known = ", ".join(self.defaults) or "none"
                raise ValueError(f"`settings` of {type(self).__name__} must be among {known}, got {name!r}.")


class Chance(Method):
    """Random scores, the lower baseline."""

    randomized = True

    def fit(self, fold: Fold, settings: Mapping[str, Any], seed: int) -> Fitted:
        """Draws uniform scores."""
        random = np.random.default_rng(seed)
        valid, test = (random.random(len(queries.labels), np.float32) for queries in (fold.valid, fold.test))
        return Fitted(valid, test)


class SingleFeature(Method):
    """Ranks by one feature, such as BM25.

    `feature` is its number, counted from 1; a negative number ranks low values first. None selects the feature with the
    best training NDCG.
    """

    defaults = {"feature": None}

    def fit(self, fold: Fold, settings: Mapping[str, Any], seed: int) -> Fitted:
        """Selects the feature and returns its values as scores."""
        feature = settings.get("feature") or self._best(fold)
        column, sign = abs(feature) - 1, np.sign(feature)
        valid, test = (sign * queries.features[:, column] for queries in (fold.valid, fold.test))
        return Fitted(valid, test, details={"feature": int(feature)})

    def _best(self, fold: Fold) -> int:
        def padded(values: np.ndarray) -> tf.Tensor:
            return tf.RaggedTensor.from_row_lengths(values, fold.train.lengths).to_tensor(-1.0)

        labels, metric = padded(fold.train.labels), metrics.get("ndcg", gain="linear")
        ndcg = {}
        for column in range(fold.train.features.shape[1]):
            for sign in (1, -1):
                metric.reset_state()
                metric.update_state(labels, padded(sign * fold.train.features[:, column]))
                ndcg[sign * (column + 1)] = float(metric.result())
        return max(ndcg, key=ndcg.__getitem__)


class Ridge(Method):
    """Ridge regression of the labels on the standardized features; `strength` is the L2 penalty per document."""

    defaults = {"strength": 0.01}
    searched = {"strength": (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)}

    def fit(self, fold: Fold, settings: Mapping[str, Any], seed: int) -> Fitted:
        """Solves for the weights."""
        from sklearn import linear_model, pipeline, preprocessing

        strength = {**self.defaults, **settings}["strength"] * len(fold.train.labels)
        model = pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.Ridge(alpha=strength))
        model.fit(fold.train.features.astype(np.float64), fold.train.labels)
        valid, test = (model.predict(queries.features.astype(np.float64)) for queries in (fold.valid, fold.test))
        return Fitted(valid, test, details={"weights": model[-1].coef_.tolist()})


class LambdaMart(Method):
    """LightGBM's boosted trees with LambdaRank's gradients; validation NDCG@10 selects the number of trees."""

    defaults = {
        "num_leaves": 31,
        "learning_rate": 0.1,
        "min_data_in_leaf": 20,
        "feature_fraction": 1.0,
        "lambda_l2": 0.0,
        "lambdarank_truncation_level": 30,
    }
    searched = {"num_leaves": (7, 15, 31), "learning_rate": (0.03, 0.1), "min_data_in_leaf": (20, 100)}

    def fit(self, fold: Fold, settings: Mapping[str, Any], seed: int) -> Fitted:
        """Trains at most 1000 trees, and stops 50 trees after the best one."""
        import lightgbm

        train, valid = (lightgbm.Dataset(part.features, part.labels, group=part.lengths) for part in fold[:2])
        fixed = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "seed": seed, "verbosity": -1}
        fixed |= {"num_threads": 1, "deterministic": True, "force_row_wise": True}
        curves: dict[str, Any] = {}
        booster = lightgbm.train(
            {**self.defaults, **settings, **fixed},
            train,
            num_boost_round=1000,
            valid_sets=[valid],
            valid_names=["valid"],
            callbacks=[lightgbm.early_stopping(50, verbose=False), lightgbm.record_evaluation(curves)],
        )
        scores = [np.asarray(booster.predict(part.features, num_threads=1)) for part in (fold.valid, fold.test)]
        curves = {"lightgbm_ndcg_10": curves["valid"]["ndcg@10"]}
        return Fitted(scores[0], scores[1], curves, {"trees": booster.best_iteration})


# The first hyperparameter that the papers searched, by the prefix of the loss.
_SEARCHED: dict[str, dict[str, Sequence[float]]] = {
    "smoothi": {"alpha": (0.1, 1.0, 10.0, 100.0)},
    "approx": {"alpha": (0.1, 1.0, 5.0, 10.0, 20.0, 40.0, 100.0)},
    "soft": {"sigma": (1e-4, 1e-3, 1e-2, 0.1, 1.0)},
    "neuralsort": {"temperature": (0.1, 1.0, 10.0, 100.0)},
    "softsort": {"temperature": (0.1, 1.0, 10.0, 100.0)},
    "fastsort": {"regularization_strength": (0.01, 0.1, 1.0, 10.0)},
    "sinkhorn": {"epsilon": (0.01, 0.1, 1.0, 10.0)},
    "lapsum": {"alpha": (0.01, 0.1, 1.0, 10.0)},
    "sortingnetwork": {"steepness": (0.1, 1.0, 10.0, 100.0)},
}
# The training of the SmoothI paper, as arguments of `Ranker`.
PAPER: dict[str, Any] = {
    "members": 1,
    "hidden": (1024,),
    "epochs": 50,
    "learning_rate": 0.001,
    "schedule": "constant",
    "softmax_epochs": 0,
    "batch_size": 128,
    "normalization": None,
    "batch_norm": True,
    "dropout": 0.0,
    "weight_decay": 0.0,
}
# The arguments of `Ranker` that are no settings of a study: a fold has validation queries and no categories.
_FIXED = ("loss", "seed", "verbose", "validation_fraction", "network", "kinds", "matches", "max_categories")


class Neural(Method):
    """`tfr_smooth.Ranker` with a loss.

    The settings are the arguments of `Ranker` and the hyperparameters of the loss, by default those of the SmoothI
    paper; the setting `recipe="default"` stands for the defaults of `Ranker`.

    Args:
      loss: Name of the loss.
    """

    randomized = True
    is_neural = True

    def __init__(self, loss: str) -> None:
        self._loss = loss
        self.searched = {**_SEARCHED.get(loss.partition("_")[0], {}), "learning_rate": (0.01, 0.001)}

    @functools.cached_property
    def defaults(self) -> dict[str, Any]:  # type: ignore[override]
        """The settings with their default values."""
        arguments = {name: value for name, value in tfr_smooth.Ranker().get_params().items() if name not in _FIXED}
        # The seed is also the name of a hyperparameter of losses with noise.
        own = {name: value for name, value in losses.hyperparameters(self._loss).items() if name not in _FIXED}
        return {**arguments, **own, **PAPER}

    def expanded(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the settings with those that the setting `recipe` stands for."""
        others = dict(settings)
        recipe = others.pop("recipe", "paper")
        if recipe not in ("paper", "default"):
            raise ValueError(f"`recipe` must be one of 'default', 'paper', got {recipe!r}.")
        if recipe == "paper":
            return others
        known = {**losses.hyperparameters(self._loss), **tfr_smooth.Ranker().get_params()}
        return {**{name: known[name] for name in (*PAPER, *self.searched)}, **others}

    def check(self, settings: Mapping[str, Any]) -> None:
        """Raises a `ValueError` if the ranker does not have these settings."""
        super().check(settings)
        self._ranker(settings, seed=0)

    def fit(self, fold: Fold, settings: Mapping[str, Any], seed: int) -> Fitted:
        """Trains the networks."""
        train, valid, test = fold
        ranker = self._ranker(settings, seed)
        ranker.fit(
            train.features,
            train.labels,
            group=train.lengths,
            validation=(valid.features, valid.labels, valid.qid),
            further_metrics=_exact(self._loss, json.dumps(dict(settings))),
        )
        names = {f"val_{self._loss}": "valid_smooth", "val_ndcg": "valid_ndcg", "val_exact": "valid_exact"}
        curves = {names.get(name, name): values for name, values in ranker.history_.items()}
        scores = [ranker.predict(queries.features, group=queries.lengths) for queries in (valid, test)]
        best = None if ranker.best_epoch_ is None else ranker.best_epoch_ - 1  # published results count from 0
        return Fitted(scores[0], scores[1], curves, {"best_epoch": best})

    def _ranker(self, settings: Mapping[str, Any], seed: int) -> tfr_smooth.Ranker:
        chosen = {**self.defaults, **settings}
        if isinstance(chosen.get("discount"), Mapping):  # such as {"alpha": 0.5}
            chosen["discount"] = rankings.ShallowDiscount(**chosen["discount"])
        return _ranker(self._loss).set_params(seed=seed, **chosen)


@functools.lru_cache(maxsize=1)
def _ranker(loss: str) -> tfr_smooth.Ranker:
    """Returns the ranker of a process for a loss; trainings whose settings shape the same graphs share them."""
    return tfr_smooth.Ranker(loss=loss, verbose=False)


@functools.lru_cache(maxsize=1)
def _exact(loss: str, settings: str) -> list[Any]:
    """Returns the exact metric that a smooth loss approximates; trainings with the same object share their graphs."""
    measure = loss.partition("_")[2]
    if not {loss, measure} <= {*metrics.NAMES}:
        return []
    known = metrics.hyperparameters(measure)
    given = {name: value for name, value in json.loads(settings).items() if name in known}
    if isinstance(given.get("discount"), Mapping):
        given["discount"] = rankings.ShallowDiscount(**given["discount"])
    return [metrics.get(measure, name="exact", no_relevant="skip", **given)]


RANKERS: dict[str, Method] = {
    "lambdamart": LambdaMart(),
    "ridge": Ridge(),
    "single_feature": SingleFeature(),
    "random": Chance(),
    **{name: Neural(name) for name in losses.NAMES},
}
