"""Exports in Python: plain values in, ranked documents or items out. Only the SavedModel runs, no Keras model."""

from __future__ import annotations

import itertools
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth._estimator import check_process
from tfr_smooth.columns.kinds import KINDS, Column, check_names, listed, raw_array
from tfr_smooth.columns.list_context import similar_lists
from tfr_smooth.data.column_values import varying
from tfr_smooth.data.reading import checks, ids, sources
from tfr_smooth.data.roles import DENSE
from tfr_smooth.models import PADDING_SCORE
from tfr_smooth.serving import versions

# Not tuned: results do not depend on them.
_SCORED, _TEXTS = 2**12, 2**7  # documents, and texts, that are scored at once, with padding, unless a list is longer
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
        self.path, self.card = Path(os.path.abspath(path)), card
        if self._takes_texts or any(feature.get("kind") == "encoded" for feature in card.get("features", ())):
            with _arguments.needed("tensorflow-text", extra="text", by="An export with an encoder"):
                import tensorflow_text  # noqa: F401  # registers the operations of tokenizers
        self._model = tf.saved_model.load(os.fspath(path))

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns how to pickle it: by the path, from which a process loads it once."""
        return load_once, (os.fspath(self.path),)

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
        shapes = {name: described.partition(" ")[2] for name, described in inputs.items() if name != self._mask}
        outer = {"list": [None], "document": [None, None]}
        given = {feature["name"]: str([*outer[feature["of"]], *feature["shape"]]) for feature in card["features"]}
        if shapes == {DENSE: f"[None, None, {len(given)}]"} and set(given.values()) == {"[None, None]"}:
            given = shapes  # one input of all columns
        if given != shapes:  # before any is made: a wrong shape may need more memory than there is
            raise ValueError("its features are not the inputs of the model")
        # One input of all numbers, which may also be given as vectors.
        self._vectors: Column | None = None
        if shapes.keys() == {DENSE} and inputs[DENSE].startswith("float32 [None, None, "):
            shape = [len(self._columns)] if len(self._columns) > 1 else self._shapes.get(DENSE, [1])
            self._vectors, self._shapes[DENSE] = _column_of({"name": DENSE, "kind": "vector", "shape": shape}), shape
        self.rank(documents=[dict.fromkeys(self._shapes)] * _WARM_UP)

    def rank(self, query: Any = None, *, documents: Sequence[Any]) -> list[Any]:
        """Ranks the documents of a query.

        Args:
          query: The columns that have one value for all documents, as a dict; None for none. For several queries at
            once, a list of dicts.
          documents: The other columns of each document, as a dict with None for missing values; further keys are
            ignored. For a ranker of a matrix, also lists of numbers. For several queries, a list of such lists.
            Numbers, text, ids, booleans, lists, `datetime` objects and ISO 8601 text are taken as by `Ranker.predict`.

        Returns:
          The documents as `RankedDocument`, best first; ties keep their order. For several queries, a list of such
          lists.

        Raises:
          ValueError: If a value is not one of its column. The message names the column and the row.
        """
        queries, lists = _of_queries({} if query is None else query, documents)
        for given in queries:
            if not isinstance(given, Mapping):
                raise ValueError(f"`query` must be a dict of columns, or a list of dicts, got {checks.shown(given)}.")
        rows, lengths = [*itertools.chain(*lists)], np.array([*map(len, lists)], int)
        if not rows:
            return _ranked(query, lists, np.zeros(0))
        if self._vectors is not None and not isinstance(rows[0], Mapping):
            raw = {DENSE: _raw_of_values(self._vectors, rows)}
        else:
            of_rows = itertools.chain(*map(itertools.repeat, queries, lengths.tolist()))
            rows = [{**row, **of} if isinstance(row, Mapping) else row for row, of in zip(rows, of_rows, strict=True)]
            raw = {column.name: _raw_of_values(column, _values_of(column, rows)) for column in self._columns}
        return _ranked(query, lists, self._scores(raw, lengths, np.arange(len(rows))))

    def score(self, table: Any, *, qid: Any = None, group: Any = None) -> np.ndarray:
        """Scores the rows of a table.

        Args:
          table: A table of pandas, Polars, PyArrow or DuckDB, or a dict of columns; for a ranker of a matrix, also
            numbers [rows, columns].
          qid: The query of each row. None: all rows are one list.
          group: Instead of `qid`, the number of rows of each query.

        Returns:
          float32 [rows], higher is better.

        Raises:
          ValueError: If a column is missing, has a value of another kind, or varies within a query although the ranker
            knows it as one of queries. The message names the column and the row.
        """
        given, columns = sources.as_table(table), self._columns
        if self._vectors is not None and checks.is_dense(given):
            columns = [self._vectors]
        check_names(given.column_names, columns)
        names = [column.name for column in columns]
        lists = sources.read_documents(given, {"qid": qid, "group": group}, needs=(), features=names)
        scores, rows = np.zeros(lists.documents, np.float32), lists.rows
        raw = {column.name: raw_array(column, lists.source[column.name])[rows] for column in columns}
        scores[rows] = self._scores(raw, lists.lengths, rows)
        return scores

    def _scores(self, raw: Mapping[str, np.ndarray], lengths: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Returns the scores of documents, those of each list together, given the row of each for messages."""
        check_process()
        for name in self._of_list & raw.keys():
            if len(varies := varying(raw[name], lengths)):
                got = f"different values in the query of row {rows[varies[0]]}"
                raise ValueError(f"column {name!r} must be the same in all rows of a query, got {got}.")
        if self._vectors is not None and DENSE not in raw:
            raw = {DENSE: np.stack([raw[column.name] for column in self._columns], axis=-1)}
        scores = np.zeros(len(rows), np.float32)
        for _, places, mask in _parts(lengths, _SCORED):
            inputs = {self._mask: tf.constant(mask)}
            for name, values in raw.items():
                taken = values[places[:, 0] if name in self._of_list else places]
                outer = 1 if name in self._of_list else 2
                inputs[name] = tf.constant(taken.reshape([*taken.shape[:outer], *self._shapes[name]]))
            takes_dict = isinstance(self._rank.structured_input_signature[0][0], Mapping)
            outputs = self._rank(inputs) if takes_dict else self._rank(inputs[DENSE], inputs[self._mask])
            scores[places[mask]] = outputs["scores"].numpy()[mask]
        return scores


