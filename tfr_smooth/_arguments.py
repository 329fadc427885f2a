"""Validation of constructor arguments: each function returns the value or raises a `ValueError` that names it.

Also the error of a missing package, and text from data in messages.
"""

from __future__ import annotations

import contextlib
import difflib
import math
import numbers
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np
import tensorflow as tf

T = TypeVar("T")
# Longer lists of names would hide the rest of an error message.
_MOST_LISTED = 10
# With temperatures in this range, all losses are finite in float32.
SCALES = (1e-10, 1e10)


def plain(value: Any) -> Any:
    """Returns a value with Python values in place of NumPy's; the same object if there are none."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, numbers.Real) and not isinstance(value, (int, float)):  # such as a fraction
        return float(value)
    if type(value) is dict:
        # Names are text, as those of columns are in Arrow and in files.
        inner = {str(name): plain(part) for name, part in value.items()}
        same = all(isinstance(name, str) and part is inner[name] for name, part in value.items())
        return value if same else inner
    if type(value) in (list, tuple):
        parts = type(value)(map(plain, value))
        return parts if any(new is not old for new, old in zip(parts, value, strict=True)) else value
    return value


def _refuse(name: str, expected: str, value: Any) -> NoReturn:
    raise ValueError(f"`{name}` must be {expected}, got {value!r}.")


def real(
    name: str,
    value: Any,
    *,
    above: float = -math.inf,
    below: float = math.inf,
    least: float = -math.inf,
    most: float = math.inf,
) -> float:
    """Returns `value` as a float if it is a finite number in (above, below) and in [least, most]."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    number = float(value) if is_number else math.nan
    if math.isfinite(number) and above < number < below and least <= number <= most:
        return number
    expected = "a finite number"
    if most < math.inf or below < math.inf:
        lower = f"({above:g}" if above > -math.inf else f"[{least:g}"
        expected = f"a number in {lower}, {most:g}]" if most < math.inf else f"a number in {lower}, {below:g})"
    elif least > -math.inf or above > -math.inf:
        expected += f" >= {least:g}" if least > -math.inf else f" > {above:g}"
    _refuse(name, expected, value)


def scale(name: str, value: Any) -> float:
    """Returns `value`, a divisor or factor of scores, if it is a number > 0 in the range that float32 allows."""
    smallest, largest = SCALES
    return real(name, real(name, value, above=0.0), least=smallest, most=largest)


def temperature(name: str, value: Any) -> float | tf.Variable:
    """Returns `value` if it is a valid `scale`, or a non-trainable variable that contains one."""
    if not isinstance(value, tf.Variable):
        return scale(name, value)
    if value.trainable or value.shape.rank != 0 or not value.dtype.is_floating:
        _refuse(name, "a number or a scalar float tf.Variable with trainable=False", value)
    if tf.executing_eagerly():
        scale(name, float(tf.convert_to_tensor(value)))
    return value


def integer(name: str, value: Any, *, least: int, most: float = math.inf, other: str = "") -> int:
    """Returns `value` as an int if it is a whole number >= `least` and <= `most`; the error names `other` values."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        _refuse(name, f"an integer >= {least}{other}", value)
    if int(value) > most:
        _refuse(name, f"an integer <= {most}", value)
    return int(value)


def integer_or_none(name: str, value: Any, *, least: int) -> int | None:
    """Returns `value` as an int if it is a whole number >= `least`, or None."""
    return None if value is None else integer(name, value, least=least, other=" or None")


def count_or_fraction(name: str, value: Any) -> int | float:
    """Returns `value` if it is a whole number >= 0, a count, or another number in [0, 1), a fraction."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        _refuse(name, "an integer >= 0 or a fraction in [0, 1)", value)
    if isinstance(value, numbers.Integral):
        return integer(name, value, least=0)
    return real(name, value, least=0.0, below=1.0)


def topn(value: Any) -> int | None:
    """Returns the cutoff `topn`: an int >= 1, or None for the whole list."""
    return integer_or_none("topn", value, least=1)


