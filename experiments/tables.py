"""The tables of a study: mean and standard error of each measure, and significance tests against a baseline."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import tabulate
from scipy import stats

from experiments.results import Results
from experiments.titles import measure_title, ranker_title
from tfr_smooth.evaluation import randomization_test

_LEVEL = 0.05
_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {character: "\\" + character for character in "%&#$_{}"} | {"±": r"$\pm$", "†": r"$^\dagger$"}


def latex(text: str) -> str:
    """Escapes text for LaTeX."""
    return "".join(_LATEX.get(character, character) for character in text)


def markdown(text: str) -> str:
    """Escapes text for Markdown, also in tables, where HTML, links and emphasis would otherwise be recognized."""
    return re.sub(r"([\\`*\[\]|])", r"\\\1", text).replace("&", "&amp;").replace("<", "&lt;")


@dataclasses.dataclass(frozen=True)
class Style:
    """The format of a table.

    Args:
      tablefmt: Name of the format in the package tabulate.
      best: The strings before and after the best value.
      dagger: The mark of a value that is significantly worse.
      plus_minus: The separator between mean and standard error.
      suffix: The suffix of the file name.
      escape: Escapes names.
      align: The alignment of all columns of values; None leaves it to tabulate.
    """

    tablefmt: str
    best: tuple[str, str]
    dagger: str
    plus_minus: str
    suffix: str
    escape: Callable[[str], str] = str
    align: str | None = None


STYLES = {
    "text": Style("simple", ("", "*"), "†", " ±", ".txt"),
    "markdown": Style("pipe", ("**", "**"), "†", " ± ", ".md", markdown),
    "latex": Style("latex_raw", (r"\textbf{", "}"), _LATEX["†"], r" $\pm$ ", ".tex", latex, "right"),
}


def compare(results: Results, dataset: str, *, baseline: str | None = None, samples: int = 10_000) -> pd.DataFrame:
    """Compares the rankers on a data set.

    Values are averaged over seeds per query, over queries per fold, and then over folds (`mean`). `stderr` is the
    standard error over folds, or over queries if the data set has a single fold. Each ranker is compared with the
    baseline over the test queries of all folds. Both p-values are multiplied by the number of these comparisons
    (Bonferroni correction).

    Args:
      results: The results.
      dataset: Name of the data set.
      baseline: Label of the ranker that the others are compared with; None for the best ranker by each measure.
      samples: Number of samples of the randomization test, as in `evaluation.randomization_test`.

    Returns:
      One row per measure and ranker with the columns measure, ranker, mean, stderr, is_best, t_test_p (paired t-test)
      and randomization_p. The p-values are NaN for the baseline.

    Raises:
      ValueError: If the baseline is not among the rankers.
    """
    queries = results.queries[results.queries["dataset"] == dataset]
    rankers = [ranker for ranker in results.labels if ranker in set(queries["ranker"])]
    if baseline is not None and baseline not in rankers:
        raise ValueError(f"`baseline` must be one of {', '.join(rankers)}, got {baseline!r}.")
    by_query = queries[queries["ranker"].isin(rankers)].groupby(["fold", "query", "ranker"])[results.measures].mean()
    rows = []
    for measure in results.measures:
        # Paired tests need a value of every ranker: skip queries that some ranker, with unfinished jobs, lacks.
        values = by_query[measure].unstack("ranker").reindex(columns=rankers).dropna()
        by_fold = values.groupby("fold").mean()
        units = by_fold if len(by_fold) > 1 else values
        mean, stderr = by_fold.mean(), units.std(ddof=1) / np.sqrt(len(units))
        best = mean.idxmax()
        other, comparisons = baseline or best, len(mean) - 1
        for ranker in rankers:
            p_values = {"t_test_p": np.nan, "randomization_p": np.nan}
            if ranker != other:
                both = [{str(key): value for key, value in values[name].items()} for name in (other, ranker)]
                differ = bool((values[other] != values[ranker]).any())
                p_values = {
                    "t_test_p": float(stats.ttest_rel(values[other], values[ranker]).pvalue) if differ else 1.0,
                    "randomization_p": randomization_test(*both, samples=samples).p_value,
                }
            row = {"measure": measure, "ranker": ranker, "mean": mean[ranker], "stderr": stderr[ranker]}
            corrected = {name: float(np.minimum(1.0, value * comparisons)) for name, value in p_values.items()}
            rows.append({**row, "is_best": ranker == best, **corrected})
    return pd.DataFrame(rows)


def format_table(comparison: pd.DataFrame, style: str = "text", measures: Sequence[str] | None = None) -> str:
    """Formats the means of `compare`, the best in bold, with a dagger if a ranker is significantly worse.

    Args:
      comparison: The return value of `compare`, with the best ranker as the baseline.
      style: "text", "markdown" or "latex".
      measures: The measures, one column each; None for all measures.
    """
    chosen = STYLES[style]

    def cell(row: Any) -> str:
        before, after = chosen.best if row.is_best else ("", "")
        dagger = chosen.dagger if row.t_test_p < _LEVEL else ""
        return f"{before}{row.mean:.3f}{after}{chosen.plus_minus}{row.stderr:.3f}{dagger}"

    return _format(comparison, chosen, measures, cell)


def format_p_values(comparison: pd.DataFrame, style: str = "text", measures: Sequence[str] | None = None) -> str:
    """Formats the p-values of `compare`: t-test / randomization test. The arguments are those of `format_table`."""

    def cell(row: Any) -> str:
        return "baseline" if row.t_test_p != row.t_test_p else f"{row.t_test_p:.3f} / {row.randomization_p:.3f}"

    return _format(comparison, STYLES[style], measures, cell)


def _format(comparison: pd.DataFrame, style: Style, measures: Sequence[str] | None, cell: Any) -> str:
    measures = list(comparison["measure"].drop_duplicates()) if measures is None else measures
    cells = {(row.measure, row.ranker): cell(row) for row in comparison.itertuples()}
    rows = [
        [style.escape(ranker_title(ranker)), *(cells[measure, ranker] for measure in measures)]
        for ranker in comparison["ranker"].drop_duplicates()
    ]
    align = None if style.align is None else ["left", *[style.align] * len(measures)]
    headers = ["", *(style.escape(measure_title(measure)) for measure in measures)]
    return tabulate.tabulate(rows, headers, tablefmt=style.tablefmt, colalign=align)


def caption(results: Results, dataset: str) -> str:
    """Returns a caption for the table of `format_table`."""
    queries = results.queries[results.queries["dataset"] == dataset]
    select_by, level = measure_title(results.settings["select_by"]), results.settings.get("relevance_level", 1)
    folds, seeds = queries["fold"].nunique(), queries["seed"].nunique()
    over = f"{folds} folds" if folds > 1 else f"{queries['query'].nunique()} queries of a single split"
    return (
        f"{dataset}: test metrics, mean ± standard error over {over}, as trec_eval computes them"
        f"{f' with -l {level}' if level > 1 else ''}; queries without a relevant document count as 0. "
        f"Values are means over {'up to ' if seeds > 1 else ''}{seeds} seed{'s' if seeds > 1 else ''}. "
        f"Hyperparameters were selected by validation {select_by}. The best value is marked; "
        f"† is significantly worse than the best (paired t-test over queries, Bonferroni, {_LEVEL:.0%})."
    )
