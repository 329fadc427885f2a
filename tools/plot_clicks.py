"""Draws the results of training on clicks, which examples/clicks.py wrote to docs/images/clicks_mq2008.json.

python tools/plot_clicks.py
"""

from __future__ import annotations

import json
import pathlib

import numpy as np
from absl import app
from figures import COLORS, GRAY, save_both, text_color
from matplotlib.figure import Figure

IMAGES = pathlib.Path(__file__).absolute().parents[1] / "docs" / "images"
METHODS = ("clicks", "inverse propensities", "two towers", "dual learning", "regression EM")
LIMITS = {"true labels": "--", "shown ranking": ":"}


def draw() -> Figure:
    """Mean NDCG@10 and standard error over seeds by the number of sessions."""
    seeds = json.loads((IMAGES / "clicks_mq2008.json").read_text(encoding="utf-8"))
    sessions = list(map(int, seeds[0][METHODS[0]]))
    figure = Figure(figsize=(5.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, color, marker in zip(METHODS, (GRAY, *COLORS), "osD^v", strict=False):
        values = np.array([list(seed[name].values()) for seed in seeds])
        errors = values.std(axis=0, ddof=1) / len(seeds) ** 0.5
        look = {"color": color, "marker": marker, "markersize": 5, "capsize": 2, "linewidth": 1.3}
        axes.errorbar(sessions, values.mean(axis=0), yerr=errors, label=name, **look)
    for name, line in LIMITS.items():
        mean = np.mean([seed[name] for seed in seeds])
        axes.axhline(mean, color=text_color(), linestyle=line, linewidth=1.0, label=name)
    axes.set_xscale("log")
    axes.set_xticks(sessions, [f"{number:,}" for number in sessions])
    axes.minorticks_off()
    axes.set_xlabel("sessions")
    axes.set_ylabel("NDCG@10, true labels")
    figure.legend(loc="outside lower center", ncols=3, fontsize=8.5)
    return figure


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    for path in save_both(IMAGES / "clicks_mq2008.png", draw):
        print(path)


if __name__ == "__main__":
    app.run(main)
