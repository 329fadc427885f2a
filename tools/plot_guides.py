"""Draws the ideas of the guides in docs/images: python tools/plot_guides.py

    list_context.png       one price in two lists, and its rank within each
    id_statistics.png      mean labels of ids and their statistics, against what the ids are worth
    finish_on_metric.png   training on a metric, alone and after softmax, from docs/results/losses.csv.gz

each also as *_dark.png for the dark scheme.
"""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import pandas as pd
from figures import COLORS, GRAY, save_both, text_color
from matplotlib.figure import Figure

DOCS = pathlib.Path(__file__).absolute().parents[1] / "docs"
PRICES = {"search: sandals": [9, 19, 29, 39, 49], "search: winter boots": [49, 80, 95, 120, 150]}
LOSSES = {
    "smoothi_ndcg": "SmoothI-NDCG",
    "approx_ndcg": "ApproxNDCG",
    "soft_ndcg": "SoftNDCG",
    "neuralsort_ndcg": "NeuralSort-NDCG",
}


def list_context() -> Figure:
    """The prices of two lists; the rank of a price is that of the formula in docs/ranker.md."""
    figure = Figure(figsize=(7.0, 2.2), layout="constrained")
    axes = figure.subplots()
    for height, prices in enumerate(PRICES.values()):
        for price in prices:
            rank = (np.sum(np.less(prices, price)) - np.sum(np.greater(prices, price))) / (len(prices) - 1)
            color = COLORS[1] if price == 49 else COLORS[0]
            axes.scatter(price, height, s=70, color=color)
            axes.annotate(f"{rank:+.1f}" if rank else "0", (price, height + 0.25), ha="center", fontsize=9.0)
    axes.set_yticks(range(len(PRICES)), list(PRICES))
    axes.set_ylim(-0.5, 1.6)
    axes.invert_yaxis()
    axes.set_xlabel("price")
    axes.grid(axis="y", visible=False)
    axes.set_title("Ranks within the list: 49 is expensive for sandals and cheap for boots")
    return figure


def id_statistics() -> Figure:
    """Ids with normal worth and noisy labels: their mean labels, and the same shrunk by the number of rows."""
    random = np.random.default_rng(0)
    rows = np.clip(random.zipf(1.6, 400), 1, 1000)
    worth = random.normal(0.0, 0.2, len(rows))
    mean = worth + random.normal(0.0, 0.5, len(rows)) / np.sqrt(rows)
    strength = (0.5 / 0.2) ** 2  # noise over worth, as variances
    figure = Figure(figsize=(7.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    for axes, values, title in (
        (left, mean, "mean label"),
        (right, mean * rows / (rows + strength), f"statistic, s = {strength:.0f}"),
    ):
        for few, color, label in (
            (rows < 5, COLORS[1], "fewer than 5 rows"),
            (rows >= 5, COLORS[0], "5 rows or more"),
        ):
            axes.scatter(worth[few], values[few], s=14, color=color, label=label, alpha=0.8, linewidths=0)
        error = np.sqrt(np.mean((values - worth) ** 2))
        axes.axline((0.0, 0.0), slope=1.0, color=GRAY, linewidth=1.0)
        axes.set_title(f"{title}: error {error:.2f}")
        axes.set_xlabel("what the id is worth")
    left.set_ylabel("estimate")
    left.legend(loc="upper left", handletextpad=0.1)
    return figure


def finish_on_metric() -> Figure:
    """Differences of NDCG@10 from softmax over all queries, with 95% intervals of the paired differences."""
    results = pd.read_csv(DOCS / "results" / "losses.csv.gz")
    results = results[results["network"] == "default"]
    figure = Figure(figsize=(7.0, 2.8), layout="constrained")
    axes = figure.subplots()
    for column, label, color in (("{}", "alone", 1), ("softmax, then {}", "after softmax", 0)):
        differences = [results[column.format(loss)] - results["softmax"] for loss in LOSSES]
        axes.errorbar(
            [difference.mean() for difference in differences],
            np.arange(len(LOSSES)) + (0.12 if color else -0.12),
            xerr=[1.96 * difference.sem() for difference in differences],
            fmt="o",
            color=COLORS[color],
            label=label,
        )
    axes.axvline(0.0, color=text_color(), linewidth=0.8)
    axes.set_yticks(range(len(LOSSES)), list(LOSSES.values()))
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.legend(loc="upper left")
    axes.set_xlabel("NDCG@10 minus that of softmax")
    axes.set_title(f"{len(results):,} test queries of MQ2008, MQ2007 and Yandex")
    return figure


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(f"Unknown argument {sys.argv[1]!r}.")
    for draw in (list_context, id_statistics, finish_on_metric):
        for path in save_both(DOCS / "images" / f"{draw.__name__}.png", draw):
            print(path)
