"""Draws the results in docs/results, except those of random scores: one figure per data set that a page shows.

python tools/plot_results.py
"""

from __future__ import annotations

import functools
import pathlib

from absl import app

import experiments
from experiments import plots, tables
from tfr_smooth import _plotting

DOCS = pathlib.Path(__file__).absolute().parents[1] / "docs"


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
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
            for path in _plotting.save_both(DOCS / "images" / f"results_{name}.png", draw):
                print(path)


if __name__ == "__main__":
    app.run(main)
