"""Flags of the scripts in this folder for the arguments of `tfr_smooth.Ranker`."""

from __future__ import annotations

import json
import sys
from typing import Any

from absl import flags
from command_line import json_flag

import tfr_smooth

_OTHER = ("loss", "verbose", "validation_fraction", "network", "kinds", "matches", "max_categories")
_LOSS = flags.DEFINE_string("loss", "smoothi_ndcg", "Name of a loss (docs/losses).")
_LOSS_ARGS = json_flag("loss_args", 'Hyperparameters of the loss as JSON, such as {"alpha": 1.0, "topn": 10}.')


def _parsed(text: str) -> Any:
    """Returns the value of a flag: `none`, JSON such as 0.5, widths such as 256,64, or a text."""
    try:
        values = json.loads(f"[{text}]")
        return values[0] if len(values) == 1 else values
    except ValueError:
        return None if text == "none" else text


def _written(value: Any) -> str:
    return "none" if value is None else json.dumps(value).strip('"[]')


_SETTINGS = [
    flags.DEFINE_string(name, _written(value), f"The argument `{name}` of `tfr_smooth.Ranker` (docs/ranker.md).")
    for name, value in tfr_smooth.Ranker().get_params().items()
    if name not in _OTHER
]


def ranker(loss: str | None = None, loss_args: dict[str, Any] | None = None, **params: Any) -> tfr_smooth.Ranker:
    """Returns the ranker that the flags describe.

    Args:
      loss: The name of a loss instead of --loss.
      loss_args: Its hyperparameters instead of --loss_args.
      **params: Arguments that differ from the flags.

    Raises:
      ValueError: If a flag has an invalid value.
    """
    name, args = (_LOSS.value, _LOSS_ARGS.value) if loss is None else (loss, loss_args or {})
    given = {flag.name: _parsed(flag.value) for flag in _SETTINGS}
    given["hidden"] = [given["hidden"]] if isinstance(given["hidden"], int) else given["hidden"]
    return tfr_smooth.Ranker(loss=name, **{**args, **given, **params})


def parse(argv: list[str]) -> list[str]:
    """Parses all flags and returns the other arguments; an error is one line."""
    try:
        return flags.FLAGS(argv)
    except flags.Error as error:
        sys.exit(f"error: {error}")