def function(name: str, value: T, *, optional: bool = False) -> T:
    """Returns `value` if it is callable, or None if it is optional."""
    if not callable(value) and not (optional and value is None):
        _refuse(name, "a function or None" if optional else "a function", value)
    return value


def boolean(name: str, value: Any) -> bool:
    """Returns `value` if it is True or False."""
    if not isinstance(value, bool):
        _refuse(name, "True or False", value)
    return value


def choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Returns `value` if it is one of `choices`; otherwise, the error suggests similar ones, and lists these first."""
    choices = list(choices)
    if isinstance(value, str) and value in choices:
        return value
    more = ""
    if len(choices) > _MOST_LISTED:
        more = f" and {len(choices) - _MOST_LISTED} others"
        choices = [*dict.fromkeys([*_similar(value, choices), *choices])]
    expected = ", ".join(map(repr, choices[:_MOST_LISTED])) + more
    raise ValueError(f"`{name}` must be one of {expected}, got {value!r}.{hint(value, choices)}")


def hint(value: Any, names: Iterable[str]) -> str:
    """Returns the end of an error message, which suggests the names that are similar to `value`, if there are some."""
    similar = _similar(value, names)
    return f" Did you mean {' or '.join(map(repr, similar))}?" if similar else ""


def _similar(value: Any, names: Iterable[str]) -> list[str]:
    # "lambdarank" is near "lambda_loss".
    plain = {name.replace("_", "").lower(): name for name in names}
    return [plain[match] for match in difflib.get_close_matches(str(value).replace("_", "").lower(), plain, n=3)]


def float_type(name: str, value: Any) -> tf.DType | None:
    """Returns float64, float32 (also for shorter types and mixed policies, which compute in it), or None."""
    if value is None:
        return None
    value = getattr(value, "compute_dtype", value)  # of a Keras policy
    if value in ("mixed_float16", "mixed_bfloat16"):
        return tf.float32
    try:
        dtype = tf.as_dtype(value)
    except TypeError:
        dtype = tf.bool
    if not dtype.is_floating:
        _refuse(name, "a floating-point type or None", value)
    return tf.float64 if dtype == tf.float64 else tf.float32


def instance(name: str, value: T, expected: type, *, optional: bool = False) -> T:
    """Returns `value` if it is an instance of the class, or None if it is optional."""
    if not isinstance(value, expected) and not (optional and value is None):
        package = ".".join(expected.__module__.split(".")[:2])  # of public names
        described = f"an instance of {package}.{expected.__name__}"
        _refuse(name, described + " or None" * optional, value)
    return value


def sequence(name: str, values: Any) -> list[Any]:
    """Returns the items of `values`, a sequence that is no text."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        _refuse(name, "a sequence", values)
    return list(values)


def weights(name: str, values: Any) -> list[float]:
    """Returns `values` as floats if they are finite numbers >= 0 and not all 0."""
    if isinstance(values, str) or not isinstance(values, Sequence) or not len(values):
        _refuse(name, "a sequence of numbers >= 0", values)
    found = [real(name, value, least=0.0) for value in values]
    if not any(found):
        _refuse(name, "numbers >= 0 of which one is above 0", values)
    return found


@contextlib.contextmanager
def needed(package: str, *, extra: str, by: str) -> Iterator[None]:
    """Adds installation instructions to an `ImportError` raised by the import statements in its body.

    Args:
      package: Name of the optional package.
      extra: Extra of tfr_smooth that installs the package.
      by: What needs the package, for the message.

    Raises:
      ImportError: If one of the imports fails.

    Example:
      >>> with needed("matplotlib", extra="plots", by="`plot`"):
      ...     import no_such_module
      Traceback (most recent call last):
      ImportError: `plot` needs matplotlib: pip install 'tfr_smooth[plots]'
    """
    try:
        yield
    except ImportError as error:
        raise ImportError(f"{by} needs {package}: pip install 'tfr_smooth[{extra}]'") from error


def printable(value: object) -> str:
    """Returns text in one line: characters that move the cursor or are invisible are shown as escapes."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in str(value))
