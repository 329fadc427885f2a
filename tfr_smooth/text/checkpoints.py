"""Checkpoints: encoders of KerasHub's presets and of Hugging Face's models, and the heads of published rerankers."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import string
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth._serialization import check_sizes
from tfr_smooth.text import configurations
from tfr_smooth.text.encoder import Encoder, blocks_of, import_keras_hub
from tfr_smooth.text.reranker import HIDDEN

_WEIGHTS = (".safetensors", ".h5")
_INDEX, _TOKENIZER = "model.safetensors.index.json", "tokenizer.json"
_OF_TOKEN = 400  # the most bytes of a token in the files of a tokenizer; published ones have 40 to 100
# What is read of a checkpoint. Repositories also have the weights in the formats of other libraries.
_FILES = [
    *("config.json", "model*.safetensors", _INDEX, "modules.json", "sentence_bert_config.json", "artifact.metadata"),
    *("config_sentence_transformers.json", "[0-9]*_*/config.json", "[0-9]*_*/model.safetensors"),
    *("tokenizer_config.json", _TOKENIZER, "vocab.txt", "vocab.json", "merges.txt", "spiece.model"),
    *("sentencepiece.bpe.model", "added_tokens.json", "special_tokens_map.json"),
    *("metadata.json", "model.weights.h5", "model.weights.json", "model_*.weights.h5", "assets/*"),
]
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
_LOADING = threading.Lock()  # Threads would find transformers half imported.
_POOLERS = {"bert": "pooler.dense", "electra": "pooler.dense", "albert": "albert.pooler"}
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
    content = configurations.read_json(path)
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
    return configurations.read_json(path).get("weight_map", {}) if path.is_file() else {}


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
    """Returns the folder of a checkpoint, after the download of a name.

    Raises:
      ValueError: If the folder is another one, or the download fails.
    """
    folder, name = Path(checkpoint), os.fspath(checkpoint)
    if (folder / "config.json").is_file():
        return folder
    if folder.exists() or not isinstance(checkpoint, str) or not _NAME.fullmatch(name):
        raise ValueError(f"`checkpoint` must be a folder with config.json or a name on Hugging Face, got {name}.")
    name = name if "/" in name else f"sentence-transformers/{name}"
    with _arguments.needed("huggingface-hub", extra="hub", by=f"The download of {name}"):
        import huggingface_hub
    try:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=_FILES))
    except Exception as error:  # Of the connection, the name, the access or the disk; each has other types.
        reason = " ".join(str(error).split())
        raise ValueError(
            f"`checkpoint` is no folder, and the download of {name} failed: {type(error).__name__}: {reason} "
            f"Without access to the hub, run `hf download {name} --local-dir FOLDER` elsewhere, and pass the folder."
        ) from error


class Published(NamedTuple):
    """What a checkpoint says.

    Args:
      architecture: That of `TextRanker`.
      sizes: The arguments of `TextRanker` for the most tokens of a text, or of a pair.
      options: The arguments of the model with the head of a cross-encoder, or the layer after the encoder.
      weights: Those of this head or layer, as for `set_head`; none without one.
      encoder: The arguments of the `Encoder`.
    """

    architecture: str
    sizes: Mapping[str, int] = {}
    options: Mapping[str, Any] = {}
    weights: Sequence[np.ndarray] = ()
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
    length = length or (configurations.read_json(path).get("model_max_length") if path.is_file() else None)
    places = config.get("max_position_embeddings", _LONGEST) - 2 * ("roberta" in config.get("model_type", ""))
    length = int(min(length or _LONGEST, places, _LONGEST))
    modules, library = configurations.modules_of(folder), folder / _LIBRARY
    kinds = [name for name, _ in modules]
    if found == "cross":
        if kinds not in _MODULES_OF_PAIRS:
            raise ValueError(f"{folder / 'modules.json'}: modules must be Transformer alone, got {', '.join(kinds)}")
        if prompt := configurations.read(library).get("default_prompt_name"):
            raise ValueError(f"{library}: default_prompt_name must be None for pairs, got {prompt!r}")
        return Published(found, {"length": length}, *_head(folder, config, kind.removesuffix(_PAIRS)))
    if modules and (kinds not in _MODULES or configurations.read(library).get("model_type") == "CrossEncoder"):
        expected = "an encoder of vectors, its pooling, at most one dense layer, and the normalization"
        raise ValueError(f"{folder / 'modules.json'}: modules must be {expected}, got {', '.join(kinds)}")
    dense = [_dense(path) for name, path in modules if name == "Dense"]
    is_known = bool(modules) or (folder / "1_Pooling").exists()
    sizes = dict.fromkeys(("length", "query_length"), length)
    return Published(found, sizes, *(dense[0] if dense else ())) if is_known else None


def _late(folder: Path) -> Published:
    """Returns what the checkpoints of ColBERT have."""
    path = folder / "artifact.metadata"
    config = configurations.read(path)
    (kernel,) = tensors(folder, ["linear.weight"])
    width, ignored = len(kernel), string.punctuation if config.get("mask_punctuation", True) else ""
    markers = [config.get(name, token) for name, token in _MARKERS.items()]
    options, weights = {"dense": [width, "linear"], "ignored": list(ignored)}, [kernel.T, np.zeros(width, np.float32)]
    sizes = {"length": config.get("doc_maxlen", 220), "query_length": config.get("query_maxlen", 32)}
    return Published("late", sizes, options, weights, {"markers": markers, "fill": "[MASK]"})


def _dense(folder: Path) -> tuple[dict[str, Any], list[np.ndarray]]:
    config = configurations.read(folder / "config.json", "dense", is_needed=True)
    name = config["activation_function"].rpartition(".")[2].lower().replace("identity", "linear")
    bias = [np.zeros(config["out_features"], np.float32)]
    _arguments.choice(f"{folder / 'config.json'}: activation_function", name, HIDDEN)
    kernel, *given = tensors(folder, ["linear.weight", *(["linear.bias"] if config.get("bias", True) else [])])
    return {"dense": [config["out_features"], name]}, [kernel.T, *(given or bias)]


def _head(folder: Path, config: dict[str, Any], kind: str) -> tuple[dict[str, Any], list[np.ndarray]]:
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
    return {"hidden": activation, "output": _OUTPUTS[function]}, [kernel.T, bias, scores[0], offset[0]]
