"""Flags of the scripts in this folder that describe the format of LETOR files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from absl import flags

from tfr_smooth.data import LetorFormat

# Argument of `LetorFormat` to the help text of its flag.
_FORMAT = {
    "query_ids": "where a line contains its query id: qid, or comment for the first word after '#'",
    "first_index": "the index of the first feature: 1 or 0",
    "missing": "comma-separated replacements of missing values, such as NULL=0",
    "labeled": "whether to read labels: true, or false for unlabeled documents",
}


class FormatFlags:
    """Defines the flags of a `LetorFormat`.

    Args:
      files: The files in the help texts.
      without: Arguments of `LetorFormat` without a flag.

    Attributes:
      names: The names of the flags.
    """

    def __init__(self, *, files: str = "the files", without: Sequence[str] = ()) -> None:
        self.names = [name for name in _FORMAT if name not in without]
        self._flags = [flags.DEFINE_string(name, None, f"Format of {files}: {_FORMAT[name]}.") for name in self.names]

    def letor_format(self, **fixed: str) -> LetorFormat:
        """Returns the format for the values of the flags, and of other arguments as texts."""
        return letor_format({**{flag.name: flag.value for flag in self._flags}, **fixed})


def letor_format(texts: Mapping[str, str | None]) -> LetorFormat:
    """Returns the format for the texts of flags.

    Args:
      texts: Argument of `LetorFormat` to the text of its flag. None keeps the default.

    Returns:
      The format.

    Raises:
      ValueError: If a text is not a valid value of its flag.
    """
    given: dict[str, Any] = {name: text for name, text in texts.items() if text is not None}
    if "first_index" in given:
        given["first_index"] = {"0": 0, "1": 1}.get(given["first_index"], given["first_index"])
    if "labeled" in given:
        given["labeled"] = {"true": True, "false": False}.get(given["labeled"].lower(), given["labeled"])
    if "missing" in given:
        pairs = [pair.rpartition("=") for pair in given["missing"].split(",")]
        try:
            given["missing"] = {token: float(value) for token, _, value in pairs}
        except ValueError:
            raise ValueError(
                f"`missing` must be comma-separated TOKEN=NUMBER pairs, got {given['missing']!r}."
            ) from None
    return LetorFormat(**given)
