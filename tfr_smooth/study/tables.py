"""The tables of a study: mean and standard error of each measure, and significance tests against the best ranker."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfr_smooth import _arguments, _extras
from tfr_smooth.evaluation import randomization_test
from tfr_smooth.study.results import Results, labels
from tfr_smooth.study.titles import measure_title, ranker_title

if TYPE_CHECKING:
    import pandas as pd

_LEVEL = 0.05


@dataclasses.dataclass(frozen=True)
class Style:
    """The format of a table.

    Args:
      tablefmt: Name of the format in the package tabulate.
      bold: The strings before and after the best value.
      dagger: The mark of a value that is significantly worse than the best.
      plus_minus: The separator between mean and standard error.
      suffix: The suffix of the file name.
    """

    tablefmt: str
    bold: tuple[str, str]
    dagger: str
    plus_minus: str
    suffix: str


STYLES = {
    "text": Style("simple", ("", "*"), "†", " ±", ".txt"),
    "markdown": Style("pipe", ("**", "**"), "†", " ± ", ".md"),
    "latex": Style("latex_raw", (r"\textbf{", "}"), r"$^\dagger$", r" $\pm$ ", ".tex"),
    "html": Style("unsafehtml", ("<b>", "</b>"), "†", " ± ", ".html"),
}


def compare(
    results: Results, dataset: str, *, sweep: str | None = None, against: str | None = None, samples: int = 10_000
) -> pd.DataFrame:
    """Compares the rankers on a data set.

    Values are averaged over seeds per query, over queries per fold, and then over folds (`mean`). `stderr` is the
    standard error over folds, or over queries if the data set has a single fold. Each ranker is compared with the best
    one, or with `against`, over the test queries of all folds. Both p-values are multiplied by the number of these
    comparisons (Bonferroni correction).

    Args:
      results: The results.
      dataset: Name of the data set.
      sweep: Name of the sweep whose entries are compared; None compares the entries of the study.
      against: Label of the ranker that the others are compared with; None for the best ranker by each measure.
      samples: Number of samples of the randomization test, as in `evaluation.randomization_test`.

    Returns:
      A `pandas.DataFrame` with one row per measure and ranker and the columns measure, ranker, mean, stderr, is_best,
      t_test_p (paired t-test) and randomization_p. The p-values are NaN for the ranker that the others are compared
      with.
    """
    with _extras.needed("scipy", extra="study", by="`compare`"):
        import pandas as pd
        from scipy import stats
    queries = results.queries[results.queries["dataset"] == dataset]
    rankers = [ranker for ranker in labels(results, sweep) if ranker in set(queries["ranker"])]
    queries = queries[queries["ranker"].isin(rankers)]
    by_query = queries.groupby(["fold", "query", "ranker"])[results.measures].mean()
    rows = []
    for measure in results.measures:
        # Paired tests need a value of every ranker: skip queries that some ranker, with unfinished jobs, lacks.
        values = by_query[measure].unstack("ranker").reindex(columns=rankers).dropna()
        by_fold = values.groupby("fold").mean()
        units = by_fold if len(by_fold) > 1 else values
        mean, stderr = by_fold.mean(), units.std(ddof=1) / np.sqrt(len(units))
        best = mean.idxmax()
        other, comparisons = against or best, len(mean) - 1
        for ranker in rankers:
            p_values = {"t_test_p": np.nan, "randomization_p": np.nan}
            if ranker != other:
                pairs = [{str(key): value for key, value in values[name].items()} for name in (other, ranker)]
                differ = bool((values[other] != values[ranker]).any())
                p_values = {
                    "t_test_p": float(stats.ttest_rel(values[other], values[ranker]).pvalue) if differ else 1.0,
                    "randomization_p": randomization_test(*pairs, samples=samples).p_value,
                }
            row = {"measure": measure, "ranker": ranker, "mean": mean[ranker], "stderr": stderr[ranker]}
            corrected = {name: float(np.minimum(1.0, value * comparisons)) for name, value in p_values.items()}
            rows.append({**row, "is_best": ranker == best, **corrected})
    return pd.DataFrame(rows)


def format_table(comparison: pd.DataFrame, style: str = "text", measures: Sequence[str] | None = None) -> str:
    """Formats the means of `compare`, the best in bold, with a dagger if a ranker is significantly worse.

    Args:
      comparison: The return value of `compare`.
      style: "text", "markdown", "latex" or "html".
      measures: The measures, one column each; None for all measures.

    Returns:
      The table.

    Raises:
      ValueError: If `style` is not one of these.
    """
    chosen = STYLES[_arguments.choice("style", style, tuple(STYLES))]

    def cell(row: Any) -> str:
        before, after = chosen.bold if row.is_best else ("", "")
        dagger = chosen.dagger if row.t_test_p < _LEVEL else ""
        return f"{before}{row.mean:.3f}{after}{chosen.plus_minus}{row.stderr:.3f}{dagger}"

    return _format(comparison, chosen, measures, cell)


def format_p_values(comparison: pd.DataFrame, style: str = "text", measures: Sequence[str] | None = None) -> str:
    """Formats the p-values of `compare`: t-test / randomization test. The arguments are those of `format_table`."""
    chosen = STYLES[_arguments.choice("style", style, tuple(STYLES))]

    def cell(row: Any) -> str:
        return "best" if row.t_test_p != row.t_test_p else f"{row.t_test_p:.3f} / {row.randomization_p:.3f}"

    return _format(comparison, chosen, measures, cell)


def _format(comparison: pd.DataFrame, style: Style, measures: Sequence[str] | None, cell: Any) -> str:
    with _extras.needed("tabulate", extra="study", by="`format_table`"):
        import tabulate
    rankers = comparison["ranker"].drop_duplicates()
    measures = list(comparison["measure"].drop_duplicates()) if measures is None else measures
    cells = {(row.measure, row.ranker): cell(row) for row in comparison.itertuples()}
    rows = [
        [_escaped(ranker_title(ranker), style), *(cells[measure, ranker] for measure in measures)] for ranker in rankers
    ]
    return tabulate.tabulate(rows, ["", *map(measure_title, measures)], tablefmt=style.tablefmt)


def _escaped(label: str, style: Style) -> str:
    if style.tablefmt == "latex_raw":
        return label.replace("_", r"\_").replace("{", r"\{").replace("}", r"\}")
    return html.escape(label) if style.tablefmt == "unsafehtml" else label


def caption(results: Results, dataset: str) -> str:
    """Returns a caption for the table of `format_table`."""
    queries = results.queries[results.queries["dataset"] == dataset]
    select_by = measure_title(results.settings["select_by"])
    folds, seeds = queries["fold"].nunique(), queries["seed"].nunique()
    over = f"{folds} folds" if folds > 1 else f"{queries['query'].nunique()} queries of a single split"
    return (
        f"{dataset}: test metrics, mean ± standard error over {over}, as trec_eval computes them; queries without a "
        f"relevant document count as 0. Values are means over {seeds} seed{'s' if seeds > 1 else ''}. "
        f"Hyperparameters were selected by validation {select_by}. The best value is marked; "
        f"† is significantly worse than the best (paired t-test over queries, Bonferroni, {_LEVEL:.0%})."
    )
