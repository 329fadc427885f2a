"""The values and gradients of a loss in one program of XLA, compiled once for each size of batches."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Callable, Hashable
from typing import Any

import tensorflow as tf

from tfr_smooth.functional import inputs
from tfr_smooth.ops import compiled

# Pairs of documents times passes over them. Batches with fewer take a few milliseconds anyway, and so many hundreds of
# steps to win back the second that compiling takes; those with more win it back within 5 to 200 steps.
LEAST_PAIRS = 2**20


@dataclasses.dataclass(frozen=True)
class _Named:
    """A loss that equals all that compute the same."""

    key: Hashable
    loss: Any = dataclasses.field(compare=False)


def _named(loss: Any) -> _Named:
    config = {name: value for name, value in loss.get_config().items() if name not in ("name", "ragged", "reduction")}
    # The config names the classes of the loss's parts, but a name may be given to another class.
    types = type(loss), *map(type, vars(loss).values())
    try:
        return _Named((types, json.dumps(config, sort_keys=True)), loss)
    except (TypeError, ValueError):  # Not what Keras asks of a config: it shares with no other loss.
        return _Named(loss, loss)


def list_losses(loss: Any, labels: tf.Tensor, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns what `loss.list_losses(labels, scores)` does, from a compiled program where the batch is large.

    Args:
      loss: A `RankingLoss`, whose value for a list depends on nothing but that list.
      labels: [batch, list].
      scores: [batch, list].

    Raises:
      NotImplementedError: When a second derivative is taken: the program has the first only.
    """
    labels, scores, mask = inputs.checked(labels, scores)
    lists, documents = (scores.shape[axis] or tf.shape(scores)[axis] for axis in (0, 1))
    passes = loss.passes_over_pairs()
    is_large = passes == math.inf or _pairs(lists, documents) * passes >= LEAST_PAIRS
    if is_large is False:
        return loss.list_losses(labels, scores)

    @tf.custom_gradient
    def values(scores: tf.Tensor) -> tuple[tuple[tf.Tensor, tf.Tensor], Callable[..., tf.Tensor]]:
        # So that no tape records the program: it has the gradient already.
        fixed = tf.stop_gradient(scores)

        def plain() -> tuple[tf.Tensor, ...]:
            return _values_and_slopes(labels, fixed, loss)

        def program() -> tuple[tf.Tensor, ...]:
            padded = compiled.pad(labels, with_value=-1.0), compiled.pad(fixed)
            which, cases = loss.cases(fixed, mask)
            programs = [functools.partial(_program, *padded, named=_named(case)) for case in cases]
            found, counts, slopes = programs[0]() if len(programs) == 1 else tf.switch_case(which, programs)
            return found[:lists], counts[:lists], slopes[:lists, :documents]

        found, counts, slopes = program() if is_large is True else tf.cond(is_large, program, plain)
        slopes = _first_derivative(scores, tf.ensure_shape(slopes, scores.shape))
        found, counts = (tf.ensure_shape(each, scores.shape[:1]) for each in (found, counts))

        def gradient(upstream: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
            return upstream[:, tf.newaxis] * slopes

        return (found, counts), gradient

    return values(scores)


def _pairs(lists: int | tf.Tensor, documents: int | tf.Tensor) -> int | tf.Tensor:
    if isinstance(lists, int) and isinstance(documents, int):
        return lists * documents**2
    return tf.cast(lists, tf.int64) * tf.cast(documents, tf.int64) ** 2


def _values_and_slopes(labels: tf.Tensor, scores: tf.Tensor, loss: Any) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    with tf.GradientTape() as tape:
        tape.watch(scores)
        losses, counts = loss.list_losses(labels, scores)
    return losses, counts, tape.gradient(losses, scores)


@compiled.once_for_each_size
def _program(labels: tf.Tensor, scores: tf.Tensor, *, named: _Named) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    return _values_and_slopes(labels, scores, named.loss)


@tf.custom_gradient
def _first_derivative(scores: tf.Tensor, slopes: tf.Tensor) -> tuple[tf.Tensor, Callable[..., Any]]:
    """Returns the slopes, which cannot be differentiated: better an error than no gradient."""

    def gradient(_: tf.Tensor) -> Any:
        raise NotImplementedError(
            "A compiled loss has no second derivative; differentiate its `list_losses`, or call it outside tf.function."
        )

    return tf.identity(slopes), gradient
