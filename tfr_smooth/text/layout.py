"""The token layout of the encoders' inputs, in TensorFlow operations that Python and exported models share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfr_smooth import _arguments, _compiled
from tfr_smooth.data.column_values import OUTER_BLANKS

ROLES = ("query", "document")
_LONGEST_WORD = 100  # characters; BERT's, which has the token of unknown words for longer ones


class SpecialTokens(NamedTuple):
    """The ids of special tokens.

    Attributes:
      pad: Id of the padding, such as BERT's [PAD].
      start: Id of the first token, such as [CLS].
      end: Id of the last token, such as [SEP].
      between: Ids between two segments: [SEP] for BERT, </s></s> for RoBERTa.
      markers: Ids after the first token of a query and of a document, by role: [Q] and [D] of ColBERT.
      fill: Id of the token that fills queries up, [MASK] of ColBERT; None for padding.
    """

    pad: int
    start: int
    end: int
    between: tuple[int, ...]
    markers: Mapping[str, tuple[int, ...]] = {}
    fill: int | None = None


def special_tokens(tokenizer: Any, markers: Sequence[str] = (), fill: str | None = None) -> SpecialTokens:
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
    of_role = {role: (token,) for role, token in zip(ROLES, ids_of(tokenizer, markers), strict=False)}
    filling = None if fill is None else ids_of(tokenizer, [fill])[0]
    return SpecialTokens(int(pad), int(start), int(end), between, of_role, filling)


def ids_of(tokenizer: Any, tokens: Sequence[str]) -> list[int]:
    """Returns the ids of tokens, or raises a ValueError with a token that is not there."""
    known = set(tokenizer.get_vocabulary())
    for token in tokens:
        if token not in known:
            raise ValueError(f"`tokenizer` must have the token {token!r}, got {len(known)} others.")
    return [int(tokenizer.token_to_id(token)) for token in tokens]


def in_graph(tokenizer: Any) -> Callable[[tf.Tensor], tf.RaggedTensor]:
    """Returns a function of strings [texts] to token ids, int32 [texts, (tokens)], in TensorFlow operations.

    Blanks before and after a text do not count; some tokenizers have tokens for them. Exported models contain these
    operations. For some tokenizers, they are faster than calling the tokenizer, and closer to the tokenizer of the
    original model.
    """
    with _arguments.needed("tensorflow-text", extra="text", by="A tokenizer"):
        import tensorflow_text  # noqa: F401

    def tokenize(texts: tf.Tensor) -> tf.RaggedTensor:
        texts = tf.strings.regex_replace(texts, OUTER_BLANKS, "")
        with _normalizing(tokenizer) as normalize:
            tokens = tokenizer(normalize(texts))
        if not isinstance(tokens, tf.RaggedTensor):
            name = type(tokenizer).__name__
            raise ValueError(f"`tokenizer` must return ragged token ids, got {name}, which returns {tokens}.")
        return tf.cast(tokens, tf.int32)

    return _compiled.traced(tokenize, input_signature=[tf.TensorSpec([None], tf.string)])


@contextlib.contextmanager
def _normalizing(tokenizer: Any) -> Iterator[Callable[[tf.Tensor], tf.Tensor]]:
    """Yields BERT's normalization of texts, in place of KerasHub's, which also replaces characters such as an ellipsis.

    Blanks are spaces, control characters are left out, accents are those of NFD. ALBERT has lower case without accents.
    """
    import tensorflow_text

    flags = {name: getattr(tokenizer, name) for name in ("lowercase", "strip_accents") if hasattr(tokenizer, name)}
    albert = is_albert(tokenizer)

    def normalize(texts: tf.Tensor) -> tf.Tensor:
        for pattern, new in ((r"[\t\n\r\pZ]", " "), (r"\p{C}|\x{FFFD}", "")) if flags else ():
            texts = tf.strings.regex_replace(texts, pattern, new)
        if albert:
            texts = tf.strings.regex_replace(texts, "``|''", '"')
        if albert or flags.get("strip_accents"):
            form = "NFKD" if albert else "NFD"
            texts = tf.strings.regex_replace(tensorflow_text.normalize_utf8(texts, form), r"\p{Mn}", "")
        if not (albert or flags.get("lowercase")):
            return texts
        # BERT lowers each character by itself; at the end of a word, TensorFlow has another sigma.
        return tf.strings.lower(tf.strings.regex_replace(texts, "\u03a3", "\u03c3"), encoding="utf-8")

    words = {"_fast_word_piece": _WordPieces(tokenizer)} if hasattr(tokenizer, "_fast_word_piece") else {}
    before = {name: getattr(tokenizer, name) for name in (*flags, *words)}
    tokenizer.__dict__.update({**dict.fromkeys(flags, False), **words})
    try:
        yield normalize
    finally:
        tokenizer.__dict__.update(before)


def is_albert(tokenizer: Any) -> bool:
    """Returns whether texts are in lower case without accents, which no attribute of the tokenizer says."""
    from keras_hub.tokenizers import AlbertTokenizer

    return isinstance(tokenizer, AlbertTokenizer)


class _WordPieces:
    """The word pieces of words of up to 100 characters, as of BERT, and not of up to 100 bytes, as of KerasHub."""

    def __init__(self, tokenizer: Any) -> None:
        import tensorflow_text

        self._unknown = tokenizer.oov_token
        self._words = tensorflow_text.FastWordpieceTokenizer(
            vocab=tokenizer.get_vocabulary(),
            suffix_indicator=tokenizer.suffix_indicator,
            unknown_token=tokenizer.oov_token,
            token_out_type=tf.int32,
            no_pretokenization=True,
            max_bytes_per_word=4 * _LONGEST_WORD,
        )

    def tokenize(self, words: tf.RaggedTensor) -> tf.RaggedTensor:
        is_long = tf.strings.length(words.flat_values, "UTF8_CHAR") > _LONGEST_WORD
        return self._words.tokenize(words.with_flat_values(tf.where(is_long, self._unknown, words.flat_values)))


def segments(ids: tf.Tensor, special: SpecialTokens) -> tf.Tensor:
    """Returns the segment of each token, 0 or 1: the second one is between the first separator and the last one.

    Args:
      ids: Token ids, int32 [texts, tokens].
      special: The special tokens.
    """
    is_end = tf.cast(tf.equal(ids, special.end), tf.int32)
    is_second = tf.cumsum(is_end, axis=1, exclusive=True) >= len(special.between)
    return tf.cast(is_second & (tf.cumsum(is_end, axis=1, reverse=True) > 0), tf.int32)


def single(tokens: tf.RaggedTensor, length: int, special: SpecialTokens, role: str | None = None) -> tf.Tensor:
    """Returns `[CLS] text [SEP]` for each text, truncated and padded to a length, int32 [texts, length].

    Args:
      tokens: Token ids, int32 [texts, (tokens)].
      length: The length, >= 3.
      special: The special tokens.
      role: "query" or "document", whose marker follows [CLS]; None for none.
    """
    start = (special.start, *special.markers.get(role or "", ()))
    pad = special.pad if role != "query" or special.fill is None else special.fill
    return _joined([start, tokens[:, : length - 1 - len(start)], (special.end,)], length, pad)


def least_pair(special: SpecialTokens) -> int:
    """Returns the minimum length of `pairs`: a token of each text, and the special tokens."""
    return 4 + len(special.between)


def pairs(
    queries: tf.RaggedTensor, documents: tf.RaggedTensor, length: int, passages: int, special: SpecialTokens
) -> tf.Tensor:
    """Returns `[CLS] query [SEP] passage [SEP]` for each passage of each document, int32 [pairs, passages, length].

    A document that does not fit in one input is split into at most `passages` passages of equal length; the rest is
    truncated. The query is truncated to half of the input, or a longer query to what the document leaves, as by the
    package tokenizers. Unused passages contain only padding.

    Args:
      queries: Token ids, int32 [pairs, (tokens)].
      documents: Token ids, int32 [pairs, (tokens)].
      length: The length of an input, at least `least_pair`.
      passages: Maximum number of passages per document, >= 1.
      special: The special tokens.
    """
    space = length - 2 - len(special.between)
    sizes, half = documents.row_lengths(), space // 2
    most = tf.where(queries.row_lengths() > sizes, space - tf.minimum(sizes, half), half)
    queries = tf.ragged.boolean_mask(queries, tf.ragged.range(queries.row_lengths()) < most[:, tf.newaxis])
    room = tf.maximum(space - queries.row_lengths(), 1)  # 0 with an empty document
    used = tf.minimum(documents.row_lengths(), room * passages)
    count = tf.maximum(-(-used // room), 1)
    size = -(-used // count)
    numbers = tf.range(passages, dtype=used.dtype)
    sizes = tf.clip_by_value(used[:, tf.newaxis] - numbers * size[:, tf.newaxis], 0, size[:, tf.newaxis])
    sizes = tf.concat([sizes, (documents.row_lengths() - used)[:, tf.newaxis]], axis=1)  # the rest is the last part
    parts = tf.RaggedTensor.from_row_lengths(documents.flat_values, tf.reshape(sizes, [-1]))
    parts = tf.RaggedTensor.from_uniform_row_length(parts, passages + 1)[:, :passages].merge_dims(0, 1)
    queries = tf.gather(queries, tf.repeat(tf.range(queries.nrows()), passages))
    ids = _joined([(special.start,), queries, special.between, parts, (special.end,)], length, special.pad)
    is_used = numbers < count[:, tf.newaxis]
    return tf.where(is_used[:, :, tf.newaxis], tf.reshape(ids, [-1, passages, length]), special.pad)


def _joined(parts: Sequence[tf.RaggedTensor | tuple[int, ...]], length: int, pad: int) -> tf.Tensor:
    """Returns tokens of each text and tokens that are those of all texts side by side, padded, [texts, length]."""
    texts = next(part.nrows() for part in parts if isinstance(part, tf.RaggedTensor))
    columns = [
        part if isinstance(part, tf.RaggedTensor) else tf.tile(tf.constant([part], tf.int32), [texts, 1])
        for part in parts
    ]
    return tf.concat(columns, axis=1).to_tensor(pad, shape=[None, length])
