"""Vectors of users who are not in the training, from the items that they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

# Steps of a vector, the users whose mean covariance of items is the curvature, and how far it may be scaled for others.
# On MovieLens-100K, more of each change NDCG by less than 0.001.
_STEPS, _USERS, _SCALES = 4, 256, (0.3, 6.0)
# Steps to the norm of a vector, and the scores of users at once, which bounds memory. Not tuned.
_NORM_STEPS, _BLOCK = 4, 2**24


def folding_in(catalog: Any, users: np.ndarray, dim: int, temperature: float) -> Callable[[tf.Tensor], tf.Tensor]:
    r"""Returns the function from items of users to vectors that `CatalogFactors.history_vectors` describes.

    Each step maximizes a quadratic model of the likelihood on the sphere: with the mean m of the vectors of the user's
    items, the expected vector $\mu(p)$ of an item, and the mean covariance C of that vector for users,

    $$(\sigma C / \tau + \lambda I) \, p' = m - \mu(p) + \sigma C p / \tau, \qquad \|p'\| = \nu$$

    which C's eigenvectors make a division per component, and $\lambda$ the root of a function of one number. The first
    step is from the means of users for p and $\mu(p)$, with $\sigma = 1$; then $\sigma$ is that of the last step, in
    which $\mu$ changed by $\sigma C / \tau$ times the change of p (Barzilai and Borwein, 1988).

    Args:
      catalog: The vectors of the items, float32 [items, size], a tensor or variable.
      users: The vectors of users, float32 [users, size].
      dim: The size without the component of the biases.
      temperature: The divisor of the inner products.

    Time O(items * dim^2) for this call, then O(items * dim) per user and step. Memory O(items) per user.
    """
    vectors, count = tf.convert_to_tensor(catalog).numpy(), min(len(users), _USERS, max(1, _BLOCK // catalog.shape[0]))
    some = users[np.linspace(0, len(users) - 1, count).astype(int)]
    shares = tf.nn.softmax(some @ vectors.T / temperature).numpy()
    expected, vectors = (shares @ vectors)[:, :dim], vectors[:, :dim]
    covariance = vectors.T @ (shares.mean(axis=0)[:, np.newaxis] * vectors) - expected.T @ expected / count
    curvature, axes = np.linalg.eigh(covariance / temperature)
    curvature = np.maximum(curvature, 0.0)
    start = some[:, :dim].mean(axis=0) @ axes, expected.mean(axis=0) @ axes
    norm, typical = np.linalg.norm(users[:, :dim], axis=1).mean(), users[:, :dim].mean(axis=0)
    typical = norm * tf.math.l2_normalize(typical).numpy() @ axes

    def with_norm(right: tf.Tensor, bend: tf.Tensor) -> tf.Tensor:
        """Returns right / (bend + shift) with the norm, by Newton's method for the shift."""
        size = tf.norm(right, axis=1, keepdims=True) / norm
        shift = tf.maximum(size - bend[:, -1:], 0.1 * size)
        for _ in range(_NORM_STEPS):
            squares = tf.square(tf.math.divide_no_nan(right, bend + shift))
            square = tf.reduce_sum(squares, axis=1, keepdims=True)
            slope = tf.reduce_sum(tf.math.divide_no_nan(squares, bend + shift), axis=1, keepdims=True)
            more = (tf.sqrt(square) / norm - 1.0) * tf.math.divide_no_nan(square, slope)
            shift = tf.maximum(shift + more, 1e-3 * shift)
        return norm * tf.math.l2_normalize(tf.math.divide_no_nan(right, bend + shift), axis=1)

    def with_last(vectors: tf.Tensor) -> tf.Tensor:
        more = [[0, 0], [0, users.shape[1] - dim]]
        return tf.pad(tf.matmul(vectors, axes, transpose_b=True), more, constant_values=1.0)

    def of_items(items: tf.Tensor) -> tf.Tensor:
        of_all = tf.convert_to_tensor(catalog)
        # Each item once: those that differ from the one before.
        items = tf.pad(tf.sort(tf.maximum(items, -1), axis=1), [[0, 0], [1, 0]], constant_values=-1)
        is_item = items[:, 1:] > items[:, :-1]
        rows, chosen = tf.cast(tf.where(is_item)[:, 0], tf.int32), items[:, 1:][is_item]
        means = tf.sparse.segment_mean(of_all, chosen, rows, num_segments=tf.shape(items)[0])
        own = tf.matmul(means[:, :dim], axes)
        (now, mean), bend = (tf.broadcast_to(each, tf.shape(own)) for each in start), curvature[np.newaxis]
        for step in range(_STEPS):
            before, now = now, with_norm(own - mean + now * bend, bend)
            if step < _STEPS - 1:
                shares = tf.nn.softmax(tf.matmul(with_last(now), of_all, transpose_b=True) / temperature)
                mean_before, mean = mean, tf.matmul(tf.matmul(shares, of_all)[:, :dim], axes)
                change = now - before
                found, assumed = (
                    tf.reduce_sum(change * each, axis=1, keepdims=True)
                    for each in (mean - mean_before, change * curvature)
                )
                bend = curvature * tf.clip_by_value(tf.math.divide_no_nan(found, assumed), *_SCALES)
        return with_last(tf.where(tf.reduce_any(is_item, axis=1, keepdims=True), now, typical))

    return of_items
