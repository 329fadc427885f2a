"""`plot_training_curves`: the contents of the panels, and the file."""

import os
import re

import numpy as np
import pytest
from matplotlib.image import imread

from tfr_smooth.evaluation import plot_training_curves, training_curves

HISTORY = {
    "loss": [0.7, 0.6, 0.5],
    "smoothi_ndcg": [0.3, 0.4, 0.45],
    "ndcg": [0.35, 0.45, 0.5],
    "val_loss": [0.75, 0.65, 0.66],
    "val_smoothi_ndcg": [0.25, 0.35, 0.34],
    "val_ndcg": [0.3, 0.4, 0.39],
}


def first(epochs):
    return {name: values[:epochs] for name, values in HISTORY.items()}


@pytest.fixture
def panels(monkeypatch, tmp_path):
    """A function that plots a history and returns its two axes."""
    drawn = []
    draw = training_curves.draw
    monkeypatch.setattr(training_curves, "draw", lambda *arguments: drawn.append(draw(*arguments)) or drawn[-1])

    def plot(history, **options):
        plot_training_curves(tmp_path / "curves.png", history, **options)
        return drawn[-1].axes

    return plot


def lines(axes):
    """Maps the label of each curve in a panel to (epochs, values)."""
    shown = {line.get_label(): line.get_data() for line in axes.get_lines()}
    return {label: (list(x), list(y)) for label, (x, y) in shown.items() if not label.startswith("_")}


def test_losses_are_in_the_left_panel_and_metrics_in_the_right(panels):
    left, right = panels(HISTORY)
    for axes, names in ((left, ["loss"]), (right, ["smoothi_ndcg", "ndcg"])):
        expected = {f"{name}, training": ([1, 2, 3], HISTORY[name]) for name in names}
        expected |= {f"{name}, validation": ([1, 2, 3], HISTORY[f"val_{name}"]) for name in names}
        assert lines(axes) == expected
    for axes, title, name in ((left, "Loss by epoch", "loss"), (right, "Metrics by epoch", "metrics")):
        assert (axes.get_title("left"), axes.get_xlabel(), axes.get_ylabel()) == (title, "epoch", name)
        assert [text.get_text() for text in axes.get_legend().get_texts()] == list(lines(axes))


def test_training_is_dashed_and_validation_solid_in_the_same_color(panels):
    _, right = panels(HISTORY)
    by_label = {line.get_label(): line for line in right.get_lines()}
    colors = set()
    for name in ("smoothi_ndcg", "ndcg"):
        training, validation = by_label[f"{name}, training"], by_label[f"{name}, validation"]
        assert training.get_color() == validation.get_color()
        assert (training.get_linestyle(), validation.get_linestyle()) == ("--", "-")
        colors.add(training.get_color())
    assert len(colors) == 2


def test_the_best_epoch_is_marked_in_both_panels(panels):
    for axes in panels(HISTORY, best_epoch=2):
        (mark,) = [line for line in axes.get_lines() if line.get_linestyle() == ":"]
        assert list(mark.get_xdata()) == [2, 2]
        assert axes.get_xlabel() == "epoch (dotted: best on validation, 2)"
    for axes in panels(HISTORY):
        assert not [line for line in axes.get_lines() if line.get_linestyle() == ":"]


def test_a_single_epoch_shows_points(panels):
    left, right = panels(first(1))
    for axes in (left, right):
        low, high = axes.get_xlim()
        assert low < 1 < high
        for line in axes.get_lines():
            assert line.get_marker() == "o"
            assert line.get_markersize() > 0
    assert [tick for tick in left.get_xticks() if left.get_xlim()[0] <= tick <= left.get_xlim()[1]] == [1]


def test_values_that_are_not_finite_leave_gaps(panels):
    left, right = panels({"loss": [np.nan, 0.5, np.inf], "ndcg": np.float32([np.nan] * 3)})
    np.testing.assert_array_equal(lines(left)["loss, training"][1], [np.nan, 0.5, np.nan])
    assert np.isnan(lines(right)["ndcg, training"][1]).all()
    assert np.isfinite([left.get_ylim(), right.get_ylim()]).all()


def test_there_is_no_empty_panel(panels):
    for history in ({"loss": [0.5, 0.4]}, {"ndcg": [0.4, 0.5]}):
        (axes,) = panels(history, best_epoch=1)
        assert [label.split(",")[0] for label in lines(axes)] == list(history)


@pytest.mark.parametrize(
    "loss, scale",
    [
        ([16.0, 15.0, 0.3], "log"),
        ([2.0, 1.0, 0.3], "linear"),
        ([16.0, 0.3, -0.1], "symlog"),
        ([16.0, 0.3, -4.0], "linear"),
    ],
)
def test_losses_of_different_sizes_have_a_logarithmic_scale(panels, loss, scale):
    left, right = panels({"loss": loss, "ndcg": [0.01, 0.5, 0.6]})
    assert (left.get_yscale(), right.get_yscale()) == (scale, "linear")


def test_the_file_is_an_image_that_is_not_blank(tmp_path):
    path = tmp_path / "curves.png"
    path.write_bytes(b"before")
    plot_training_curves(str(path), HISTORY, best_epoch=2)
    picture = imread(path)
    assert picture.shape[:2] == (720, 1650)
    assert 0.01 < np.mean(picture[..., :3].min(axis=-1) < 0.9) < 0.5
    assert os.listdir(tmp_path) == ["curves.png"]


@pytest.mark.parametrize(
    "history, options, message",
    [
        ({}, {}, "`history` must have one number per epoch for each name, got lengths {}."),
        (
            {"loss": [1.0, 2.0], "val_loss": [1.0]},
            {},
            "`history` must have one number per epoch for each name, got lengths {'loss': 2, 'val_loss': 1}.",
        ),
        ({"loss": []}, {}, "`history['loss']` must be one number per epoch, at least one, got []."),
        ({"loss": ["0.5"]}, {}, "`history['loss']` must be one number per epoch, at least one, got ['0.5']."),
        (HISTORY, {"best_epoch": 4}, "`best_epoch` must be an integer <= 3, got 4."),
        (HISTORY, {"best_epoch": 0}, "`best_epoch` must be an integer >= 1, got 0."),
    ],
)
def test_bad_arguments_are_refused(history, options, message, tmp_path):
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        plot_training_curves(tmp_path / "curves.png", history, **options)
    assert os.listdir(tmp_path) == []
