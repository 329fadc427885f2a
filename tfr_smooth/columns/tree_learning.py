"""Learning of the trees of a table by LightGBM: their score is one more feature."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfr_smooth.columns.features import TableFeatures
from tfr_smooth.columns.list_context import in_parts
from tfr_smooth.columns.statistics import mean_labels
from tfr_smooth.columns.trees import Trees
from tfr_smooth.data.column_values import dense_column
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.roles import DENSE, STATISTICS

_PARTS = 3  # of the training queries
_MOST_GRADE = 30  # the highest label whose gain is exponential
_MOST_BYTES = 1 << 28  # of the features that LightGBM gets; not tuned
_ROWS_AT_ONCE = 1 << 12  # not tuned
_FOR_THREADS = 10_000_000  # numbers; with fewer, threads of LightGBM mostly wait for each other
_PARAMETERS = {
    "objective": "lambdarank",
    "metric": "ndcg",
    "eval_at": [10],
    "num_boost_round": 100,
    "early_stopping_round": 20,
    "verbosity": -1,
    "deterministic": True,
    "force_row_wise": True,
}


def learn_trees(
    layer: TableFeatures, lists: Lists, queries: np.ndarray, *, gain: str, given: Mapping[str, Any], seed: int
) -> tuple[TableFeatures, Lists]:
    """Learns trees of the features of a layer, on parts of the training queries.

    The parts follow the order of the queries in the table, as for statistics. A training document has the score of the
    model of the other parts, which knows neither its label nor those of its list; others have the mean of the models.

    Args:
      layer: The features.
      lists: All lists, as of `layer.transform`.
      queries: The indices of the training queries.
      gain: The gain of labels up to 30, "exponential" or "linear".
      given: Parameters of LightGBM, in place of the default ones.
      seed: The seed.

    Returns:
      The layer with the trees, and the lists with their score; both as they are if no tree splits.

    Time O(rows * features * trees). LightGBM gets at most 256 MB of features, of evenly spaced queries.
    """
    import lightgbm  # which takes a second

    queries = queries[:: math.ceil(4 * lists.take(queries).documents * layer.num_features / _MOST_BYTES) or 1]
    training = lists.take(queries)
    if len(training) < 2 * _PARTS:
        return layer, lists
    x, labels = (
        layer.tree_inputs(layer.features(training, training.rows, training.lengths)).numpy(),
        mean_labels(training),
    )
    levels, grades = np.unique(labels, return_inverse=True)
    is_graded = gain == "exponential" and levels[-1] <= _MOST_GRADE and (levels == np.round(levels)).all()
    parameters: dict[str, Any] = {
        **_PARAMETERS,
        "seed": seed,
        "label_gain": (2.0**levels - 1.0 if is_graded else levels).tolist(),
    }
    if x.size < _FOR_THREADS:
        parameters["num_threads"] = 1
    parameters.update(given)
    options: dict[str, Any] = {"group": training.lengths, "weight": None}
    if training.roles.weight is not None:
        options["weight"] = training.values(training.roles.weight)
    categories = [*range(x.shape[1] - len(layer.categories), x.shape[1])]
    data = lightgbm.Dataset(x, grades, categorical_feature=categories, params=parameters, **options)
    part = np.repeat(np.arange(len(training)) * _PARTS // len(training), training.lengths)
    folds = [(np.flatnonzero(part != place), np.flatnonzero(part == place)) for place in range(_PARTS)]
    cv: Any = lightgbm.cv(parameters, data, folds=folds, return_cvbooster=True)["cvbooster"]
    best, threads = max(cv.best_iteration, 0) or None, parameters.get("num_threads", 0)
    scores, means = np.zeros(len(x)), []
    for (_, held), booster in zip(folds, cv.boosters, strict=True):
        values = booster.predict(x[held], num_iteration=best, num_threads=threads)
        scores[held] = values - values.mean()
        means.append(values.mean())
    weight = slope(scores, labels, training)
    models = [booster.model_to_string(num_iteration=best) for booster in cv.boosters]
    trees = Trees(models=models, weight=weight, bias=float(-weight * np.mean(means)))
    if not trees.features or not weight:
        return layer, lists
    column = np.zeros([len(lists.source), 1], np.float32)
    for places, lengths in in_parts(lists, _ROWS_AT_ONCE, whole=True):
        rows = lists.rows[places]
        column[rows, 0] = trees(layer.tree_inputs(layer.features(lists, rows, lengths)))
    column[training.rows, 0] = weight * scores
    return layer.replace(trees=trees), _with_scores(lists, DENSE if layer.is_prepared(lists) else STATISTICS, column)


def _with_scores(lists: Lists, name: str, column: np.ndarray) -> Lists:
    """Returns the lists with a further column of a matrix of features, which may be new."""
    names = lists.roles.features
    if name in names:
        column = np.concatenate([lists.column(name)(np.arange(len(column))), column], axis=1)
    features = (*(other for other in names if other != name), name)
    return lists.replace(dataclasses.replace(lists.roles, features=features), {name: dense_column(column)})


def slope(scores: np.ndarray, labels: np.ndarray, lists: Lists) -> float:
    """Returns the factor >= 0 of scores with the lowest softmax loss, by Newton's method."""
    query, starts = lists.query_of_document, lists.starts[:-1]
    total = np.add.reduceat(labels, starts)
    wanted, factor = np.add.reduceat(labels * scores, starts), 1.0
    for _ in range(20):
        logits = factor * scores
        odds = np.exp(logits - np.maximum.reduceat(logits, starts)[query])
        sums = [np.add.reduceat(odds * scores**power, starts) for power in range(3)]
        mean = sums[1] / sums[0]
        gradient = (total * mean - wanted).sum()
        curvature = (total * (sums[2] / sums[0] - mean**2)).sum()
        step = np.clip(gradient / max(curvature, 1e-9), -0.5, 0.5)
        factor = max(factor - step, 0.0)
        if abs(step) < 1e-4:
            break
    return float(factor)
