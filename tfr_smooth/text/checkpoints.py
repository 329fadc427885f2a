"""Checkpoints of encoders: the files of KerasHub's presets and of Hugging Face's models."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _hub
from tfr_smooth._serialization import check_sizes
from tfr_smooth.text import configurations
from tfr_smooth.text.configurations import read_json
from tfr_smooth.text.encoder import Encoder, blocks_of, import_keras_hub

_WEIGHTS = (".safetensors", ".h5")
_INDEX, _TOKENIZER = "model.safetensors.index.json", "tokenizer.json"
_OF_TOKEN = 400  # the most bytes of a token in the files of a tokenizer; published ones have 40 to 100
# What is read of a checkpoint. Repositories also have the weights in the formats of other libraries.
_FILES = [
    *("config.json", "model*.safetensors", _INDEX, "modules.json", "sentence_bert_config.json", "artifact.metadata"),
    *("config_sentence_transformers.json", "[0-9]*_*/config.json", "[0-9]*_*/model.safetensors"),
    *("tokenizer_config.json", _TOKENIZER, "vocab.txt", "vocab.json", "merges.txt", "spiece.model"),
    *("sentencepiece.bpe.model", "added_tokens.json", "special_tokens_map.json"),
    *(_hub.FILE, "metadata.json", "model.weights.h5", "model.weights.json", "model_*.weights.h5", "assets/*"),
]
_LOADING = threading.Lock()  # Threads would find transformers half imported.
_POOLERS = {"bert": "pooler.dense", "electra": "pooler.dense", "albert": "albert.pooler"}


def load_encoder(checkpoint: str | os.PathLike[str], *, frozen_layers: int = 0, **options: Any) -> Encoder:
    """Loads a checkpoint that KerasHub can read, such as all-MiniLM-L6-v2 or google-bert/bert-base-uncased.

    Args:
      checkpoint: The folder of a Hugging Face model in the safetensors format with the files of its tokenizer, which
        the package transformers reads; or of a KerasHub preset with `tokenizer.json` of the package tokenizers, or with
        the vocabulary of word pieces. Otherwise, a name on the Hugging Face Hub, from which the files are downloaded
        once into its cache; a name without "/" is one of sentence-transformers.
      frozen_layers: Number of layers that are not trained, as in `Encoder`.
      **options: Further arguments of `Encoder`.

    Returns:
      The encoder, with the pooling and the prompts of sentence-transformers; without its files, the mean. Heads are not
      read; `TextRanker.from_pretrained` reads those of rerankers.

    Raises:
      ValueError: If the download fails, the files cannot be read, or a setting is not supported. The message names it.
      ImportError: If the extra `tfr_smooth[text]` is not installed.

    Example:
      >>> import keras_hub, tempfile, tokenizers
      >>> from tfr_smooth import text
      >>> folder, words = tempfile.mkdtemp(), "[PAD] [UNK] [CLS] [SEP] [MASK] lift heat".split()
      >>> tokenizer = tokenizers.BertWordPieceTokenizer({word: number for number, word in enumerate(words)})
      >>> tokenizer.save(folder + "/tokenizer.json")
      >>> backbone = keras_hub.models.BertBackbone(
      ...     vocabulary_size=7, num_layers=1, num_heads=2, hidden_dim=4, intermediate_dim=8
      ... )
      >>> backbone.save_to_preset(folder)
      >>> encoder = text.load_encoder(folder)
      >>> encoder.width, encoder.tokenize(["lift heat"])
      (4, [[5, 6]])
    """
    import_keras_hub("`load_encoder`")
    folder = folder_of(checkpoint)
    path = folder / "config.json"
    config = configurations.config_of(folder)
    is_preset = "model_type" not in config
    try:
        check_sizes(config, sum(path.stat().st_size for path in folder.glob("*model*") if path.suffix in _WEIGHTS))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    found = configurations.vectors_of(folder) | ({} if is_preset else _settings_of(path, config))
    backbone = _backbone_of(folder, config)
    if not blocks_of(backbone):
        found.pop("activation", None)
    _check_sizes_of_tokenizer(folder, backbone.vocabulary_size)
    if is_preset:
        tokenizer = _tokenizer_of_preset(folder)
    else:
        tokenizer, of_tokenizer = _tokenizer_of(folder)
        found |= of_tokenizer
    try:
        return Encoder(backbone, tokenizer, **{"frozen_layers": frozen_layers, **found, **options})
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from error


def _settings_of(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what KerasHub does not read of config.json of Hugging Face, as arguments of `Encoder`."""
    sizes = [config.get(name) for name in ("embedding_size", "hidden_size")]
    if config["model_type"] == "electra" and sizes[0] != sizes[1]:
        raise ValueError(f"{path}: embedding_size must be hidden_size, got {sizes[0]} and {sizes[1]}")
    # DistilBERT has this epsilon, and no setting.
    found = {"activation": config.get("hidden_act", config.get("activation"))}
    return {**found, "epsilon": config.get("layer_norm_eps", 1e-12)}


