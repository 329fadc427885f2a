"""Command lines of the scripts in examples: one line per error, with suggestions, and the flags of file formats."""

from __future__ import annotations

import contextlib
import difflib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
from absl import flags

from tfr_smooth.data import LetorFormat

# Argument of `LetorFormat` to the help text of its flag.
_FORMAT = {
    "query_ids": "where a line contains its query id: qid, or comment for the first word after '#'",
    "group_sizes": "comma-separated files with the number of documents of each query",
    "first_index": "the index of the first feature: 1 or 0",
    "missing": "comma-separated replacements of missing values: NULL=0, or NULL=query_min for the minimum in the query",
    "labeled": "whether to read labels: true, or false for unlabeled documents",
}


@contextlib.contextmanager
def errors_in_one_line(*kinds: type[Exception]) -> Iterator[None]:
    """Exits with a one-line message on stderr after an error of these kinds or an error raised inside a dataset."""
    try:
        yield
    except (*kinds, tf.errors.OpError) as error:
        message = str(error)
        if isinstance(error, tf.errors.OpError):
            # TensorFlow's message contains the Python exception raised inside the dataset.
            raised = re.search(r"\b(?:ImportError|OSError|ValueError): (.*)", message)
            if raised is None:
                raise
            message = raised[1]
        sys.exit(f"error: {message}")


def did_you_mean(arguments: Sequence[str], choices: Mapping[str, Sequence[str]]) -> str | None:
    """Returns a suggestion for the first flag value that is close to a valid choice but not valid, or None.

    Args:
      arguments: Command-line arguments of the form `--name=value`.
      choices: Valid values by flag name.

    Returns:
      A message, or None if no invalid value is close to a choice.

    Example:
      >>> did_you_mean(["--batch_size=3", "--loss=softndcg"], {"loss": ["soft_ndcg", "list_net"]})
      '--loss=softndcg: did you mean soft_ndcg?'
    """
    for argument in arguments:
        name, _, value = argument.lstrip("-").partition("=")
        near = difflib.get_close_matches(value, choices.get(name, ()), n=1)
        if near and near != [value]:
            return f"--{name}={value}: did you mean {near[0]}?"
    return None


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

    Example:
      >>> letor_format({"first_index": "0", "missing": "NULL=query_min,NaN=0", "labeled": None}).missing
      {'NULL': 'query_min', 'NaN': 0.0}
    """
    given: dict[str, Any] = {name: text for name, text in texts.items() if text is not None}
    if "group_sizes" in given:
        given["group_sizes"] = given["group_sizes"].split(",")
    if "first_index" in given:
        given["first_index"] = {"0": 0, "1": 1}.get(given["first_index"], given["first_index"])
    if "labeled" in given:
        given["labeled"] = {"true": True, "false": False}.get(given["labeled"].lower(), given["labeled"])
    if "missing" in given:
        pairs = [pair.rpartition("=") for pair in given["missing"].split(",")]
        if not all(separator for _, separator, _ in pairs):
            raise ValueError(f"`missing` must be comma-separated TOKEN=VALUE pairs, got {given['missing']!r}.")
        given["missing"] = {token: _number(value) for token, _, value in pairs}
    return LetorFormat(**given)


def _number(text: str) -> float | str:
    """Returns the number, or a text that is none, such as `query_min`."""
    try:
        return float(text)
    except ValueError:
        return text
