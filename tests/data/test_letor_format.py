"""Variants of the LETOR format."""

import pytest

from tests.data.readers import assert_refused
from tfr_smooth.data import LetorFormat, read_letor


def write(path, text):
    path.write_text(text)
    return path


def read(path, reading=None, list_size=None, **arguments):
    """Maps each query id to its labels and features; the arguments are those of the format."""
    found = {}
    lists = read_letor(path, format=LetorFormat(**arguments), **(reading or {}))
    for inputs, labels in lists.batches(3, list_size=list_size, ids=True):
        for row, mask in enumerate(inputs["mask"].numpy()):
            features = inputs["features"].numpy()[row, mask]
            found[inputs["query_id"][row].numpy().decode()] = (labels.numpy()[row, mask].tolist(), features.tolist())
    return found


def message_of(path, **arguments):
    with pytest.raises(ValueError) as raised:
        read_letor(path, format=LetorFormat(**arguments))
    return str(raised.value)


QUERIES = {"934": ([1, 0], [[0.5, 0], [0.25, 0]]), "7": ([2], [[0, 3]])}


def test_query_ids_are_read_from_comments(tmp_path):
    """As in the data of Yandex's 2009 contest."""
    path = write(tmp_path / "a.txt", "1 1:0.5 # 934\n0 1:0.25#934 more\n# a comment\n2 2:3 # 7\n")
    assert read(path, query_ids="comment") == QUERIES
    assert message_of(path) == (
        f"{path}:1: no query id: expected 'qid:<text>' after the label, got '1:0.5'; "
        "`LetorFormat(query_ids='comment')` reads the first word after '#'"
    )
    path.write_text("1 1:0.5 # 934\n1 1:0.5\n")
    missing = "no query id: expected '# <text>' after the features with `query_ids='comment'`"
    assert message_of(path, query_ids="comment") == f"{path}:2: {missing}"
    path.write_text("1 qid:1 1:0.5 # 934\n")
    assert message_of(path, query_ids="comment").endswith("unexpected query id 'qid:1' with `query_ids='comment'`")


def test_indexes_may_start_at_0(tmp_path):
    path = write(tmp_path / "a.txt", "1 qid:a 0:5 1:6 2:7\n0 qid:a 2:8\n0 qid:b 0:1 1:2 2:3\n")
    expected = {"a": ([1, 0], [[5, 6, 7], [0, 0, 8]]), "b": ([0], [[1, 2, 3]])}
    assert read(path, first_index=0) == expected
    assert read_letor(path, format=LetorFormat(first_index=0)).num_features == 3
    assert message_of(path) == (
        f"{path}:1: feature index '0' is not an integer from 1 to 2147483647; "
        "`LetorFormat(first_index=0)` reads indices from 0"
    )
    with pytest.raises(ValueError, match=r":1: feature index 2 exceeds num_features=2 \(indices start at 0\)"):
        read(path, {"num_features": 2}, first_index=0)
    path.write_text("1 qid:a 0:5 0:6\n")
    assert message_of(path, first_index=0) == f"{path}:1: duplicate feature index 0"


NULLS = "1 qid:a 1:NULL 2:7 3:NULL\n0 qid:a 1:-3 2:8 3:NULL\n0 qid:a 1:4 2:NULL\n2 qid:b 1:1 2:nan 3:-inf\n"


def test_missing_values_are_replaced(tmp_path):
    path = write(tmp_path / "a.txt", NULLS)
    expected = [[[-1, 7, -1], [-3, 8, -1], [4, -1, 0]], [[1, 9.5, 0]]]
    for list_size in (None, 1):
        found = read(path, list_size=list_size, missing={"NULL": -1, "nan": 9.5, "-inf": 0})
        assert [features for _, features in found.values()] == [rows[:list_size] for rows in expected]
    for token in ("-999", "1.7976931348623157E308"):  # as in Istella's data
        path.write_text(f"1 qid:a 1:{token} 2:7\n0 qid:a 1:-3 2:8\n2 qid:b 1:1 2:{token}\n")
        assert read(path, missing={token: 0.5}) == {"a": ([1, 0], [[0.5, 7], [-3, 8]]), "b": ([2], [[1, 0.5]])}


def test_comments_may_be_latin_1(tmp_path):
    path, latin = tmp_path / "a.txt", "# caf\u00e9\n1 qid:a 1:1 #docid = caf\u00e9\n".encode("latin-1")
    path.write_bytes(latin + "0 qid:a 1:2 #docid = \u00e9\n".encode())
    lists = read_letor(path, cache_dir=tmp_path)
    assert [text.decode() for text in lists.values("document_id")] == ["caf\u00e9", "\u00e9"]


def test_documents_without_labels_get_label_0(tmp_path):
    for text in (
        "qid:a 1:1 # docid = d\n\n# comment\n1 qid:a 2:2\nqid:b 1:3\n",
        "-1 qid:a 1:1\nNULL qid:a 2:2\n? qid:b 1:3 # x\n",
    ):
        path = write(tmp_path / "a.txt", text)
        assert read(path, labeled=False) == {"a": ([0, 0], [[1, 0], [0, 2]]), "b": ([0], [[3, 0]])}
        assert "`LetorFormat(labeled=False)` reads" in message_of(path)


def test_labels_may_be_fractions(tmp_path):
    path = write(tmp_path / "a.txt", "0.25 qid:a 1:1\n2 qid:a 1:1\n-0 qid:a 1:1\n")
    assert read(path)["a"][0] == [0.25, 2, 0]
    summary = read_letor(path).summary()
    assert (summary.highest_label, summary.whole_labels) == (2, False)


def test_bad_options_are_refused():
    for options, message in (
        ({"query_ids": "text"}, "`query_ids` must be one of 'qid', 'comment', got 'text'."),
        ({"first_index": 2}, "`first_index` must be 0 or 1, got 2."),
        ({"labeled": 0}, "`labeled` must be True or False, got 0."),
        ({"missing": {"NULL": "a"}}, "`missing['NULL']` must be a number in [-3.40282e+38, 3.40282e+38], got 'a'."),
        ({"missing": {"N A": 0}}, "`missing` must have tokens without whitespace or '#', got 'N A'."),
    ):
        assert_refused(message, LetorFormat, **options)
