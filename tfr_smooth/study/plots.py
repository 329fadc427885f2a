"""The plots of a study, as SVG. Each function returns None if the results lack its jobs."""

from __future__ import annotations

import functools
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfr_smooth import _extras, _plotting
from tfr_smooth.study.jobs import MEASURES
from tfr_smooth.study.results import Results, labels
from tfr_smooth.study.selection import Entry
from tfr_smooth.study.titles import measure_title, ranker_title

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MAIN = "ndcg"


def metric_by_ranker(results: Results, dataset: str, comparison: pd.DataFrame) -> Figure:
    """Draws mean and standard error of three measures by ranker; `tables.compare` returns the `comparison`."""
    measures = ("ndcg_cut_1", "ndcg_cut_10", "ndcg")
    with _extras.needed("matplotlib", extra="study", by="The report"):
        from matplotlib.ticker import MaxNLocator
    rankers = list(comparison["ranker"].drop_duplicates())
    folds = results.queries.loc[results.queries["dataset"] == dataset, "fold"].nunique()
    # Narrow, so that the text is readable at the width of a phone.
    figure, axes = _panels(1, len(measures), 6.0, 1.3 + 0.27 * len(rankers), sharey=True)
    for panel, measure in zip(axes.flat, measures, strict=True):
        rows = comparison[comparison["measure"] == measure].set_index("ranker")
        for place, ranker in enumerate(rankers):
            mean, error, look = rows["mean"][ranker], rows["stderr"][ranker], _plotting.look(ranker)
            panel.errorbar([mean], [place], xerr=[error], fmt=look.marker, color=look.color, capsize=2, markersize=5)
        panel.set_yticks(range(len(rankers)), [*map(ranker_title, rankers)], fontsize=9)
        panel.tick_params(axis="x", labelsize=9)
        panel.xaxis.set_major_locator(MaxNLocator(3))
        panel.set_title(measure_title(measure), loc="center")
        panel.grid(axis="y", visible=False)
    axes.flat[0].invert_yaxis()
    figure.supxlabel(f"mean and standard error over {'folds' if folds > 1 else 'queries'}", fontsize=10)
    return figure


def wins_and_losses(results: Results, dataset: str, comparison: pd.DataFrame) -> Figure | None:
    """Draws the difference in NDCG between the best and the second ranker per query, in descending order."""
    means = comparison[comparison["measure"] == _MAIN].set_index("ranker")["mean"].sort_values(ascending=False)
    if len(means) < 2:
        return None
    first, second = means.index[:2]
    queries = results.queries[results.queries["dataset"] == dataset]
    ndcg = queries.groupby(["fold", "query", "ranker"])[_MAIN].mean().unstack("ranker")[[first, second]].dropna()
    differences = np.sort((ndcg[first] - ndcg[second]).to_numpy())[::-1]
    figure, axes = _panels(1, 1, 7.5, 3.0)
    panel = axes.flat[0]
    panel.fill_between(np.arange(len(differences)), differences, step="mid", color=_plotting.COLORS[0], alpha=0.7)
    panel.axhline(0.0, color=_plotting.text_color(), linewidth=0.8)
    wins, draws = int((differences > 0).sum()), int((differences == 0).sum())
    counts = f"{wins} wins, {draws} draws, {len(differences) - wins - draws} losses"
    panel.set_title(f"{ranker_title(first)}: {counts} to {ranker_title(second)}")
    panel.set_xlabel("test queries, by difference")
    panel.set_ylabel("difference in NDCG")
    return figure


