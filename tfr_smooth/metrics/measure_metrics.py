"""The measures as Keras metrics, of the exact ranking (`NDCGMetric`) and of smooth rankings (`SmoothINDCGMetric`).

`measure_metrics.pyi` next to this file has their signatures for editors and type checkers; `make stubs` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfr_smooth import _classes, registry
from tfr_smooth._about import AboutMeasure
from tfr_smooth.measures import Measure
from tfr_smooth.metrics.mean_over_lists import MeanOverLists
from tfr_smooth.rankings import ExactRanking

_COMMON: dict[str, Any] = {"no_relevant": "zero", "ragged": False, "name": None, "dtype": None}
_COMMON_DOCS = """\
no_relevant: How to treat lists without a relevant document: "zero" counts them as 0 (trec_eval, the papers), "skip"
  excludes them (as the losses do).
ragged: Whether labels and scores are `tf.RaggedTensor`s.
name: Name of the metric; {name}.
dtype: Type of the result; the mean is accumulated in float64. None uses Keras's default."""
_RAISES = "If an argument is out of range or the shapes do not match."


def _example(metric: str, measure: AboutMeasure, arguments: Mapping[str, Any]) -> str:
    shown = ", ".join(f"{key}={value}" for key, value in {**arguments, **measure.example_arguments}.items())
    return f"""\
>>> import tensorflow as tf
>>> from tfr_smooth import metrics
>>> metric = metrics.{metric}({shown})
>>> metric.update_state(tf.constant([{measure.example_labels}]), tf.constant([[3.0, 2.0, 1.0, 0.0]]))
>>> print(round(float(metric.result()), 2))
{round(measure.example, 2)}"""


def _config_of(*parts: Any, common: dict[str, Any]) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for part in parts:
        config |= _classes.hyperparameters_of(part)
    return {**config, **common}


def _smooth_metric(name: str, pair: registry.Pair) -> type[MeanOverLists]:
    def initialize(self: Any, **arguments: Any) -> None:
        common = {key: arguments.pop(key) for key in _COMMON}
        MeanOverLists.__init__(self, *pair.parts(arguments), **common)

    def get_config(self: Any) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return _config_of(self.ranking, self.measure, common=self._common_config())

    ranking, measure = pair.ranking.about, pair.measure.about
    arguments = [
        _classes.argument_docs(pair.ranking, pair.measure),
        _COMMON_DOCS.format(name=f'by default "{name}"'),
    ]
    return _classes.keras_class(
        f"{pair.stem}Metric",
        MeanOverLists,
        module=__name__,
        parameters={**pair.hyperparameters, **_COMMON, "name": name},
        initialize=initialize,
        attributes={"get_config": get_config},
        doc=_classes.docstring(
            f"Mean {measure.title} of the {ranking.title} ranking; see `losses.{pair.stem}Loss`.",
            f"$${pair.formula}, \\qquad {ranking.formula}$$",
            f"({pair.citation}.)",
            arguments="\n".join(arguments),
            raises=_RAISES,
            cost=pair.cost,
            example=_example(f"{pair.stem}Metric", measure, ranking.sharp),
        ),
    )


def _exact_metric(name: str, measure: type[Measure]) -> type[MeanOverLists]:
    def initialize(self: Any, **arguments: Any) -> None:
        common = {key: arguments.pop(key) for key in _COMMON}
        topn = arguments.get("topn")
        common["name"] = common["name"] or (name if topn is None else f"{name}_{topn}")
        MeanOverLists.__init__(self, ExactRanking(), measure(**arguments), **common)

    def get_config(self: Any) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return _config_of(self.measure, common=self._common_config())

    hyperparameters, about = registry.defaults(measure), measure.about
    default_name = f'by default "{name}"' + (f', or "{name}_K" with a cutoff K' if "topn" in hyperparameters else "")
    arguments = [_classes.argument_docs(measure), _COMMON_DOCS.format(name=default_name)]
    return _classes.keras_class(
        about.exact,
        MeanOverLists,
        module=__name__,
        parameters={**hyperparameters, **_COMMON},
        initialize=initialize,
        attributes={"get_config": get_config},
        doc=_classes.docstring(
            f"Mean {about.title}.",
            f"$${about.formula}$$",
            f"({about.citation}.)\n{about.note}",
            arguments="\n".join(filter(None, arguments)),
            raises=_RAISES,
            cost=about.cost,
            example=_example(about.exact, about, {}),
        ),
    )


# Name -> class. Smooth metrics have the names of their losses.
CLASSES: dict[str, type[MeanOverLists]] = {
    **{name: _exact_metric(name, measure) for name, measure in registry.EXACT.items()},
    **{name: _smooth_metric(name, pair) for name, pair in registry.PAIRS.items()},
}

globals().update({metric.__name__: metric for metric in CLASSES.values()})
__all__ = sorted(metric.__name__ for metric in CLASSES.values())
