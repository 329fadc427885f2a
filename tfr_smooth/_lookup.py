"""Lookup of losses and metrics by name, config or instance, like Keras's `get`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import tensorflow as tf

from tfr_smooth import _serialization, registry

T = TypeVar("T")


def get(
    identifier: Any,
    arguments: Mapping[str, Any],
    classes: Mapping[str, type[T]],
    base: type[T],
    deserialize: Callable[[Mapping[str, Any]], T],
    *,
    argument: str = "identifier",
) -> T | None:
    """Returns the object that the identifier refers to.

    Args:
      identifier: A key of `classes` or a class name, with an optional cutoff ("ndcg@10"); a config, an instance of
        `base`, or None.
      arguments: Constructor arguments; only valid with a name.
      classes: Name -> class.
      base: The base class.
      deserialize: Creates an instance from a config.
      argument: Name of the identifier, for error messages.

    Returns:
      An instance of `base`; None for None.

    Raises:
      ValueError: If the identifier is unknown, or arguments are given without a name.
    """
    if isinstance(identifier, str):
        by_class = {each.__name__: each for each in classes.values()}
        name, has_cutoff, topn = identifier.removeprefix(f"{_serialization.PACKAGE}>").partition("@")
        if has_cutoff:
            if not topn.isdecimal() or "topn" in arguments:
                raise ValueError(f"`{argument}` must be a name, or NAME@K without `topn`, got {identifier!r}.")
            arguments = {**arguments, "topn": int(topn)}
        # TF-Ranking's names of losses end in "_loss".
        name = name.removesuffix("_loss") if name.removesuffix("_loss") in classes else name
        found = by_class[name] if name in by_class else classes[registry.check_name(argument, name, classes)]
        return found(**arguments)
    if arguments:
        raise ValueError(
            f"`arguments` must be empty unless `{argument}` is a name, got {sorted(arguments)} for {identifier!r}."
        )
    if identifier is None or isinstance(identifier, base):
        return identifier
    if isinstance(identifier, Mapping):
        return deserialize(identifier)
    raise ValueError(
        f"`{argument}` must be a name, a config, an instance of {base.__name__} or None, got {identifier!r}."
    )


def serialize(configured: Any) -> dict[str, Any]:
    """Returns the registered name of the class and the config."""
    return {
        "class_name": tf.keras.utils.get_registered_name(type(configured)),
        "config": configured.get_config(),
    }


def deserialize(config: Mapping[str, Any], base: type[T]) -> T:
    """Creates an instance of the base class from a config returned by `serialize` or by Keras's own function."""
    name = config.get("registered_name") or config.get("class_name")
    known = tf.keras.utils.get_registered_object(name) if isinstance(name, str) else None
    if not (isinstance(known, type) and issubclass(known, base)):
        raise ValueError(
            f"`config` must describe a {base.__name__} of tfr_smooth or one registered with Keras, got {name!r}."
        )
    return known.from_config(dict(config["config"]))  # type: ignore[attr-defined]
