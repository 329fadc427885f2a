"""Exports in Python: plain values in, ranked documents or items out. Only the SavedModel runs, no Keras model."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth._estimator import check_process
from tfr_smooth.columns.kinds import KINDS, Column, listed, raw_array
from tfr_smooth.data.reading import checks, ids
from tfr_smooth.data.roles import DENSE
from tfr_smooth.models import PADDING_SCORE
from tfr_smooth.serving import versions

# Not tuned: results do not depend on them.
_USERS = 32  # at once, each of whom has a score for each item of the catalog in memory
_WARM_UP = 100  # documents of the list that is ranked before `load` returns


# What a card that does not describe its model raises.
_DAMAGES = (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, tf.errors.OpError)


class RankedDocument(NamedTuple):
    """A document of a ranking.

    Args:
      document: The document, as it was given.
      score: Its score.
      place: Its index in the given documents.
    """

    document: Any
    score: float
    place: int


class RecommendedItem(NamedTuple):
    """An item of a recommendation.

    Args:
      item: The id of the item.
      score: Its score.
    """

    item: Any
    score: float


class _Loaded:
    """An export in memory. Its methods may be called by several threads at once.

    Args:
      path: The directory of the version.
      card: The model card.
    """

    _takes_texts = False  # by a tokenizer

    def __init__(self, path: Path, card: Mapping[str, Any]) -> None:
        self.path, self.card = path, card
        if self._takes_texts or any(feature.get("kind") == "encoded" for feature in card.get("features", ())):
            with _arguments.needed("tensorflow-text", extra="text", by="An export with an encoder"):
                import tensorflow_text  # noqa: F401  # registers the operations of tokenizers
        self._model = tf.saved_model.load(os.fspath(path))

    def _call(self, signature: str, inputs: Mapping[str, Any]) -> Any:
        check_process()
        return self._model.signatures[signature](**{name: tf.constant(values) for name, values in inputs.items()})


class LoadedRanker(_Loaded):
    """The export of a `Ranker`, or of `export_ranker` with features that are numbers, vectors or text; see `load`."""

    def __init__(self, path: Path, card: Mapping[str, Any]) -> None:
        super().__init__(path, card)
        # A signature takes three times as long if names of columns are not names in Python.
        (self._rank,) = self._model.rank.concrete_functions
        self._columns = [_column_of(feature) for feature in card["features"]]
        self._shapes = {feature["name"]: feature["shape"] for feature in card["features"]}
        self._of_list = {feature["name"] for feature in card["features"] if feature["of"] == "list"}
        inputs = card["signatures"]["rank"]["inputs"]
        self._mask = next(name for name, described in inputs.items() if described.startswith("bool"))
        # One input of all numbers, which may also be given as vectors.
        self._vectors: Column | None = None
        if inputs.keys() == {DENSE, self._mask} and inputs[DENSE].startswith("float32 [None, None, "):
            shape = [len(self._columns)] if len(self._columns) > 1 else self._shapes.get(DENSE, [1])
            self._vectors, self._shapes[DENSE] = _column_of({"name": DENSE, "kind": "vector", "shape": shape}), shape
        self.rank(documents=[dict.fromkeys(self._shapes)] * _WARM_UP)

    def rank(self, query: Any = None, *, documents: Sequence[Any]) -> list[RankedDocument]:
        """Ranks the documents of a query.

        Args:
          query: The columns that have one value for all documents, as a dict; None for none.
          documents: The other columns of each document, as a dict with None for missing values; further keys are
            ignored. For a ranker of a matrix, also lists of numbers. Numbers, text, ids, booleans, lists, `datetime`
            objects and ISO 8601 text are taken as by `Ranker.predict`.

        Returns:
          The documents, best first; ties keep their order.

        Raises:
          ValueError: If a value is not one of its column. The message names the column and the row.
        """
        check_process()
        documents, query = _listed(documents), {} if query is None else query
        if not isinstance(query, Mapping):
            raise ValueError(f"`query` must be a dict of columns, got {checks.shown(query)}.")
        if not documents:
            return []
        if self._vectors is not None and not isinstance(documents[0], Mapping):
            raw = {DENSE: _raw_of_values(self._vectors, documents)}
        else:
            rows = [{**row, **query} if isinstance(row, Mapping) else row for row in documents]
            raw = {column.name: _raw_of_values(column, _values_of(column, rows)) for column in self._columns}
            if self._vectors is not None and DENSE not in raw:
                raw = {DENSE: np.stack([*raw.values()], axis=-1)}
        inputs = {self._mask: tf.ones([1, len(documents)], tf.bool)}
        for name, values in raw.items():
            outer = [1, len(documents)]
            if name in self._of_list:
                outer, values = [1], _of_query(name, values)
            inputs[name] = tf.constant(values.reshape([*outer, *self._shapes[name]]))
        takes_dict = isinstance(self._rank.structured_input_signature[0][0], Mapping)
        outputs = self._rank(inputs) if takes_dict else self._rank(inputs[DENSE], inputs[self._mask])
        return _ranked(documents, outputs["scores"].numpy()[0])


class LoadedTextRanker(_Loaded):
    """The export of a `TextRanker`; see `load`."""

    _takes_texts = True

    def __init__(self, path: Path, card: Mapping[str, Any]) -> None:
        super().__init__(path, card)
        self.rank("", documents=[""])

    def rank(self, query: str, *, documents: Sequence[str]) -> list[RankedDocument]:
        """Ranks the documents of a query.

        Args:
          query: The text of the query.
          documents: The texts of the documents.

        Returns:
          The documents, best first; ties keep their order.

        Raises:
          ValueError: If the query or a document is not text.
        """
        documents = _listed(documents)
        for name, values in (("query", [query]), ("documents", documents)):
            for value in values:
                if not isinstance(value, str):
                    raise ValueError(f"`{name}` must be text, got {checks.shown(value)}.")
            checks.as_array(f"`{name}`", values)  # refuses what UTF-8 does not have
        if not documents:
            return []
        scores = self._call("serving_default", {"query": [query], "documents": [documents]})["scores"]
        return _ranked(documents, scores.numpy()[0])


class LoadedRecommender(_Loaded):
    """The export of a `Recommender`; see `load`."""

    def __init__(self, path: Path, card: Mapping[str, Any]) -> None:
        super().__init__(path, card)
        of_input = {"users": "users", "items": "histories"}
        self._types = {what: card["signatures"][name]["inputs"][name] for what, name in of_input.items()}
        warm_up: list[dict[str, Any]] = [{}, {"exclude": ()}, {"only": ()}]
        for filters in warm_up:
            self.recommend(["-1"], **filters)
            self.recommend(histories=[[]], **filters)

    def recommend(
        self, users: Any = None, *, histories: Any = None, topn: int = 10, exclude: Any = None, only: Any = None
    ) -> list[list[RecommendedItem]]:
        """Returns the best items of users.

        Args:
          users: Ids of users. Unknown users get what an empty history gets.
          histories: Instead of `users`, the ids of the items of each user, a list of lists, the latest item last.
            Unknown items are ignored.
          topn: Items per user, >= 1; at most those of the export.
          exclude: Ids of items to exclude: one list for all users, or one per user. None: no further ones.
          only: Ids of the items to choose from, in the same form; an empty list is no item. None: all items.

        Returns:
          For each user, the items, best first; fewer than `topn` if there are fewer to choose from.

        Raises:
          ValueError: If not one of `users` and `histories` is given, or an argument is not of ids.
        """
        _arguments.integer("topn", topn, least=1)
        if (users is None) == (histories is None):
            got = "none" if users is None else "both"
            raise ValueError(f"One of `users` and `histories` must be given, got {got}.")
        signature, lists = "users", {}  # of each user, or one list for all
        if histories is not None:
            asked = [ids.listed("`histories`", items) for items in ids.listed("`histories`", histories)]
            signature, lists = "histories", {"histories": asked}
        user_ids = None if users is None else self._ids("users", users)
        count = len(asked if user_ids is None else user_ids)
        if exclude is not None or only is not None:
            signature = f"{'excluding' if only is None else 'filtered'}_{signature}"
            lists["exclude"] = ids.id_lists("`exclude`", () if exclude is None else exclude, count)
        if only is not None:
            lists["only"] = ids.id_lists("`only`", only, count)
        arrays = {}
        for name, items in lists.items():
            lengths = np.array([*map(len, items)], int)
            arrays[name] = np.split(self._ids(name, [*itertools.chain(*items)]), np.cumsum(lengths)[:-1])
        ranked: list[list[RecommendedItem]] = []
        for first in range(0, count, _USERS):
            some = slice(first, first + _USERS)
            inputs = {} if user_ids is None else {"users": user_ids[some]}
            for name, of_users in arrays.items():
                inputs[name] = _padded(of_users[some] if len(of_users) == count else of_users)
            answer = self._call(signature, inputs)
            for of_user in zip(
                *(answer[output].numpy()[:, :topn].tolist() for output in ("items", "scores")), strict=True
            ):
                pairs = [pair for pair in zip(*of_user, strict=True) if pair[1] > PADDING_SCORE]
                ranked.append([RecommendedItem(_plain(item), score) for item, score in pairs])
        return ranked

    def _ids(self, argument: str, values: Any) -> np.ndarray:
        """Returns ids in the type of the export."""
        is_text = self._types["users" if argument == "users" else "items"].startswith("string")
        return ids.read_ids(f"`{argument}`", values, is_text=is_text, rows=argument == "users")


def load(path: str | os.PathLike[str]) -> LoadedRanker | LoadedRecommender | LoadedTextRanker:
    """Loads an export for ranking in Python, such as in a web service, without Docker and without training code.

    The results are those of the estimator. The model card of the export tells which kind it is. A list is ranked while
    loading, so that the first call is as fast as later ones. Threads may share the object.

    Args:
      path: The directory of the versions, of which the last one is loaded, or that of a version.

    Returns:
      An object with the method `rank` for the export of a `Ranker`, of a `TextRanker` or of `export_ranker`, and the
      method `recommend` for that of a `Recommender`. Its attribute `card` is the model card, and `path` the directory
      of the version.

    Raises:
      ValueError: If there is no export with a model card, or its inputs are not numbers, vectors, text and dates.
      ImportError: If the model has an encoder of texts and tensorflow-text is not installed; the extra
        `tfr_smooth[text]` includes it.

    The conversion of the values of 100 documents of 20 columns takes about 1 ms of the processor.

    Example:
      >>> import tempfile
      >>> from tfr_smooth import models, serving
      >>> path = tempfile.mkdtemp()
      >>> model = models.FeedForwardScorer(hidden=[4])
      >>> version = serving.export_ranker(model, path, feature_names=["price", "rating"])
      >>> ranker = serving.load(path)
      >>> ranking = ranker.rank(documents=[{"price": 2, "rating": 4.5}, {"price": 3.5, "rating": 4}])
      >>> sorted(ranked.document["price"] for ranked in ranking)
      [2, 3.5]
    """
    check_process()
    folder = versions.last(path)
    card = versions.read_card(folder)
    signatures = card["signatures"]
    kind: type[LoadedRanker | LoadedRecommender | LoadedTextRanker]
    if "histories" in signatures:
        kind = LoadedRecommender
    elif "scores" in signatures.get("rank", {"outputs": ()})["outputs"]:
        kind = LoadedRanker
    elif signatures["serving_default"]["inputs"].keys() == {"query", "documents"}:
        kind = LoadedTextRanker
    else:
        expected = "an export whose signature 'rank' has the output 'scores'"
        raise ValueError(f"`path` must be {expected}, got the signatures {listed([*signatures])} in {folder}.")
    try:
        return kind(folder, card)
    except _DAMAGES as error:
        raise versions.damaged(folder, error if isinstance(error, ValueError) else repr(error)) from error


def _column_of(feature: Mapping[str, Any]) -> Column:
    """Returns a column that checks and converts the values of a feature; it has learned nothing else.

    Args:
      feature: The entry of the model card. Those of `export_ranker` have no kind.
    """
    shape, kind = feature["shape"], feature.get("kind")
    if kind is None and feature["type"] == "float32" and None not in shape:
        kind = "number" if math.prod(shape) == 1 else "vector"
    elif kind is None and feature["type"] == "string" and shape == []:
        kind = "category"
    if kind is None:
        expected = "float32 or strings to load it in Python"
        raise ValueError(f"column {feature['name']!r} must be {expected}, got {feature['type']} {shape}.")
    column = object.__new__(KINDS[kind])
    length = {"length": math.prod(shape)} if kind == "vector" else {}
    option, trained = feature.get("option"), feature.get("trained", "")
    vars(column).update({"name": feature["name"], "type": trained, "separator": option, "format": option, **length})
    return column


def _values_of(column: Column, rows: Sequence[Any]) -> list[Any]:
    """Returns the values of a column of documents, or of their queries."""
    name = column.name
    try:
        return [row[name] for row in rows]
    except (KeyError, TypeError, IndexError):
        place = next(place for place, row in enumerate(rows) if not isinstance(row, Mapping) or name not in row)
        expected = f"must be in the query or in each document ({column.contains}; None if missing)"
        got = checks.shown(rows[place])
        raise ValueError(f"column {name!r} {expected}, got {got} in row {place}.") from None


def _raw_of_values(column: Column, values: Sequence[Any]) -> np.ndarray:
    """Returns the raw values of a column of Python values."""
    where = checks.Where(f"column {column.name!r}")
    try:
        array = checks.as_array(where.what, values)
    except ValueError:
        if len(values) == 1:
            raise
        parts = []  # Values of several types are converted one by one.
        for row, value in enumerate(values):
            try:
                parts.append(_raw_of_values(column, [value]))
            except ValueError:
                checks.refuse(where, column.contains, value, row)
        return np.concatenate(parts)
    return raw_array(column, checks.feature(where, array))


def _of_query(name: str, values: np.ndarray) -> np.ndarray:
    """Returns the value of a query, which all of its documents must have."""
    first = values[:1]
    differ = (values != first) & ((values == values) | (first == first))  # not both missing
    if len(varies := np.flatnonzero(differ.any(axis=tuple(range(1, differ.ndim))))):
        raise ValueError(f"column {name!r} must be the same in all documents, got another value in row {varies[0]}.")
    return first


def _listed(values: Any) -> list[Any]:
    """Returns documents as a list."""
    if isinstance(values, (str, bytes, Mapping)) or hasattr(values, "columns") or not np.iterable(values):
        raise ValueError(f"`documents` must be a list, got {checks.shown(values)}.")
    return list(values)


def _plain(item: Any) -> Any:
    return item.decode() if isinstance(item, bytes) else item


def _padded(lists: Sequence[np.ndarray]) -> np.ndarray:
    """Returns lists of ids as an array, padded by "" or -1; at least one in each."""
    lengths = np.array([*map(len, lists)])
    mask = np.arange(lengths.max(initial=1)) < lengths[:, np.newaxis]
    padded = np.full(mask.shape, "" if lists[0].dtype == object else -1, lists[0].dtype)
    padded[mask] = np.concatenate(lists)
    return padded


def _ranked(documents: Sequence[Any], scores: np.ndarray) -> list[RankedDocument]:
    """Returns the documents, best first."""
    order = np.argsort(-scores, kind="stable")
    ranked = zip(order.tolist(), scores[order].tolist(), strict=True)
    return [RankedDocument(documents[place], score, place) for place, score in ranked]
