from __future__ import annotations

import gzip
import random

import numpy as np
import pytest

from tests.data.readers import assert_refused
from tfr_smooth.data import LetorFormat
from tfr_smooth.data.reading import letor
from tfr_smooth.data.reading.letor import parse_head, read_blocks

PLAIN = LetorFormat()


def read(path, num_features=None):
    """Returns the heads of the documents of a file, and their features."""
    blocks = list(read_blocks([str(path)], PLAIN, num_features))
    features = np.zeros([sum(len(block.heads) for block in blocks), max(block.width for block in blocks)], np.float32)
    first = 0
    for block in blocks:
        features[first + block.rows, block.places] = block.values
        first += len(block.heads)
    return [head for block in blocks for head in block.heads], features


# Hints in errors, which name the arguments that would read the line.
BY_COMMENT = "; `LetorFormat(query_ids='comment')` reads the first word after '#'"
UNLABELED = "; `LetorFormat(labeled=False)` reads documents without labels"
FROM_0 = "; `LetorFormat(first_index=0)` reads indices from 0"
NO_ID = "no query id: expected 'qid:<text>' after the label, got "
NO_INDEX = " is not an integer from 1 to 2147483647"
NO_NUMBER = " is not a finite float32 number"


def replaced(token):
    return f"; `LetorFormat(missing={{'{token}': VALUE}})` reads it as VALUE"


BAD_LINES = [
    # label
    ("qid:9 1:1", "label 'qid:9'" + NO_NUMBER + UNLABELED),
    *((f"{label} qid:9 1:1", f"label '{label}'{NO_NUMBER}") for label in ("NULL", "inf", "1e39", "1_0")),
    ("-0.5 qid:9 1:1", "label '-0.5' is negative, which marks padding" + UNLABELED),
    # query id
    ("1 1:0.5", NO_ID + "'1:0.5'"),
    ("1 # qid:9 1:1", NO_ID + "'#'" + BY_COMMENT),
    # index
    ("1 qid:9 0:1", "feature index '0'" + NO_INDEX + FROM_0),
    ("1 qid:9 1:1 x:1", "feature index 'x'" + NO_INDEX),
    *((f"1 qid:9 {index}:1", f"feature index '{index}'{NO_INDEX}") for index in ("-1", "1_0", "2147483648", "\u0661")),
    ("1 qid:9 1:1 2:1 1:1", "duplicate feature index 1"),
    ("1 qid:9 7:1 2:1", "feature index 7 exceeds num_features=4"),
    # value
    *((f"1 qid:9 1:{x}", f"value of feature 1: '{x}'{NO_NUMBER}{replaced(x)}") for x in ("NULL", "nan", "-inf", "")),
    *((f"1 qid:9 1:0 2:{value}", f"value of feature 2: '{value}'{NO_NUMBER}") for value in ("1e39", "1_0", "1:2")),
    # As many colons as features, but not one in each.
    ("1 qid:9 1:0:2 0.5", "value of feature 1: '0:2'" + NO_NUMBER),
    ("1 qid:9 0.5 2:0:3", "expected 'index:value', got '0.5'"),
    ("1 qid:9 1:" + "x" * 99, f"value of feature 1: '{'x' * 57}...'{NO_NUMBER}"),
    # text
    (b"1 qid:9\xff 1:1", "query id b'9\\xff' is not UTF-8 text"),
    (b"1 qid:9 1:1\xff", "value of feature 1: '1\ufffd'" + NO_NUMBER),
]  # fmt: skip


def test_bad_lines_are_refused_with_path_and_line(tmp_path):
    path = tmp_path / "bad.txt"
    for line, message in BAD_LINES:
        for end in (b"", b"\n", b"\r\n"):
            path.write_bytes(b"# comment\n\n1 qid:8 1:1\n" + (line if isinstance(line, bytes) else line.encode()) + end)
            assert_refused(f"{path}:4: {message}", read, path, num_features=4)


@pytest.mark.parametrize("size", [1, 300, 1 << 18])
def test_the_first_bad_line_raises_for_blocks_of_any_size(tmp_path, monkeypatch, size):
    monkeypatch.setattr(letor, "_BLOCK_BYTES", size)
    path, good = tmp_path / "a.txt", "".join(f"0 qid:q{i // 4} 1:1 2:{i}\n" for i in range(40))
    for text, message in (
        ("1 qid:9 1:1 2:NULL\nNULL qid:9 1:1\n", "41: value of feature 2: 'NULL'"),
        ("1 qid:9 1:1 2:1\nNULL qid:9 1:1\n", "42: label 'NULL'"),
        ("1 qid:9 1:1 2:1 3:1\n1 qid:8 1:1 2:NULL\n", "41: feature index 3 exceeds num_features=2"),
    ):
        path.write_text(good + text)
        with pytest.raises(ValueError, match=f":{message}"):
            read(path, 2)


def test_valid_lines_have_these_features(tmp_path):
    path = tmp_path / "good.txt"
    for line, values in [
        (b"0 qid:1 1:1 2:2 3:3", [1, 2, 3, 0]),
        (b"0 qid:1 4:4 2:2", [0, 2, 0, 4]),
        (b"0 qid:1 01:1 2:2", [1, 2, 0, 0]),
        (b"0 qid:1", [0, 0, 0, 0]),
        (b"0 qid:1 1:1# 2:2", [1, 0, 0, 0]),
        (b"\t0\tqid:1  1:-1.5e3\t 2:.5 3:+2. \r\n", [-1500, 0.5, 2, 0]),
        (b"0 qid:1 1:3.4028234663852886e38 2:-3e38", [3.4028235e38, -3e38, 0, 0]),
        (b"0 qid:1 1:1e-60 3:1", [0, 0, 1, 0]),
    ]:
        path.write_bytes(line)
        _, features = read(path, num_features=4)
        expected = np.array([values], np.float32)
        np.testing.assert_array_equal(features, expected[:, : features.shape[1]])
        assert not expected[:, features.shape[1] :].any()


