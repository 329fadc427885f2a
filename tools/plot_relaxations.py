"""Draws the plots of the relaxations: python tools/plot_relaxations.py

For each relaxation, writes to OUTPUT_DIR
    NAME_ranking.png   the smooth ranking of five documents, from soft to sharp
    NAME_error.png     the difference between smooth and exact metrics, and the norm of the gradient
and for all relaxations together
    sharpening.png     exact and smooth NDCG as the score of one document grows
    trade_off.png      error against gradient
    cost.png           the processor time of value and gradient by list length
each also as *_dark.png for the dark scheme. Values are read from errors.csv and times from costs.csv in OUTPUT_DIR.
They are computed if they are missing, or with --compute, which takes a few minutes. The lists are random with a fixed
seed: everything except the times is the same on every machine. --only and --plots select a part.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import time
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import tensorflow as tf
from absl import app, flags
from figures import COLORS, GRAY, save_both, text_color
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from tfr_smooth import measures, rankings


@dataclasses.dataclass(frozen=True)
class Relaxation:
    """A ranking, and what to draw of it.

    Args:
      ranking: The class of the ranking.
      argument: Name of its temperature.
      soft: The soft end of the range of the temperature.
      sharp: The sharp end.
      searched: The least and the largest value that the papers search, if they search.
      loss: The first word of the names of its losses.
      shown: Four values in the plot of indicators; without them, the plot shows positions.
      unit: The unit of the temperature.
      variants: Other arguments of the ranking, one for each plot of positions.
    """

    ranking: type[rankings.Ranking]
    argument: str
    soft: float
    sharp: float
    searched: tuple[float, float] | None
    loss: str
    shown: tuple[float, ...] = ()
    unit: str = "in units of the scores"
    variants: tuple[dict[str, Any], ...] = ({},)

    def make(self, value: float, **kwargs: Any) -> Any:
        return self.ranking(**{self.argument: float(value)}, **kwargs)

    def values(self, per_decade: int) -> np.ndarray:
        """Values from soft to sharp, with all powers of ten."""
        low, high = np.log10([self.soft, self.sharp])
        return np.logspace(low, high, round(abs(high - low)) * per_decade + 1)

    @property
    def title(self) -> str:
        return self.ranking.__name__

    @property
    def look(self) -> dict[str, Any]:
        place = list(RELAXATIONS).index(self.title.lower())  # the same color in all plots
        return {"color": (*COLORS, text_color(), GRAY, _BROWN)[place], "marker": "osD^vPX*h"[place]}

    @property
    def default(self) -> float:
        return getattr(self.ranking(), self.argument)


_BROWN = "#8C6D31"
INVERSE = "per unit of score"
REGULARIZATIONS = ({"regularization": "l2"}, {"regularization": "kl"})
TEMPERATURES = {"searched": (0.1, 100.0), "shown": (10.0, 1.0, 0.1, 0.01)}
RELAXATIONS = {
    relaxation.title.lower(): relaxation
    for relaxation in (
        Relaxation(rankings.SmoothI, "alpha", 0.1, 1e4, (0.1, 100.0), "smoothi", (1.0, 10.0, 100.0, 1e3), INVERSE),
        Relaxation(rankings.Approx, "alpha", 0.1, 1e3, (0.1, 100.0), "approx", unit=INVERSE),
        Relaxation(rankings.SoftRank, "sigma", 10.0, 1e-4, (1e-4, 1.0), "soft", (1.0, 0.3, 0.1, 0.03)),
        Relaxation(rankings.NeuralSort, "temperature", 100.0, 1e-3, loss="neuralsort", **TEMPERATURES),
        Relaxation(rankings.SoftSort, "temperature", 100.0, 1e-3, loss="softsort", **TEMPERATURES),
        Relaxation(
            *(rankings.FastSort, "regularization_strength", 100.0, 1e-3, (0.01, 10.0), "fastsort"),
            variants=REGULARIZATIONS,
        ),
        Relaxation(
            rankings.Sinkhorn, "epsilon", 10.0, 1e-5, (0.01, 10.0), "sinkhorn", (1.0, 0.1, 0.01, 1e-3), "no unit"
        ),
        Relaxation(rankings.LapSum, "alpha", 100.0, 1e-3, None, "lapsum"),
        Relaxation(
            rankings.SortingNetwork, "steepness", 0.1, 1e4, None, "sortingnetwork", (1.0, 10.0, 100.0, 1e3), INVERSE
        ),
    )
}
METRICS = {
    "NDCG": measures.NDCG(),
    "NDCG@5": measures.NDCG(topn=5),
    "P@5": measures.Precision(topn=5),
    "AP": measures.AveragePrecision(),
}
PLOTS = ("ranking", "error")
COMPARISONS = ("sharpening", "trade_off", "cost")
PERCENTILES = (10, 50, 90)
# Narrow, so that the text is readable at the width of a phone.
WIDTH = 5.4
FIVE_SCORES = [2.0, 1.5, 1.4, 0.3, -0.5]
BATCH = 8
LEAST_GRADIENT = 1e-6

_OUTPUT_DIR = flags.DEFINE_string("output_dir", "docs/images", "Folder for the PNG files.")
_ONLY = flags.DEFINE_list("only", list(RELAXATIONS), "Relaxations to draw and to compare.")
_PLOTS = flags.DEFINE_list("plots", [*PLOTS, *COMPARISONS], "Plots to draw.")
_COMPUTE = flags.DEFINE_bool("compute", False, "Compute the values and times again that the plots need.")
_SEED = flags.DEFINE_integer("seed", 1, "Seed of the random lists.")
_LISTS = flags.DEFINE_integer("lists", 200, "Random lists for error and gradient.", lower_bound=2)
_DOCUMENTS = flags.DEFINE_integer("documents", 30, "Documents per random list.", lower_bound=2)
_LENGTHS = flags.DEFINE_list("lengths", ["10", "30", "100", "300", "1000"], "Lengths of the lists in the plot of cost.")
_PER_DECADE = flags.DEFINE_integer("per_decade", 5, "Points of a curve per power of ten.", lower_bound=1)
_RUNS = flags.DEFINE_integer("runs", 25, "Timed runs per length; the fastest counts.", lower_bound=1)
_THREADS = flags.DEFINE_integer("threads", 1, "TensorFlow threads.", lower_bound=1)


def random_lists(lists: int, documents: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels from 0 to 4, mostly low, and independent standard normal scores."""
    random = np.random.RandomState(_SEED.value)
    labels = random.choice(5, size=(lists, documents), p=[0.5, 0.3, 0.1, 0.06, 0.04]).astype(np.float64)
    labels[:, 0] = 4.0  # so that every list has a relevant document
    return labels, random.randn(lists, documents)