def learning_curves(results: Results, dataset: str) -> Figure | None:
    """Draws loss, smooth metric, exact metric and their difference by epoch: means over folds and seeds."""
    jobs = results.jobs[(results.jobs["dataset"] == dataset) & results.jobs["selected"]]
    curves = {label: _mean_curves(jobs[jobs["ranker"] == label]["curves"]) for label in labels(results)}
    curves = {label: found for label, found in curves.items() if found}
    if not curves:
        return None
    panels = {
        "loss, training": lambda found: found.get("loss"),
        "smooth metric, validation": lambda found: found.get("valid_smooth"),
        "exact metric, validation": lambda found: found.get("valid_exact"),
        "smooth minus exact, validation": lambda found: (
            found["valid_smooth"] - found["valid_exact"] if "valid_smooth" in found else None
        ),
        "NDCG, validation": lambda found: found.get("valid_ndcg"),
    }
    figure, axes = _panels(2, 3, 9.6, 6.4)
    for panel, (title, values_of) in zip(axes.flat, panels.items(), strict=False):
        _lines(panel, {label: _points(values_of(found)) for label, found in curves.items()})
        panel.set_title(title)
        panel.set_xlabel("epoch")
    if all(value > 0.0 for found in curves.values() for value in found.get("loss", ())):
        axes.flat[0].set_yscale("log")  # Losses differ in scale.
    gap = axes.flat[3]
    gap.axhline(0.0, color=_plotting.text_color(), linewidth=0.8)
    gap.set_ylabel("above 0: smooth exceeds exact")
    _legend(figure, axes, axes.flat[-1])
    return figure


def epoch_seconds(results: Results, dataset: str) -> Figure | None:
    """Draws the processor time of a training epoch by loss: medians over jobs."""
    jobs = results.jobs[(results.jobs["dataset"] == dataset) & results.jobs["epoch_seconds"].notna()]
    seconds = jobs[jobs["ranker"].isin(labels(results))].groupby("ranker")["epoch_seconds"].median().sort_values()
    if seconds.empty:
        return None
    figure, axes = _panels(1, 1, 7.5, 1.0 + 0.25 * len(seconds))
    colors = [_plotting.look(ranker).color for ranker in seconds.index]
    axes.flat[0].barh([*map(ranker_title, seconds.index)], seconds.to_numpy(), color=colors)
    axes.flat[0].set_xlabel("processor time per epoch, seconds")
    axes.flat[0].grid(axis="y", visible=False)
    return figure


def sweep_lines(results: Results, dataset: str, sweep: str, setting: str, scale: str = "linear") -> Figure | None:
    """Draws validation and test NDCG by one setting, one line per combination of the other settings."""
    entries = {label: Entry.parse(label) for label in labels(results, sweep) if not label.endswith(")")}
    if not entries:
        return None
    jobs = results.jobs[(results.jobs["dataset"] == dataset) & results.jobs["selected"]]
    valid = jobs.groupby(["ranker", "fold"])[f"valid_{_MAIN}"].mean().groupby("ranker").mean()
    test = _means(results, dataset, list(entries))[_MAIN]
    values = list(dict.fromkeys(_text(entry.settings[setting]) for entry in entries.values()))
    figure, axes = _panels(1, 2, 8.0, 3.4)
    for panel, title, means in zip(axes.flat, ("validation NDCG", "test NDCG"), (valid, test), strict=True):
        lines: dict[str, list[tuple[float, float]]] = {}
        for label, entry in entries.items():
            others = {name: value for name, value in entry.settings.items() if name != setting}
            value = entry.settings[setting]
            place = float(value) if scale == "log" else values.index(_text(value))
            lines.setdefault(Entry(entry.ranker, others).label, []).append((place, means.get(label, math.nan)))
        _lines(panel, lines)
        panel.set_xscale(scale)
        if scale == "linear":
            panel.set_xticks(range(len(values)), values, rotation=20)
        panel.set_title(title)
        panel.set_xlabel(setting)
    _legend(figure, axes)
    return figure


