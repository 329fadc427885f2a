"""Shapley values: how much each column adds to the score of a document, against other documents."""

from __future__ import annotations

import dataclasses
import os
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from tfr_smooth import _arguments, _plotting
from tfr_smooth._printable import printable
from tfr_smooth.columns.features import TableFeatures
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.roles import DENSE
from tfr_smooth.training.feature_importance import places_by_name
from tfr_smooth.training.scoring import compiled_scorer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PAIRS_AT_ONCE, _LISTS_AT_ONCE = 2**12, 32
_LONGEST = 40  # letters of a value in tables and plots


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

    Raises:
      ValueError: If the shape of `contributions` is another one.

    Example:
      >>> from tfr_smooth import training
      >>> values = {"price": [9.5], "brand": ["acme"]}
      >>> print(training.Explanation(["price", "brand"], [[0.1, -0.4]], [0.2], [0.5], [7], values))
      row 7: score 0.2000, of the background 0.5000
      brand  -0.4000  acme
      price  +0.1000  9.5
    """

    columns: Sequence[str]
    contributions: np.ndarray
    scores: np.ndarray
    background_scores: np.ndarray
    rows: np.ndarray
    values: Mapping[str, Sequence[Any]]

    def __post_init__(self) -> None:
        """Checks the shape and makes arrays."""
        for name in ("contributions", "scores", "background_scores", "rows"):
            object.__setattr__(self, name, np.asarray(getattr(self, name)))
        shape = (len(self.rows), len(self.columns))
        if self.contributions.shape != shape or not all(shape):
            expected = f"[documents, columns], here {shape} with at least one of each"
            raise ValueError(f"`contributions` must be {expected}, got shape {self.contributions.shape}.")

    def of_row(self, row: int) -> Explanation:
        """Returns the explanation of one document.

        Args:
          row: Its row in the table.

        Raises:
          ValueError: If the row is not explained.
        """
        if row not in self.rows:
            raise ValueError(f"`row` must be an explained one of {reprlib.repr(self.rows.tolist())}, got {row!r}.")
        place = self.rows.tolist().index(row)
        names = ("contributions", "scores", "background_scores", "rows")
        parts: dict[str, Any] = {name: getattr(self, name)[place : place + 1] for name in names}
        values = {name: [column[place]] for name, column in self.values.items()}
        return dataclasses.replace(self, **parts, values=values)

    def to_pandas(self) -> Any:
        """Returns the contributions as a pandas DataFrame, with the rows of the table as its index."""
        import pandas as pd

        return pd.DataFrame(self.contributions, index=self.rows, columns=list(self.columns))

    @property
    def _bars(self) -> tuple[str, dict[str, float]]:
        """What is shown, and by column the contributions to one score, or their mean absolute values."""
        sizes = np.abs(self.contributions).mean(axis=0)
        shown = self.contributions[0] if len(self.rows) == 1 else sizes
        title = f"mean absolute contribution to {len(self.rows)} scores"
        if len(self.rows) == 1:
            title = f"row {self.rows[0]}: score {self.scores[0]:.4f}, of the background {self.background_scores[0]:.4f}"
        return title, {self.columns[place]: float(shown[place]) for place in np.argsort(-sizes, kind="stable")}

    def _value(self, name: str) -> str:
        """Returns the value of a column of the only document; "" if there is none."""
        if len(self.rows) > 1 or name not in self.values:
            return ""
        (value,) = self.values[name]
        if value is None or value != value:
            return "missing"
        text = f"{value:.6g}" if isinstance(value, float) else printable(value)
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."

    def __str__(self) -> str:
        """Returns the table."""
        title, bars = self._bars
        width = max(len(printable(name)) for name in bars)
        lines = [f"{printable(name):<{width}}  {bar:+.4f}  {self._value(name)}".rstrip() for name, bar in bars.items()]
        return "\n".join([title, *lines])

    def plot(self, path: str | os.PathLike[str], *, top: int = 20) -> None:
        """Plots the contributions as bars: of one document, or the mean absolute values of several.

        Args:
          path: The PNG file to write, in an existing directory. An existing file is replaced atomically.
          top: The number of columns, >= 1; those with the highest absolute contributions are shown.

        Raises:
          ValueError: If `top` is invalid.
          ImportError: If matplotlib is not installed; the extra `tfr_smooth[evaluation]` includes it.
        """
        top = _arguments.integer("top", top, least=1)
        _plotting.write_png(path, lambda: draw(self, top), by="`Explanation.plot`")


def draw(explanation: Explanation, top: int) -> Figure:
    """Returns the figure of `Explanation.plot` in the current theme."""
    title, bars = explanation._bars
    shown = {name: bars[name] for name in list(bars)[:top]}
    labels = {f"{name} = {value}" if (value := explanation._value(name)) else name: shown[name] for name in shown}
    return _plotting.bars(labels, title=title, label="contribution to the score", numbers="{:+.3g}")


def explain(
    scorer: tf.keras.Model,
    layer: TableFeatures,
    lists: Lists,
    background: Lists | None,
    *,
    rows: Sequence[int] | None,
    samples: int,
    seed: int,
) -> Explanation:
    """Explains the scores of documents, as described in `Ranker.explain`.

    Args:
      scorer: The scorer of prepared features, of which each document is scored alone.
      layer: The features.
      lists: The lists of the documents, with raw values.
      background: The lists of the background, or None for that of each document.
      rows: The rows of the source to explain, or None for all.
      samples: The least number of pairs of permutations per document.
      seed: Seed of the permutations.
    """
    if rows is not None:
        unknown = set(np.asarray(rows).tolist()) - set(lists.rows.tolist())
        if unknown or not len(rows):
            raise ValueError(f"`rows` must be rows of `X`, at least one, got {min(unknown, default='none')}.")
        lists = lists.take(np.unique(lists.query_of_document[np.isin(lists.rows, rows)]))
    chosen = np.flatnonzero(np.isin(lists.rows, lists.rows if rows is None else rows))
    compiled = compiled_scorer(scorer)

    def score(features: np.ndarray) -> np.ndarray:
        return compiled({"features": tf.constant(features)[tf.newaxis]})[0].numpy().astype(np.float64)

    features = _prepared(layer, lists)
    scores = _in_parts(score, features)
    groups = []
    if background is None:
        for query, start in enumerate(lists.starts[:-1]):
            others = start + representatives(scores[start : start + lists.lengths[query]], samples)
            groups.append((chosen[lists.query_of_document[chosen] == query], others))
    else:
        others = _prepared(layer, background)
        others = others[representatives(_in_parts(score, others), samples)]
        groups.append((chosen, len(features) + np.arange(len(others))))
        features, scores = np.concatenate([features, others]), np.concatenate([scores, _in_parts(score, others)])
    names = layer.feature_columns
    parts = [shapley_values(score, features, names, *group, samples=samples, seed=seed) for group in groups]
    means = [np.full(len(documents), scores[others].mean()) for documents, others in groups]
    shown = lists.table.take(pa.array(chosen))
    values = {column.name: shown[column.name].to_pylist() for column in layer.columns if not layer.stacked}
    if layer.stacked:
        matrix = lists.values(DENSE)[chosen]
        values = {column.name: matrix[:, place].tolist() for place, column in enumerate(layer.columns)}
    arrays = (np.concatenate(parts), scores[chosen], np.concatenate(means), lists.rows[chosen])
    return Explanation(tuple(places_by_name(names)), *arrays, values)


def _prepared(layer: TableFeatures, lists: Lists) -> np.ndarray:
    """Returns the prepared features of the documents, in the order of the lists."""
    batches = layer.batches(layer.transform(lists), _LISTS_AT_ONCE)
    return np.concatenate([tf.boolean_mask(inputs["features"], inputs["mask"]) for inputs, *_ in batches])


def _in_parts(score: Callable[[np.ndarray], np.ndarray], features: np.ndarray) -> np.ndarray:
    """Returns the scores of features, computed in parts to need little memory."""
    starts = range(0, len(features), _PAIRS_AT_ONCE)
    return np.concatenate([score(features[start : start + _PAIRS_AT_ONCE]) for start in starts])


def shapley_values(
    score: Callable[[np.ndarray], np.ndarray],
    features: np.ndarray,
    names: Sequence[str],
    documents: np.ndarray,
    background: np.ndarray,
    *,
    samples: int,
    seed: int,
) -> np.ndarray:
    """Returns the Shapley values of columns, with the documents of a background in place of absent columns.

    A permutation is drawn with its reverse (Mitchell et al., "Sampling Permutations for Shapley Value Estimation", JMLR
    2022): interactions of two columns then have no sampling error. The values of x against z are the negative ones of z
    against x, so each pair is computed once.

    Args:
      score: The scores [n] of features [n, num_features], of which each row is scored alone.
      features: [rows, num_features], prepared.
      names: The column of each feature.
      documents: The rows to explain.
      background: The rows of the background.
      samples: The least number of draws per document; each document of the background has as many as the others.
      seed: Seed of the permutations.

    Returns:
      float64 [documents, columns], columns in the order of `places_by_name`.

    Time O(documents * samples * columns) scores, memory O(documents * samples * columns).
    """
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
