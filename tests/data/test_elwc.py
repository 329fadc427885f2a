"""Conversion of LETOR text to TF-Ranking's records and back."""

import gzip
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tests.data.readers import Stop, assert_refused, example, integer, number, stopping_after, text
from tfr_smooth import data
from tfr_smooth.data import convert, elwc
from tfr_smooth.data.letor_parser import read_queries

# The feature names of TF-Ranking's example data.
NUMBERED = data.ElwcSchema(features="custom_features_{}")
ROOT = pathlib.Path(__file__).absolute().parents[2]

LETOR = """\
# a comment line
2 qid:q/ü#1 1:0.1 2:-3e-38 3:16777217 #docid = GX-1 inc = 1
0 qid:q/ü#1 3:1e-45
1.5 qid:7 1:3.4028234e38 2:0.3333333333 #docid = d
0 qid:7 1:-0.0
4 qid:8 2:1
"""


@pytest.fixture
def letor(tmp_path):
    path = tmp_path / "in.txt"
    path.write_text(LETOR, encoding="utf-8")
    return path


def queries(path, num_features=3):
    return [
        (query.query_id, query.features.tobytes(), query.labels.tobytes(), query.doc_ids)
        for query in read_queries([str(path)], num_features)
    ]


def field(tag, payload):
    """One field of a message in protobuf's wire format: tag, length as a varint, bytes."""
    length, size = b"", len(payload)
    while size >= 128:
        length += bytes([size % 128 + 128])
        size //= 128
    return bytes([tag * 8 + 2]) + length + bytes([size]) + payload