def computed_errors(relaxation: Relaxation, labels: np.ndarray, scores: np.ndarray) -> pd.DataFrame:
    """The mean of |smooth - exact| over lists by metric, and percentiles of the gradient's norm over lists, by value.

    The gradient is that of NDCG with respect to the scores of a list.
    """
    exact = {name: metric(labels, scores).numpy() for name, metric in METRICS.items()}
    rows = []
    for value in np.union1d(relaxation.values(_PER_DECADE.value), [relaxation.default]):
        ranking = relaxation.make(value)
        smooth = {name: metric(labels, scores, ranking=ranking).numpy() for name, metric in METRICS.items()}
        gradient = value_and_gradient(ranking, labels, tf.constant(scores))[1].numpy()
        percentiles = np.percentile(np.linalg.norm(gradient, axis=1), PERCENTILES)
        rows.append(
            {"value": value}
            | {name: np.abs(smooth[name] - exact[name]).mean() for name in METRICS}
            | {f"gradient_p{at}": norm for at, norm in zip(PERCENTILES, percentiles, strict=True)}
        )
    rows.sort(key=lambda row: row["value"], reverse=relaxation.soft > relaxation.sharp)
    return pd.DataFrame(rows)


def value_and_gradient(ranking: Any, labels: Any, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    with tf.GradientTape() as tape:
        tape.watch(scores)
        total = tf.reduce_sum(measures.NDCG()(labels, scores, ranking=ranking))
    return total, tape.gradient(total, scores)


def measured_times(relaxation: Relaxation) -> pd.DataFrame:
    """The processor time of NDCG's value and gradient per float32 list of each length, with default arguments."""
    ranking = relaxation.ranking()
    by_length = []
    lengths = [*map(int, _LENGTHS.value)]
    for length in lengths:
        labels, scores = (tf.constant(array, tf.float32) for array in random_lists(BATCH, length))
        step = tf.function(lambda labels, scores: value_and_gradient(ranking, labels, scores))
        step(labels, scores)
        times = []
        for _ in range(_RUNS.value):
            start = time.process_time()
            step(labels, scores)[1].numpy()
            times.append(1e3 * (time.process_time() - start))
        by_length.append(min(times) / BATCH)  # The minimum, since other work on the machine only adds time.
    return pd.DataFrame({"documents": lengths, "milliseconds": by_length})


def stored(name: str, compute: Any) -> dict[str, pd.DataFrame]:
    """Returns one table per relaxation from a CSV file, after adding those that are missing or asked for."""
    path = pathlib.Path(_OUTPUT_DIR.value) / name
    tables = read_tables(path) if path.exists() else {}
    for done, key in enumerate(_ONLY.value, start=1):
        if _COMPUTE.value or key not in tables:
            print(f"{name}: {key} ({done} of {len(_ONLY.value)})", flush=True)
            tables[key] = compute(RELAXATIONS[key]).assign(relaxation=key)
            text = pd.concat(tables.values()).set_index("relaxation").to_csv(float_format="%.6g")
            path.write_text(text, encoding="utf-8")
    tables = read_tables(path)  # as rounded, so that plots from the file are the same
    return {key: tables[key] for key in _ONLY.value}


def read_tables(path: pathlib.Path) -> dict[str, pd.DataFrame]:
    return dict(iter(pd.read_csv(path).groupby("relaxation", sort=False)))


def draw_ranking(relaxation: Relaxation) -> Figure:
    return draw_indicators(relaxation) if relaxation.shown else draw_positions(relaxation)


def new_figure(height: float) -> Figure:
    return Figure(figsize=(WIDTH, height), layout="constrained")


def draw_indicators(relaxation: Relaxation) -> Figure:
    """The matrix of ranks and documents for four values."""
    figure = new_figure(6.0)
    scores = tf.constant([FIVE_SCORES], tf.float64)
    all_axes = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes, value in zip(all_axes.flat, relaxation.shown, strict=True):
        draw_shares(axes, indicators(relaxation.make(value), scores), relaxation.look["color"], fontsize=10.5)
        default = " (default)" if value == relaxation.default else ""
        axes.set_title(f"{relaxation.argument} = {value:g}{default}", loc="center")
        axes.set_xticks(range(len(FIVE_SCORES)), [f"{score:g}" for score in FIVE_SCORES])
    for axes in all_axes[-1]:
        axes.set_xlabel("score of the document")
    for axes in all_axes[:, 0]:
        axes.set_yticks(range(len(FIVE_SCORES)), range(1, len(FIVE_SCORES) + 1))
        axes.set_ylabel("rank")
    figure.suptitle(f"{relaxation.title}: share of each document at each rank", x=0.01, ha="left", fontsize=11)
    return figure


def draw_shares(axes: Axes, shares: np.ndarray, color: Any, fontsize: float) -> None:
    """A matrix of numbers from 0 to 1 as cells from the background to a color."""
    colors = LinearSegmentedColormap.from_list("shares", [matplotlib.rcParams["axes.facecolor"], color])
    axes.imshow(shares, cmap=colors, vmin=0.0, vmax=1.0)
    for (row, column), share in np.ndenumerate(shares):
        ink = "black" if np.dot(colors(share)[:3], [0.299, 0.587, 0.114]) > 0.5 else "white"
        axes.text(column, row, f"{share:.2f}", ha="center", va="center", fontsize=fontsize, color=ink)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def indicators(ranking: rankings.Ranking, scores: tf.Tensor) -> np.ndarray:
    """The smooth indicators of each document at each rank, [rank, document]."""
    mask = tf.ones_like(scores, tf.bool)
    if isinstance(ranking, rankings.Sinkhorn):
        return ranking.transport(scores, mask).numpy()[0].T
    if type(ranking).indicators is rankings.Ranking.indicators:  # the relevance at each rank, if one document has all
        each = tf.eye(scores.shape[1], dtype=scores.dtype)
        return np.stack([ranking.rank_relevance(scores, one[tf.newaxis], mask).numpy()[0] for one in each], axis=1)
    return ranking.indicators(scores, mask).numpy()[0]


def draw_positions(relaxation: Relaxation) -> Figure:
    """One curve of smooth positions per document."""
    variants = relaxation.variants
    figure = new_figure(0.8 + 2.5 * len(variants))
    scores, values = tf.constant([FIVE_SCORES], tf.float64), relaxation.values(20)
    all_axes = figure.subplots(len(variants), 1, sharex=True, squeeze=False)[:, 0]
    for axes, variant in zip(all_axes, variants, strict=True):
        mask = tf.ones_like(scores, tf.bool)
        curves = np.array([relaxation.make(value, **variant).positions(scores, mask).numpy()[0] for value in values])
        for document, score in enumerate(FIVE_SCORES):
            axes.plot(values, curves[:, document], color=relaxation.look["color"])
            axes.annotate(f" score {score:g}", (values[-1], curves[-1, document]), va="center", fontsize=9)
        mark_default(axes, relaxation)
        axes.set_title(", ".join(f'{name}="{value}"' for name, value in variant.items()))
        axes.set_yticks(range(1, len(FIVE_SCORES) + 1))
        axes.invert_yaxis()
        axes.set_ylabel("smooth position")
    temperature_axis(all_axes[-1], relaxation)
    title = f"{relaxation.title}: positions of five documents (dashed: default, {relaxation.default:g})"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure


def draw_error(relaxation: Relaxation, table: pd.DataFrame) -> Figure:
    """Error of the metrics above the norm of the gradient."""
    figure = new_figure(6.8)
    upper, lower = figure.subplots(2, 1, sharex=True)
    values, color, gray = table["value"], relaxation.look["color"], text_color()
    lines = ((color, "-"), (color, (0, (4, 1.5))), (gray, ":"), (gray, "-."))
    for name, (ink, line) in zip(METRICS, lines, strict=True):
        upper.plot(values, np.maximum(table[name], 1e-12), label=name, color=ink, linestyle=line)
    upper.set_ylim(bottom=1e-5)
    upper.set_ylabel("mean |smooth - exact|")
    upper.set_title(f"{relaxation.title}: error of the smooth metric")
    low, median, high = (np.maximum(table[f"gradient_p{at}"], LEAST_GRADIENT / 10) for at in PERCENTILES)
    lower.fill_between(
        values, low, high, color=color, alpha=0.25, linewidth=0, label="10th to 90th percentile of lists"
    )
    lower.plot(values, median, color=color, label="median of lists")
    lower.set_ylim(LEAST_GRADIENT, 10 ** np.ceil(np.log10(high.max())))
    lower.set_ylabel("gradient norm, per unit of score")
    lower.set_title(f"{relaxation.title}: norm of the gradient of NDCG")
    for axes in (upper, lower):
        axes.set_yscale("log")
        shade = {"color": GRAY, "alpha": 0.15, "linewidth": 0, "zorder": 0}
        if relaxation.searched:
            axes.axvspan(*relaxation.searched, **shade, label="searched in the papers")
        mark_default(axes, relaxation)
    temperature_axis(lower, relaxation)
    # Below the panels, where it covers no curve.
    legend = {
        label: handle
        for axes in (upper, lower)
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(legend.values(), legend.keys(), loc="outside lower left", ncols=2, fontsize=9)
    return figure


def draw_sharpening() -> Figure:
    """The steps of exact NDCG, and the smooth curves of Approx from soft to sharp."""
    moved = np.linspace(-2.0, 3.0, 1001)
    others = np.tile([2.0, 1.0, 0.2, -0.7], (len(moved), 1))
    labels, scores = np.tile([3.0, 1.0, 0.0, 2.0, 0.0], (len(moved), 1)), np.column_stack([moved, others])
    figure = new_figure(3.4)
    axes = figure.subplots()
    axes.plot(moved, measures.NDCG()(labels, scores), color=text_color(), label="NDCG: gradient 0")
    for alpha, color in zip((1.0, 10.0, 100.0), COLORS, strict=False):
        smooth = measures.NDCG()(labels, scores, ranking=rankings.Approx(alpha=alpha))
        axes.plot(moved, smooth, color=color, linewidth=1.3, label=f"ApproxNDCG, alpha = {alpha:g}")
    axes.set_xlabel("score of the most relevant of five documents")
    axes.set_ylabel("NDCG")
    axes.legend(fontsize=9)
    return figure


def draw_cost(tables: dict[str, pd.DataFrame]) -> Figure:
    figure = new_figure(4.6)
    axes = figure.subplots()
    label_place = 0.0
    for name, table in sorted(tables.items(), key=lambda item: item[1]["milliseconds"].iloc[-1]):
        relaxation, times = RELAXATIONS[name], table["milliseconds"]
        axes.plot(table["documents"], times, **relaxation.look, markersize=5)
        label_place = max(times.iloc[-1], 1.6 * label_place)  # so that labels do not overlap
        place = (table["documents"].iloc[-1] * 1.12, label_place)
        axes.annotate(relaxation.title, place, color=relaxation.look["color"], va="center", annotation_clip=False)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(top=2 * label_place)
    axes.set_xticks([*map(int, _LENGTHS.value)], _LENGTHS.value)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("documents per list")
    axes.set_ylabel("processor time per list, milliseconds")
    axes.set_title("Time of value and gradient of NDCG, with default arguments")
    return figure


def draw_trade_off(tables: dict[str, pd.DataFrame]) -> Figure:
    """Error against gradient norm from soft to sharp, with markers at powers of ten and large ones at the defaults."""
    figure = new_figure(6.2)
    axes = figure.subplots()
    for name, table in tables.items():
        relaxation = RELAXATIONS[name]
        argument, look = relaxation.argument, relaxation.look
        table = table[table["gradient_p50"] > LEAST_GRADIENT]
        limits = f"{relaxation.soft:g} to {relaxation.sharp:g}"
        label = f"{relaxation.title}: {argument} from {limits}, default {relaxation.default:g}"
        x, y = table["gradient_p50"], table["NDCG"]
        powers = np.isclose(np.log10(table["value"]) % 1, [[0.0], [1.0]], atol=1e-4).any(axis=0)
        axes.plot(x, y, **look, markersize=4, linewidth=1.3, markevery=list(np.flatnonzero(powers)), label=label)
        default = np.isclose(table["value"], relaxation.default, rtol=1e-4)
        edge = {"markersize": 10, "markeredgecolor": text_color(), "markeredgewidth": 1.2, "zorder": 3}
        axes.plot(x[default], y[default], **look, **edge)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left=1e-4)
    axes.set_ylim(bottom=1e-4)
    axes.set_xlabel("gradient norm of NDCG, per unit of score (median list)")
    axes.set_ylabel("mean |smooth NDCG - exact NDCG|")
    axes.set_title("Error against gradient, from soft (top) to sharp (bottom)")
    title = "Small markers: powers of ten of the argument. Large: the default."
    legend = figure.legend(loc="outside lower left", fontsize=9, title=title, title_fontsize=9)
    legend.set_alignment("left")
    return figure


def temperature_axis(axes: Axes, relaxation: Relaxation) -> None:
    """Sharper is to the right, for a temperature and for its inverse."""
    axes.set_xscale("log")
    axes.set_xlim(relaxation.soft, relaxation.sharp)
    axes.xaxis.set_major_locator(LogLocator(numticks=10))
    axes.set_xlabel(f"{relaxation.argument}, {relaxation.unit} (sharper to the right)")


def mark_default(axes: Axes, relaxation: Relaxation) -> None:
    label = f"default, {relaxation.argument} = {relaxation.default:g}"
    axes.axvline(relaxation.default, color=text_color(), linewidth=1.0, linestyle="--", label=label)


def save(name: str, draw: Any, *args: Any) -> None:
    for path in save_both(pathlib.Path(_OUTPUT_DIR.value) / f"{name}.png", functools.partial(draw, *args)):
        print(f"  {path} ({path.stat().st_size / 1024:.0f} KB)", flush=True)


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    wanted = {*_PLOTS.value}
    unknown = {*_ONLY.value} - {*RELAXATIONS} | wanted - {*PLOTS, *COMPARISONS}
    if unknown:
        raise app.UsageError(f"--only and --plots must be known names, got {sorted(unknown)[0]!r}.")
    tf.config.threading.set_intra_op_parallelism_threads(_THREADS.value)
    tf.config.threading.set_inter_op_parallelism_threads(_THREADS.value)
    pathlib.Path(_OUTPUT_DIR.value).mkdir(parents=True, exist_ok=True)
    if "ranking" in wanted:
        for name in _ONLY.value:
            save(f"{name}_ranking", draw_ranking, RELAXATIONS[name])
    if wanted & {"error", "trade_off"}:
        labels, scores = random_lists(_LISTS.value, _DOCUMENTS.value)
        tables = stored("errors.csv", lambda relaxation: computed_errors(relaxation, labels, scores))
        if "error" in wanted:
            for name, table in tables.items():
                save(f"{name}_error", draw_error, RELAXATIONS[name], table)
        if "trade_off" in wanted:
            save("trade_off", draw_trade_off, tables)
    if "sharpening" in wanted:
        save("sharpening", draw_sharpening)
    if "cost" in wanted:
        save("cost", draw_cost, stored("costs.csv", measured_times))


if __name__ == "__main__":
    app.run(main)