def metric_sweep(results: Results, dataset: str) -> Figure | None:
    """Draws every measure by the metric that SmoothI optimizes (Figure 4 of the SmoothI paper)."""
    optimized = labels(results, "metric")
    if not optimized:
        return None
    means = _means(results, dataset, optimized)
    figure, axes = _panels(1, 1, 7.5, 1.2 + 0.4 * len(optimized))
    panel = axes.flat[0]
    # Normalize colors per column: measures differ more than rankers.
    relative = means / means.max(axis=0)
    image = panel.imshow(relative.to_numpy(), aspect="auto", cmap="viridis")
    for (row, column), value in np.ndenumerate(means.to_numpy()):
        ink = _plotting.on_color(image.cmap(image.norm(relative.iat[row, column])))
        panel.text(column, row, f"{value:.3f}", ha="center", va="center", color=ink, fontsize=9)
    panel.set_yticks(range(len(means)), [*map(ranker_title, means.index)])
    panel.set_xticks(range(len(MEASURES)), [measure_title(measure) for measure in MEASURES], rotation=45, ha="right")
    panel.grid(visible=False)
    panel.set_ylabel("optimized metric")
    figure.colorbar(image, label="fraction of the best value")
    return figure


# Title -> function. Those of `COMPARISONS` also take the return value of `tables.compare`.
COMPARISONS: dict[str, Callable[[Results, str, pd.DataFrame], Figure | None]] = {
    "Test metrics by ranker: mean and standard error": metric_by_ranker,
    "Differences per query": wins_and_losses,
}
PLOTS: dict[str, Callable[[Results, str], Figure | None]] = {
    "Learning curves": learning_curves,
    "Time per epoch": epoch_seconds,
    "Effect of alpha": functools.partial(sweep_lines, sweep="alpha", setting="alpha", scale="log"),
    # One line per alpha: Figure 3 of the SmoothI paper.
    "Effect of delta": functools.partial(sweep_lines, sweep="delta", setting="delta", scale="log"),
    "Effect of depth": functools.partial(sweep_lines, sweep="depth", setting="hidden"),
    "Effect of the optimized metric": metric_sweep,
    # Section 4.7 of the SoftRank paper.
    "Effect of the training discount": functools.partial(sweep_lines, sweep="discount", setting="discount"),
}


def svg(figure: Figure) -> bytes:
    """Returns a figure as SVG, deterministically."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "tfr_smooth", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def _panels(rows: int, columns: int, width: float, height: float, **options: Any) -> tuple[Figure, Any]:
    with _extras.needed("matplotlib", extra="study", by="The report"):
        from matplotlib.figure import Figure
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def _lines(panel: Axes, lines: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    # A ranker without this curve still takes its look, so that looks agree between panels.
    for label, look in _plotting.looks(list(lines)).items():
        points = lines[label]
        options = look.options | {"markersize": 4, "markevery": max(1, len(points) // 8), "linewidth": 1.2}
        panel.plot([x for x, _ in points], [y for _, y in points], **options, label=ranker_title(label))


def _legend(figure: Figure, axes: Any, free: Axes | None = None) -> None:
    """Adds the legend, in a free panel or else below the panels."""
    handles, names = axes.flat[0].get_legend_handles_labels()
    if free is None:
        figure.legend(handles, names, loc="outside lower center", ncols=3, fontsize=9)
    else:
        free.set_axis_off()
        free.legend(handles, names, loc="center", fontsize=9)


def _points(values: np.ndarray | None) -> list[tuple[float, float]]:
    return [] if values is None else list(enumerate(values.tolist(), 1))


def _mean_curves(texts: Sequence[str]) -> dict[str, np.ndarray]:
    """Returns the mean of each curve over jobs, cut to the shortest curve."""
    curves = [json.loads(text) for text in texts]
    names = set.intersection(*map(set, curves)) if curves else set()
    epochs = min((len(values) for found in curves for values in found.values()), default=0)
    return {name: np.mean([found[name][:epochs] for found in curves], axis=0) for name in sorted(names)}


def _means(results: Results, dataset: str, rankers: Sequence[str]) -> pd.DataFrame:
    """Returns the mean test metrics over folds, one row per ranker, in the order of `rankers`."""
    queries = results.queries[(results.queries["dataset"] == dataset) & results.queries["ranker"].isin(rankers)]
    by_fold = queries.groupby(["ranker", "fold"])[list(MEASURES)].mean()
    means = by_fold.groupby("ranker").mean()
    return means.loc[[ranker for ranker in rankers if ranker in means.index]]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
