"""Weights of BERT checkpoints in the safetensors format."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tfr_smooth import _extras
from tfr_smooth.text.bert import BertConfig, BertEncoder
from tfr_smooth.text.tokenizer import Tokenizer

# Tensors of heads and of older versions of the format, which are not part of the encoder.
_OTHER_PARTS = re.compile(r"pooler\.|cls\.|classifier\.|qa_outputs\.|embeddings\.position_ids$")


def load_bert(
    folder: str | os.PathLike[str], *, frozen_layers: int = 0, sha256: str | None = None
) -> tuple[BertEncoder, Tokenizer]:
    """Loads the encoder and the tokenizer of a BERT checkpoint, such as bert-base-uncased or all-MiniLM-L6-v2.

    Args:
      folder: The folder with `config.json`, `model.safetensors`, and `tokenizer.json` or `vocab.txt`. Weights of heads,
        such as the pooler, are ignored.
      frozen_layers: Number of layers that are not trained, as in `BertEncoder`.
      sha256: The expected SHA-256 hash of `model.safetensors`, in hexadecimal; None skips the check.

    Returns:
      The encoder and the tokenizer.

    Raises:
      ValueError: If a file is missing, the hash differs, or the tensors do not match `config.json`.
      ImportError: If the extra `tfr_smooth[text]` is not installed.
    """
    folder = Path(folder)
    weights = folder / "model.safetensors"
    for path in (folder / "config.json", weights):
        if not path.is_file():
            raise ValueError(f"`folder` must contain {path.name}, got {os.fspath(folder)}.")
    if sha256 is not None:
        found = hashlib.sha256(np.memmap(weights, np.uint8, "r")).hexdigest()  # type: ignore[arg-type]
        if found != sha256.lower():
            raise ValueError(f"{weights}: expected the SHA-256 hash {sha256}, got {found}")
    tokenizer = Tokenizer(folder)
    config = BertConfig.read(folder / "config.json")
    if len(tokenizer.vocabulary) > config.vocab_size:
        raise ValueError(
            f"{folder / 'config.json'}: vocab_size is {config.vocab_size}, but the tokenizer has "
            f"{len(tokenizer.vocabulary)} tokens"
        )
    special = tokenizer.special
    encoder = BertEncoder(config, frozen_layers=frozen_layers, pad_id=special.pad, sep_id=special.sep)
    encoder.build()
    _assign(encoder, weights)
    return encoder, tokenizer


def _assign(encoder: BertEncoder, path: Path) -> None:
    with _extras.needed("safetensors", extra="text", by="`load_bert`"):
        import safetensors
    with safetensors.safe_open(path, framework="np") as file:
        names = {_plain(name): name for name in file.keys()}  # noqa: SIM118 - no mapping

        def read(name: str, shape: tuple[int, ...]) -> np.ndarray:
            if name not in names:
                raise ValueError(f"{path}: tensor {name!r}, which config.json requires, is missing")
            tensor = file.get_tensor(names.pop(name))
            if tensor.shape != shape:
                raise ValueError(f"{path}: tensor {name!r} must have shape {shape}, got {tensor.shape}")
            return tensor.astype(np.float32)

        for layer, values in _layers(encoder, read):
            layer.set_weights(values)
    unknown = sorted(name for name in names if not _OTHER_PARTS.match(name))
    if unknown:
        raise ValueError(f"{path}: tensor {unknown[0]!r} is not part of the BERT encoder in config.json")


def _plain(name: str) -> str:
    """Returns a tensor's name without the prefix of models with a head, in the naming of newer versions."""
    name = name.removeprefix("bert.")
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def _layers(
    encoder: BertEncoder, read: Callable[[str, tuple[int, ...]], np.ndarray]
) -> Iterator[tuple[Any, list[np.ndarray]]]:
    """Yields each layer with its weights."""
    config = encoder.config
    width, inner = config.hidden_size, config.intermediate_size
    heads = config.num_attention_heads
    split = (heads, width // heads)

    def norm(name: str) -> list[np.ndarray]:
        return [read(f"{name}.LayerNorm.{part}", (width,)) for part in ("weight", "bias")]

    def dense(name: str, inputs: int, outputs: int) -> list[np.ndarray]:
        return [read(f"{name}.weight", (outputs, inputs)).T, read(f"{name}.bias", (outputs,))]

    for layer, name, count in (
        (encoder.tokens, "word_embeddings", config.vocab_size),
        (encoder.positions, "position_embeddings", config.max_position_embeddings),
        (encoder.segments, "token_type_embeddings", config.type_vocab_size),
    ):
        yield layer, [read(f"embeddings.{name}.weight", (count, width))]
    yield encoder.norm, norm("embeddings")
    for number, block in enumerate(encoder.blocks):
        prefix = f"encoder.layer.{number}"
        attention: list[np.ndarray] = []
        for part in ("query", "key", "value"):
            kernel, bias = dense(f"{prefix}.attention.self.{part}", width, width)
            attention += [kernel.reshape(width, *split), bias.reshape(split)]
        kernel, bias = dense(f"{prefix}.attention.output.dense", width, width)
        yield block.attention, [*attention, kernel.reshape(*split, width), bias]
        yield block.attention_norm, norm(f"{prefix}.attention.output")
        yield block.inner, dense(f"{prefix}.intermediate.dense", width, inner)
        yield block.outer, dense(f"{prefix}.output.dense", inner, width)
        yield block.outer_norm, norm(f"{prefix}.output")
