"""Serialization of rankings, measures and discounts in Keras configs."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import tensorflow as tf

from tfr_smooth import measures, rankings

PACKAGE = "tfr_smooth"
_OWN = (
    *rankings.RANKINGS,
    *measures.MEASURES,
    *measures.EXACT_ONLY,
    rankings.ExactRanking,
    rankings.ShallowDiscount,
)
_PARTS: dict[str, type] = {part.__name__: part for part in _OWN}


def encode(value: Any) -> Any:
    """Returns the class and arguments of a ranking, measure or discount as a config; other values are unchanged.

    The name of a user-defined class is its registered Keras name. Its arguments come from `get_config` if it has one,
    otherwise from the dataclass fields. A variable becomes its current value. A function that is registered with Keras
    is like a class without arguments.
    """
    if isinstance(value, tf.Variable):
        with tf.init_scope():  # Keras also calls `get_config` while tracing.
            return float(tf.convert_to_tensor(value))
    if isinstance(value, tuple):
        return list(value)
    if hasattr(value, "get_config"):
        arguments = value.get_config()
    elif dataclasses.is_dataclass(value):
        arguments = {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    elif isinstance(value, rankings.Ranking | measures.Measure):
        arguments = {}
    elif inspect.isfunction(value) and _registered(tf.keras.utils.get_registered_name(value)) is value:
        return {"class_name": tf.keras.utils.get_registered_name(value), "config": {}}
    else:
        return value
    part = type(value)
    is_own = _PARTS.get(part.__name__) is part
    name = f"{PACKAGE}>{part.__name__}" if is_own else tf.keras.utils.get_registered_name(part)
    return {"class_name": name, "config": arguments}


def decode(value: Any) -> Any:
    """Returns the object described by the result of `encode`; other values are unchanged.

    Raises:
      ValueError: If the class is unknown.
    """
    if not _is_part(value):
        return value
    name = value["class_name"]
    # The first files of this library name its own classes without the package.
    part = _registered(name) or _PARTS.get(name.removeprefix(f"{PACKAGE}>"))
    if part is None:
        raise ValueError(
            f"`class_name` must be a ranking or measure of tfr_smooth, or a class registered with "
            f"tf.keras.utils.register_keras_serializable, got {name!r}."
        )
    if inspect.isfunction(part):
        return part
    arguments = {key: decode(argument) for key, argument in value["config"].items()}
    return part.from_config(arguments) if hasattr(part, "from_config") else part(**arguments)


def _registered(name: str) -> Any:
    return tf.keras.utils.get_registered_object(name)


def representation(configured: Any) -> str:
    """Returns the constructor call of a loss or metric, from its config: `SmoothINDCGLoss(alpha=1.0, ...)`."""
    config = configured.get_config()
    # The parts themselves, since classes that are not registered cannot be decoded.
    shown = {name: getattr(configured, name, None) or decode(config[name]) for name in config if _is_part(config[name])}
    arguments = ", ".join(f"{name}={value!r}" for name, value in {**config, **shown}.items())
    return f"{type(configured).__name__}({arguments})"


def _is_part(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"class_name", "config"}
