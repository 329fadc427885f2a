"""`from_arrays` and `from_dataframe`: arrays and tables as a `tf.data.Dataset` of padded query batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth.data.batches import InMemory
from tfr_smooth.data.epochs import BatchOptions
from tfr_smooth.data.letor_parser import Query
from tfr_smooth.data.query_cache import QueryCache


def from_arrays(
    features: Any,
    labels: Any = None,
    query_ids: Any = None,
    *,
    group_sizes: Any = None,
    weights: Any = None,
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
    """Makes batches of queries from arrays with a row per document.

    Args:
      features: Numbers [rows, num_features], finite.
      labels: Numbers [rows], finite, >= 0. None for documents without labels, whose label is 0.
      query_ids: The query of each row, [rows]: numbers or text. The rows of a query may be anywhere; they keep their
        order, and queries have the order of their first rows.
      group_sizes: In place of `query_ids`, the number of rows of each query, [queries], for rows in the order of the
        queries, as LightGBM and XGBoost have it.
      weights: Weights [rows], finite, >= 0: the third part of each batch, [batch, list], 0 for padding. A weight per
        query is one that all its rows have.
      batch_size: Queries per batch, >= 1.
      list_size: As for `read_letor`, like all that follow.
      shuffle_buffer: See `read_letor`.
      seed: See `read_letor`.
      num_epochs: See `read_letor`.
      first_epoch: See `read_letor`.
      drop_remainder: See `read_letor`.
      return_ids: Whether to add "query_id" and "doc_id": the number of the document's row, as text.
      group_by_length: See `read_letor`.

    Returns:
      The dataset that `read_letor` returns for a file with these rows; with `weights`, of `(inputs, labels, weights)`.

    Raises:
      ValueError: If an argument is not one of these; a wrong number with its row and column.

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
    groups = list(_groups(query_ids, group_sizes, rows))
    if not groups:
        raise ValueError("`features` must have a row, got none.")
    cache = QueryCache.in_memory(
        matrix.shape[1],
        (Query(name, matrix[places], labels_[places], [b"%d" % place for place in places]) for name, places in groups),
    )
    if weights_ is None:
        return options.dataset(InMemory(cache, options.batching), len(cache))
    # The weights are found by the documents' row numbers.
    with_ids = dataclasses.replace(options, return_ids=True)
    dataset = with_ids.dataset(InMemory(cache, with_ids.batching), len(cache))
    return dataset.map(_Weighted(weights_, return_ids))


def from_dataframe(
    frame: Any,
    *,
    query: str,
    label: str | None,
    features: Sequence[str] | None = None,
    weight: str | None = None,
    **options: Any,
) -> tf.data.Dataset:
    """Makes batches of queries from a table with a row per document.

    Args:
      frame: A pandas DataFrame, or one with a method `to_pandas`, as those of Polars and PyArrow.
      query: The column of the query ids.
      label: The column of the labels; None for documents without labels.
      features: The columns of the features, in this order; None for all columns of numbers but the others named here.
      weight: The column of the weights, or None.
      **options: The options of `from_arrays`, such as `batch_size`.

    Returns:
      The dataset that `from_arrays` returns. With `return_ids=True`, `frame.iloc[int(doc_id)]` is a document's row.

    Raises:
      ValueError: If a column is missing or has no numbers, or `from_arrays` refuses a value.

    Example:
      >>> import pandas as pd
      >>> from tfr_smooth import data
      >>> frame = pd.DataFrame({"qid": [7, 7, 8], "label": [1, 0, 2], "bm25": [0.5, 0.1, 0.9], "title": list("abc")})
      >>> inputs, labels = next(iter(data.from_dataframe(frame, query="qid", label="label", batch_size=2)))
      >>> inputs["features"].shape, labels.numpy().tolist()
      (TensorShape([2, 2, 1]), [[1.0, 0.0], [2.0, -1.0]])
    """
    if not hasattr(frame, "iloc"):
        if not hasattr(frame, "to_pandas"):
            raise ValueError(f"`frame` must be a pandas DataFrame or have `to_pandas`, got {type(frame).__name__}.")
        frame = frame.to_pandas()
    named = {"query": query, "label": label, "weight": weight}
    for argument, column in named.items():
        if column is not None and column not in frame.columns:
            raise ValueError(f"`{argument}` must be a column of {list(frame.columns)}, got {column!r}.")
    if features is None:
        features = [name for name in frame.columns if name not in named.values() and _is_number(frame[name].dtype)]
    for column in features:
        if column not in frame.columns:
            raise ValueError(f"`features` must be columns of {list(frame.columns)}, got {column!r}.")
        if not _is_number(frame[column].dtype):
            raise ValueError(f"`features` must be columns of numbers, got {column!r} of type {frame[column].dtype}.")
    return from_arrays(
        frame[list(features)].to_numpy(np.float32, na_value=np.nan),
        None if label is None else frame[label].to_numpy(),
        frame[query].to_numpy(),
        weights=None if weight is None else frame[weight].to_numpy(),
        **options,
    )


