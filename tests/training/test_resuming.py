"""Resuming: an interrupted training run ends with the weights and metrics of an uninterrupted one."""

import itertools
import os
import re
import socket
import subprocess
import sys
import types

import pytest
import tensorflow as tf

from tests import helpers
from tests.training import replicas
from tfr_smooth import _files, data, losses, metrics, models, training
from tfr_smooth.training import trainer

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
    return data.read_letor(str(path), num_features=16).batches(8, list_size=16, **kwargs)


def run(files, directory, interrupt_at=None, seed=0):
    tf.keras.utils.set_random_seed(seed)
    model = models.FeedForwardScorer(hidden=[8])
    model.compile(optimizer=tf.keras.optimizers.Adam(0.01), loss=losses.ListNetLoss())
    model.build([None, None, 16])
    validation = training.ExactValidation(read(files["valid"]), [metrics.NDCGMetric()], path=directory / "best.keras")
    resumable = training.ResumableTraining(directory / "checkpoints", validation=validation)
    start = resumable.restore(model)
    if start < EPOCHS:
        train = read(files["train"], shuffle=True, seed=5, first_epoch=start, num_epochs=EPOCHS - start)
        callbacks = [validation, resumable, replicas.InTheMiddle(interrupt_at, interrupt)]
        model.fit(
            train, initial_epoch=start, epochs=EPOCHS, steps_per_epoch=4, shuffle=False, verbose=0, callbacks=callbacks
        )
    return model, validation, start


