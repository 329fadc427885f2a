"""XLA programs: pure functions of tensors, compiled once per input size."""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

# A result, and a function from the gradient with respect to the result to the gradient with respect to the first
# argument.
WithGradient: TypeAlias = tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]

# Operations added by `tf.debugging.enable_check_numerics()`, which XLA does not support.
_NUMERICS_CHECKS = ("CheckNumericsV2", "DebugNumericSummaryV2")
# Lists of up to 64 documents are padded to a multiple of 8.
_FINE, _STEP = 64, 8


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function compiled by XLA.

    The function takes positional tensors, and its result depends only on them. The types and ranks of the inputs select
    the trace, and their sizes select the compiled program. Use few different sizes (`pad`): compiling each one takes
    tenths of a second. The function runs as an ordinary graph on a Mac with a GPU, where TensorFlow has no XLA, and if
    it is first traced after `tf.debugging.enable_check_numerics()`. No gradient flows through the program;
    `differentiable` adds derivatives.

    Args:
      function: The function to compile.

    Returns:
      The compiled function.
    """

    @functools.cache
    def trace(specs: tuple[tf.TensorSpec, ...]) -> Callable[..., Any]:
        traced = tf.function(function, input_signature=specs, jit_compile=has_xla(), autograph=False)
        operations = traced.get_concrete_function().graph.get_operations()
        if any(operation.type in _NUMERICS_CHECKS for operation in operations):
            return tf.function(function, input_signature=specs, autograph=False)
        return traced

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        # Keeps tapes from recording the program and from requesting the gradient of its results.
        tensors = [tf.stop_gradient(tf.convert_to_tensor(argument)) for argument in tf.nest.flatten(arguments)]
        return tf.nest.map_structure(tf.stop_gradient, trace(_specs(tensors))(*tensors))

    return call


def over_lists(
    program: Callable[..., tuple[tf.Tensor, ...]],
    shared: Sequence[tf.Tensor],
    lists: Sequence[tf.Tensor],
    results: tuple[tf.DType, ...],
) -> tuple[tf.Tensor, ...]:
    """Runs a program on parts of a batch in parallel, one part per core.

    XLA runs a loop on one core. The results of a list must not depend on the rest of the batch.

    Args:
      program: A function of the tensors in `shared` followed by those in `lists`.
      shared: Tensors passed whole to all parts.
      lists: Tensors with the same first dimension, a power of two (`pad`).
      results: Types of the results.

    Returns:
      The results of the whole batch, with the first dimension of `lists`.
    """
    cores = _cores()
    if cores == 1 or tf.executing_eagerly():
        return program(*shared, *lists)
    return in_parts(program, shared, lists, results, tf.minimum(cores, tf.shape(lists[0])[0]), parallel=cores)


def in_parts(
    program: Callable[..., tuple[tf.Tensor, ...]],
    shared: Sequence[tf.Tensor],
    lists: Sequence[tf.Tensor],
    results: tuple[tf.DType, ...],
    parts: tf.Tensor | int,
    parallel: int = 1,
) -> tuple[tf.Tensor, ...]:
    """Runs a program on parts of a batch; arguments as in `over_lists`, and the number of parts (0 means 1)."""
    if isinstance(parts, int) and parts <= 1:
        return program(*shared, *lists)
    # A loop instead of one call per part: XLA compiles it once if the caller is compiled too.
    of_parts = tf.map_fn(
        functools.partial(program, *shared),
        tuple(_reshaped(tensor, [tf.maximum(parts, 1), -1], 1) for tensor in lists),
        fn_output_signature=results,
        parallel_iterations=parallel,
    )
    return tuple(_reshaped(result, [-1], 2) for result in of_parts)


def scalar(value: float | tf.Variable, dtype: tf.DType) -> tf.Tensor:
    """Returns a number, or the current value of a variable, as a tensor without a gradient."""
    if isinstance(value, tf.Variable):
        return tf.stop_gradient(tf.cast(value, dtype))
    return tf.constant(value, dtype)


def _reshaped(tensor: tf.Tensor, shape: list[int | tf.Tensor], axis: int) -> tf.Tensor:
    """Returns the tensor with its axes before `axis` reshaped to `shape`."""
    return tf.reshape(tensor, tf.concat([shape, tf.shape(tensor)[axis:]], axis=0))


@functools.cache
def _cores() -> int:
    """Returns the number of cores that TensorFlow may use, rounded down to a power of two; 1 with a GPU."""
    if tf.config.list_physical_devices("GPU"):
        return 1
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = tf.config.threading.get_inter_op_parallelism_threads()
    return 2 ** (min(threads or available, available).bit_length() - 1)


def graph(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function as an ordinary graph, traced once for all callers.

    As in `program`, the types and ranks of the tensors select the trace. TensorFlow keeps every graph with a
    `tf.custom_gradient` until the process ends. With this decorator, all losses share one graph.

    Args:
      function: A function of positional tensors.

    Returns:
      The function, with the same arguments and results.
    """

    @functools.cache
    def trace(specs: tuple[tf.TensorSpec, ...]) -> Callable[..., Any]:
        return tf.function(function, input_signature=specs, autograph=False)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        tensors = [tf.convert_to_tensor(argument) for argument in arguments]
        return trace(_specs(tensors))(*tensors)

    return call


def _specs(tensors: Iterable[tf.Tensor]) -> tuple[tf.TensorSpec, ...]:
    return tuple(tf.TensorSpec([None] * tensor.shape.rank, tensor.dtype) for tensor in tensors)


@functools.cache
def has_xla() -> bool:
    """Returns whether TensorFlow has XLA for the devices of this machine."""
    return not (platform.system() == "Darwin" and tf.config.list_physical_devices("GPU"))


