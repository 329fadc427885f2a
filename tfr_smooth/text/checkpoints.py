"""Checkpoints of encoders: the files of KerasHub's presets and of Hugging Face's models."""

from __future__ import annotations

import base64
import contextlib
import importlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfr_smooth import _hub
from tfr_smooth._serialization import check_sizes
from tfr_smooth.text import layout
from tfr_smooth.text.encoder import Encoder, blocks_of, import_keras_hub

# The square root of the length does not change the direction.
_POOLING_OF_MODE = {
    **dict.fromkeys(("mean", "mean_tokens", "mean_sqrt_len_tokens"), "mean"),
    **dict.fromkeys(("cls", "cls_token"), "first"),
}
_WEIGHTS = (".safetensors", ".h5")
_PIECES = "sentencepiece.bpe.model"
_VOCABULARIES = ("vocab.txt", "vocab.json", "spiece.model", _PIECES)
_OF_BERT = ("bert", "distilbert", "electra")
_READ = (*_OF_BERT, "albert", "roberta", "xlm-roberta")
_GENERIC = ("PreTrainedTokenizerFast", "TokenizersBackend")  # classes whose tokenizer.json says everything
_OF_XLM, _MASK = ["<s>", "<pad>", "</s>", "<unk>"], "<mask>"
_NORMALIZERS = {"Precompiled", "Replace", "Strip"}
_OF_ALBERT = {"NFKD", "StripAccents", "Lowercase"}
# What KerasHub reads of a checkpoint. Repositories also have the weights in the formats of other libraries.
_FILES = [
    *("config.json", "model*.safetensors", "model.safetensors.index.json", "tokenizer_config.json", "tokenizer.json"),
    *("modules.json", "sentence_bert_config.json", "artifact.metadata", "config_sentence_transformers.json"),
    *("1_Pooling/config.json", "*_Dense/config.json", "*_Dense/model.safetensors"),
    *(*_VOCABULARIES, "merges.txt", "added_tokens.json"),
    *(_hub.FILE, "metadata.json", "model.weights.h5", "model.weights.json", "model_*.weights.h5", "assets/*"),
]


