"""Creates the loss and metric classes of the measures, with signatures and docstrings assembled from their parts."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from tfr_smooth import _serialization


def keras_class(
    name: str,
    base: type,
    *,
    module: str,
    parameters: Mapping[str, Any],
    initialize: Callable[..., None],
    attributes: Mapping[str, Any],
    doc: str,
) -> type:
    """Creates a class with a keyword-only constructor and registers it with Keras.

    Args:
      name: Name of the class.
      base: Base class.
      module: Name of the class's module.
      parameters: The constructor's arguments, with their defaults.
      initialize: Implementation of the constructor; called with the instance and all arguments.
      attributes: Other attributes of the class.
      doc: Docstring of the class.

    Returns:
      The class.
    """
    keywords = [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default) for key, default in parameters.items()
    ]
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([itself, *keywords])

    def constructor(*args: Any, **kwargs: Any) -> None:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}: {error}.") from None
        bound.apply_defaults()
        initialize(**bound.arguments)

    constructor.__signature__ = signature  # type: ignore[attr-defined]
    constructor.__name__, constructor.__qualname__ = "__init__", f"{name}.__init__"
    namespace = {"__init__": constructor, "__module__": module, "__doc__": doc, **attributes}
    return tf.keras.utils.register_keras_serializable(package=_serialization.PACKAGE)(type(name, (base,), namespace))


def argument_docs(*parts: type) -> str:
    """Returns the lines of the `Args` sections of the given classes."""
    sections = (re.search(r"^Args:\n(.*?)(?:\n\n|\Z)", inspect.getdoc(part) or "", re.M | re.S) for part in parts)
    return "\n".join(textwrap.dedent(section[1]) for section in sections if section)


def docstring(summary: str, *paragraphs: str, arguments: str, raises: str, cost: tuple[str, str], example: str) -> str:
    """Returns a docstring in the library's section order: summary, formulas, Args, Raises, cost, example."""
    time, memory = cost
    return "\n\n".join(
        [
            summary,
            *paragraphs,
            "Args:\n" + textwrap.indent(arguments, "  "),
            f"Raises:\n  ValueError: {raises}",
            f"Time O({time}), memory O({memory}) per list.",
            "Example:\n" + textwrap.indent(example, "  "),
        ]
    )


def hyperparameters_of(part: Any) -> dict[str, Any]:
    """Returns the arguments of a ranking or measure in the form that configs store."""
    return {field.name: _serialization.encode(getattr(part, field.name)) for field in dataclasses.fields(part)}
