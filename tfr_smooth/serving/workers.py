"""Models on the workers of Spark, Dask and Ray: partitions of whole queries, and one model per process."""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tfr_smooth import _arguments
from tfr_smooth._estimator import Estimator
from tfr_smooth.data.reading import checks
from tfr_smooth.serving import versions
from tfr_smooth.serving.loading import LoadedRanker, LoadedRecommender, LoadedTextRanker, load_once, once

_ENGINES = ("pyspark", "dask", "ray")
_ADDED = ("item", "score", "rank")  # columns of recommendations


class _OnPartitions:
    """A function of partitions, which are tables of pandas or Arrow, or iterators over parts of them, as of Spark."""

    key: str | None  # the column whose equal values are in one partition

    def __call__(self, part: Any) -> Any:
        """Returns the result of a partition in its form."""
        if isinstance(part, Iterator):
            return self._of_parts(part)
        is_pandas = hasattr(part, "iloc")
        table = part.rename(columns=str) if is_pandas else checks.as_arrow(part)
        kept, rows, added = self._result(table, [*table.columns] if is_pandas else table.column_names)
        taken = table[[*kept]] if is_pandas else table.select([*kept])
        taken = taken if rows is None else taken.take(rows)
        if is_pandas:
            return taken.assign(**{name: values.to_pandas().array for name, values in added.items()})
        for name, values in added.items():
            taken = taken.append_column(name, values)
        return taken

    def _of_parts(self, parts: Iterator[Any]) -> Iterator[Any]:
        if not (batches := list(parts)):
            return
        if isinstance(batches[0], pa.RecordBatch):
            yield from self(pa.Table.from_batches(batches)).to_batches()
        else:
            import pandas as pd

            yield self(pd.concat(batches))

    def _result(self, part: Any, names: list[str]) -> tuple[Sequence[str], np.ndarray | None, dict[str, pa.Array]]:
        """Returns the columns of the partition to keep, its rows in the result, None for all, and further columns."""
        raise NotImplementedError


class PartitionScorer(_OnPartitions):
    """Adds the scores of a model to partitions of whole queries, on the workers of Spark, Dask and Ray.

    It is pickled, with the path of an export or with the content of an estimator, and loads the model once per process.
    See `map_partitions`.

    Args:
      model: The directory of an export of a `Ranker` or a `TextRanker`, which all workers can read, of which the last
        version is used; or what `serving.load` returns for it; or a fitted `Ranker` or `TextRanker`.
      query: The column of queries; for the export of a `TextRanker`, of their texts. None for a fitted ranker, which
        knows its columns.
      text: The column of the texts of the documents, for the export of a `TextRanker`.
      columns: The columns to keep. None: all.
      name: The name of the column of scores, a float32.

    Raises:
      ValueError: If an argument is of another type, or a fitted `Ranker` was not trained on a column of queries. From a
        call, also if a column is missing or has values of another kind, as from `Ranker.predict`.

    Memory: the rows of a partition, twice, and the model, per process.

    Example:
      >>> import tempfile
      >>> import pandas as pd
      >>> from tfr_smooth import models, serving
      >>> path = tempfile.mkdtemp()
      >>> _ = serving.export_ranker(models.FeedForwardScorer(hidden=[4]), path, feature_names=["price", "rating"])
      >>> scorer = serving.PartitionScorer(path, query="query", columns=["document"])
      >>> part = pd.DataFrame({"query": [1, 1], "document": ["a", "b"], "price": [2.0, 3.5], "rating": [4.5, 4.0]})
      >>> list(scorer(part).columns)
      ['document', 'score']
    """

    def __init__(
        self,
        model: Any,
        *,
        query: str | None = None,
        text: str = "text",
        columns: Sequence[str] | None = None,
        name: str = "score",
    ) -> None:
        kinds = (LoadedRanker, LoadedTextRanker, Estimator)
        # Not by `getattr`: the error of a ranker that is not fitted is an `AttributeError`, too.
        own: str | None = model.query_column if hasattr(type(model), "query_column") else None
        if not isinstance(model, (str, os.PathLike, *kinds)) or hasattr(model, "recommend"):
            expected = "the directory of an export, what `load` returns for it, a `Ranker` or a `TextRanker`"
            raise ValueError(f"`model` must be {expected}, got {type(model).__name__}.")
        if not isinstance(model, Estimator):
            path = model.path if isinstance(model, (LoadedRanker, LoadedTextRanker)) else model
            self._source: Any = os.path.abspath(versions.last(path))
        elif own is None:
            raise ValueError("`model` must be fitted on a table with `query`, or exported, got one without.")
        else:
            self._source = pickle.dumps(model)
        if query is None if own is None else query not in (None, own):
            expected = "a column of queries for an export" if own is None else f"None or {own!r}, that of the training"
            raise ValueError(f"`query` must be {expected}, got {query!r}.")
        if isinstance(columns, str):
            raise ValueError(f"`columns` must be names of columns, got the text {columns!r}.")
        self.key, self._text, self._columns, self._name = str(query or own), text, columns, str(name)

    def _model(self) -> Any:
        if isinstance(self._source, str):
            return load_once(self._source)
        return once(hashlib.sha256(self._source).hexdigest(), functools.partial(pickle.loads, self._source))

    def _result(self, part: Any, names: list[str]) -> tuple[Sequence[str], None, dict[str, pa.Array]]:
        kept = names if self._columns is None else self._columns
        for argument, given in (("query", [self.key]), ("columns", kept)):
            for column in given:
                _arguments.choice(argument, column, names)
        if self._name in kept:
            raise ValueError(f"`name` must be another name than those of `columns`, got {self._name!r}.")
        return kept, None, {self._name: pa.array(self._scores(part) if len(part) else [], pa.float32())}

    def _scores(self, table: Any) -> np.ndarray:
        model = self._model()
        if isinstance(model, Estimator):
            return model.predict(table)  # type: ignore[attr-defined]
        if isinstance(model, LoadedTextRanker):
            return model.score(table, query=str(self.key), text=self._text)
        return model.score(table, qid=table[self.key])


