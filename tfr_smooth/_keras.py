"""Differences between Keras 2 and Keras 3."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

# Keras in TensorFlow 2.15 has no `__version__`.
IS_KERAS_3 = not getattr(tf.keras, "__version__", "2").startswith("2")
# The distribution behind `tf.keras`. From TensorFlow 2.16 on, Keras 2 is "tf-keras".
PACKAGE = tf.keras.Model.__module__.partition(".")[0].replace("_", "-")


def warn_of_other_keras() -> None:
    """Warns if tf_keras is imported but `tf.keras` is another package: a model of tf_keras would ignore weights."""
    if PACKAGE != "tf-keras" and "tf_keras" in sys.modules:
        warnings.warn(
            f"tf_keras is imported, but this loss belongs to the package {PACKAGE}. Models of tf_keras would ignore "
            "sample weights: set TF_USE_LEGACY_KERAS=1 in the environment before TensorFlow is imported.",
            stacklevel=4,
        )


def tensorflow_variables(variables: Iterable[Any]) -> list[tf.Variable]:
    """Returns the `tf.Variable` objects, which Keras 3 wraps and checkpoints and SavedModels track."""
    return [v.value if IS_KERAS_3 else v for v in variables]


def scales_loss(optimizer: Any) -> bool:
    """Returns whether the optimizer takes gradients of a scaled loss: float16 would lose small gradients."""
    return isinstance(optimizer, tf.keras.mixed_precision.LossScaleOptimizer)


def scale_loss(optimizer: Any, loss: tf.Tensor) -> tf.Tensor:
    """Returns the loss to differentiate, scaled if `scales_loss`."""
    if IS_KERAS_3:
        return optimizer.scale_loss(loss)
    return optimizer.get_scaled_loss(loss) if scales_loss(optimizer) else loss


def unscale(optimizer: Any, gradients: list[tf.Tensor]) -> list[tf.Tensor]:
    """Returns the gradients for `apply_gradients`, which removes the scale itself in Keras 3."""
    return gradients if IS_KERAS_3 or not scales_loss(optimizer) else optimizer.get_unscaled_gradients(gradients)
