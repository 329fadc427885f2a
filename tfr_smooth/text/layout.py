"""The token layout of BERT inputs, in TensorFlow operations that Python and exported models share."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf


class SpecialTokens(NamedTuple):
    """The ids of BERT's special tokens.

    Attributes:
      pad: Id of [PAD].
      cls: Id of [CLS].
      sep: Id of [SEP].
    """

    pad: int
    cls: int
    sep: int


def single(tokens: tf.RaggedTensor, length: int, special: SpecialTokens) -> tf.Tensor:
    """Returns `[CLS] text [SEP]` for each text, truncated and padded to a length, int32 [texts, length].

    Args:
      tokens: Token ids, int32 [texts, (tokens)].
      length: The length, >= 3.
      special: The special tokens.
    """
    cut = tokens[:, : length - 2]
    ends = [tf.fill([cut.nrows(), 1], tf.constant(token, tf.int32)) for token in (special.cls, special.sep)]
    return tf.concat([ends[0], cut, ends[1]], axis=1).to_tensor(special.pad, shape=[None, length])


def pairs(
    queries: tf.RaggedTensor, documents: tf.RaggedTensor, length: int, passages: int, special: SpecialTokens
) -> tf.Tensor:
    """Returns `[CLS] query [SEP] passage [SEP]` for each passage of each document, int32 [pairs, passages, length].

    A document that does not fit in one input is split into at most `passages` passages of equal length; the rest is
    truncated. The query is truncated to half of the input. Unused passages contain only padding.

    Args:
      queries: Token ids, int32 [pairs, (tokens)].
      documents: Token ids, int32 [pairs, (tokens)].
      length: The length of an input, >= 5.
      passages: Maximum number of passages per document, >= 1.
      special: The special tokens.
    """
    queries = queries[:, : (length - 3) // 2]

    def column(values: tf.Tensor) -> tf.Tensor:
        return tf.cast(values, tf.int32)[:, tf.newaxis, tf.newaxis]

    query_length = column(queries.row_lengths())
    room = length - 3 - query_length
    document_length = tf.minimum(column(documents.row_lengths()), room * passages)
    count = tf.maximum(1, -(-document_length // room))
    size = -(-document_length // count)
    passage = tf.range(passages)[tf.newaxis, :, tf.newaxis]
    start = passage * size
    passage_length = tf.clip_by_value(document_length - start, 0, size)
    place = tf.range(length)[tf.newaxis, tf.newaxis, :] + tf.zeros_like(start)  # [pairs, passages, length]
    behind = place - query_length - 2  # the position in the passage

    def at(tokens: tf.RaggedTensor, index: tf.Tensor) -> tf.Tensor:
        dense = tf.pad(tokens.to_tensor(special.pad), [[0, 0], [0, 1]], constant_values=special.pad)
        index = tf.clip_by_value(index, 0, tf.shape(dense)[1] - 1)
        return tf.reshape(tf.gather(dense, tf.reshape(index, [tf.shape(index)[0], -1]), batch_dims=1), tf.shape(index))

    ids = tf.where(place <= query_length, at(queries, place - 1), special.sep)
    ids = tf.where(place == 0, special.cls, ids)
    ids = tf.where((behind >= 0) & (behind < passage_length), at(documents, start + behind), ids)
    used = (behind <= passage_length) & (passage < count)
    return tf.ensure_shape(tf.where(used, ids, special.pad), [None, passages, length])
