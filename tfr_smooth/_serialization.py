"""Configs of losses, metrics, rankings and measures: registered classes with `get_config` and `from_config`."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any, TypeVar

import tensorflow as tf

PACKAGE = "tfr_smooth"
T = TypeVar("T", bound="Configurable")

# The class decorator that registers a class of this library with Keras.
register = tf.keras.utils.register_keras_serializable(package=PACKAGE)


@dataclasses.dataclass(frozen=True, eq=False)
class Configurable:
    """Base class of frozen dataclasses that are stored in the configs of Keras objects, as their fields.

    Example:
      >>> from tfr_smooth import rankings
      >>> rankings.SoftSort.from_config(rankings.SoftSort(temperature=2.0).get_config())
      SoftSort(temperature=2.0, power=1.0)
    """

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {field.name: serialize(getattr(self, field.name)) for field in dataclasses.fields(self) if field.init}

    @classmethod
    def from_config(cls: type[T], config: dict[str, Any]) -> T:
        """Creates the object from the result of `get_config`."""
        return cls(**{name: deserialize(value) for name, value in config.items()})


def serialize(value: Any) -> Any:
    """Returns the registered name and config of an object, or its JSON value.

    A variable becomes its current value. A function that is registered with Keras has an empty config. Other values are
    unchanged.
    """
    if isinstance(value, tf.Variable):
        with tf.init_scope():  # Keras also calls `get_config` while tracing.
            return float(tf.convert_to_tensor(value))
    if isinstance(value, tuple):
        return list(value)
    if hasattr(value, "get_config"):
        return {"class_name": tf.keras.utils.get_registered_name(type(value)), "config": value.get_config()}
    if inspect.isfunction(value):
        name = tf.keras.utils.get_registered_name(value)
        if tf.keras.utils.get_registered_object(name) is value:
            return {"class_name": name, "config": {}}
    return value


def deserialize(value: Any) -> Any:
    """Returns the object described by the result of `serialize`; other values are unchanged.

    Raises:
      ValueError: If the class is not registered.
    """
    if not _is_config(value):
        return value
    name, found = registered(value)
    if found is None:
        raise ValueError(
            "`class_name` must be a class of tfr_smooth, or one registered with "
            f"tf.keras.utils.register_keras_serializable, got {name!r}."
        )
    return found if inspect.isfunction(found) else found.from_config(dict(value["config"]))


def registered(config: Mapping[str, Any]) -> tuple[Any, Any]:
    """Returns the name in a config of `serialize` or of Keras, and the class or function of this name, or None."""
    name = config.get("registered_name") or config.get("class_name")
    return name, tf.keras.utils.get_registered_object(name) if isinstance(name, str) else None


def representation(configured: Any) -> str:
    """Returns the constructor call of a loss or metric, from its config: `SmoothINDCGLoss(alpha=1.0, ...)`."""
    shown = {}
    for name, value in configured.get_config().items():
        try:
            shown[name] = deserialize(value)
        except ValueError:  # The class is not registered.
            shown[name] = getattr(configured, name)
    arguments = ", ".join(f"{name}={value!r}" for name, value in shown.items())
    return f"{type(configured).__name__}({arguments})"


def _is_config(value: Any) -> bool:
    return isinstance(value, dict) and {"class_name", "config"} <= set(value)
