"""Flags of the scripts in this folder for the arguments of an estimator's constructor."""

from __future__ import annotations

import inspect
import json
import sys
from typing import Any

from absl import flags
from command_line import json_flag


class EstimatorFlags:
    """Defines --loss, --loss_args, and a flag for each other argument that is no Keras object.

    Args:
      estimator_class: The class, such as `tfr_smooth.Ranker`.
      page: The page of the documentation that describes its arguments.
    """

    def __init__(self, estimator_class: Any, *, page: str) -> None:
        self._class, about = estimator_class, f"of `{estimator_class.__name__}` ({page})."
        parameters = inspect.signature(estimator_class).parameters.values()
        self._loss = flags.DEFINE_string("loss", None, f"The name of a loss (docs/losses). Default: that {about}")
        self._loss_args = json_flag("loss_args", 'Hyperparameters of the loss as JSON, such as {"alpha": 1.0}.')
        self._flags = [
            flags.DEFINE_string(argument.name, _written(argument.default), f"The argument `{argument.name}` {about}")
            for argument in parameters
            if argument.kind is argument.KEYWORD_ONLY and argument.name != "loss" and "keras" not in argument.annotation
        ]

    def make(self, loss: str | None = None, loss_args: dict[str, Any] | None = None, **params: Any) -> Any:
        """Returns the estimator that the flags describe.

        Args:
          loss: The name of a loss instead of --loss.
          loss_args: Its hyperparameters instead of --loss_args.
          **params: Arguments that differ from the flags.

        Raises:
          ValueError: If a flag has an invalid value.
        """
        if loss is None:
            loss, loss_args = self._loss.value, self._loss_args.value
            loss = inspect.signature(self._class).parameters["loss"].default if loss is None else _parsed(loss)
        given = {flag.name: _parsed(flag.value) for flag in self._flags}
        if isinstance(given.get("hidden"), int):
            given["hidden"] = [given["hidden"]]
        return self._class(loss=loss, **{**(loss_args or {}), **given, **params})


def _parsed(text: str) -> Any:
    """Returns the value of a flag: `none`, JSON such as 0.5, widths such as 256,64, or a text."""
    try:
        values = json.loads(f"[{text}]")
        return values[0] if len(values) == 1 else values
    except ValueError:
        return None if text == "none" else text


def _written(value: Any) -> str:
    return "none" if value is None else json.dumps(value).strip('"[]')


def parse(argv: list[str]) -> list[str]:
    """Parses all flags and returns the other arguments; an error is one line."""
    try:
        return flags.FLAGS(argv)
    except flags.Error as error:
        sys.exit(f"error: {error}")