def load_encoder(checkpoint: str | os.PathLike[str], *, frozen_layers: int = 0, **options: Any) -> Encoder:
    """Loads a checkpoint that KerasHub can read, such as all-MiniLM-L6-v2 or google-bert/bert-base-uncased.

    Args:
      checkpoint: The folder of a KerasHub preset, or of a Hugging Face model in the safetensors format with the files
        of its tokenizer, such as `vocab.txt` and `tokenizer_config.json` for BERT. Otherwise, a name on the Hugging
        Face Hub, from which the files are downloaded once into its cache; a name without "/" is one of
        sentence-transformers.
      frozen_layers: Number of layers that are not trained, as in `Encoder`.
      **options: Further arguments of `Encoder`.

    Returns:
      The encoder, with the pooling of `1_Pooling/config.json` of sentence-transformers; without that file, the mean.
      Heads are not read; `TextRanker.from_pretrained` reads those of rerankers.

    Raises:
      ValueError: If the download fails, KerasHub cannot read the files, or the architecture or the pooling is not
        supported.
      ImportError: If the extra `tfr_smooth[text]` is not installed.

    Example:
      >>> import keras_hub, tempfile
      >>> from tfr_smooth import text
      >>> folder = tempfile.mkdtemp()
      >>> tokenizer = keras_hub.models.BertTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] lift heat".split())
      >>> tokenizer.save_to_preset(folder)
      >>> backbone = keras_hub.models.BertBackbone(
      ...     vocabulary_size=7, num_layers=1, num_heads=2, hidden_dim=4, intermediate_dim=8
      ... )
      >>> backbone.save_to_preset(folder)
      >>> encoder = text.load_encoder(folder)
      >>> encoder.width, encoder.tokenizer(["lift heat"])
      (4, [[5, 6]])
    """
    hub = import_keras_hub("`load_encoder`")
    folder = folder_of(checkpoint)
    config = read_json(folder / "config.json")
    try:
        check_sizes(config, sum(path.stat().st_size for path in folder.glob("*model*") if path.suffix in _WEIGHTS))
    except ValueError as error:
        raise ValueError(f"{folder / 'config.json'}: {error}") from None
    sizes = [config.get(name) for name in ("embedding_size", "hidden_size")]
    if _is_electra(config) and sizes[0] != sizes[1]:
        raise ValueError(f"{folder / 'config.json'}: embedding_size must be hidden_size, got {sizes[0]} and {sizes[1]}")
    tokens = _tokens_of(folder, config) if "model_type" in config else _Tokens()  # else a preset of KerasHub
    try:
        with _readable(folder, config, tokens.files) as preset:
            backbone = hub.models.Backbone.from_preset(preset, dtype=tf.keras.mixed_precision.global_policy())
            tokenizer = hub.models.Tokenizer.from_preset(preset)
            if config.get("model_type") == "roberta":  # KerasHub does not read them.
                (types,) = tensors(Path(preset), ["roberta.embeddings.token_type_embeddings.weight"])
                places = backbone.embeddings.position_embedding.position_embeddings
                places.assign(places + types[0])
    except ImportError:
        raise
    except Exception as error:  # Each format and architecture raises other types.
        reason = " ".join(str(error).split())
        raise ValueError(f"{folder}: KerasHub cannot read it: {type(error).__name__}: {reason}") from error
    known = tokenizer.vocabulary_size()
    size = getattr(backbone.token_embedding, "input_dim", known)
    if known > size:
        raise ValueError(f"{folder}: the tokenizer has {known} tokens, but the model has embeddings of only {size}")
    options = {"frozen_layers": frozen_layers, "pooling": _pooling_of(folder), **options}
    if "model_type" not in config:  # a preset of KerasHub
        return Encoder(backbone, tokenizer, **options)
    # KerasHub does not read these from the files of Hugging Face.
    if config.get("position_embedding_type", "absolute") != "absolute":
        kind = config["position_embedding_type"]
        raise ValueError(f"{folder / 'config.json'}: position_embedding_type must be 'absolute', got {kind!r}")
    if unknown := sorted(tokens.added - set(tokenizer.get_vocabulary())):
        raise ValueError(f"{folder}: tokens that are not in the vocabulary must not be added, got {unknown}")
    settings = tokens.settings
    if layout.is_albert(tokenizer) and (settings.get("keep_accents") or not settings.get("do_lower_case", True)):
        raise ValueError(f"{folder / 'tokenizer_config.json'}: ALBERT must have lower case without accents")
    if hasattr(tokenizer, "strip_accents"):
        strip = settings.get("strip_accents")
        tokenizer.strip_accents = tokenizer.lowercase if strip is None else strip
    activation = config.get("hidden_act", config.get("activation")) if blocks_of(backbone) else None
    return Encoder(backbone, tokenizer, **{"activation": activation, "segments": tokens.segments, **options})


def _is_electra(config: Mapping[str, Any]) -> bool:
    return bool(config.get("model_type") == "electra")


@contextlib.contextmanager
def _readable(folder: Path, config: Mapping[str, Any], files: Mapping[str, bytes]) -> Iterator[str]:
    """Yields the folder, or another one that KerasHub can read, with these files in place of its own."""
    weights = _renamed(folder / "model.safetensors", config)
    if not files and not weights:
        yield os.fspath(folder)
        return
    with tempfile.TemporaryDirectory() as copy:
        for path in folder.iterdir():
            (Path(copy) / path.name).symlink_to(path.resolve())
        if _is_electra(config):
            files = {**files, "config.json": json.dumps({**config, "model_type": "bert"}).encode()}
        if weights:
            from safetensors.numpy import save_file

            (Path(copy) / "model.safetensors").unlink()
            save_file(weights, Path(copy) / "model.safetensors")
        for name, content in files.items():
            (Path(copy) / name).unlink(missing_ok=True)
            (Path(copy) / name).write_bytes(content)
        yield copy


