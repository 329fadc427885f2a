"""The settings of published checkpoints. Each is read, has no effect on scores, or is refused by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# By file: the settings that are read here, by KerasHub or by transformers; those of training, of other tasks and of the
# library; and those that may only have one of some values.
_SETTINGS = json.loads((Path(__file__).parent / "settings.json").read_text(encoding="utf-8"))
_OF_FAMILY = {
    **dict.fromkeys(("bert", "electra"), {"type_vocab_size": [2]}),
    # Places start after that of padding.
    **dict.fromkeys(("roberta", "xlm-roberta"), {"type_vocab_size": [1], "pad_token_id": [1]}),
}
# The square root of the length does not change the direction.
_POOLINGS = {
    **dict.fromkeys(("mean", "mean_tokens", "mean_sqrt_len_tokens"), "mean"),
    **dict.fromkeys(("cls", "cls_token"), "first"),
}


def read_json(path: Path, kind: type = dict) -> Any:
    """Returns the content of a file of a checkpoint, an object or an array."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise ValueError(f"{path}: not JSON: {' '.join(str(error).split())}") from error
    if not isinstance(content, kind):
        raise ValueError(f"{path}: must be a {kind.__name__}, got {type(content).__name__}")
    return content


def read(path: Path, kind: str | None = None, is_needed: bool = False) -> dict[str, Any]:
    """Returns the settings of a file, or none without it.

    Args:
      path: The file.
      kind: Of which kind its settings are. None: the kind with the file's name.
      is_needed: Whether the file must be there.

    Raises:
      ValueError: If a setting has another value than all that are supported, or is not known.
    """
    if not (is_needed or path.is_file()):
        return {}
    content, kind = read_json(path), kind or path.name
    known = _SETTINGS[kind]
    family = _OF_FAMILY.get(str(content.get("model_type")), {}) if kind == "config.json" else {}
    allowed = {**known["one_of"], **family}
    for name, value in content.items():
        if name in allowed and value not in allowed[name]:
            expected = " or ".join(map(repr, allowed[name]))
            raise ValueError(f"{path}: {name} must be {expected}, got {value!r}")
        if name not in allowed and name not in known["read"] + known["without_effect"]:
            raise ValueError(f"{path}: {name} is not supported, and might change the scores, got {value!r}")
    return content


def config_of(folder: Path) -> dict[str, Any]:
    """Returns config.json, whose settings are checked unless it is that of a preset of KerasHub."""
    content = read_json(folder / "config.json")
    return read(folder / "config.json") if "model_type" in content else content


def modules_of(folder: Path) -> list[tuple[str, Path]]:
    """Returns the kind and the folder of each module of a checkpoint of sentence-transformers."""
    path = folder / "modules.json"
    modules = read_json(path, list) if path.is_file() else []
    if others := [module["type"] for module in modules if not module["type"].startswith("sentence_transformers.")]:
        raise ValueError(f"{path}: type must be a module of sentence_transformers, got {others[0]!r}")
    return [(module["type"].rpartition(".")[2], folder / module["path"]) for module in modules]


def transformer_of(folder: Path) -> dict[str, Any]:
    """Returns sentence_bert_config.json, which sentence-transformers reads only beside modules.json."""
    return read(folder / "sentence_bert_config.json") if (folder / "modules.json").is_file() else {}


def vectors_of(folder: Path) -> dict[str, Any]:
    """Returns how a checkpoint of sentence-transformers makes vectors, as arguments of `Encoder`.

    Raises:
      ValueError: If a setting is not supported. The message names the file and the setting.
    """
    folders = [path for kind, path in modules_of(folder) if kind == "Pooling"] or [folder / "1_Pooling"]
    path = folders[0] / "config.json"
    library = folder / "config_sentence_transformers.json"
    prompts = _prompts(config := read(library))
    if (name := config.get("default_prompt_name")) not in (None, *(config.get("prompts") or {})):
        raise ValueError(f"{library}: default_prompt_name must be among the prompts, got {name!r}")
    if not path.is_file():
        return {"prompts": prompts}
    config = read(path, "pooling")
    if "pooling_mode" in config:  # in newer versions
        modes = [str(config["pooling_mode"])]
    else:
        modes = [key[len("pooling_mode_") :] for key in config if key.startswith("pooling_mode_") and config[key]]
    if prompts and not config.get("include_prompt", True):
        raise ValueError(f"{path}: include_prompt must be True with the prompts {prompts}, got False")
    if modes == ["mean_sqrt_len_tokens"] and any(kind == "Dense" for kind, _ in modules_of(folder)):
        raise ValueError(f"{path}: pooling_mode must be another with a dense layer, got mean_sqrt_len_tokens")
    if len(modes) != 1 or modes[0] not in _POOLINGS:
        raise ValueError(f"{path}: the pooling must be one of {', '.join(_POOLINGS)}, got {', '.join(modes)}")
    return {"pooling": _POOLINGS[modes[0]], "prompts": prompts}


def _prompts(config: Mapping[str, Any]) -> dict[str, str]:
    """Returns the prompt of each role, as `encode_query` and `encode_document` of sentence-transformers choose it."""
    given, prompts = config.get("prompts") or {}, {}
    for role, names in (("query", ["query"]), ("document", ["document", "passage", "corpus"])):
        name = next((name for name in names if name in given), config.get("default_prompt_name"))
        prompts[role] = given.get(name) or ""
    return {role: prompt for role, prompt in prompts.items() if prompt}
