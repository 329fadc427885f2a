"""Imports TF-Ranking with and without `tf.estimator`, which its last release imports beside Keras 2."""

from __future__ import annotations

import collections
import importlib
import sys
import types
from typing import Any, NoReturn

import tensorflow as tf

from tfr_smooth import _keras

_STAND_INS = () if hasattr(tf, "estimator") else ("tensorflow.estimator", "tensorflow.compat.v1.estimator")
# What TF-Ranking's serving input functions return: features, and input tensors by name.
ServingInputReceiver = collections.namedtuple(
    "ServingInputReceiver", "features receiver_tensors receiver_tensors_alternatives", defaults=[None]
)
_INSTALL = "pip install 'tfr_smooth[legacy-keras]', then pip install --no-deps tensorflow-ranking==0.5.5"


class _Module(types.ModuleType):
    """A module that raises an error about Estimators for missing names."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(
            f"{self.__name__}.{name} is not available: TensorFlow {tf.__version__} has no Estimators, which "
            "TF-Ranking's heads, model functions and estimator builders require. Use TF-Ranking's Keras API or "
            "TensorFlow 2.15."
        )


def _estimator() -> types.ModuleType:
    """Returns a stand-in for `tf.estimator` with the names that TF-Ranking uses outside of Estimators."""
    module: Any = _Module("tf.estimator", "Stand-in for the module that TensorFlow 2.16 removed.")
    module.ModeKeys = types.SimpleNamespace(TRAIN="train", EVAL="eval", PREDICT="infer")
    module.ServingInputReceiver = ServingInputReceiver
    module.export = module
    return module


def import_tf_ranking() -> types.ModuleType:
    """Imports and returns TF-Ranking; afterwards, `import tensorflow_ranking` works, too.

    TF-Ranking imports `tf.estimator`, which TensorFlow 2.16 removed. On later versions, a stand-in in `sys.modules`
    provides the names that TF-Ranking uses outside of Estimators; parts that need Estimators raise a
    `NotImplementedError` when used.

    Raises:
      ImportError: If Keras 3 is active, which TF-Ranking does not support, or TF-Ranking is not installed.
    """
    if _keras.IS_KERAS_3:
        imported = " tf_keras is imported, but it is not the Keras of TensorFlow." if "tf_keras" in sys.modules else ""
        raise ImportError(
            f"TF-Ranking needs Keras 2, but Keras {tf.keras.__version__} is active.{imported} Set the environment "
            "variable TF_USE_LEGACY_KERAS=1 before TensorFlow is imported, for example with "
            f"os.environ['TF_USE_LEGACY_KERAS'] = '1' at the top of the program. To install TF-Ranking: {_INSTALL}"
        )
    missing = [name for name in _STAND_INS if name not in sys.modules]
    sys.modules.update(dict.fromkeys(missing, _estimator()))
    try:
        return importlib.import_module("tensorflow_ranking")
    except ImportError as error:
        for name in missing:
            del sys.modules[name]
        raise ImportError(f"`tfr_smooth.tf_ranking` needs TF-Ranking: {_INSTALL}") from error


tfr = import_tf_ranking()
