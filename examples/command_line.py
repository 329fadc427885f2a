"""Error reporting of command lines: one line per error, with suggestions."""

from __future__ import annotations

import contextlib
import difflib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence

import tensorflow as tf


@contextlib.contextmanager
def errors_in_one_line(*kinds: type[Exception]) -> Iterator[None]:
    """Exits with a one-line message on stderr after an error of these kinds or an error raised inside a dataset."""
    try:
        yield
    except (*kinds, tf.errors.OpError) as error:
        message = str(error)
        if isinstance(error, tf.errors.OpError):
            # TensorFlow's message contains the Python exception raised inside the dataset.
            if "KeyboardInterrupt" in message:
                raise KeyboardInterrupt from None
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
