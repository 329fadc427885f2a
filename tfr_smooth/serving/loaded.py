"""What all exports in memory have in common."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _extras
from tfr_smooth._estimator import check_process
from tfr_smooth.data.reading import checks


class Loaded:
    """An export in memory. Its methods may be called by several threads at once.

    Args:
      path: The directory of the version.
      card: The model card.
    """

    _takes_texts = False  # by a tokenizer

    def __init__(self, path: Path, card: Mapping[str, Any]) -> None:
        self.path, self.card = path, card
        if self._takes_texts or any(feature.get("kind") == "encoded" for feature in card.get("features", ())):
            with _extras.needed("tensorflow-text", extra="text", by="An export with an encoder"):
                import tensorflow_text  # noqa: F401  # registers the operations of tokenizers
        self._model = tf.saved_model.load(os.fspath(path))

    def _call(self, signature: str, inputs: Mapping[str, Any]) -> Any:
        check_process()
        return self._model.signatures[signature](**{name: tf.constant(values) for name, values in inputs.items()})


def as_list(argument: str, values: Any) -> list[Any]:
    """Returns the values of an argument as a list."""
    if isinstance(values, (str, bytes, Mapping)) or hasattr(values, "columns") or not np.iterable(values):
        raise ValueError(f"`{argument}` must be a list, or a list of lists, got {checks.shown(values)}.")
    return list(values)