class _Weighted:
    """Adds the weights to the batches of a dataset whose documents have row numbers as ids."""

    def __init__(self, weights: np.ndarray, return_ids: bool) -> None:
        self._weights, self._return_ids = tf.constant(weights), return_ids

    def __call__(
        self, inputs: dict[str, tf.Tensor], labels: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
        places = tf.where(inputs["mask"], inputs["doc_id"], "0")
        weights = tf.gather(self._weights, tf.strings.to_number(places, tf.int64))
        kept = inputs if self._return_ids else {name: inputs[name] for name in ("features", "mask")}
        return kept, labels, tf.where(inputs["mask"], weights, 0.0)


def _is_number(dtype: Any) -> bool:
    return getattr(dtype, "kind", "O") in "biuf"


def _numbers(name: str, values: Any, axes: tuple[str, ...]) -> np.ndarray:
    """Returns finite float32 values of that many dimensions."""
    array = np.asarray(values)
    if array.ndim != len(axes) or not (_is_number(array.dtype) or array.dtype.kind == "O"):
        shape = ", ".join(f"{axis}s" for axis in axes)
        raise ValueError(f"`{name}` must be numbers [{shape}], got {array.dtype} of the shape {array.shape}.")
    try:
        with np.errstate(over="ignore"):  # An infinity is named below.
            array = np.ascontiguousarray(array, np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{name}` must be numbers: {error}.") from None
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        place = ", ".join(f"{axis} {index}" for axis, index in zip(axes, wrong[0], strict=True))
        raise ValueError(f"`{name}` must be finite float32 numbers, got {array[tuple(wrong[0])]} in {place}.")
    return array


def _column(name: str, values: Any, rows: int) -> np.ndarray:
    """Returns float32 values >= 0, one for each row."""
    array = _numbers(name, values, ("row",))
    if len(array) != rows:
        raise ValueError(f"`{name}` must have one value for each of the {rows} rows of `features`, got {len(array)}.")
    wrong = np.flatnonzero(array < 0.0)
    if len(wrong):
        raise ValueError(f"`{name}` must be >= 0, got {array[wrong[0]]} in row {wrong[0]}.")
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
        raise ValueError(f"`query_ids` must have one for each of the {rows} rows of `features`, got {names.shape}.")
    missing = [row for row, name in enumerate(names.tolist()) if name is None or name != name]
    if missing:
        raise ValueError(f"`query_ids` must have no missing value, got {names[missing[0]]} in row {missing[0]}.")
    _, first, inverse = np.unique(names, return_index=True, return_inverse=True)
    by_query = np.argsort(inverse, kind="stable")
    places = np.split(by_query, np.cumsum(np.bincount(inverse))[:-1]) if rows else []
    for query in np.argsort(first):
        name = names[first[query]]
        yield name if isinstance(name, bytes) else str(name).encode(), places[query]
