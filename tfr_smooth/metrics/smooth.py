"""The smooth metrics: what the losses are one minus of, to watch beside the exact metrics."""

from __future__ import annotations

import inspect
from typing import Any

import tensorflow as tf

from tfr_smooth.functional import parts
from tfr_smooth.metrics.base import MeanOverLists

_register = tf.keras.utils.register_keras_serializable(package="tfr_smooth")


class SmoothMetric(MeanOverLists):
    """Base of the smooth metrics: the mean over lists of a metric read off a smooth ranking.

    A subclass names the two, `class MyMetric(SmoothMetric, pair="smoothi_ndcg")`, and takes their arguments.

    Args:
      no_relevant: What a list without a relevant document counts: "skip", as in the loss, or "zero".
      ragged: Whether labels and scores come as `tf.RaggedTensor`.
      name: Name of the metric; by default the pair's.
      dtype: Keras' argument; the mean is kept in float64.
      **hyperparameters: Those of the ranking and of the metric.

    Raises:
      ValueError: If an argument is out of its range or the shapes do not match.

    Time and memory are the ranking's.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> metric = tfr_smooth.metrics.SmoothINDCGMetric(alpha=100.0)
      >>> metric.update_state(tf.constant([[0, 2, 1, -1]]), tf.constant([[1.0, 3.0, 2.0, 0.0]]))
      >>> print(metric.name, round(float(metric.result()), 4))
      smoothi_ndcg 1.0
    """

    _pair: str

    def __init_subclass__(cls, *, pair: str | None = None, **kwargs: Any) -> None:
        """Gives the class its pair, and a constructor that shows the arguments of the two."""
        super().__init_subclass__(**kwargs)
        if pair is None:
            return

        def constructor(self: SmoothMetric, **arguments: Any) -> None:
            SmoothMetric.__init__(self, **arguments)

        theirs = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            for name, default in parts.hyperparameters(pair).items()
        ]
        own = list(inspect.signature(SmoothMetric.__init__).parameters.values())[:-1]  # without **hyperparameters
        constructor.__signature__ = inspect.Signature([own[0], *theirs, *own[1:]])  # type: ignore[attr-defined]
        constructor.__name__ = "__init__"
        cls._pair = pair
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
        ranking, metric, rest = parts.make_pair(self._pair, hyperparameters)
        if rest:
            raise TypeError(f"{type(self).__name__} takes no argument {sorted(rest)[0]!r}.")
        super().__init__(ranking, metric, no_relevant=no_relevant, ragged=ragged, name=name or self._pair, dtype=dtype)


@_register
class SmoothINDCGMetric(SmoothMetric, pair="smoothi_ndcg"):
    """Mean smooth NDCG@K over lists: 1 - `losses.SmoothINDCGLoss`, whose hyperparameters it takes."""


@_register
class SmoothIPrecisionMetric(SmoothMetric, pair="smoothi_precision"):
    """Mean smooth P@K over lists: 1 - `losses.SmoothIPrecisionLoss`, whose hyperparameters it takes."""


@_register
class SmoothIMAPMetric(SmoothMetric, pair="smoothi_map"):
    """Mean smooth average precision over lists: 1 - `losses.SmoothIMAPLoss`, whose hyperparameters it takes."""


@_register
class ApproxNDCGMetric(SmoothMetric, pair="approx_ndcg"):
    """Mean smooth NDCG@K over lists: 1 - `losses.ApproxNDCGLoss`, whose hyperparameters it takes."""


@_register
class ApproxPrecisionMetric(SmoothMetric, pair="approx_precision"):
    """Mean smooth P@K over lists: 1 - `losses.ApproxPrecisionLoss`, whose hyperparameters it takes."""


@_register
class ApproxMAPMetric(SmoothMetric, pair="approx_map"):
    """Mean smooth average precision over lists: 1 - `losses.ApproxMAPLoss`, whose hyperparameters it takes."""


@_register
class SoftNDCGMetric(SmoothMetric, pair="soft_ndcg"):
    """Mean smooth NDCG@K over lists: 1 - `losses.SoftNDCGLoss`, whose hyperparameters it takes."""


@_register
class SoftPrecisionMetric(SmoothMetric, pair="soft_precision"):
    """Mean smooth P@K over lists: 1 - `losses.SoftPrecisionLoss`, whose hyperparameters it takes."""


@_register
class NeuralSortNDCGMetric(SmoothMetric, pair="neuralsort_ndcg"):
    """Mean smooth NDCG@K over lists: 1 - `losses.NeuralSortNDCGLoss`, whose hyperparameters it takes."""


@_register
class NeuralSortPrecisionMetric(SmoothMetric, pair="neuralsort_precision"):
    """Mean smooth P@K over lists: 1 - `losses.NeuralSortPrecisionLoss`, whose hyperparameters it takes."""


@_register
class NeuralSortMAPMetric(SmoothMetric, pair="neuralsort_map"):
    """Mean smooth average precision over lists: 1 - `losses.NeuralSortMAPLoss`, whose hyperparameters it takes."""


@_register
class SoftSortNDCGMetric(SmoothMetric, pair="softsort_ndcg"):
    """Mean smooth NDCG@K over lists: 1 - `losses.SoftSortNDCGLoss`, whose hyperparameters it takes."""


@_register
class SoftSortPrecisionMetric(SmoothMetric, pair="softsort_precision"):
    """Mean smooth P@K over lists: 1 - `losses.SoftSortPrecisionLoss`, whose hyperparameters it takes."""


@_register
class SoftSortMAPMetric(SmoothMetric, pair="softsort_map"):
    """Mean smooth average precision over lists: 1 - `losses.SoftSortMAPLoss`, whose hyperparameters it takes."""


@_register
class FastSortNDCGMetric(SmoothMetric, pair="fastsort_ndcg"):
    """Mean smooth NDCG@K over lists: 1 - `losses.FastSortNDCGLoss`, whose hyperparameters it takes."""


@_register
class FastSortPrecisionMetric(SmoothMetric, pair="fastsort_precision"):
    """Mean smooth P@K over lists: 1 - `losses.FastSortPrecisionLoss`, whose hyperparameters it takes."""


@_register
class FastSortMAPMetric(SmoothMetric, pair="fastsort_map"):
    """Mean smooth average precision over lists: 1 - `losses.FastSortMAPLoss`, whose hyperparameters it takes."""


@_register
class SinkhornNDCGMetric(SmoothMetric, pair="sinkhorn_ndcg"):
    """Mean smooth NDCG@K over lists: 1 - `losses.SinkhornNDCGLoss`, whose hyperparameters it takes."""


@_register
class SinkhornPrecisionMetric(SmoothMetric, pair="sinkhorn_precision"):
    """Mean smooth P@K over lists: 1 - `losses.SinkhornPrecisionLoss`, whose hyperparameters it takes."""


@_register
class SinkhornMAPMetric(SmoothMetric, pair="sinkhorn_map"):
    """Mean smooth average precision over lists: 1 - `losses.SinkhornMAPLoss`, whose hyperparameters it takes."""