def differentiable(
    plain: Callable[..., tf.Tensor],
) -> Callable[[Callable[..., WithGradient]], Callable[..., tf.Tensor]]:
    """Returns a decorator that creates a `graph` from a function whose value and first derivative use programs.

    The function takes a tensor, followed by tensors that are constants to the gradient. It returns the result and a
    function from the gradient with respect to the result to the gradient with respect to the first tensor. The
    decorated function returns the result. If the gradient function uses outputs of a `tf.cond` or `tf.while_loop` of
    the forward computation, they must pass through `tf.stop_gradient`: for second derivatives, TensorFlow rewrites
    these operations in the shared graph to forms that XLA does not support.

    Args:
      plain: Computes the same result from the same tensors with TensorFlow's own operations, for higher-order
        derivatives.

    Returns:
      The decorator.
    """

    def decorate(value: Callable[..., WithGradient]) -> Callable[..., tf.Tensor]:
        @graph
        @functools.wraps(value)
        @tf.custom_gradient
        def function(x: tf.Tensor, *constants: tf.Tensor) -> tuple[tf.Tensor, Callable[..., Any]]:
            result, first_derivative = value(*map(tf.stop_gradient, (x, *constants)))

            def gradient(upstream: tf.Tensor) -> list[tf.Tensor | None]:
                derivative = _derivative(first_derivative, plain)(x, upstream, *constants)
                return [derivative, *(None for _ in constants)]

            return result, gradient

        return function

    return decorate


def _derivative(
    first_derivative: Callable[[tf.Tensor], tf.Tensor], plain: Callable[..., tf.Tensor]
) -> Callable[..., tf.Tensor]:
    """Returns the first derivative as a function of x, the upstream gradient and the constants."""

    @tf.custom_gradient
    def derivative(x: tf.Tensor, upstream: tf.Tensor, *constants: tf.Tensor) -> tuple[tf.Tensor, Callable[..., Any]]:
        # Tapes around a `tf.function` build each derivative in a separate graph, which only sees the previous graph. So
        # the tensors needed by the second derivative must be tensors of the first derivative's graph.
        x, upstream = tf.identity(x), tf.identity(upstream)
        here = [tf.identity(tensor) for tensor in constants]

        def second_derivative(direction: tf.Tensor) -> list[tf.Tensor | None]:
            return [*_second_derivative(plain, x, upstream, direction, here), *(None for _ in constants)]

        return first_derivative(upstream), second_derivative

    return derivative


def _second_derivative(
    plain: Callable[..., tf.Tensor], x: tf.Tensor, upstream: tf.Tensor, direction: tf.Tensor, constants: list[tf.Tensor]
) -> list[tf.Tensor]:
    """Returns the gradient of the first derivative, in a direction, with respect to x and the upstream gradient."""
    # Create tensors of this graph.
    x, upstream = tf.identity(x), tf.identity(upstream)
    result = plain(x, *map(tf.identity, constants))
    first = tf.gradients(result, x, upstream, unconnected_gradients="zero")
    return tf.gradients(first, [x, upstream], [direction], unconnected_gradients="zero")


def padded_length(length: int | tf.Tensor) -> int | tf.Tensor:
    """Returns the smallest length >= `length` on the grid 8, 16, .., 64, 96, 128, 192, 256, .. (two per octave).

    16 lengths cover all lists of up to 1,024 documents, and padding adds a sixth on average.

    Args:
      length: An int or an int32 scalar, >= 0.

    Returns:
      An int for an int, else an int32 scalar.

    Example:
      >>> from tfr_smooth import _compiled
      >>> [_compiled.padded_length(length) for length in (1, 40, 65, 120, 1000)]
      [8, 40, 96, 128, 1024]
    """
    if isinstance(length, int):
        step = _STEP if length <= _FINE else 2 ** (length - 1).bit_length() // 4
        return max(-(-length // step), 1) * step
    # Comparisons instead of logarithms, which round.
    octaves = tf.constant([2**power for power in range(_FINE.bit_length() - 1, 31)])
    doublings = tf.reduce_sum(tf.cast(length > octaves, tf.int32))
    step = tf.where(length <= _FINE, _STEP, _FINE // 4 * 2**doublings)
    return tf.maximum((length + step - 1) // step, 1) * step


def padded_batch(size: int | tf.Tensor) -> int | tf.Tensor:
    """Returns the smallest power of two >= `size`, and 1 for 0.

    Args:
      size: An int or an int32 scalar, >= 0.

    Returns:
      An int for an int, else an int32 scalar.

    Example:
      >>> from tfr_smooth import _compiled
      >>> [_compiled.padded_batch(size) for size in (0, 1, 2, 3, 100, 128)]
      [1, 1, 2, 4, 128, 128]
    """
    if isinstance(size, int):
        return 2 ** max(size - 1, 0).bit_length()
    powers = tf.constant([2**power for power in range(30)])
    return 2 ** tf.reduce_sum(tf.cast(size > powers, tf.int32))


def pad(values: tf.Tensor) -> tf.Tensor:
    """Returns [batch, list] values zero-padded to `padded_batch` and `padded_length`."""
    batch, length = (
        values.shape[axis] if values.shape[axis] is not None else tf.shape(values)[axis] for axis in (0, 1)
    )
    more = padded_batch(batch) - batch, padded_length(length) - length
    if all(isinstance(count, int) and count == 0 for count in more):
        return values
    return tf.pad(values, [[0, more[0]], [0, more[1]]])


def unpad(values: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    """Returns [batch, list] values cut to the shape of `like`."""
    if values.shape.is_fully_defined() and values.shape == like.shape:
        return values
    shape = tf.shape(like)
    return tf.ensure_shape(values[: shape[0], : shape[1]], like.shape)
