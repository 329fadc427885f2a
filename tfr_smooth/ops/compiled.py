"""Compiling a loop over ranks with XLA, without a compilation for every new shape of a batch."""

from __future__ import annotations

import contextvars
import functools
import platform
from collections.abc import Callable
from typing import Any

import tensorflow as tf

_SMALLEST = 8
_IS_INSIDE: contextvars.ContextVar[bool] = contextvars.ContextVar("is_inside", default=False)


def once_for_each_size(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function as a `tf.function` that XLA compiles once for each size of its inputs.

    Hand it inputs of few different sizes (`pad`): a compilation takes some tenths of a second. Positional arguments are
    tensors, keyword arguments constants. On a Mac with a GPU, for which there is no XLA, it is an ordinary
    `tf.function`.
    """

    @functools.lru_cache(maxsize=256)  # made at the first call, as listing the devices starts TensorFlow
    def made(**constants: Any) -> Callable[..., Any]:
        def traced(*arguments: Any) -> Any:
            token = _IS_INSIDE.set(True)
            try:
                return function(*arguments, **constants)
            finally:
                _IS_INSIDE.reset(token)

        return tf.function(traced, jit_compile=_has_xla(), reduce_retracing=True, autograph=False)

    @functools.wraps(function)
    def call(*arguments: Any, **constants: Any) -> Any:
        return made(**constants)(*arguments)

    return call


def is_inside() -> bool:
    """Returns whether what calls this is compiled by `once_for_each_size`: what is quick there is not so outside."""
    return _IS_INSIDE.get()


def _has_xla() -> bool:
    return not (platform.system() == "Darwin" and tf.config.list_physical_devices("GPU"))


def padded_size(size: int | tf.Tensor) -> int | tf.Tensor:
    """Returns the smallest size >= `size` of a grid with four steps an octave: 8, 16, 24, 32, 40, .. 64, 80, .. 128.

    So padding adds a tenth on average, and the sizes up to 1,024 are 24.

    Args:
      size: An int or an int32 scalar, >= 0.

    Returns:
      An int for an int, else an int32 scalar.

    Example:
      >>> from tfr_smooth.ops import compiled
      >>> [compiled.padded_size(size) for size in (1, 40, 65, 120, 1000)]
      [8, 40, 80, 128, 1024]
    """
    if isinstance(size, int):
        step = max(_SMALLEST, 2 ** max(size - 1, 1).bit_length() // 8)
        return -(-size // step) * step if size > 0 else _SMALLEST
    # Comparisons, as logarithms round.
    octaves = tf.constant([2**power for power in range(6, 31)])
    step = _SMALLEST * 2 ** tf.reduce_sum(tf.cast(size > octaves, tf.int32))
    return tf.maximum((size + step - 1) // step, 1) * step


def pad(values: tf.Tensor, with_value: float = 0.0) -> tf.Tensor:
    """Returns a matrix that grew at its ends to a size of the grid; a single row, for all lists, stays one."""
    sizes = [values.shape[axis] or tf.shape(values)[axis] for axis in (0, 1)]
    more = [padded_size(size) - size for size in sizes]
    if values.shape[0] == 1:
        more[0] = 0
    if all(isinstance(count, int) and count == 0 for count in more):
        return values
    return tf.pad(values, [[0, more[0]], [0, more[1]]], constant_values=tf.cast(with_value, values.dtype))
