"""Differences between Keras 2 and Keras 3."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

IS_KERAS_3 = hasattr(tf.keras, "ops")
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
