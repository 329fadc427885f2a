"""Batches of padded lists: conversion of user inputs to clean [batch, list] tensors, and helpers for these."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf


class Batch(NamedTuple):
    """A batch of clean lists.

    Attributes:
      labels: [batch, list], >= 0 and without NaN; 0 at padding.
      scores: [batch, list], of the same float type, without NaN or infinities; 0 at padding.
      mask: [batch, list] bool, False for padding.
      validity: [batch], NaN for lists with a NaN among their real labels or scores, or an infinite label, else 1.
        Results are multiplied by it, so NaN propagates to the value and gradient of its own list only.
    """

    labels: tf.Tensor
    scores: tf.Tensor
    mask: tf.Tensor
    validity: tf.Tensor


# In losses, larger values count as these, so that products of labels, scores, weights and factors of scores are finite.
LARGEST_LABEL, LARGEST_SCORE, LARGEST_WEIGHT = 1e9, 1e15, 1e9


def bounded(batch: Batch) -> Batch:
    """Returns the batch with labels and scores that are not larger than a loss can compute with."""
    labels = tf.minimum(batch.labels, LARGEST_LABEL)
    return batch._replace(labels=labels, scores=clipped(batch.scores, LARGEST_SCORE))


def clipped(values: tf.Tensor, largest: float | tf.Tensor) -> tf.Tensor:
    """Returns the finite values clipped to [-largest, largest]; the gradient ignores the clipping."""
    constant = tf.stop_gradient(values)
    # In this order: a value much larger than `largest` would absorb it.
    return tf.clip_by_value(constant, -largest, largest) + (values - constant)


def clean(labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None = None) -> Batch:
    """Returns clean lists.

    Args:
      labels: [batch, list], float, int or bool; < 0 is padding. A NaN label is real, so that it propagates. An infinite
        label counts as NaN.
      scores: [batch, list] or [batch, list, 1], any float type; cast to float32 unless float64.
      mask: [batch, list] bool, False for additional padding. None adds no padding.

    Returns:
      The clean lists.

    Raises:
      ValueError: If the shapes do not match, the scores are not floats or the labels not numbers.
    """
    scores, labels = tf.convert_to_tensor(scores), tf.convert_to_tensor(labels)
    if not scores.dtype.is_floating:
        raise ValueError(f"`scores` must be floats, got {scores.dtype.name}.")
    if not (labels.dtype.is_floating or labels.dtype.is_integer or labels.dtype.is_bool):
        raise ValueError(f"`labels` must be numbers, got {labels.dtype.name}.")
    scores = squeezed(scores)
    if scores.shape.rank not in (2, None):
        raise ValueError(f"`scores` must have the shape [batch, list] or [batch, list, 1], got {scores.shape}.")
    if scores.dtype != tf.float64:
        scores = tf.cast(scores, tf.float32)
    scores = tf.ensure_shape(scores, [None, None])
    labels = squeezed(labels)
    if labels.dtype.is_floating:  # A finite one may be infinite in the type of the scores.
        labels -= fill(labels, labels > labels.dtype.max, 0.0)  # NaN for infinity
    labels = _like("labels", tf.cast(labels, scores.dtype), scores)
    scores = tf.ensure_shape(scores, labels.shape)
    # NaN fails all comparisons, and graph optimization may turn `not (x < 0)` into `x >= 0`.
    unknown_label = tf.math.is_nan(labels)
    real = tf.logical_or(labels >= 0.0, unknown_label)
    if mask is not None:
        real = tf.logical_and(real, _like("mask", tf.cast(tf.convert_to_tensor(mask), tf.bool), scores))
    if scores.shape[1] in (0, None):  # Lists of length 0 get one padded entry.
        more = [[0, 0], [0, tf.cast(tf.equal(tf.shape(scores)[1], 0), tf.int32)]]
        labels, scores, real, unknown_label = (tf.pad(tensor, more) for tensor in (labels, scores, real, unknown_label))

    sums = tf.stop_gradient(scores) + labels
    unknown = tf.logical_and(tf.math.is_nan(sums), real)
    # NaN only comes from the input: no NaN arises here on finite input.
    validity = 1.0 + tf.reduce_sum(fill(sums, unknown, 0.0), axis=1)
    known = tf.logical_and(real, tf.logical_not(unknown))
    return Batch(fill(labels, known, 0.0), _finite(scores, known), real, validity)


def clean_subtopics(labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None = None) -> Batch:
    """Returns clean lists with a label per document and subtopic.

    Args:
      labels: [batch, list, subtopics], float, int or bool; [batch, list] is one subtopic. A label < 0 marks a subtopic
        that the list does not have. A document with only such labels is padding.
      scores: As for `clean`.
      mask: As for `clean`.

    Returns:
      The clean lists, with labels [batch, list, subtopics], 0 at padding.

    Raises:
      ValueError: If the shapes do not match or the scores are not floats.
    """
    labels = tf.convert_to_tensor(labels)
    labels = labels if labels.shape.rank in (3, None) else labels[..., tf.newaxis]
    labels = tf.cast(labels, tf.float64 if labels.dtype == tf.float64 else tf.float32)
    unknown = tf.reduce_any(tf.math.is_nan(labels), axis=-1)
    of_documents = tf.reduce_max(fill(labels, labels >= 0.0, -1.0), axis=-1)
    batch = clean(tf.where(unknown, tf.constant(math.nan, labels.dtype), of_documents), scores, mask)
    if labels.shape[1] in (0, None):  # as in `clean`
        labels = tf.pad(labels, [[0, 0], [0, tf.shape(batch.labels)[1] - tf.shape(labels)[1]], [0, 0]])
    # Comparisons with NaN are false.
    known = tf.logical_and(labels > 0.0, batch.mask[:, :, tf.newaxis])
    return batch._replace(labels=tf.cast(fill(labels, known, 0.0), batch.labels.dtype))


def from_keras(
    y_true: Any,
    y_pred: Any,
    *,
    ragged: bool,
    dtype: tf.DType | None,
    clean: Callable[[tf.Tensor, tf.Tensor, tf.Tensor | None], Batch] = clean,
) -> Batch:
    """Returns clean lists from what Keras passes to losses and metrics.

    Args:
      y_true: Labels, dense or ragged; or a dict of "labels" and optionally "mask" (False for padding), as in KerasRS.
      y_pred: Scores; documents that their Keras mask excludes are padding.
      ragged: Whether the inputs are `tf.RaggedTensor`s.
      dtype: The type of the results, float32 or float64. None uses float64 for float64 scores, else float32.
      clean: Cleans labels, scores and mask.

    Returns:
      The clean lists.

    Raises:
      ValueError: If the shapes do not match, the scores are not floats, or `ragged` does not match the inputs.
    """
    masks = [getattr(y_pred, "_keras_mask", None)]
    if isinstance(y_true, Mapping):
        masks.append(y_true.get("mask"))
    labels, scores = to_dense(labels_of(y_true), y_pred, ragged)
    if dtype is not None and scores.dtype.is_floating:
        scores = tf.cast(scores, dtype)
    masks = [squeezed(tf.cast(tf.convert_to_tensor(mask), tf.bool)) for mask in masks if mask is not None]
    return clean(labels, scores, tf.reduce_all(tf.stack(masks), axis=0) if masks else None)


def labels_of(y_true: Any) -> Any:
    """Returns the labels of what Keras passes as `y_true`: the labels, or a dict that contains them."""
    if not isinstance(y_true, Mapping):
        return y_true
    if "labels" not in y_true or not set(y_true) <= {"labels", "mask"}:
        raise ValueError(f"`y_true` must be labels or a dict of 'labels' and 'mask', got the keys {sorted(y_true)}.")
    return y_true["labels"]


def by_objective(y_true: Any, count: int) -> list[Any]:
    """Returns the labels of each objective, in the form of `y_true`: labels [batch, list, objectives], or a dict."""
    labels = labels_of(y_true)
    if not isinstance(labels, tf.RaggedTensor):
        labels = tf.convert_to_tensor(labels)
    if labels.shape.rank != 3 or labels.shape[2] not in (None, count):
        raise ValueError(f"`labels` must have the shape [batch, list, {count}], one per objective, got {labels.shape}.")
    columns = [labels[:, :, place] for place in range(count)]
    return [{**y_true, "labels": each} for each in columns] if isinstance(y_true, Mapping) else columns


def squeezed(values: tf.Tensor) -> tf.Tensor:
    """Returns [batch, list, 1] values, such as those of a last layer `Dense(1)`, as [batch, list]."""
    return values[:, :, 0] if values.shape.rank == 3 and values.shape[2] == 1 else values


def _finite(scores: tf.Tensor, known: tf.Tensor) -> tf.Tensor:
    """Returns the scores, 0 where `known` is False, clipped so that their differences are finite."""
    largest = scores.dtype.max / 4.0
    constant = tf.stop_gradient(scores)
    values = tf.clip_by_value(fill(constant, known, 0.0), -largest, largest)
    # The gradient ignores the clipping, except for infinite scores.
    scores = fill(scores, tf.logical_and(known, tf.math.is_finite(constant)), 0.0)
    return scores + (values - tf.stop_gradient(scores))


def _like(name: str, tensor: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
    if tensor.shape.rank not in (2, None) or not tensor.shape.is_compatible_with(scores.shape):
        raise ValueError(f"`{name}` must have the shape of the scores, {scores.shape}, got {tensor.shape}.")
    return tf.ensure_shape(tensor, scores.shape)


def to_dense(labels: tf.Tensor, scores: tf.Tensor, ragged: bool) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns labels and scores as dense tensors, with the label -1 at padding.

    Args:
      labels: [batch, list] or [batch, list, subtopics]; a `tf.RaggedTensor` if `ragged`.
      scores: [batch, list]; ragged or dense if `ragged`, otherwise dense. Each list is at least as long as its labels.
      ragged: Whether the inputs are ragged.

    Returns:
      Labels, [batch, list] or [batch, list, subtopics], and scores, [batch, list].

    Raises:
      ValueError: If `ragged` does not match the inputs, or a list has fewer scores than labels (in a graph:
        `tf.errors.InvalidArgumentError`).
    """
    is_ragged = isinstance(labels, tf.RaggedTensor)
    if ragged and not is_ragged:
        raise ValueError(f"`labels` must be a tf.RaggedTensor for `ragged=True`, got {type(labels).__name__}.")
    if not ragged and (is_ragged or isinstance(scores, tf.RaggedTensor)):
        raise ValueError("`ragged` must be True for labels or scores in a tf.RaggedTensor, got False.")
    if not ragged:
        return tf.convert_to_tensor(labels), tf.convert_to_tensor(scores)
    with tf.control_dependencies(_check_lengths("scores", scores, labels)):
        scores = scores.to_tensor() if isinstance(scores, tf.RaggedTensor) else tf.identity(scores)
    if not labels.dtype.is_floating:
        labels = tf.cast(labels, tf.float32)
    subtopics = labels.shape.rank - 2
    dense = labels.to_tensor(default_value=-1.0, shape=tf.stack([-1, tf.shape(scores)[1], *[-1] * subtopics]))
    return tf.ensure_shape(dense, scores.shape[:2].concatenate(dense.shape[2:])), scores


