"""The token layout of the encoders' inputs, in TensorFlow operations that Python and exported models share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tfr_smooth import _arguments, _compiled
from tfr_smooth.data.column_values import OUTER_BLANKS


class SpecialTokens(NamedTuple):
    """The ids of special tokens.

    Attributes:
      pad: Id of the padding, such as BERT's [PAD].
      start: Id of the first token, such as [CLS].
      end: Id of the last token, such as [SEP].
      between: Ids between two segments: [SEP] for BERT, </s></s> for RoBERTa.
    """

    pad: int
    start: int
    end: int
    between: tuple[int, ...]


def special_tokens(tokenizer: Any) -> SpecialTokens:
    """Returns the special tokens of a KerasHub tokenizer, laid out as by the preprocessor of its model."""
    pad, start, end = (getattr(tokenizer, f"{name}_token_id", None) for name in ("pad", "start", "end"))
    if pad is None or start is None or end is None:
        expected = "a KerasHub tokenizer with pad, start and end tokens"
        raise ValueError(f"`tokenizer` must be {expected}, got {type(tokenizer).__name__}.")
    with _arguments.needed("keras-hub", extra="text", by="A tokenizer"):
        import keras_hub
    between = (end,)
    for kind in keras_hub.models.TextClassifierPreprocessor.__subclasses__():
        if kind.tokenizer_cls is type(tokenizer):
            preprocessor = kind(tokenizer)
            preprocessor.build(None)
            between = tuple(preprocessor.packer.sep_value)
    return SpecialTokens(int(pad), int(start), int(end), between)


def in_graph(tokenizer: Any) -> Callable[[tf.Tensor], tf.RaggedTensor]:
    """Returns a function of strings [texts] to token ids, int32 [texts, (tokens)], in TensorFlow operations.

    Blanks before and after a text do not count; some tokenizers have tokens for them. Exported models contain these
    operations. For some tokenizers, they are faster than calling the tokenizer, and closer to the tokenizer of the
    original model.
    """
    with _arguments.needed("tensorflow-text", extra="text", by="A tokenizer"):
        import tensorflow_text  # noqa: F401

    def tokenize(texts: tf.Tensor) -> tf.RaggedTensor:
        tokens = tokenizer(tf.strings.regex_replace(texts, OUTER_BLANKS, ""))
        if not isinstance(tokens, tf.RaggedTensor):
            name = type(tokenizer).__name__
            raise ValueError(f"`tokenizer` must return ragged token ids, got {name}, which returns {tokens}.")
        return tf.cast(tokens, tf.int32)

    return _compiled.traced(tokenize, input_signature=[tf.TensorSpec([None], tf.string)])


def segments(ids: tf.Tensor, special: SpecialTokens) -> tf.Tensor:
    """Returns the segment of each token, 0 or 1: the second segment starts after the first separator.

    Args:
      ids: Token ids, int32 [texts, tokens].
      special: The special tokens.
    """
    ends = tf.cumsum(tf.cast(tf.equal(ids, special.end), tf.int32), axis=1, exclusive=True)
    return tf.cast(ends >= len(special.between), tf.int32)


def single(tokens: tf.RaggedTensor, length: int, special: SpecialTokens) -> tf.Tensor:
    """Returns `[CLS] text [SEP]` for each text, truncated and padded to a length, int32 [texts, length].

    Args:
      tokens: Token ids, int32 [texts, (tokens)].
      length: The length, >= 3.
      special: The special tokens.
    """
    cut = tokens[:, : length - 2]
    ends = [tf.fill([cut.nrows(), 1], tf.constant(token, tf.int32)) for token in (special.start, special.end)]
    return tf.concat([ends[0], cut, ends[1]], axis=1).to_tensor(special.pad, shape=[None, length])


def least_pair(special: SpecialTokens) -> int:
    """Returns the minimum length of `pairs`: a token of each text, and the special tokens."""
    return 4 + len(special.between)


def pairs(
    queries: tf.RaggedTensor, documents: tf.RaggedTensor, length: int, passages: int, special: SpecialTokens
) -> tf.Tensor:
    """Returns `[CLS] query [SEP] passage [SEP]` for each passage of each document, int32 [pairs, passages, length].

    A document that does not fit in one input is split into at most `passages` passages of equal length; the rest is
    truncated. The query is truncated to half of the input. Unused passages contain only padding.

    Args:
      queries: Token ids, int32 [pairs, (tokens)].
      documents: Token ids, int32 [pairs, (tokens)].
      length: The length of an input, at least `least_pair`.
      passages: Maximum number of passages per document, >= 1.
      special: The special tokens.
    """
    between = len(special.between)
    space = length - 2 - between
    queries = queries[:, : space // 2]

    def column(values: tf.Tensor) -> tf.Tensor:
        return tf.cast(values, tf.int32)[:, tf.newaxis, tf.newaxis]

    query_length = column(queries.row_lengths())
    room = space - query_length
    document_length = tf.minimum(column(documents.row_lengths()), room * passages)
    count = tf.maximum(1, -(-document_length // room))
    size = -(-document_length // count)
    passage = tf.range(passages)[tf.newaxis, :, tf.newaxis]
    start = passage * size
    passage_length = tf.clip_by_value(document_length - start, 0, size)
    place = tf.range(length)[tf.newaxis, tf.newaxis, :] + tf.zeros_like(start)  # [pairs, passages, length]
    behind = place - query_length - 1 - between  # the position in the passage

    def at(tokens: tf.RaggedTensor, index: tf.Tensor) -> tf.Tensor:
        dense = tf.pad(tokens.to_tensor(special.pad), [[0, 0], [0, 1]], constant_values=special.pad)
        index = tf.clip_by_value(index, 0, tf.shape(dense)[1] - 1)
        return tf.reshape(tf.gather(dense, tf.reshape(index, [tf.shape(index)[0], -1]), batch_dims=1), tf.shape(index))

    separator = tf.gather(tf.constant(special.between, tf.int32), tf.clip_by_value(behind + between, 0, between - 1))
    ids = tf.where(place <= query_length, at(queries, place - 1), separator)
    ids = tf.where(place == 0, special.start, ids)
    ids = tf.where(behind >= 0, tf.where(behind < passage_length, at(documents, start + behind), special.end), ids)
    used = (behind <= passage_length) & (passage < count)
    return tf.ensure_shape(tf.where(used, ids, special.pad), [None, passages, length])
