"""Configs of losses, metrics, rankings, measures and layers: registered classes with `get_config` and `from_config`."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import itertools
import math
import pkgutil
import zipfile
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import tensorflow as tf

PACKAGE = "tfr_smooth"
T = TypeVar("T", bound="Restorable")
L = TypeVar("L", bound="OfConfig")
C = TypeVar("C", bound=type)

# The class decorator that registers a class of this library with Keras.
register = tf.keras.utils.register_keras_serializable(package=PACKAGE)


class Registry(dict[str, type[T]]):
    """Classes by name. A class adds itself where it is defined, by the decorator `@REGISTRY.register("name")`."""

    def register(self, name: str) -> Callable[[C], C]:
        """Returns a class decorator that adds the class under this name, and registers it with Keras."""

        def add(registered_class: C) -> C:
            self[name] = register(registered_class)
            return registered_class

        return add


def import_modules(package: str) -> None:
    """Imports all modules of a package, so that the classes in a file of any name are registered."""
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
        importlib.import_module(module.name)


class OfConfig:
    """Base class of what is restored from the arguments of its constructor."""

    @classmethod
    def from_config(cls: type[L], config: dict[str, Any]) -> L:
        """Creates the object from the result of `get_config`."""
        return cls(**{name: deserialize(value) for name, value in config.items()})


class Restorable(OfConfig):
    """Base class of objects with a method `get_config` that returns the constructor's arguments."""

    def __repr__(self) -> str:
        """Returns the constructor call, from the config: `SmoothINDCGLoss(alpha=1.0, ...)`."""
        shown = {}
        for name, value in self.get_config().items():  # type: ignore[attr-defined]
            try:
                shown[name] = deserialize(value)
            except ValueError:  # The class is not registered.
                shown[name] = getattr(self, name)
        arguments = ", ".join(f"{name}={value!r}" for name, value in shown.items())
        return f"{type(self).__name__}({arguments})"


@dataclasses.dataclass(frozen=True, eq=False)
class Configurable(Restorable):
    """Base class of frozen dataclasses that are stored in the configs of Keras objects, as their fields.

    Example:
      >>> from tfr_smooth import rankings
      >>> rankings.SoftSort.from_config(rankings.SoftSort(temperature=2.0).get_config())
      SoftSort(temperature=2.0, power=1.0)
    """

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {field.name: serialize(getattr(self, field.name)) for field in dataclasses.fields(self) if field.init}


class ConfiguredLayer(OfConfig):
    """Base class of Keras layers and models whose config is the constructor's arguments, attributes of the same names.

    Example:
      >>> from tfr_smooth import models
      >>> models.ListAttention.from_config(models.ListAttention(units=8).get_config()).units
      8
    """

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, with those of a Keras layer if it takes them."""
        takes_more = "kwargs" in inspect.signature(type(self).__init__).parameters
        return {**arguments_of(self), **(super().get_config() if takes_more else {})}  # type: ignore[misc]


# Content that is compressed by more is no content of an estimator, but takes memory.
_MOST_RATIO, _SMALL = 100, 1 << 20
# Sizes in the configurations of layers, whose products are numbers of weights that these have at least.
# In order: recommenders; encoders of KerasHub, of BERT and of DistilBERT; scorers.
_PRODUCTS: list[tuple[str, ...]] = [
    ("num_items", "dim"),
    ("vocabulary_size", "hidden_dim"),
    ("hidden_dim", "intermediate_dim"),
]
_PRODUCTS += [("hidden_size", "intermediate_size"), ("dim", "hidden_dim")]
_PRODUCTS += [(name,) for name in ("num_layers", "num_hidden_layers", "n_layers", "vocab_size", "max_sequence_length")]
_PRODUCTS += [(name,) for name in ("max_position_embeddings", "num_features", "members", "units")]


def check_sizes(config: Any, size: int) -> None:
    """Raises a `ValueError` if a model of this configuration has more weights than its file has bytes."""
    if (least := _least_weights(config)) > size:
        raise ValueError(f"its layers have at least {least} weights, but the file of its weights only {size} bytes")


def check_members(archive: zipfile.ZipFile) -> None:
    """Raises a `ValueError` if a member of an archive is not read, or would take much more memory than the archive."""
    for member in archive.infolist():
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or member.flag_bits & 1:
            raise ValueError(f"{member.filename} is encrypted, or compressed by another method")
        if member.file_size > _SMALL + _MOST_RATIO * member.compress_size:
            raise ValueError(f"{member.filename} has {member.compress_size} bytes that would become {member.file_size}")


def _least_weights(config: Any) -> int:
    """Returns a number of weights that layers have at least, by the sizes in their configurations."""
    nested = config.values() if isinstance(config, dict) else config if isinstance(config, list) else ()
    least = [0, *map(_least_weights, nested)]
    if isinstance(config, dict):
        sizes = {name: value for name, value in config.items() if isinstance(value, int)}
        least += [math.prod(sizes.get(name, 1) for name in names) for names in _PRODUCTS if sizes.keys() & names]
        tables, hidden = (config.get(name) or [] for name in ("embeddings", "hidden"))
        if isinstance(hidden, list):
            pairs = (one * other for one, other in itertools.pairwise([1, *hidden]))
            least.append(sizes.get("members", 1) * sum(pairs))
        least += [sizes.get("embedding_dim", 1) * rows for *_, rows in tables]
    return max(least)


def arguments_of(configured: Any, *, of: type | None = None, options: type | None = None) -> dict[str, Any]:
    """Returns the serialized arguments of a constructor, from attributes of the same names.

    Args:
      configured: The object; arguments without an attribute are left out.
      of: The class with the constructor. None is that of the object.
      options: The `TypedDict` of further arguments.
    """
    constructor: Any = of or type(configured)
    parameters = inspect.signature(constructor.__init__).parameters
    own = [name for name in parameters if name != "self" and hasattr(configured, name)]
    names = dict.fromkeys([*own, *(options.__annotations__ if options else ())])
    return {name: serialize(getattr(configured, name)) for name in names}


def serialize(value: Any) -> Any:
    """Returns the registered name and config of an object, or its JSON value.

    A variable becomes its current value. A function that is registered with Keras has an empty config. Other values are
    unchanged.
    """
    if isinstance(value, tf.Variable):
        with tf.init_scope():  # Keras also calls `get_config` while tracing.
            return float(tf.convert_to_tensor(value))
    if isinstance(value, (tuple, list)):
        return [serialize(each) for each in value]
    if isinstance(value, dict):
        return {name: serialize(each) for name, each in value.items()}
    if isinstance(value, tf.keras.layers.Layer):
        return tf.keras.utils.serialize_keras_object(value)
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
    if isinstance(value, list):
        return [deserialize(each) for each in value]
    if not isinstance(value, dict):
        return value
    if not {"class_name", "config"} <= set(value):
        return {name: deserialize(each) for name, each in value.items()}
    if "module" in value:  # the form of Keras
        return tf.keras.utils.deserialize_keras_object(value)
    name, known = registered(value)
    if known is None:
        expected = "a class of tfr_smooth, or one registered with tf.keras.utils.register_keras_serializable"
        raise ValueError(f"`class_name` must be {expected}, got {name!r}.")
    return known if inspect.isfunction(known) else known.from_config(dict(value["config"]))


def registered(config: Mapping[str, Any]) -> tuple[Any, Any]:
    """Returns the name in a config of `serialize` or of Keras, and the class or function of this name, or None."""
    name = config.get("registered_name") or config.get("class_name")
    return name, tf.keras.utils.get_registered_object(name) if isinstance(name, str) else None
