"""Estimators on the partitions of tables of Spark, Dask and Ray, which schedule and move everything."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tfr_smooth import _arguments
from tfr_smooth.data.column_values import NESTED, value_type

_UTC = ("UTC", "Etc/UTC", "GMT", "Z", "+00:00")


def score_partitions(
    frame: Any,
    estimator: Any,
    *,
    users: str | None = None,
    topn: int = 10,
    partitions: int | None = None,
    shuffle: bool = True,
) -> Any:
    """Scores a table of Spark, Dask or Ray, in partitions of whole queries, by the estimator's `predict`.

    The estimator is pickled, and each process makes it once. Spark runs `frame.repartition(query).mapInArrow(...)`,
    Dask `frame.shuffle(query).map_partitions(...)`, and Ray Data `frame.repartition(partitions, keys=[query])
    .map_batches(...)`.

    Args:
      frame: A `DataFrame` of Spark or Dask, or a `Dataset` of Ray.
      estimator: A `Ranker` or `TextRanker` that was trained on a table with a column of queries, or a `Recommender`,
        which recommends items instead.
      users: For a `Recommender`, the column of ids of users, or of lists of ids of items, the latest item last, which
        represent the users.
      topn: For a `Recommender`, items per user, >= 1.
      partitions: The number of partitions, >= 1. None: the engine's default. A worker holds one in memory.
      shuffle: Whether to bring the rows of each query into one partition. False checks that they are, in a pass over
        the column of queries that runs at once: for tables that are stored by query.

    Returns:
      A lazy table of the same engine, in an order of the engine's: the rows with the further column "score", float32.
      Of a `Recommender`, a row for each user and item, with the columns "item", "score" and "rank", from 1 on.

    Raises:
      ValueError: If an argument is invalid, a query has rows in two partitions without `shuffle`, or Spark would read
        dates in another time zone than UTC. From a worker, if a column is missing or has values of another kind.

    Time: that of the shuffle, and of the estimator. Memory: the rows of a partition, twice, and the estimator, per
    process.

    Example:
      >>> import dask.dataframe
      >>> import pandas as pd
      >>> import tfr_smooth
      >>> frame = pd.DataFrame({"query": [1, 2, 1, 2], "price": [2.0, 3.5, 1.5, 4.0], "label": [1, 0, 0, 1]})
      >>> options = {"members": 1, "hidden": [4], "epochs": 1, "trees": False, "verbose": False}
      >>> ranker = tfr_smooth.Ranker(**options).fit(frame, label="label", query="query")
      >>> scored = tfr_smooth.serving.score_partitions(dask.dataframe.from_pandas(frame, npartitions=2), ranker)
      >>> list(scored.columns)
      ['query', 'price', 'label', 'score']
    """
    engine, is_recommender = type(frame).__module__.partition(".")[0], hasattr(estimator, "recommend")
    if engine not in _ENGINES or not hasattr(frame, "columns"):
        expected = "a `DataFrame` of Spark or Dask, or a `Dataset` of Ray"
        raise ValueError(f"`frame` must be {expected}, got {type(frame).__name__} of {engine}.")
    names = [*map(str, frame.columns() if callable(frame.columns) else frame.columns)]
    key = None if is_recommender else _query_of(estimator, users)
    _arguments.choice("users" if is_recommender else "the column of queries", users if is_recommender else key, names)
    if twice := {"item", "score", "rank"} & {*names} if is_recommender else {"score"} & {*names}:
        raise ValueError(f"`frame` must not have the column {min(twice)!r}, which is added.")
    _arguments.integer("topn", topn, least=1)
    _arguments.integer_or_none("partitions", partitions, least=1)
    if not _arguments.boolean("shuffle", shuffle):
        if partitions is not None:
            raise ValueError(f"`partitions` must be None with `shuffle=False`, got {partitions}.")
        if key is not None:
            _check_whole(frame, engine, key)
        key = None
    _check_zone(frame, engine, estimator)
    return _ENGINES[engine](frame, functools.partial(_scored, pickle.dumps(estimator), users, topn), key, partitions)


def _query_of(ranker: Any, users: str | None) -> str:
    """Returns the column of queries of a ranker."""
    if users is not None:
        raise ValueError(f"`users` must be None for a ranker, got {users!r}.")
    if ranker.query_column is None:
        raise ValueError("`estimator` must be trained on a table with a column of queries, got one without.")
    return str(ranker.query_column)


def _on_spark(frame: Any, function: Any, key: str | None, partitions: int | None) -> Any:
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    moved = [each for each in (partitions, key) if each is not None]
    frame = frame.repartition(*moved) if moved else frame
    known = {field.name: field for field in frame.schema}
    found = function(pa.table({name: pa.nulls(0) for name in known})).schema
    fields = [known.get(field.name) or StructField(field.name, from_arrow_type(field.type)) for field in found]
    return frame.mapInArrow(functools.partial(_of_batches, function), StructType(fields))


def _on_dask(frame: Any, function: Any, key: str | None, partitions: int | None) -> Any:
    if key is not None:
        frame = frame.shuffle(key, npartitions=partitions)
    elif partitions is not None:
        frame = frame.repartition(npartitions=partitions)
    return frame.map_partitions(function, meta=function(frame._meta))


def _on_ray(frame: Any, function: Any, key: str | None, partitions: int | None) -> Any:
    if key is not None or partitions is not None:
        blocks = partitions or frame.context.default_hash_shuffle_parallelism
        frame = frame.repartition(blocks, keys=None if key is None else [key])
    return frame.map_batches(function, batch_size=None, batch_format="pyarrow")


_ENGINES = {"pyspark": _on_spark, "dask": _on_dask, "ray": _on_ray}
_estimator_of = functools.lru_cache(maxsize=8)(pickle.loads)  # of a process


def _scored(content: bytes, users: str | None, topn: int, part: Any) -> Any:
    """Returns a partition, a table of pandas or Arrow, with further columns."""
    estimator, rows = _estimator_of(content), np.arange(len(part))
    if users is None:
        scores = estimator.predict(part) if len(part) else np.zeros(0)
        added: dict[str, Any] = {"score": scores.astype(np.float32)}
    else:
        values = part[users]
        asked = values if isinstance(values, pa.ChunkedArray) else pa.array(values, from_pandas=True)
        is_list = value_type(asked.type) in NESTED or not len(asked)
        ids = [[] if each is None and is_list else each for each in asked.to_pylist()]
        best = estimator.recommend(**{"histories" if is_list else "users": ids or [[]]}, topn=topn)
        rows, ranks = np.nonzero(np.isfinite(best.scores[: len(ids)]))
        added = {"item": best.items[rows, ranks], "score": best.scores[rows, ranks], "rank": np.int32(ranks + 1)}
    if hasattr(part, "iloc"):
        return part.iloc[rows].assign(**added)
    taken = part.take(rows)
    for name, column in added.items():  # also of no rows
        taken = taken.append_column(name, pa.array(column, pa.string() if column.dtype == object else None))
    return taken


def _of_batches(function: Any, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields the batches of what a function returns for the table of all batches of a partition, if there are any."""
    if given := [*batches]:
        yield from function(pa.Table.from_batches(given)).to_batches()


def _check_zone(frame: Any, engine: str, estimator: Any) -> None:
    """Checks that Spark reads dates in UTC, as they were in the training: its times are instants, shown in a zone."""
    zone = frame.sparkSession.conf.get("spark.sql.session.timeZone") if engine == "pyspark" else _UTC[0]
    for field in frame.schema if zone not in _UTC else ():
        is_date = getattr(estimator, "types_", {}).get(field.name, "").startswith("date")
        if is_date and field.dataType.typeName() == "timestamp":
            expected = "times without a zone, `timestamp_ntz`, or the session's time zone UTC"
            raise ValueError(f"`frame` must have {expected}, got a timestamp in {field.name!r} and {zone!r}.")


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
