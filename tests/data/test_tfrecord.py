"""Batches from records equal those from text: in one process, in each worker of a cluster, in the tf.data service."""

import itertools
import os
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.data.experimental import service

from tests.data.readers import OPTIONS, Stop, as_numpy, assert_same_batches, example, number, stopping_after
from tfr_smooth import data, models
from tfr_smooth.data import elwc

NUMBERED = data.ElwcSchema(features="custom_features_{}")


@pytest.fixture(scope="module")
def letor(tmp_path_factory):
    folder = tmp_path_factory.mktemp("letor")
    return data.write_synthetic_letor(folder, num_queries=(31, 4, 2), num_features=16, max_documents=12)["train"]


@pytest.fixture(scope="module")
def shards(letor, tmp_path_factory):
    return data.letor_to_tfrecord(letor, tmp_path_factory.mktemp("records") / "train.tfrecord", num_shards=4)


def queries(dataset):
    return [query.decode() for inputs, _ in dataset for query in inputs["query_id"].numpy()]


IN_ORDER = [options for options in OPTIONS if not {"shuffle", "group_by_length"} & set(options)]


@pytest.mark.parametrize("options", [*IN_ORDER, {"num_features": 16, "num_epochs": 2}])
def test_batches_are_those_of_read_letor(letor, shards, options):
    theirs = {"return_ids" if name == "ids" else name: value for name, value in options.items()}
    assert_same_batches(
        data.read_tfrecord(shards, batch_size=4, **theirs), data.read_letor(letor, batch_size=4, **options)
    )


def test_the_order_of_an_epoch_depends_on_its_seed_and_number(shards):
    order = {"shuffle_buffer": 31, "return_ids": True}
    whole = queries(data.read_tfrecord(shards, batch_size=4, seed=3, num_epochs=2, **order))
    resumed = queries(data.read_tfrecord(shards, batch_size=4, seed=3, first_epoch=1, **order))
    assert resumed == whole[31:] != whole[:31] and sorted(resumed) == sorted(whole[:31])
    for grouped in (False, True):
        unseeded = data.read_tfrecord(shards, batch_size=4, group_by_length=grouped, **order)
        assert sorted(queries(unseeded)) == sorted(resumed) and queries(unseeded) != queries(unseeded)


@pytest.mark.parametrize("schema", [data.ElwcSchema("x", "grade", "q", "d"), NUMBERED])
@pytest.mark.parametrize("name", ["r", "r.gz"])
def test_other_schemas_and_compressed_files_yield_the_same_batches(letor, tmp_path, schema, name):
    paths = data.letor_to_tfrecord(letor, tmp_path / name, schema=schema)
    found = data.read_tfrecord(paths, batch_size=8, schema=schema, num_features=16, return_ids=True)
    assert_same_batches(found, data.read_letor(letor, batch_size=8, ids=True))


@pytest.mark.slow
def test_features_from_records_and_text_are_normalized_equally(letor, shards):
    """The normalization is part of the model, which adapts to either source."""
    sources = data.read_letor(letor, batch_size=8), data.read_tfrecord(shards, batch_size=8)
    for name in ("min_max", "standardize", "log1p"):
        found = []
        for source in sources:
            layer = models.get_normalizer(name)
            if name == "standardize":
                layer.adapt(inputs for inputs, _ in source)
            found.append([layer(inputs["features"], mask=inputs["mask"]).numpy() for inputs, _ in source])
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_documents_and_queries_without_ids_have_empty_ids(tmp_path):
    text = tmp_path / "in.txt"
    text.write_text("1 qid:a 1:0.5 # docid = x\n0 qid:a 1:2\n")
    (path,) = data.letor_to_tfrecord(text, tmp_path / "r")
    ((inputs, _),) = data.read_tfrecord(path, batch_size=1, return_ids=True)
    assert inputs["doc_id"].numpy().tolist() == [[b"x", b""]]
    message = elwc._message_class().FromString(next(tf.data.TFRecordDataset(str(path)).as_numpy_iterator()))
    message.context = b""
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(message.SerializeToString())
    ((inputs, _),) = data.read_tfrecord(path, batch_size=1, return_ids=True)
    assert inputs["query_id"].numpy().tolist() == [b""]


def context(worker, workers):
    return tf.distribute.InputContext(num_input_pipelines=workers, input_pipeline_id=worker)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_each_worker_reads_its_own_shards(letor, shards, workers):
    parts = []
    for worker in range(workers):
        own = data.read_tfrecord(shards, batch_size=4, return_ids=True, input_context=context(worker, workers))
        assert_same_batches(own, data.read_tfrecord(shards[worker::workers], batch_size=4, return_ids=True))
        parts.append(queries(own))
    everything = queries(data.read_letor(letor, batch_size=4, ids=True))
    assert sorted(itertools.chain(*parts)) == sorted(everything)


def test_more_workers_than_shards_are_refused(shards):
    with pytest.raises(ValueError) as raised:
        data.read_tfrecord(shards, batch_size=4, input_context=context(0, 5))
    assert "a file for each of the 5 workers, got 4" in str(raised.value)
    assert "num_shards=5" in str(raised.value)


