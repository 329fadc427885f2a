"""The layout of tokens in the inputs."""

import re

import keras_hub
import numpy as np
import pytest
import tensorflow as tf
import tokenizers

from tests.text.conftest import FAMILIES, VOCABULARY, byte_pairs, few_families, word_piece
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


def word_pieces_of_the_package(vocabulary=VOCABULARY):
    return tokenizers.BertWordPieceTokenizer({token: number for number, token in enumerate(vocabulary)})


@pytest.mark.slow
@pytest.mark.parametrize("length", [10, 11])
def test_the_longer_text_is_truncated_as_by_the_package_tokenizers(length):
    tokenizer = word_pieces_of_the_package()
    tokenizer.enable_truncation(length)
    pairs = [("wing " * query, "heat " * document) for query in (1, 4, 9, 20) for document in (1, 2, 4, 9, 20)]
    tokens = [layout.in_graph(word_piece())(tf.constant(texts)) for texts in zip(*pairs, strict=True)]
    found = layout.pairs(*tokens, length, 1, SPECIAL)[:, 0]
    expected = [row.ids + [0] * (length - len(row.ids)) for row in tokenizer.encode_batch(pairs)]
    np.testing.assert_array_equal(found, expected)


def test_the_second_segment_is_between_the_separators():
    ids = [[2, 7, 3, 3, 8, 3, 0]]
    two = SPECIAL._replace(between=(3, 3))
    np.testing.assert_array_equal(layout.segments(tf.constant(ids), two), [[0, 0, 0, 0, 1, 1, 0]])


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


TEXTS = ["Wings, of HEATED gas.", "", "h\u00e9at flow-drag  (cone)", "unknown\tjets", " wing 12 lift's"]


def test_words_are_split_into_word_pieces():
    tokens = layout.in_graph(word_piece())(tf.constant(TEXTS))
    names = [[VOCABULARY[token] for token in row] for row in tokens.to_list()]
    assert names[:2] == [["wing", "##s", "[UNK]", "of", "heat", "##ed", "gas", "."], []]
    same = word_pieces_of_the_package().encode_batch(TEXTS, add_special_tokens=False)
    assert tokens.to_list() == [row.ids for row in same]


def test_a_word_has_up_to_100_characters():
    words = ["\u306a" * 34, "\U0001f600" * 100, "\u306a" * 101, "n" * 100, "n" * 101, "a\u2028n", "N\u03a3"]
    vocabulary = [*VOCABULARY, *"an\u306a\U0001f600", *(f"##{letter}" for letter in "n\u306a\U0001f600\u03c2\u03c3")]
    found = layout.in_graph(keras_hub.models.BertTokenizer(vocabulary, lowercase=True))(tf.constant(words))
    same = word_pieces_of_the_package(vocabulary).encode_batch(words, add_special_tokens=False)
    assert found.to_list() == [row.ids for row in same]


@pytest.mark.slow
def test_byte_pairs_are_those_of_the_package_tokenizers():
    tokenizer = byte_pairs()
    texts = [re.sub("[^a-z ,.]", "", text) for text in TEXTS]  # The small vocabulary lacks other letters.
    merges = [tuple(merge.split()) for merge in tokenizer.merges]
    same = tokenizers.ByteLevelBPETokenizer(dict(tokenizer.vocabulary), merges)
    found = layout.in_graph(tokenizer)(tf.constant(texts)).to_list()
    expected = [row.ids for row in same.encode_batch([text.strip() for text in texts])]
    assert found == expected and len(found[4]) < len("wing lifts")


def test_a_tokenizer_of_padded_ids_is_refused():
    padded = keras_hub.models.BertTokenizer(VOCABULARY, sequence_length=5)
    with pytest.raises(ValueError, match="`tokenizer` must return ragged token ids, got BertTokenizer, which"):
        layout.in_graph(padded)(tf.constant(["wing"]))
