"""Errors of the scripts in one line, and files that are complete once they exist."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from absl import flags


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


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[pathlib.Path]:
    """Yields the name of a file, which is renamed to `path` in the end, or removed after an error."""
    unfinished = pathlib.Path(path).with_name(f".unfinished-{pathlib.Path(path).name}")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_json(path: str | os.PathLike[str], values: Any) -> None:
    """Writes values to a file, which is renamed into place."""
    with replacing(path) as unfinished:
        unfinished.write_text(json.dumps(values, indent=2) + "\n")


def json_flag(name: str, about: str) -> flags.FlagHolder:
    """Defines a flag whose value is a JSON object, by default an empty one."""
    return flags.DEFINE(_JsonParser(), name, "{}", about)


class _JsonParser(flags.ArgumentParser):
    def parse(self, argument: str | dict[str, Any]) -> dict[str, Any]:
        value = json.loads(argument) if isinstance(argument, str) else argument
        if not isinstance(value, dict):
            raise ValueError(f"expected a JSON object, got {argument!r}")
        return value