def _check_sizes_of_tokenizer(folder: Path, tokens: int) -> None:
    most = 10**6 + _OF_TOKEN * tokens
    for path in folder.iterdir():
        if path.suffix in (".json", ".txt", ".model") and (size := path.stat().st_size) > most:
            raise ValueError(f"{path}: must have at most {most} bytes for {tokens} tokens, got {size}")


def _tokenizer_of(folder: Path) -> tuple[str, dict[str, Any]]:
    """Returns the text of tokenizer.json as transformers reads or makes it, and arguments of `Encoder`."""
    settings = configurations.transformer_of(folder)
    with _LOADING, _quiet():
        try:
            with _arguments.needed("transformers", extra="text", by="`load_encoder`"):
                import tokenizers
                import transformers
            found: Any = transformers.AutoTokenizer.from_pretrained(os.fspath(folder), local_files_only=True)
            backend = found.backend_tokenizer
        except ImportError:
            raise
        except Exception as error:  # Each format raises other types.
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise ValueError(f"{folder}: transformers cannot read its tokenizer: {reason}") from error
    if settings.get("do_lower_case"):
        first = tokenizers.normalizers.Lowercase()
        backend.normalizer = tokenizers.normalizers.Sequence([first, *filter(None, [backend.normalizer])])
    if backend.encode_special_tokens:
        raise ValueError(f"{folder / 'tokenizer_config.json'}: split_special_tokens must be False, got True")
    segments = "token_type_ids" in found.model_input_names
    return backend.to_str(), {"segments": segments, "truncation_side": found.truncation_side}


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Hides warnings of transformers, such as that PyTorch is missing."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(level)


def _tokenizer_of_preset(folder: Path) -> str:
    """Returns the text of tokenizer.json of the package tokenizers beside a preset, or of KerasHub's word pieces."""
    path = folder / _TOKENIZER
    content = read_json(path)
    if "model" in content:
        return path.read_text(encoding="utf-8")
    import tokenizers

    vocabulary, config = folder / "assets" / "tokenizer" / "vocabulary.txt", content.get("config", {})
    if not vocabulary.is_file() or config.get("lowercase") is None:
        kind = content.get("class_name")
        raise ValueError(f"{path}: must be of the package tokenizers, or KerasHub's of word pieces, got {kind}")
    tokens = {token: number for number, token in enumerate(vocabulary.read_text(encoding="utf-8").splitlines())}
    options = {name: bool(config.get(name)) for name in ("lowercase", "strip_accents")}
    return tokenizers.BertWordPieceTokenizer(tokens, **options).to_str()