@pytest.fixture(scope="module")
def uninterrupted(files, tmp_path_factory):
    """The folder, model and validation of an uninterrupted run; no test trains there again."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    model, validation, start = run(files, folder)
    assert start == 0
    return folder, model, validation


@pytest.mark.keras_2
def test_a_resumed_run_ends_with_the_weights_of_an_uninterrupted_one(files, uninterrupted, tmp_path):
    folder, model, validation = uninterrupted
    with pytest.raises(Interruption):
        run(files, tmp_path, interrupt_at=2)
    resumed, resumed_validation, start = run(files, tmp_path, seed=99)  # the seed has no effect
    assert start == 2
    assert resumed_validation.history == validation.history
    assert resumed_validation.best_epoch == validation.best_epoch
    helpers.assert_same(resumed.get_weights(), model.get_weights(), rtol=1e-6, atol=1e-7)
    rows, resumed_rows = ((path / "checkpoints" / "log.csv").read_text().splitlines() for path in (folder, tmp_path))
    assert rows == resumed_rows and [row.partition(",")[0] for row in rows] == ["epoch", "1", "2", "3", "4"]
    best, resumed_best = (tf.keras.models.load_model(path / "best.keras") for path in (folder, tmp_path))
    helpers.assert_same(resumed_best.get_weights(), best.get_weights(), rtol=1e-6, atol=1e-7)


def test_restore_must_be_called_before_fit(tmp_path):
    model = models.FeedForwardScorer(hidden=[2])
    model.compile(optimizer="adam", loss=losses.ListNetLoss())
    dataset = tf.data.Dataset.from_tensors((tf.ones([1, 2, 3]), tf.ones([1, 2])))
    with pytest.raises(ValueError, match="`restore` must be called before `fit`"):
        model.fit(dataset, verbose=0, callbacks=[training.ResumableTraining(tmp_path)])


@pytest.mark.slow
def test_after_damage_of_the_last_checkpoint_the_one_before_is_used(files, uninterrupted, tmp_path):
    _, model, validation = uninterrupted
    with pytest.raises(Interruption):
        run(files, tmp_path, interrupt_at=3)
    (damaged,) = (tmp_path / "checkpoints").glob("ckpt-3.data*")
    content = bytearray(damaged.read_bytes())
    content[len(content) // 3] ^= 1
    damaged.write_bytes(content)
    with pytest.warns(UserWarning, match="ckpt-3 is damaged and is not used"):
        resumed, resumed_validation, start = run(files, tmp_path)
    assert start == 2 and resumed_validation.history == validation.history
    helpers.assert_same(resumed.get_weights(), model.get_weights(), rtol=1e-6, atol=1e-7)


@pytest.mark.slow
def test_without_a_checkpoint_that_is_not_damaged_training_does_not_start_over(files, tmp_path):
    with pytest.raises(Interruption):
        run(files, tmp_path, interrupt_at=1)
    for path in (tmp_path / "checkpoints").glob("ckpt-*.data*"):
        path.write_bytes(path.read_bytes()[:-200])
    with pytest.warns(UserWarning, match="is damaged"), pytest.raises(ValueError, match="`directory` must have"):
        run(files, tmp_path)


# `training.train`, which holds the lock of the folder.


def small_training(folder=None, *, width=2, epochs=2, callbacks=(), validation=None, verbose=False, **settings):
    dataset = tf.data.Dataset.from_tensors((tf.ones([2, 3, 2]), tf.constant([[1.0, 0.0, 0.0]] * 2))).repeat(3)
    model = models.FeedForwardScorer(hidden=[width], seed=0)
    model.compile(optimizer="adam", loss=losses.SoftmaxLoss())
    model.build([None, None, 2])
    settings = {"width": width, **settings}
    options = {"epochs": epochs, "checkpoint_dir": folder, "settings": settings, "callbacks": callbacks}
    options["verbose"] = verbose
    return training.train(model, lambda finished: dataset, validation=validation, **options)


@pytest.mark.keras_2
def test_a_terminal_shows_the_batches_and_all_outputs_the_time_that_is_left(tmp_path, capsys, monkeypatch):
    seconds = itertools.count(step=60.0)
    monkeypatch.setattr(trainer, "time", types.SimpleNamespace(monotonic=lambda: next(seconds)))
    for is_terminal in (True, False):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)  # noqa: B023
        small_training(tmp_path / str(is_terminal), epochs=2, verbose=True)
        printed = capsys.readouterr().out
        assert printed.startswith("Training\n") and ("Epoch 2 of 2: batch 3 of 3\x1b[K\r" in printed) == is_terminal
        assert re.search(r"Epoch 1 of 2: loss [0-9.]+; about \d+ (min|s) left", printed)


def test_other_settings_and_fewer_epochs_are_refused_before_the_weights_are_restored(tmp_path):
    small_training(tmp_path)
    with pytest.raises(ValueError, match=r"got width=4 \(was 2\)"):
        small_training(tmp_path, width=4)
    with pytest.raises(ValueError, match="`epochs` must be >= the 2 finished ones"):
        small_training(tmp_path, epochs=1)


def test_a_run_that_stopped_early_says_so_and_is_not_continued(tmp_path, capsys):
    def run(*callbacks):
        validation = training.Validation(lambda model: {"ndcg": 0.5}, monitor="ndcg", patience=1)
        options = {"epochs": 5, "validation": validation, "callbacks": callbacks, "verbose": True}
        return small_training(tmp_path, **options), capsys.readouterr().out

    (first, printed), (again, printed_again) = run(), run(Unexpected())
    assert len(first["loss"]) == 2 and again == first
    assert re.search(
        r"Epoch 2 of 5: loss .*, val_ndcg 0.5000.*\nEpoch 1 of 2 is used, stopped early; .* took \d+ s\n$",
        printed,
    )
    last = f"Epoch 1 of 2 is used, stopped early; the training took 0 s after 2 finished epochs in {tmp_path}\n"
    assert re.sub(r"took \d+ s", "took 0 s", printed_again) == last


def test_a_damaged_best_model_is_noticed_before_training(tmp_path):
    def watch():
        return training.Validation(lambda model: {"ndcg": next(values)}, monitor="ndcg", path=tmp_path / "best.keras")

    values = iter([0.5, 0.4])
    small_training(tmp_path, epochs=2, validation=watch())
    assert len(small_training(tmp_path, epochs=2, validation=watch())["loss"]) == 2
    for damage in (lambda path: path.write_bytes(path.read_bytes()[:1000]), lambda path: path.unlink()):
        damage(tmp_path / "best.keras")
        message = r"best.keras must be the model of epoch 1, .*damaged: .* Remove the checkpoints"
        with pytest.raises(ValueError, match=message):
            small_training(tmp_path, epochs=4, validation=watch(), callbacks=[Unexpected()])


def test_only_the_last_checkpoints_remain_and_other_files_are_left_alone(tmp_path):
    foreign = {"ckpt-abc.index", "ckpt-1.old", "notes.txt"}
    for name in foreign:
        (tmp_path / name).touch()
    small_training(tmp_path, epochs=4)
    written = {path.stem for path in tmp_path.glob("ckpt-*.index")} - {"ckpt-abc"}
    assert written == {"ckpt-3", "ckpt-4"} and foreign < {path.name for path in tmp_path.iterdir()}
    again, longer = small_training(tmp_path, epochs=4, callbacks=[Unexpected()]), small_training(tmp_path, epochs=6)
    assert len(again["loss"]) == 4 and longer["loss"][:4] == again["loss"] and len(longer["loss"]) == 6


class Unexpected(tf.keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        raise AssertionError


def test_a_folder_is_of_one_training_run_at_a_time_which_removes_what_a_killed_one_left(tmp_path):
    with _files.locked(tmp_path), pytest.raises(ValueError, match="`checkpoint_dir` must be of one training run"):
        small_training(tmp_path)
    left = [tmp_path / "ckpt-1_temp" / "part", tmp_path / "ckpt-1.tempstate12"]
    left[0].parent.mkdir()
    for path in left:
        path.touch()
    small_training(tmp_path)
    assert not any(path.exists() for path in left) and (tmp_path / "ckpt-2.index").exists()


def test_a_finished_run_completes_what_a_process_that_was_killed_after_its_last_checkpoint_did_not(tmp_path):
    small_training(tmp_path, epochs=4)
    expected = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for name in [name for name in expected if name.startswith("ckpt-3.")]:
        (tmp_path / name.replace("3", "2", 1)).write_bytes(expected[name])
    (tmp_path / "log.csv").write_bytes(expected["log.csv"][: expected["log.csv"].rindex(b"4,")])
    (ended := subprocess.Popen(["true"])).wait()
    for name in ("log.csv", "best.keras"):
        (tmp_path / f".unfinished-{socket.gethostname()}-{ended.pid}-1-1.{name}").touch()
    small_training(tmp_path, epochs=4, callbacks=[Unexpected()])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == expected
    os.utime(tmp_path / "log.csv", (0, 0))
    small_training(tmp_path, epochs=4, callbacks=[Unexpected()])
    assert (tmp_path / "log.csv").stat().st_mtime == 0  # not written again, which a full disk would prevent
