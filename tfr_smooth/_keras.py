"""Where Keras 2 and Keras 3 differ, in one place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

# The Keras of TensorFlow 2.15 does not tell its version.
IS_KERAS_3 = not getattr(tf.keras, "__version__", "2").startswith("2")


def tensorflow_variables(variables: Iterable[Any]) -> list[tf.Variable]:
    """Returns TensorFlow's own variables, which checkpoints and SavedModels track: Keras 3 wraps them."""
    return [v.value if IS_KERAS_3 else v for v in variables]


def representation(configured: Any) -> str:
    """Returns the call that makes a loss or metric, from its config: `SmoothINDCGLoss(alpha=1.0, ...)`."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in configured.get_config().items())
    return f"{type(configured).__name__}({arguments})"
