"""Imports TF-Ranking, whose last release needs Keras 2 and `tf.estimator`, on TensorFlow 2.15 and later."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any, NamedTuple, NoReturn

import tensorflow as tf

from tfr_smooth import _keras

_PARENTS = ("tensorflow", "tensorflow.compat.v1")
_HAS_ESTIMATORS = tuple(map(int, tf.__version__.split(".")[:2])) < (2, 16)
_INSTALL = (
    "pip install 'tfr_smooth[ranking]'"
    if _HAS_ESTIMATORS
    else "pip install 'tfr_smooth[legacy-keras]', then pip install --no-deps tensorflow-ranking==0.5.5"
)


class ServingInputReceiver(NamedTuple):
    """What a TF-Ranking serving input function returns: features, and the tensors to feed, by name."""

    features: Any
    receiver_tensors: Any
    receiver_tensors_alternatives: Any = None


class _ModeKeys:
    TRAIN, EVAL, PREDICT = "train", "eval", "infer"


class _Module(types.ModuleType):
    """A module whose missing names are those of Estimators."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(
            f"{self.__name__}.{name} is not available: TensorFlow {tf.__version__} has no Estimators, which "
            "TF-Ranking's heads, model functions and estimator builders need. Use TF-Ranking's Keras API, or "
            "TensorFlow 2.15."
        )


def _estimator() -> types.ModuleType:
    """Returns what TF-Ranking needs of `tf.estimator` outside of its Estimators."""
    module = _Module("tf.estimator", "Stands in for the module that TensorFlow 2.16 removed.")
    module.ModeKeys = _ModeKeys  # type: ignore[attr-defined]
    module.export = _Module("tf.estimator.export")  # type: ignore[attr-defined]
    module.export.ServingInputReceiver = ServingInputReceiver
    return module


def import_tf_ranking() -> types.ModuleType:
    """Imports TF-Ranking and returns it; from then on `import tensorflow_ranking` works, too.

    TensorFlow 2.16 removed `tf.estimator`, which TF-Ranking imports. There a stand-in takes its place in
    `sys.modules`, with what TF-Ranking needs outside of its Estimators.

    Raises:
      ImportError: If Keras 3 is active, with which TF-Ranking's models and losses fail, or TF-Ranking is not
        installed.
      NotImplementedError: Later, where a part of TF-Ranking needs Estimators.
    """
    if _keras.IS_KERAS_3:
        imported = " tf_keras is imported, but it is not the Keras of TensorFlow." if "tf_keras" in sys.modules else ""
        raise ImportError(
            f"TF-Ranking needs Keras 2, but Keras {tf.keras.__version__} is active.{imported} Set the environment "
            "variable TF_USE_LEGACY_KERAS=1 before TensorFlow is imported, for example by "
            f"os.environ['TF_USE_LEGACY_KERAS'] = '1' at the top of the program. To install what it needs: {_INSTALL}"
        )
    names = [] if _HAS_ESTIMATORS else [f"{parent}.estimator" for parent in _PARENTS]
    missing = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(missing, _estimator()))
    try:
        return importlib.import_module("tensorflow_ranking")
    except ImportError as error:
        for name in missing:
            del sys.modules[name]
        raise ImportError(f"`tfr_smooth.tf_ranking` needs TF-Ranking: {_INSTALL}") from error


tfr = import_tf_ranking()
