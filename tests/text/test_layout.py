"""The layout of tokens in the inputs."""

import numpy as np
import pytest
import tokenizers

from tfr_smooth.text import layout

BETWEEN = {1: "[SEP]", 2: "[SEP] [MASK]"}


def of(between=1, **options):
    tokens = {token: number for number, token in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])}
    found = tokenizers.Tokenizer(tokenizers.models.WordLevel(tokens, unk_token="[UNK]"))
    pair = f"[CLS] $A {BETWEEN[between]} $B:1 [SEP]:1"
    special = [(token, number) for token, number in tokens.items() if token != "a"]
    found.post_processor = tokenizers.processors.TemplateProcessing("[CLS] $A [SEP]", pair, special)
    given = {"markers": (), "is_filled": False, "segments": True, "keeps_end": False, **options}
    return layout.Layout(found, 100, **given)


def pair(query, document, length, passages, between):
    """Builds the passages of one pair token by token."""
    space = length - 2 - len(between)
    half = space // 2
    query = query[: space - min(len(document), half) if len(query) > len(document) else half]
    room = max(1, space - len(query))
    document = document[: room * passages]
    count = max(1, -(-len(document) // room))
    size = -(-len(document) // count)
    rows = np.full((passages, length), -1)
    for number in range(count):
        passage = [token + 100 for token in document[number * size : (number + 1) * size]]
        row = [2, *query, *between, *passage, 103]
        rows[number, : len(row)] = row
    return rows


@pytest.mark.parametrize(("length", "between"), [(5, 1), (8, 1), (12, 1), (6, 2), (11, 2)])
def test_pairs_match_a_token_by_token_reference(length, between):
    random = np.random.RandomState(0)
    queries = [random.randint(10, 99, size).tolist() for size in (0, 1, 3, 4, 9, 2, 2, 30, 30, 30)]
    documents = [random.randint(10, 99, size).tolist() for size in (0, 0, 1, 9, 40, 13, 14, 0, 2, 20)]
    for passages in (1, 2, 3):
        found = of(between).pairs(queries, documents, length, passages)
        lists = zip(queries, documents, strict=True)
        expected = [pair(*texts, length, passages, [3, 4][:between]) for texts in lists]
        np.testing.assert_array_equal(found, expected)
    assert of(between).least_pair == 4 + between
    with_segments = found >= 100
    np.testing.assert_array_equal(
        of(between, segments=False).pairs(queries, documents, length, 3), found - 100 * with_segments
    )


def test_single_texts_are_truncated_and_padded():
    tokens = [[7, 8, 9], [], [7]]
    np.testing.assert_array_equal(of().single(tokens, 4), [[2, 7, 8, 3], [2, 3, -1, -1], [2, 7, 3, -1]])
    np.testing.assert_array_equal(of(keeps_end=True).single(tokens, 4), [[2, 8, 9, 3], [2, 3, -1, -1], [2, 7, 3, -1]])
    late = of(markers=["[UNK]", "[MASK]"], is_filled=True)
    np.testing.assert_array_equal(
        late.single(tokens, 5, "query"), [[2, 1, 7, 8, 3], [2, 1, 3, -2, -2], [2, 1, 7, 3, -2]]
    )
    np.testing.assert_array_equal(late.single(tokens[2:], 5, "document"), [[2, 4, 7, 3, -1]])


def test_the_end_of_long_pairs_is_kept():
    found = of(keeps_end=True).pairs([[10, 11, 12]], [[20, 21, 22]], 7, 1)
    assert found.tolist() == [[[2, 11, 12, 3, 121, 122, 103]]]
