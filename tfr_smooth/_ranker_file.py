"""The file of a `Ranker`: a Keras model file with one more entry, the arguments and results of the ranker."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import tensorflow as tf

from tfr_smooth import models
from tfr_smooth._table_inputs import TableInputs
from tfr_smooth.training.ranker_training import serialized

_ENTRY = "ranker.json"
_NAME = "ranker.keras"  # Keras looks at the ending.


def write(ranker: Any, path: str | os.PathLike[str]) -> None:
    """Writes a fitted ranker."""
    ranker.model_.save(os.fspath(path))
    content = {
        "params": serialized(ranker.get_params()),
        "inputs": None if ranker.inputs_ is None else ranker.inputs_.state(),
        "history": ranker.history_,
        "best_epoch": ranker.best_epoch_,
    }
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(_ENTRY, json.dumps(content, default=str))


def read(kind: type, path: str | os.PathLike[str]) -> Any:
    """Returns the ranker, of the given class."""
    try:
        with zipfile.ZipFile(path) as file:
            content = json.loads(file.read(_ENTRY))
    except (KeyError, zipfile.BadZipFile):
        raise ValueError(f"`path` must be a file of `Ranker.save`, got {os.fspath(path)!r}.") from None
    params = content["params"]
    if not isinstance(params["loss"], str):
        params["loss"] = tf.keras.losses.deserialize(params["loss"])
    if params["network"] is not None:
        params["network"] = tf.keras.utils.deserialize_keras_object(params["network"])
    ranker = kind(**params)
    model = tf.keras.models.load_model(os.fspath(path), compile=False)
    inputs, scorer = None, model
    if isinstance(model, models.TableScorer):
        inputs, scorer = TableInputs(model.table_features, **content["inputs"]), model.scorer
    ranker._take_fitted(inputs, scorer, content["history"], content["best_epoch"])
    return ranker


def to_bytes(ranker: Any) -> bytes:
    """Returns the content of the file of a fitted ranker."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _NAME
        write(ranker, path)
        return path.read_bytes()


def from_bytes(kind: type, content: bytes) -> Any:
    """Returns the ranker of the content of a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _NAME
        path.write_bytes(content)
        return read(kind, path)
