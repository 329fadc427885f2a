from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.data.readers import assert_refused, flat, letor_file
from tfr_smooth.data import LetorFormat, from_arrays, from_table, read_letor, read_split, write_letor

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path):
    return letor_file(tmp_path / "a.txt", [1 + i % 5 for i in range(20)])


def test_a_batch_contains_padded_queries(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("2 qid:x 1:0.5 3:2 #docid = d1 inc = 1\n1 qid:x 2:-1\n\n0 qid:y/\u00e9 3:7 # docid = d3\n")
    ((inputs, labels),) = read_letor(path, num_features=4).batches(5, ids=True)
    assert set(inputs) == {"features", "mask", "query_id", "doc_id"}
    assert labels.dtype == tf.float32
    assert labels.numpy().tolist() == [[2, 1], [0, -1]]
    assert inputs["mask"].numpy().tolist() == [[True, True], [True, False]]
    assert inputs["features"].numpy().tolist() == [
        [[0.5, 0, 2, 0], [0, -1, 0, 0]],
        [[0, 0, 7, 0], [0, 0, 0, 0]],
    ]
    assert inputs["query_id"].numpy().tolist() == [b"x", "y/\u00e9".encode()]
    assert inputs["doc_id"].numpy().tolist() == [[b"d1", b""], [b"d3", b""]]


def test_globs_lists_of_paths_and_gz_files_are_read(tmp_path):
    a = letor_file(tmp_path / "a.txt", [1, 2, 3])
    b = letor_file(tmp_path / "b.txt", [4, 5, 1], start=3)
    with gzip.open(tmp_path / "c.txt.gz", "wt") as file:
        file.write("0 qid:6 1:6\r\n0 qid:7 1:7")
    everything = str(tmp_path / "*.txt*")
    assert flat(read_letor(everything).batches(2)) == list(range(8))
    assert flat(read_letor([b, Path(a)]).batches(2)) == [3, 4, 5, 0, 1, 2]
    assert len(read_letor(everything)) == 8


# The messages of all bad lines are in test_letor_parser.py.
BAD = [
    ("NULL qid:9 1:1\n", "label 'NULL' is not a finite float32 number"),
    ("1 qid:9 1:nan\n", "value of feature 1: 'nan' is not a finite float32 number"),
    ("1 qid:8 1:1\n1 qid:7 1:1\n", "duplicate query '7': its lines must be contiguous in one file"),
]


def _bad_file(tmp_path, text):
    path = tmp_path / "bad.txt"
    path.write_text("1 qid:7 1:1\n" + text)
    return path, 1 + text.count("\n")


@pytest.mark.parametrize(("text", "message"), BAD)
@pytest.mark.parametrize("kwargs", [{}, {"num_features": 3}])
def test_bad_input_is_refused_at_the_call(tmp_path, text, message, kwargs):
    path, line = _bad_file(tmp_path, text)
    with pytest.raises(ValueError) as raised:
        read_letor(path, **kwargs)
    found, _, _ = str(raised.value).partition(";")  # without the hint
    assert found == f"{path}:{line}: {message}"


def test_the_first_document_may_have_no_features(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1 qid:1\n0 qid:2 2:0.5\n")
    ((features, _),) = read_letor(path).batches(2)
    np.testing.assert_array_equal(features["features"], [[[0.0, 0.0]], [[0.0, 0.5]]])


def test_files_without_features_are_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1 qid:1\n")
    with pytest.raises(ValueError, match="`file_pattern` must match files with features"):
        read_letor(path)


def test_lists_are_written_as_the_text_that_they_were_read_from(tmp_path):
    text = (
        "2 qid:x 1:0.5 2:0 3:3.4028234663852886e+38 #docid = d1\n0 qid:x 1:-1 2:1e-05 3:0\n1 qid:\u00e9 1:7 2:0 3:0\n"
    )
    (tmp_path / "a.txt").write_text(text)
    write_letor(read_letor(tmp_path / "a.txt", cache_dir=tmp_path), tmp_path / "b.txt")
    assert (tmp_path / "b.txt").read_text() == text


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        (from_arrays([[1.0]], None, ["a b"]), "`write_letor` must have ids without whitespace, got 'a b'."),
        (
            from_table({"q": [1], "x": [1.0]}, query="q", label=None),
            "`write_letor` must have one column 'features' and at most one label, got the columns ['q', 'x'].",
        ),
    ],
)
def test_lists_that_letor_text_cannot_hold_are_not_written(tmp_path, lists, message):
    assert_refused(message, write_letor, lists, tmp_path / "a.txt")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [0, 1.5, True])
def test_bad_arguments_are_refused(path, value):
    message = f"`num_features` must be an integer >= 1 or None, got {value!r}."
    assert_refused(message, read_letor, path, num_features=value)


def _model(width):
    features = tf.keras.Input([None, width], name="features")
    mask = tf.keras.Input([None], name="mask", dtype="bool")
    scores = tf.keras.layers.Dense(1)(features)
    model = tf.keras.Model({"features": features, "mask": mask}, tf.keras.layers.Reshape([-1])(scores))

    def loss(labels, scores):
        real = tf.cast(labels >= 0.0, tf.float32)
        return tf.reduce_sum(real * (labels - scores) ** 2, axis=-1)

    model.compile(tf.keras.optimizers.SGD(1e-5), loss)
    return model


