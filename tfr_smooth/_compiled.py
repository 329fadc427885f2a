"""XLA programs: pure functions of tensors, compiled once per input size."""

from __future__ import annotations

import functools
import math
import os
import platform
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

# A result, and a function from the gradient with respect to the result to the gradient with respect to the first
# argument.
WithGradient: TypeAlias = tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]

# Operations added by `tf.debugging.enable_check_numerics()`, which XLA does not support.
_NUMERICS_CHECKS = ("CheckNumericsV2", "DebugNumericSummaryV2")
# Lists of up to 64 documents are padded to a multiple of 8, longer ones to two lengths per octave. Not tuned;
# benchmarks/sizes.py measures what new sizes cost.
_FINE, _STEP = 64, 8


def traced(function: Callable[..., Any], **options: Any) -> Any:
    """Returns the `tf.function` of a function that is defined anew for each model.

    TensorFlow warns of frequent retraces of one code object, which all these functions share; it counts partial
    functions by object.

    Args:
      function: The function, without AutoGraph.
      **options: Options of `tf.function`.
    """
    return tf.function(functools.partial(function), autograph=False, **options)


def dataset_of(generator: Callable[[], Iterator[Any]], signature: Any) -> tf.data.Dataset:
    """Returns `tf.data.Dataset.from_generator`, but TensorFlow does not keep the generator until the process ends."""
    kept = weakref.ref(generator)
    dataset = tf.data.Dataset.from_generator(lambda: kept()(), output_signature=signature)  # type: ignore[misc]
    dataset._generator = generator
    return dataset


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
        compiled = tf.function(function, input_signature=specs, jit_compile=has_xla(), autograph=False)
        operations = compiled.get_concrete_function().graph.get_operations()
        has_checks = any(operation.type in _NUMERICS_CHECKS for operation in operations)
        return tf.function(function, input_signature=specs, autograph=False) if has_checks else compiled

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
    parts: tf.Tensor | int | None = None,
) -> tuple[tf.Tensor, ...]:
    """Runs a program on parts of a batch.

    The results of a list must not depend on the rest of the batch.

    Args:
      program: A function of the tensors in `shared` followed by those in `lists`.
      shared: Tensors passed whole to all parts.
      lists: Tensors with the same first dimension, a power of two (`pad`).
      results: Types of the results.
      parts: The number of parts, which run one after another; 0 means 1. None runs one part per core at once, as XLA
        runs a loop on one core.

    Returns:
      The results of the whole batch, with the first dimension of `lists`.
    """
    parallel = 1
    if parts is None:
        parallel = 1 if tf.executing_eagerly() else _cores()
        parts = 1 if parallel == 1 else tf.minimum(parallel, tf.shape(lists[0])[0])
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


def differentiable(value: Callable[..., WithGradient]) -> Callable[..., tf.Tensor]:
    """Returns a `graph` of a function that defines its own gradient, such as one of programs.

    Second derivatives, and derivatives in forward mode, which TensorFlow computes as such, raise
    `tf.errors.InvalidArgumentError`. They are NaN under XLA, which leaves out errors.

    Args:
      value: A function of a tensor, followed by tensors that are constants to the gradient. It returns the result and a
        function from the gradient with respect to the result to the gradient with respect to the first tensor. If the
        latter uses outputs of a `tf.cond` or `tf.while_loop`, they must pass through `tf.stop_gradient`: for persistent
        tapes, TensorFlow rewrites these operations in the shared graph to forms that XLA does not support.

    Returns:
      The function, which returns the result.
    """

    @graph
    @functools.wraps(value)
    @tf.custom_gradient
    def function(x: tf.Tensor, *constants: tf.Tensor) -> tuple[tf.Tensor, Callable[..., Any]]:
        result, derivative = value(*map(tf.stop_gradient, (x, *constants)))

        # Tapes call it outside of the loss, where AutoGraph would try to convert the programs of `over_lists`.
        @tf.autograph.experimental.do_not_convert
        def gradient(upstream: tf.Tensor) -> list[tf.Tensor | None]:
            return [_last_derivative(derivative(upstream), x, upstream), *(None for _ in constants)]

        return result, gradient

    return function


@tf.custom_gradient
def _last_derivative(
    derivative: tf.Tensor, x: tf.Tensor, upstream: tf.Tensor
) -> tuple[tf.Tensor, Callable[..., list[tf.Tensor | None]]]:
    """Returns the derivative, whose own derivative is an error."""
    # A tensor of this graph: tapes around a `tf.function` build each derivative in a graph that sees only the last one.
    x, upstream = tf.identity(x), tf.identity(upstream)

    def gradient(_: tf.Tensor) -> list[tf.Tensor | None]:
        # An operation, because persistent tapes build second derivatives that nobody asked for.
        message = ["This loss or ranking of tfr_smooth has only first derivatives, in reverse mode."]
        with tf.control_dependencies([tf.debugging.Assert(False, message)]):
            return [None, *(tf.fill(tf.shape(tensor), tf.constant(math.nan, tensor.dtype)) for tensor in (x, upstream))]

    return tf.identity(derivative), gradient


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
    batch, length = (tf.shape(values)[axis] if size is None else size for axis, size in enumerate(values.shape))
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
