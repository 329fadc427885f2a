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
# How each engine selects columns, and how it brings rows to the caller.
_SELECT = {"pyspark": "select", "dask": "__getitem__", "ray": "select_columns"}
_COLLECT = {"pyspark": "toPandas", "dask": "compute", "ray": "to_pandas"}


def score_partitions(
    frame: Any, estimator: Any, *, users: str | None = None, topn: int = 10, check: bool = True
) -> Any:
    """Scores a table of Spark, Dask or Ray, whose partitions have whole queries, by the estimator's `predict`.

    The estimator is pickled, and each process makes it once. The engine groups the rows: `frame.repartition(1000,
    query)` of Spark, `frame.shuffle(query)` of Dask, `frame.repartition(1000, keys=[query])` of Ray.

    Args:
      frame: A `DataFrame` of Spark or Dask, or a `Dataset` of Ray. A worker holds one partition in memory.
      estimator: A `Ranker` or `TextRanker` that was trained on a table with a column of queries, or a `Recommender`,
        which recommends items instead.
      users: For a `Recommender`, the column of ids of users, or of lists of ids of items, the latest item last, which
        represent the users. Any partitions will do.
      topn: For a `Recommender`, items per user, >= 1.
      check: Whether to check that no query is in two partitions, in a pass over the column of queries that runs at
        once and brings the ids of all queries here. False saves it if they are known to be whole.

    Returns:
      A lazy table of the same engine, in an order of the engine's: the rows with the further column "score", float32.
      Of a `Recommender`, a row for each user and item, with the columns "item", "score" and "rank", from 1 on.

    Raises:
      ValueError: If an argument is invalid, a query has rows in two partitions, or Spark would read dates in another
        time zone than UTC. From a worker, if a column is missing or has values of another kind.

    Time: that of the estimator. Memory: the rows of a partition, twice, and the estimator, per process.

    Example:
      >>> import dask.dataframe
      >>> import pandas as pd
      >>> import tfr_smooth
      >>> frame = pd.DataFrame({"query": [1, 2, 1, 2], "price": [2.0, 3.5, 1.5, 4.0], "label": [1, 0, 0, 1]})
      >>> options = {"members": 1, "hidden": [4], "epochs": 1, "trees": False, "verbose": False}
      >>> ranker = tfr_smooth.Ranker(**options).fit(frame, label="label", query="query")
      >>> table = dask.dataframe.from_pandas(frame, npartitions=2).shuffle("query")
      >>> list(tfr_smooth.serving.score_partitions(table, ranker).columns)
      ['query', 'price', 'label', 'score']
    """
    engine, is_recommender = type(frame).__module__.partition(".")[0], hasattr(estimator, "recommend")
    if engine not in _SELECT or not hasattr(frame, "columns"):
        expected = "a `DataFrame` of Spark or Dask, or a `Dataset` of Ray"
        raise ValueError(f"`frame` must be {expected}, got {type(frame).__name__} of {engine}.")
    names = [*map(str, frame.columns() if callable(frame.columns) else frame.columns)]
    if is_recommender:
        _arguments.choice("users", users, names)
    elif users is not None or estimator.query_column is None:
        expected = "a `Recommender` for `users`, or else a ranker of a table with a column of queries"
        raise ValueError(f"`estimator` must be {expected}, got {estimator!r} and users={users!r}.")
    else:
        _arguments.choice("the column of queries", key := str(estimator.query_column), names)
    if twice := {"item", "score", "rank"} & {*names} if is_recommender else {"score"} & {*names}:
        raise ValueError(f"`frame` must not have the column {min(twice)!r}, which is added.")
    _arguments.integer("topn", topn, least=1)
    _check_zone(frame, engine, estimator)
    if _arguments.boolean("check", check) and not is_recommender:
        found = _mapped(engine, getattr(frame, _SELECT[engine])([key]), _different)
        ids = getattr(found, _COLLECT[engine])()[key]
        if ids.duplicated().any():
            expected = f"all rows of a query in one partition: repartition or shuffle it by {key!r} first"
            raise ValueError(f"`frame` must have {expected}, got {ids[ids.duplicated()].iloc[0]!r} in several.")
    return _mapped(engine, frame, functools.partial(_scored, pickle.dumps(estimator), users, topn))


def _mapped(engine: str, frame: Any, function: Any) -> Any:
    """Returns the lazy table of what a function returns for each partition, a table of pandas or Arrow."""
    if engine == "dask":
        return frame.map_partitions(function, meta=function(frame._meta))
    if engine == "ray":
        return frame.map_batches(function, batch_size=None, batch_format="pyarrow")
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    known = {field.name: field for field in frame.schema}
    found = function(pa.table({name: pa.nulls(0) for name in known})).schema
    schema = StructType([known.get(each.name) or StructField(each.name, from_arrow_type(each.type)) for each in found])
    return frame.mapInArrow(functools.partial(_of_batches, function), schema)


def _different(part: Any) -> Any:
    """Returns the different rows of a partition."""
    return part.drop_duplicates() if hasattr(part, "iloc") else part.group_by(part.column_names).aggregate([])


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
