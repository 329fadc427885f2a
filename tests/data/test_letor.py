from __future__ import annotations

import pytest
import tensorflow as tf

from tests.data.readers import assert_refused
from tfr_smooth.data import LetorFormat, read_letor, read_split


def test_a_batch_contains_padded_queries(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("2 qid:x 1:0.5 3:2 #docid = d1 inc = 1\n1 qid:x 2:-1\n\n0 qid:y/\u00e9 3:7 # docid = d3\n")
    ((inputs, labels),) = read_letor(path, num_features=4).batches(5, ids=True)
    assert set(inputs) == {"features", "mask", "query_id", "doc_id"}
    assert labels.dtype == tf.float32
    assert labels.numpy().tolist() == [[2, 1], [0, -1]]
    assert inputs["mask"].numpy().tolist() == [[True, True], [True, False]]
    assert inputs["features"].numpy().tolist() == [[[0.5, 0, 2, 0], [0, -1, 0, 0]], [[0, 0, 7, 0], [0, 0, 0, 0]]]
    assert inputs["query_id"].numpy().tolist() == [b"x", "y/\u00e9".encode()]
    assert inputs["doc_id"].numpy().tolist() == [[b"d1", b""], [b"d3", b""]]
    assert_refused("`num_features` must be an integer >= 1 or None, got 0.", read_letor, path, num_features=0)


@pytest.fixture
def files(tmp_path):
    for part, labels in (("train", [0.5, 0]), ("valid", [2, 0]), ("test", [0, 0])):
        rows = (f"{label} qid:{part}{query} 1:1 {query + 1}:2\n" for query, label in enumerate(labels, 1))
        (tmp_path / part).write_text("".join(rows))
    return {part: tmp_path / part for part in ("train", "valid", "test")}


@pytest.mark.parametrize(("num_features", "width"), [(None, 3), (7, 7)])
def test_all_parts_get_the_same_number_of_features(files, num_features, width):
    parts = read_split(files, num_features=num_features)
    assert {part: (len(lists), lists.num_features) for part, lists in parts.items()} == dict.fromkeys(files, (2, width))


@pytest.mark.parametrize(
    ("part", "row", "num_features", "message"),
    [
        ("test", "1 qid:x 4:1", None, "test: {path}:3: feature index 4 exceeds num_features=3, the width of the trai"),
        ("test", "1.5 qid:x 1:1", None, "`test` must have labels that are whole numbers from 0 to 1023, "),
        ("valid", None, None, "`valid` must have a label above 0, got 0 for all 1 documents."),
        ("train", "", None, "train: `file_pattern` must match files with features, got none"),
    ],
)
def test_files_that_would_fail_later_are_refused(files, part, row, num_features, message):
    text = "0 qid:x 3:1\n" if row is None else files[part].read_text() + row if row else "1 qid:a\n"
    files[part].write_text(text)
    with pytest.raises(ValueError) as raised:
        read_split(files, num_features=num_features)
    assert str(raised.value).startswith(message.format(path=files[part]))


def test_the_format_applies_to_all_parts(files):
    for path in files.values():
        path.write_text("1 0:NULL 1:2 # 7\n")
    parts = read_split(files, format=LetorFormat(first_index=0, query_ids="comment", missing={"NULL": 0}))
    assert [lists.num_features for lists in parts.values()] == [2, 2, 2]
