"""Resuming: an interrupted training run ends with the weights and metrics of an uninterrupted one."""

import pytest
import tensorflow as tf

from tests import helpers
from tests.training import replicas
from tfr_smooth import data, losses, metrics, models, training

EPOCHS = 4


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    directory = tmp_path_factory.mktemp("letor")
    return data.write_synthetic_letor(directory, num_queries=(30, 10, 10), num_features=16, max_documents=20)


class Interruption(Exception):
    pass


def interrupt():
    raise Interruption


def read(path, **kwargs):
    # One list size, for which everything is traced once.
    return data.read_letor(str(path), batch_size=8, num_features=16, list_size=16, **kwargs)


def run(files, directory, interrupt_at=None, seed=0, settings=None):
    tf.keras.utils.set_random_seed(seed)
    model = models.FeedForwardScorer(hidden=[8])
    model.compile(optimizer=tf.keras.optimizers.Adam(0.01), loss=losses.ListNetLoss())
    model.build([None, None, 16])
    validation = training.ExactValidation(read(files["valid"]), [metrics.NDCGMetric()], path=directory / "best.keras")
    resumable = training.ResumableTraining(directory / "checkpoints", validation=validation, settings=settings)
    start = resumable.restore(model)
    if start < EPOCHS:
        train = read(files["train"], shuffle=True, seed=5, first_epoch=start, num_epochs=EPOCHS - start)
        callbacks = [validation, resumable, replicas.InTheMiddle(interrupt_at, interrupt)]
        model.fit(
            train, initial_epoch=start, epochs=EPOCHS, steps_per_epoch=4, shuffle=False, verbose=0, callbacks=callbacks
        )
    return model, validation, start


SETTINGS = {"alpha": 1.0, "loss": "smoothi_ndcg"}


@pytest.fixture(scope="module")
def uninterrupted(files, tmp_path_factory):
    """The folder, model and validation of an uninterrupted run; no test trains there again."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    model, validation, start = run(files, folder, settings=SETTINGS)
    assert start == 0
    return folder, model, validation


@pytest.mark.parametrize("interrupt_at", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_a_resumed_run_ends_with_the_weights_of_an_uninterrupted_one(files, uninterrupted, tmp_path, interrupt_at):
    folder, model, validation = uninterrupted
    with pytest.raises(Interruption):
        run(files, tmp_path, interrupt_at=interrupt_at)
    resumed, resumed_validation, start = run(files, tmp_path, seed=99)  # the seed has no effect
    assert start == interrupt_at
    assert resumed_validation.history == validation.history
    assert resumed_validation.best_epoch == validation.best_epoch
    helpers.assert_same(resumed.get_weights(), model.get_weights(), rtol=1e-6, atol=1e-7)
    best, resumed_best = (tf.keras.models.load_model(path / "best.keras") for path in (folder, tmp_path))
    helpers.assert_same(resumed_best.get_weights(), best.get_weights(), rtol=1e-6, atol=1e-7)


@pytest.mark.slow
def test_a_run_interrupted_in_the_first_epoch_starts_over(files, tmp_path):
    with pytest.raises(Interruption):
        run(files, tmp_path, interrupt_at=0)
    _, validation, start = run(files, tmp_path, seed=99)
    assert start == 0
    assert len(validation.history["loss"]) == EPOCHS


def test_a_finished_run_is_not_repeated(files, uninterrupted):
    folder, model, validation = uninterrupted
    again, again_validation, start = run(files, folder, seed=99, settings=SETTINGS)
    assert start == EPOCHS
    assert again_validation.get_state() == validation.get_state()
    helpers.assert_same(again.get_weights(), model.get_weights())


def test_resuming_with_other_settings_is_refused(files, uninterrupted):
    with pytest.raises(ValueError, match=r"`settings` must match .* got alpha=2.0 \(was 1.0\), topn=5 \(was None\)\."):
        run(files, uninterrupted[0], settings={"alpha": 2.0, "loss": "smoothi_ndcg", "topn": 5})


def test_restore_must_be_called_before_fit(tmp_path):
    model = models.FeedForwardScorer(hidden=[2])
    model.compile(optimizer="adam", loss=losses.ListNetLoss())
    dataset = tf.data.Dataset.from_tensors((tf.ones([1, 2, 3]), tf.ones([1, 2])))
    with pytest.raises(ValueError, match="`restore` must be called before `fit`"):
        model.fit(dataset, verbose=0, callbacks=[training.ResumableTraining(tmp_path)])
