"""The layout of tokens in the inputs."""

import numpy as np
import pytest
import tensorflow as tf

from tests.text.conftest import VOCABULARY
from tfr_smooth import text
from tfr_smooth.text import layout

SPECIAL = layout.SpecialTokens(pad=0, cls=2, sep=3)


def pair(query, document, length, passages):
    """Builds the passages of one pair token by token."""
    query = query[: (length - 3) // 2]
    room = length - 3 - len(query)
    document = document[: room * passages]
    count = max(1, -(-len(document) // room))
    size = -(-len(document) // count)
    rows = np.zeros((passages, length), int)
    for number in range(count):
        row = [2, *query, 3, *document[number * size : (number + 1) * size], 3]
        rows[number, : len(row)] = row
    return rows


@pytest.mark.parametrize("passages", [1, 2, 3])
@pytest.mark.parametrize("length", [5, 8, 12])
def test_pairs_match_a_token_by_token_reference(length, passages):
    random = np.random.RandomState(0)
    queries = [random.randint(10, 99, size).tolist() for size in (0, 1, 3, 4, 9, 2, 2)]
    documents = [random.randint(10, 99, size).tolist() for size in (0, 0, 1, 9, 40, 13, 14)]
    found = layout.pairs(
        tf.ragged.constant(queries, tf.int32), tf.ragged.constant(documents, tf.int32), length, passages, SPECIAL
    )
    expected = [pair(*texts, length, passages) for texts in zip(queries, documents, strict=True)]
    np.testing.assert_array_equal(found, expected)


def test_single_texts_are_truncated_and_padded():
    tokens = tf.ragged.constant([[7, 8, 9], [], [7]], tf.int32)
    np.testing.assert_array_equal(layout.single(tokens, 4, SPECIAL), [[2, 7, 8, 3], [2, 3, 0, 0], [2, 7, 3, 0]])


def test_words_are_split_into_word_pieces(checkpoint):
    tokenizer = text.Tokenizer(checkpoint)
    assert tokenizer.special == (0, 2, 3) and tokenizer.lowercase
    assert tokenizer.vocabulary == VOCABULARY
    names = [[VOCABULARY[token] for token in row] for row in tokenizer.tokens(["Wings, of HEATED gas.", ""]).to_list()]
    assert names == [["wing", "##s", "[UNK]", "of", "heat", "##ed", "gas", "."], []]


def test_a_cased_vocabulary_keeps_case(tmp_path, checkpoint):
    (tmp_path / "vocab.txt").write_text("\n".join([*VOCABULARY[:5], "A", "a"]))
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    tokenizer = text.Tokenizer(tmp_path)
    assert tokenizer.tokens(["A a"]).to_list() == [[5, 6]] and not tokenizer.lowercase


def test_a_vocabulary_without_special_tokens_is_refused(tmp_path):
    (tmp_path / "vocab.txt").write_text("[UNK]\na\n")
    with pytest.raises(ValueError, match=r"vocabulary with \[PAD\], \[CLS\] and \[SEP\]"):
        text.Tokenizer(tmp_path)


def test_tensorflow_text_returns_the_same_tokens(checkpoint):
    tensorflow_text = pytest.importorskip("tensorflow_text", reason="tensorflow-text is not installed")
    tokenizer = text.Tokenizer(checkpoint)
    texts = ["Wings, of HEATED gas.", "", "héat flow-drag  (cone)", "unknown\tjets"]
    same = tensorflow_text.FastBertTokenizer(
        tokenizer.vocabulary, lower_case_nfd_strip_accents=True, token_out_type=tf.int32
    )
    assert same.tokenize(texts).to_list() == tokenizer.tokens(texts).to_list()
