"""The losses of the registry as classes: `SmoothINDCGLoss`, `ListNetLoss` and so on.

`named.pyi` next to this file has their signatures for editors and type checkers; `make stubs` writes it.
"""

from __future__ import annotations

from typing import Any

from tfr_smooth import _classes, registry
from tfr_smooth.losses.base import CriterionLoss, MetricLoss, RankingLoss
from tfr_smooth.ops import PositionRanking

_COMMON: dict[str, Any] = {"ragged": False, "name": None, "reduction": "sum_over_batch_size"}
_COMMON_DOCS = """\
ragged: Whether labels and scores are `tf.RaggedTensor`s.
name: Name of the loss. None uses Keras's default.
reduction: "sum_over_batch_size", "sum" or "none"; see `RankingLoss`."""
_CALL = """\
Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list]. Returns a
scalar, or [batch] for the reduction "none"."""


def _metric_loss(name: str, pair: registry.Pair) -> type[RankingLoss]:
    def initialize(self: Any, *, ragged: bool, name: str, reduction: str, **hyperparameters: Any) -> None:
        MetricLoss.__init__(self, *pair.parts(hyperparameters), ragged=ragged, name=name, reduction=reduction)

    def get_config(self: Any) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        parts = _classes.hyperparameters_of(self.ranking), _classes.hyperparameters_of(self.metric)
        return {**parts[0], **parts[1], **RankingLoss.get_config(self)}

    ranking, metric = pair.ranking, pair.metric
    by_position = issubclass(ranking.ranking, PositionRanking)
    formula = metric.position_formula if by_position else metric.formula
    arguments = ", ".join(f"{key}={value}" for key, value in ranking.sharp.items())
    doc = _classes.docstring(
        f"1 - {metric.title} of the {ranking.title} ranking.",
        f"$$1 - {formula}, \\qquad {ranking.formula}$$",
        f"({pair.citation}.)",
        f"{_CALL}\nThe loss is at most 1. It may be slightly below 0, as a smooth ranking may place a document at\n"
        "more than one rank. Lists without a relevant document are excluded.",
        arguments="\n".join([_classes.argument_docs(ranking.ranking, metric.metric), _COMMON_DOCS]),
        raises="If an argument is out of range or the shapes do not match.",
        cost=pair.cost,
        example=f"""\
>>> import tensorflow as tf
>>> from tfr_smooth import losses
>>> loss = losses.{pair.stem}Loss({arguments})
>>> print(round(float(loss(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))), 2))
{1.0 - metric.example:.2f}""".rstrip("0"),
    )
    return _classes.keras_class(
        f"{pair.stem}Loss",
        MetricLoss,
        module=__name__,
        parameters={**pair.hyperparameters, **_COMMON, "name": f"{name}_loss"},
        initialize=initialize,
        attributes={"get_config": get_config},
        doc=doc,
    )


def _criterion_loss(name: str, entry: registry.BaselineEntry) -> type[RankingLoss]:
    def initialize(self: Any, *, ragged: bool, name: str, reduction: str, **hyperparameters: Any) -> None:
        criterion = entry.criterion(**hyperparameters)
        CriterionLoss.__init__(self, criterion, ragged=ragged, name=name, reduction=reduction)

    def get_config(self: Any) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**_classes.hyperparameters_of(self._criterion), **RankingLoss.get_config(self)}

    summary, *paragraphs = _classes.description(entry.criterion)
    doc = _classes.docstring(
        summary,
        *paragraphs,
        _CALL,
        arguments="\n".join(filter(None, [_classes.argument_docs(entry.criterion), _COMMON_DOCS])),
        raises="If an argument is out of range or the shapes do not match.",
        cost=entry.cost,
        example=f"""\
>>> import tensorflow as tf
>>> from tfr_smooth import losses
>>> loss = losses.{entry.loss}()
>>> labels = tf.constant([[0, 2, 1, -1]])
>>> print(bool(loss(labels, tf.constant([[1.0, 3.0, 2.0, 0.0]])) < loss(labels, tf.constant([[3.0, 2.0, 1.0, 0.0]]))))
True""",
    )
    return _classes.keras_class(
        entry.loss,
        CriterionLoss,
        module=__name__,
        parameters={**registry.defaults(entry.criterion), **_COMMON, "name": name.removesuffix("_loss") + "_loss"},
        initialize=initialize,
        attributes={"get_config": get_config},
        doc=doc,
    )


# Name -> class.
CLASSES: dict[str, type[RankingLoss]] = {
    **{name: _metric_loss(name, pair) for name, pair in registry.PAIRS.items()},
    **{name: _criterion_loss(name, entry) for name, entry in registry.BASELINES.items()},
}

globals().update({loss.__name__: loss for loss in CLASSES.values()})
__all__ = sorted(loss.__name__ for loss in CLASSES.values())
