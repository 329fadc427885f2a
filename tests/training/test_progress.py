"""The progress lines and the CSV log of a training run."""

import csv
import re

import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth import training
from tfr_smooth.training import progress


@pytest.fixture
def fitted(capsys):
    """A function that trains from one epoch to another, and returns the output."""
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    def fit(log, start, end):
        model.fit(
            np.ones([8, 2]), np.ones([8]), batch_size=2, initial_epoch=start, epochs=end, verbose=0, callbacks=[log]
        )
        return capsys.readouterr().out

    return fit


def test_each_epoch_prints_a_line_with_the_time_left(fitted):
    first, *epochs = fitted(training.ProgressLog(), 0, 3).splitlines()
    assert first == "Compiling the first step ..."
    assert len(epochs) == 3
    for number, line in enumerate(epochs, 1):
        end = {1: "", 2: r", \d+ s left", 3: ", done"}[number]  # the first epoch includes compilation
        assert re.fullmatch(rf"Epoch {number}/3: loss \d+\.\d{{4}}, \d+ s{end}", line)


def test_the_time_left_excludes_compiling(monkeypatch, capsys):
    now = iter([0.0, 100.0, 100.0, 102.0, 102.0, 106.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    log = training.ProgressLog()
    log.set_params({"epochs": 6, "steps": 4})
    log.on_train_begin()
    for epoch in range(3):
        log.on_epoch_begin(epoch)
        log.on_epoch_end(epoch, {"loss": 0.5})
    log.on_train_end()
    left = [line.rpartition(", ")[2] for line in capsys.readouterr().out.splitlines()]
    assert left == ["100 s", "8 s left", "9 s left"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (119, "119 s"), (150, "2 min"), (3599, "60 min"), (3600, "1 h 0 min"), (9000, "2 h 30 min")],
)
def test_durations_are_short(seconds, text):
    assert progress._duration(seconds) == text


@pytest.mark.slow
def test_many_epochs_print_few_lines_including_the_last(fitted):
    lines = fitted(training.ProgressLog(), 0, 25).splitlines()[1:]
    assert [line.partition("/")[0] for line in lines] == [f"Epoch {n}" for n in (1, 4, 7, 10, 13, 16, 19, 22, 25)]
    lines = fitted(training.ProgressLog(), 0, 24).splitlines()[1:]
    assert lines[-1].startswith("Epoch 24/24: ") and lines[-1].endswith(", done") and len(lines) == 9


def test_a_terminal_shows_one_line(fitted, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    first, shown, *others = fitted(training.ProgressLog(), 0, 3).split("\n")
    assert first == "Compiling the first step ..." and others == [""]
    steps = [text.removesuffix("\x1b[K") for text in shown.split("\r")[1:]]
    assert steps[0] == "Epoch 1/3: batch 1 of 4"
    assert steps[-1].startswith("Epoch 3/3: loss ") and steps[-1].endswith(", done")


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_the_log_continues_when_training_resumes(fitted, tmp_path):
    path = tmp_path / "log.csv"
    fitted(training.ProgressLog(path), 0, 3)
    before = rows(path)
    assert [row["epoch"] for row in before] == ["1", "2", "3"] and float(before[0]["loss"]) > 0
    fitted(training.ProgressLog(path), 2, 4)  # the third was interrupted and is repeated
    after = rows(path)
    assert [row["epoch"] for row in after] == ["1", "2", "3", "4"]
    assert after[:2] == before[:2] and after[2] != before[2]
    fitted(training.ProgressLog(path), 0, 1)
    assert [row["epoch"] for row in rows(path)] == ["1"]


def test_an_early_stop_says_so_with_the_best_epoch(capsys):
    dataset = tf.data.Dataset.from_tensors((tf.ones([4, 2]), tf.ones([4, 1])))
    model = tf.keras.Sequential([tf.keras.Input([2]), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    values = iter([0.1, 0.3, 0.2, 0.2])
    validation = training.Validation(lambda model: {"quality": next(values)}, monitor="quality", patience=2)
    training.train(model, lambda finished: dataset, epochs=9, validation=validation, verbose=True)
    assert capsys.readouterr().out.endswith("\nStopped early after epoch 4 of 9; the best one is 2\n")
    assert validation.best_epoch == 2
