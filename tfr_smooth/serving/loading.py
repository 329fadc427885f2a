"""Exports in Python: plain values in, ranked documents or items out. Only the SavedModel runs, no Keras model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import tensorflow as tf

from tfr_smooth import _arguments, _extras
from tfr_smooth.columns.kinds import Column, check_names, listed
from tfr_smooth.columns.list_context import in_parts
from tfr_smooth.data.reading import checks, sources
from tfr_smooth.data.roles import DENSE
from tfr_smooth.models import PADDING_SCORE
from tfr_smooth.serving import model_card, versions
from tfr_smooth.serving.plain_values import column_of, raw_of_array, raw_of_values, values_of

_SCORED = 2**12  # documents that `score` scores at once, unless a list is longer
_WARM_UP = (1, 100)  # documents of the lists that are ranked before `load` returns


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

    def __init__(self, path: Path, card: Mapping[str, Any]) -> None:
        self.path, self.card = path, card
        if isinstance(self, LoadedTextRanker) or any(f.get("kind") == "encoded" for f in card.get("features", ())):
            with _extras.needed("tensorflow-text", extra="text", by="An export with an encoder"):
                import tensorflow_text  # noqa: F401  # registers the operations of tokenizers
        self._model = tf.saved_model.load(os.fspath(path))

    def _call(self, signature: str, inputs: Mapping[str, Any]) -> Any:
        return self._model.signatures[signature](**{name: tf.constant(values) for name, values in inputs.items()})


class LoadedRanker(_Loaded):
    """The export of a `Ranker`, or of `export_ranker` with features that are numbers, vectors or text; see `load`."""

    def __init__(self, path: Path, card: Mapping[str, Any]) -> None:
        super().__init__(path, card)
        # A signature takes three times as long if names of columns are not names in Python.
        (self._rank,) = self._model.rank.concrete_functions
        self._columns = [column_of(feature) for feature in card["features"]]
        self._shapes = {feature["name"]: feature["shape"] for feature in card["features"]}
        self._of_list = {feature["name"] for feature in card["features"] if feature["of"] == "list"}
        inputs = card["signatures"]["rank"]["inputs"]
        self._mask = next(name for name, described in inputs.items() if described.startswith("bool"))
        # One input of all numbers, which may also be given as vectors.
        self._vectors: Column | None = None
        if inputs.keys() == {DENSE, self._mask} and inputs[DENSE].startswith("float32 [None, None, "):
            shape = [len(self._columns)] if len(self._columns) > 1 else self._shapes.get(DENSE, [1])
            self._vectors, self._shapes[DENSE] = column_of({"name": DENSE, "kind": "vector", "shape": shape}), shape
        for size in _WARM_UP:
            self.rank(documents=[dict.fromkeys(self._shapes.keys())] * size)

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
        rows, lengths = [document for documents in lists for document in documents], np.array([*map(len, lists)])
        if not rows:
            return _ranked(query, lists, np.zeros(0))
        of_rows: Any = [given for given, length in zip(queries, lengths, strict=True) for _ in range(length)]
        if self._vectors is not None and not isinstance(rows[0], Mapping):
            raw = {DENSE: raw_of_values(self._vectors, rows)}
        else:
            raw = {
                column.name: raw_of_values(column, values_of(column, of_rows if column.name in of_rows[0] else rows))
                for column in self._columns
            }
        return _ranked(query, lists, self._scores(raw, lengths))

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
        for name in self._of_list:
            sources.check_constant(lists, lists.source[name], f"column {name!r}", "different values in the query of")
        raw, rows = {column.name: raw_of_array(column, lists.source[column.name]) for column in columns}, lists.rows
        scores = np.zeros(len(rows), np.float32)
        for places, lengths in in_parts(lists, _SCORED, whole=True):
            of_part = {name: values[rows[places]] for name, values in raw.items()}
            scores[rows[places]] = self._scores(of_part, lengths)
        return scores

    def _scores(self, raw: Mapping[str, np.ndarray], lengths: np.ndarray) -> np.ndarray:
        """Returns the scores of rows, with the rows of each list together."""
        if self._vectors is not None and DENSE not in raw:
            raw = {DENSE: np.stack([raw[column.name] for column in self._columns], axis=-1)}
        mask = np.arange(lengths.max()) < lengths[:, np.newaxis]
        # Padding, which is masked, repeats any row.
        places = np.minimum((np.cumsum(lengths) - lengths)[:, np.newaxis] + np.arange(mask.shape[1]), mask.sum() - 1)
        inputs = {self._mask: tf.constant(mask)}
        for name, values in raw.items():
            taken = values[places[:, 0] if name in self._of_list else places]
            outer = 1 if name in self._of_list else 2
            inputs[name] = tf.constant(taken.reshape([*taken.shape[:outer], *self._shapes[name]]))
        takes_dict = isinstance(self._rank.structured_input_signature[0][0], Mapping)
        outputs = self._rank(inputs) if takes_dict else self._rank(inputs[DENSE], inputs[self._mask])
        return outputs["scores"].numpy()[mask]


class LoadedTextRanker(_Loaded):
    """The export of a `TextRanker`; see `load`."""

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
        lengths = np.array([*map(len, lists)], int)
        for name, values in (("query", queries), ("documents", [text for texts in lists for text in texts])):
            for value in values:
                if not isinstance(value, str):
                    raise ValueError(f"`{name}` must be text, got {checks.shown(value)}.")
            checks.as_array(f"`{name}`", values)  # refuses what UTF-8 does not have
        if not lengths.any():
            return _ranked(query, lists, np.zeros(0))
        padded = [[*texts, *[""] * (lengths.max() - len(texts))] for texts in lists]
        scores = self._call("serving_default", {"query": queries, "documents": padded})["scores"].numpy()
        return _ranked(query, lists, scores[np.arange(lengths.max()) < lengths[:, np.newaxis]])


class LoadedRecommender(_Loaded):
    """The export of a `Recommender`; see `load`."""

    def __init__(self, path: Path, card: Mapping[str, Any]) -> None:
        super().__init__(path, card)
        of_input = {"users": "users", "items": "histories"}
        self._types = {what: card["signatures"][name]["inputs"][name] for what, name in of_input.items()}
        warm_up: list[dict[str, Any]] = [{}, {"exclude": ()}, {"only": ()}]
        for filters in warm_up:
            self.recommend([None], **filters)
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
        signature = "users" if histories is None else "histories"
        if signature == "users":
            inputs = {"users": self._ids("users", users)}
        else:
            inputs = {"histories": self._lists("histories", histories)}
        if exclude is not None or only is not None:
            signature = f"{'excluding' if only is None else 'filtered'}_{signature}"
            for name, items in (("exclude", exclude), ("only", only))[: 1 if only is None else 2]:
                of_users = [] if items is None else items
                is_shared = not len(of_users) or isinstance(of_users[0], str) or not np.iterable(of_users[0])
                inputs[name] = self._lists(name, [of_users] if is_shared else of_users)
        answer = self._call(signature, inputs)
        items, scores = (answer[name].numpy()[:, :topn].tolist() for name in ("items", "scores"))
        return [
            [
                RecommendedItem(item.decode() if isinstance(item, bytes) else item, score)
                for item, score in zip(*of_user, strict=True)
                if score > PADDING_SCORE
            ]
            for of_user in zip(items, scores, strict=True)
        ]

    def _ids(self, argument: str, ids: Any) -> np.ndarray:
        """Returns ids in the type of the export; b"" or -1 if missing."""
        array = checks.as_array(f"`{argument}`", ids)
        is_text = self._types["users" if argument == "users" else "items"].startswith("string")
        try:
            if is_text and not pa.types.is_null(array.type):
                array = checks.id_text(checks.Where(f"`{argument}`"), array)
            array = array.cast(pa.large_binary() if is_text else pa.int64())
        except pa.ArrowInvalid as error:
            raise ValueError(f"`{argument}` must be ids that are integers: {error}.") from None
        return array.fill_null(b"" if is_text else -1).to_numpy(zero_copy_only=False)

    def _lists(self, argument: str, lists: Any) -> np.ndarray:
        """Returns lists of ids in the type of the export, padded by b"" or -1; at least one in each."""
        lengths = np.array([*map(len, lists)], int)
        ids = self._ids(argument, [item for items in lists for item in items])
        mask = np.arange(lengths.max(initial=1)) < lengths[:, np.newaxis]
        padded = np.full(mask.shape, b"" if ids.dtype == object else -1, ids.dtype)
        padded[mask] = ids
        return padded


def load(path: str | os.PathLike[str]) -> LoadedRanker | LoadedRecommender | LoadedTextRanker:
    """Loads an export for ranking in Python, such as in a web service, without Docker and without training code.

    The results are those of the estimator. The model card of the export tells which kind it is. Lists of one and of 100
    documents are ranked while loading, so that the first call is as fast as later ones. Threads may share the object.

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
    folder = versions.last(path)
    card = model_card.read(folder)
    signatures = card["signatures"]
    if "histories" in signatures:
        return LoadedRecommender(folder, card)
    if "scores" in signatures.get("rank", {"outputs": ()})["outputs"]:
        return LoadedRanker(folder, card)
    if signatures["serving_default"]["inputs"].keys() == {"query", "documents"}:
        return LoadedTextRanker(folder, card)
    expected = "an export whose signature 'rank' has the output 'scores'"
    raise ValueError(f"`path` must be {expected}, got the signatures {listed([*signatures])} in {folder}.")


def _of_queries(query: Any, documents: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    """Returns the queries and the documents of each; for one query, a list of one."""
    if not isinstance(query, (list, tuple)):
        return [query], [documents]
    if len(query) != len(documents):
        raise ValueError(f"`documents` must be a list for each of the {len(query)} queries, got {len(documents)}.")
    return query, documents


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
