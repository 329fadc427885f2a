"""Records of TF-Ranking as `Lists`, and back."""

import gzip

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from tests.data.readers import as_numpy, assert_refused, example, integer, number, text
from tfr_smooth.data import from_arrays, from_table, read_records, write_records
from tfr_smooth.data.reading import records
from tfr_smooth.serving.servable import RankerInputs

NAN = float("nan")


def field(tag, payload):
    """One field of a message in protobuf's wire format: tag, length as a varint, bytes."""
    length, size = b"", len(payload)
    while size >= 128:
        length += bytes([size % 128 + 128])
        size //= 128
    return bytes([tag * 8 + 2]) + length + bytes([size]) + payload


def elwc(context, documents):
    """An ExampleListWithContext, assembled by hand; a document is raw bytes or features."""
    documents = [each if isinstance(each, bytes) else example(each) for each in documents]
    return b"".join(field(1, each) for each in documents) + field(2, example(context))


def sequence(context, documents):
    names = {name for each in documents for name in each}
    steps = {name: [each.get(name, tf.train.Feature()) for each in documents] for name in names}
    lists = tf.train.FeatureLists(
        feature_list={name: tf.train.FeatureList(feature=features) for name, features in steps.items()}
    )
    return tf.train.SequenceExample(context=tf.train.Features(feature=context), feature_lists=lists).SerializeToString()


KINDS = {"elwc": elwc, "sequence_example": sequence}


def write(path, *serialized):
    options = "GZIP" if path.suffix == ".gz" else ""
    with tf.io.TFRecordWriter(str(path), options) as writer:
        for record in serialized:
            writer.write(record)
    return path


def read(path, **options):
    return read_records(path, **{"query": "q", "label": "label", "cache_dir": path.parent / "cache", **options})


# The documents of two queries: prices and times may be missing, tags and sizes have any length.
LISTS = [
    (
        {"q": text(b"a"), "user": text(b"u"), "age": integer(30)},
        [
            {"label": integer(1), "price": number(0.5), "at": integer(7), "tags": text(b"x", b"y"), "e": number(1, 2)},
            {"label": integer(0), "tags": text(), "sizes": number(1.5), "e": number(3, 4)},
        ],
    ),
    (
        {"q": text("b/ü".encode())},
        [{"label": integer(2), "price": number(2), "at": integer(9), "sizes": number(3, 4), "e": number(5, 6)}],
    ),
]
INFERRED = {
    "user": [[b"u", b"u"], [b"", b""]],
    "age": [[30, 30], [NAN, 0]],
    "price": [[0.5, NAN], [2, 0]],
    "at": [[7, NAN], [9, 0]],
    "tags": [[[b"x", b"y"], [b"", b""]], [[b"", b""], [b"", b""]]],
    "sizes": [[[NAN, NAN], [1.5, NAN]], [[3, 4], [0, 0]]],
    "e": [[[1, 2], [3, 4]], [[5, 6], [0, 0]]],
}
SPECS = {
    "context_features": {"age": tf.io.FixedLenFeature([], tf.int64, -1)},
    "example_features": {
        "label": tf.io.FixedLenFeature([1], tf.int64),
        "price": tf.io.FixedLenFeature([1], tf.float32, [-1.0]),
        "tags": tf.io.VarLenFeature(tf.string),
        "at": tf.io.RaggedFeature(tf.int64),
        "e": tf.io.FixedLenFeature([2], tf.float32),
    },
}
SPECIFIED = {
    "age": [[30, 30], [-1, 0]],
    "price": [[[0.5], [-1]], [[2], [0]]],
    "tags": INFERRED["tags"],
    "at": [[[7], [NAN]], [[9], [0]]],
    "e": INFERRED["e"],
}


@pytest.mark.parametrize(("specs", "expected"), [({}, INFERRED), (SPECS, SPECIFIED)], ids=["inferred", "specs"])
@pytest.mark.parametrize("kind", KINDS)
def test_named_features_of_any_kind_become_columns(kind, specs, expected, tmp_path):
    path = write(tmp_path / ("r.gz" if specs else "r"), *(KINDS[kind](*each) for each in LISTS))
    lists = read(path, kind=kind, **specs)
    assert lists.query_ids.to_pylist() == ["a", "b/ü"] and set(lists.roles.features) == set(expected)
    ((inputs, labels),) = as_numpy(lists.batches(2))
    np.testing.assert_array_equal(labels, [[1, 0], [2, -1]])
    for column, values in expected.items():
        np.testing.assert_array_equal(inputs[column], values, err_msg=column)


def test_served_records_have_the_inputs_of_training(tmp_path):
    specs = {"price": tf.io.FixedLenFeature([1], tf.float32, [-1.0]), "e": tf.io.FixedLenFeature([2], tf.float32)}
    serialized = [elwc(*each) for each in LISTS]
    ((inputs, _),) = as_numpy(read(write(tmp_path / "r", *serialized), example_features=specs).batches(2))
    served, mask = RankerInputs(example_feature_spec=specs).parse_lists(tf.constant(serialized))
    np.testing.assert_array_equal(inputs["mask"], mask)
    for name in specs:
        np.testing.assert_array_equal(inputs[name][inputs["mask"]], served[name].numpy()[inputs["mask"]])


@pytest.mark.parametrize("kind", KINDS)
def test_records_without_ids_are_lists_of_their_own_and_numbered_features_are_in_order(kind, tmp_path):
    documents = [{"label": number(1), **{f"f_{index}": number(index) for index in range(12, 0, -1)}}]
    paths = [write(tmp_path / name, *[KINDS[kind]({}, documents)] * 2) for name in "ab"]
    lists = read_records(paths, query=None, label="label", stack=True, kind=kind, cache_dir=tmp_path)
    assert lists.query_ids.to_pylist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(lists.values("features"), [range(1, 13)] * 4)


