"""Padded query batches from arrays and data frames."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth.data.batches import BatchOptions, InMemory
from tfr_smooth.data.letor_parser import Query
from tfr_smooth.data.query_cache import QueryCache
from tfr_smooth.data.table_columns import column_names, to_pandas


def from_arrays(
    features: Any,
    labels: Any = None,
    query_ids: Any = None,
    *,
    group_sizes: Any = None,
    weights: Any = None,
    positions: Any = None,
    batch_size: int,
    list_size: int | None = None,
    shuffle_buffer: int = 0,
    seed: int | None = None,
    num_epochs: int | None = 1,
    first_epoch: int = 0,
    drop_remainder: bool = False,
    return_ids: bool = False,
    group_by_length: bool = False,
) -> tf.data.Dataset:
    """Creates a dataset of padded query batches from arrays with one row per document.

    Args:
      features: Finite numbers [rows, num_features].
      labels: Finite numbers >= 0, [rows], or [rows, objectives] for labels of several objectives. None for unlabeled
        documents: all labels are 0.
      query_ids: The query of each row, [rows], as numbers or strings. The rows of a query need not be adjacent. They
        keep their order, and queries are ordered by their first row.
      group_sizes: Alternative to `query_ids`: the number of rows per query, integers >= 1, [queries], for rows sorted
        by query as in LightGBM and XGBoost. Exactly one of `query_ids` and `group_sizes` must be given.
      weights: Finite numbers >= 0, [rows]. They become the third element of each batch, [batch, list], with 0 for
        padding. For one weight per query, repeat it in all rows of the query. None adds no weights.
      positions: Positions >= 0 at which the documents were shown, [rows], for `models.PositionBias`. They become the
        input "position", int32 [batch, list], with 0 for padding. None adds no input.
      batch_size: Queries per batch, >= 1.
      list_size: Documents per list, >= 1; longer lists are truncated. None pads to the longest list of each batch.
      shuffle_buffer: Queries in the shuffle buffer, >= 0. 0 keeps the order of the queries.
      seed: Seed of the order, >= 0, as in `read_letor`. None shuffles differently in each epoch.
      num_epochs: Number of epochs, >= 1. None repeats forever.
      first_epoch: Index of the first epoch, >= 0. Used only with `seed`.
      drop_remainder: Whether to drop the last batch of an epoch if it is not full.
      return_ids: Whether to add "query_id" and "doc_id" to the inputs. The document id is the row number as a string.
      group_by_length: Whether to batch lists of similar length, as in `read_letor`.

    Returns:
      A dataset of `(inputs, labels)` as returned by `read_letor`, or of `(inputs, labels, weights)` if `weights` is
      given. The labels of several objectives are [batch, list, objectives], as for `losses.MultiObjectiveLoss`.

    Raises:
      ValueError: If an argument is invalid. The message names the row and column of an invalid number.

    The rows are copied once, as float32.

    Example:
      >>> import numpy as np
      >>> from tfr_smooth import data
      >>> features, labels = np.array([[0.1], [0.2], [0.3]]), np.array([1, 0, 2])
      >>> dataset = data.from_arrays(features, labels, ["a", "b", "a"], batch_size=2, return_ids=True)
      >>> inputs, labels = next(iter(dataset))
      >>> inputs["doc_id"].numpy().tolist(), labels.numpy().tolist()
      ([[b'0', b'2'], [b'1', b'']], [[1.0, 2.0], [0.0, -1.0]])
    """
    options = BatchOptions(
        batch_size=batch_size,
        list_size=list_size,
        shuffle_buffer=shuffle_buffer,
        seed=seed,
        num_epochs=num_epochs,
        first_epoch=first_epoch,
        drop_remainder=drop_remainder,
        return_ids=return_ids,
        group_by_length=group_by_length,
    )
    matrix = _numbers("features", features, ("row", "column"))
    rows = len(matrix)
    labels_ = np.zeros(rows, np.float32) if labels is None else _column("labels", labels, rows)
    weights_ = None if weights is None else _column("weights", weights, rows)
    positions_ = None if positions is None else _column("positions", positions, rows).astype(np.int32)
    groups = list(_groups(query_ids, group_sizes, rows))
    if not groups:
        raise ValueError("`features` must have at least one row, got none.")
    cache = QueryCache.in_memory(
        matrix.shape[1],
        (Query(name, matrix[places], labels_[places], [b"%d" % place for place in places]) for name, places in groups),
    )
    if weights_ is None and positions_ is None:
        return InMemory(cache, options).dataset()
    # The row numbers of the documents index the weights and the positions.
    dataset = InMemory(cache, dataclasses.replace(options, return_ids=True)).dataset()
    return dataset.map(_WithColumns(weights_, positions_, return_ids))


def from_dataframe(
    frame: Any,
    *,
    query: str,
    label: str | Sequence[str] | None,
    features: Sequence[str] | None = None,
    weight: str | None = None,
    position: str | None = None,
    **options: Any,
) -> tf.data.Dataset:
    """Creates a dataset of padded query batches from a table with one row per document.

    Args:
      frame: A pandas DataFrame, or a table with a `to_pandas` method, such as those of Polars and PyArrow.
      query: The column of query ids.
      label: The column of labels, or those of several objectives. None for unlabeled documents.
      features: The feature columns, in this order. None uses all numeric columns except those of the other
        arguments.
      weight: The column of weights. None adds no weights.
      position: The column of positions at which the documents were shown. None adds no input.
      **options: Options of `from_arrays`, such as `batch_size`.

    Returns:
      The dataset that `from_arrays` returns. With `return_ids=True`, `frame.iloc[int(doc_id)]` is the row of a
      document.

    Raises:
      ValueError: If `frame` is not a table, a column is missing or not numeric, or `from_arrays` rejects a value.

    Example:
      >>> import pandas as pd
      >>> from tfr_smooth import data
      >>> frame = pd.DataFrame({"qid": [7, 7, 8], "label": [1, 0, 2], "bm25": [0.5, 0.1, 0.9], "title": list("abc")})
      >>> inputs, labels = next(iter(data.from_dataframe(frame, query="qid", label="label", batch_size=2)))
      >>> inputs["features"].shape, labels.numpy().tolist()
      (TensorShape([2, 2, 1]), [[1.0, 0.0], [2.0, -1.0]])
    """
    frame = to_pandas(frame)
    given = {"query": query, "label": label, "weight": weight, "position": position}
    named = [(name, column) for name, columns in given.items() for column in column_names(columns)]
    for argument, column in named:
        if column not in frame.columns:
            raise ValueError(f"`{argument}` must be one of the columns {list(frame.columns)}, got {column!r}.")
    if features is None:
        others = {column for _, column in named}
        features = [name for name in frame.columns if name not in others and _is_number(frame[name].dtype)]
    for column in features:
        if column not in frame.columns:
            raise ValueError(f"`features` must be among the columns {list(frame.columns)}, got {column!r}.")
        if not _is_number(frame[column].dtype):
            raise ValueError(f"`features` must be numeric columns, got {column!r} of type {frame[column].dtype}.")
    return from_arrays(
        frame[list(features)].to_numpy(np.float32, na_value=np.nan),
        None if label is None else frame[label if isinstance(label, str) else list(label)].to_numpy(),
        frame[query].to_numpy(),
        weights=None if weight is None else frame[weight].to_numpy(),
        positions=None if position is None else frame[position].to_numpy(),
        **options,
    )


class _WithColumns:
    """Adds weights and positions to batches whose document ids are row numbers."""

    def __init__(self, weights: np.ndarray | None, positions: np.ndarray | None, return_ids: bool) -> None:
        self._weights = None if weights is None else tf.constant(weights)
        self._positions = None if positions is None else tf.constant(positions)
        self._return_ids = return_ids

    def __call__(self, inputs: dict[str, tf.Tensor], labels: tf.Tensor) -> tuple[Any, ...]:
        rows = tf.strings.to_number(tf.where(inputs["mask"], inputs["doc_id"], "0"), tf.int64)

        def batch(column: tf.Tensor) -> tf.Tensor:
            values = tf.gather(column, rows)
            return tf.where(inputs["mask"], values, tf.zeros_like(values))

        kept = dict(inputs) if self._return_ids else {name: inputs[name] for name in ("features", "mask")}
        if self._positions is not None:
            kept["position"] = batch(self._positions)
        return (kept, labels) if self._weights is None else (kept, labels, batch(self._weights))


def _is_number(dtype: Any) -> bool:
    return getattr(dtype, "kind", "O") in "biuf"


def _numbers(name: str, values: Any, axes: tuple[str, ...]) -> np.ndarray:
    """Returns the values as a finite float32 array with the given axes."""
    array = np.asarray(values)
    if array.ndim != len(axes) or not (_is_number(array.dtype) or array.dtype.kind == "O"):
        shape = ", ".join(f"{axis}s" for axis in axes)
        raise ValueError(f"`{name}` must be numbers [{shape}], got {array.dtype} of shape {array.shape}.")
    try:
        with np.errstate(over="ignore"):  # Infinities are reported below.
            array = np.ascontiguousarray(array, np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{name}` must be numbers: {error}.") from None
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        place = ", ".join(f"{axis} {index}" for axis, index in zip(axes, wrong[0], strict=True))
        raise ValueError(f"`{name}` must be finite float32 numbers, got {array[tuple(wrong[0])]} in {place}.")
    return array


def _column(name: str, values: Any, rows: int) -> np.ndarray:
    """Returns the values as float32 [rows], all >= 0; labels may be [rows, objectives]."""
    axes = ("row", "objective") if name == "labels" and np.ndim(values) == 2 else ("row",)
    array = _numbers(name, values, axes)
    if len(array) != rows:
        raise ValueError(f"`{name}` must have one value for each of the {rows} rows of `features`, got {len(array)}.")
    wrong = np.argwhere(array < 0.0)
    if len(wrong):
        raise ValueError(f"`{name}` must be >= 0, got {array[tuple(wrong[0])]} in row {wrong[0][0]}.")
    return array


def _groups(query_ids: Any, group_sizes: Any, rows: int) -> Iterator[tuple[bytes, np.ndarray]]:
    """Yields the id and the rows of each query."""
    if (query_ids is None) == (group_sizes is None):
        given = "neither" if query_ids is None else "both"
        raise ValueError(f"Exactly one of `query_ids` and `group_sizes` must be given, got {given}.")
    if group_sizes is not None:
        sizes = np.asarray(group_sizes)
        if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 1).any():
            raise ValueError(f"`group_sizes` must be integers >= 1, got {group_sizes!r}.")
        if sizes.sum() != rows:
            raise ValueError(f"`group_sizes` must add up to the {rows} rows of `features`, got a sum of {sizes.sum()}.")
        ends = np.cumsum(sizes)
        for number, (size, end) in enumerate(zip(sizes, ends, strict=True)):
            yield b"%d" % number, np.arange(end - size, end)
        return
    names = np.asarray(query_ids)
    if names.shape != (rows,):
        raise ValueError(f"`query_ids` must have shape ({rows},), one id per row of `features`, got {names.shape}.")
    missing = [row for row, name in enumerate(names.tolist()) if name is None or name != name]
    if missing:
        raise ValueError(f"`query_ids` must have no missing values, got {names[missing[0]]} in row {missing[0]}.")
    _, first, inverse = np.unique(names, return_index=True, return_inverse=True)
    by_query = np.argsort(inverse, kind="stable")
    places = np.split(by_query, np.cumsum(np.bincount(inverse))[:-1]) if rows else []
    for query in np.argsort(first):
        name = names[first[query]]
        yield name if isinstance(name, bytes) else str(name).encode(), places[query]
