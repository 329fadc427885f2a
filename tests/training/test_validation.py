"""The validation callback: exact metrics, the best epoch, early stopping."""

import numpy as np
import pytest
import tensorflow as tf

from tests.training.small import make_dataset, make_model
from tfr_smooth import metrics, training


@pytest.fixture(scope="module")
def model():
    """The tests depend neither on the loss nor on the weights; Keras's own loss is traced faster."""
    return make_model("mse", tf.keras.optimizers.Adam(0.01))


class Scripted(tf.keras.metrics.Metric):
    """A metric whose value at each evaluation is given."""

    def __init__(self, values, name="scripted"):
        super().__init__(name=name)
        self._values = iter(values)

    def update_state(self, y_true, y_pred, sample_weight=None):
        pass

    def result(self):
        return next(self._values)


def test_each_list_counts_once_in_unequal_batches_or_with_its_weight(model):
    dataset, inputs, labels = make_dataset()
    validation = training.ExactValidation(dataset, [metrics.NDCGMetric(), metrics.MRRMetric()])
    history = model.fit(dataset, epochs=2, verbose=0, callbacks=[validation]).history
    whole, weights = metrics.NDCGMetric(), np.arange(7.0, dtype=np.float32)
    whole.update_state(labels, model(inputs, training=False))
    np.testing.assert_allclose(history["val_ndcg"][-1], float(whole.result()), rtol=1e-6)
    assert len(history["val_mrr"]) == 2
    assert validation.history == {name: [float(v) for v in values] for name, values in history.items()}
    weighted = tf.data.Dataset.from_tensor_slices((inputs, labels, weights)).batch(3)
    validation = training.ExactValidation(weighted, [metrics.NDCGMetric()])
    validation.set_model(model)
    whole.reset_state()
    whole.update_state(labels, model(inputs, training=False), weights)
    assert validation.evaluate()["ndcg"] == pytest.approx(float(whole.result()), rel=1e-6)
    assert validation.evaluate()["ndcg"] != pytest.approx(history["val_ndcg"][-1], rel=1e-3)


@pytest.mark.keras_2
def test_keeps_the_best_epoch_and_its_model(model, tmp_path):
    dataset, inputs, _ = make_dataset()
    path = tmp_path / "best.keras"
    outputs = []
    scripted = Scripted([0.1, 0.5, float("nan"), 0.5, 0.3])
    validation = training.ExactValidation(dataset, [scripted], path=path)
    keep = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: outputs.append(model.predict(inputs, verbose=0)))
    model.fit(dataset, epochs=5, verbose=0, callbacks=[validation, keep])
    assert (validation.best_epoch, validation.best_value) == (2, 0.5) and not validation.stopped
    best = tf.keras.models.load_model(path).predict(inputs, verbose=0)
    np.testing.assert_allclose(best, outputs[1], rtol=1e-6)
    assert np.abs(best - outputs[4]).max() > 1e-4
    assert [p.name for p in tmp_path.iterdir()] == ["best.keras"]


@pytest.mark.parametrize(("values", "epochs"), [([0.5, 0.4, 0.3, 0.6, 0.7], 3), ([float("nan")] * 5, 2)])
def test_training_stops_after_patience_epochs_without_improvement(model, values, epochs):
    dataset, _, _ = make_dataset()
    validation = training.ExactValidation(dataset, [Scripted(values)], patience=2)
    history = model.fit(dataset, epochs=5, verbose=0, callbacks=[validation])
    assert len(history.epoch) == epochs and validation.stopped


def test_monitor_selects_the_metric_and_mode_min_its_lowest_value(model):
    dataset, _, _ = make_dataset()
    scripted = [Scripted([0.1, 0.5, 0.9], "a"), Scripted([3.0, 1.0, 2.0], "b")]
    validation = training.ExactValidation(dataset, scripted, monitor="b", mode="min")
    model.fit(dataset, epochs=3, verbose=0, callbacks=[validation])
    assert (validation.best_epoch, validation.best_value) == (2, 1.0)


def test_bad_arguments_are_refused():
    for arguments, message in [
        ({"monitor": "loss"}, "`monitor` must be one of 'ndcg', got 'loss'."),
        ({"mode": "auto"}, "`mode` must be one of 'max', 'min', 'last', got 'auto'."),
        ({"path": "best.h5"}, "`path` must end in '.keras', got 'best.h5'."),
        ({"dataset": make_dataset()[0].repeat()}, "`dataset` must be finite, got one that repeats forever."),
    ]:
        given = {"dataset": make_dataset()[0], "metrics": [metrics.NDCGMetric()], **arguments}
        with pytest.raises(ValueError) as error:
            training.ExactValidation(given.pop("dataset"), given.pop("metrics"), **given)
        assert str(error.value) == message
