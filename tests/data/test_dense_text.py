"""The fast parser of dense rows returns the numbers of the exact parser, or None."""

import functools

import numpy as np
import pytest

from tfr_smooth.data import letor_parser
from tfr_smooth.data.dense_text import read_dense
from tfr_smooth.data.letor_parser import highest_index, read_queries

FORMATS = ["{:.4f}", "{:g}", "{:.9e}", "{:.0f}", "{!r}"]


@pytest.mark.parametrize("text_format", FORMATS)
def test_values_equal_those_parsed_by_python(text_format):
    random = np.random.RandomState(0)
    # With TensorFlow 2.15, numbers of more than 31 characters are left to the exact parser.
    scale = 10.0 ** (random.randint(-30, 30, (50, 7)) if "f" not in text_format else random.randint(-3, 9, (50, 7)))
    texts = [[text_format.format(float(v)) for v in row] for row in random.randn(50, 7) * scale]
    rows = [" ".join(f"{i}:{t}" for i, t in enumerate(row, 1)).encode() for row in texts]
    expected = np.array([[float(t) for t in row] for row in texts]).astype(np.float32)
    np.testing.assert_array_equal(read_dense(rows, 7), expected)


def test_whitespace_around_a_row_is_ignored():
    np.testing.assert_array_equal(read_dense([b" 1:1 2:2 ", b"1:3 2:4\r\n"], 2), [[1, 2], [3, 4]])


TOO_FEW_OR_MANY = [b"", b"1:1", b"1:1 2:2 3:3"]
OUT_OF_ORDER = [b"2:2 1:1", b"1:1 3:2", b"1.0:1 2:2"]
SPACES = [b"1:1  2:2", b"1:1\t2:2", b"1:1 2 2:", b"1:1:2 2"]
NO_FLOAT32 = [b"1:1 2:" + value for value in (b"nan", b"inf", b"1e39", b"1e999", b"0x10", b"1_0", b"", b"-", b"1-2")]


@pytest.mark.parametrize("row", [*TOO_FEW_OR_MANY, *OUT_OF_ORDER, *SPACES, *NO_FLOAT32])
def test_all_other_rows_are_left_to_the_exact_parser(row):
    assert read_dense([b"1:1 2:2", row], 2) is None
    assert read_dense([row], 2) is None


def test_indexes_start_at_the_given_first_index():
    np.testing.assert_array_equal(read_dense([b"0:5 1:6", b"0:7 1:8"], 2, 0), [[5, 6], [7, 8]])
    assert read_dense([b"0:5 1:6"], 2) is None and read_dense([b"1:5 2:6"], 2, 0) is None


@pytest.fixture
def dense_parser_for_all_queries(monkeypatch):
    """Uses the dense parser for queries of any size, or for none."""
    use = functools.partial(monkeypatch.setattr, letor_parser, "_DENSE_FROM")
    use(1)
    return use


def test_only_large_queries_use_the_dense_parser(tmp_path, monkeypatch):
    rows = {b"small": 10, b"large": letor_parser._DENSE_FROM // 4}
    path = tmp_path / "a.txt"
    path.write_text("".join(f"1 qid:{name.decode()} 1:1 2:2 3:3 4:4\n" * count for name, count in rows.items()))
    dense_sizes = []

    def recording(texts, *others):
        dense_sizes.append(len(texts))
        return read_dense(texts, *others)

    monkeypatch.setattr(letor_parser, "read_dense", recording)
    assert [len(q.labels) for q in read_queries([str(path)], 4)] == list(rows.values())
    assert dense_sizes == [rows[b"large"]]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_queries_are_the_same_with_the_dense_parser_and_threads(tmp_path, workers, dense_parser_for_all_queries):
    random = np.random.RandomState(1)
    lines = []
    for query in range(40):
        for _ in range(random.randint(1, 6)):
            kept = [i for i in range(1, 6) if query % 3 or random.rand() < 0.6]
            lines.append(f"1 qid:{query} " + " ".join(f"{i}:{random.randn():.3f}" for i in kept) + " # docid = x\n")
    path = tmp_path / "a.txt"
    path.write_text("".join(lines))
    assert highest_index([str(path)], workers=workers) == 5
    found = list(read_queries([str(path)], 5, workers=workers))
    dense_parser_for_all_queries(10**9)
    expected = list(read_queries([str(path)], 5))
    assert [q.query_id for q in found] == [q.query_id for q in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.features, other.features)
        np.testing.assert_array_equal(one.labels, other.labels)
        assert one.doc_ids == other.doc_ids


@pytest.mark.usefixtures("dense_parser_for_all_queries")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 qid:9 1:1 2:NULL\nNULL qid:9 1:1\n", ":41: value of feature 2: 'NULL'"),
        ("1 qid:9 1:1 2:1\nNULL qid:9 1:1\n", ":42: label 'NULL'"),
        ("1 qid:9 1:1 2:1 3:1\n1 qid:8 1:1 2:NULL\n", ":41: feature index 3 exceeds num_features=2"),
    ],
)
@pytest.mark.parametrize("workers", [0, 2])
def test_the_first_bad_line_raises_after_all_queries_before_it(tmp_path, text, message, workers):
    path = tmp_path / "a.txt"
    path.write_text("".join(f"0 qid:q{i // 4} 1:1 2:{i}\n" for i in range(40)) + text)
    queries = read_queries([str(path)], 2, workers=workers)
    assert [next(queries).query_id for _ in range(10)] == [b"q%d" % i for i in range(10)]
    with pytest.raises(ValueError, match=message):
        next(queries)


def test_threads_read_only_a_few_queries_ahead(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("".join(f"0 qid:{i} 1:1\n" for i in range(100)) + "NULL qid:x 1:1\n")
    queries = read_queries([str(path)], 1, workers=2)
    assert [next(queries).query_id for _ in range(50)] == [b"%d" % i for i in range(50)]
    queries.close()
