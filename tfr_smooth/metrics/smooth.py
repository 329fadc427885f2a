"""The smooth metrics: what the losses are one minus of, to watch beside the exact metrics."""

from __future__ import annotations

import inspect
from typing import Any

import tensorflow as tf

from tfr_smooth import losses
from tfr_smooth.metrics.base import MeanOverLists

# What every loss takes: not for a metric.
_OF_EVERY_LOSS = frozenset(inspect.signature(losses.RankingLoss.__init__).parameters)

_register = tf.keras.utils.register_keras_serializable(package="tfr_smooth")


class SmoothMetric(MeanOverLists):
    """Base of the smooth metrics: the mean over lists of one minus a loss.

    A subclass names its loss, `class MyMetric(SmoothMetric, loss=MyLoss)`, and takes that loss's hyperparameters.

    Args:
      no_relevant: What a list without a relevant document counts: "skip", as in the loss, or "zero".
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the metric; by default the loss's, without "_loss".
      dtype: Keras' argument; the mean is kept in float64.
      **hyperparameters: Those of the loss.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time and memory are the loss's.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> metric = tfr_smooth.metrics.SmoothINDCGMetric(alpha=100.0)
      >>> metric.update_state(tf.constant([[0, 2, 1, -1]]), tf.constant([[1.0, 3.0, 2.0, 0.0]]))
      >>> print(metric.name, round(float(metric.result()), 4))
      smoothi_ndcg 1.0
    """

    _loss: type[losses.MetricLoss]

    def __init_subclass__(cls, *, loss: type[losses.MetricLoss] | None = None, **kwargs: Any) -> None:
        """Gives the class its loss, and a constructor that shows that loss's hyperparameters."""
        super().__init_subclass__(**kwargs)
        if loss is None:
            return

        def constructor(self: SmoothMetric, **arguments: Any) -> None:
            SmoothMetric.__init__(self, **arguments)

        own = inspect.signature(SmoothMetric.__init__).parameters.values()
        theirs = [p for p in inspect.signature(loss.__init__).parameters.values() if p.name not in _OF_EVERY_LOSS]
        shown = [p for p in own if p.kind is not inspect.Parameter.VAR_KEYWORD]
        constructor.__signature__ = inspect.Signature([shown[0], *theirs, *shown[1:]])  # type: ignore[attr-defined]
        constructor.__name__ = "__init__"
        cls._loss = loss
        cls.__init__ = constructor  # type: ignore[method-assign]

    def __init__(
        self,
        *,
        no_relevant: str = "skip",
        ragged: bool = False,
        name: str | None = None,
        dtype: Any = None,
        **hyperparameters: Any,
    ) -> None:
        unknown = _OF_EVERY_LOSS.intersection(hyperparameters)
        if unknown:
            raise TypeError(f"{type(self).__name__} takes no argument {sorted(unknown)[0]!r}.")
        loss = self._loss(**hyperparameters)
        super().__init__(
            loss.ranking,
            loss.metric,
            no_relevant=no_relevant,
            ragged=ragged,
            name=name or loss.name.removesuffix("_loss"),
            dtype=dtype,
        )


@_register
class SmoothINDCGMetric(SmoothMetric, loss=losses.SmoothINDCGLoss):
    """Mean smooth NDCG@K over lists: 1 - `losses.SmoothINDCGLoss`, whose hyperparameters it takes."""


@_register
class SmoothIPrecisionMetric(SmoothMetric, loss=losses.SmoothIPrecisionLoss):
    """Mean smooth P@K over lists: 1 - `losses.SmoothIPrecisionLoss`, whose hyperparameters it takes."""


@_register
class SmoothIMAPMetric(SmoothMetric, loss=losses.SmoothIMAPLoss):
    """Mean smooth average precision over lists: 1 - `losses.SmoothIMAPLoss`, whose hyperparameters it takes."""


@_register
class ApproxNDCGMetric(SmoothMetric, loss=losses.ApproxNDCGLoss):
    """Mean smooth NDCG@K over lists: 1 - `losses.ApproxNDCGLoss`, whose hyperparameters it takes."""