class LoadedTextRanker(_Loaded):
    """The export of a `TextRanker`; see `load`."""

    _takes_texts = True

    def __init__(self, path: Path, card: Mapping[str, Any]) -> None:
        super().__init__(path, card)
        self.rank("", documents=[""])

    def rank(self, query: Any, *, documents: Sequence[Any]) -> list[Any]:
        """Ranks the documents of a query.

        Args:
          query: The text of the query. For several queries at once, a list of texts.
          documents: The texts of the documents. For several queries, a list of such lists.

        Returns:
          The documents as `RankedDocument`, best first; ties keep their order. For several queries, a list of such
          lists.

        Raises:
          ValueError: If a query or document is not text.
        """
        queries, lists = _of_queries(query, documents)
        texts, lengths = [*itertools.chain(*lists)], np.array([*map(len, lists)], int)
        for name, values in (("query", queries), ("documents", texts)):
            for value in values:
                if not isinstance(value, str):
                    raise ValueError(f"`{name}` must be text, got {checks.shown(value)}.")
            checks.as_array(f"`{name}`", values)  # refuses what UTF-8 does not have
        scores, arrays = np.zeros(len(texts), np.float32), [np.array(each, object) for each in (queries, texts)]
        for chosen, places, mask in _parts(lengths, _TEXTS):
            inputs = {"query": arrays[0][chosen], "documents": arrays[1][places]}
            scores[places[mask]] = self._call("serving_default", inputs)["scores"].numpy()[mask]
        return _ranked(query, lists, scores)

    def score(self, table: Any, *, query: str = "query", text: str = "text") -> np.ndarray:
        """Scores the rows of a table.

        Args:
          table: A table of pandas, Polars, PyArrow or DuckDB, or a dict of columns.
          query: The column of the texts of the queries.
          text: The column of the texts of the documents.

        Returns:
          float32 [rows], higher is better.

        Raises:
          ValueError: If a column is missing, or a value is not text.
        """
        given, columns = sources.as_table(table), {"query": query, "text": text}
        rows: dict[str, list[int]] = {}
        queries, texts = (
            given[_arguments.choice(argument, name, given.column_names)].to_pylist()
            for argument, name in columns.items()
        )
        for row, value in enumerate(queries):
            rows.setdefault(value, []).append(row)
        scores = np.zeros(len(texts), np.float32)
        rankings = self.rank([*rows], documents=[[texts[row] for row in of_query] for of_query in rows.values()])
        for of_query, ranking in zip(rows.values(), rankings, strict=True):
            scores[[of_query[ranked.place] for ranked in ranking]] = [ranked.score for ranked in ranking]
        return scores


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
            best = (answer[output].numpy()[:, :topn].tolist() for output in ("items", "scores"))
            for pairs in map(zip, *best):
                ranked.append([RecommendedItem(_plain(item), score) for item, score in pairs if score > PADDING_SCORE])
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


