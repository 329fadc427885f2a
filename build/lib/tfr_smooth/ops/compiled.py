"""Programs compiled by XLA: pure functions of tensors, compiled once per size of their inputs."""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

# A result, and a function from the gradient with respect to it to that with respect to the first argument.
WithGradient: TypeAlias = tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]

# The operations that `tf.debugging.enable_check_numerics()` adds; XLA has none of them.
_NUMERICS_CHECKS = ("CheckNumericsV2", "DebugNumericSummaryV2")
# Lists of up to 64 documents are padded to a multiple of 8.
_FINE, _STEP = 64, 8


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function as a program that XLA compiles.

    The function takes tensors by position, and its result depends on nothing else: the inputs' types and ranks
    choose the trace, and their sizes the compiled program. Hand it few different sizes (`pad`), as each one takes
    some tenths of a second to compile. On a Mac with a GPU, where TensorFlow has no XLA, it runs as an ordinary graph;
    so does what is first traced after `tf.debugging.enable_check_numerics()`. No gradient flows through it:
    `differentiable` has its derivatives.
    """

    @functools.cache
    def traced(*specs: tf.TensorSpec) -> Callable[..., Any]:
        compiled = tf.function(function, input_signature=specs, jit_compile=_has_xla(), autograph=False)
        operations = compiled.get_concrete_function().graph.get_operations()
        if any(operation.type in _NUMERICS_CHECKS for operation in operations):
            return tf.function(function, input_signature=specs, autograph=False)
        return compiled

    @functools.wraps(function)
    def call(*arguments: tf.Tensor) -> Any:
        # So that no tape records the program, and none around a graph with it asks for the gradient of its results.
        tensors = [tf.stop_gradient(tf.convert_to_tensor(argument)) for argument in arguments]
        return tf.nest.map_structure(tf.stop_gradient, traced(*map(_spec, tensors))(*tensors))

    return call


def over_lists(
    program: Callable[..., tuple[tf.Tensor, ...]],
    lists: Sequence[tf.Tensor],
    shared: Sequence[tf.Tensor],
    dtypes: tuple[tf.DType, ...],
) -> tuple[tf.Tensor, ...]:
    """Returns the program's results for a batch, computed in parts at the same time, one per core.

    XLA runs a loop on one core. Results of a list must not depend on the rest of the batch.

    Args:
      program: Takes the tensors of `lists` and then those of `shared`.
      lists: Tensors of equal first dimension, a power of two (`pad`).
      shared: Tensors that all parts take whole.
      dtypes: Types of the results, whose first dimension is that of `lists`.
    """
    cores = _cores()
    if cores == 1 or tf.executing_eagerly():
        return program(*lists, *shared)
    parts = tf.minimum(cores, tf.shape(lists[0])[0])
    of_parts = tuple(_reshaped(tensor, [parts, -1], 1) for tensor in lists)
    # A loop rather than one call per core, as XLA compiles it once where the caller is compiled too.
    results = tf.map_fn(
        lambda part: program(*part, *shared), of_parts, fn_output_signature=dtypes, parallel_iterations=cores
    )
    return tuple(_reshaped(result, [-1], 2) for result in results)


def _reshaped(tensor: tf.Tensor, shape: list[int | tf.Tensor], axis: int) -> tf.Tensor:
    """Returns the tensor with another shape in place of its axes before `axis`."""
    return tf.reshape(tensor, tf.concat([shape, tf.shape(tensor)[axis:]], axis=0))


@functools.cache
def _cores() -> int:
    """Returns the number of cores that TensorFlow may use, down to a power of two; 1 with a GPU."""
    if tf.config.list_physical_devices("GPU"):
        return 1
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = tf.config.threading.get_inter_op_parallelism_threads()
    return 2 ** (min(threads or available, available).bit_length() - 1)


def graph(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function as an ordinary graph, traced once for all graphs that call it; in eager mode as it is.

    As in `program`, the types and ranks of its tensors choose the trace. TensorFlow keeps every graph with a
    `tf.custom_gradient` until the process ends: in here, that is one for all losses, not one for each.
    """

    @functools.cache
    def traced(*specs: tf.TensorSpec) -> Callable[..., Any]:
        return tf.function(function, input_signature=specs, autograph=False)

    @functools.wraps(function)
    def call(*arguments: tf.Tensor) -> Any:
        tensors = [tf.convert_to_tensor(argument) for argument in arguments]
        run = function if tf.executing_eagerly() else traced(*map(_spec, tensors))
        return run(*tensors)

    return call


