"""trec_eval's measures of scored rows, with standard errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tfr_smooth.data.arrays import column
from tfr_smooth.data.list_columns import Where, query_ids
from tfr_smooth.evaluation.trec import DEFAULT_MEASURES, ScoredQuery, document_names, trec_eval_by_query


class Estimate(NamedTuple):
    """A mean over queries and its standard error.

    Attributes:
      mean: The mean.
      standard_error: The standard deviation over queries divided by the square root of their number; NaN for one query.

    Example:
      >>> print(Estimate(0.5, 0.02))
      0.5000 ± 0.0200
    """

    mean: float
    standard_error: float

    def __str__(self) -> str:
        """Returns both with four digits."""
        return f"{self.mean:.4f} ± {self.standard_error:.4f}"


def evaluate_rows(
    labels: Any, scores: Any, queries: Any, measures: Sequence[str] = DEFAULT_MEASURES, *, by_query: bool = False
) -> dict[str, Any]:
    """Computes trec_eval's measures of a column of scores, such as those of a ranker in production.

    Args:
      labels: Whole numbers from 0 to 1023, [rows].
      scores: Finite numbers, [rows]; higher is better. Later rows come first among ties, as in trec_eval.
      queries: The query of each row, [rows]. The rows of a query need not be adjacent.
      measures: Names of measures, as for `trec_eval`.
      by_query: Whether to return the value of each query.

    Returns:
      The mean over queries and its standard error, an `Estimate` by measure; or the values by measure and by query, as
      text, which `randomization_test` compares with those of another ranker.

    Raises:
      ValueError: If a measure is unknown, labels or scores are invalid, a query is missing, or the lengths differ.
      ImportError: If pytrec_eval is not installed; the extra `tfr_smooth[evaluation]` includes it.

    Example:
      >>> print(evaluate_rows([1, 0, 0, 1], [0.9, 0.2, 0.3, 0.1], ["a", "a", "b", "b"], ["map"])["map"])
      0.7500 ± 0.2500
    """
    labels, scores = np.asarray(labels), np.asarray(scores)
    if labels.shape != scores.shape or scores.ndim != 1 or not len(scores):
        expected = "one value per row, as many as `scores` and at least one"
        raise ValueError(f"`labels` must have {expected}, got shapes {labels.shape} and {scores.shape}.")
    ids = query_ids(Where("`queries`"), column("queries", queries, len(scores)))
    codes = ids.dictionary_encode()
    inverse, names = codes.indices.to_numpy(), [str(value) for value in codes.dictionary.to_pylist()]
    order = np.argsort(inverse, kind="stable")
    found = []
    for number, rows in enumerate(np.split(order, np.flatnonzero(np.diff(inverse[order])) + 1)):
        found.append(ScoredQuery(str(number), document_names([""] * len(rows)), labels[rows], scores[rows]))
    values = trec_eval_by_query(found, measures)
    if not by_query:
        return estimates(values)
    return {name: {names[int(number)]: each[name] for number, each in values.items()} for name in values["0"]}


def estimates(by_query: dict[str, dict[str, float]]) -> dict[str, Estimate]:
    """Returns the mean and standard error of each measure over queries."""
    names = next(iter(by_query.values()))
    return {name: estimate(np.array([each[name] for each in by_query.values()])) for name in names}


def estimate(values: np.ndarray) -> Estimate:
    """Returns the mean and standard error of the values of queries."""
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return Estimate(float(values.mean()), float(error))
