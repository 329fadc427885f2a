"""Exports of text models, which take the ids of the package tokenizers, with the files of the tokenizer."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from tfr_smooth import _files, _keras
from tfr_smooth.serving import versions
from tfr_smooth.serving.onnx_export import with_weights
from tfr_smooth.text import layout
from tfr_smooth.text.architectures import LateInteraction, SingleVector
from tfr_smooth.text.reranker import Reranker


def saved_model(
    model: Reranker,
    path: str | os.PathLike[str],
    version: int | None,
    sizes: Mapping[str, Any],
    card: Mapping[str, Any],
) -> Path:
    """Writes the versioned SavedModel, and returns its directory.

    Args:
      model: The model.
      path: The directory of the versions.
      version: The version; None for the next one.
      sizes: The most tokens, by argument of `TextRanker`.
      card: The content of the model card.
    """
    module = tf.Module()
    # Only the variables: with the model itself, Keras would also save all of its functions.
    module.model_variables = _keras.tensorflow_variables(model.variables)
    module.serve = tf.function(_function(model), autograph=False, input_signature=_signature(model))

    def write(folder: Path, number: int) -> None:
        tf.saved_model.save(module, os.fspath(folder), signatures=module.serve)
        described = {"class": type(model).__name__, "version": number, "parameters": model.count_params()}
        versions.write_card(folder, card, model=described)
        _write_tokenizers(model, folder / versions.EXTRA, sizes)

    return versions.publish(path, version, write)


def onnx(model: Reranker, path: Path, sizes: Mapping[str, Any]) -> Path:
    """Writes a folder with model.onnx and the files of the tokenizer, and returns it; arguments as above."""
    if path.exists():
        raise ValueError(f"`path` must be a new folder, got {os.fspath(path)!r}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    proto = with_weights(_function(model), model.variables, _signature(model))
    with _files.replacing(path, overwrite=False) as unfinished:
        unfinished.mkdir()
        _files.write_bytes(unfinished / "model.onnx", [proto.SerializeToString()])
        _write_tokenizers(model, unfinished, sizes)
    return path


def _signature(model: Reranker) -> list[tf.TensorSpec]:
    names = ["input_ids", "attention_mask", *["token_type_ids"] * model.encoder.has_segments]
    return [tf.TensorSpec([None, None], tf.int64, name=name) for name in names]


def _function(model: Reranker) -> Callable[..., dict[str, tf.Tensor]]:
    """Returns the function of the signature."""
    encoder = model.encoder

    def serve(input_ids: tf.Tensor, attention_mask: tf.Tensor, token_type_ids: Any = 0) -> dict[str, tf.Tensor]:
        ids = tf.cast(input_ids + encoder.backbone.vocabulary_size * token_type_ids, tf.int32)
        masked: Any = layout.PADDING
        if encoder.fill is not None:
            masked = tf.where(ids == layout.ids_of(encoder.tokenizer, [encoder.fill])[0], layout.FILL, masked)
        ids = tf.where(attention_mask > 0, ids, masked)
        if not isinstance(model, LateInteraction):
            return {"scores": model({"pair_ids": ids[tf.newaxis, :, tf.newaxis]}, training=False)[0]}
        vectors = model.vectors(ids)
        return {"vectors": vectors[:, 0] if isinstance(model, SingleVector) else vectors}

    return serve


def _write_tokenizers(model: Reranker, folder: Path, sizes: Mapping[str, Any]) -> None:
    """Writes tokenizer.json; for vectors, query_tokenizer.json, too."""
    for role in layout.ROLES if isinstance(model, LateInteraction) else (None,):
        name = "query_" * (role == "query")
        tokenizer = model.encoder.tokenizer_file(role, sizes[f"{name}length"])
        tokenizer.save(os.fspath(folder / f"{name}tokenizer.json"))
