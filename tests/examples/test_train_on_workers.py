"""Two workers of Ray and Spark train what one device trains, also if one is killed. This needs both, and Java."""

import os
import pathlib
import sys

import numpy as np
import pytest
import tensorflow as tf

import tfr_smooth
from tests import helpers
from tests.examples import workers_task
from tests.ranker.test_ranker import NEW, table
from tfr_smooth import serving

ENGINES = pytest.mark.parametrize("engine", ["ray", "spark"])


@pytest.fixture(scope="module")
def frame():
    """An odd number of queries, so that the shards of two workers differ."""
    found = table(101, seed=3)
    return found.assign(score=np.random.default_rng(0).normal(size=len(found)))


def run(engine, what, folder, frame):
    (folder / "output").mkdir()
    frame.to_parquet(folder / "train.parquet")
    root = pathlib.Path(workers_task.__file__).parents[2]
    paths = os.pathsep.join(map(os.fspath, [root, root / "examples"]))
    local = {
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": paths,
        "PYSPARK_SUBMIT_ARGS": "--master local[2,4] pyspark-shell",
    }
    helpers.check_run(workers_task.__file__, engine, what, folder, **local)
    return folder / "output"


@ENGINES
@pytest.mark.parametrize("what", ["ranker", "killed"])
def test_a_ranker_of_two_workers_is_that_of_one(engine, what, frame, tmp_path):
    output = run(engine, what, tmp_path, frame)
    assert (output / "killed").exists() == (what == "killed")
    alone = tfr_smooth.Ranker(**workers_task.OPTIONS)
    alone.fit([tmp_path / "train.parquet"], **workers_task.NAMES)
    new = NEW.assign(score=np.random.default_rng(1).normal(size=len(NEW)))
    scores = serving.load(output / "export").score(new, qid=new["query"])
    np.testing.assert_allclose(scores, alone.predict(new), rtol=1e-5, atol=1e-5)


@ENGINES
def test_workers_that_read_their_own_shards_take_the_steps_of_one_device(engine, frame, tmp_path):
    output = run(engine, "shards", tmp_path, frame)
    lists, model = (
        workers_task.numbers_of([tmp_path / "train.parquet"]),
        workers_task.model_of(tf.distribute.get_strategy()),
    )
    parts = [lists.shard(number, 2).batches(4, num_epochs=None, list_size=8) for number in range(2)]
    together = tf.data.Dataset.zip(*parts).map(
        lambda first, second: tf.nest.map_structure(lambda *each: tf.concat(each, axis=0), first, second)
    )
    model.fit(together, epochs=2, steps_per_epoch=15, verbose=0)
    with np.load(output / "weights.npz") as found:
        for weight, expected in zip(found.values(), model.get_weights(), strict=True):
            np.testing.assert_allclose(weight, expected, rtol=1e-5, atol=1e-6)
