"""Losses of lists that are the whole catalog: in parts that bound memory, or of the best scored items only."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfr_smooth import _compiled, _padded
from tfr_smooth.losses import RankingLoss, SoftmaxLoss

# Scores of a part, which bounds memory: about 30 bytes each. Not tuned.
_PART = 2**21


def catalog_loss(
    loss: RankingLoss, users: tf.Tensor, items: tf.Tensor, relevant: tf.Tensor, weights: tf.Tensor, offsets: tf.Tensor
) -> tf.Tensor:
    """Returns the mean loss of lists of all items, each with one relevant item.

    Scores and their gradient exist for a part of the lists at a time: the gradient with respect to the vectors is
    computed together with the value.

    Args:
      loss: The loss.
      users: float32 [lists, size], vectors.
      items: float32 [items, size], vectors, whose inner products with those of users are the scores.
      relevant: int32 [lists], the relevant item of each list; -1 for none, whose list does not count.
      weights: float32 [lists], > 0, the labels of the relevant items.
      offsets: float32 [items], added to the scores; -inf for an item that is not in the lists.

    Returns:
      A scalar.

    Time that of the loss for lists of all items; memory O(items * size) and that of the loss for one part of lists.
    """
    count, num_items = tf.shape(users)[0], tf.shape(items)[0]
    size = tf.clip_by_value(_PART // tf.maximum(num_items, 1), 1, tf.maximum(count, 1))

    def part(
        of_users: tf.Tensor, relevant: tf.Tensor, weights: tf.Tensor, items: tf.Tensor, offsets: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the sum of the losses of a part of the lists and its gradients."""
        labels = weights[:, tf.newaxis] * tf.one_hot(relevant, tf.shape(items)[0])
        mask = tf.broadcast_to(tf.math.is_finite(offsets), tf.shape(labels))
        with tf.GradientTape() as tape:
            scores = tf.matmul(of_users, items, transpose_b=True) + tf.where(mask, offsets, 0.0)
            tape.watch(scores)
            total = tf.reduce_sum(tf.where(loss.counts(labels, mask), loss.compute(labels, scores, mask), 0.0))
        gradient = tape.gradient(total, scores)
        return total, tf.matmul(gradient, items), tf.matmul(gradient, of_users, transpose_a=True)

    if isinstance(loss, SoftmaxLoss) and not tf.distribute.has_strategy():
        # XLA has fewer arrays. Other losses have programs of their own, and replicas cannot share one.
        part = _compiled.program(part)

    @tf.custom_gradient
    def summed(users: tf.Tensor, items: tf.Tensor) -> tuple[tf.Tensor, Any]:
        def body(number: tf.Tensor, total: tf.Tensor, of_users: tf.TensorArray, of_items: tf.Tensor) -> Any:
            places = slice(number * size, (number + 1) * size)
            more, to_users, to_items = part(users[places], relevant[places], weights[places], items, offsets)
            to_items = tf.ensure_shape(to_items, items.shape)
            return number + 1, total + more, of_users.write(number, to_users), of_items + to_items

        number = tf.maximum(-(-count // size), 1)  # at least one, of no lists on a replica without rows
        parts = tf.TensorArray(tf.float32, number, element_shape=[None, users.shape[1]], infer_shape=False)
        start = tf.constant(0), tf.constant(0.0), parts, tf.zeros_like(items)
        _, total, parts, of_items = tf.while_loop(lambda done, *_: done < number, body, start, parallel_iterations=1)
        of_users = tf.ensure_shape(parts.concat(), users.shape)
        return total, lambda upstream: (upstream * of_users, upstream * of_items)

    return loss.mean(summed(users, items), tf.reduce_sum(tf.cast(relevant >= 0, tf.float32)))


class _OfLoss(RankingLoss):
    """A loss of the lists of another loss, `loss`."""

    def __init__(self, loss: RankingLoss) -> None:
        super().__init__(dtype=loss.dtype, name=loss.name, reduction=loss.reduction)
        self.loss = loss

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns which lists are included, [batch] bool."""
        return self.loss.counts(labels, mask)


class CompiledLoss(_OfLoss):
    """A loss whose value and gradient are XLA programs of their own.

    Args:
      loss: The loss.
    """

    def __init__(self, loss: RankingLoss) -> None:
        super().__init__(loss)
        self._program = tf.function(loss.compute, jit_compile=True, autograph=False)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch]."""
        return self._program(labels, scores, mask)


class BestItemsLoss(_OfLoss):
    """A loss of each list's relevant documents, its best scored others and its lowest document.

    Other documents get no gradient. The lowest document is included because SmoothI subtracts its score from the
    others. With as many as there are documents, this is the loss itself.

    Args:
      loss: The loss, which sees the chosen documents as the list.
      hard_negatives: Number of the best scored others, >= 1.

    Time O(N log hard_negatives) and memory O(N) per list, besides those of the loss for the chosen documents.
    """

    def __init__(self, loss: RankingLoss, hard_negatives: int) -> None:
        super().__init__(loss)
        self.hard_negatives = min(hard_negatives, 2**30)  # of int32

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch]."""
        lowest = tf.argmin(_padded.fill(scores, mask, scores.dtype.max), axis=1, output_type=tf.int32)
        is_lowest = tf.equal(tf.range(tf.shape(scores)[1]), lowest[:, tf.newaxis])
        is_first = tf.logical_and(mask, tf.logical_or(labels > 0.0, is_lowest))
        counts = tf.reduce_sum(tf.cast(is_first, tf.int32), axis=1) + self.hard_negatives
        size = tf.minimum(tf.reduce_max(tf.pad(counts, [[0, 1]], constant_values=1)), tf.shape(scores)[1])
        order = tf.where(is_first, scores.dtype.max, _padded.fill(scores, mask, scores.dtype.min))
        places = tf.math.top_k(tf.stop_gradient(order), size).indices
        labels, scores, mask = (tf.gather(values, places, batch_dims=1) for values in (labels, scores, mask))
        # The list of a user does not depend on how many relevant documents the others in the batch have.
        mask = tf.logical_and(mask, tf.sequence_mask(counts, size))
        return self.loss.compute(_padded.fill(labels, mask, 0.0), _padded.fill(scores, mask, 0.0), mask)
