"""Draws how the gradient of smooth NDCG sorts a list, in docs/images: python tools/plot_ascent.py

    ascent.png    scores, smooth ranking and NDCG@3 at three steps of gradient ascent
    ascent.webp   all steps in motion, which pages show unless the reader prefers less motion

each also as ascent_dark.* for the dark scheme.
"""

from __future__ import annotations

import io
import pathlib
import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import plot_relaxations
import tensorflow as tf
from figures import COLORS, save_both, text_color
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from tfr_smooth import _files, losses, measures, rankings

IMAGES = pathlib.Path(__file__).absolute().parents[1] / "docs" / "images"
LABELS = [3.0, 2.0, 1.0, 0.0, 0.0]
FIRST_SCORES = [-0.4, 0.1, -0.1, 0.9, 0.5]
TOPN, ALPHA, LEARNING_RATE, STEPS = 3, 2.0, 0.4, 40
SHOWN = (0, STEPS // 2, STEPS)
ARROW = 2.0  # its length per unit of the gradient
SMALL = 0.01  # is drawn without an arrow
FRAME_MILLISECONDS, LAST_MILLISECONDS = 110, 4000


class Step(NamedTuple):
    """A step of gradient ascent: the scores [documents], and what follows from them.

    Attributes:
      scores: The scores.
      gradient: The gradient of the smooth NDCG.
      shares: The share of each document at each rank, [ranks, documents].
      exact: NDCG.
      smooth: The smooth NDCG.
    """

    scores: np.ndarray
    gradient: np.ndarray
    shares: np.ndarray
    exact: float
    smooth: float


def ascent() -> Iterator[Step]:
    """The steps of gradient descent on the loss, from the first scores on."""
    labels, scores = tf.constant([LABELS]), tf.Variable([FIRST_SCORES])
    loss, ranking = losses.SmoothINDCGLoss(alpha=ALPHA, topn=TOPN), rankings.SmoothI(alpha=ALPHA)
    for _ in range(STEPS + 1):
        with tf.GradientTape() as tape:
            value = loss(labels, scores)
        gradient = tape.gradient(value, scores)
        shares = ranking.indicators(tf.convert_to_tensor(scores), labels >= 0.0, topn=TOPN)
        exact = measures.NDCG(topn=TOPN)(labels, scores)
        yield Step(scores.numpy()[0], -gradient.numpy()[0], shares.numpy()[0], float(exact[0]), 1.0 - float(value))
        scores.assign_sub(LEARNING_RATE * gradient)


def draw_still(steps: list[Step]) -> Figure:
    """Three steps below each other, above the measures of all steps."""
    figure = Figure(figsize=(plot_relaxations.WIDTH, 7.6), layout="constrained")
    *rows, below = figure.subfigures(len(SHOWN) + 1, 1, height_ratios=[1.0] * len(SHOWN) + [1.25])
    for row, number in zip(rows, SHOWN, strict=True):
        draw_step(*row.subplots(1, 2, width_ratios=(2.0, 1.0)), steps, number, with_names=number == 0)
    draw_measures(below.subplots(), steps, len(steps) - 1, marked=SHOWN)
    return figure


def draw_frame(steps: list[Step], number: int) -> Figure:
    """One step above the measures up to it."""
    figure = Figure(figsize=(plot_relaxations.WIDTH, 4.6), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(1.15, 1.0))
    draw_step(*above.subplots(1, 2, width_ratios=(2.0, 1.0)), steps, number, with_names=True)
    draw_measures(below.subplots(), steps, number, marked=(number,))
    return figure


def draw_step(left: Axes, right: Axes, steps: list[Step], number: int, *, with_names: bool) -> None:
    """The scores with arrows along the gradient, and the share of each document at the first ranks."""
    step, color, places = steps[number], COLORS[0], range(len(LABELS))
    look = {"arrowstyle": "-|>", "mutation_scale": 13.0, "color": COLORS[1], "linewidth": 2.0}
    look |= {"shrinkA": 0.0, "shrinkB": 0.0}
    for place, (score, slope) in enumerate(zip(step.scores, step.gradient, strict=True)):
        if abs(slope) > SMALL:
            start = score + np.copysign(0.06, slope)  # the edge of the dot
            left.annotate("", (start + ARROW * slope, place), (start, place), arrowprops=look)
    left.scatter(step.scores, places, s=75, color=color, zorder=3)
    left.set_xlim(min(shown.scores.min() for shown in steps) - 0.4, max(shown.scores.max() for shown in steps) + 0.4)
    left.set_yticks(places, [f"label {label:g}" for label in LABELS])
    left.set_title(f"step {number}: scores and gradient" if with_names else f"step {number}")
    plot_relaxations.draw_shares(right, step.shares.T, color, fontsize=9.0)
    right.set_xticks(range(TOPN), [f"rank {rank + 1}" for rank in range(TOPN)], fontsize=9.0)
    right.set_aspect("auto")
    right.set_yticks([])
    right.set_title("smooth ranking" if with_names else "")
    left.set_ylim(len(LABELS) - 0.5, -0.5)


def draw_measures(axes: Axes, steps: list[Step], last: int, marked: tuple[int, ...]) -> None:
    """The exact and the smooth measure up to a step, with marks at some steps."""
    for name, values, color, style in (
        (f"NDCG@{TOPN}: gradient 0", [step.exact for step in steps], text_color(), "steps-post"),
        (f"SmoothI-NDCG@{TOPN}, alpha = {ALPHA:g}", [step.smooth for step in steps], COLORS[1], "default"),
    ):
        axes.plot(range(last + 1), values[: last + 1], color=color, label=name, drawstyle=style)
        axes.plot(marked, [values[number] for number in marked], "o", color=color, markersize=5)
    axes.set_xlim(-1.0, len(steps))
    axes.set_ylim(0.0, 1.05)
    axes.set_yticks([0.0, 0.5, 1.0])
    axes.set_xlabel(f"step of gradient ascent on SmoothI-NDCG@{TOPN}")
    axes.set_ylabel(f"NDCG@{TOPN}")
    axes.legend(loc="lower right", fontsize=9.0)


def save_motion(path: pathlib.Path, theme: str, steps: list[Step]) -> None:
    """Writes all steps as an animation that repeats after a pause."""
    frames, written = [], io.BytesIO()
    for number in range(len(steps)):
        drawn = io.BytesIO()
        with theme(theme):
            draw_frame(steps, number).savefig(drawn, format="png", dpi=130)
        frames.append(Image.open(drawn).convert("RGB"))
    durations = [FRAME_MILLISECONDS] * (len(frames) - 1) + [LAST_MILLISECONDS]
    options = {"duration": durations, "loop": 0, "lossless": True, "method": 6, "minimize_size": True}
    frames[0].save(written, format="webp", save_all=True, append_images=frames[1:], **options)
    _files.write_bytes(path, [written.getvalue()])


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        sys.exit(f"Unknown argument {argv[1]!r}.")
    steps = list(ascent())
    for path, theme in zip(save_both(IMAGES / "ascent.png", lambda: draw_still(steps)), ("light", "dark"), strict=True):
        print(path)
        save_motion(path.with_suffix(".webp"), theme, steps)
        print(path.with_suffix(".webp"))


if __name__ == "__main__":
    main(sys.argv)