def test_written_records_are_read_as_the_same_lists(tmp_path):
    frame = pd.DataFrame({"q": [3, 1, 3, 1], "label": [0.5, 1, 2, 0], "w": [1.0, 2, 2, 1], "id": list("abcd")})
    frame["number"], frame["text"], frame["user"] = [0.1, NAN, 2, 3e-45], ["x", None, "", "ü"], [5, 7, 5, 7]
    frame["set"], frame["vector"], frame["yes"] = [["a"], [], ["b", "c"], ["d"]], [[0.1, 1.0]] * 4, [True] * 4
    frame["date"] = pd.to_datetime(["2020-01-01", "2020-01-02", None, "1969-12-31"])
    frame["noon"] = (frame["date"] + pd.Timedelta(hours=21)).dt.tz_localize("Asia/Tokyo")  # noon in UTC
    roles = {"query": "q", "label": "label", "weight": "w", "document_id": "id"}
    lists = from_table(frame, **roles)
    parts, options = [lists.take([query]) for query in range(2)], {"context_features": ["user"]}
    paths = [write_records(part, tmp_path / f"r-{number}.gz", **options) for number, part in enumerate(parts)]
    assert gzip.decompress(paths[0].read_bytes()).count(b"user") == 1  # in the context
    found = read_records(paths, cache_dir=tmp_path, **roles)
    assert found.query_ids.to_pylist() == [3, 1] and set(found.roles.features) == set(lists.roles.features)
    for name in set(lists.roles.columns) - {"date", "noon"}:
        np.testing.assert_array_equal(found.values(name), lists.values(name), err_msg=name)
    seconds = np.float32([1577836800, NAN, 1577923200, -86400])
    np.testing.assert_array_equal(found.values("date"), seconds)
    np.testing.assert_array_equal(found.values("noon"), seconds + np.float32(12 * 3600))


def test_a_file_appears_when_all_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "_serialized", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_records(from_arrays(np.zeros([3, 1]), None, [1, 2, 3]), tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


GOOD = {"label": number(1), "x": number(1), "features": number(1, 2)}
B = {"q": text(b"b")}
BAD = [  # the second record, after one of the query 'a'
    (b"\x0a\xff", "must be a record of the kind 'elwc'."),
    (elwc(B, [GOOD, b"\x0a\xff"]), "must be a record of the kind 'elwc'."),
    (elwc(B, []), "the list must have at least one document, got none."),
    (elwc({}, [GOOD]), "feature 'q' must be query ids without missing values, got None in row 0."),
    (elwc({"q": text(b"a")}, [GOOD]), "query 'a' must be in one record only."),
    (elwc(B, [{**GOOD, "x": text(b"1")}]), "Name: <unknown>, Key: x, Index: 0."),
    (elwc({"q": text(b"\xff")}, [GOOD]), "feature 'q' must be UTF-8 text."),
    (elwc(B, [GOOD, {**GOOD, "x": number(1, 2)}]), "feature 'x' must have 1 values, got 2 in row"),
    (
        elwc(B, [{**GOOD, "label": number(-1)}]),
        "feature 'label' must be finite float32 numbers >= 0, got -1.0 in row 0.",
    ),
    (elwc(B, [{**GOOD, "x": number(np.inf)}]), "feature 'x' must be finite float32 numbers or missing, got inf in"),
    (elwc(B, [{**GOOD, "features": number(1, NAN)}]), "feature 'features' must be finite numbers, got nan in row 0."),
    (sequence(B, []), "the list must have at least one document, got none."),
]


@pytest.mark.parametrize("inferred_from", [1, 100])
def test_bad_records_are_refused_with_their_position(inferred_from, tmp_path, monkeypatch):
    monkeypatch.setattr(records, "_INFERRED_FROM", inferred_from)
    specs = {"x": tf.io.FixedLenFeature([], tf.float32), "features": tf.io.FixedLenFeature([2], tf.float32)}
    for case, (record, message) in enumerate(BAD, 1):
        kind = "sequence_example" if case == len(BAD) else "elwc"
        path = write(tmp_path / f"{case}", KINDS[kind]({"q": text(b"a")}, [GOOD]), record)
        with pytest.raises(ValueError) as raised:
            read(path, kind=kind, example_features=specs)
        assert str(raised.value).startswith(f"{path}:record 2: {message}")


def test_bad_files_and_arguments_are_refused(tmp_path):
    path = write(tmp_path / "r", elwc(*LISTS[0]), elwc(*LISTS[1]))
    assert_refused("`kind` must be one of 'elwc', 'sequence_example', got 'x'.", read, path, kind="x")
    assert_refused("`query` must be one of 'age', 'q', 'user', got 'label'.", read, path, query="label")
    with pytest.raises(ValueError, match="`example_features` must contain FixedLenFeature of shape"):
        read(path, example_features={"price": tf.io.FixedLenFeature([2, 2], tf.float32)})
    message = "`example_features` must not share names with the context or 'record', got ['user']."
    assert_refused(message, read, path, example_features={"user": tf.io.FixedLenFeature([], tf.string)})
    with pytest.raises(ValueError, match="column 'price' must have one value in query 'a'"):
        write_records(read(path), tmp_path / "new", context_features=["price"])
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ValueError, match="r:record 2: truncated record"):
        read(path)
    path.write_bytes(b"")
    assert_refused(f"{path}: must have at least one record, got none.", read, path)
