"""The base class of scorers: Keras models that `compile` with the names of losses and metrics."""

from __future__ import annotations

import contextlib
import functools
import inspect
import warnings
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _keras, _serialization, losses, metrics

# The names of metrics that Keras's `compile` resolves by the shape of the labels; `metrics.get` knows only some.
_METRICS_OF_COMPILE = ("accuracy", "acc", "crossentropy", "ce")


class Scorer(tf.keras.Model):
    """Base class of models of lists of documents, whose `compile` knows the names of losses and metrics.

    Its `fit` works on several replicas with masks and lists of different lengths.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> class Linear(models.Scorer):
      ...     def __init__(self):
      ...         super().__init__()
      ...         self.dense = tf.keras.layers.Dense(1)
      ...     def call(self, features, training=None):
      ...         return self.dense(features)[:, :, 0]
      >>> model = Linear()
      >>> model.compile("adam", "smoothi_ndcg", metrics=["ndcg@5"])
      >>> history = model.fit(tf.random.normal([4, 3, 2]), tf.tile([[1.0, 0.0, 0.0]], [4, 1]), verbose=0).history
      >>> sorted(history)
      ['loss', 'ndcg_5']
    """

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Configures training like Keras's `compile`, which also accepts the names of tfr_smooth's losses and metrics.

        For example: `compile("adam", "smoothi_ndcg", metrics=["ndcg"])`.

        Args:
          *args: Positional arguments of `tf.keras.Model.compile`.
          **kwargs: Further arguments of `tf.keras.Model.compile`. Names in `loss`, `metrics` and `weighted_metrics` are
            those that `losses.get` and `metrics.get` know, or Keras's own.

        Raises:
          ValueError: If a name is neither that of a loss or metric of tfr_smooth, nor one of Keras.
        """
        bound = inspect.signature(super().compile).bind(*args, **kwargs)
        for argument, ours, theirs in (
            ("loss", losses, tf.keras.losses),
            ("metrics", metrics, tf.keras.metrics),
            ("weighted_metrics", metrics, tf.keras.metrics),
        ):
            if bound.arguments.get(argument) is not None:
                find = functools.partial(_named, argument, ours, theirs)
                bound.arguments[argument] = tf.nest.map_structure(find, bound.arguments[argument])
        super().compile(*bound.args, **bound.kwargs)

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        """Trains like Keras's `fit`.

        Args:
          *args: Positional arguments of `tf.keras.Model.fit`.
          **kwargs: Further arguments of `tf.keras.Model.fit`, except for `class_weight`.

        Returns:
          The history.

        Raises:
          ValueError: If `class_weight` is given, which Keras ignores for lists, or arrays of labels contain NaN.
        """
        if kwargs.get("class_weight") is not None:
            raise ValueError("`class_weight` must be None: labels of lists are no classes. Weight lists or documents.")
        _check_arrays(*(kwargs.get(name, value) for name, value in zip("xy", (*args, None, None), strict=False)))
        return super().fit(*args, **kwargs)

    @property
    def input_specs(self) -> dict[str, tf.TensorSpec]:
        """The inputs of a built model of features, by name; {} for other models."""
        count = getattr(self, "num_features", None)
        specs = {"features": tf.TensorSpec([None, None, count], tf.float32, "features")}
        return {} if count is None else {**specs, "mask": tf.TensorSpec([None, None], tf.bool, "mask")}

    def export(self, *args: Any, **kwargs: Any) -> Any:
        """Exports the model like Keras's `export`; by default with `input_specs` as the signature.

        Args:
          *args: Positional arguments of `tf.keras.Model.export`.
          **kwargs: Further arguments of `tf.keras.Model.export`.
        """
        if _keras.IS_KERAS_3 and self.input_specs:
            kwargs.setdefault("input_signature", [self.input_specs])
        return super().export(*args, **kwargs)

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles a model loaded from a file. Keras requires this method of models that override `compile`.

        Args:
          config: The config of the `compile` call, as stored by Keras.
        """
        self.compile(**tf.keras.utils.deserialize_keras_object(config))
        if self.built and hasattr(self.optimizer, "build"):
            self.optimizer.build(self.trainable_variables)

    def _maybe_symbolic_build(self, iterator: Any = None, data_batch: Any = None) -> None:
        # `fit` and `evaluate` of Keras 3 average the first batch over replicas, also if the model is built, and have no
        # public hook before that. TensorFlow cannot average bool masks, strings or lists of different lengths. The
        # batch of one replica has the same shapes.
        if iterator is not None and self.distribute_strategy.num_replicas_in_sync > 1:
            _, _, batches = next(iter(iterator))
            replicas = self.distribute_strategy.experimental_local_results
            iterator, data_batch = None, tf.nest.map_structure(lambda value: replicas(value)[0], next(batches))
        super()._maybe_symbolic_build(iterator=iterator, data_batch=data_batch)


class FeatureScorer(_serialization.ConfiguredLayer, Scorer):
    """Base class of scorers that `.keras` files restore from the constructor's arguments and the number of features."""

    def get_build_config(self) -> dict[str, Any]:
        """Returns the number of features, which `.keras` files store to recreate the weights; None without weights."""
        return {"num_features": getattr(self, "num_features", None) if self.built else None}

    def build_from_config(self, config: dict[str, Any]) -> None:
        """Creates the weights of a model loaded from a `.keras` file."""
        if config["num_features"] is not None:
            self.build((None, None, config["num_features"]))


def _check_arrays(x: Any, y: Any) -> None:
    """Checks labels without a mask, if they are arrays: no NaN, and no padding by zeros, which has no label < 0."""
    arrays = (np.ndarray, tf.Tensor)
    if not isinstance(y, arrays) or (labels := np.asarray(y)).dtype.kind not in "fiu":
        return
    if np.isnan(labels).any():
        raise ValueError("`y` must be numbers, negative for padding, got NaN.")
    features = x.get("features") if isinstance(x, dict) and "mask" not in x else x
    if isinstance(features, arrays) and np.ndim(features) == 3 and labels.ndim == 2 and (labels >= 0).all():
        padding = ~np.asarray(features)[:, -1].any(axis=1) & (labels[:, -1] == 0)
        if 0 < padding.sum() < len(labels):
            got = f"0 at the end of {padding.sum()} lists, with features of 0: these count as documents"
            warnings.warn(f"`y` should be negative for padding, got {got}.", stacklevel=3)


def _named(argument: str, ours: Any, theirs: Any, identifier: Any) -> Any:
    """Returns our loss or metric of this name; Keras's names and other values are unchanged."""
    if not isinstance(identifier, str):
        return identifier
    with contextlib.suppress(ValueError):
        return ours.get(identifier)
    if identifier.lower() in _METRICS_OF_COMPILE and theirs is tf.keras.metrics:
        return identifier
    with contextlib.suppress(ValueError):
        if callable(theirs.get(identifier)):  # Keras 2 returns some unknown names.
            return identifier
    hint = _arguments.hint(identifier, ours.NAMES)
    raise ValueError(f"`{argument}` must be known to tfr_smooth or Keras by its name, got {identifier!r}.{hint}")
