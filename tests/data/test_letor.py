from __future__ import annotations

import gzip
import itertools
import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.data.readers import assert_refused, flat, order, write_letor
from tfr_smooth.data import letor, read_letor, scan_letor
from tfr_smooth.data.batches import prefetched, share_by_data

ROOT = Path(__file__).parents[2]
BY_DATA = tf.data.experimental.AutoShardPolicy.DATA


@pytest.fixture
def path(tmp_path):
    return write_letor(tmp_path / "a.txt", [1 + i % 5 for i in range(20)])


def test_a_batch_contains_padded_queries(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("2 qid:x 1:0.5 3:2 #docid = d1 inc = 1\n1 qid:x 2:-1\n\n0 qid:y/\u00e9 3:7 # docid = d3\n")
    ((inputs, labels),) = read_letor(path, batch_size=5, num_features=4, return_ids=True)
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


@pytest.mark.parametrize("list_size", [1, 3, 9])
def test_list_size_truncates_and_pads(path, list_size):
    queries = 0
    dataset = read_letor(path, batch_size=4, num_features=3, list_size=list_size, return_ids=True)
    for inputs, labels in dataset:
        assert labels.shape == (4, list_size)
        for query in range(4):
            kept = min(1 + queries % 5, list_size)
            places = inputs["features"].numpy()[query, :kept, 1].tolist()
            assert places == list(range(kept))
            assert inputs["mask"].numpy()[query].tolist() == [i < kept for i in range(list_size)]
            assert inputs["doc_id"].numpy()[query].tolist() == [
                b"d%d" % i if i < kept else b"" for i in range(list_size)
            ]
            assert (labels.numpy()[query, kept:] == -1).all()
            assert not inputs["features"].numpy()[query, kept:].any()
            queries += 1
    assert queries == 20


def test_lists_are_padded_to_the_longest_of_the_batch(path):
    dataset = read_letor(path, batch_size=3)
    assert [labels.shape[1] for _, labels in dataset] == [3, 5, 4, 5, 5, 3, 5]


@pytest.mark.parametrize(
    "kwargs",
    [{}, {"shuffle_buffer": 5}, {"shuffle_buffer": 5, "seed": 1}, {"cache": True}],
    ids=["plain", "shuffled", "seeded", "cached"],
)
@pytest.mark.parametrize("list_size", [None, 7])
@pytest.mark.parametrize("drop_remainder", [False, True])
def test_datasets_have_static_shapes(path, kwargs, list_size, drop_remainder):
    dataset = read_letor(
        path,
        batch_size=3,
        list_size=list_size,
        drop_remainder=drop_remainder,
        return_ids=True,
        **kwargs,
    )
    batch = 3 if drop_remainder else None
    assert dataset.element_spec == (
        {
            "features": tf.TensorSpec([batch, list_size, 3], tf.float32),
            "mask": tf.TensorSpec([batch, list_size], tf.bool),
            "query_id": tf.TensorSpec([batch], tf.string),
            "doc_id": tf.TensorSpec([batch, list_size], tf.string),
        },
        tf.TensorSpec([batch, list_size], tf.float32),
    )
    assert len(order(dataset)) == (6 if drop_remainder else 7)


def test_globs_lists_of_paths_and_gz_files_are_read(tmp_path):
    a = write_letor(tmp_path / "a.txt", [1, 2, 3])
    b = write_letor(tmp_path / "b.txt", [4, 5, 1], start=3)
    with gzip.open(tmp_path / "c.txt.gz", "wt") as file:
        file.write("0 qid:6 1:6\r\n0 qid:7 1:7")
    everything = str(tmp_path / "*.txt*")
    assert flat(read_letor(everything, batch_size=2)) == list(range(8))
    assert flat(read_letor([b, Path(a)], batch_size=2)) == [3, 4, 5, 0, 1, 2]
    assert scan_letor(everything).queries == 8


def test_queries_keep_the_order_of_the_file_unless_shuffled(path):
    assert flat(read_letor(path, batch_size=3, num_epochs=2)) == list(range(20)) * 2


@pytest.mark.parametrize("seed", [None, 0, 5])
@pytest.mark.parametrize("cache", [False, True])
def test_each_epoch_contains_every_query_once_in_a_new_order(path, seed, cache):
    dataset = read_letor(path, batch_size=3, shuffle_buffer=50, seed=seed, num_epochs=3, cache=cache)
    batches = order(dataset)
    assert [len(batch) for batch in batches] == [3, 3, 3, 3, 3, 3, 2] * 3
    queries = list(itertools.chain(*batches))
    epochs = [queries[i : i + 20] for i in (0, 20, 40)]
    assert all(sorted(epoch) == list(range(20)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in [*epochs, list(range(20))]}) == 4


def test_a_small_buffer_shuffles_locally(path):
    queries = flat(read_letor(path, batch_size=3, shuffle_buffer=4, seed=1))
    assert sorted(queries) == list(range(20)) != queries
    assert all(query <= place + 3 for place, query in enumerate(queries))


@pytest.mark.parametrize(
    ("cache", "buffer"), [pytest.param(False, 4, marks=pytest.mark.slow), (False, 100), (True, 100)]
)
def test_a_resumed_run_reads_the_batches_of_an_uninterrupted_one(path, cache, buffer):
    kwargs = {"batch_size": 3, "shuffle_buffer": buffer, "seed": 7, "cache": cache}
    whole = order(read_letor(path, num_epochs=4, **kwargs))
    tf.random.set_seed(99)  # Must have no effect.
    try:
        endless = read_letor(path, num_epochs=None, first_epoch=1, **kwargs)
        tf.random.set_seed(98)
        for first in range(4):
            resumed = read_letor(path, num_epochs=4 - first, first_epoch=first, **kwargs)
            assert order(resumed) == whole[7 * first :]
        assert order(endless.take(21)) == whole[7:]
    finally:
        tf.random.set_seed(None)


@pytest.mark.slow
def test_the_order_depends_on_both_seed_and_epoch(path):
    orders = {
        (seed, epoch): tuple(flat(read_letor(path, batch_size=9, shuffle_buffer=50, seed=seed, first_epoch=epoch)))
        for seed in (0, 2**31 - 3, 2**32 - 1)
        for epoch in (0, 1)
    }
    assert len(set(orders.values())) == 6


def test_passes_over_a_dataset_differ_without_a_seed_and_repeat_with_one(path):
    fresh = read_letor(path, batch_size=3, shuffle_buffer=50)
    assert len({tuple(flat(fresh)) for _ in range(4)}) == 4
    seeded = read_letor(path, batch_size=3, shuffle_buffer=50, seed=1)
    assert len({tuple(flat(seeded)) for _ in range(4)}) == 1


@pytest.mark.parametrize("kwargs", [{}, {"shuffle_buffer": 9}, {"shuffle_buffer": 9, "seed": 1}, {"cache": True}])
@pytest.mark.parametrize(("batch_size", "drop_remainder", "batches"), [(3, False, 14), (3, True, 12), (50, True, 0)])
def test_the_number_of_batches_is_known_if_the_file_was_read(path, kwargs, batch_size, drop_remainder, batches):
    dataset = read_letor(path, batch_size=batch_size, num_epochs=2, drop_remainder=drop_remainder, **kwargs)
    assert int(dataset.cardinality()) == len(list(dataset)) == batches


def test_the_number_of_batches_is_unknown_if_the_file_was_not_read(path):
    dataset = read_letor(path, batch_size=3, num_features=3)
    assert int(dataset.cardinality()) == tf.data.UNKNOWN_CARDINALITY


@pytest.mark.parametrize("kwargs", [{}, {"shuffle_buffer": 9}, {"shuffle_buffer": 9, "seed": 1}])
def test_an_endless_dataset_has_infinite_cardinality(path, kwargs):
    dataset = read_letor(path, batch_size=20, num_epochs=None, **kwargs)
    assert int(dataset.cardinality()) == tf.data.INFINITE_CARDINALITY
    epochs = order(dataset.take(5))
    assert [sorted(epoch) for epoch in epochs] == [list(range(20))] * 5


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("cache", [False, True])
def test_the_cache_parses_once(path, monkeypatch, seed, cache):
    parsed = []

    def counting(*args, **kwargs):
        for query in read_queries(*args, **kwargs):
            parsed.append(query.query_id)
            yield query

    read_queries = letor.read_queries
    monkeypatch.setattr(letor, "read_queries", counting)
    dataset = read_letor(
        path,
        batch_size=3,
        num_features=3,
        shuffle_buffer=9,
        seed=seed,
        num_epochs=3,
        cache=cache,
    )
    assert len(parsed) == (20 if cache else 0)
    for _ in range(2):
        assert sorted(flat(dataset)) == sorted(list(range(20)) * 3)
    assert len(parsed) == (20 if cache else 120)


def test_reading_is_lazy(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("".join(f"0 qid:{i} 1:1\n" for i in range(3000)) + "NULL qid:x 1:1\n")
    dataset = read_letor(path, batch_size=2, num_features=1)
    assert len(list(dataset.take(3))) == 3


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
@pytest.mark.parametrize("seed", [None, 1])
def test_bad_input_raises_an_error_from_the_dataset(tmp_path, text, message, seed):
    path, line = _bad_file(tmp_path, text)
    dataset = read_letor(path, batch_size=2, num_features=3, shuffle_buffer=9, seed=seed)
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        list(dataset)
    assert f"ValueError: {path}:{line}: {message}" in str(raised.value)


@pytest.mark.parametrize(("text", "message"), BAD)
@pytest.mark.parametrize("kwargs", [{}, {"cache": True}, {"cache": True, "num_features": 3}])
def test_bad_input_raises_an_error_from_the_first_scan(tmp_path, text, message, kwargs):
    path, line = _bad_file(tmp_path, text)
    with pytest.raises(ValueError) as raised:
        read_letor(path, batch_size=2, **kwargs)
    found, _, _ = str(raised.value).partition(";")  # without the hint
    assert found == f"{path}:{line}: {message}"


def test_bad_input_raises_an_error_from_fit(tmp_path):
    path, _ = _bad_file(tmp_path, "1 qid:7 4:1\n")
    dataset = read_letor(path, batch_size=2, num_features=3)
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        _model(3).fit(dataset, verbose=0)
    assert f"{path}:2: feature index 4 exceeds num_features=3" in str(raised.value)


def test_a_deleted_file_raises_an_error(path):
    dataset = read_letor(path, batch_size=2, num_features=3)
    os.remove(path)
    with pytest.raises(tf.errors.OpError, match=r"a\.txt"):
        list(dataset)


@pytest.mark.parametrize("options", [{}, {"cache": True}])
def test_the_first_document_may_have_no_features(tmp_path, options):
    path = tmp_path / "a.txt"
    path.write_text("1 qid:1\n0 qid:2 2:0.5\n")
    ((features, _),) = read_letor(path, batch_size=2, **options)
    np.testing.assert_array_equal(features["features"], [[[0.0, 0.0]], [[0.0, 0.5]]])


def test_files_without_features_are_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1 qid:1\n")
    with pytest.raises(ValueError, match="`file_pattern` must match files with features"):
        read_letor(path, batch_size=1)


@pytest.mark.parametrize(
    ("argument", "value", "expected"),
    [
        ("batch_size", 0, "an integer >= 1"),
        ("batch_size", None, "an integer >= 1"),
        ("num_features", 0, "an integer >= 1 or None"),
        ("list_size", 0, "an integer >= 1 or None"),
        ("shuffle_buffer", -1, "an integer >= 0"),
        ("shuffle_buffer", None, "an integer >= 0"),
        ("seed", -1, "an integer >= 0 or None"),
        ("num_epochs", 0, "an integer >= 1 or None"),
        ("first_epoch", -1, "an integer >= 0"),
        ("first_epoch", None, "an integer >= 0"),
        ("drop_remainder", 1, "True or False"),
        ("return_ids", None, "True or False"),
        ("cache", 1, "True or False"),
        ("group_by_length", 1, "True or False"),
    ],
)
def test_bad_arguments_are_refused(path, argument, value, expected):
    arguments = {"batch_size": 2, "num_features": 3, argument: value}
    assert_refused(f"`{argument}` must be {expected}, got {value!r}.", read_letor, path, **arguments)


def test_numpy_integers_are_integers(path):
    sizes = {"batch_size": np.int64(20), "list_size": np.int32(5), "num_features": np.int64(3)}
    dataset = read_letor(path, shuffle_buffer=np.int64(9), seed=np.int64(1), **sizes)
    assert sorted(flat(dataset)) == list(range(20))


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
    dataset = read_letor(path, batch_size=4, shuffle_buffer=9, seed=seed, cache=True)
    history = _model(3).fit(dataset, epochs=3, validation_data=dataset, verbose=0)
    losses = history.history["loss"]
    assert len(losses) == 3 and losses[2] < losses[0]


@pytest.mark.parametrize("seed", [None, 1])
def test_a_model_can_be_fitted_to_an_endless_dataset(path, seed):
    dataset = read_letor(path, batch_size=4, shuffle_buffer=9, seed=seed, num_epochs=None)
    history = _model(3).fit(dataset, epochs=2, steps_per_epoch=5, verbose=0)
    assert len(history.history["loss"]) == 2


@pytest.mark.parametrize("kwargs", [{}, {"cache": True}, {"shuffle_buffer": 9, "seed": 1}, {"num_epochs": None}])
def test_autotuning_is_off_and_workers_shard_by_data(path, kwargs):
    chosen = read_letor(path, batch_size=4, **kwargs).options()
    assert chosen.autotune.enabled is False
    assert chosen.experimental_distribute.auto_shard_policy == BY_DATA


def test_the_buffer_of_batches_has_a_fixed_size():
    """AUTOTUNE would keep its initial size, since autotuning is off. The source records how many elements were read."""
    read = []

    def source():
        for i in range(100):
            read.append(i)
            yield i

    dataset = prefetched(tf.data.Dataset.from_generator(source, output_signature=tf.TensorSpec([], tf.int32)))
    iterator = iter(dataset)
    next(iterator)
    deadline = time.time() + 30
    while len(read) < 3 and time.time() < deadline:
        time.sleep(0.01)
    time.sleep(0.2)
    assert len(read) == 3  # the requested element and two prefetched ones


def test_share_by_data_changes_no_other_option():
    mine = tf.data.Options()
    mine.autotune.enabled = True
    mine.deterministic = False
    chosen = share_by_data(tf.data.Dataset.range(3).with_options(mine)).options()
    assert chosen.autotune.enabled is True and chosen.deterministic is False
    assert chosen.experimental_distribute.auto_shard_policy == BY_DATA


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
        for kwargs in ({{}}, {{"shuffle_buffer": 9, "seed": 1, "cache": True, "num_epochs": 2}}):
            dataset = read_letor({path!r}, batch_size=6, num_features=3, list_size=5, **kwargs)
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
    summary = scan_letor(str(mq2008 / "Fold*" / "test.txt*"))
    assert summary[1:] == (784, 15_211, 46, 121, 2.0, True)
    queries = [scan_letor(str(mq2008 / "Fold1" / f"{part}.txt*")).queries for part in ("train", "vali", "test")]
    assert queries == [471, 157, 156]


def test_mq2008_reads_with_ids_and_labels(mq2008):
    dataset = read_letor(str(mq2008 / "Fold*" / "test.txt*"), batch_size=64, num_features=46, return_ids=True)
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
