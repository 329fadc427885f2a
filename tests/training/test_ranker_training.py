"""Later calls of `fit` share graphs, and have the results of a first call."""

import numpy as np
import pytest
import tensorflow as tf

import tfr_smooth
from tests import helpers
from tfr_smooth import _keras, losses, metrics

ARGUMENTS = {"loss": "list_net", "hidden": [8], "members": 2, "dropout": 0.5, "batch_size": 4, "verbose": False}
keras_3 = pytest.mark.skipif(not _keras.IS_KERAS_3, reason="Keras 2 cannot reset the state of dropout")


def documents(seed=0, width=4):
    """Returns the features, labels and queries of nine lists of five or six documents."""
    random = np.random.RandomState(seed)
    queries = np.repeat(np.arange(9), [5, 6] * 4 + [5])
    return random.randn(len(queries), width), random.randint(0, 3, len(queries)), queries


@pytest.fixture
def ranker():
    return tfr_smooth.Ranker(verbose=False)


def train(ranker, width=4, further_metrics=(), callbacks=(), **arguments):
    """Returns the history, the best epoch and the weights."""
    ranker.set_params(**{**tfr_smooth.Ranker().get_params(), **ARGUMENTS, "epochs": 3, **arguments})
    features, labels, queries = documents(width=width)
    options = {"further_metrics": further_metrics, "callbacks": callbacks}
    ranker.fit(features, labels, qid=queries, validation=documents(1, width), **options)
    return ranker.history_, ranker.best_epoch_, ranker.model_.get_weights()


def assert_equal(first, second):
    assert first[:2] == second[:2]
    helpers.assert_same(first[2], second[2])


@pytest.mark.parametrize("policy", ["float32", pytest.param("mixed_float16", marks=pytest.mark.slow)])
def test_a_later_fit_equals_the_first_one(policy, ranker):
    with helpers.precision(policy):
        first = train(ranker)
        compiled = ranker._reusable
        other = train(ranker, seed=1, learning_rate=0.3, batch_size=7, patience=1, select_by="ndcg")
        again = train(ranker)
    assert_equal(first, again)
    assert other[0]["loss"] != first[0]["loss"]
    assert (ranker._reusable is compiled) == _keras.IS_KERAS_3


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
def test_a_fit_of_equal_graphs_traces_nothing(ranker):
    loss, metric = CountedLoss(), CountedMetric()
    train(ranker, loss=loss, further_metrics=[metric])
    before = loss.calls, metric.calls
    train(ranker, loss=loss, further_metrics=[metric], seed=1)
    assert min(before) > 0 and (loss.calls, metric.calls) == before


@keras_3
@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"dropout": 0.4},
        {"loss": losses.ListNetLoss()},
        {"weight_decay": 0.1},
        {"loss": "rank_net"},
        {"softmax_epochs": 0.5},
        {"width": 5},
        {"further_metrics": [metrics.MRRMetric()]},
    ],
    ids=str,
)
def test_a_fit_of_other_graphs_compiles_a_new_model(changes, ranker):
    train(ranker, epochs=1)
    before = ranker._reusable
    changed = train(ranker, epochs=1, **changes)
    compiled = ranker._reusable
    assert compiled is not before
    train(ranker, epochs=1, seed=1, **changes)
    assert ranker._reusable is compiled
    assert_equal(changed, train(ranker, epochs=1, **changes))


@pytest.mark.slow
@keras_3
def test_another_policy_compiles_a_new_model(ranker):
    train(ranker, epochs=1)
    before = ranker._reusable
    with helpers.precision("mixed_bfloat16"):
        train(ranker, epochs=1)
    assert ranker._reusable is not before


class Fails(tf.keras.callbacks.Callback):
    """Interrupts the second epoch."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            raise KeyboardInterrupt


def test_an_interrupted_fit_changes_no_later_one(ranker):
    first = train(ranker)
    with pytest.raises(KeyboardInterrupt):
        train(ranker, callbacks=[Fails()])
    assert ranker._reusable is None
    assert_equal(first, train(ranker))
