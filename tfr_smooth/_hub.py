"""Folders and repositories of the Hugging Face Hub."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfr_smooth import _arguments, _files
from tfr_smooth._version import __version__

FILE = "estimator.keras"  # of a fitted estimator; Keras looks at the ending
_CONFIG = "config.json"  # by which the hub counts downloads
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


def folder_of(checkpoint: str | os.PathLike[str], files: Sequence[str], *, owner: str = "") -> Path:
    """Returns a folder with config.json, after the download of a repository.

    Args:
      checkpoint: The folder, or the name of the repository.
      files: The names of the files to download, or patterns.
      owner: The owner of repositories without one in their name.

    Raises:
      ValueError: If the folder is another one, or the download fails.
    """
    folder, name = Path(checkpoint), os.fspath(checkpoint)
    if (folder / _CONFIG).is_file():
        return folder
    if folder.exists() or not isinstance(checkpoint, str) or not _NAME.fullmatch(name):
        raise ValueError(f"`checkpoint` must be a folder with config.json or a name on Hugging Face, got {name}.")
    name = name if "/" in name or not owner else f"{owner}/{name}"
    with _arguments.needed("huggingface-hub", extra="hub", by=f"The download of {name}"):
        import huggingface_hub
    try:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=list(files)))
    except Exception as error:  # Of the connection, the name, the access or the disk; each has other types.
        reason = " ".join(str(error).split())
        raise ValueError(
            f"`checkpoint` is no folder, and the download of {name} failed: {type(error).__name__}: {reason} "
            f"Without access to the hub, run `hf download {name} --local-dir FOLDER` elsewhere, and pass the folder."
        ) from error


def push(
    name: str,
    write: Callable[[Path], None],
    owner: type,
    card: Mapping[str, Any],
    replaces: bool,
    private: bool | None,
    token: str | None,
) -> str:
    """Uploads an estimator and its model card, and returns the URL of the repository.

    Args:
      name: The name of the repository, OWNER/NAME.
      write: Writes the estimator to a path.
      owner: The class of the estimator.
      card: The content of the card, by title: texts, or values that are printed as JSON.
      replaces: Whether it replaces the card of the repository, which people edit there.
      private: Whether a new repository is private. None: as the owner has it.
      token: The token of the hub. None: that of `hf auth login`.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or "/" not in name:
        raise ValueError(f"`repo_id` must be OWNER/NAME, got {name!r}.")
    with _arguments.needed("huggingface-hub", extra="hub", by="`push_to_hub`"):
        import huggingface_hub
    module, kind = ".".join(owner.__module__.split(".")[:2]), owner.__name__
    task = {"TextRanker": "text-ranking", "Ranker": "tabular-regression"}.get(kind)
    data = huggingface_hub.ModelCardData(
        library_name="tfr_smooth", tags=["learning-to-rank", kind.lower()], pipeline_tag=task
    )
    lines = [
        f"---\n{data.to_yaml()}\n---",
        f"# {name}",
        f"A `{kind}` of tfr_smooth {__version__}.",
        f"```py\nfrom {module} import {kind}\n\nmodel = {kind}.from_pretrained({name!r})\n```",
    ]
    for title, value in card.items():
        text = value if isinstance(value, str) else f"```json\n{_files.as_json(value)}\n```"
        lines += [f"## {title[:1].upper()}{title[1:]}", text]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write(folder / FILE)
        (folder / _CONFIG).write_text(json.dumps({"library": "tfr_smooth", "class": kind}) + "\n", encoding="utf-8")
        url = huggingface_hub.create_repo(name, private=private, token=token, exist_ok=True)
        if huggingface_hub.file_exists(name, _CONFIG, token=token):
            there = Path(huggingface_hub.hf_hub_download(name, _CONFIG, token=token)).read_bytes()
            if b'"library": "tfr_smooth"' not in there:
                raise ValueError(f"`repo_id` must be a repository of tfr_smooth, got {name!r} with another {_CONFIG}.")
        if replaces or not huggingface_hub.file_exists(name, "README.md", token=token):
            (folder / "README.md").write_text("\n\n".join(lines) + "\n", encoding="utf-8")
        huggingface_hub.upload_folder(
            repo_id=name, folder_path=folder, token=token, commit_message=f"A {kind} of tfr_smooth {__version__}"
        )
    return str(url)
