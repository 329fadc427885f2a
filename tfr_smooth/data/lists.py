"""Lists of documents, one list per query: the container that models train on and that measures are computed from."""

from __future__ import annotations

import copy
import hashlib
import mmap
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf
from typing_extensions import Unpack

from tfr_smooth import _arguments
from tfr_smooth.data import batches, column_values
from tfr_smooth.data.column_values import ColumnValues
from tfr_smooth.data.reading import checks
from tfr_smooth.data.reading.text_files import FilePattern
from tfr_smooth.data.roles import DENSE, RoleNames, Roles

if TYPE_CHECKING:
    from tfr_smooth.data.reading.letor_parser import LetorFormat

_MOST_LABELS = 1000  # of different labels that a summary counts


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
      >>> lists = data.Lists.from_arrays([[0.1], [0.2], [0.3]], [1, 0, 2], ["a", "b", "a"])
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

    Create it by `from_arrays`, `from_table`, `from_files`, `from_letor` or `from_records`. Queries are in the order of
    their first row, and the documents of a query in the order of their rows. `take`, `split` and `shard` select queries
    without a copy of the columns.

    Args:
      columns: The columns of all rows, as checked by `checks.checked`.
      roles: The roles of the columns.
      query_ids: The id of each query.
      lengths: int64 [queries], the number of documents of each query.
      order: The rows in the order of the places, int64 [rows]. None for rows that are in this order.
      pages: The memory map of the columns. None for columns in memory.

    Attributes:
      roles: The roles of the columns.
      query_ids: The id of each query, as an Arrow array.
      lengths: int64 [queries], the number of documents of each query.

    Example:
      >>> from tfr_smooth import data
      >>> lists = data.Lists.from_arrays([[0.1], [0.2], [0.3]], [1, 0, 2], ["a", "b", "a"])
      >>> len(lists), lists.starts.tolist(), lists.values("label").tolist()
      (2, [0, 2, 3], [1.0, 2.0, 0.0])
    """

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
        self._columns, self._order, self._pages = columns, order, pages
        self._begins = self.starts[:-1]  # the place of the first document of each query

    @classmethod
    def from_arrays(
        cls,
        features: Any,
        labels: Any = None,
        qid: Any = None,
        *,
        group: Any = None,
        weights: Any = None,
        propensities: Any = None,
        positions: Any = None,
        document_ids: Any = None,
    ) -> Lists:
        """Returns the lists of arrays with one row per document.

        Args:
          features: Finite numbers [rows, num_features], stored as float32: subtract an offset from large numbers with
            small differences.
          labels: Finite numbers >= 0, [rows], or [rows, objectives] for labels of several objectives. None for
            unlabeled documents.
          qid: The query of each row, [rows], as numbers or text, in any order.
          group: Alternative to `qid`: the number of rows per query, integers >= 1, [queries], for rows sorted by query
            as in LightGBM and XGBoost. Exactly one of them must be given.
          weights: Finite numbers >= 0, [rows]. For one weight per query, repeat it in all rows of the query.
          propensities: Numbers > 0, [rows], if the labels are clicks: see `batches`.
          positions: Whole numbers >= 0 at which the documents were shown, [rows], for `models.PositionBias`.
          document_ids: The ids of the documents, [rows]. None uses the numbers of the rows.

        Returns:
          The lists. The features are one column, "features".

        Raises:
          ValueError: If an argument is invalid. The message names the row of an invalid value.

        Time and memory O(rows * num_features); float32 features are not copied.

        Example:
          >>> from tfr_smooth import data
          >>> lists = data.Lists.from_arrays([[0.1], [0.2], [0.3]], [1, 0, 2], group=[2, 1])
          >>> for inputs, labels in lists.batches(2):
          ...     labels.numpy().tolist()
          [[1.0, 0.0], [2.0, -1.0]]
        """
        from tfr_smooth.data.reading import arrays

        table = arrays.dense_table("features", features)
        if not len(table):
            raise ValueError("`features` must have at least one row, got none.")
        of_roles = {
            "query": arrays.queries(qid, group, len(table)),
            "label": ("labels", labels),
            "weight": ("weights", weights),
            "propensity": ("propensities", propensities),
            "position": ("positions", positions),
            "document_id": ("document_ids", document_ids),
        }
        return arrays.lists_of(table, of_roles, argument="features")

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        query: str,
        stack: bool = False,
        **roles: Unpack[RoleNames],
    ) -> Lists:
        """Returns the lists of a table with one row per document, in any order.

        Args:
          table: A table of pandas, Polars, PyArrow, DuckDB or any other library with the Arrow PyCapsule interface
            (`__arrow_c_stream__`), or a dict of arrays.
          query: The column of query ids.
          stack: Whether to store the features, which must be known numbers, as one column "features", for models of
            such an input.
          **roles: The columns of other roles, of which `label` is required:
            `label`: the column of labels, or those of several objectives, possibly with weights: `{"click": 1.0}`. None
            for unlabeled documents.
            `features`: the feature columns: numbers, booleans, text, dates, vectors and sets, with missing values. None
            uses all columns without another role.
            `weight`: the column of weights.
            `propensity`: the column of propensities, if the labels are clicks: see `batches`.
            `position`: the column of positions at which the documents were shown.
            `document_id`: the column of document ids. None uses the numbers of the rows.

        Returns:
          The lists.

        Raises:
          ValueError: If a column is missing or has values that are not allowed. The message names the column and row.

        Columns are not copied, except for float64 columns with a role and stacked features.

        Example:
          >>> import pandas as pd
          >>> from tfr_smooth import data
          >>> frame = pd.DataFrame({"qid": [7, 7, 8], "label": [1, 0, 2], "bm25": [0.5, 0.1, 0.9]})
          >>> frame["title"] = list("abc")
          >>> lists = data.Lists.from_table(frame, query="qid", label="label")
          >>> inputs, labels = next(iter(lists.batches(2)))
          >>> inputs["bm25"].shape, inputs["title"].numpy().tolist()
          (TensorShape([2, 2]), [[b'a', b'b'], [b'c', b'']])
        """
        found = checks.as_arrow(table)
        chosen = Roles.of(found.column_names, query=query, **roles)
        if not len(found):
            raise ValueError("`table` must have at least one row, got none.")
        columns = checks.checked(found, chosen, stack=_arguments.boolean("stack", stack))
        return cls.of_columns(columns, chosen.stacked() if stack else chosen)

    @classmethod
    def from_files(
        cls,
        paths: FilePattern,
        *,
        query: str,
        stack: bool = False,
        format: str = "parquet",
        filesystem: Any = None,
        cache_dir: str | os.PathLike[str] | None = None,
        **roles: Unpack[RoleNames],
    ) -> Lists:
        r"""Returns the lists of Parquet, Feather or CSV files with one row per document.

        The files are read once, into a file of the cache folder that later calls in any process map into memory. So the
        lists may be larger than memory, if the rows of each query are together. Otherwise, they are sorted in memory.

        Args:
          paths: A path, a glob pattern, a folder with files or hive partitions (`year=2026/`), or a list of these; also
            URIs of a file system of pyarrow (`s3://`, `gs://`, `hdfs://`).
          query: The column of query ids.
          stack: Whether to store the features as one column "features".
          format: "parquet", "feather" (Arrow IPC) or "csv".
          filesystem: A file system of pyarrow or fsspec. None uses that of the paths.
          cache_dir: The cache folder, as for `from_letor`.
          **roles: The columns of other roles, as for `from_table`.

        Returns:
          The lists.

        Raises:
          ValueError: If an argument or value is invalid (`path: column, row`), or the rows of a query are not together
            and too many to sort.

        Time is linear in the size of the files. Memory holds about 64 MB of rows, and the query ids.

        Example:
          >>> import pathlib, tempfile
          >>> from tfr_smooth import data
          >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.csv"
          >>> _ = path.write_text("qid,label,bm25\n7,1,0.5\n7,0,0.1\n8,2,0.9\n")
          >>> lists = data.Lists.from_files(path, query="qid", label="label", format="csv", cache_dir=path.parent)
          >>> lists.lengths.tolist(), lists.values("bm25").tolist()
          ([2, 1], [0.5, 0.10000000149011612, 0.8999999761581421])
        """
        from tfr_smooth.data.reading import files

        _arguments.choice("format", format, files.FORMATS)
        _arguments.boolean("stack", stack)
        return files.lists_of(paths, format, filesystem, cache_dir, stack, {"query": query, **roles})

    @classmethod
    def from_letor(
        cls,
        file_pattern: FilePattern,
        *,
        num_features: int | None = None,
        format: LetorFormat | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
    ) -> Lists:
        r"""Returns the lists of LETOR or SVMlight text files.

        A line of a file is `label qid:text index:value ... # comment`, and the lines of a query are contiguous. Labels
        are numbers >= 0. Feature indices start at 1, in any order; features that a line omits are 0. The text after
        `qid:` may be any text without whitespace. Blank lines and lines that start with `#` are skipped. Lines may have
        Windows line ends, and a file may start with a UTF-8 byte order mark. The document id is X in a comment
        `#docid = X`, and "" if there is none. `format` describes other formats.

        The files are parsed once, into a file of the cache folder that later calls in any process map into memory. So
        the lists may be larger than memory.

        Args:
          file_pattern: A path, a glob pattern, or a list of these, on disk or on a file system of `tf.io.gfile`
            (`gs://`, `hdfs://`, ...). Files that end in `.gz`, `.bz2` or `.zst` are decompressed. Matches of a pattern
            are read in sorted order, a list in its own order.
          num_features: Width of the feature matrix, >= 1; a higher index in a file is an error. None uses the highest
            index in the files.
          format: The format of the files. None uses the defaults of `LetorFormat`.
          cache_dir: The cache folder, created if missing. Its files are written again when a source has changed (its
            size or modification time), and when they are damaged. None uses `$XDG_CACHE_HOME/tfr_smooth/lists`, by
            default `~/.cache/tfr_smooth/lists`.

        Returns:
          The lists. The features are one column, "features".

        Raises:
          ValueError: If an argument is invalid, a pattern matches no file, or the input is malformed
            (`path:line: problem`): a label or value that is not a finite float32 number, a negative label, no query id,
            an index that is below 1, repeated in a line or greater than `num_features`, a query whose lines are not
            contiguous or are in two files, a file without documents or features, damaged compressed data, or a query
            id that is not UTF-8.

        Time is linear in the size of the files. Memory holds about 64 MB of features, and the query ids.

        Example:
          >>> import pathlib, tempfile
          >>> from tfr_smooth import data
          >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.txt"
          >>> _ = path.write_text("1 qid:a 1:0.5 2:2 #docid = d7\n0 qid:a 2:1\n0 qid:b 1:0.1\n")
          >>> lists = data.Lists.from_letor(path, cache_dir=path.parent)
          >>> lists.summary()[:4], lists.values("features").tolist()
          ((2, 3, 2, 2), [[0.5, 2.0], [0.0, 1.0], [0.10000000149011612, 0.0]])
        """
        from tfr_smooth.data.reading import letor

        return letor.lists_of(file_pattern, num_features, format, cache_dir)

    @classmethod
    def from_records(
        cls,
        file_pattern: FilePattern,
        *,
        query: str | None,
        stack: bool = False,
        example_features: Mapping[str, Any] | None = None,
        context_features: Mapping[str, Any] | None = None,
        kind: str = "elwc",
        cache_dir: str | os.PathLike[str] | None = None,
        **roles: Unpack[RoleNames],
    ) -> Lists:
        r"""Returns the lists of TFRecord files with one query per record, as TF-Ranking reads them.

        Each feature of the documents is a column. Each feature of the context is, too: its value is repeated for all
        documents of the list. The files are read once, into a file of the cache folder, as by `from_letor`.

        Args:
          file_pattern: A path, a glob pattern, or a list of these, as for `from_letor`. Files that end in `.gz` are
            decompressed.
          query: The feature of the context with query ids, text or an integer, each in one record. None uses the
            number of the record.
          stack: Whether to store the features as one column "features".
          example_features: The specs of the documents' features: `tf.io.FixedLenFeature` of shape [] for a number or
            text and [n] for a vector, `tf.io.VarLenFeature` or `tf.io.RaggedFeature` for sets. A document without a
            value is an error if the spec has no default. Labels and so on may be omitted. None takes all features of
            the first 1,000 documents (in whole records), with their types and sizes; numbers and text may be missing.
          context_features: The same for the context.
          kind: "elwc" (`ExampleListWithContext`) or "sequence_example" (`tf.train.SequenceExample`, with one step per
            document).
          cache_dir: The cache folder, as for `from_letor`.
          **roles: The features of other roles, as for `from_table`. Numbers in names sort as numbers.

        Returns:
          The lists.

        Raises:
          ValueError: If an argument is invalid, or a record is (`path:record N: problem`, counted from 1): damaged, not
            of this kind, without documents, or with other types or sizes, values that are not allowed, or the query of
            an earlier record.

        Time is linear in the size of the files. Memory holds about 64 MB of columns, and the query ids.

        Example:
          >>> import pathlib, tempfile
          >>> import tensorflow as tf
          >>> from tfr_smooth import data
          >>> folder = pathlib.Path(tempfile.mkdtemp())
          >>> table = {"qid": [7, 7, 8], "label": [1, 0, 2], "price": [0.5, None, 0.9], "tags": [["a", "b"], [], ["c"]]}
          >>> paths = data.Lists.from_table(table, query="qid", label="label").to_tfrecord(folder / "r", num_shards=2)
          >>> specs = {"price": tf.io.FixedLenFeature([], tf.float32, -1.0), "tags": tf.io.RaggedFeature(tf.string)}
          >>> lists = data.Lists.from_records(
          ...     paths, query="qid", label="label", example_features=specs, cache_dir=folder
          ... )
          >>> lists.lengths.tolist(), lists.values("price").tolist(), lists.values("tags").tolist()
          ([2, 1], [0.5, -1.0, 0.8999999761581421], [[b'a', b'b'], [b'', b''], [b'c', b'']])
        """
        from tfr_smooth.data.reading import records

        _arguments.choice("kind", kind, records.KINDS)
        _arguments.boolean("stack", stack)
        specs = (example_features, context_features)
        return records.lists_of(file_pattern, kind, *specs, cache_dir, stack, {"query": query, **roles})

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
        return self._columns[DENSE].type.list_size if self.is_dense else len(self.roles.features)

    @property
    def is_dense(self) -> bool:
        """Whether the features are the matrix in the column "features"."""
        return self.roles.features == (DENSE,) and pa.types.is_fixed_size_list(self._columns[DENSE].type)

    @property
    def source(self) -> pa.Table:
        """The columns with the rows of the source, also those of queries that are not selected."""
        return self._columns

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
        is_whole = len(rows) == len(self._columns) and (np.diff(rows) == 1).all()
        return self._columns if is_whole else self._columns.take(pa.array(rows))

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
        found = hashlib.sha256(repr(self.roles).encode())
        for array in (self.rows, self.lengths):
            found.update(np.ascontiguousarray(array).data)
        for name, column in zip(self._columns.column_names, self._columns.columns, strict=True):
            found.update(name.encode())
            for chunk in column.chunks:
                column_values.update_hash(found, chunk)
                self.release()
        return found.hexdigest()[:16]

    def column(self, name: str) -> ColumnValues:
        """Returns the reader of a column by row.

        Args:
          name: The name of the column.

        Returns:
          A function of rows.
        """
        name = _arguments.name("name", name, self._columns.column_names)
        return ColumnValues(self._columns[name], is_position=name == self.roles.position)

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
            raise ValueError(f"`queries` must be indices of the {len(self)} queries, got {queries!r}.")
        found = copy.copy(self)
        found.query_ids = self.query_ids.take(pa.array(chosen))
        found.lengths, found._begins = self.lengths[chosen], self._begins[chosen]
        return found

    def replace(self, roles: Roles, columns: Mapping[str, Any] | None = None) -> Lists:
        """Returns the same lists with other roles and columns.

        Args:
          roles: The roles. Columns without a role are left out.
          columns: New columns by name, Arrow arrays with the rows of the source; valid for their role.

        Returns:
          The lists.
        """
        found, columns = copy.copy(self), columns or {}
        by_name = {name: columns[name] if name in columns else self._columns[name] for name in roles.columns}
        found.roles, found._columns = roles, pa.table(by_name)
        return found

    def split(self, fraction: float | Mapping[str, float], *, seed: int = 0) -> Any:
        """Splits the queries at random, without a copy of the columns.

        Args:
          fraction: The fraction of the queries in the second part, in (0, 1), or the fraction of each part by its name,
            with a sum of 1.
          seed: Seed of the split, >= 0.

        Returns:
          The two parts; or the parts by name. Queries keep their order, and each part has at least one.

        Raises:
          ValueError: If an argument is invalid, or there are fewer queries than parts.

        Example:
          >>> import numpy as np
          >>> from tfr_smooth import data
          >>> lists = data.Lists.from_arrays(np.ones([20, 1]), None, np.arange(20) // 2)
          >>> train, valid = lists.split(0.3, seed=1)
          >>> len(train), {name: len(part) for name, part in lists.split({"a": 0.5, "b": 0.4, "c": 0.1}).items()}
          (7, {'a': 5, 'b': 4, 'c': 1})
        """
        random = np.random.default_rng(_arguments.integer("seed", seed, least=0))
        if not isinstance(fraction, Mapping):
            fraction = {"rest": 1.0 - _arguments.real("fraction", fraction, above=0.0, below=1.0), "held": fraction}
            rest, held = self._parts(fraction, random).values()
            return rest, held
        for name, value in fraction.items():
            _arguments.real(f"fraction[{name!r}]", value, above=0.0)
        if abs(sum(fraction.values()) - 1.0) > 1e-6:
            raise ValueError(f"`fraction` must have a sum of 1, got {sum(fraction.values())}.")
        return self._parts(fraction, random)

    def _parts(self, fractions: Mapping[str, float], random: np.random.Generator) -> dict[str, Lists]:
        if len(self) < len(fractions):
            raise ValueError(f"`fraction` must have at most one part per query, got {len(fractions)} for {len(self)}.")
        rest, found = random.permutation(len(self)), {}
        for others, name in reversed([*enumerate(fractions)]):  # the first part, usually the largest, gets the rest
            size = min(max(round(fractions[name] * len(self)), 1), len(rest) - others) if others else len(rest)
            found[name], rest = self.take(np.sort(rest[:size])), rest[size:]
        return {name: found[name] for name in fractions}

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
        counts: dict[float, int] = {}
        whole, highest = True, 0.0
        if self.roles.labels:
            labels = np.concatenate([self.values(name) for name in self.roles.labels])
            found, numbers = np.unique(labels, return_counts=True)
            whole, highest = bool((found == np.round(found)).all()), float(found.max(initial=0.0))
            if len(found) <= _MOST_LABELS:
                counts = dict(zip(found.tolist(), numbers.tolist(), strict=True))
        missing, rows = {}, self.rows
        for name in self.roles.features:
            if not pa.types.is_fixed_size_list(self._columns[name].type):
                missing[name] = int(pc.is_null(self._columns[name], nan_is_null=True).to_numpy()[rows].sum())
        return Summary(
            len(self), self.documents, self.num_features, int(self.lengths.max(initial=0)), highest, whole, counts,
            {name: number for name, number in missing.items() if number},
        )  # fmt: skip

    def to_pandas(self) -> Any:
        """Returns the documents as a pandas DataFrame, in order; a column "features" becomes columns "1", "2", ...

        Returns:
          The DataFrame.
        """
        table = self.table
        if DENSE not in table.column_names or not pa.types.is_fixed_size_list(table[DENSE].type):
            return table.to_pandas()
        import pandas as pd

        frame, matrix = table.drop([DENSE]).to_pandas(), self.values(DENSE)
        numbers = pd.DataFrame(matrix, columns=[str(number) for number in range(1, matrix.shape[1] + 1)])
        return pd.concat([frame, numbers], axis=1)

    def to_letor(self, path: str | os.PathLike[str]) -> None:
        """Writes the documents as a LETOR text file, which `from_letor` reads as the same lists.

        Args:
          path: The file to write, atomically; compressed if its name ends in ".gz", ".bz2" or ".zst". Floats have as
            many digits as float32 needs.

        Raises:
          ValueError: If the features are not one column "features", there are several labels, or an id has whitespace.
        """
        from tfr_smooth.data.reading import letor

        letor.write(self, path)

    def to_tfrecord(
        self, path: str | os.PathLike[str], *, num_shards: int = 1, context_features: Sequence[str] = ()
    ) -> list[Path]:
        """Writes the documents as TFRecord files of TF-Ranking's `ExampleListWithContext`, one record per query.

        Each column is a feature of its name: numbers are floats or integers, text is bytes, dates are seconds since
        1970-01-01 UTC. Missing values have no feature. The query is in the context. `from_records` reads the files as
        the same lists.

        Args:
          path: The file to write; compressed if its name ends in ".gz". Several shards are named
            `train.tfrecord-00000-of-00003` and so on, which `train.tfrecord-*` matches, or
            `train.tfrecord-00000-of-00003.gz`.
          num_shards: The number of files, >= 1 and at most the number of queries. Each has about the same number of
            consecutive queries.
          context_features: Columns with one value per query to write to the context, too.

        Returns:
          The paths of the files, which are replaced when all are written.

        Raises:
          ValueError: If an argument is invalid, a column of the context has several values in a query, a set has a
            missing value, or shards of a different number of shards exist.

        Time is linear in the number of values. Memory holds 256 queries.
        """
        from tfr_smooth.data.reading import records

        return records.write(self, path, num_shards, context_features)

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
        portable: bool = False,
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
          portable: Whether the dataset contains the data, up to 2 GB, and runs without Python, so that it can be sent
            to other processes, such as the workers of `tf.data`'s service.

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
          >>> lists = data.Lists.from_arrays([[0.1], [0.2], [0.3]], [1, 0, 2], ["a", "b", "a"])
          >>> inputs, labels = next(iter(lists.batches(2, ids=True)))
          >>> inputs["doc_id"].numpy().tolist(), labels.numpy().tolist()
          ([[b'0', b'2'], [b'1', b'']], [[1.0, 2.0], [0.0, -1.0]])
        """
        order = batches.Order(batch_size, shuffle, seed, first_epoch, num_epochs, group_by_length, drop_remainder)
        list_size = _arguments.integer_or_none("list_size", list_size, least=1)
        _arguments.boolean("ids", ids)
        return batches.dataset(self, order, list_size, ids, _arguments.boolean("portable", portable))