def write(path, *records):
    """Writes a TFRecord file; a record is (context features, features of each document), or raw bytes."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            if not isinstance(record, bytes):
                context, documents = record
                record = b"".join(field(1, example(d)) for d in documents) + field(2, example(context))
            writer.write(record)
    return path


def records(paths):
    return list(tf.data.TFRecordDataset([str(path) for path in paths]).as_numpy_iterator())


@pytest.mark.parametrize("features", ["custom_features_{}", "x"])
@pytest.mark.parametrize("num_shards", [1, 2, 3])
def test_round_trip_keeps_every_bit(letor, tmp_path, features, num_shards):
    schema = data.ElwcSchema(features=features)
    paths = data.letor_to_tfrecord(letor, tmp_path / "r", schema=schema, num_shards=num_shards)
    assert len(paths) == num_shards and sorted(tmp_path.glob("r*")) == sorted(paths)
    data.tfrecord_to_letor(paths, tmp_path / "out.txt", schema=schema)
    assert queries(tmp_path / "out.txt") == queries(letor)
    again = data.letor_to_tfrecord(tmp_path / "out.txt", tmp_path / "again", schema=schema)
    assert records(again) == records(paths)


def test_round_trip_keeps_the_synthetic_data_set(tmp_path):
    source = data.write_synthetic_letor(tmp_path, num_queries=(30, 2, 2))["train"]
    paths = data.letor_to_tfrecord(source, tmp_path / "train.tfrecord", num_shards=4)
    data.tfrecord_to_letor(str(tmp_path / "train.tfrecord-*"), tmp_path / "out.txt")
    assert queries(tmp_path / "out.txt", 32) == queries(source, 32)
    sizes = [len(records([path])) for path in paths]
    assert sum(sizes) == 30 and set(sizes) == {7, 8}


def test_a_record_follows_the_wire_format(letor, tmp_path):
    """Compares with bytes assembled by hand."""
    (record, *_) = records(data.letor_to_tfrecord(letor, tmp_path / "r", schema=data.ElwcSchema(features="x")))
    first = example({"x": number(0.1, -3e-38, 16777217), "utility": number(2), "doc_id": text(b"GX-1")})
    second = example({"x": number(0, 0, 1e-45), "utility": number(0)})
    context = example({"query_id": text("q/ü#1".encode())})
    by_hand = field(1, first) + field(1, second) + field(2, context)
    # The entries of a map have no fixed order: compare field by field.
    ours = elwc._message_class().FromString(record)
    assert [tf.train.Example.FromString(e) for e in ours.examples] == [
        tf.train.Example.FromString(e) for e in (first, second)
    ]
    assert tf.train.Example.FromString(ours.context) == tf.train.Example.FromString(context)
    assert ours.SerializeToString() == record and len(record) == len(by_hand)


def test_tensorflow_serving_reads_the_records(letor, tmp_path):
    input_pb2 = pytest.importorskip(
        "tensorflow_serving.apis.input_pb2", reason="tensorflow-serving-api is not installed on this stack"
    )
    (_, record, _) = records(data.letor_to_tfrecord(letor, tmp_path / "r"))
    parsed = input_pb2.ExampleListWithContext.FromString(record)
    assert [e.features.feature["utility"].float_list.value[:] for e in parsed.examples] == [[1.5], [0.0]]
    assert parsed.context.features.feature["query_id"].bytes_list.value[:] == [b"7"]


def test_feature_spec_parses_the_written_records(letor, tmp_path):
    for schema in (NUMBERED, data.ElwcSchema(features="x")):
        (record, *_) = records(data.letor_to_tfrecord(letor, tmp_path / "r", schema=schema))
        examples = list(elwc._message_class().FromString(record).examples)
        parsed = tf.io.parse_example(examples, schema.feature_spec(num_features=3))
        values = np.concatenate([parsed[name].numpy() for name in schema.feature_spec(3)], axis=1)
        np.testing.assert_array_equal(values, next(read_queries([str(letor)], 3)).features)


def test_files_without_features_are_refused(tmp_path):
    (tmp_path / "in.txt").write_text("1 qid:1\n")
    with pytest.raises(ValueError, match=r"`source` must contain features, got none in .*in\.txt"):
        data.letor_to_tfrecord(tmp_path / "in.txt", tmp_path / "r")


def test_num_features_sets_the_width_of_the_records(letor, tmp_path):
    schema = data.ElwcSchema(features="x")
    (record, *_) = records(data.letor_to_tfrecord(letor, tmp_path / "r", schema=schema, num_features=5))
    (example, _) = elwc._message_class().FromString(record).examples
    assert len(tf.train.Example.FromString(example).features.feature["x"].float_list.value) == 5
    with pytest.raises(ValueError, match=r"in.txt:2: feature index 3 exceeds num_features=2"):
        data.letor_to_tfrecord(letor, tmp_path / "r2", num_features=2)


def test_records_of_other_writers_are_converted(tmp_path):
    """Integer labels and ids, missing features, and no query id."""
    path = write(
        tmp_path / "r",
        ({"query_id": integer(-5)}, [{"utility": integer(3), "custom_features_2": integer(7)}]),
        ({}, [{"utility": number(0.0), "custom_features_10": number(1), "custom_features_9": number(2)}]),
    )
    data.tfrecord_to_letor(path, tmp_path / "out.txt", schema=NUMBERED)
    assert (tmp_path / "out.txt").read_text() == "3 qid:-5 2:7\n0 qid:record-2 9:2 10:1\n"


def test_the_file_name_selects_compressed_text(letor, tmp_path):
    paths = data.letor_to_tfrecord(letor, tmp_path / "r")
    data.tfrecord_to_letor(paths, tmp_path / "out.txt.gz")
    data.tfrecord_to_letor(paths, tmp_path / "out.txt")
    assert gzip.decompress((tmp_path / "out.txt.gz").read_bytes()) == (tmp_path / "out.txt").read_bytes()


def test_the_file_name_selects_compressed_records(letor, tmp_path):
    """The decompressed content is that of the plain file."""
    plain = data.letor_to_tfrecord(letor, tmp_path / "a.tfrecord", num_shards=2)
    packed = data.letor_to_tfrecord(letor, tmp_path / "b.tfrecord.gz", num_shards=2)
    assert [path.name for path in packed] == ["b.tfrecord-00000-of-00002.gz", "b.tfrecord-00001-of-00002.gz"]
    assert [gzip.decompress(path.read_bytes()) for path in packed] == [path.read_bytes() for path in plain]
    data.tfrecord_to_letor(packed, tmp_path / "out.txt")
    assert queries(tmp_path / "out.txt") == queries(letor)


GOOD = {"utility": number(1), "custom_features_1": number(1)}


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (b"\x0a\xff", "not an ExampleListWithContext"),
        (({}, []), "the list has no documents"),
        (({}, [GOOD, {"custom_features_1": number(1)}]), "missing label 'utility'"),
        (({}, [{"utility": number(-1)}]), "label -1 is negative, which marks padding"),
        (({}, [{"utility": number(1, 2)}]), "feature 'utility' must contain one number, got 2"),
        (({}, [{"utility": text(b"1")}]), "feature 'utility' must contain one number, got 0"),
        (
            ({}, [{**GOOD, "custom_features_2": number(float("nan"))}]),
            "feature 'custom_features_2' must contain finite",
        ),
        (({}, [{**GOOD, "custom_features_2": integer(2**24 + 1)}]), "feature 'custom_features_2' must contain finite"),
        (({}, [{**GOOD, "doc_id": text(b"a b")}]), "'doc_id' must not contain whitespace, got 'a b'"),
        (({"query_id": text(b"\xff")}, [GOOD]), "'query_id' must be UTF-8 text"),
        (({"query_id": text(b"a", b"b")}, [GOOD]), "'query_id' must contain one string or integer, got 2"),
        (({"query_id": text(b"first")}, [GOOD]), "duplicate query 'first'"),
        (({"user": text(b"u")}, [{**GOOD, "price": number(1)}]), "features not in the schema: 'price', 'user'"),
    ],
)
def test_records_that_letor_cannot_represent_raise_an_error_with_their_position(record, problem, tmp_path):
    path = write(tmp_path / "r", ({"query_id": text(b"first")}, [GOOD]), record)
    (tmp_path / "out.txt").write_text("old content")
    with pytest.raises(ValueError, match="r:2: ") as raised:
        data.tfrecord_to_letor(path, tmp_path / "out.txt", schema=NUMBERED)
    assert problem in str(raised.value)
    assert (tmp_path / "out.txt").read_text() == "old content"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.txt", "r"]


def test_damaged_and_empty_files_are_refused(tmp_path):
    path = write(tmp_path / "r", ({}, [GOOD]), ({}, [GOOD]))
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ValueError, match="r:2: "):
        data.tfrecord_to_letor(path, tmp_path / "out.txt", schema=NUMBERED)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="r:1: the file has no records"):
        data.tfrecord_to_letor(path, tmp_path / "out.txt")


def test_other_features_are_dropped_on_request(tmp_path):
    path = write(tmp_path / "r", ({"user": text(b"u")}, [GOOD]))
    data.tfrecord_to_letor(path, tmp_path / "out.txt", schema=NUMBERED, drop_others=True)
    assert (tmp_path / "out.txt").read_text() == "1 qid:record-1 1:1\n"


def test_an_interrupted_conversion_resumes_after_the_last_finished_file(letor, tmp_path):
    with pytest.raises(Stop):
        data.letor_to_tfrecord(letor, tmp_path / "r", num_shards=3, progress=stopping_after(2))
    first = tmp_path / "r-00000-of-00003"
    assert sorted(tmp_path.glob("*r-*")) == [first]
    written = first.stat().st_mtime_ns
    calls = []
    paths = data.letor_to_tfrecord(letor, tmp_path / "r", num_shards=3, progress=lambda *done: calls.append(done))
    assert calls == [(2, 3), (3, 3)] and first.stat().st_mtime_ns == written
    assert records(paths) == records(data.letor_to_tfrecord(letor, tmp_path / "whole"))
    assert not list(tmp_path.glob(".*"))


def test_an_interrupted_conversion_starts_over_with_other_arguments(letor, tmp_path):
    with pytest.raises(Stop):
        data.letor_to_tfrecord(letor, tmp_path / "r", num_shards=3, progress=stopping_after(2))
    calls = []
    schema = data.ElwcSchema(features="x")
    data.letor_to_tfrecord(
        letor, tmp_path / "r", num_shards=3, schema=schema, progress=lambda done, _: calls.append(done)
    )
    assert calls == [1, 2, 3]


def test_another_number_of_shards_is_refused(letor, tmp_path):
    data.letor_to_tfrecord(letor, tmp_path / "r", num_shards=3)
    for target in ("r", "r.gz"):
        with pytest.raises(ValueError, match=r"must match the existing files, got 2 and .*of-00003"):
            data.letor_to_tfrecord(letor, tmp_path / target, num_shards=2)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"num_shards": 0}, "`num_shards` must be an integer >= 1, got 0."),
        ({"num_shards": 4}, "`num_shards` must be at most the number of queries, 3, got 4."),
        ({"num_features": 0}, "`num_features` must be an integer >= 1, got 0."),
    ],
)
def test_bad_arguments_are_refused(arguments, problem, letor, tmp_path):
    assert_refused(problem, data.letor_to_tfrecord, letor, tmp_path / "r", **arguments)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"label": "query_id"}, "`label` must be a unique, non-empty name, got 'query_id'."),
        ({"doc_id": ""}, "`doc_id` must be a unique, non-empty name, got ''."),
        ({"features": "{}{}"}, "`features` must contain '{}' at most once, got '{}{}'."),
    ],
)
def test_bad_schemas_are_refused(arguments, problem):
    assert_refused(problem, data.ElwcSchema, **arguments)


def test_the_command_converts_in_both_directions(letor, tmp_path, capsys):
    arguments = ["letor_to_tfrecord", str(letor), f"--output={tmp_path / 'r'}", "--num_shards=2", "--label=grade"]
    assert convert.main(arguments) == 0
    printed = capsys.readouterr()
    assert "3 queries of 3" in printed.err and "r-00001-of-00002" in printed.out
    out = tmp_path / "out.txt"
    assert convert.main(["tfrecord_to_letor", str(tmp_path / "r-*"), f"--output={out}", "--label=grade"]) == 0
    assert queries(out) == queries(letor)
    assert convert.main(["tfrecord_to_letor", str(tmp_path / "r-*"), f"--output={out}"]) == 1
    assert "r-00000-of-00002:1: missing label 'utility'" in capsys.readouterr().err


@pytest.mark.slow
def test_the_module_runs_as_a_program(letor, tmp_path):
    program = [sys.executable, "-m", "tfr_smooth.data.convert", "letor_to_tfrecord", str(letor)]
    done = subprocess.run(
        [*program, f"--output={tmp_path / 'r'}"], capture_output=True, text=True, cwd=ROOT, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "3 queries of 3" in done.stderr and done.stdout.startswith(f"Wrote {tmp_path / 'r'}")
