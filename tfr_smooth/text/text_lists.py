"""Tables of texts as `Lists`, and the training lists that are drawn from them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth._compiled import dataset_of
from tfr_smooth.data.batches import share_by_data
from tfr_smooth.data.column_values import OUTER_BLANKS, TEXTS, value_type
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.reading import checks, sources
from tfr_smooth.data.reading.ids import plain_array
from tfr_smooth.data.reading.sources import check_constant, of_files
from tfr_smooth.text.reranker import any_size
from tfr_smooth.text.token_inputs import Inputs


def table_of(X: Any, columns: Mapping[str, str | None]) -> Any:
    """Returns the table of files, whose texts are text, if paths are given, and others as they are."""
    return of_files(X, {str(columns[role]): "text" for role in ("query", "text")}, [columns["query_id"]])


def lists_of(table: Any, columns: Mapping[str, str | None], *, labeled: bool, argument: str = "X") -> Lists:
    """Returns the lists of a table with one row per query and document.

    Args:
      table: The table, or paths of files.
      columns: The columns by role: "query", "text", "label" and "query_id", None for equal texts of queries.
      labeled: Whether the table must have labels; otherwise, the column of query ids may also be missing.
      argument: The argument that is the table, for messages.

    Returns:
      The lists, whose features are the texts of the query and of the document.

    Raises:
      ValueError: If a column is missing or has values that are not allowed. The message names the column and row.
    """
    source = checks.as_arrow(table_of(table, columns), argument)
    query, text, query_id = (columns[role] for role in ("query", "text", "query_id"))
    for role in ("query", "text"):
        _arguments.choice(role, columns[role], source.column_names)
    if query_id is None or (query_id not in source.column_names and not labeled):
        query_id = query
    else:
        _arguments.choice("query_id", query_id, source.column_names)
    roles = {"query": query_id, "label": columns["label"] if labeled else None, "features": [query, text]}
    for name in dict.fromkeys((query, text)):
        texts = _texts(checks.Where(f"column {name!r}"), source[name])
        source = source.set_column(source.column_names.index(name), name, texts)
    lists = sources.lists_of(source, {}, argument="X", **roles)
    check_constant(lists, lists.source[str(query)], f"column {query!r}", "another text in")
    return lists


def texts_of(lists: Lists) -> tuple[list[str], list[str]]:
    """Returns the texts of the query and of the document of each document, in the order of the lists."""
    query, text = ([value.decode() for value in lists.values(name).tolist()] for name in lists.roles.features)
    return query, text


class TrainingLists:
    """Samples a list of relevant and non-relevant documents per query and epoch, without replacement.

    If fewer exist than requested, the list is shorter. Queries without both kinds are skipped.

    Args:
      lists: The queries with labels; documents are relevant if their label is > 0.
      relevant: Maximum number of relevant documents per list, >= 1.
      negatives: Maximum number of non-relevant documents per list, >= 1.
      seed: Random seed, >= 0. The lists of an epoch depend only on the seed and the number of the epoch.

    Raises:
      ValueError: If no query has both a relevant and a non-relevant document.
    """

    def __init__(self, lists: Lists, *, relevant: int, negatives: int, seed: int) -> None:
        self._sizes, self._seed = (relevant, negatives), seed
        self._labels = lists.values(lists.roles.labels[0])
        self._pools = []
        for start, end in itertools.pairwise(lists.starts):
            places = np.arange(start, end)
            is_good = self._labels[places] > 0.0
            if is_good.any() and not is_good.all():
                self._pools.append((places[is_good], places[~is_good]))
        if not self._pools:
            expected = "a query with a relevant and a non-relevant document"
            raise ValueError(f"`X` must have {expected}, got none among {len(lists)} queries.")

    def __len__(self) -> int:
        """The number of lists per epoch."""
        return len(self._pools)

    def epoch(self, number: int) -> list[list[int]]:
        """Returns the lists of an epoch in random order, as places of documents.

        Args:
          number: Number of the epoch, >= 0.
        """
        random = np.random.RandomState([self._seed, number])
        lists = []
        for query in random.permutation(len(self)):
            pools = zip(self._pools[query], self._sizes, strict=True)
            drawn = [random.choice(pool, min(size, len(pool)), replace=False) for pool, size in pools]
            lists.append(np.concatenate(drawn).tolist())
        return lists

    def dataset(self, inputs: Inputs, *, batch_size: int, epochs: range) -> tf.data.Dataset:
        """Returns a dataset of the batches of several epochs.

        Args:
          inputs: The inputs of the model for all documents.
          batch_size: Lists per batch, >= 1. The last batch of an epoch may be smaller.
          epochs: The numbers of the epochs.

        Returns:
          A dataset of (model inputs, labels). Labels are float32 [batch, list], -1 for padding.
        """

        def batches() -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
            for number in epochs:
                lists = self.epoch(number)
                for start in range(0, len(lists), batch_size):
                    some = lists[start : start + batch_size]
                    places = tf.keras.utils.pad_sequences(some, padding="post", value=-1)
                    yield inputs.batch(places), np.where(places >= 0, self._labels[places], np.float32(-1.0))

        signature = tf.nest.map_structure(any_size, next(batches()))
        return share_by_data(dataset_of(batches, signature).prefetch(1))


def text_values(what: str, values: Any) -> list[Any]:
    """Returns texts that are no part of a table as a list.

    Args:
      what: Names the texts, for messages.
      values: A list, an array, or a column of a table.

    Raises:
      ValueError: If a value is not text. The message names the row.
    """
    where = checks.Where(what)
    if isinstance(values, (str, Mapping)) or hasattr(values, "columns"):
        got = type(values).__name__
        raise ValueError(f"{where} must be a list of texts, or one column of a table, got {got}.")
    return _texts(where, checks.as_array(what, values)).to_pylist()


def _texts(where: checks.Where, column: Any) -> Any:
    """Returns the texts of a column without the blanks around them, which do not count."""
    values = plain_array(column)
    checks.refuse_where(pc.is_null(values, nan_is_null=True), where, "text without missing values", values)
    if len(values) and value_type(values.type) not in TEXTS:  # An empty column may have any type.
        checks.refuse(where, "text", values[0], 0)
    return pc.replace_substring_regex(values.cast(pa.large_string()), OUTER_BLANKS, "")
