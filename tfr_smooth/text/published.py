"""Published rerankers: what the files of Hugging Face have besides the encoder."""

from __future__ import annotations

import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tfr_smooth import _arguments
from tfr_smooth.text import configurations
from tfr_smooth.text.checkpoints import tensors
from tfr_smooth.text.configurations import read_json
from tfr_smooth.text.reranker import HIDDEN

_PAIRS = "ForSequenceClassification"
# By architecture, the layer between the first token and the score with its activation, and the layer of the score.
_HEADS = {
    "Bert": ("bert.pooler.dense", "tanh", "classifier"),
    "Albert": ("albert.pooler", "tanh", "classifier"),
    "DistilBert": ("pre_classifier", "relu", "classifier"),
    **dict.fromkeys(("Roberta", "XLMRoberta"), ("classifier.dense", "tanh", "classifier.out_proj")),
    "Electra": ("classifier.dense", "gelu", "classifier.out_proj"),
}
_MODULES = [["Transformer", "Pooling", *dense, *last] for dense in ([], ["Dense"]) for last in ([], ["Normalize"])]
_MODULES_OF_PAIRS = [[], ["Transformer"]]
_LONGEST = 512  # tokens; arrays have so many for each text, also if it is short
_MARKERS = {"query_token_id": "[unused0]", "doc_token_id": "[unused1]"}  # ColBERT's
_LIBRARY = "config_sentence_transformers.json"
_OUTPUTS = {"Identity": None, "Sigmoid": "sigmoid"}


class Head(NamedTuple):
    """The layers after the encoder.

    Args:
      options: The arguments of the model.
      weights: The weights, as for its `set_head`.
    """

    options: dict[str, Any]
    weights: list[np.ndarray]


class Published(NamedTuple):
    """What a checkpoint says.

    Args:
      architecture: That of `TextRanker`.
      sizes: The arguments of `TextRanker` for the most tokens of a text, or of a pair.
      head: The head of a cross-encoder, or the layer after the encoder; None without one.
      encoder: The arguments of the `Encoder`.
    """

    architecture: str
    sizes: dict[str, int]
    head: Head | None
    encoder: Mapping[str, Any] = {}


def read(folder: Path, architecture: str | None = None) -> Published | None:
    """Returns what a checkpoint has besides its encoder, or None if it has nothing that ranks by this architecture.

    Raises:
      ValueError: If it has parts that are not supported. The message names the file and the part.
    """
    try:
        return _read(folder, architecture)
    except (AttributeError, KeyError, TypeError) as error:  # values of other types, or none
        raise ValueError(f"{folder}: a JSON file has other values: {type(error).__name__}: {error}") from error


def _read(folder: Path, architecture: str | None) -> Published | None:
    config = configurations.config_of(folder)
    kind = str((config.get("architectures") or [""])[0])
    is_late = (folder / "artifact.metadata").exists()
    found = "cross" if kind.endswith(_PAIRS) else "late" if is_late else "single"
    if architecture not in (None, found):
        return None
    if found == "late":
        return _late(folder)
    length = configurations.transformer_of(folder).get("max_seq_length")
    path = folder / "tokenizer_config.json"
    length = length or (read_json(path).get("model_max_length") if path.is_file() else None)
    places = config.get("max_position_embeddings", _LONGEST) - 2 * ("roberta" in config.get("model_type", ""))
    length = int(min(length or _LONGEST, places, _LONGEST))
    modules, library = configurations.modules_of(folder), folder / _LIBRARY
    kinds = [name for name, _ in modules]
    if found == "cross":
        if kinds not in _MODULES_OF_PAIRS:
            raise ValueError(f"{folder / 'modules.json'}: modules must be Transformer alone, got {', '.join(kinds)}")
        if prompt := configurations.read(library).get("default_prompt_name"):
            raise ValueError(f"{library}: default_prompt_name must be None for pairs, got {prompt!r}")
        return Published(found, {"length": length}, _head(folder, config, kind.removesuffix(_PAIRS)))
    if modules and (kinds not in _MODULES or configurations.read(library).get("model_type") == "CrossEncoder"):
        expected = "an encoder of vectors, its pooling, at most one dense layer, and the normalization"
        raise ValueError(f"{folder / 'modules.json'}: modules must be {expected}, got {', '.join(kinds)}")
    dense = [_dense(path) for name, path in modules if name == "Dense"]
    is_known = bool(modules) or (folder / "1_Pooling").exists()
    sizes = dict.fromkeys(("length", "query_length"), length)
    return Published(found, sizes, dense[0] if dense else None) if is_known else None


def _late(folder: Path) -> Published:
    """Returns what the checkpoints of ColBERT have."""
    path = folder / "artifact.metadata"
    config = configurations.read(path)
    (kernel,) = tensors(folder, ["linear.weight"])
    width, ignored = len(kernel), string.punctuation if config.get("mask_punctuation", True) else ""
    markers = [config.get(name, token) for name, token in _MARKERS.items()]
    head = Head({"dense": [width, "linear"], "ignored": list(ignored)}, [kernel.T, np.zeros(width, np.float32)])
    sizes = {"length": config.get("doc_maxlen", 220), "query_length": config.get("query_maxlen", 32)}
    return Published("late", sizes, head, {"markers": markers, "fill": "[MASK]"})


def _dense(folder: Path) -> Head:
    config = configurations.read(folder / "config.json", "dense", is_needed=True)
    name = config["activation_function"].rpartition(".")[2].lower().replace("identity", "linear")
    bias = [np.zeros(config["out_features"], np.float32)]
    _arguments.choice(f"{folder / 'config.json'}: activation_function", name, HIDDEN)
    kernel, *given = tensors(folder, ["linear.weight", *(["linear.bias"] if config.get("bias", True) else [])])
    return Head({"dense": [config["out_features"], name]}, [kernel.T, *(given or bias)])


def _head(folder: Path, config: dict[str, Any], kind: str) -> Head:
    path = folder / "config.json"
    if kind not in _HEADS:
        known = ", ".join(f"{name}{_PAIRS}" for name in _HEADS)
        raise ValueError(f"{path}: architectures must be one of {known}, got {kind}{_PAIRS}")
    labels = config.get("num_labels") or len(config.get("id2label") or range(2))
    if labels != 1:
        raise ValueError(f"{path}: the model must have one label, which is the score, got {labels}")
    hidden, activation, output = _HEADS[kind]
    arrays = tensors(folder, [f"{layer}.{part}" for layer in (hidden, output) for part in ("weight", "bias")])
    kernel, bias, scores, offset = arrays
    of_library = config.get("sentence_transformers") or configurations.read(folder / _LIBRARY)
    named = config.get("sbert_ce_default_activation_function") or of_library.get("activation_fn") or "Identity"
    function = _arguments.choice(f"{path}: activation", named.rpartition(".")[2], tuple(_OUTPUTS))
    options = {"hidden": activation, "output": _OUTPUTS[function]}
    return Head(options, [kernel.T, bias, scores[0], offset[0]])
