"""Common uses of Keras: compile, fit on NumPy arrays, callbacks, sample weights, saving and loading."""

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tests.helpers import modes
from tests.helpers.modes import quick_or_slow
from tfr_smooth import _keras, losses, metrics, models

FEATURES = 3


def data(seed=0, lists=8):
    labels, _ = modes.batch(seed, lists)
    features = np.random.RandomState(seed).randn(*labels.shape, FEATURES).astype(np.float32)
    return features, labels


def small_model():
    tf.keras.utils.set_random_seed(1)
    layers = [tf.keras.layers.Dense(4, "relu"), tf.keras.layers.Dense(1), tf.keras.layers.Reshape([-1])]
    return tf.keras.Sequential([tf.keras.Input([None, FEATURES]), *layers])


@pytest.mark.skipif(not _keras.IS_KERAS_3, reason="Keras 2 infers the direction of a metric from its name")
@pytest.mark.parametrize(("name", "better"), [("softsort_ndcg", 1.0), ("arp", 0.0)])
def test_keras_3_early_stopping_knows_the_direction_of_metrics(name, better):
    features, labels = data()
    model = small_model()
    metric = metrics.get(name, name="quality")
    model.compile(tf.keras.optimizers.SGD(0.0), losses.ListNetLoss(), metrics=[metric])
    stopping = tf.keras.callbacks.EarlyStopping(monitor="val_quality", patience=0, start_from_epoch=0)
    model.fit(features, labels, validation_data=(features, labels), epochs=3, callbacks=[stopping], verbose=0)
    assert stopping.monitor_op(better, 1.0 - better) and not stopping.monitor_op(1.0 - better, better)
    assert stopping.stopped_epoch == 1


@pytest.mark.keras_2
@quick_or_slow(["softsort_ndcg", "instances", "mse"], quick=["softsort_ndcg"])
@pytest.mark.slow
def test_a_scorer_compiled_with_names_or_instances_is_restored_compiled(name, tmp_path):
    loss, metric, weighted = {
        "softsort_ndcg": ("softsort_ndcg", ["ndcg", "softsort_map"], ["mrr"]),
        "instances": (losses.ListNetLoss(temperature=2.0), [metrics.get("ndcg", topn=2)], None),
        "mse": ("mse", ["mae"], None),
    }[name]
    features, labels = data()
    labels = np.maximum(labels, 0.0)
    model = models.FeedForwardScorer(hidden=[4])
    model.compile("adam", loss, metrics=metric, weighted_metrics=weighted)
    model.fit(features, labels, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    expected = model.evaluate(features, labels, verbose=0, return_dict=True)
    if loss == "softsort_ndcg":
        value = losses.get("softsort_ndcg")(labels, model(features))
        assert expected["loss"] == pytest.approx(float(value), rel=1e-5)
    assert len(expected) == 1 + len(metric) + len(weighted or [])
    assert loaded.evaluate(features, labels, verbose=0, return_dict=True) == pytest.approx(expected, rel=1e-6)
    for each in (model, loaded):  # The optimizer's state is restored too.
        each.fit(features, labels, shuffle=False, verbose=0)
    helpers.assert_same(loaded.get_weights(), model.get_weights(), rtol=1e-5, atol=1e-6)


@pytest.mark.keras_2
def test_configs_name_reductions_as_keras_3_does():
    mean = "sum_over_batch_size"
    expected = {"mean": mean, "auto": mean, "sum": "sum", None: "none"}
    if not _keras.IS_KERAS_3:
        kinds = tf.keras.losses.Reduction
        expected |= {kinds.AUTO: mean, kinds.SUM_OVER_BATCH_SIZE: mean, kinds.SUM: "sum", kinds.NONE: "none"}
    for given, name in expected.items():
        assert losses.ListNetLoss(reduction=given).get_config()["reduction"] == name
