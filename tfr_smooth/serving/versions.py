"""Version directories for TF Serving: PATH/1, PATH/2, ..., each created atomically, with a model card."""

from __future__ import annotations

import contextlib
import errno
import importlib.metadata
import logging
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from tfr_smooth import _arguments, _files, _keras, _version

_MODEL = "saved_model.pb"
EXTRA = "assets.extra"  # which TF Serving defines
_CARD = os.path.join(EXTRA, "model_card.json")
_PACKAGES = ("tensorflow", _keras.PACKAGE, "tensorflow-ranking", "numpy", "protobuf")
# The entries that only the trainer of the model knows: the purpose of the model and its limitations; the training data;
# the training procedure, such as hyperparameters; the loss; the results, and the data they were measured on.
_ENTRIES = ("description", "data", "training", "loss", "metrics")


def publish(path: str | os.PathLike[str], version: int | None, write: Callable[[Path, int], None]) -> Path:
    """Creates a version directory.

    It is written as PATH/.unfinished-..., which a server ignores because the name is not a number, and then renamed in
    one step. If the process is killed, only the unfinished directory remains.

    Args:
      path: A local directory, created if missing.
      version: The version number, >= 1. None uses the last version plus one.
      write: Called with the directory to fill and the version number.

    Returns:
      The version directory.

    Raises:
      OSError: If the disk is full.
      ValueError: If the path is on a remote file system, which cannot rename a directory in one step, or a pattern, the
        number is not an integer >= 1 or None, or the version exists, also if another process has just written it.
    """
    if "://" in os.fspath(path):
        raise ValueError(f"`path` must be a local directory (copy the finished version from there), got {path!r}.")
    if _files.is_pattern(path):
        expected = "without [ ] * ? \\, with which TensorFlow cannot load it"
        raise ValueError(f"`path` must be {expected}, got {os.fspath(path)!r}.")
    names = [child.name for child in Path(path).iterdir()] if Path(path).is_dir() else []
    number = max((int(name) for name in names if name.isascii() and name.isdigit()), default=0) + 1
    if version is not None:
        number = _arguments.integer("version", version, least=1)
    target = Path(path) / str(number)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        if target.exists():
            raise FileExistsError(target)
        with _files.replacing(target, overwrite=False) as unfinished:
            unfinished.mkdir()
            with quiet("tensorflow", logging.WARNING):  # which logs the path of the unfinished directory
                write(unfinished, number)
    except tf.errors.ResourceExhaustedError:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(target)) from None
    except OSError as error:
        if not target.exists():
            raise
        raise ValueError(f"`version` must be a new version, got {number}: {target} exists.") from error
    return target


@contextlib.contextmanager
def quiet(package: str, least: int = logging.CRITICAL + 1) -> Iterator[None]:
    """Hides what a package logs below a level."""
    log = logging.getLogger(package)
    level = log.level
    log.setLevel(max(level, least))
    try:
        yield
    finally:
        log.setLevel(level)


def write_card(folder: Path, card: Mapping[str, Any], **details: Any) -> None:
    """Writes a model card as model_card.json in assets.extra, which is created.

    Args:
      folder: The directory of the version, with the SavedModel.
      card: The given entries. Those of `_ENTRIES` that are missing are null.
      **details: Further entries by name, before the given ones.
    """
    software = {"python": platform.python_version(), "tfr_smooth": _version.__version__}
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # such as TF-Ranking, which is optional
            software[name] = importlib.metadata.version(name)
    details["signatures"] = signatures(folder)
    content = {**details, **dict.fromkeys(_ENTRIES), **card, "software": software}
    (folder / _CARD).parent.mkdir()
    _files.write_text(folder / _CARD, [_files.as_json(content) + "\n"])


def signatures(folder: Path) -> dict[str, Any]:
    """Returns the types and shapes of the inputs and outputs of each signature of a SavedModel, by name."""
    (graph,) = saved_model_pb2.SavedModel.FromString((folder / _MODEL).read_bytes()).meta_graphs
    names = sorted(name for name in graph.signature_def if name[:2] != "__")  # the others initialize tables
    found = ((name, graph.signature_def[name]) for name in names)
    return {name: {"inputs": _tensors(of.inputs), "outputs": _tensors(of.outputs)} for name, of in found}


def _tensors(tensors: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: f"{tf.as_dtype(info.dtype).name} {tf.TensorShape(info.tensor_shape).as_list()}"
        for name, info in sorted(tensors.items())
    }


def rename_inputs(folder: Path, names: Mapping[str, str]) -> None:
    """Renames inputs of the signatures of a SavedModel, in place.

    TF Serving serves inputs of any name, such as "price (USD)", but `tf.saved_model.save` only takes names that are
    arguments of functions.

    Args:
      folder: The directory of the SavedModel.
      names: Old name -> new name.
    """
    model = saved_model_pb2.SavedModel.FromString((folder / _MODEL).read_bytes())
    for graph in model.meta_graphs:
        for signature in graph.signature_def.values():
            inputs = {names.get(name, name): info for name, info in signature.inputs.items()}
            renamed = type(signature)(inputs=inputs)
            signature.ClearField("inputs")
            signature.MergeFrom(renamed)
        for node in graph.object_graph_def.nodes:
            # `tf.saved_model.load` calls signatures by these names.
            if node.WhichOneof("kind") == "bare_concrete_function":
                keywords = node.bare_concrete_function.argument_keywords
                keywords[:] = [names.get(each, each) for each in keywords]
    (folder / _MODEL).write_bytes(model.SerializeToString(deterministic=True))
