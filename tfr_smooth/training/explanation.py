"""Shapley values: what the columns of a table do to single scores."""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth._arguments import printable
from tfr_smooth.columns.features import TableFeatures
from tfr_smooth.data.lists import Lists
from tfr_smooth.training.scoring import compiled_scorer

_PAIRS_AT_ONCE, _LISTS_AT_ONCE = 2**12, 32  # not tuned: limits of memory
_LONGEST = 40  # letters of a value in tables


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The contribution of each column to the scores of documents, as returned by `Ranker.explain`.

    The contributions to the score of a document sum to its score minus the mean score of its background. Print it for a
    table: of one document, its columns by decreasing absolute contribution; of several, the columns by their mean
    absolute contribution.

    Args:
      columns: The names of the columns.
      contributions: [documents, columns].
      scores: The scores, [documents].
      background_scores: The mean score of the background of each document, [documents].
      rows: The row of each document in the table, [documents].
      values: By column, the values of the documents; a match of two columns has none.

    Example:
      >>> from tfr_smooth import training
      >>> values = {"price": [9.5], "brand": ["acme"]}
      >>> print(training.Explanation(["price", "brand"], [[0.1, -0.4]], [0.2], [0.5], [7], values))
      row 7: score 0.2000, background 0.5000
      brand = acme  -0.4000
      price = 9.5   +0.1000
    """

    columns: Sequence[str]
    contributions: np.ndarray
    scores: np.ndarray
    background_scores: np.ndarray
    rows: np.ndarray
    values: Mapping[str, Sequence[Any]]

    def to_pandas(self) -> Any:
        """Returns the contributions as a pandas DataFrame, with the rows of the table as its index."""
        import pandas as pd

        return pd.DataFrame(self.contributions, index=self.rows, columns=list(self.columns))

    def bars(self) -> tuple[str, dict[str, float]]:
        """Returns what is shown, and by column the contributions to one score, or their mean absolute values."""
        shown = sizes = np.abs(self.contributions).mean(axis=0)
        title, values = f"mean absolute contribution to {len(self.rows)} scores", {}
        if len(self.rows) == 1:
            title = f"row {self.rows[0]}: score {self.scores[0]:.4f}, background {self.background_scores[0]:.4f}"
            shown, values = self.contributions[0], {name: f" = {_text(of[0])}" for name, of in self.values.items()}
        names = {place: self.columns[place] for place in np.argsort(-sizes, kind="stable")}
        return title, {f"{name}{values.get(name, '')}": shown[place] for place, name in names.items()}

    def __str__(self) -> str:
        """Returns the table."""
        title, bars = self.bars()
        width = max(len(printable(name)) for name in bars)
        return "\n".join([title, *(f"{printable(name):<{width}}  {bar:+.4f}" for name, bar in bars.items())])


def _text(value: Any) -> str:
    """Returns the start of a value as text."""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    is_missing = value is None or text in ("nan", "NaT") and not isinstance(value, str)
    return "missing" if is_missing else f"{text:.{_LONGEST}}"


def explain(
    scorer: Any, layer: TableFeatures, lists: Lists, background: Lists | None, rows: Any, samples: int, seed: int
) -> Explanation:
    """Explains the scores of documents, as described in `Ranker.explain`.

    Args:
      scorer: The scorer of prepared features, of which each document is scored alone.
      layer: The features.
      lists: The lists of the documents, with raw values.
      background: The lists of the background, or None for that of each document.
      rows: The rows of the source to explain: numbers, a slice or a mask; None for all.
      samples: The least number of pairs of permutations per document.
      seed: Seed of the permutations.
    """
    rows = lists.rows if rows is None else _places(rows, lists)
    lists = lists.take(np.unique(lists.query_of_document[np.isin(lists.rows, rows)]))
    chosen, compiled = np.flatnonzero(np.isin(lists.rows, rows)), compiled_scorer(scorer)

    names = layer.feature_columns[: layer.num_features - bool(layer.trees)]

    def score(features: np.ndarray) -> np.ndarray:
        given = layer.with_score(tf.constant(features)[tf.newaxis])  # of the trees, which take features of all columns
        return compiled({"features": given})[0].numpy().astype(np.float64)

    def prepared(lists: Lists) -> tuple[np.ndarray, np.ndarray]:
        batches = layer.batches(layer.transform(lists), _LISTS_AT_ONCE)
        parts = [tf.boolean_mask(inputs["features"], inputs["mask"])[:, : len(names)].numpy() for inputs, *_ in batches]
        return np.concatenate(parts), np.concatenate(list(map(score, parts)))

    features, scores = prepared(lists)
    # The documents that are explained together, and where those of their background start and end.
    of_query, ends = lists.query_of_document[chosen], lists.starts
    parts = [(chosen[of_query == query], ends[query], ends[query + 1]) for query in range(len(lists))]
    if background is not None:
        others, of_others = prepared(background)
        features, scores = np.concatenate([features, others]), np.concatenate([scores, of_others])
        parts = [(chosen, lists.documents, len(scores))]
    groups = [(documents, start + representatives(scores[start:end], samples)) for documents, start, end in parts]
    values = [shapley_values(score, features, names, group, samples, seed) for group in groups]
    means = [np.full(len(documents), scores[others].mean()) for documents, others in groups]
    raw = lists.to_pandas().iloc[chosen][[column.name for column in layer.columns]].to_dict("list")
    arrays = (np.concatenate(values), scores[chosen], np.concatenate(means), lists.rows[chosen])
    return Explanation(tuple(places_by_name(names)), *arrays, raw)


def places_by_name(names: Sequence[str]) -> dict[str, list[int]]:
    """Returns the places of the features of each name: those of one column change together."""
    return {name: [place for place, other in enumerate(names) if other == name] for name in dict.fromkeys(names)}


def _places(given: Any, lists: Lists) -> np.ndarray:
    """Returns the rows of the source to explain, given by their numbers, a slice or a mask."""
    every = np.arange(len(lists.source))
    rows = every[given] if isinstance(given, slice) else np.array([*given] if np.iterable(given) else [given])
    if rows.dtype == bool and len(rows) == len(every):
        rows = every[rows]
    if not len(rows) or rows.dtype.kind not in "iu" or not np.isin(rows, lists.rows).all():
        expected = f"rows of `X` from 0 to {len(every) - 1}, a slice or a mask of them, at least one"
        raise ValueError(f"`rows` must be {expected}, got {reprlib.repr(given)}.")
    return rows


def shapley_values(
    score: Callable[..., Any], features: np.ndarray, names: Sequence[str], group: Sequence[Any], samples: int, seed: int
) -> np.ndarray:
    """Returns the Shapley values of columns, with the documents of a background in place of absent columns.

    A permutation is drawn with its reverse (Mitchell et al., "Sampling Permutations for Shapley Value Estimation", JMLR
    2022): interactions of two columns then have no sampling error. The values of x against z are the negative ones of z
    against x, so each pair is computed once.

    Args:
      score: The scores [n] of features [n, num_features], of which each row is scored alone.
      features: [rows, num_features], prepared.
      names: The column of each feature.
      group: The rows to explain, and those of their background.
      samples: The least number of draws per document; each document of the background has as many as the others.
      seed: Seed of the permutations.

    Returns:
      float64 [documents, columns], columns in the order of `places_by_name`.

    Time O(documents * samples * columns) scores, memory O(documents * samples * columns).
    """
    documents, background = group
    by_name = places_by_name(names)
    column_of = np.array([list(by_name).index(name) for name in names])
    pairs = np.stack(np.meshgrid(documents, background, indexing="ij"), axis=-1).reshape(-1, 2)
    unordered, places = np.unique(np.sort(pairs, axis=1), axis=0, return_inverse=True)
    draws = -(-samples // len(background))
    random = np.random.default_rng(seed)
    values = np.zeros([len(unordered) * draws, len(by_name)])
    for first in range(0, len(values), _PAIRS_AT_ONCE):
        part = values[first : first + _PAIRS_AT_ONCE]
        rows = np.arange(len(part))
        present, absent = (features[side] for side in unordered[(first + rows) // draws].T)
        orders = random.permuted(np.tile(np.arange(len(by_name)), [len(part), 1]), axis=1)
        for order in (orders, orders[:, ::-1]):
            mixed, before = absent, score(absent)
            for column in order.T:
                mixed = np.where(column_of == column[:, np.newaxis], present, mixed)
                after = score(mixed)
                part[rows, column] += (after - before) / 2.0
                before = after
    values = values.reshape(len(unordered), draws, -1).mean(axis=1)[places.reshape(-1)]
    values *= np.where(pairs[:, :1] > pairs[:, 1:], -1.0, 1.0)
    return values.reshape(len(documents), len(background), -1).mean(axis=1)


def representatives(scores: np.ndarray, count: int) -> np.ndarray:
    """Returns the places of at most so many documents, evenly spaced in the order of their scores."""
    count = min(count, len(scores))
    return np.argsort(scores, kind="stable")[((np.arange(count) + 0.5) * len(scores) / count).astype(int)]