def test_doc_ids_come_from_comments():
    for line, doc_id in [
        (b"0 qid:1 1:1 #docid = GX008-86-4444840 inc = 1 prob = 0.08", b"GX008-86-4444840"),
        (b"0 qid:1 1:1 # docid=a#b\r\n", b"a#b"),
        ("0 qid:1 1:1 #docid = \u00e9".encode(), "\u00e9".encode()),
        (b"0 qid:1 1:1 #docid =", b""),
        (b"0 qid:1 1:1 # other docid = x", b""),
        (b"0 qid:1 1:1", b""),
    ]:
        assert parse_head(line, 1, PLAIN).doc_id == doc_id


def test_query_ids_may_be_any_text_without_whitespace_and_blank_lines_and_comments_have_none():
    for query_id in ("7", "-", "qid:7", "a:b", "a#b", "#", "x_y", "\u00e9\u3000"):
        assert parse_head(f"0 qid:{query_id} 1:1".encode(), 1, PLAIN).query_id == query_id.encode()
    for line in (b"", b"\n", b" \t\r\n", b"#", b"  # 1 qid:1 1:1\n", b"#x"):
        assert parse_head(line, 1, PLAIN) is None


@pytest.mark.parametrize(("size", "form"), [(1, "{:.4f}"), (200, "{:.9e}"), (1 << 18, "{!r}")])
def test_documents_of_blocks_of_any_size_have_the_written_values(tmp_path, monkeypatch, form, size):
    monkeypatch.setattr(letor, "_BLOCK_BYTES", size)
    random = np.random.default_rng(0)
    values = random.normal(size=[100, 9]) * 10.0 ** random.integers(-30, 30, [100, 9]) * random.integers(0, 2, [100, 9])
    lines, expected = [], np.zeros([100, 9], np.float32)
    for row in range(100):
        texts = {index: form.format(float(values[row, index])) for index in random.permutation(9) if values[row, index]}
        expected[row, [*texts]] = [float(text) for text in texts.values()]
        pairs = " ".join(f"{index + 1}:{text}" for index, text in texts.items())
        lines += [f"{row % 5} qid:q{row // 4} {pairs} #docid = d{row}", *[["", "# comment"], []][row % 2]]
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(["\n", "\r\n"][size == 1].join(lines).encode()))
    heads, features = read(tmp_path / "a.txt.gz")
    assert [(head.query_id, head.label) for head in heads] == [(b"q%d" % (row // 4), row % 5) for row in range(100)]
    np.testing.assert_array_equal(features, expected)


def test_features_are_read_unless_a_problem_is_named():
    source = random.Random(0)
    accepted = 0
    missing = {"n": 5, "-1": 7, "": 2, "0.2": 0.25}
    for number in range(2_000):
        text = list(" ".join(f"{i}:0.{i}5" for i in range(1, source.randint(2, 5))))
        for _ in range(source.randint(0, 3)):
            place = source.randrange(len(text))
            text[place : place + source.randint(0, 2)] = source.choice("0123:.  _+-naeX\t")
        format = [PLAIN, LetorFormat(first_index=0), LetorFormat(missing=missing)][number % 3]
        head = letor.Head(1, 0, b"", b"", "".join(text).encode())
        if letor._problem(head.features, format, None):
            if not any(piece.startswith("-0") for piece in "".join(text).split()):
                with pytest.raises(ValueError):
                    letor._parse_features([head], format)
            continue
        _, _, places, values = letor._parse_features([head], format)
        pairs = [piece.split(":") for piece in "".join(text).split()]
        assert places.tolist() == [int(index) - format.first_index for index, _ in pairs]
        tokens = {**(format.missing or {}), "n": np.nan}
        np.testing.assert_array_equal(values, [float(tokens.get(value, value)) for _, value in pairs])
        accepted += 1
    assert 500 < accepted < 1_900


def test_a_query_in_two_places_is_refused(tmp_path):
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for first, second, line in (
        ("0 qid:1 1:1\n0 qid:2 1:1", "0 qid:1 1:1", 1),
        ("0 qid:9 1:1", "0 qid:1 1:1\n0 qid:2 1:1\n0 qid:1 1:1", 3),
    ):
        paths[0].write_text(first)
        paths[1].write_text(second)
        message = f"{paths[1]}:{line}: duplicate query '1': its lines must be contiguous in one file"
        assert_refused(message, list, read_blocks(list(map(str, paths)), PLAIN))


def test_files_without_a_document_are_refused(tmp_path):
    (tmp_path / "1.txt").write_text("0 qid:1 1:1\n")
    for name, pack in (("2.txt", bytes), ("2.txt.gz", gzip.compress)):
        for text in (b"", b"\n", b"# a\n\n# b"):
            (tmp_path / name).write_bytes(pack(text))
            blocks = read_blocks([str(tmp_path / each) for each in ("1.txt", name)], PLAIN)
            assert_refused(f"{tmp_path / name}: the file has no documents", list, blocks)
