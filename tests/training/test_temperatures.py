"""A temperature that Keras's `LambdaCallback` sets before each epoch: equal to each value in turn, and traced once."""

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tests.training.small import make_dataset, make_model
from tfr_smooth import losses, measures, rankings

VALUES = [0.5, 4.0, 20.0]


def variable():
    return tf.Variable(1.0, trainable=False)


def annealing(variable):
    return tf.keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: variable.assign(VALUES[epoch]))


def fit(model, **arguments):
    return model.fit(make_dataset(8, 4)[0], verbose=0, shuffle=False, **arguments).history


def assert_same_weights(ours, theirs):
    helpers.assert_same(ours.get_weights(), theirs.get_weights(), rtol=2e-4, atol=1e-5)


@pytest.mark.slow
def test_each_epoch_trains_at_its_temperature(tmp_path):
    expected = make_model(losses.ApproxNDCGLoss())
    for value in VALUES:
        expected.compile(optimizer=tf.keras.optimizers.SGD(0.5), loss=losses.ApproxNDCGLoss(alpha=value))
        fit(expected)
    alpha = variable()
    model = make_model(losses.ApproxNDCGLoss(alpha=alpha))
    fit(model, epochs=3, callbacks=[annealing(alpha)])
    assert_same_weights(model, expected)
    model.save(tmp_path / "model.keras")  # with the current one
    assert tf.keras.models.load_model(tmp_path / "model.keras").loss.get_config()["alpha"] == VALUES[-1]
    constant = make_model(losses.ApproxNDCGLoss(alpha=VALUES[0]))
    fit(constant, epochs=3)
    assert np.abs(model.get_weights()[-2] - constant.get_weights()[-2]).max() > 1e-3


def test_the_step_is_traced_once():
    traces = []

    class Counting(rankings.Approx):
        def positions(self, scores, mask):
            traces.append(1)
            return super().positions(scores, mask)

    alpha = variable()
    model = make_model(losses.MeasureLoss(Counting(alpha=alpha), measures.NDCG()))
    fit(model)
    once = len(traces)
    fit(model, epochs=3, callbacks=[annealing(alpha)])
    assert once and len(traces) == once
