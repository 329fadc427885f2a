"""Later calls of `fit` have the results of a first call."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import tfr_smooth
from tests import helpers

ARGUMENTS = {"loss": "list_net", "hidden": [8], "members": 2, "dropout": 0.5, "batch_size": 4, "verbose": False}


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


@functools.cache
def first_fit(policy):
    """Returns the results of the first `fit` of a ranker."""
    with helpers.precision(policy):
        return train(tfr_smooth.Ranker(verbose=False))


def assert_equal(first, second):
    assert first[:2] == second[:2]
    helpers.assert_same(first[2], second[2])


@pytest.mark.parametrize("policy", ["float32", pytest.param("mixed_float16", marks=pytest.mark.slow)])
def test_a_later_fit_equals_the_first_one(policy, ranker):
    first = first_fit(policy)
    with helpers.precision(policy):
        other = train(ranker, seed=1, learning_rate=0.3, batch_size=7, patience=1, select_by="ndcg")
        again = train(ranker)
    assert_equal(first, again)
    assert other[0]["loss"] != first[0]["loss"]


class Fails(tf.keras.callbacks.Callback):
    """Interrupts the second epoch."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            raise KeyboardInterrupt


@pytest.mark.slow
def test_an_interrupted_fit_changes_no_later_one(ranker):
    with pytest.raises(KeyboardInterrupt):
        train(ranker, callbacks=[Fails()])
    assert_equal(first_fit("float32"), train(ranker))
