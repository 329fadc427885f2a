"""Neural rankers: `tfr_smooth.Ranker` trained with a loss."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import losses, metrics, rankings, registry, training
from tfr_smooth.measures import Measure
from tfr_smooth.ranker import Ranker
from tfr_smooth.study.folds import Fold
from tfr_smooth.study.rankers.method import Fitted, Method
from tfr_smooth.training.recipe import graph_settings

_LEARNING_RATES = (0.01, 0.001)
# The arguments of `Ranker` that are no settings of a study: a fold has validation queries and no categories.
_FIXED = ("loss", "seed", "verbose", "validation_fraction", "max_categories")


class Neural(Method):
    """`tfr_smooth.Ranker` trained with a loss.

    The settings are the arguments of `Ranker` and the hyperparameters of the loss, by default those of the SmoothI
    paper; the setting `recipe="default"` stands for the defaults of `Ranker`. A study searches the learning rate and
    the first hyperparameter that the papers search for the loss.

    Args:
      loss: Name of the loss.
    """

    randomized = True
    is_neural = True

    def __init__(self, loss: str) -> None:
        self._loss = loss

    @functools.cached_property
    def defaults(self) -> dict[str, Any]:  # type: ignore[override]
        """The settings with their default values."""
        arguments = {name: value for name, value in Ranker().get_params().items() if name not in _FIXED}
        return {**arguments, **losses.hyperparameters(self._loss), **training.recipe_options("paper", self._loss)}

    def grid(self) -> dict[str, tuple[Any, ...]]:
        """Returns the values that a study searches."""
        searched = dict(list(losses.TABLE[self._loss].searched.items())[:1])
        return {**searched, "learning_rate": _LEARNING_RATES}

    def expanded(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the settings with those that the setting `recipe` stands for."""
        others = dict(settings)
        recipe = registry.check_name("recipe", others.pop("recipe", "paper"), training.RECIPES)
        return {**(training.recipe_options(recipe, self._loss) if recipe != "paper" else {}), **others}

    def check(self, settings: Mapping[str, Any]) -> None:
        """Raises a `ValueError` if the ranker does not have these settings."""
        super().check(settings)
        self._ranker(settings, seed=0)

    def canonical(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the settings without default values of `Ranker`, so that its new arguments change no old result."""
        kept = losses.hyperparameters(self._loss)
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in self.defaults.items()}
        return {name: value for name, value in settings.items() if name in kept or value != plain[name]}

    def affinity(self, settings: Mapping[str, Any]) -> Any:
        """Returns the settings that shape the graphs, which jobs in the same process share."""
        return graph_settings(settings)

    def fit(self, fold: Fold, settings: Mapping[str, Any], seed: int) -> Fitted:
        """Trains the networks."""
        train, valid, test = (fold.parts[part] for part in ("train", "valid", "test"))
        ranker, seconds = self._ranker(settings, seed), _TrainingSeconds()
        loss = ranker.loss_
        # The same measure of the exact ranking, which the smooth metric approximates.
        watch = [_exact(loss.measure)] if isinstance(loss, losses.MeasureLoss) else []
        ranker.fit(
            train.features,
            train.labels,
            group=train.lengths,
            eval_set=(valid.features, valid.labels, np.repeat(np.arange(len(valid.lengths)), valid.lengths)),
            watch=watch,
            callbacks=[seconds],
        )
        names = {f"val_{self._loss}": "valid_smooth", "val_ndcg": "valid_ndcg", "val_exact": "valid_exact"}
        curves = {names.get(name, name): values for name, values in ranker.history_.items()}
        return Fitted(
            ranker.predict(valid.features, group=valid.lengths),
            ranker.predict(test.features, group=test.lengths),
            {**curves, "train_seconds": seconds.of_epochs},
            {"best_epoch": ranker.best_epoch_},
        )

    def _ranker(self, settings: Mapping[str, Any], seed: int) -> Ranker:
        """Returns the ranker; a discount {"alpha": x} is a `ShallowDiscount`."""
        chosen = {**self.defaults, **settings}
        if isinstance(chosen.get("discount"), Mapping):
            chosen["discount"] = rankings.ShallowDiscount(**chosen["discount"])
        return Ranker(loss=self._loss, seed=seed, verbose=False, **chosen)


@functools.lru_cache(maxsize=1)
def _exact(measure: Measure) -> metrics.MeanOverLists:
    """Returns the same metric for equal measures: fits with the same object share graphs."""
    return metrics.MeanOverLists(rankings.ExactRanking(), measure, no_relevant="skip", name="exact")


class _TrainingSeconds(tf.keras.callbacks.Callback):
    """Measures the processor time of each epoch without its validation."""

    def __init__(self) -> None:
        super().__init__()
        self.of_epochs: list[float] = []
        self._start = 0.0

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras."""
        self._start = time.process_time()
        self.of_epochs.append(0.0)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras."""
        self.of_epochs[-1] = time.process_time() - self._start