@_register
class ApproxPrecisionMetric(SmoothMetric, loss=losses.ApproxPrecisionLoss):
    """Mean smooth P@K over lists: 1 - `losses.ApproxPrecisionLoss`, whose hyperparameters it takes."""


@_register
class ApproxMAPMetric(SmoothMetric, loss=losses.ApproxMAPLoss):
    """Mean smooth average precision over lists: 1 - `losses.ApproxMAPLoss`, whose hyperparameters it takes."""


@_register
class SoftNDCGMetric(SmoothMetric, loss=losses.SoftNDCGLoss):
    """Mean smooth NDCG@K over lists: 1 - `losses.SoftNDCGLoss`, whose hyperparameters it takes."""


@_register
class SoftPrecisionMetric(SmoothMetric, loss=losses.SoftPrecisionLoss):
    """Mean smooth P@K over lists: 1 - `losses.SoftPrecisionLoss`, whose hyperparameters it takes."""


@_register
class NeuralSortNDCGMetric(SmoothMetric, loss=losses.NeuralSortNDCGLoss):
    """Mean smooth NDCG@K over lists: 1 - `losses.NeuralSortNDCGLoss`, whose hyperparameters it takes."""


@_register
class NeuralSortPrecisionMetric(SmoothMetric, loss=losses.NeuralSortPrecisionLoss):
    """Mean smooth P@K over lists: 1 - `losses.NeuralSortPrecisionLoss`, whose hyperparameters it takes."""


@_register
class NeuralSortMAPMetric(SmoothMetric, loss=losses.NeuralSortMAPLoss):
    """Mean smooth average precision over lists: 1 - `losses.NeuralSortMAPLoss`, whose hyperparameters it takes."""


@_register
class SoftSortNDCGMetric(SmoothMetric, loss=losses.SoftSortNDCGLoss):
    """Mean smooth NDCG@K over lists: 1 - `losses.SoftSortNDCGLoss`, whose hyperparameters it takes."""


@_register
class SoftSortPrecisionMetric(SmoothMetric, loss=losses.SoftSortPrecisionLoss):
    """Mean smooth P@K over lists: 1 - `losses.SoftSortPrecisionLoss`, whose hyperparameters it takes."""


@_register
class SoftSortMAPMetric(SmoothMetric, loss=losses.SoftSortMAPLoss):
    """Mean smooth average precision over lists: 1 - `losses.SoftSortMAPLoss`, whose hyperparameters it takes."""


@_register
class FastSortNDCGMetric(SmoothMetric, loss=losses.FastSortNDCGLoss):
    """Mean smooth NDCG@K over lists: 1 - `losses.FastSortNDCGLoss`, whose hyperparameters it takes."""


@_register
class FastSortPrecisionMetric(SmoothMetric, loss=losses.FastSortPrecisionLoss):
    """Mean smooth P@K over lists: 1 - `losses.FastSortPrecisionLoss`, whose hyperparameters it takes."""


@_register
class FastSortMAPMetric(SmoothMetric, loss=losses.FastSortMAPLoss):
    """Mean smooth average precision over lists: 1 - `losses.FastSortMAPLoss`, whose hyperparameters it takes."""


@_register
class SinkhornNDCGMetric(SmoothMetric, loss=losses.SinkhornNDCGLoss):
    """Mean smooth NDCG@K over lists: 1 - `losses.SinkhornNDCGLoss`, whose hyperparameters it takes."""


@_register
class SinkhornPrecisionMetric(SmoothMetric, loss=losses.SinkhornPrecisionLoss):
    """Mean smooth P@K over lists: 1 - `losses.SinkhornPrecisionLoss`, whose hyperparameters it takes."""


@_register
class SinkhornMAPMetric(SmoothMetric, loss=losses.SinkhornMAPLoss):
    """Mean smooth average precision over lists: 1 - `losses.SinkhornMAPLoss`, whose hyperparameters it takes."""
