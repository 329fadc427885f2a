"""The model card of an export: a description of the model, its training and its results."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfr_smooth import _files, _keras
from tfr_smooth._version import __version__
from tfr_smooth.serving import signature_names

_JSON = os.path.join("assets.extra", "model_card.json")  # in the directory of the version
_PACKAGES = ("tensorflow", _keras.PACKAGE, "tensorflow-ranking", "numpy", "protobuf")


# The entries that only the trainer of the model knows: the purpose of the model and its limitations; the training data;
# the training procedure, such as hyperparameters; the loss; the results, and the data they were measured on.
_ENTRIES = ("description", "data", "training", "loss", "metrics")


def write(folder: Path, card: Mapping[str, Any], **details: Any) -> None:
    """Writes a model card as model_card.json in assets.extra, which is created.

    Args:
      folder: The directory of the version.
      card: The given entries. Those of `_ENTRIES` that are missing are null.
      **details: Further entries by name, before the given ones.
    """
    (folder / _JSON).parent.mkdir()
    _files.write_text(folder / _JSON, [to_json(complete(card, **details))])


def read(folder: Path) -> dict[str, Any]:
    """Returns the model card of a version.

    Args:
      folder: The directory of the version.

    Raises:
      ValueError: If it has none, or the card is damaged: it is no JSON, or has other signatures than the model.
    """
    path = folder / _JSON
    if not path.exists():
        raise ValueError(f"`path` must be an export with the file {_JSON}, got {os.fspath(folder)!r}.")
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise damaged(folder, error) from None
    if not isinstance(card, dict) or card.get("signatures") != signature_names.describe(folder):
        raise damaged(folder, "its signatures are not those of saved_model.pb")
    return card


def damaged(folder: Path, reason: object) -> ValueError:
    """Returns the error about a card that does not describe its model."""
    reason = " ".join(str(reason).split())
    return ValueError(f"`path` must be an export whose model card describes it, got {folder / _JSON}: {reason}.")


def complete(card: Mapping[str, Any], **details: Any) -> dict[str, Any]:
    """Returns the details, the given entries, and the software versions."""
    content = {**details, **dict.fromkeys(_ENTRIES), **card, "software": software()}
    return {name: _plain(value) for name, value in content.items()}


def software() -> dict[str, str]:
    """Returns the versions of the software that created the export."""
    versions = {"python": platform.python_version(), "tfr_smooth": __version__}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # such as TF-Ranking, which is optional
    return versions


def to_json(content: Mapping[str, Any]) -> str:
    """Returns the card as JSON."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    """Returns the value as JSON-serializable types."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)  # JSON has no NaN
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(inner) for inner in value]
    if hasattr(value, "get_config"):
        return {"class": type(value).__name__, "config": _plain(value.get_config())}
    if hasattr(value, "tolist"):
        return _plain(value.tolist())  # NumPy scalars and arrays
    return str(value)
