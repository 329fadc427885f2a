"""Draws the plots of the documentation: python tools/plot_relaxations.py

For each relaxation, writes to OUTPUT_DIR
    NAME_ranking.png   the smooth ranking of five documents, from soft to sharp
    NAME_error.png     the difference between smooth and exact metrics
    NAME_gradient.png  the norm of the gradient of the loss
    NAME_cost.png      the processor time of value and gradient by list length, compared with the other relaxations
and trade_off.png, which compares all relaxations. The lists are random with a fixed seed: everything except the times
is the same on every machine. Takes a few minutes; --only and --plots select a part.
"""

from __future__ import annotations

import dataclasses
import io
import pathlib
import time
from typing import Any

import matplotlib
import numpy as np
import tensorflow as tf
from absl import app, flags
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from tfr_smooth import _files, functional, losses, ops


@dataclasses.dataclass(frozen=True)
class Relaxation:
    """A ranking, and the range from soft to sharp of the argument that controls its sharpness."""

    title: str
    ranking: type
    argument: str
    soft: float
    sharp: float
    loss: str
    shown: tuple[float, ...] = ()  # values in the plot of the ranking; if empty, it shows positions over the range
    variants: tuple[dict[str, Any], ...] = ({},)

    def make(self, value: float, **kwargs: Any) -> Any:
        return self.ranking(**{self.argument: float(value)}, **kwargs)

    def values(self, count: int) -> np.ndarray:
        return np.geomspace(self.soft, self.sharp, count)

    @property
    def default(self) -> float:
        return losses.TABLE[self.loss].defaults[self.argument]

    @property
    def searched(self) -> tuple[float, ...]:
        """The values that the papers search."""
        return losses.TABLE[self.loss].searched[self.argument]


REGULARIZATIONS = ({"regularization": "l2"}, {"regularization": "kl"})
COLD = (10.0, 1.0, 0.1, 0.01)
RELAXATIONS = {
    "smoothi": Relaxation("SmoothI", ops.SmoothI, "alpha", 0.1, 1e4, "smoothi_ndcg", (1, 10, 100, 1000)),
    "approx": Relaxation("Approx", ops.Approx, "alpha", 0.1, 1e3, "approx_ndcg"),
    "softrank": Relaxation("SoftRank", ops.SoftRank, "sigma", 10, 1e-4, "soft_ndcg", (1, 0.3, 0.1, 0.03)),
    "neuralsort": Relaxation("NeuralSort", ops.NeuralSort, "temperature", 100, 1e-3, "neuralsort_ndcg", COLD),
    "softsort": Relaxation("SoftSort", ops.SoftSort, "temperature", 100, 1e-3, "softsort_ndcg", COLD),
    "fastsort": Relaxation(
        "FastSort", ops.FastSort, "regularization_strength", 100, 1e-3, "fastsort_ndcg", variants=REGULARIZATIONS
    ),
    "sinkhorn": Relaxation("Sinkhorn", ops.Sinkhorn, "epsilon", 10, 1e-5, "sinkhorn_ndcg", (1, 0.1, 0.01, 0.001)),
}
METRICS = {
    "NDCG": functional.NDCG(),
    "NDCG@5": functional.NDCG(topn=5),
    "P@5": functional.Precision(topn=5),
    "AP": functional.AveragePrecision(),
}
PLOTS = ("ranking", "error", "gradient", "cost")
FIVE_SCORES = [2.0, 1.5, 1.4, 0.3, -0.5]
LENGTHS = (10, 30, 100, 300, 1000)
BATCH = 8
LEAST_GRADIENT = 1e-6

# Okabe and Ito's colors, which color-blind people can distinguish.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#333333")
MARKERS = "osD^vPX"
STYLE = {
    "axes.prop_cycle": cycler(color=COLORS),
    "figure.constrained_layout.use": True,
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11.0,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E5E5E5",
    "legend.frameon": False,
    "lines.linewidth": 2.0,
}

_OUTPUT_DIR = flags.DEFINE_string("output_dir", "docs/images", "Folder for the PNG files.")
_ONLY = flags.DEFINE_list("only", list(RELAXATIONS), "Relaxations to draw and to compare.")
_PLOTS = flags.DEFINE_list("plots", [*PLOTS, "trade_off"], "Plots to draw.")
_SEED = flags.DEFINE_integer("seed", 1, "Seed of the random lists.")
_LISTS = flags.DEFINE_integer("lists", 200, "Random lists for error and gradient.", lower_bound=2)
_DOCUMENTS = flags.DEFINE_integer("documents", 30, "Documents per random list.", lower_bound=2)
_POINTS = flags.DEFINE_integer("points", 25, "Temperatures per curve.", lower_bound=2)
_RUNS = flags.DEFINE_integer("runs", 25, "Timed runs per length; the fastest counts.", lower_bound=1)
_THREADS = flags.DEFINE_integer("threads", 1, "TensorFlow threads.", lower_bound=1)


