"""Draws the results in docs/results, without random scores: a figure per data set that a page shows, and of tables.

python tools/plot_results.py
"""

from __future__ import annotations

import functools
import pathlib

import pandas as pd
from absl import app
from figures import COLORS, save_both, text_color
from matplotlib.figure import Figure

import experiments
from experiments import plots, tables

DOCS = pathlib.Path(__file__).absolute().parents[1] / "docs"
MEASURES = {
    "trivago": "trivago\nMRR",
    "MovieLens-100K": "MovieLens\nNDCG@10",
    "Yandex": "Yandex\nNDCG@10",
    "CrowdFlower": "CrowdFlower\nNDCG@10",
    "Eurovision": "Eurovision\nNDCG@10",
    "cars": "cars\nNDCG@10",
}


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    for path in save_both(DOCS / "images" / "results_tables.png", ranker_and_trees):
        print(path)
    pages = "".join(path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))
    for folder in sorted(path for path in (DOCS / "results").iterdir() if path.is_dir()):
        results = experiments.read_results(folder)
        datasets = results.queries["dataset"].unique()
        for dataset in datasets:
            name = folder.name if len(datasets) == 1 else f"{folder.name}_{dataset}"
            if f"images/results_{name}.png" not in pages:
                continue
            comparison = tables.compare(results, dataset, samples=100)
            # It is so far below the others that their differences would be invisible.
            comparison = comparison[comparison["ranker"] != "random"]
            draw = functools.partial(plots.metric_by_ranker, results, dataset, comparison)
            for path in save_both(DOCS / "images" / f"results_{name}.png", draw):
                print(path)


def ranker_and_trees() -> Figure:
    """Draws the means of `Ranker` and LightGBM on each table, with the standard error of the paired difference."""
    results = pd.read_csv(DOCS / "results" / "tables.csv.gz")
    sides = ("Ranker", "LightGBM", "LightGBM with hand-made columns")
    figure = Figure(figsize=(6.5, 4.0), layout="constrained")
    axes, ticks, place = figure.subplots(), [], 0.0
    for table, queries in results.groupby("table", sort=False):
        found = [side for side in sides if queries[side].notna().any()]
        ticks.append((place + (len(found) - 1) / 2, MEASURES[table]))
        for side in found:
            mean, color = queries[side].mean(), COLORS[sides.index(side)]
            error = None if side == "Ranker" else (queries["Ranker"] - queries[side]).sem()
            axes.barh(place, mean, xerr=error, color=color, ecolor=text_color(), label=side, height=0.9)
            axes.text(mean + 0.02, place, f"{mean:.3f}", va="center", fontsize=9)
            place += 1.0
        place += 0.7
    axes.set_yticks(*zip(*ticks, strict=True))
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0.0, 0.92)
    handles = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=3, fontsize=9)
    axes.set_xlabel("mean over test queries, with the standard error of the difference", fontsize=10)
    return figure


if __name__ == "__main__":
    app.run(main)