def _backbone_of(folder: Path, config: Mapping[str, Any]) -> Any:
    hub = import_keras_hub("`load_encoder`")
    try:
        with _readable(folder, config) as preset:
            backbone = hub.models.Backbone.from_preset(preset, dtype=tf.keras.mixed_precision.global_policy())
            if config.get("model_type") == "roberta":  # KerasHub does not read them.
                (types,) = tensors(Path(preset), ["roberta.embeddings.token_type_embeddings.weight"])
                places = backbone.embeddings.position_embedding.position_embeddings
                places.assign(places + types[0])
        return backbone
    except ImportError:
        raise
    except Exception as error:  # Each format and architecture raises other types.
        reason = " ".join(str(error).split())
        raise ValueError(f"{folder}: KerasHub cannot read it: {type(error).__name__}: {reason}") from error


@contextlib.contextmanager
def _readable(folder: Path, config: Mapping[str, Any]) -> Iterator[str]:
    """Yields the folder, or another one that KerasHub can read, with other files in place of its own."""
    weights = _renamed(folder, config)
    if not weights:
        yield os.fspath(folder)
        return
    from safetensors.numpy import save_file

    with tempfile.TemporaryDirectory() as copy:
        kind = "bert" if config["model_type"] == "electra" else config["model_type"]
        (Path(copy) / "config.json").write_text(json.dumps({**config, "model_type": kind}))
        save_file(weights, Path(copy) / "model.safetensors")
        yield copy


def _renamed(folder: Path, config: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Returns the weights under the names that KerasHub reads, or nothing if the files have these.

    ELECTRA is read as BERT. Encoders without a head have names without the prefix, and old ones other names in layer
    normalization. The pooler, which is no part of the hidden states, may be missing.
    """
    from safetensors import safe_open
    from safetensors.numpy import load_file

    kind, known = config.get("model_type"), {*_files_of(folder).values(), "model.safetensors"}
    files = sorted(name for name in known if (folder / name).is_file())
    if kind not in (*_POOLERS, "distilbert", "roberta") or not files:
        return {}
    names: list[str] = []
    for name in files:
        with safe_open(folder / name, framework="np") as file:
            names += file.keys()
    prefix = "" if kind in ("bert", "electra") or any(name.startswith(f"{kind}.") for name in names) else f"{kind}."
    renamed = {
        name: prefix + name.replace("Norm.gamma", "Norm.weight").replace("Norm.beta", "Norm.bias") for name in names
    }
    pooler = _POOLERS.get(str(kind), "")
    if any(name.endswith(f"{pooler}.weight") for name in renamed.values()):
        pooler = ""
    if not pooler and [*renamed.values()] == names:
        return {}
    weights = {renamed[key]: value for name in files for key, value in load_file(folder / name).items()}
    if pooler:
        width = config["hidden_size"]
        weights |= {f"{pooler}.weight": np.zeros([width, width], "f"), f"{pooler}.bias": np.zeros(width, "f")}
    return weights


def _files_of(folder: Path) -> dict[str, str]:
    """Returns the file of each tensor, by the index of several files."""
    path = folder / _INDEX
    return read_json(path).get("weight_map", {}) if path.is_file() else {}


def tensors(folder: Path, names: list[str]) -> list[np.ndarray]:
    """Returns tensors of the safetensors files of a folder, as float32."""
    from safetensors import safe_open

    files, found = _files_of(folder), []
    for name in names:
        path = folder / files.get(name, "model.safetensors")
        try:
            with safe_open(path, framework="tf") as file:
                found.append(tf.cast(file.get_tensor(name), tf.float32).numpy())
        except Exception as error:  # A missing or damaged file, or no such tensor; each has another type.
            raise ValueError(f"{path}: {name} cannot be read: {' '.join(str(error).split())}") from error
    return found


def folder_of(checkpoint: str | os.PathLike[str]) -> Path:
    """Returns the folder of a checkpoint, after the download of a name."""
    return _hub.folder_of(checkpoint, _FILES, owner="sentence-transformers")