def random_lists(lists: int, documents: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels from 0 to 4, mostly low, and independent standard normal scores."""
    random = np.random.RandomState(_SEED.value)
    labels = random.choice(5, size=(lists, documents), p=[0.5, 0.3, 0.1, 0.06, 0.04]).astype(np.float64)
    labels[:, 0] = 4.0  # so that every list has a relevant document
    return labels, random.randn(lists, documents)


def errors(relaxation: Relaxation, values: np.ndarray, labels: np.ndarray, scores: np.ndarray) -> dict[str, np.ndarray]:
    """The mean of |smooth - exact| over lists for each value, by metric."""
    errors_by_metric = {}
    for name, metric in METRICS.items():
        exact = metric(labels, scores).numpy()
        smooth = [metric(labels, scores, ranking=relaxation.make(value)).numpy() for value in values]
        errors_by_metric[name] = np.array([np.abs(one - exact).mean() for one in smooth])
    return errors_by_metric


def gradient_sizes(relaxation: Relaxation, values: np.ndarray, labels: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The Euclidean norm of the gradient of NDCG with respect to the scores of a list, [values, lists]."""
    sizes = []
    for value in values:
        gradient = value_and_gradient(relaxation.make(value), labels, tf.constant(scores))[1]
        sizes.append(np.linalg.norm(gradient.numpy(), axis=1))
    return np.array(sizes)


def value_and_gradient(ranking: Any, labels: Any, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    with tf.GradientTape() as tape:
        tape.watch(scores)
        total = tf.reduce_sum(functional.NDCG()(labels, scores, ranking=ranking))
    return total, tape.gradient(total, scores)


def milliseconds(relaxation: Relaxation) -> np.ndarray:
    """The processor time of NDCG's value and gradient per float32 list of each length, with default arguments."""
    ranking = relaxation.ranking()
    by_length = []
    for length in LENGTHS:
        labels, scores = (tf.constant(array, tf.float32) for array in random_lists(BATCH, length))
        step = tf.function(lambda labels, scores: value_and_gradient(ranking, labels, scores))
        step(labels, scores)
        times = []
        for _ in range(_RUNS.value):
            start = time.process_time()
            step(labels, scores)[1].numpy()
            times.append(1e3 * (time.process_time() - start))
        by_length.append(min(times) / BATCH)  # The minimum, since other work on the machine only adds time.
    return np.array(by_length)


def draw_ranking(relaxation: Relaxation) -> Figure:
    return draw_indicators(relaxation) if relaxation.shown else draw_positions(relaxation)


def draw_indicators(relaxation: Relaxation) -> Figure:
    """The matrix of ranks and documents for four values."""
    figure = Figure(figsize=(6.4, 6.8))
    scores = tf.constant([FIVE_SCORES], tf.float64)
    all_axes = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes, value in zip(all_axes.flat, relaxation.shown, strict=True):
        shares = indicators(relaxation.make(value), scores)
        axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
        for (rank, document), share in np.ndenumerate(shares):
            ink = "white" if share > 0.6 else "black"
            axes.text(document, rank, f"{share:.2f}", ha="center", va="center", fontsize=11, color=ink)
        axes.set_title(f"{relaxation.argument} = {value:g}", loc="center", fontsize=11)
        axes.set_xticks(range(len(FIVE_SCORES)), [f"{score:g}" for score in FIVE_SCORES])
        axes.grid(False)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
    for axes in all_axes[-1]:
        axes.set_xlabel("score of the document")
    for axes in all_axes[:, 0]:
        axes.set_yticks(range(len(FIVE_SCORES)), range(1, len(FIVE_SCORES) + 1))
        axes.set_ylabel("rank")
    figure.suptitle(f"{relaxation.title}: how much of each document is at each rank", x=0.01, ha="left", fontsize=11)
    return figure


def indicators(ranking: ops.Ranking, scores: tf.Tensor) -> np.ndarray:
    """The smooth indicators of each document at each rank, [rank, document]."""
    mask = tf.ones_like(scores, tf.bool)
    if isinstance(ranking, ops.Sinkhorn):
        return ranking.transport(scores, mask).numpy()[0].T
    return ranking.indicators(scores, mask).numpy()[0]


def draw_positions(relaxation: Relaxation) -> Figure:
    """One curve of smooth positions per document."""
    variants = relaxation.variants
    figure = Figure(figsize=(4.5 * len(variants) + 1.5, 3.6))
    scores, values = tf.constant([FIVE_SCORES], tf.float64), relaxation.values(100)
    all_axes = figure.subplots(1, len(variants), sharey=True, squeeze=False)[0]
    for axes, variant in zip(all_axes, variants, strict=True):
        mask = tf.ones_like(scores, tf.bool)
        curves = np.array([relaxation.make(value, **variant).positions(scores, mask).numpy()[0] for value in values])
        for document, score in enumerate(FIVE_SCORES):
            (line,) = axes.plot(values, curves[:, document])
            axes.annotate(
                f" score {score:g}", (values[-1], curves[-1, document]), color=line.get_color(), va="center", fontsize=9
            )
        temperature_axis(axes, relaxation)
        axes.set_title(", ".join(f'{name}="{value}"' for name, value in variant.items()), fontsize=10)
        axes.margins(x=0.0)
    all_axes[0].set_yticks(range(1, len(FIVE_SCORES) + 1))
    all_axes[0].invert_yaxis()
    all_axes[0].set_ylabel("smooth position")
    figure.suptitle(f"{relaxation.title}: the position of each of five documents", x=0.01, ha="left", fontsize=11)
    return figure


def draw_error(relaxation: Relaxation, values: np.ndarray, error: dict[str, np.ndarray]) -> Figure:
    figure = Figure(figsize=(7.0, 3.8))
    axes = figure.subplots()
    for (name, curve), style in zip(error.items(), ("-", "--", "-.", ":"), strict=True):
        axes.plot(values, np.maximum(curve, 1e-12), label=name, linestyle=style)
    axes.set_yscale("log")
    axes.set_ylim(bottom=1e-5)
    axes.set_ylabel("mean |smooth - exact|")
    axes.set_title(f"{relaxation.title}: distance from the exact metric")
    temperature_axis(axes, relaxation)
    mark_searched(axes, relaxation)
    axes.legend(loc="lower left")
    return figure


def draw_gradient(relaxation: Relaxation, values: np.ndarray, sizes: np.ndarray) -> Figure:
    figure = Figure(figsize=(7.0, 3.8))
    axes = figure.subplots()
    low, median, high = np.maximum(np.quantile(sizes, [0.1, 0.5, 0.9], axis=1), LEAST_GRADIENT / 10)
    axes.fill_between(values, low, high, alpha=0.25, linewidth=0, label="80% of the lists")
    axes.plot(values, median, label="median list")
    axes.set_yscale("log")
    axes.set_ylim(LEAST_GRADIENT, 10 ** np.ceil(np.log10(high.max())))
    axes.set_ylabel("norm of the gradient of NDCG to the scores")
    axes.set_title(f"{relaxation.title}: size of the gradient")
    temperature_axis(axes, relaxation)
    mark_searched(axes, relaxation)
    axes.legend(loc="lower left")
    return figure


def draw_cost(times: dict[str, np.ndarray], title: str) -> Figure:
    """The times of one relaxation, with the others in gray."""
    figure = Figure(figsize=(7.0, 4.0))
    axes = figure.subplots()
    label_place = 0.0
    for name, curve in sorted(times.items(), key=lambda item: item[1][-1]):
        mine = name == title
        color = COLORS[0] if mine else "#BBBBBB"
        axes.plot(LENGTHS, curve, marker="o", markersize=5 if mine else 3, color=color, zorder=3 if mine else 2)
        label_place = max(curve[-1], 1.5 * label_place)  # so that labels do not overlap
        weight, ink = ("bold", color) if mine else ("normal", "#777777")
        place = (LENGTHS[-1] * 1.1, label_place)
        axes.annotate(name, place, color=ink, fontweight=weight, va="center", fontsize=9, annotation_clip=False)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(LENGTHS, [str(length) for length in LENGTHS])
    axes.set_xticks([], minor=True)
    everything = np.concatenate(list(times.values()))
    axes.set_ylim(10 ** np.floor(np.log10(everything.min())), 10 ** np.ceil(np.log10(everything.max())))
    axes.set_xlabel("documents in the list")
    axes.set_ylabel("milliseconds of processor time per list")
    axes.set_title(f"{title}: time of NDCG with its gradient")
    return figure


def draw_trade_off(
    results: dict[str, tuple[np.ndarray, np.ndarray]], defaults: dict[str, tuple[float, float]]
) -> Figure:
    """Error against gradient norm of each relaxation from soft to sharp; large markers are the defaults."""
    figure = Figure(figsize=(7.0, 4.8))
    axes = figure.subplots()
    for (name, (error, sizes)), marker in zip(results.items(), MARKERS, strict=False):
        relaxation = next(each for each in RELAXATIONS.values() if each.title == name)
        median = np.median(sizes, axis=1)
        seen = median > LEAST_GRADIENT
        label = f"{name}, {relaxation.argument} = {relaxation.soft:g} to {relaxation.sharp:g}"
        (line,) = axes.plot(median[seen], error[seen], marker=marker, markersize=3.5, linewidth=1.2, label=label)
        axes.plot(*defaults[name], marker=marker, markersize=10, color=line.get_color(), markeredgecolor="black")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left=1e-4)
    axes.set_ylim(bottom=1e-4)
    axes.set_xlabel("norm of the gradient of NDCG to the scores, median list")
    axes.set_ylabel("mean |smooth NDCG - exact NDCG|")
    axes.set_title("Sharper rankings have a smaller error (down), and finally no gradient (left)")
    axes.legend(fontsize=8, title="large marker: the default", title_fontsize=8)
    return figure


def temperature_axis(axes: Axes, relaxation: Relaxation) -> None:
    """Sharper is to the right, whether the argument is a temperature or its inverse."""
    axes.set_xscale("log")
    axes.set_xlim(relaxation.soft, relaxation.sharp)
    axes.set_xlabel(f"{relaxation.argument} (sharper to the right)")


def mark_searched(axes: Axes, relaxation: Relaxation) -> None:
    style = {"facecolor": "#F4F4F4", "edgecolor": "#BBBBBB", "linewidth": 0.8, "zorder": 0}
    axes.axvspan(min(relaxation.searched), max(relaxation.searched), **style, label="searched in the papers")


def save(figure: Figure, name: str) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    small = io.BytesIO()
    Image.open(buffer).convert("RGB").quantize(128).save(small, format="png", optimize=True)
    path = pathlib.Path(_OUTPUT_DIR.value) / f"{name}.png"
    _files.write_bytes(path, [small.getvalue()])
    print(f"  {path} ({len(small.getvalue()) / 1024:.0f} KB)", flush=True)


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    wanted = {*_PLOTS.value}
    unknown = {*_ONLY.value} - {*RELAXATIONS} | wanted - {*PLOTS, "trade_off"}
    if unknown:
        raise app.UsageError(f"--only and --plots must be known names, got {sorted(unknown)[0]!r}.")
    tf.config.threading.set_intra_op_parallelism_threads(_THREADS.value)
    tf.config.threading.set_inter_op_parallelism_threads(_THREADS.value)
    pathlib.Path(_OUTPUT_DIR.value).mkdir(parents=True, exist_ok=True)
    labels, scores = random_lists(_LISTS.value, _DOCUMENTS.value)
    times, results, defaults = {}, {}, {}
    for done, name in enumerate(_ONLY.value, start=1):
        relaxation = RELAXATIONS[name]
        print(f"{relaxation.title} ({done} of {len(_ONLY.value)})", flush=True)
        values = relaxation.values(_POINTS.value)
        if "ranking" in wanted:
            save(draw_ranking(relaxation), f"{name}_ranking")
        if wanted & {"error", "trade_off"}:
            error = errors(relaxation, values, labels, scores)
        if "error" in wanted:
            save(draw_error(relaxation, values, error), f"{name}_error")
        if wanted & {"gradient", "trade_off"}:
            sizes = gradient_sizes(relaxation, values, labels, scores)
        if "gradient" in wanted:
            save(draw_gradient(relaxation, values, sizes), f"{name}_gradient")
        if "trade_off" in wanted:
            results[relaxation.title] = (error["NDCG"], sizes)
            at_default = np.array([relaxation.default])
            default_error = errors(relaxation, at_default, labels, scores)["NDCG"][0]
            default_sizes = gradient_sizes(relaxation, at_default, labels, scores)
            defaults[relaxation.title] = (float(np.median(default_sizes)), float(default_error))
        if "cost" in wanted:
            times[relaxation.title] = milliseconds(relaxation)
            row = ", ".join(f"{length}: {ms:.2g}" for length, ms in zip(LENGTHS, times[relaxation.title], strict=True))
            print(f"  milliseconds per list, by documents: {row}", flush=True)
    if times:
        print("Times")
        for name in _ONLY.value:
            save(draw_cost(times, RELAXATIONS[name].title), f"{name}_cost")
    if results:
        print("Comparison")
        save(draw_trade_off(results, defaults), "trade_off")


if __name__ == "__main__":
    with matplotlib.rc_context(STYLE):
        app.run(main)
