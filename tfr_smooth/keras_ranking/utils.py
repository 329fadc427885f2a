"""The functions of `tfr.utils` that Keras programs use."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from tfr_smooth import _lists


def sort_by_scores(
    scores: tf.Tensor, features_list: Sequence[tf.Tensor], topn: int | None = None, mask: tf.Tensor | None = None
) -> list[tf.Tensor]:
    """Sorts features of documents by descending score; ties by position.

    TF-Ranking also takes `shuffle_ties` and `seed`, and orders ties at random by default.

    Args:
      scores: [batch, list].
      features_list: Tensors [batch, list, ...].
      topn: Number of documents to return, >= 1. None for all.
      mask: [batch, list] bool, False for padding, which is last. None for no padding.

    Returns:
      The sorted tensors, [batch, topn, ...].

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import keras_ranking as tfr
      >>> titles = tf.constant([["a", "b", "c"]])
      >>> print(tfr.utils.sort_by_scores(tf.constant([[1.0, 3.0, 2.0]]), [titles], topn=2)[0].numpy())
      [[b'b' b'c']]
    """
    scores = tf.convert_to_tensor(scores)
    if mask is not None:
        scores = _lists.fill(scores, tf.cast(mask, tf.bool), scores.dtype.min)
    _, indices = tf.math.top_k(scores, _lists.num_ranks(scores, topn))
    return [tf.gather(features, indices, batch_dims=1) for features in features_list]
