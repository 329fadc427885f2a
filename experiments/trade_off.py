"""The trade-off between two labels: the same rankers trained with different weights, and the Pareto front."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib import rcParams
from matplotlib.figure import Figure

from experiments.files import write
from experiments.plots import COLORS
from tfr_smooth import Ranker

_KEYS = ["ranker", "weight", "fold", "seed"]


def trade_off(
    rankers: Mapping[str, Ranker],
    folds: Sequence[tuple[Any, Any, Any]],
    *,
    labels: tuple[str, str],
    query: str,
    path: str | os.PathLike[str],
    weights: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0),
    seeds: Sequence[int] = (0,),
    measure: str = "ndcg",
    **fit_options: Any,
) -> pd.DataFrame:
    """Trains rankers on two labels for each of several weights, and measures the test queries by both labels.

    Each result is written to a file at once, and the same call after an interruption trains only what is missing. For
    other data or settings, use another file.

    Args:
      rankers: Rankers by name, such as one for each `label_aggregation`. They are not changed.
      folds: For each fold, the tables of training, validation and test.
      labels: The columns of both labels.
      query: The column of queries.
      path: The CSV file of the results; its folder is created if missing.
      weights: Weights w of the second label, in [0, 1]. The first label has the weight 1 - w.
      seeds: Seeds of the rankers.
      measure: One of trec_eval's measures, as for `evaluation.trec_eval`.
      **fit_options: Options of `Ranker.fit`, such as `features`.

    Returns:
      A DataFrame with the columns "ranker", "weight", "fold" (from 1 on), "seed", and one per label: the mean of the
      measure over the test queries of the fold.

    Raises:
      ValueError: If an argument or the data is invalid.

    Time: one training for each combination of ranker, weight, fold and seed.
    """
    first, second = labels
    for weight in weights:
        if not 0.0 <= weight <= 1.0:
            raise ValueError(f"`weights` must be numbers in [0, 1], got {weight!r}.")
    path = Path(path)
    columns = [*_KEYS, first, second]
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    done = {tuple(row[name] for name in _KEYS) for row in rows}
    for (fold, tables), seed, weight, (name, ranker) in itertools.product(
        enumerate(folds, 1), seeds, map(float, weights), rankers.items()
    ):
        key = (name, weight, fold, seed)
        if key in done:
            continue
        train, valid, test = tables
        fitted = type(ranker)(**{**ranker.get_params(), "seed": seed}).fit(
            train, label={first: 1.0 - weight, second: weight}, query=query, validation=valid, **fit_options
        )
        found = fitted.evaluate(test, measures=[measure])
        means = [found[f"{label}/{measure}"].mean for label in labels]
        rows.append(dict(zip(columns, [*key, *means], strict=True)))
        write(path, pd.DataFrame(rows, columns=columns).to_csv(index=False))
    return pd.DataFrame(rows, columns=columns)


def pareto_front(results: pd.DataFrame) -> pd.DataFrame:
    """Returns the mean of both labels by ranker and weight, and which of these points are Pareto optimal.

    Args:
      results: The results of `trade_off`.

    Returns:
      A DataFrame with a row for each ranker and weight: "ranker", "weight"; for each label the mean over folds of the
      mean over seeds, and as LABEL_error the standard error over folds, NaN for one fold; and "optimal", whether no
      other point is at least as good for both labels and better for one.

    """
    first, second = labels = _labels(results)
    point = ["ranker", "weight"]
    by_fold = results.groupby([*point, "fold"], sort=False)[labels].mean()
    groups = by_fold.groupby(point, sort=False)
    points = groups.mean().join(groups.sem().add_suffix("_error")).reset_index()

    def is_optimal(row: Any) -> bool:
        as_good = points[(points[first] >= row[first]) & (points[second] >= row[second])]
        return not ((as_good[first] > row[first]) | (as_good[second] > row[second])).any()

    points["optimal"] = points.apply(is_optimal, axis=1)
    return points.sort_values(point, ignore_index=True)


def plot_pareto_front(results: pd.DataFrame, *, measure: str = "NDCG") -> Figure:
    """Draws the measure of one label against that of the other, by weight, with standard errors over folds.

    Args:
      results: The results of `trade_off`.
      measure: Name of the measure, for the axes.

    Returns:
      A matplotlib figure with one line per ranker. Pareto optimal points are filled, others are hollow, and each is
      marked with the weight of the second label.


    """
    first, second = _labels(results)
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    panel = figure.subplots()
    for color, (ranker, points) in zip(itertools.cycle(COLORS), pareto_front(results).groupby("ranker", sort=False)):
        errors = {"xerr": points[f"{first}_error"], "yerr": points[f"{second}_error"]}
        panel.errorbar(
            points[first], points[second], **errors, color=color, linewidth=1.0, elinewidth=0.6, label=ranker
        )
        faces = [color if optimal else rcParams["axes.facecolor"] for optimal in points["optimal"]]
        panel.scatter(points[first], points[second], c=faces, edgecolors=color, zorder=3)
        for x, y, weight in zip(points[first], points[second], points["weight"], strict=True):
            panel.annotate(f"{weight:g}", (x, y), xytext=(4, 4), textcoords="offset points", color=color, fontsize=8)
    panel.set_xlabel(f"{measure} of {first}")
    panel.set_ylabel(f"{measure} of {second}")
    panel.legend()
    return figure


def _labels(results: pd.DataFrame) -> list[str]:
    return [name for name in results.columns if name not in _KEYS]
