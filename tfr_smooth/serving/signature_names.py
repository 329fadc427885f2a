"""The names of the inputs of signatures, which may be any strings in the file of a SavedModel."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2


def rename_inputs(folder: str | os.PathLike[str], names: Mapping[str, str]) -> None:
    """Renames inputs of the signatures of a SavedModel, in place.

    `tf.saved_model.save` only takes names that are arguments of functions.

    Args:
      folder: The directory of the SavedModel.
      names: Old name -> new name.
    """
    model = _read(folder)
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
    _path(folder).write_bytes(model.SerializeToString(deterministic=True))


def describe(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the types and shapes of the inputs and outputs of each signature of a SavedModel, by name."""
    (graph,) = _read(folder).meta_graphs
    names = sorted(name for name in graph.signature_def if name[:2] != "__")  # the others initialize tables
    found = ((name, graph.signature_def[name]) for name in names)
    return {name: {"inputs": _tensors(of.inputs), "outputs": _tensors(of.outputs)} for name, of in found}


def _tensors(tensors: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: f"{tf.as_dtype(info.dtype).name} {tf.TensorShape(info.tensor_shape).as_list()}"
        for name, info in sorted(tensors.items())
    }


def _path(folder: str | os.PathLike[str]) -> Path:
    return Path(folder) / "saved_model.pb"


def _read(folder: str | os.PathLike[str]) -> Any:
    return saved_model_pb2.SavedModel.FromString(_path(folder).read_bytes())