def _check_lengths(name: str, tensor: tf.Tensor, labels: tf.RaggedTensor) -> list[tf.Operation]:
    """Returns assertions that each list of the tensor, ragged or dense, is at least as long as its labels."""
    needed, expected = labels.row_lengths(), f"`{name}` must have at least as many entries per list as `labels`"
    if isinstance(tensor, tf.RaggedTensor):
        # Row splits are int32 or int64.
        lengths = tf.cast(tensor.row_lengths(), needed.dtype)
    else:
        lengths = tf.fill(tf.shape(needed), tf.shape(tensor, needed.dtype)[1])
    try:
        check = tf.debugging.assert_less_equal(needed, lengths, f"{expected}.")
    except tf.errors.InvalidArgumentError:
        raise ValueError(f"{expected}, {needed.numpy().tolist()}, got {lengths.numpy().tolist()}.") from None
    return [] if check is None else [check]


def weights_from_keras(sample_weight: Any, y_true: Any, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns clean weights from what Keras passes.

    Args:
      sample_weight: A number, one weight per list ([batch] or [batch, 1]) or one per document ([batch, list], dense, or
        ragged like the labels).
      y_true: The labels that were passed to `from_keras`.
      labels: Clean labels, [batch, list].
      mask: [batch, list] bool, False for padding and for lists that are excluded.

    Returns:
      [batch, list] or [batch, 1], in the type of the labels; 0 where the mask is False.

    Raises:
      ValueError: If `sample_weight` has another shape.
    """
    if isinstance(sample_weight, tf.RaggedTensor):
        y_true = labels_of(y_true)
        if not isinstance(y_true, tf.RaggedTensor):
            raise ValueError("`sample_weight` must be dense for dense labels, got a tf.RaggedTensor.")
        with tf.control_dependencies(_check_lengths("sample_weight", sample_weight, y_true)):
            sample_weight = sample_weight.to_tensor()
    weights = _shaped_weights(sample_weight, labels)
    if weights.shape[1] == 1:
        mask = tf.reduce_any(mask, axis=1, keepdims=True)
    return fill(tf.clip_by_value(weights, -LARGEST_WEIGHT, LARGEST_WEIGHT), mask, 0.0)


def _shaped_weights(sample_weight: Any, labels: tf.Tensor) -> tf.Tensor:
    """Returns the weights as [batch, list] or [batch, 1]."""
    weights = squeezed(tf.cast(tf.convert_to_tensor(sample_weight), labels.dtype))
    shape, (batch, longest) = weights.shape, labels.shape[:2]
    if shape.rank == 0:
        return tf.fill([tf.shape(labels)[0], 1], weights)
    if shape.rank is None:
        weights = tf.reshape(weights, [tf.shape(labels)[0], -1])
    elif shape.rank == 1:
        weights = weights[:, tf.newaxis]
    if weights.shape.rank != 2 or not any(weights.shape.is_compatible_with([batch, size]) for size in (1, longest)):
        expected = f"[batch], [batch, 1] or [batch, list] for labels of the shape {labels.shape}"
        raise ValueError(f"`sample_weight` must have the shape {expected}, got {shape}.")
    if weights.shape[1] == 1:
        return tf.ensure_shape(weights, [batch, 1])
    if weights.shape[1] is None:  # It may turn out to be 1 at run time.
        weights *= tf.ones([1, tf.where(tf.equal(tf.shape(weights)[1], 1), tf.shape(labels)[1], 1)], weights.dtype)
    return tf.ensure_shape(weights, labels.shape[:2])


def list_weights(sample_weight: Any, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    r"""Returns the weight of each list.

    The weight of a list is the mean of its document weights, weighted by label: $\sum_j w_j y_j / \sum_j y_j$
    (TF-Ranking's rule). Lists without a relevant document use the unweighted mean. Weights beyond 1e9 count as 1e9.

    Args:
      sample_weight: A number, one weight per list ([batch] or [batch, 1]) or one per document ([batch, list]). None
        uses 1.
      labels: [batch, list] floats, >= 0; 0 at padding.
      mask: [batch, list] bool, False for padding.

    Returns:
      [batch], in the type of the labels.

    Raises:
      ValueError: If `sample_weight` has another shape.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> labels, mask = tf.constant([[1.0, 3.0, 0.0]]), tf.constant([[True, True, False]])
      >>> print(losses.list_weights([[4.0, 8.0, 5.0]], labels, mask).numpy())
      [7.]
    """
    if sample_weight is None:
        return tf.ones(tf.shape(labels)[:1], labels.dtype)
    weights = weights_from_keras(sample_weight, labels, labels, mask)
    if weights.shape[1] == 1:
        return weights[:, 0]
    total = tf.reduce_sum(labels, axis=1, keepdims=True)
    # Divided before they are multiplied, so that no product overflows.
    shares = tf.where(total > 0.0, tf.math.divide_no_nan(labels, total), tf.cast(mask, labels.dtype))
    return tf.reduce_sum(weights * shares, axis=1) / tf.where(total > 0.0, 1.0, count(mask, labels.dtype))[:, 0]


def fill(values: tf.Tensor, mask: tf.Tensor, padding: float) -> tf.Tensor:
    """Returns the values, with `padding` where the mask (of the same shape) is False."""
    # TensorFlow has a kernel for arrays of the same shape and a broadcasting kernel that takes three times as long.
    # `tf.where` uses the latter.
    if padding == 0.0:  # XLA would materialize the array of `tf.fill`, which is large for pairs.
        return tf.compat.v1.where(mask, values, tf.zeros_like(values))
    return tf.compat.v1.where(mask, values, tf.fill(tf.shape(values), tf.constant(padding, values.dtype)))


def product(losses: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Returns the product of losses and weights, finite for finite losses and bounded weights."""
    largest = losses.dtype.max / 1e4 / tf.maximum(tf.abs(weights), 1.0)
    return weights * clipped(losses, largest)


def length(scores: tf.Tensor) -> tf.Tensor | int:
    """Returns the length of the lists: an int if it is static."""
    return scores.shape[1] if scores.shape[1] is not None else tf.shape(scores)[1]


def num_ranks(scores: tf.Tensor, topn: int | None) -> tf.Tensor | int:
    """Returns the number of ranks K: `topn`, capped at the length of the lists."""
    longest = length(scores)
    if topn is None:
        return longest
    return min(topn, longest) if isinstance(longest, int) else tf.minimum(topn, longest)


def count(mask: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Returns the number of real documents, [batch, 1]; 1 for empty lists, so that division is safe."""
    return tf.maximum(tf.reduce_sum(tf.cast(mask, dtype), axis=1, keepdims=True), 1)


def extremes(values: tf.Tensor, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the lowest and highest real value per list, [batch]; the type's max and min for empty lists."""
    lowest = tf.reduce_min(fill(values, mask, values.dtype.max), axis=1)
    return lowest, tf.reduce_max(fill(values, mask, values.dtype.min), axis=1)


def varies(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns [batch] bool: True for lists whose real values are not all equal. Takes O(N), as it needs no pairs."""
    lowest, highest = extremes(values, mask)
    return lowest < highest


def rank_mask(mask: tf.Tensor, ranks: tf.Tensor | int) -> tf.Tensor:
    """Returns [batch, K] bool: False for ranks beyond the real documents."""
    documents = tf.reduce_sum(tf.cast(mask, tf.int32), axis=1, keepdims=True)
    return tf.range(ranks)[tf.newaxis] < documents


def pairs(values: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns [batch, list] values as rows [batch, list, 1] and as columns [batch, 1, list]."""
    return values[:, :, tf.newaxis], values[:, tf.newaxis]


def different_pairs(mask: tf.Tensor) -> tf.Tensor:
    """Returns [batch, list, list] bool: True for two different real documents."""
    return tf.logical_and(real_pairs(mask), tf.logical_not(tf.eye(tf.shape(mask)[1], dtype=tf.bool)))


def real_pairs(mask: tf.Tensor) -> tf.Tensor:
    """Returns [batch, list, list] bool: True for two real documents."""
    return tf.logical_and(*pairs(mask))


def preferences(labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns [batch, list, list] bool: True at (i, j) if both documents are real and i has the higher label."""
    rows, columns = pairs(labels)
    return tf.logical_and(rows > columns, real_pairs(mask))


class Neighbors:
    """Runs of neighbors in [batch, list] values.

    Args:
      starts: [batch, list] bool, True where a run starts; must be True at the start of each list.
    """

    def __init__(self, starts: tf.Tensor):
        self._shape = tf.shape(starts)
        # Of each document's run in its list. Some ids have no run.
        self._ids = tf.cumsum(tf.cast(starts, tf.int32), axis=1) - 1
        rows = tf.range(self._shape[0])[:, tf.newaxis] * self._shape[1]
        self._ids_of_batch = tf.reshape(self._ids + rows, [-1])
        self._counts = tf.maximum(self._reduced(tf.math.unsorted_segment_sum, tf.ones(self._shape, tf.int32)), 1)

    def total(self, values: tf.Tensor) -> tf.Tensor:
        """Returns the sum over each document's run, [batch, list]."""
        return self._shared(self._reduced(tf.math.unsorted_segment_sum, values))

    def mean(self, values: tf.Tensor) -> tf.Tensor:
        """Returns the mean over each document's run, [batch, list]."""
        return self._shared(self._reduced(tf.math.unsorted_segment_sum, values) / tf.cast(self._counts, values.dtype))

    def maximum(self, values: tf.Tensor) -> tf.Tensor:
        """Returns the maximum over each document's run, [batch, list], without a gradient."""
        return self._shared(self._reduced(tf.math.unsorted_segment_max, tf.stop_gradient(values)))

    def _reduced(self, reduction: Callable[..., tf.Tensor], values: tf.Tensor) -> tf.Tensor:
        of_runs = reduction(tf.reshape(values, [-1]), self._ids_of_batch, num_segments=tf.reduce_prod(self._shape))
        return tf.reshape(of_runs, self._shape)

    def _shared(self, of_runs: tf.Tensor) -> tf.Tensor:
        return tf.gather(of_runs, self._ids, batch_dims=1)
