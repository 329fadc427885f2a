"""Two workers of Ray and Spark train what one device trains, also if one is killed. This needs both, and Java."""

import numpy as np
import pytest
import tensorflow as tf

import tfr_smooth
from tests.examples import workers_task
from tests.ranker.test_ranker import NEW, table
from tests.serving import engines
from tfr_smooth import serving


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """A file of an odd number of queries, so that the shards of two workers differ."""
    found = table(51, seed=3)[["query", "age", "color", "label"]]
    path = tmp_path_factory.mktemp("train") / "train.parquet"
    found.assign(score=np.random.default_rng(0).normal(size=len(found))).to_parquet(path)
    return path


@pytest.fixture
def run(train, tmp_path, request):
    """A function that trains on two workers of an engine, and returns the folder of the outputs."""

    def on(engine, function):
        engines.started(engine, request.config).use_new_processes()  # TensorFlow must not have started in them
        config = {**workers_task.NAMES, "options": workers_task.OPTIONS}
        config |= {"train": [str(train)], "output_dir": str(tmp_path)}
        workers_task.RUN[engine.__name__](function, config, 2)
        return tmp_path

    return on


@pytest.fixture(scope="module")
def alone(train):
    """The table to score, and the scores of a ranker of one process."""
    ranker = tfr_smooth.Ranker(**workers_task.OPTIONS).fit([train], **workers_task.NAMES)
    new = NEW.assign(score=np.random.default_rng(1).normal(size=len(NEW)))
    return new, ranker.predict(new)


@pytest.mark.parametrize("engine", [engines.Ray, engines.Spark])
def test_a_ranker_of_two_workers_is_that_of_one_also_if_a_worker_is_killed(engine, run, alone):
    output, (new, expected) = run(engine, workers_task.killed), alone
    assert (output / "killed").exists()
    scores = serving.load(output / "export").score(new, qid=new["query"])
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)


def test_workers_that_read_their_own_shards_take_the_steps_of_one_device(run, train):
    output = run(engines.Ray, workers_task.shards)
    lists, model = workers_task.numbers_of([train]), workers_task.model_of(tf.distribute.get_strategy())
    parts = [lists.shard(number, 2).batches(4, num_epochs=None, list_size=8) for number in range(2)]
    together = tf.data.Dataset.zip(*parts).map(
        lambda first, second: tf.nest.map_structure(lambda *each: tf.concat(each, axis=0), first, second)
    )
    model.fit(together, epochs=2, steps_per_epoch=8, verbose=0)
    with np.load(output / "weights.npz") as found:
        for weight, expected in zip(found.values(), model.get_weights(), strict=True):
            np.testing.assert_allclose(weight, expected, rtol=1e-5, atol=1e-6)