def _spec(tensor: tf.Tensor) -> tf.TensorSpec:
    return tf.TensorSpec([None] * tensor.shape.rank, tensor.dtype)


@functools.cache
def _has_xla() -> bool:
    return not (platform.system() == "Darwin" and tf.config.list_physical_devices("GPU"))


def _detached(tensor: tf.Tensor) -> tf.Tensor:
    """Returns the tensor as a constant, for derivatives of every mode.

    In eager mode `tf.stop_gradient` has a forward derivative, 0, which TensorFlow keeps where an operation has its
    own.
    """
    return tf.constant(tensor.numpy()) if tf.executing_eagerly() else tf.stop_gradient(tensor)


def differentiable(
    plain: Callable[..., tf.Tensor],
) -> Callable[[Callable[..., WithGradient]], Callable[..., tf.Tensor]]:
    """Returns a decorator that makes a `graph` of a function whose value and first derivative come from programs.

    The function takes a tensor, and more that are constants to the gradient. It returns the result, and a function from
    the gradient with respect to the result to that with respect to the first tensor. Decorated, it returns the result.
    What it hands from one to the other must be no output of a `tf.cond` or `tf.while_loop` but its `tf.stop_gradient`:
    where a second derivative is asked for, TensorFlow changes those in the shared graph to what XLA cannot take.

    Args:
      plain: Computes the same result from the same tensors with TensorFlow's own operations, for derivatives of higher
        order.
    """

    def decorate(value: Callable[..., WithGradient]) -> Callable[..., tf.Tensor]:
        @graph
        @functools.wraps(value)
        def function(x: tf.Tensor, *constants: tf.Tensor) -> tf.Tensor:
            @tf.custom_gradient
            def of_x(x: tf.Tensor) -> WithGradient:
                result, first_derivative = value(_detached(x), *map(_detached, constants))
                return result, lambda upstream: _derivative(first_derivative, plain)(x, upstream, *constants)

            return of_x(x)

        return function

    return decorate


def _derivative(
    first_derivative: Callable[[tf.Tensor], tf.Tensor], plain: Callable[..., tf.Tensor]
) -> Callable[..., tf.Tensor]:
    """Returns the first derivative as a function of x, the upstream gradient and the constants."""

    @tf.custom_gradient
    def derivative(x: tf.Tensor, upstream: tf.Tensor, *constants: tf.Tensor) -> tuple[tf.Tensor, Callable[..., Any]]:
        # Tapes around a `tf.function` build each derivative in a graph of its own, which sees only the one before: what
        # the second derivative needs must be a tensor of the first's.
        x, upstream = tf.identity(x), tf.identity(upstream)
        here = [tf.identity(tensor) for tensor in constants]

        def second_derivative(direction: tf.Tensor) -> list[tf.Tensor | None]:
            # In eager mode a graph of its own, as TensorFlow records on no tape while it computes a forward derivative.
            is_eager = tf.executing_eagerly()
            run = tf.function(_second_derivative, autograph=False) if is_eager else _second_derivative
            return [*run(plain, x, upstream, direction, here), *(None for _ in constants)]

        return first_derivative(upstream), second_derivative

    return derivative


def _second_derivative(
    plain: Callable[..., tf.Tensor], x: tf.Tensor, upstream: tf.Tensor, direction: tf.Tensor, constants: list[tf.Tensor]
) -> list[tf.Tensor]:
    """Returns the gradient of the first derivative, in a direction, with respect to x and the upstream gradient."""
    # Tensors of this graph.
    x, upstream = tf.identity(x), tf.identity(upstream)
    result = plain(x, *map(tf.identity, constants))
    first = tf.gradients(result, x, upstream, unconnected_gradients="zero")
    return tf.gradients(first, [x, upstream], [direction], unconnected_gradients="zero")


def padded_length(length: int | tf.Tensor) -> int | tf.Tensor:
    """Returns the smallest length >= `length` of a grid: 8, 16, .. 64, then 96, 128, 192, 256, .. two per octave.

    So 16 lengths serve all lists of up to 1,024 documents, and padding adds a sixth on average.

    Args:
      length: An int or an int32 scalar, >= 0.

    Returns:
      An int for an int, else an int32 scalar.

    Example:
      >>> from tfr_smooth.ops import compiled
      >>> [compiled.padded_length(length) for length in (1, 40, 65, 120, 1000)]
      [8, 40, 96, 128, 1024]
    """
    if isinstance(length, int):
        step = _STEP if length <= _FINE else 2 ** (length - 1).bit_length() // 4
        return max(-(-length // step), 1) * step
    # Comparisons, as logarithms round.
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