@pytest.mark.parametrize("seed", [None, 1])
def test_a_model_can_be_fitted(path, seed):
    dataset = read_letor(path).batches(4, shuffle=True, seed=seed)
    history = _model(3).fit(dataset, epochs=3, validation_data=dataset, verbose=0)
    losses = history.history["loss"]
    assert len(losses) == 3 and losses[2] < losses[0]


@pytest.mark.parametrize("seed", [None, 1])
def test_a_model_can_be_fitted_to_an_endless_dataset(path, seed):
    dataset = read_letor(path).batches(4, shuffle=True, seed=seed, num_epochs=None)
    history = _model(3).fit(dataset, epochs=2, steps_per_epoch=5, verbose=0)
    assert len(history.history["loss"]) == 2


@pytest.mark.slow
def test_two_replicas_share_each_batch(path):
    # In a new process: logical devices must be configured before TensorFlow starts.
    program = f"""
        import json
        import tensorflow as tf
        from tfr_smooth.data import read_letor

        (cpu,) = tf.config.list_physical_devices("CPU")
        halves = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(cpu, halves)
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        for kwargs in ({{}}, {{"shuffle": True, "seed": 1, "num_epochs": 2}}):
            dataset = read_letor({path!r}, num_features=3).batches(6, list_size=5, **kwargs)
            assert dataset.options().experimental_distribute.auto_shard_policy == (
                tf.data.experimental.AutoShardPolicy.DATA
            )
            batches = []
            for inputs, labels in strategy.experimental_distribute_dataset(dataset):
                parts = strategy.experimental_local_results(inputs["features"])
                batches.append([part[:, 0, 0].numpy().astype(int).tolist() for part in parts])
            print("batches", json.dumps(batches))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    plain, shuffled = (json.loads(line[8:]) for line in done.stdout.splitlines() if line.startswith("batches"))
    for batches, epochs in ((plain, 1), (shuffled, 2)):
        seen = [query for parts in batches for part in parts for query in part]
        assert sorted(seen) == sorted(list(range(20)) * epochs)
        assert [len(part) for part in batches[0]] == [3, 3]


@pytest.fixture
def mq2008():
    folder = os.environ.get("TFR_SMOOTH_LETOR_DIR")
    if not folder:
        pytest.skip("set TFR_SMOOTH_LETOR_DIR to a folder that contains MQ2008")
    return Path(folder) / "MQ2008"


def test_mq2008_has_its_published_size(mq2008):
    summary = read_letor(str(mq2008 / "Fold*" / "test.txt*")).summary()
    assert summary[:6] == (784, 15_211, 46, 121, 2.0, True)
    queries = [len(read_letor(str(mq2008 / "Fold1" / f"{part}.txt*"))) for part in ("train", "vali", "test")]
    assert queries == [471, 157, 156]


def test_mq2008_reads_with_ids_and_labels(mq2008):
    dataset = read_letor(str(mq2008 / "Fold*" / "test.txt*"), num_features=46).batches(64, ids=True)
    documents, queries, grades = 0, set(), np.zeros(3, int)
    for inputs, labels in dataset:
        real = inputs["mask"].numpy()
        documents += real.sum()
        queries.update(inputs["query_id"].numpy().tolist())
        grades += np.bincount(labels.numpy()[real].astype(int), minlength=3)
        features = inputs["features"].numpy()[real]
        assert features.min() >= 0 and features.max() <= 1
        assert all(name.startswith(b"GX") for name in inputs["doc_id"].numpy()[real])
    assert documents == 15_211 and len(queries) == 784
    assert grades.tolist() == [12_279, 2_001, 931]


@pytest.fixture
def files(tmp_path):
    for part, labels in (("train", [0.5, 0]), ("valid", [2, 0]), ("test", [0, 0])):
        rows = (f"{label} qid:{part}{query} 1:1 {query + 1}:2\n" for query, label in enumerate(labels, 1))
        (tmp_path / part).write_text("".join(rows))
    return {part: tmp_path / part for part in ("train", "valid", "test")}


@pytest.mark.parametrize(("num_features", "width"), [(None, 3), (7, 7)])
def test_all_parts_get_the_same_number_of_features(files, num_features, width):
    found = read_split(files, num_features=num_features)
    assert {part: (len(each), each.num_features) for part, each in found.items()} == dict.fromkeys(files, (2, width))


@pytest.mark.parametrize(
    ("part", "row", "num_features", "message"),
    [
        (
            "test",
            "1 qid:x 4:1",
            None,
            "test: {path}:3: feature index 4 exceeds num_features=3, the width of the training",
        ),
        ("valid", "1 qid:x 9:1", 8, "valid: {path}:3: feature index 9 exceeds num_features=8"),
        ("train", "1 qid:x 9:1", 8, "train: {path}:3: feature index 9 exceeds num_features=8"),
        ("test", "1.5 qid:x 1:1", None, "`test` must have labels that are whole numbers from 0 to 1023, "),
        ("valid", "1024 qid:x 1:1", None, "`valid` must have labels that are whole numbers from 0 to 1023, "),
        ("valid", "x qid:x 1:1", None, "valid: {path}:3: label 'x' is not a finite float32 number"),
        ("train", None, None, "`train` must have a label above 0, got 0 for all 1 documents."),
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
    found = read_split(files, format=LetorFormat(first_index=0, query_ids="comment", missing={"NULL": 0}))
    assert [each.num_features for each in found.values()] == [2, 2, 2]