class PartitionRecommender(_OnPartitions):
    """Recommends items to the users of a partition, on the workers of Spark, Dask and Ray.

    It is pickled with the path of the export, and loads it once per process. See `map_partitions`.

    Args:
      model: The directory of an export of a `Recommender`, which all workers can read, of which the last version is
        used; or what `serving.load` returns for it.
      users: The column of ids of users, which the result has.
      histories: A column of lists of ids of items, the latest item last, which represent the users in place of `users`.
        A missing list is an empty one.
      topn: Items per user, >= 1; at most those of the export.

    The result has a row per user and item: the columns of users, "item", "score" and "rank", from 1 on.

    Raises:
      ValueError: If an argument is of another type or out of its range. From a call, if a column is missing or an id
        cannot be one of the training.

    Memory: the result of a partition, and the model, per process.

    Example:
      >>> import tempfile
      >>> import pandas as pd
      >>> from tfr_smooth import recommendation, serving
      >>> train = recommendation.Interactions([[1, 1, 0], [1, 0, 1], [0, 1, 1]], [7, 8, 9], ["a", "b", "c"])
      >>> options = {"dim": 4, "loss": None, "softmax_epochs": 1, "validation_fraction": 0.0, "verbose": False}
      >>> fitted = recommendation.Recommender(**options).fit(train)
      >>> recommender = serving.PartitionRecommender(fitted.export(tempfile.mkdtemp()), users="user", topn=1)
      >>> recommender(pd.DataFrame({"user": [7, 9]}))[["user", "item", "rank"]].to_numpy().tolist()
      [[7, 'c', 1], [9, 'a', 1]]
    """

    key = None

    def __init__(self, model: Any, *, users: str, histories: str | None = None, topn: int = 10) -> None:
        if not isinstance(model, (str, os.PathLike, LoadedRecommender)):
            expected = "the directory of an export of a `Recommender`, or what `load` returns for it"
            raise ValueError(f"`model` must be {expected}, got {type(model).__name__}.")
        path = versions.last(model.path if isinstance(model, LoadedRecommender) else model)
        if users in _ADDED:
            raise ValueError(f"`users` must be another name than {', '.join(map(repr, _ADDED))}, got {users!r}.")
        signatures = versions.read_card(path)["signatures"]
        if "histories" not in signatures:
            raise ValueError(f"`model` must be an export of a `Recommender`, got another in {path}.")
        self._source = os.path.abspath(path)
        is_text = signatures["histories"]["inputs"]["histories"].startswith("string")
        self._type = pa.string() if is_text else pa.int64()
        self._users, self._histories, self._topn = users, histories, _arguments.integer("topn", topn, least=1)

    def _result(self, part: Any, names: list[str]) -> tuple[Sequence[str], np.ndarray, dict[str, pa.Array]]:
        what = ("users", self._users) if self._histories is None else ("histories", self._histories)
        for argument, column in (("users", self._users), what):
            _arguments.choice(argument, column, names)
        ranked: list[Any] = []
        if len(part):
            values = part[what[1]]
            asked = (values if isinstance(values, pa.ChunkedArray) else pa.array(values, from_pandas=True)).to_pylist()
            asked = asked if self._histories is None else [[] if each is None else each for each in asked]
            ranked = load_once(self._source).recommend(**{what[0]: asked}, topn=self._topn)
        counts, best = np.array([*map(len, ranked)], int), [*itertools.chain(*ranked)]
        found = [
            pa.array([each.item for each in best], self._type),
            pa.array([each.score for each in best], pa.float32()),
            pa.array([*itertools.chain(*(range(1, count + 1) for count in counts))], pa.int32()),
        ]
        return [self._users], np.repeat(np.arange(len(ranked)), counts), dict(zip(_ADDED, found, strict=True))


