"""Programs compiled by XLA: pure functions of tensors, compiled once per size of their inputs."""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable
from typing import Any

import tensorflow as tf

# The operations that `tf.debugging.enable_check_numerics()` adds; XLA has none of them.
_NUMERICS_CHECKS = ("CheckNumericsV2", "DebugNumericSummaryV2")
# Lists up to this length are padded to a multiple of it.
_STEP = 8


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function as a program that XLA compiles.

    The function takes tensors by position, and its result depends on nothing else: the inputs' types and ranks
    choose the trace, and their sizes the compiled program. Hand it few different sizes (`pad`), as each one takes
    some tenths of a second to compile. On a Mac with a GPU, where TensorFlow has no XLA, it runs as an ordinary graph;
    so does what is first traced after `tf.debugging.enable_check_numerics()`.
    """

    @functools.cache
    def traced(*specs: tf.TensorSpec) -> Callable[..., Any]:
        graph = tf.function(function, input_signature=specs, autograph=False)
        if not _has_xla():
            return graph
        compiled = tf.function(function, input_signature=specs, jit_compile=True, autograph=False)
        operations = compiled.get_concrete_function().graph.get_operations()
        return graph if any(operation.type in _NUMERICS_CHECKS for operation in operations) else compiled

    @functools.wraps(function)
    def call(*arguments: tf.Tensor) -> Any:
        # `differentiable` has the derivatives. No tape records the program; nor does TensorFlow build its gradient for
        # a function whose derivative may be differentiated again, which XLA would not take.
        tensors = [tf.stop_gradient(tf.convert_to_tensor(argument)) for argument in arguments]
        specs = (tf.TensorSpec([None] * tensor.shape.rank, tensor.dtype) for tensor in tensors)
        return tf.nest.map_structure(tf.stop_gradient, traced(*specs)(*tensors))

    return call


@functools.cache
def _has_xla() -> bool:
    return not (platform.system() == "Darwin" and tf.config.list_physical_devices("GPU"))


def differentiable(
    value: Callable[[tf.Tensor], tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]], plain: Callable[..., tf.Tensor]
) -> Callable[..., tf.Tensor]:
    """Returns a function whose value and first derivative come from compiled programs.

    It takes the tensor to differentiate by, and then constants: all other tensors that `plain` depends on.

    Args:
      value: Takes the first tensor alone. Returns the result, and a function from the gradient with respect to the
        result to that with respect to the tensor.
      plain: Takes all tensors. Computes the same result with TensorFlow's own operations, for derivatives of higher
        order.
    """

    def call(x: tf.Tensor, *constants: tf.Tensor) -> tf.Tensor:
        @tf.custom_gradient
        def function(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
            result, first_derivative = value(x)

            @tf.custom_gradient
            def derivative(x: tf.Tensor, upstream: tf.Tensor) -> tuple[tf.Tensor, Callable[..., Any]]:
                # In the graph of the first derivative, which is all that the graph of the second one reaches.
                fixed = [tf.identity(tensor) for tensor in (x, upstream, *constants)]

                def second_derivative(direction: tf.Tensor) -> Any:
                    x, upstream, *constants = fixed
                    with tf.GradientTape() as outer:
                        outer.watch([x, upstream])
                        with tf.GradientTape() as inner:
                            inner.watch(x)
                            again = plain(x, *constants)
                        first = inner.gradient(again, x, upstream, unconnected_gradients="zero")
                    return outer.gradient(first, [x, upstream], direction, unconnected_gradients="zero")

                return first_derivative(upstream), second_derivative

            return result, lambda upstream: derivative(x, upstream)

        return function(x)

    return call


def padded_length(length: int | tf.Tensor) -> int | tf.Tensor:
    """Returns the smallest length >= `length` of a grid with four steps per octave: 8, 16, 24, .. 64, 80, 96, .. 128.

    Padding adds a tenth on average, and 24 lengths serve all lists of up to 1,024 documents.

    Args:
      length: An int or an int32 scalar, >= 0.

    Returns:
      An int for an int, else an int32 scalar.

    Example:
      >>> from tfr_smooth.ops import compiled
      >>> [compiled.padded_length(length) for length in (1, 40, 65, 120, 1000)]
      [8, 40, 80, 128, 1024]
    """
    if isinstance(length, int):
        step = max(_STEP, 2 ** max(length - 1, 1).bit_length() // 8)
        return max(-(-length // step), 1) * step
    # Comparisons, as logarithms round.
    octaves = tf.constant([2**power for power in range(6, 31)])
    step = _STEP * 2 ** tf.reduce_sum(tf.cast(length > octaves, tf.int32))
    return tf.maximum((length + step - 1) // step, 1) * step


def padded_batch(size: int | tf.Tensor) -> int | tf.Tensor:
    """Returns the smallest power of two >= `size`, and 1 for 0.

    Args:
      size: An int or an int32 scalar, >= 0.

    Returns:
      An int for an int, else an int32 scalar.

    Example:
      >>> from tfr_smooth.ops import compiled
      >>> [compiled.padded_batch(size) for size in (0, 1, 2, 3, 100, 128)]
      [1, 1, 2, 4, 128, 128]
    """
    if isinstance(size, int):
        return 2 ** max(size - 1, 0).bit_length()
    powers = tf.constant([2**power for power in range(30)])
    return 2 ** tf.reduce_sum(tf.cast(size > powers, tf.int32))


def pad(values: tf.Tensor) -> tf.Tensor:
    """Returns [batch, list] values with zeros appended up to a size of the grid; a single row keeps its batch of 1."""
    batch, length = (
        values.shape[axis] if values.shape[axis] is not None else tf.shape(values)[axis] for axis in (0, 1)
    )
    more = padded_batch(batch) - batch, padded_length(length) - length
    if all(isinstance(count, int) and count == 0 for count in more):
        return values
    return tf.pad(values, [[0, more[0]], [0, more[1]]])


def unpad(values: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    """Returns the first rows and columns of [batch, list] values: as many as `like` has."""
    if values.shape.is_fully_defined() and values.shape == like.shape:
        return values
    shape = tf.shape(like)
    return tf.ensure_shape(values[: shape[0], : shape[1]], like.shape)
