"""Lists of documents, one list per query: the container that models train on and that measures are computed from."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import mmap
import reprlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.data.batches import Order, Part, RowNumbers, dataset
from tfr_smooth.data.column_values import TEXTS, ColumnValues, update_hash, value_type
from tfr_smooth.data.roles import DENSE, Roles

_MOST_LABELS = 1000  # of different labels that a summary counts; not tuned


class Summary(NamedTuple):
    """What `Lists.summary` returns.

    Attributes:
      queries: The number of queries.
      documents: The number of documents.
      num_features: The number of features: the width of the feature matrix, or the number of feature columns.
      longest_list: The number of documents of the longest list.
      highest_label: The highest label; 0 without labels.
      whole_labels: Whether all labels are whole numbers.
      label_counts: The number of documents by label, sorted by label; empty for more than 1,000 different labels.
      missing: The number of missing values by feature column, for columns that have any.

    Example:
      >>> from tfr_smooth import data
      >>> lists = data.from_arrays([[0.1], [0.2], [0.3]], [1, 0, 2], ["a", "b", "a"])
      >>> lists.summary().label_counts
      {0.0: 1, 1.0: 1, 2.0: 1}
    """

    queries: int
    documents: int
    num_features: int
    longest_list: int
    highest_label: float
    whole_labels: bool
    label_counts: dict[float, int]
    missing: dict[str, int]


class Lists:
    """The documents of queries as Apache Arrow columns, in memory or memory-mapped from a file.

    The functions `from_arrays`, `from_table`, `read_files`, `read_letor` and `read_records` create it. Queries are in
    the order of their first row, and the documents of a query in the order of their rows. `take`, `split` and `shard`
    select queries without a copy of the columns.

    Args:
      columns: The columns of all rows, as checked by `checks.checked`.
      roles: The roles of the columns.
      query_ids: The id of each query.
      lengths: int64 [queries], the number of documents of each query.
      order: The rows in the order of the places, int64 [rows]. None for rows that are in this order.
      pages: The memory map of the columns. None for columns in memory.

    Attributes:
      roles: The roles of the columns.
      source: The columns with the rows of the source, also those of queries that are not selected.
      query_ids: The id of each query, as an Arrow array.
      lengths: int64 [queries], the number of documents of each query.
      is_prepared: Whether the features are those that a `TableFeatures` made of the columns.

    Example:
      >>> from tfr_smooth import data
      >>> lists = data.from_arrays([[0.1], [0.2], [0.3]], [1, 0, 2], ["a", "b", "a"])
      >>> len(lists), lists.starts.tolist(), lists.values("label").tolist()
      (2, [0, 2, 3], [1.0, 2.0, 0.0])
    """

    is_prepared = False

    def __init__(
        self,
        columns: pa.Table,
        roles: Roles,
        *,
        query_ids: Any,
        lengths: np.ndarray,
        order: np.ndarray | None = None,
        pages: mmap.mmap | None = None,
    ) -> None:
        self.roles, self.query_ids, self.lengths = roles, query_ids, lengths
        self.source, self._order, self._pages = columns, order, pages
        self._readers: dict[str, ColumnValues] = {}  # of columns, shared by selections of queries
        self._begins = self.starts[:-1]  # the place of the first document of each query

    @classmethod
    def of_columns(cls, columns: pa.Table, roles: Roles) -> Lists:
        """Returns the lists of columns, with the rows of a query in any places.

        Args:
          columns: The columns, as checked by `checks.checked`.
          roles: The roles of the columns.

        Returns:
          The lists.
        """
        codes = columns[roles.query].combine_chunks().dictionary_encode()
        numbers = codes.indices.to_numpy(zero_copy_only=False)
        # Numbers are given by first appearance, so they never fall if the rows of each query are together.
        order = None if (np.diff(numbers) >= 0).all() else np.argsort(numbers, kind="stable")
        lengths = np.bincount(numbers, minlength=len(codes.dictionary))
        return cls(columns, roles, query_ids=codes.dictionary, lengths=lengths, order=order)

    def __len__(self) -> int:
        """The number of queries."""
        return len(self.lengths)

    @property
    def documents(self) -> int:
        """The number of documents."""
        return int(self.lengths.sum())

    @property
    def num_features(self) -> int:
        """The width of the column "features", or the number of feature columns."""
        return self.source[DENSE].type.list_size if self.is_dense else len(self.roles.features)

    @property
    def is_dense(self) -> bool:
        """Whether the features are the matrix in the column "features"."""
        return self.roles.features == (DENSE,) and value_type(self.source[DENSE].type) == "vector"

    @property
    def starts(self) -> np.ndarray:
        """int64 [queries + 1], the index of the first document of each query, then the number of documents."""
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)

    @property
    def query_of_document(self) -> np.ndarray:
        """int64 [documents], the index of the query of each document."""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def rows(self) -> np.ndarray:
        """int64 [documents], the row of each document in the source."""
        return self.rows_of(np.arange(len(self)), self.lengths)

    @property
    def table(self) -> pa.Table:
        """The columns, with the documents in order; copied only if the rows of the source have another order."""
        rows = self.rows
        is_whole = len(rows) == len(self.source) and (np.diff(rows) == 1).all()
        return self.source if is_whole else self.source.take(pa.array(rows))

    def rows_of(self, queries: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Returns the rows of the first documents of queries.

        Args:
          queries: int64 [n], indices of queries.
          lengths: int64 [n], the number of documents of each.

        Returns:
          int64 [sum of the lengths], rows of the source.
        """
        ends = np.cumsum(lengths)
        places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(self._begins[queries] - (ends - lengths), lengths)
        return places if self._order is None else self._order[places]

    def release(self) -> None:
        """Lets the operating system take back the memory of columns that are mapped from a file.

        It reads them again where they are used. Without this, they count as memory of this process.
        """
        if self._pages is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._pages.madvise(mmap.MADV_DONTNEED)

    def digest(self) -> str:
        """Returns a hash of the content: of the columns, the order of the rows, the queries and the roles.

        Time O(size of the columns).
        """
        content = hashlib.sha256(repr(self.roles).encode())
        for array in (self.rows, self.lengths):
            content.update(np.ascontiguousarray(array).data)
        for name, column in zip(self.source.column_names, self.source.columns, strict=True):
            content.update(name.encode())
            for chunk in column.chunks:
                update_hash(content, chunk)
                self.release()
        return content.hexdigest()[:16]

    def column(self, name: str) -> ColumnValues:
        """Returns the reader of a column by row.

        Args:
          name: The name of the column.

        Returns:
          A function of rows.
        """
        if name not in self._readers:
            name = _arguments.choice("name", name, self.source.column_names)
            self._readers[name] = ColumnValues(self.source[name], is_position=name == self.roles.position)
        return self._readers[name]

    def values(self, name: str) -> np.ndarray:
        """Returns the values of a column, with the documents in order.

        Args:
          name: The name of the column.

        Returns:
          [documents, ...]: numbers and booleans as float32, NaN if missing; text as bytes, b"" if missing; dates as
          int64 seconds since 1970-01-01 UTC, the smallest int64 if missing; vectors [documents, d]; sets padded with
          NaN or b"".

        Raises:
          ValueError: If there is no such column.
        """
        return self.column(name)(self.rows)

    def take(self, queries: Any) -> Lists:
        """Returns the lists of some queries, without a copy of the columns.

        Args:
          queries: Indices of queries, integers [n], or booleans [queries].

        Returns:
          The lists, in the order of the indices.

        Raises:
          ValueError: If an index is not that of a query.
        """
        chosen = np.asarray(queries)
        if chosen.dtype.kind == "b" and chosen.shape == (len(self),):
            chosen = np.flatnonzero(chosen)
        if chosen.size == 0:
            chosen = chosen.astype(np.int64)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or ((chosen < 0) | (chosen >= len(self))).any():
            raise ValueError(f"`queries` must be indices of the {len(self)} queries, got {reprlib.repr(queries)}.")
        taken = copy.copy(self)
        taken.query_ids = self.query_ids.take(pa.array(chosen))
        taken.lengths, taken._begins = self.lengths[chosen], self._begins[chosen]
        return taken

    def replace(self, roles: Roles, columns: Mapping[str, Any] | None = None) -> Lists:
        """Returns the same lists with other roles and columns.

        Args:
          roles: The roles. Columns without a role are left out.
          columns: New columns by name, Arrow arrays with the rows of the source; valid for their role.

        Returns:
          The lists.
        """
        replaced, columns = copy.copy(self), columns or {}
        by_name = {name: columns[name] if name in columns else self.source[name] for name in roles.columns}
        replaced.is_prepared = self.is_prepared and roles.features == self.roles.features
        replaced.roles, replaced.source, replaced._readers = roles, pa.table(by_name), {}
        return replaced

    def without(self, *roles: str) -> Lists:
        """Returns the same lists without the columns of some roles.

        Args:
          *roles: The names of the roles, such as "labels" and "weight".

        Returns:
          The lists.
        """
        nothing: dict[str, Any] = {role: () if role == "labels" else None for role in roles}
        return self.replace(dataclasses.replace(self.roles, **nothing))

    def split(self, fraction: float, *, seed: int = 0) -> tuple[Lists, Lists]:
        """Splits the queries in two parts at random, without a copy of the columns.

        Args:
          fraction: The fraction of the queries in the second part, in (0, 1).
          seed: Seed of the split, >= 0.

        Returns:
          The two parts. Queries keep their order, and each part has at least one.

        Raises:
          ValueError: If an argument is invalid, or there are fewer than two queries.

        Example:
          >>> import numpy as np
          >>> from tfr_smooth import data
          >>> lists = data.from_arrays(np.ones([20, 1]), None, np.arange(20) // 2)
          >>> train, valid = lists.split(0.3, seed=1)
          >>> len(train), len(valid)
          (7, 3)
        """
        random = np.random.default_rng(_arguments.integer("seed", seed, least=0))
        count = len(self) * _arguments.real("fraction", fraction, above=0.0, below=1.0)
        if len(self) < 2:
            raise ValueError(f"`fraction` must have at most one part per query, got 2 for {len(self)}.")
        held, rest = np.split(random.permutation(len(self)), [min(max(round(count), 1), len(self) - 1)])
        return self.take(np.sort(rest)), self.take(np.sort(held))

    def sample(self, negatives: int, *, seed: int = 0) -> Lists:
        """Samples the documents that are not relevant, for training, without a copy of the columns.

        SoftRank (WSDM 2008, Section 4.1) trains on the judged documents and at most 30 others of each query.

        Args:
          negatives: The largest number of documents without a label above 0 to keep per query, >= 1. Documents with a
            label above 0 are kept.
          seed: Seed of the sample, >= 0.

        Returns:
          The lists. Documents keep their order.

        Raises:
          ValueError: If an argument is invalid, or the lists have no labels.

        Time O(n log n) and memory O(n) for n documents.

        Example:
          >>> import numpy as np
          >>> from tfr_smooth import data
          >>> labels = [0, 0, 2, 0, 0, 1, 0]
          >>> lists = data.from_arrays(np.arange(7.0)[:, None], labels, [1, 1, 1, 1, 1, 2, 2])
          >>> lists.sample(negatives=2).lengths.tolist()
          [3, 2]
        """
        _arguments.integer("negatives", negatives, least=1)
        draws = np.random.default_rng(_arguments.integer("seed", seed, least=0)).random(self.documents)
        if not self.roles.labels:
            raise ValueError("`negatives` requires lists with labels, got none.")
        is_relevant = np.any([self.values(name) > 0.0 for name in self.roles.labels], axis=0)
        order = np.lexsort((draws, ~is_relevant, self.query_of_document))  # relevant documents first in each query
        place = np.arange(self.documents) - np.repeat(self.starts[:-1], self.lengths)
        most = np.add.reduceat(is_relevant, self.starts[:-1]) + negatives if len(self) else self.lengths
        sampled = copy.copy(self)
        sampled._order = self.rows[np.sort(order[place < np.repeat(most, self.lengths)])]
        sampled.lengths = np.minimum(self.lengths, most)
        sampled._begins = sampled.starts[:-1]
        return sampled

    def shard(self, index: int, count: int) -> Lists:
        """Returns every `count`-th query, for the worker of this index.

        Args:
          index: The index of the worker, from 0.
          count: The number of workers, >= 1.

        Returns:
          The lists of the worker.

        Raises:
          ValueError: If an argument is invalid, or there are fewer queries than workers.
        """
        _arguments.integer("count", count, least=1)
        if _arguments.integer("index", index, least=0) >= count or count > len(self):
            raise ValueError(f"`index` must be less than `count`, at most {len(self)}, got {index} and {count}.")
        return self.take(np.arange(index, len(self), count))

    def summary(self) -> Summary:
        """Returns counts of queries, documents, labels and missing values.

        Returns:
          The `Summary`.

        Time and memory O(documents).
        """
        labels = [np.zeros(0, np.float32), *map(self.values, self.roles.labels)]  # none without a column of labels
        distinct, numbers = np.unique(np.concatenate(labels), return_counts=True)
        whole, highest = bool((distinct == np.round(distinct)).all()), float(distinct.max(initial=0.0))
        few = len(distinct) <= _MOST_LABELS
        counts = dict(zip(distinct.tolist(), numbers.tolist(), strict=True)) if few else {}
        missing, rows = {}, self.rows
        for name in self.roles.features:
            column = self.source[name]
            is_missing = pc.is_null(column, nan_is_null=True).to_numpy()[rows]
            if is_missing.any() and value_type(column.type) != "vector":
                missing[name] = int(is_missing.sum())
        longest = int(self.lengths.max(initial=0))
        return Summary(len(self), self.documents, self.num_features, longest, highest, whole, counts, missing)

    def to_pandas(self) -> Any:
        """Returns the documents as a pandas DataFrame, in order; a column "features" becomes columns "1", "2", ...

        Returns:
          The DataFrame.

        Raises:
          ImportError: If pandas is not installed; the extra `tfr_smooth[pandas]` includes it.
        """
        with _arguments.needed("pandas", extra="pandas", by="`to_pandas`"):
            import pandas as pd

        table = self.table
        if DENSE not in table.column_names or value_type(table[DENSE].type) != "vector":
            return table.to_pandas()
        frame, matrix = table.drop([DENSE]).to_pandas(), self.values(DENSE)
        numbers = pd.DataFrame(matrix, columns=[str(number) for number in range(1, matrix.shape[1] + 1)])
        return pd.concat([frame, numbers], axis=1)

    def batches(
        self,
        batch_size: int,
        *,
        shuffle: bool = False,
        seed: int | None = None,
        first_epoch: int = 0,
        num_epochs: int | None = 1,
        list_size: int | None = None,
        group_by_length: bool = False,
        drop_remainder: bool = False,
        ids: bool = False,
    ) -> tf.data.Dataset:
        """Returns a dataset of padded batches of lists.

        Args:
          batch_size: Queries per batch, >= 1.
          shuffle: Whether each epoch has a new order of the queries.
          seed: Seed of the order, >= 0. The order of epoch e depends only on (`seed`, e), so a dataset with
            `first_epoch=e` resumes exactly where an uninterrupted one would be. Each new pass over the dataset restarts
            at `first_epoch`: with `num_epochs=1`, `model.fit(dataset, epochs=5)` uses the same order five times (use
            `num_epochs=None` with `steps_per_epoch`, or a new dataset for each epoch). None shuffles differently in
            each epoch and each pass, depending on `tf.random.set_seed`.
          first_epoch: Index of the first epoch, >= 0. Used only with `seed`.
          num_epochs: Number of epochs, >= 1. None repeats forever. Batches never span epochs.
          list_size: Documents per list, >= 1; longer lists are truncated to their first documents. None pads to the
            longest list of each batch.
          group_by_length: Whether to batch lists of similar length to reduce padding. Queries are sorted by length
            within pools of 50 batches. With `shuffle`, lengths get up to 10% noise, so that batches differ from epoch
            to epoch, and the batches are shuffled. Each epoch still contains every query once, in batches of the same
            size.
          drop_remainder: Whether to drop the last batch of an epoch if it is not full.
          ids: Whether to add "query_id" and "doc_id" to the inputs, as text.

        Returns:
          A dataset of `(inputs, labels)`, or of `(inputs, labels, weights)` with weights or propensities. The labels
          are float32 [batch, list], -1 for padding, and 0 for unlabeled documents; [batch, list, objectives] for
          several labels. The weights are float32 [batch, list], 0 for padding. `inputs` is a dict with
            the features by column, [batch, list, ...], as described in `values`, 0 or "" for padding: "features" is
            float32 [batch, list, num_features];
            "mask": bool [batch, list], False for padding;
            "position": int32 [batch, list], 0 for padding, for lists with positions;
            "query_id": string [batch], and "doc_id": string [batch, list], "" for padding, with `ids`.
          With propensities, there is one list per click, weighted by the inverse propensity, as by
          `one_list_per_click`. The dataset knows its number of batches.

        Raises:
          ValueError: If an argument is invalid.

        Under `tf.distribute`, every worker reads all queries and keeps its share of each batch; or it reads its own
        `shard`.

        Example:
          >>> from tfr_smooth import data
          >>> lists = data.from_arrays([[0.1], [0.2], [0.3]], [1, 0, 2], ["a", "b", "a"])
          >>> inputs, labels = next(iter(lists.batches(2, ids=True)))
          >>> inputs["doc_id"].numpy().tolist(), labels.numpy().tolist()
          ([[b'0', b'2'], [b'1', b'']], [[1.0, 2.0], [0.0, -1.0]])
        """
        roles = self.roles
        inputs = {}
        for name in roles.features:
            values = self.column(name)
            inputs[name] = Part(values, b"" if values.dtype == object else 0)
        if roles.position is not None:
            inputs["position"] = Part(self.column(roles.position), 0)
        if _arguments.boolean("ids", ids):
            if both := sorted({"query_id", "doc_id"} & inputs.keys()):
                raise ValueError(f"`ids` must be False, as there are features of these names, got True and {both}.")
            texts = self.query_ids if value_type(self.query_ids.type) in TEXTS else self.query_ids.cast(pa.string())
            inputs["query_id"] = Part(ColumnValues(pa.chunked_array([texts])), b"", per_list=True)
            inputs["doc_id"] = Part(RowNumbers() if roles.document_id is None else self.column(roles.document_id), b"")
        weights = {role: getattr(roles, role) for role in ("weight", "propensity")}
        return dataset(
            inputs,
            [Part(self.column(name), -1) for name in roles.labels],
            {role: Part(self.column(name), 0) for role, name in weights.items() if name is not None},
            lists=self,
            order=Order(batch_size, shuffle, seed, first_epoch, num_epochs, group_by_length, drop_remainder),
            list_size=_arguments.integer_or_none("list_size", list_size, least=1),
        )


def have_different_labels(lists: Lists) -> np.ndarray:
    """Returns which lists have documents of different labels, so that a ranking can be wrong, bool [lists]."""
    differ, starts = np.zeros(len(lists), bool), lists.starts[:-1]
    for labels in map(lists.values, lists.roles.labels):
        differ |= np.maximum.reduceat(labels, starts) > np.minimum.reduceat(labels, starts)
    return differ
