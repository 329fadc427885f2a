"""Learning of the trees of a table by LightGBM: their score is one more feature."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tfr_smooth import _arguments
from tfr_smooth.columns.features import TableFeatures
from tfr_smooth.columns.list_context import in_parts
from tfr_smooth.columns.statistics import mean_labels, parts_of_queries
from tfr_smooth.columns.trees import Trees
from tfr_smooth.data.column_values import dense_column
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.roles import DENSE, STATISTICS

# Of the training queries; of large tables fewer, which take half the time. Five parts and 50 rounds rank better than
# three and 20 on queries that trees have not seen of families and solvers (made up, +0.007 and +0.015 NDCG@10), MQ2008
# (+0.016) and tables of zeros (+0.003), and equally on Yandex.
_PARTS, _FEW_PARTS = 5, 3
_MOST_GRADE = 30  # the highest label whose gain is exponential
_MOST_DOCUMENTS = 10_000  # of a list, in LightGBM
_SHUFFLED, _SHUFFLED_NUMBERS = 40, 4_000_000  # features, and numbers of the others, at most
# Not tuned.
_MOST_BYTES = 1 << 28  # of the features that LightGBM gets
_ROWS_AT_ONCE = 1 << 12
_TREE = "\nTree="  # begins each tree in a model
_FOR_THREADS = 10_000_000  # numbers; with fewer, threads of LightGBM mostly wait for each other
_PARAMETERS = {
    "objective": "lambdarank",
    "metric": "ndcg",
    "eval_at": [10],
    "num_iterations": 100,
    "early_stopping_round": 50,
    "verbosity": -1,
    "deterministic": True,
    "force_row_wise": True,
}


def check_names(given: Mapping[str, Any]) -> None:
    """Refuses parameters that do not have main names of LightGBM, which would have no effect.

    Args:
      given: The parameters.

    Raises:
      ValueError: If LightGBM has no such name.
    """
    import lightgbm

    options = {"verbosity": -1, "num_threads": 1}  # Threads of LightGBM do not work in forked processes.
    data_set = lightgbm.Dataset(np.zeros([1, 1]), [0.0], params=options)
    names = re.findall(r"^\[(\w+): ", lightgbm.Booster(options, data_set).model_to_string(), re.MULTILINE)
    for name, value in given.items():
        _arguments.choice("trees", name, names)
        if callable(value):
            raise ValueError(f"`trees` must be parameters that files can have, got a function as {name!r}.")


def learn_trees(
    layer: TableFeatures,
    lists: Lists,
    queries: np.ndarray,
    *,
    gain: str,
    given: Mapping[str, Any],
    seed: int,
    order: np.ndarray | None = None,
    before: TableFeatures | None = None,
) -> tuple[TableFeatures, Lists]:
    """Learns trees of the features of a layer, on parts of the training queries.

    A training document has the score of the model of the other parts, which is trained without its list; others have
    the mean of the models. Of its label, the model knows only what statistics of ids tell in the features of other
    lists: random labels stay at chance.

    Args:
      layer: The features.
      lists: All lists, as of `layer.transform`.
      queries: The indices of the training queries.
      gain: The gain of labels up to 30, "exponential" or "linear".
      given: Parameters of LightGBM, in place of the default ones.
      seed: The seed.
      order: The place of each list in the order whose runs are the parts. None is that of the lists.
      before: The layer of an earlier training, whose number of trees is taken, and whose weak features if its features
        are the same; or None.

    Returns:
      The layer with the trees, and the lists with their score; both as they are if no tree splits.

    Raises:
      ValueError: If LightGBM refuses parameters, or trains other trees than `Trees` takes.

    Time O(rows * features * trees). LightGBM gets at most 256 MB of features, of evenly spaced queries of at most
    10,000 documents.
    """
    queries = queries[lists.lengths[queries] <= _MOST_DOCUMENTS]
    size = 4 * lists.take(queries).documents * layer.num_features
    queries = queries[:: max(math.ceil(size / _MOST_BYTES), 1)]
    training = lists.take(queries)
    if len(training) < 2 * _PARTS:
        return layer, lists
    places, parts = zip(*_inputs(layer, training), strict=True)
    x = np.concatenate(parts)[np.argsort(np.concatenate(places))]
    labels, role = mean_labels(training), training.roles.weight
    weight = np.ones(len(x)) if role is None else training.values(role)
    kept = weight > 0.0  # LightGBM would compare the labels of documents of weight 0 with those of others.
    of_lists, lengths = np.unique(training.query_of_document[kept], return_counts=True)
    x, labels, weight, rows = x[kept], labels[kept], weight[kept], training.rows[kept]
    if len(lengths) < 2 * _PARTS or not x.shape[1]:
        return layer, lists
    weight = weight / weight.mean(dtype=float)  # LightGBM's limits of leaves have a scale.
    is_graded = gain == "exponential" and labels.max() <= _MOST_GRADE and (labels == np.round(labels)).all()
    levels, grades = np.unique(labels, return_inverse=True)
    categories = [*range(x.shape[1] - len(layer.categories), x.shape[1])]
    data = {"data": x, "label": grades, "group": lengths, "weight": weight, "categorical_feature": categories}
    parameters = {"label_gain": (2.0**levels - 1.0 if is_graded else levels).tolist(), "seed": seed, **given}
    if before is not None and before.trees:
        parameters |= {"num_iterations": before.trees.models[0].count(_TREE), "early_stopping_round": 0}
    try:
        places = queries[of_lists] if order is None else order[queries[of_lists]]
        parts = _PARTS if x.size < _FOR_THREADS else _FEW_PARTS
        models, scores, means = _fitted(data, parameters, parts_of_queries(places, parts))
        factor = slope(scores, labels, lengths)
        weak: Sequence[int] = ()  # With embeddings, which trees do not have, any feature may matter.
        if not any(column.codes or column.vector for column in layer.columns):
            is_same = before is not None and before.feature_columns[:-1] == layer.feature_columns
            earlier = before.trees if before and is_same else None
            weak = earlier.weak if earlier else weak_features(data, parameters, models[0].count(_TREE))
        trees = Trees(models=models, weight=factor, bias=-factor * float(np.mean(means)), weak=weak)
    except Exception as error:  # LightGBM checks parameters in many ways.
        if not given:
            raise
        raise ValueError(f"`trees` must be parameters that LightGBM takes, got {given!r}: {error}") from error
    if not trees.features or not factor:
        return layer, lists
    column = np.zeros([len(lists.source), 1], np.float32)
    others = lists if role is not None else lists.take(np.setdiff1d(np.arange(len(lists)), queries))
    other_rows = others.rows
    for places, inputs in _inputs(layer, others):
        column[other_rows[places], 0] = trees(inputs)
    column[rows, 0] = factor * scores
    in_memory = lists.is_prepared and 4 * len(column) * layer.num_features <= _MOST_BYTES
    with_scores = _with_scores(lists, DENSE if in_memory else STATISTICS, column)
    return layer.replace(trees=trees), with_scores


def _inputs(layer: TableFeatures, lists: Lists) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields the places of documents among all, and what trees take of them; lists of a part have similar lengths."""
    rows = lists.rows
    for places, lengths in in_parts(lists, _ROWS_AT_ONCE, whole=True):
        yield places, layer.tree_inputs(layer.features(lists, rows[places], lengths)).numpy()