# In a separate process: a worker in this process would find its Python functions.
WORKER = """
import sys
from tensorflow.data.experimental.service import WorkerConfig, WorkerServer
WorkerServer(WorkerConfig(dispatcher_address=sys.argv[1], port=0)).join()
"""


@pytest.fixture(scope="module")
def dispatcher():
    """The address of a tf.data service with two workers."""
    server = service.DispatchServer(service.DispatcherConfig(port=0))
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    command = [sys.executable, "-c", WORKER, server.target.partition("://")[2]]
    workers = [subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) for _ in range(2)]
    try:
        deadline = time.monotonic() + 120
        while server._num_workers() < 2:
            assert time.monotonic() < deadline and all(worker.poll() is None for worker in workers)
            time.sleep(0.1)
        yield server.target
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"shuffle_buffer": 31}, {"group_by_length": True, "shuffle_buffer": 31}])
def test_the_service_reads_each_list_once(letor, shards, dispatcher, options):
    dataset = data.read_tfrecord(shards, batch_size=4, return_ids=True, **options)
    served = dataset.apply(service.distribute(service.ShardingPolicy.DYNAMIC, dispatcher))
    assert sorted(queries(served)) == sorted(queries(data.read_letor(letor, batch_size=4, ids=True)))


@pytest.mark.slow
def test_the_service_serves_seeded_epochs_and_portable_lists(letor, shards, dispatcher):
    """Each of the two workers produces all batches."""
    for dataset in (
        data.read_tfrecord(shards, batch_size=4, shuffle_buffer=31, seed=3),
        data.read_letor(letor, batch_size=4, shuffle=True, seed=3, portable=True),
    ):
        expected = as_numpy(dataset)
        served = as_numpy(dataset.apply(service.distribute(service.ShardingPolicy.OFF, dispatcher)))
        assert len(served) == 2 * len(expected)
        labels = sorted(batch.tobytes() for _, batch in served)
        assert labels == sorted(batch.tobytes() for _, batch in expected * 2)


@pytest.mark.slow
def test_the_service_cannot_read_lists_that_are_not_portable(letor, dispatcher):
    served = data.read_letor(letor, batch_size=4).apply(service.distribute(service.ShardingPolicy.OFF, dispatcher))
    with pytest.raises(tf.errors.OpError, match="pyfunc"):
        as_numpy(served)


def test_files_of_an_interrupted_conversion_are_refused(letor, tmp_path):
    with pytest.raises(Stop):
        data.letor_to_tfrecord(letor, tmp_path / "r", num_shards=3, progress=stopping_after(20))
    with pytest.raises(ValueError, match=r"got '.*r-00000-of-00003' from an interrupted conversion; run it again"):
        data.read_tfrecord(tmp_path / "r-*", batch_size=4)
    data.letor_to_tfrecord(letor, tmp_path / "r", num_shards=3)
    assert_same_batches(data.read_tfrecord(tmp_path / "r-*", batch_size=4), data.read_letor(letor, batch_size=4))


def write(path, *documents):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in ([example(GOOD)], list(map(example, documents))):
            writer.write(elwc._message_class()(examples=record).SerializeToString())


GOOD = {"utility": number(1), "features": number(1, 2)}


@pytest.mark.parametrize(
    "documents",
    [
        [],
        [{"features": number(1, 2)}],
        [{"utility": number(1)}],
        [{"utility": number(-1), "features": number(1, 2)}],
        [{"utility": number(float("inf")), "features": number(1, 2)}],
        [{"utility": number(1), "features": number(1, float("nan"))}],
        [{"utility": number(1), "features": number(float("-inf"), 1)}],
    ],
)
def test_bad_records_raise_an_error_with_their_position(documents, tmp_path):
    write(tmp_path / "r", *documents)
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        as_numpy(data.read_tfrecord(tmp_path / "r", batch_size=4))
    for part in (str(tmp_path / "r"), "[2]", "a list must have documents, each with a finite label >= 0"):
        assert part in str(raised.value)


def test_another_number_of_features_is_an_error(tmp_path):
    write(tmp_path / "r", {"utility": number(1), "features": number(1, 2, 3)})
    with pytest.raises(tf.errors.InvalidArgumentError, match="features"):
        as_numpy(data.read_tfrecord(tmp_path / "r", batch_size=4))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"batch_size": 0}, "`batch_size` must be an integer >= 1, got 0."),
        ({"num_features": 0}, "`num_features` must be an integer >= 1 or None, got 0."),
        ({"schema": NUMBERED}, "`num_features` must be given for features named 'custom_features_{}', got None."),
        ({"schema": data.ElwcSchema(features="x")}, ":1: the first record has no document with a feature 'x'"),
    ],
)
def test_bad_arguments_are_refused(shards, arguments, problem):
    with pytest.raises(ValueError) as raised:
        data.read_tfrecord(shards, **{"batch_size": 4, **arguments})
    assert problem in str(raised.value)
