"""Scores of the documents of data sets, and how much each column adds to them."""

from __future__ import annotations

import dataclasses
import itertools
import reprlib
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _compiled, _padded, data
from tfr_smooth.columns.features import TableFeatures
from tfr_smooth.data.lists import Lists
from tfr_smooth.evaluation.trec import ScoredQuery, document_names

_IDS = ("query_id", "doc_id")
_PAIRS_AT_ONCE, _LISTS_AT_ONCE = 2**12, 32  # not tuned: limits of memory
_LONGEST = 40  # letters of a value in tables
# One graph per model, as long as the model exists, so that calls do not trace it again.
_scorers: weakref.WeakKeyDictionary[tf.keras.Model, Callable[[Any], tf.Tensor]] = weakref.WeakKeyDictionary()


def score_queries(model: Callable[..., tf.Tensor], dataset: Iterable[Any]) -> Iterator[ScoredQuery]:
    """Scores a dataset, for `evaluation.trec_eval` or `evaluation.write_run`.

    Args:
      model: A Keras model of the dataset's inputs, or any function of them, that returns scores [batch, list] or
        [batch, list, 1], dense or ragged.
      dataset: Batches of (inputs, labels), (inputs, labels, weights) or inputs, dense or ragged, as the model is
        trained on. If the inputs are a dict, "query_id" and "doc_id" are the ids, as created by
        `data.Lists.batches(..., ids=True)`, which the model does not get. Without "query_id", the ids are numbers from
        0. Documents are real where "mask" in a dict of inputs is True, or, without a mask, where labels are >= 0.
        Without labels and mask, all documents are real. Missing labels are 0.

    Yields:
      A `ScoredQuery` for each list, in the order of the dataset, with its real documents in their order. The document
      names are the ids, or the positions if ids are missing or not unique.

    Raises:
      ValueError: If a batch has another structure, or the model returns scores of another shape.

    A Keras model is traced once, not in each call. Time: one forward pass. Memory: one batch.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> inputs = {"features": tf.ones([1, 2, 3]), "mask": tf.constant([[True, False]])}
      >>> ids = {"query_id": tf.constant(["q1"]), "doc_id": tf.constant([["d1", ""]])}
      >>> dataset = [({**inputs, **ids}, tf.constant([[1.0, -1.0]]))]
      >>> model = tfr_smooth.models.FeedForwardScorer(hidden=[4])
      >>> next(tfr_smooth.training.score_queries(model, dataset))[:3]
      ('q1', ['d1'], array([1.], dtype=float32))
    """
    score = compiled_scorer(model) if isinstance(model, tf.keras.Model) else model
    number = 0
    for element in dataset:
        inputs, labels, _ = tf.keras.utils.unpack_x_y_sample_weight(element)
        inputs = tf.nest.map_structure(_tensor, inputs)
        named = inputs if isinstance(inputs, dict) else {}
        if named:
            inputs = {name: values for name, values in inputs.items() if name not in _IDS}
        for query in _queries(named, labels, score(inputs), number):
            number += 1
            yield query


def score_rows(model: Callable[..., tf.Tensor], lists: data.Lists, *, batch_size: int = 128) -> np.ndarray:
    """Scores the documents of lists in the order of the rows that they were made from.

    Args:
      model: A Keras model or a function, as for `score_queries`.
      lists: The lists, such as from `data.from_table`.
      batch_size: Queries per batch, >= 1.

    Returns:
      float32 [documents], in the order of their rows in the table, arrays or files.

    Raises:
      ValueError: As in `score_queries`.

    Example:
      >>> import pandas as pd
      >>> import tfr_smooth
      >>> frame = pd.DataFrame({"qid": [7, 8, 7], "bm25": [0.5, 0.9, 0.1]})
      >>> lists = tfr_smooth.data.from_table(frame, query="qid", label=None, stack=True)
      >>> frame["score"] = tfr_smooth.training.score_rows(lambda inputs: 2 * inputs["features"], lists)
      >>> frame["score"].round(1).astype(str).tolist()
      ['1.0', '1.8', '0.2']
    """
    found = [query.scores for query in score_queries(model, lists.batches(batch_size))]
    return np.concatenate(found)[np.argsort(lists.rows)]


def _tensor(values: Any) -> Any:
    return values if isinstance(values, (tf.RaggedTensor, tf.SparseTensor)) else tf.convert_to_tensor(values)


def _queries(inputs: dict[str, Any], labels: Any, scores: Any, number: int) -> Iterator[ScoredQuery]:
    """Yields the queries of a batch, whose first query has the given number."""
    by_query = _lists("scores of `model`", scores)
    by_label = _lists("labels of `dataset`", tf.zeros_like(scores) if labels is None else labels)
    masks = [each >= 0 for each in by_label]
    is_ragged = isinstance(labels, tf.RaggedTensor)  # Ragged labels have no padding, but the scores may.
    if "mask" in inputs and not is_ragged:
        masks = [each.astype(bool) for each in _lists("`mask`", inputs["mask"])]
    for found in (by_label, masks):
        lengths = [(len(ours), len(each)) for ours, each in itertools.zip_longest(by_query, found, fillvalue=())]
        if any(ours != each and not (is_ragged and ours > each) for ours, each in lengths):
            expected = f"{len(found)} lists of up to {max(map(len, found), default=0)}"
            got = f"shape {tuple(scores.shape)}"
            raise ValueError(f"`model` must return a score for each document, {expected}, got {got}.")
    doc_ids = _lists("`doc_id`", inputs["doc_id"]) if "doc_id" in inputs else None
    query_ids = _texts(inputs["query_id"].numpy()) if "query_id" in inputs else None
    for row, (mask, its_labels) in enumerate(zip(masks, by_label, strict=True)):
        names = [""] * int(mask.sum()) if doc_ids is None else _texts(doc_ids[row][: len(mask)][mask])
        query_id = str(number + row) if query_ids is None else query_ids[row]
        yield ScoredQuery(query_id, document_names(names), its_labels[mask], by_query[row][: len(mask)][mask])


def _texts(ids: Any) -> list[str]:
    """Returns ids, which may be numbers, as strings."""
    return [name.decode() if isinstance(name, bytes) else str(name) for name in np.ravel(ids).tolist()]


def _lists(what: str, values: Any) -> list[np.ndarray]:
    """Returns an array for each list of a batch."""
    values = _padded.squeezed(values if isinstance(values, tf.RaggedTensor) else tf.convert_to_tensor(values))
    if values.shape.rank != 2:
        raise ValueError(f"The {what} must be [batch, list], got shape {tuple(values.shape)}.")
    return list(values.numpy())


def compiled_scorer(model: tf.keras.Model) -> Callable[[Any], tf.Tensor]:
    """Returns the function from inputs to scores, traced once per model."""
    if model not in _scorers:
        proxy = weakref.proxy(model)  # A strong reference to the model would keep its entry alive.
        _scorers[model] = _compiled.traced(lambda inputs: proxy(inputs, training=False), reduce_retracing=True)
    return _scorers[model]


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
        width = max(len(_arguments.printable(name)) for name in bars)
        return "\n".join([title, *(f"{_arguments.printable(name):<{width}}  {bar:+.4f}" for name, bar in bars.items())])


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
