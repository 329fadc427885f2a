"""Differences between Keras 2 and Keras 3."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

# Keras in TensorFlow 2.15 has no `__version__`.
IS_KERAS_3 = not getattr(tf.keras, "__version__", "2").startswith("2")
# The distribution behind `tf.keras`. From TensorFlow 2.16 on, Keras 2 is "tf-keras".
PACKAGE = tf.keras.Model.__module__.partition(".")[0].replace("_", "-")


def refuse_other_keras() -> None:
    """Raises a `RuntimeError` if a tf_keras model is the caller but `tf.keras` is another package.

    Such a model would ignore sample weights.
    """
    if PACKAGE == "tf-keras" or "tf_keras" not in sys.modules:
        return
    frame = sys._getframe(1)
    while frame := frame.f_back:  # type: ignore[assignment]
        if frame.f_globals.get("__name__", "").startswith("tf_keras."):
            raise RuntimeError(
                "A model of tf_keras needs TF_USE_LEGACY_KERAS=1 in the environment before TensorFlow is imported: "
                f"this loss uses the package {PACKAGE}."
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


def representation(configured: Any) -> str:
    """Returns the constructor call of a loss or metric, from its config: `SmoothINDCGLoss(alpha=1.0, ...)`."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in configured.get_config().items())
    return f"{type(configured).__name__}({arguments})"
