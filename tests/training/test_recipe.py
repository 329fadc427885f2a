"""Recipe.train: training runs in one process share graphs, and have the results of runs in new processes."""

import concurrent.futures

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import _keras, losses, metrics
from tfr_smooth.training import recipe

ARGUMENTS = {"loss": "list_net", "hidden": [8], "members": 2, "dropout": 0.5, "input_noise": 0.3, "verbose": False}
keras_3 = pytest.mark.skipif(not _keras.IS_KERAS_3, reason="Keras 2 cannot reset the state of dropout")


def batches(seed=0, width=4):
    random = np.random.RandomState(seed)
    labels = random.randint(0, 3, (9, 6)).astype(np.float32)
    labels[::2, 5] = -1.0
    inputs = {"features": random.randn(9, 6, width).astype(np.float32), "mask": labels >= 0.0}
    return tf.data.Dataset.from_tensor_slices((inputs, labels)).batch(4)


def train(width=4, further_metrics=(), callbacks=(), **arguments):
    data, valid = batches(width=width), batches(1, width)
    settings = recipe.Recipe(**{**ARGUMENTS, "epochs": 3, **arguments})
    return settings.train(
        lambda finished: data.repeat(3 - finished),
        data,
        valid,
        further_metrics=further_metrics,
        callbacks=callbacks,
        steps_per_epoch=3,
    )


def idle():
    return list(recipe._IDLE)


@pytest.fixture(autouse=True)
def nothing_idle():
    recipe._IDLE.clear()
    yield
    recipe._IDLE.clear()


def assert_equal(first, second):
    assert first.history == second.history and first.best_epoch == second.best_epoch
    helpers.assert_same(first.scorer.get_weights(), second.scorer.get_weights())


@pytest.mark.parametrize("policy", ["float32", pytest.param("mixed_float16", marks=pytest.mark.slow)])
def test_a_run_after_others_equals_the_first_run(policy):
    with helpers.precision(policy):
        first, compiled = train(), idle()
        other = train(seed=1, learning_rate=0.3, batch_size=7, patience=1, select_by="ndcg")
        again = train()
    assert_equal(first, again)
    assert other.history["loss"] != first.history["loss"]
    assert idle() == compiled and len(compiled) == _keras.IS_KERAS_3


class CountedLoss(losses.ListNetLoss):
    """Counts its calls from Python."""

    calls = 0

    def compute(self, labels, scores, mask):
        self.calls += 1
        return super().compute(labels, scores, mask)


class CountedMetric(metrics.MRRMetric):
    """Counts its calls from Python."""

    calls = 0

    def update_state(self, *args, **kwargs):
        self.calls += 1
        return super().update_state(*args, **kwargs)


@keras_3
def test_a_run_of_equal_graphs_traces_nothing():
    loss, metric = CountedLoss(), CountedMetric()
    train(loss=loss, further_metrics=[metric])
    before = loss.calls, metric.calls
    train(loss=loss, further_metrics=[metric], seed=1)
    assert min(before) > 0 and (loss.calls, metric.calls) == before


@pytest.mark.slow
@keras_3
def test_a_result_shares_no_variables_with_later_runs():
    first = train()
    before = first.scorer.get_weights()
    train(seed=1)
    helpers.assert_same(first.scorer.get_weights(), before)
    (compiled,) = idle()
    shared = {id(each) for each in first.scorer.variables} & {id(each) for each in compiled.evaluation.model.variables}
    assert not shared


@keras_3
@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"dropout": 0.4},
        {"loss": losses.ListNetLoss()},
        {"weight_decay": 0.1},
        {"loss": "rank_net"},
        {"width": 5},
        {"further_metrics": [metrics.MRRMetric()]},
    ],
    ids=str,
)
def test_a_run_of_other_graphs_compiles_a_new_model(changes):
    train(epochs=1)
    before = idle()
    changed = train(epochs=1, **changes)
    (compiled,) = idle()
    assert [compiled] != before
    train(epochs=1, seed=1, **changes)
    assert idle() == [compiled]
    assert_equal(changed, train(epochs=1, **changes))


@pytest.mark.slow
@keras_3
def test_another_policy_compiles_a_new_model():
    train(epochs=1)
    before = idle()
    with helpers.precision("mixed_bfloat16"):
        train(epochs=1)
    assert idle() != before


class Fails(tf.keras.callbacks.Callback):
    """Interrupts the second epoch."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            raise KeyboardInterrupt


@pytest.mark.slow
def test_an_interrupted_run_changes_no_later_run():
    first = train()
    with pytest.raises(KeyboardInterrupt):
        train(callbacks=[Fails()])
    assert idle() == []
    assert_equal(first, train())


@pytest.mark.slow
def test_runs_at_the_same_time_are_independent():
    expected = [train(seed=seed) for seed in range(2)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda seed: train(seed=seed), range(2)))
    for one, other in zip(expected, found, strict=True):
        assert_equal(one, other)
    assert len(idle()) == _keras.IS_KERAS_3