def _renamed(path: Path, config: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Returns the weights under the names that KerasHub reads, or nothing if the file has these.

    ELECTRA is read as BERT without the pooler. Encoders without a head have names without the prefix.
    """
    from safetensors import safe_open
    from safetensors.numpy import load_file

    if _is_electra(config):
        width = config["hidden_size"]
        pooler = {"pooler.dense.weight": np.zeros([width, width], "f"), "pooler.dense.bias": np.zeros(width, "f")}
        return {**load_file(path), **pooler}
    prefix = f"{config.get('model_type')}."
    if prefix not in ("albert.", "distilbert.", "roberta.") or not path.is_file():
        return {}
    with safe_open(path, framework="np") as file:
        if any(name.startswith(prefix) for name in file.keys()):  # noqa: SIM118
            return {}
    return {f"{prefix}{name}": weight for name, weight in load_file(path).items()}


class _Tokens(NamedTuple):
    """What the files of a tokenizer say.

    Args:
      settings: tokenizer_config.json, with the values that transformers takes from elsewhere.
      files: The files that KerasHub reads, by name. It reads no tokenizer.json, which transformers 5 writes alone.
      added: The tokens that were added.
      segments: As for `Encoder`.
    """

    settings: Mapping[str, Any] = {}
    files: Mapping[str, bytes] = {}
    added: frozenset[str] = frozenset()
    segments: bool = True


def _tokens_of(folder: Path, config: Mapping[str, Any]) -> _Tokens:
    path = folder / "tokenizer.json"
    try:
        return _read_tokens(path, config["model_type"])
    except (AttributeError, IndexError, KeyError, TypeError) as error:  # values of other types, or none
        raise ValueError(f"{path}: has other values: {type(error).__name__}: {error}") from error


def _read_tokens(path: Path, model_type: str) -> _Tokens:
    folder, content = path.parent, read_json_if_there(path)
    settings, files = read_json_if_there(folder / "tokenizer_config.json"), {}
    is_generic = settings.get("tokenizer_class") in _GENERIC
    if model_type == "roberta" and (
        settings.get("add_prefix_space") or (is_generic and content["pre_tokenizer"].get("add_prefix_space"))
    ):
        raise ValueError(f"{folder}: add_prefix_space of the tokenizer must be false, got true")
    is_xlm = False
    if model_type in _OF_BERT:  # multilingual ones may have the tokenizer of XLM-RoBERTa
        is_xlm = (folder / _PIECES).exists() or (content and content["model"]["type"] == "Unigram")
        flags = {"tokenizer_class": "XLMRobertaTokenizer" if is_xlm else "BertTokenizer"}
        if content and is_generic and not is_xlm:
            normalizer = content["normalizer"] or {}
            if normalizer.get("type") != "BertNormalizer":
                raise ValueError(f"{path}: normalizer must be BertNormalizer, got {normalizer.get('type')}")
            flags |= {"do_lower_case": normalizer["lowercase"], "strip_accents": normalizer["strip_accents"]}
        settings = {"do_lower_case": True, **settings, **flags}
        files["tokenizer_config.json"] = json.dumps(settings).encode()
    if content and model_type in _READ and not any((folder / name).exists() for name in _VOCABULARIES):
        files |= _vocabulary(path, content, is_albert=model_type == "albert")
    added = {token["content"] for token in content.get("added_tokens", [])}
    added |= {*read_json_if_there(folder / "added_tokens.json")}
    names = settings.get("model_input_names")
    segments = "token_type_ids" in names if names else not (is_generic or is_xlm)
    return _Tokens(settings, files, frozenset(added), segments)


def _vocabulary(path: Path, content: Mapping[str, Any], is_albert: bool) -> dict[str, bytes]:
    """Returns the files of the vocabulary of a tokenizer.json, by name."""
    kind, tokens = content["model"]["type"], content["model"]["vocab"]
    if kind == "WordPiece" and sorted(tokens.values()) == list(range(len(tokens))):
        return {"vocab.txt": "".join(f"{token}\n" for token in sorted(tokens, key=tokens.__getitem__)).encode()}
    if kind == "BPE":
        merges = (merge if isinstance(merge, str) else " ".join(merge) for merge in content["model"]["merges"])
        merged = "".join(f"{merge}\n" for merge in merges)
        return {"vocab.json": json.dumps(tokens).encode(), "merges.txt": merged.encode()}
    if kind == "Unigram":
        return {"spiece.model" if is_albert else _PIECES: _sentencepiece(path, content, is_albert)}
    raise ValueError(f"{path}: model must be WordPiece without gaps in its ids, BPE or Unigram, got {kind}")


def _sentencepiece(path: Path, content: Mapping[str, Any], is_albert: bool) -> bytes:
    """Returns the model of sentencepiece with the pieces of a tokenizer.json of ALBERT or of XLM-RoBERTa."""
    messages: Any = importlib.import_module("sentencepiece.sentencepiece_model_pb2")
    pieces, unknown = content["model"]["vocab"], content["model"]["unk_id"]
    control = {"<pad>", "[CLS]", "[SEP]", "[MASK]", *_OF_XLM}
    if not is_albert:  # KerasHub adds the others of these tokens.
        names = [piece[0] for piece in pieces]
        if names[: len(_OF_XLM)] != _OF_XLM or _MASK in names[:-1]:
            raise ValueError(f"{path}: the vocabulary must begin with {_OF_XLM}, and may only end with {_MASK}")
        rest = pieces[len(_OF_XLM) : -1 if names[-1] == _MASK else None]
        pieces, unknown = [["<unk>", 0.0], ["<s>", 0.0], ["</s>", 0.0], *rest], 0
    model, kinds = messages.ModelProto(), messages.ModelProto.SentencePiece
    for place, piece in enumerate(pieces):
        kind = kinds.CONTROL if piece[0] in control else kinds.NORMAL
        model.pieces.add(piece=piece[0], score=piece[1], type=kinds.UNKNOWN if place == unknown else kind)
    normalizer = content["normalizer"]
    for step in normalizer.get("normalizers", [normalizer]) if normalizer else []:
        if step["type"] not in _NORMALIZERS | (_OF_ALBERT if is_albert else set()):
            raise ValueError(f"{path}: normalizers must be among {sorted(_NORMALIZERS)}, got {step['type']}")
        model.normalizer_spec.precompiled_charsmap += base64.b64decode(step.get("precompiled_charsmap") or "")
    return bytes(model.SerializeToString())


def read_json(path: Path, kind: type = dict) -> Any:
    """Returns the content of a file of a checkpoint, an object or an array."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise ValueError(f"{path}: not JSON: {' '.join(str(error).split())}") from error
    if not isinstance(content, kind):
        raise ValueError(f"{path}: must be a {kind.__name__}, got {type(content).__name__}")
    return content


def read_json_if_there(path: Path, kind: type = dict) -> Any:
    """Returns the content of a file, or an empty one without the file."""
    return read_json(path, kind) if path.is_file() else kind()


def tensors(folder: Path, names: list[str]) -> list[np.ndarray]:
    """Returns tensors of the safetensors files of a folder, as float32."""
    from safetensors import safe_open

    index, found = folder / "model.safetensors.index.json", []
    files = read_json(index).get("weight_map", {}) if index.is_file() else {}
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


def _pooling_of(folder: Path) -> str:
    """Returns the pooling of a checkpoint."""
    path = folder / "1_Pooling" / "config.json"
    if not path.is_file():
        return "mean"
    config = read_json(path)
    if "pooling_mode" in config:  # in newer versions
        modes = [str(config["pooling_mode"])]
    else:
        modes = [key[len("pooling_mode_") :] for key in config if key.startswith("pooling_mode_") and config[key]]
    if len(modes) != 1 or modes[0] not in _POOLING_OF_MODE:
        raise ValueError(f"{path}: the pooling must be one of {', '.join(_POOLING_OF_MODE)}, got {', '.join(modes)}")
    return _POOLING_OF_MODE[modes[0]]
