"""The plots of a study. Each function returns None if the results lack its values."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from experiments.results import Results
from experiments.titles import measure_title, ranker_title

_MAIN = "ndcg"
# Okabe and Ito's colors, which color-blind people can distinguish, and one that is readable on light and dark.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_GRAY = "#808080"
_MARKERS = "osD^vPX"
_LINES = ("-", "--", ":", "-.")


def metric_by_ranker(results: Results, dataset: str, comparison: pd.DataFrame) -> Figure:
    """Draws mean and standard error of three measures by ranker; `tables.compare` returns the `comparison`."""
    measures = ("ndcg_cut_1", "ndcg_cut_10", "ndcg")
    rankers = list(comparison["ranker"].drop_duplicates())
    folds = results.queries.loc[results.queries["dataset"] == dataset, "fold"].nunique()
    # Narrow, so that the text is readable at the width of a phone.
    figure, axes = _panels(1, len(measures), 6.0, 1.3 + 0.27 * len(rankers), sharey=True)
    for panel, measure in zip(axes.flat, measures, strict=True):
        rows = comparison[comparison["measure"] == measure].set_index("ranker")
        for place, ranker in enumerate(rankers):
            mean, error = rows["mean"].get(ranker), rows["stderr"].get(ranker)
            if mean is not None:
                panel.errorbar([mean], [place], xerr=[error], fmt="o", color=COLORS[0], capsize=2, markersize=5)
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
    panel.fill_between(np.arange(len(differences)), differences, step="mid", color=COLORS[0], alpha=0.7)
    panel.axhline(0.0, color=_GRAY, linewidth=0.8)
    wins, draws = int((differences > 0).sum()), int((differences == 0).sum())
    counts = f"{wins} wins, {draws} draws, {len(differences) - wins - draws} losses"
    panel.set_title(f"{ranker_title(first)}: {counts} to {ranker_title(second)}")
    panel.set_xlabel("test queries, by difference")
    panel.set_ylabel("difference in NDCG")
    return figure


def learning_curves(results: Results, dataset: str, comparison: pd.DataFrame) -> Figure | None:
    """Draws loss, smooth metric, exact metric and their difference by epoch: means over folds and seeds."""
    jobs = results.jobs[(results.jobs["dataset"] == dataset) & results.jobs["selected"]]
    curves = {label: _mean_curves(jobs[jobs["ranker"] == label]["curves"]) for label in results.labels}
    for found in curves.values():
        if {"valid_smooth", "valid_exact"} <= found.keys():
            found["difference"] = found["valid_smooth"] - found["valid_exact"]
    panels = {
        "loss": "loss, training",
        "valid_smooth": "smooth metric, validation",
        "valid_exact": "exact metric, validation",
        "difference": "smooth minus exact, validation",
        "valid_ndcg": "NDCG, validation",
    }
    curves = {label: found for label, found in curves.items() if found.keys() & panels.keys()}
    if not curves:
        return None
    figure, axes = _panels(2, 3, 9.6, 6.4)
    for number, (label, found) in enumerate(curves.items()):
        color, marker = COLORS[number % len(COLORS)], _MARKERS[number % len(_MARKERS)]
        for panel, name in zip(axes.flat, panels, strict=False):
            values = found.get(name, np.zeros(0))
            options = {"marker": marker, "markersize": 4, "markevery": max(1, len(values) // 8), "linewidth": 1.2}
            line = _LINES[number % len(_LINES)]
            panel.plot(range(1, len(values) + 1), values, line, color=color, label=ranker_title(label), **options)
    for panel, title in zip(axes.flat, panels.values(), strict=False):
        panel.set_title(title)
        panel.set_xlabel("epoch")
    if all(value > 0.0 for found in curves.values() for value in found.get("loss", ())):
        axes.flat[0].set_yscale("log")  # Losses differ in scale.
    axes.flat[-1].set_axis_off()
    axes.flat[-1].legend(*axes.flat[0].get_legend_handles_labels(), loc="center", fontsize=9)
    return figure


def fit_seconds(results: Results, dataset: str, comparison: pd.DataFrame) -> Figure | None:
    """Draws the processor time of fitting by ranker: medians over jobs."""
    jobs = results.jobs[(results.jobs["dataset"] == dataset) & results.jobs["ranker"].isin(results.labels)]
    seconds = jobs.groupby("ranker")["fit_seconds"].median().dropna().sort_values()
    if seconds.empty:
        return None
    figure, axes = _panels(1, 1, 7.5, 1.0 + 0.25 * len(seconds))
    axes.flat[0].barh([*map(ranker_title, seconds.index)], seconds, color=COLORS[0])
    axes.flat[0].set_xlabel("processor time of fitting, seconds")
    axes.flat[0].grid(axis="y", visible=False)
    return figure


# Name -> title and function.
PLOTS: dict[str, tuple[str, Callable[[Results, str, pd.DataFrame], Figure | None]]] = {
    "metrics": ("Test metrics by ranker: mean and standard error", metric_by_ranker),
    "differences": ("Differences per query", wins_and_losses),
    "curves": ("Learning curves", learning_curves),
    "seconds": ("Time of fitting", fit_seconds),
}


def png(draw: Callable[[], Figure | None]) -> bytes | None:
    """Returns a figure as PNG."""
    content = io.BytesIO()
    style: Any = {"axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True}
    with rc_context(style | {"legend.frameon": False, "grid.color": "#E5E5E5"}):
        figure = draw()
        if figure is None:
            return None
        figure.savefig(content, format="png", dpi=110, metadata={"Software": None})
    return content.getvalue()


def _panels(rows: int, columns: int, width: float, height: float, **options: Any) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def _mean_curves(texts: pd.Series) -> dict[str, np.ndarray]:
    """Returns the mean of each curve over jobs, up to the last epoch that all of them have."""
    curves = [json.loads(text) for text in texts]
    names = set.intersection(*map(set, curves)) if curves else set()
    epochs = min((len(values) for found in curves for values in found.values()), default=0)
    return {name: np.mean([found[name][:epochs] for found in curves], axis=0) for name in sorted(names)}
