"""What command lines say of errors: one line, with what is near."""

from __future__ import annotations

import contextlib
import difflib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence

import tensorflow as tf


@contextlib.contextmanager
def errors_in_one_line(*kinds: type[Exception]) -> Iterator[None]:
    """Ends the program with a line on stderr after an error of these kinds, or where a row of a dataset is at fault."""
    try:
        yield
    except (*kinds, tf.errors.OpError) as error:
        message = str(error)
        if isinstance(error, tf.errors.OpError):
            # What Python raised within the dataset stands among TensorFlow's lines.
            raised = re.search(r"\b(?:ImportError|OSError|ValueError): (.*)", message)
            if raised is None:
                raise
            message = raised[1]
        sys.exit(f"error: {message}")


def did_you_mean(arguments: Sequence[str], choices: Mapping[str, Sequence[str]]) -> str | None:
    """Returns what to say of a flag's value that is none of its choices but near to one; None if there is none.

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