def _fitted(
    data: Mapping[str, Any], given: Mapping[str, Any], part_of_query: np.ndarray
) -> tuple[list[str], np.ndarray, list[float]]:
    """Trains models of LightGBM, each on all parts of the queries but one.

    The number of trees is the best one for the parts that each has not seen.

    Args:
      data: The arguments of LightGBM's data set.
      given: Parameters.
      part_of_query: The part of each query, from 0 on.

    Returns:
      The texts of the models, the scores of the documents by the model of the other parts, minus their mean in the
      part, and these means.
    """
    import lightgbm

    x, parameters, part = data["data"], _parameters(data, given), np.repeat(part_of_query, data["group"])
    folds = [(np.flatnonzero(part != place), np.flatnonzero(part == place)) for place in range(part.max() + 1)]
    data_set = lightgbm.Dataset(**data, params=parameters)
    cv: Any = lightgbm.cv(parameters, data_set, folds=folds, return_cvbooster=True)["cvbooster"]
    best, scores, means = max(cv.best_iteration, 0) or None, np.zeros(len(x)), []
    for booster, (_, rows) in zip(cv.boosters, folds, strict=True):
        values = booster.predict(x[rows], num_iteration=best, raw_score=True, num_threads=parameters["num_threads"])
        means.append(float(values.mean()))
        scores[rows] = values - means[-1]
    return [booster.model_to_string(num_iteration=best) for booster in cv.boosters], scores, means


def _parameters(data: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    return {**_PARAMETERS, "num_threads": 1 if data["data"].size < _FOR_THREADS else 0, **given}


def weak_features(data: Mapping[str, Any], given: Mapping[str, Any], trees: int) -> list[int]:
    """Returns the features whose splits gain no more than those of the best one of shuffled features.

    Features that are constant in lists are shuffled among the lists, others among all documents. Large tables use
    evenly spaced lists.

    Args:
      data: The arguments of LightGBM's data set.
      given: Parameters.
      trees: How many trees are trained.
    """
    import lightgbm

    every = math.ceil(data["data"].size / _SHUFFLED_NUMBERS)
    lengths = data["group"][::every]
    rows = np.repeat(np.arange(len(data["group"])) % every == 0, data["group"])
    x, random = data["data"][rows], np.random.default_rng(0)
    starts = np.cumsum(lengths) - lengths
    of_list = (np.maximum.reduceat(x, starts) == np.minimum.reduceat(x, starts)).all(axis=0)
    chosen = random.permutation(x.shape[1])[:_SHUFFLED]
    some, documents, firsts = x[:, chosen], random.permutation(len(x)), random.permutation(starts)
    shuffled = np.where(of_list[chosen], some[firsts.repeat(lengths)], some[documents])
    categories = [*data["categorical_feature"]]
    categories += (x.shape[1] + np.flatnonzero(np.isin(chosen, categories))).tolist()
    both = {"data": np.concatenate([x, shuffled], axis=1), "categorical_feature": categories, "group": lengths}
    both |= {name: data[name][rows] for name in ("label", "weight")}
    parameters = {**_parameters(data, given), "num_iterations": trees, "early_stopping_round": 0}
    gains = lightgbm.train(parameters, lightgbm.Dataset(**both, params=parameters)).feature_importance("gain")
    return np.flatnonzero(gains[: x.shape[1]] <= gains[x.shape[1] :].max()).tolist()


def _with_scores(lists: Lists, name: str, column: np.ndarray) -> Lists:
    """Returns the lists with a further column of a matrix of features, which may be new."""
    names = lists.roles.features
    if name in names:
        column = np.concatenate([lists.column(name)(np.arange(len(column))), column], axis=1)
    features = (*(other for other in names if other != name), name)
    return lists.replace(dataclasses.replace(lists.roles, features=features), {name: dense_column(column)})


def slope(scores: np.ndarray, labels: np.ndarray, lengths: np.ndarray) -> float:
    """Returns the factor >= 0 of scores of lists of these lengths with the lowest softmax loss, by Newton's method."""
    query, starts = np.repeat(np.arange(len(lengths)), lengths), np.cumsum(lengths) - lengths
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
