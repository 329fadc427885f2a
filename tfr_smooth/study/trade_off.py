"""The trade-off between two labels: the same rankers trained with different weights, and the Pareto front."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfr_smooth import _arguments, _extras, _files, _plotting

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from tfr_smooth.ranker import Ranker

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
      ImportError: If the extra `tfr_smooth[study]` is not installed.

    Time: one training for each combination of ranker, weight, fold and seed.

    Example:
      >>> import numpy as np
      >>> import pandas as pd
      >>> import tempfile
      >>> import tfr_smooth
      >>> random = np.random.default_rng(0)
      >>> frame = pd.DataFrame({"query": np.repeat(np.arange(30), 5), "price": random.normal(size=150)})
      >>> frame["relevance"], frame["margin"] = (frame["price"] < 0.0) * 1, (frame["price"] > 0.5) * 1
      >>> ranker = tfr_smooth.Ranker(hidden=[4], members=1, epochs=2, verbose=False)
      >>> results = tfr_smooth.study.trade_off(
      ...     {"sum": ranker},
      ...     [(frame, frame, frame)],
      ...     labels=("relevance", "margin"),
      ...     query="query",
      ...     path=tempfile.mkdtemp() + "/results.csv",
      ...     weights=[0.0, 1.0],
      ... )
      >>> bool(results["relevance"][0] > results["relevance"][1]), bool(results["margin"][0] < results["margin"][1])
      (True, True)
    """
    with _extras.needed("pandas", extra="study", by="`trade_off`"):
        import pandas as pd
    first, second = labels
    checked = [_arguments.real("weights", weight, least=0.0, most=1.0) for weight in weights]
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = [*_KEYS, first, second]
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    done = {tuple(row[name] for name in _KEYS) for row in rows}
    for (fold, tables), seed, weight, (name, ranker) in itertools.product(
        enumerate(folds, 1), seeds, checked, rankers.items()
    ):
        key = (name, weight, fold, seed)
        if key in done:
            continue
        train, valid, test = tables
        fitted = type(ranker)(**{**ranker.get_params(), "seed": seed}).fit(
            train, label={first: 1.0 - weight, second: weight}, query=query, eval_set=valid, **fit_options
        )
        found = fitted.evaluate(test, measures=[measure])
        means = [found[f"{label}/{measure}"].mean for label in labels]
        rows.append(dict(zip(columns, [*key, *means], strict=True)))
        _files.write_text(path, [pd.DataFrame(rows, columns=columns).to_csv(index=False)])
    return pd.DataFrame(rows, columns=columns)


def pareto_front(results: pd.DataFrame) -> pd.DataFrame:
    """Returns the mean of both labels by ranker and weight, and which of these points are Pareto optimal.

    Args:
      results: The results of `trade_off`.

    Returns:
      A DataFrame with a row for each ranker and weight: "ranker", "weight"; for each label the mean over folds of the
      mean over seeds, and as LABEL_error the standard error over folds, NaN for one fold; and "optimal", whether no
      other point is at least as good for both labels and better for one.

    Example:
      >>> import pandas as pd
      >>> from tfr_smooth import study
      >>> rows = [("sum", 0.0, 0.5, 0.2), ("sum", 0.5, 0.4, 0.3), ("sum", 1.0, 0.3, 0.3)]
      >>> results = pd.DataFrame(rows, columns=["ranker", "weight", "relevance", "margin"]).assign(fold=1, seed=0)
      >>> study.pareto_front(results)["optimal"].tolist()
      [True, True, False]
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

    Raises:
      ImportError: If the extra `tfr_smooth[study]` is not installed.

    Example:
      >>> import pandas as pd
      >>> from tfr_smooth import study
      >>> rows = [("sum", 0.0, 0.5, 0.2), ("sum", 0.5, 0.4, 0.3), ("sum", 1.0, 0.3, 0.3)]
      >>> results = pd.DataFrame(rows, columns=["ranker", "weight", "relevance", "margin"]).assign(fold=1, seed=0)
      >>> study.plot_pareto_front(results).axes[0].get_xlabel()
      'NDCG of relevance'
    """
    with _extras.needed("matplotlib", extra="study", by="`plot_pareto_front`"):
        from matplotlib.figure import Figure
    first, second = _labels(results)
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    panel = figure.subplots()
    for color, (ranker, points) in zip(
        itertools.cycle(_plotting.COLORS), pareto_front(results).groupby("ranker", sort=False)
    ):
        errors = {"xerr": points[f"{first}_error"], "yerr": points[f"{second}_error"]}
        panel.errorbar(
            points[first], points[second], **errors, color=color, linewidth=1.0, elinewidth=0.6, label=ranker
        )
        faces = [color if optimal else _plotting.background() for optimal in points["optimal"]]
        panel.scatter(points[first], points[second], c=faces, edgecolors=color, zorder=3)
        for x, y, weight in zip(points[first], points[second], points["weight"], strict=True):
            panel.annotate(f"{weight:g}", (x, y), xytext=(4, 4), textcoords="offset points", color=color, fontsize=8)
    panel.set_xlabel(f"{measure} of {first}")
    panel.set_ylabel(f"{measure} of {second}")
    panel.legend()
    return figure


def _labels(results: pd.DataFrame) -> list[str]:
    return [name for name in results.columns if name not in _KEYS]
