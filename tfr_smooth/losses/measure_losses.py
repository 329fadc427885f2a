"""The measures of the smooth rankings as loss classes: `SmoothINDCGLoss`, `ApproxMRRLoss` and so on.

`measure_losses.pyi` next to this file has their signatures for editors and type checkers; `make stubs` writes it.
"""

from __future__ import annotations

from typing import Any

from tfr_smooth import _classes, registry
from tfr_smooth.losses.ranking_loss import MeasureLoss, RankingLoss

_OPTIONS: dict[str, Any] = {"dtype": None, "ragged": False, "name": None, "reduction": "sum_over_batch_size"}
_OPTIONS_DOCS = """\
dtype: Type of the computation and the result; see `RankingLoss`.
ragged: Whether labels and scores are `tf.RaggedTensor`s.
name: Name of the loss. None uses the default.
reduction: "sum_over_batch_size", "mean_with_sample_weight", "sum" or "none"; see `RankingLoss`."""


def _measure_loss(name: str, pair: registry.Pair) -> type[RankingLoss]:
    def initialize(self: Any, **arguments: Any) -> None:
        options = {key: arguments.pop(key) for key in _OPTIONS}
        MeasureLoss.__init__(self, *pair.parts(arguments), **options)

    def get_config(self: Any) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        parts = _classes.hyperparameters_of(self.ranking), _classes.hyperparameters_of(self.measure)
        return {**parts[0], **parts[1], **RankingLoss.get_config(self)}

    ranking, measure = pair.ranking.about, pair.measure.about
    arguments = ", ".join(f"{key}={value}" for key, value in {**ranking.sharp, **measure.example_arguments}.items())
    doc = _classes.docstring(
        f"1 - {measure.title} of the {ranking.title} ranking.",
        f"$$1 - {pair.formula}, \\qquad {ranking.formula}$$",
        f"({pair.citation}.)",
        "Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list].\n"
        'Returns a scalar, or [batch] for the reduction "none".\n' + measure.loss_note,
        arguments="\n".join([_classes.argument_docs(pair.ranking, pair.measure), _OPTIONS_DOCS]),
        raises="If an argument is out of range or the shapes do not match.",
        cost=pair.cost,
        example=f"""\
>>> import tensorflow as tf
>>> from tfr_smooth import losses
>>> loss = losses.{pair.stem}Loss({arguments})
>>> print(round(float(loss(tf.constant([[0, 2, 1, -1]]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))), 2))
{1.0 - measure.example:.2f}""".rstrip("0"),
    )
    return _classes.keras_class(
        f"{pair.stem}Loss",
        MeasureLoss,
        module=__name__,
        parameters={**pair.hyperparameters, **_OPTIONS, "name": f"{name}_loss"},
        initialize=initialize,
        attributes={"get_config": get_config},
        doc=doc,
    )


# Name -> class.
CLASSES: dict[str, type[RankingLoss]] = {name: _measure_loss(name, pair) for name, pair in registry.PAIRS.items()}

globals().update({loss.__name__: loss for loss in CLASSES.values()})
__all__ = sorted(loss.__name__ for loss in CLASSES.values())