def _check_whole(frame: Any, engine: str, key: str) -> None:
    """Checks that no value of a column is in two partitions."""
    if engine == "pyspark":
        from pyspark.sql import functions

        parts = frame.select(key, functions.spark_partition_id().alias("part")).distinct()
        split = [row[0] for row in parts.groupBy(key).count().filter("count > 1").head(1)]
    elif engine == "dask":
        counts = frame[[key]].map_partitions(lambda part: part.drop_duplicates()).groupby(key).size().compute()
        split = counts.index[counts > 1].tolist()
    else:
        parts = frame.select_columns([key]).map_batches(
            lambda part: part.group_by(key).aggregate([]), batch_size=None, batch_format="pyarrow"
        )
        split = [row[key] for row in parts.groupby(key).count().filter(lambda row: row["count()"] > 1).take(1)]
    if split:
        expected = "all rows of a query in one partition with `shuffle=False`"
        raise ValueError(f"`frame` must have {expected}, got the query {split[0]!r} in several.")


def map_partitions(
    frame: Any, function: PartitionScorer | PartitionRecommender, *, partitions: int | None = None, shuffle: bool = True
) -> Any:
    """Applies a scorer or a recommender to a table of Spark, Dask or Ray, which does all of the work.

    Spark runs `frame.repartition(query).mapInArrow(function, schema)`, Dask `frame.shuffle(query)
    .map_partitions(function)`, and Ray Data `frame.repartition(partitions, keys=[query]).map_batches(...)`.

    Args:
      frame: A `DataFrame` of Spark or Dask, or a `Dataset` of Ray.
      function: A `PartitionScorer` or `PartitionRecommender`.
      partitions: The number of partitions, >= 1. None: the engine's default. A worker holds one in memory.
      shuffle: Whether to bring the rows of each query into one partition. False checks that they are, in a pass over
        the column of queries that runs at once: for tables that are stored by query.

    Returns:
      A lazy table of the same engine. Its order is the engine's.

    Raises:
      ValueError: If the table is another one, or without `shuffle` a query has rows in two partitions.

    Time: that of the shuffle, and of the model. Memory: as of the function.

    Example:
      >>> import tempfile
      >>> import dask.dataframe
      >>> import pandas as pd
      >>> from tfr_smooth import models, serving
      >>> path = tempfile.mkdtemp()
      >>> _ = serving.export_ranker(models.FeedForwardScorer(hidden=[4]), path, feature_names=["price"])
      >>> frame = pd.DataFrame({"query": [1, 2, 1], "price": [2.0, 3.5, 1.5]})
      >>> table = dask.dataframe.from_pandas(frame, npartitions=2)
      >>> scores = serving.map_partitions(table, serving.PartitionScorer(path, query="query"))
      >>> sorted(scores.compute()["price"])
      [1.5, 2.0, 3.5]
    """
    engine, names = type(frame).__module__.partition(".")[0], getattr(frame, "columns", None)
    if engine not in _ENGINES or names is None:
        expected = "a `DataFrame` of Spark or Dask, or a `Dataset` of Ray"
        raise ValueError(f"`frame` must be {expected}, got {type(frame).__name__} of {engine}.")
    _arguments.integer_or_none("partitions", partitions, least=1)
    key = function.key
    if key is not None:
        _arguments.choice("query", key, map(str, names() if callable(names) else names))
    if not _arguments.boolean("shuffle", shuffle):
        if partitions is not None:
            raise ValueError(f"`partitions` must be None with `shuffle=False`, got {partitions}.")
        if key is not None:
            _check_whole(frame, engine, key)
        key = None
    moved = [each for each in (partitions, key) if each is not None]
    if engine == "pyspark":
        from pyspark.sql.pandas.types import from_arrow_type
        from pyspark.sql.types import StructField, StructType

        frame = frame.repartition(*moved) if moved else frame
        known = {field.name: field for field in frame.schema}
        found = function(pa.table({name: pa.nulls(0) for name in known})).schema
        fields = [
            known[field.name] if pa.types.is_null(field.type) else StructField(field.name, from_arrow_type(field.type))
            for field in found
        ]
        return frame.mapInArrow(function.__call__, StructType(fields))
    if engine == "dask":
        if moved:
            frame = (
                frame.repartition(npartitions=partitions) if key is None else frame.shuffle(key, npartitions=partitions)
            )
        return frame.map_partitions(function, meta=function(frame._meta))
    if moved:
        blocks = partitions or frame.context.default_hash_shuffle_parallelism
        frame = frame.repartition(blocks, keys=None if key is None else [key])
    return frame.map_batches(function, batch_size=None, batch_format="pyarrow")
