"""The layout of tokens in the inputs."""

import keras_hub
import numpy as np
import pytest
import tensorflow as tf
import tokenizers

from tests.text.conftest import FAMILIES, VOCABULARY, few_families, word_piece
from tfr_smooth.text import layout

SPECIAL = layout.SpecialTokens(pad=0, start=2, end=3, between=(3,))
TWO = SPECIAL._replace(between=(3, 4))


def pair(query, document, length, passages, special):
    """Builds the passages of one pair token by token."""
    space = length - 2 - len(special.between)
    half = space // 2
    query = query[: space - min(len(document), half) if len(query) > len(document) else half]
    room = max(1, space - len(query))
    document = document[: room * passages]
    count = max(1, -(-len(document) // room))
    size = -(-len(document) // count)
    rows = np.zeros((passages, length), int)
    for number in range(count):
        row = [2, *query, *special.between, *document[number * size : (number + 1) * size], 3]
        rows[number, : len(row)] = row
    return rows


@pytest.mark.parametrize(("length", "special"), [(5, SPECIAL), (8, SPECIAL), (12, SPECIAL), (6, TWO), (11, TWO)])
def test_pairs_match_a_token_by_token_reference(length, special):
    random = np.random.RandomState(0)
    queries = [random.randint(10, 99, size).tolist() for size in (0, 1, 3, 4, 9, 2, 2, 30, 30, 30)]
    documents = [random.randint(10, 99, size).tolist() for size in (0, 0, 1, 9, 40, 13, 14, 0, 2, 20)]
    texts = tf.ragged.constant(queries, tf.int32), tf.ragged.constant(documents, tf.int32)
    for passages in (1, 2, 3):
        found = layout.pairs(*texts, length, passages, special)
        expected = [pair(*lists, length, passages, special) for lists in zip(queries, documents, strict=True)]
        np.testing.assert_array_equal(found, expected)


def test_single_texts_are_truncated_and_padded():
    tokens = tf.ragged.constant([[7, 8, 9], [], [7]], tf.int32)
    np.testing.assert_array_equal(layout.single(tokens, 4, SPECIAL), [[2, 7, 8, 3], [2, 3, 0, 0], [2, 7, 3, 0]])


@few_families
def test_pairs_are_those_of_the_models_preprocessor(family):
    tokenizer = FAMILIES[family][0]()
    queries, documents = tf.constant(["wing lift", ""]), tf.constant(["heat of a plate", "gas"])
    (kind,) = [
        kind
        for kind in keras_hub.models.TextClassifierPreprocessor.__subclasses__()
        if kind.tokenizer_cls is type(tokenizer)
    ]
    # The tuple of segments is its first argument.
    expected = kind(tokenizer, sequence_length=30)(x=(queries, documents))
    special, tokenize = layout.special_tokens(tokenizer), layout.in_graph(tokenizer)
    ids = layout.pairs(tokenize(queries), tokenize(documents), 30, 1, special)[:, 0]
    np.testing.assert_array_equal(ids, expected["token_ids"])
    if family == "bert":
        np.testing.assert_array_equal(layout.segments(ids, special) * expected["padding_mask"], expected["segment_ids"])


def test_words_are_split_into_word_pieces():
    texts = ["Wings, of HEATED gas.", "", "h\u00e9at flow-drag  (cone)", "unknown\tjets", " wing 12 lift's", "n" * 101]
    tokens = layout.in_graph(word_piece())(tf.constant(texts))
    names = [[VOCABULARY[token] for token in row] for row in tokens.to_list()]
    assert names[:2] == [["wing", "##s", "[UNK]", "of", "heat", "##ed", "gas", "."], []]
    package = tokenizers.BertWordPieceTokenizer({token: number for number, token in enumerate(VOCABULARY)})
    same = package.encode_batch(texts, add_special_tokens=False)
    assert tokens.to_list() == [row.ids for row in same]


def test_a_tokenizer_of_padded_ids_is_refused():
    padded = keras_hub.models.BertTokenizer(VOCABULARY, sequence_length=5)
    with pytest.raises(ValueError, match="`tokenizer` must return ragged token ids, got BertTokenizer, which"):
        layout.in_graph(padded)(tf.constant(["wing"]))