_objects: dict[str, Any] = {}
_lock = threading.Lock()


def once(key: str, make: Callable[[], Any]) -> Any:
    """Returns what `make` returned in this process for the key."""
    with _lock:
        if key not in _objects:
            _objects[key] = make()
        return _objects[key]


def load_once(path: str) -> Any:
    """Returns the export of a version, loaded once per process, and again if it was written again."""
    written = os.stat(os.path.join(path, "saved_model.pb")).st_mtime_ns
    return once(f"{path} {written}", lambda: load(path))


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


def _listed(values: Any) -> list[Any]:
    """Returns documents as a list."""
    if isinstance(values, (str, bytes, Mapping)) or hasattr(values, "columns") or not np.iterable(values):
        raise ValueError(f"`documents` must be a list, or a list for each query, got {checks.shown(values)}.")
    return list(values)


def _plain(item: Any) -> Any:
    return item.decode() if isinstance(item, bytes) else item


def _of_queries(query: Any, documents: Any) -> tuple[Sequence[Any], list[list[Any]]]:
    """Returns the queries and the documents of each; for one query, a list of one."""
    documents = _listed(documents)
    if not isinstance(query, (list, tuple)):
        return [query], [documents]
    if len(query) != len(documents):
        raise ValueError(f"`documents` must be a list for each of the {len(query)} queries, got {len(documents)}.")
    return query, [_listed(of_query) for of_query in documents]


def _parts(lengths: np.ndarray, most: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yields parts of lists of similar lengths: their places, those of their documents [lists, longest], the mask."""
    starts, known = np.cumsum(lengths) - lengths, np.flatnonzero(lengths)
    for part in similar_lists(lengths[known], most):
        chosen = known[part]
        mask = np.arange(lengths[chosen].max()) < lengths[chosen, np.newaxis]
        # Padding, which is masked, repeats any document.
        yield chosen, np.minimum(starts[chosen, np.newaxis] + np.arange(mask.shape[1]), lengths.sum() - 1), mask


def _padded(lists: Sequence[np.ndarray]) -> np.ndarray:
    """Returns lists of ids as an array, padded by "" or -1; at least one in each."""
    is_text, longest = lists[0].dtype.kind == "O", max(1, *map(len, lists))
    # Keras takes no other name of `object`.
    dtype, value = (object, "") if is_text else (lists[0].dtype, -1)
    return tf.keras.utils.pad_sequences(lists, longest, dtype, padding="post", value=value)


def _ranked(query: Any, lists: Sequence[Any], scores: np.ndarray) -> Any:
    """Returns the documents of each query, best first, given the scores of all; for one query, its documents."""
    rankings, first = [], 0
    for documents in lists:
        of_list = scores[first : first + len(documents)]
        order = np.argsort(-of_list, kind="stable")
        ranked = zip(order.tolist(), of_list[order].tolist(), strict=True)
        rankings.append([RankedDocument(documents[place], score, place) for place, score in ranked])
        first += len(documents)
    return rankings if isinstance(query, (list, tuple)) else rankings[0]
