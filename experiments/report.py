"""The report of a study: tables as text, Markdown, LaTeX and CSV, and a Markdown page with tables and plots."""

from __future__ import annotations

import functools
import json
import os
import re
from pathlib import Path

from experiments import plots, tables
from experiments.files import write
from experiments.folds import check_name
from experiments.results import Results
from experiments.titles import ranker_title

_P_VALUES = "p-values against {}: paired t-test / randomization test, with Bonferroni correction"


def write_report(results: Results, folder: str | os.PathLike[str], *, baseline: str | None = None) -> str:
    """Writes the tables and plots of a study.

    Writes `DATASET.txt`, `DATASET.md`, `DATASET.tex` and `DATASET.csv` for each data set, where the CSV file contains
    all values without rounding, and `report.md`, a page with tables, plots (in `plots/`) and settings.

    Args:
      results: The results.
      folder: The folder to write to.
      baseline: Label of the ranker that the p-values compare the others with, such as the first stage of rerankers;
        these are also written without rounding to `DATASET_against_LABEL.csv`. None for the best ranker by each
        measure.

    Returns:
      The tables as text.

    Raises:
      ValueError: If the baseline is not among the rankers, or a data set has a name that no folder can have.
    """
    folder, texts, page = Path(folder), [], ["# Comparison of rankers\n"]
    for dataset in results.queries["dataset"].drop_duplicates():
        check_name("dataset", dataset)
        comparison = tables.compare(results, dataset)
        tested = comparison if baseline is None else tables.compare(results, dataset, baseline=baseline)
        caption, title = tables.caption(results, dataset), _P_VALUES.format(baseline or "the best ranker")
        written = {}
        for name, style in tables.STYLES.items():
            comment = "% " if name == "latex" else ""
            written[name] = (
                f"{comment}{style.escape(caption)}\n\n{tables.format_table(comparison, name)}\n\n"
                f"{comment}{style.escape(title)}\n\n{tables.format_p_values(tested, name)}\n"
            )
            write(folder / f"{dataset}{style.suffix}", written[name])
        write(folder / f"{dataset}.csv", comparison.to_csv(index=False))
        if baseline is not None:
            label = re.sub(r"[^\w.+=-]+", "_", baseline)
            write(folder / f"{dataset}_against_{label}.csv", tested.to_csv(index=False))
        texts.append(written["text"])
        page.append(f"## {tables.markdown(dataset)}\n\n{written['markdown']}")
        for name, (title, draw) in plots.PLOTS.items():
            image = plots.png(functools.partial(draw, results, dataset, comparison))
            if image is not None:
                file = f"plots/{dataset}_{name}.png"
                write(folder / file, image)
                page.append(f"### {title}\n\n![{title}](<{file}>)\n")
        page.append(f"### Selected hyperparameters\n\n{_selected(results, dataset)}")
    page.append(f"## Settings\n\n```json\n{json.dumps(results.settings, indent=2)}\n```\n")
    write(folder / "report.md", "\n".join(page))
    return "\n".join(texts)


def _selected(results: Results, dataset: str) -> str:
    """Returns the selected settings of each ranker and fold as a Markdown table."""
    jobs = results.jobs[(results.jobs["dataset"] == dataset) & results.jobs["selected"]]
    jobs = jobs[jobs["ranker"].isin(results.labels)].drop_duplicates(["ranker", "fold"])
    lines = ["| ranker | fold | settings |", "|---|---|---|"]
    for row in jobs.itertuples():
        cells = map(tables.markdown, (ranker_title(row.ranker), str(row.fold), row.settings))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
