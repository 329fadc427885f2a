"""Tables of items or users: their columns as features of an encoder."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfr_smooth.columns import Column, TableFeatures, column_arrays, infer_columns
from tfr_smooth.columns.kinds import types_of_kinds
from tfr_smooth.columns.learning import checked_table
from tfr_smooth.data.reading import checks
from tfr_smooth.data.reading.ids import checked_ids, ids_after, indices_of
from tfr_smooth.data.reading.sources import of_files
from tfr_smooth.models.encoded_scorer import EncodedScorer
from tfr_smooth.recommendation.catalog_order import blocks
from tfr_smooth.recommendation.interactions import sparse

# The size of the vectors of codes; and of the training of an encoder, the least epochs and steps, the rows of a batch
# and the learning rate of Adam. Not tuned: `benchmarks/new_items.py` measures them.
_EMBEDDING_DIM = 16
_EPOCHS, _STEPS, _ROWS, _RATE = 10, 1500, 64, 0.001
_ROWS_AT_ONCE, _STEPS_PER_CALL = 2**12, 50
# How many rows are similar to each, chosen on held-out items of Toys and Games. And the most pairs of rows with a
# common term, which bounds time; and of those at once, which bounds memory. Not tuned.
_SIMILAR, _MOST_PAIRS, _PAIRS_AT_ONCE = 100, 2**30, 2**24


class Table(NamedTuple):
    """The features of all users or items.

    Attributes:
      columns: The columns.
      values: float32 [rows, features], as from `columns.TableFeatures`.
      terms: Returns the categories, ids, members of sets and words of rows: ones in a sparse array [rows, terms].
    """

    columns: list[Column]
    values: np.ndarray
    terms: Callable[[], Any]


def read_table(
    what: str, table: Any, name: str, ids: np.ndarray, kinds: Mapping[str, str], columns: Sequence[Column] | None
) -> tuple[np.ndarray, Table]:
    """Returns the ids of a table, the known ones first, and its features in their order.

    Args:
      what: "users" or "items".
      table: The table.
      name: The column of ids.
      ids: The ids that the table must have. Further ones come after them.
      kinds: The kinds of columns that are not to be inferred.
      columns: The columns, if they are known; otherwise, they are inferred.
    """
    types = types_of_kinds(kinds) if columns is None else {column.name: column.reads for column in columns}
    found = checks.as_arrow(of_files(table, types), what)
    if name not in found.column_names or found.num_columns < 2:
        raise ValueError(f"`{what}` must have the column {name!r} of ids and others, got {found.column_names}.")
    own = checked_ids(what, found[name], None, like=ids)
    missing = sorted(set(ids.tolist()).difference(own.tolist()), key=str)
    if missing:
        raise ValueError(f"`{what}` must have a row for each id of the interactions, got none for {missing[0]!r}.")
    order = ids_after(what, ids, own)
    # Checked first: Arrow cannot take rows of all types, such as the texts of Polars.
    found = checked_table(found.drop_columns([name])).take(indices_of(what[:-1], own, order))
    if columns is None:
        given = {column: kind for column, kind in kinds.items() if column in found.column_names}
        columns = infer_columns(found, kinds=given)
    arrays = column_arrays(found, columns)
    terms = functools.partial(_terms, columns, arrays)
    return order, Table(list(columns), TableFeatures(columns)(arrays).numpy(), terms)


def similarities(terms: Any) -> Any:
    r"""Returns how similar rows are by their terms: a sparse array [rows, rows], >= 0, whose rows have the sum 1, or 0.

    A row has the cosines of its vector with those of the 100 most similar other rows, random ones of equally similar
    ones, divided by their sum. The vector has $\ln(n / n_t)$ for each term of the row that $n_t$ of all n rows have.
    The most common terms do not count if more than $2^{30}$ pairs of rows have a common term.

    Args:
      terms: As the `terms` of a `Table` returns them.

    Time and memory O(pairs of rows with a common term), of which 800 MB exist at a time at most.
    """
    rows_of_term = np.bincount(terms.indices, minlength=terms.shape[1])
    order = np.argsort(rows_of_term, kind="stable")
    weights = np.log(terms.shape[0] / np.maximum(rows_of_term, 1))
    weights[order[np.cumsum(rows_of_term[order] ** 2.0) > _MOST_PAIRS]] = 0.0
    vectors, random, found = _scaled(terms * weights, 2), np.random.default_rng(0), []
    transposed = vectors.T.tocsr()
    for rows in blocks(terms.shape[0], terms.shape[0], _PAIRS_AT_ONCE):
        block = vectors[rows] @ transposed
        starts, is_best = block.indptr, np.zeros(block.nnz)
        block.data[block.indices == rows.start + np.repeat(np.arange(len(starts) - 1), np.diff(starts))] = 0.0
        keys = -block.data * random.uniform(1.0 - 1e-9, 1.0, block.nnz)
        for begin, end in itertools.pairwise(starts):
            kth = min(_SIMILAR, end - begin) - 1
            is_best[begin + np.argpartition(keys[begin:end], kth)[: kth + 1] if kth >= 0 else []] = 1.0
        block.data *= is_best
        found.append(_scaled(block, 1))
    return sparse.vstack(found, format="csr")


def _terms(columns: Sequence[Column], arrays: Mapping[str, np.ndarray]) -> Any:
    """Returns the terms of rows for a `Table`."""
    count = len(next(iter(arrays.values())))
    parts = [sparse.csr_array((count, 1))]
    for column in columns:
        if column.has_terms:
            values = column.prepare(tf.constant(arrays[column.name]))
            terms = tf.gather(values.parts, values.places)
            names, codes = (each.numpy() for each in tf.unique(terms.values))
            content = (names != b"")[codes], codes, terms.row_splits.numpy()
            parts.append(sparse.csr_array(content, shape=(count, len(names))))
    matrix = sparse.hstack(parts, format="csr", dtype=np.float64)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.data[:] = 1.0
    return matrix


def _scaled(matrix: Any, power: int) -> Any:
    """Returns the rows of a sparse matrix without zeros, divided by their norm of this power."""
    matrix = sparse.csr_array(matrix)
    matrix.eliminate_zeros()
    norms = np.maximum(matrix.power(power).sum(axis=1), np.finfo(np.float64).tiny) ** (1 / power)
    return sparse.diags_array(1.0 / norms) @ matrix


class TableEncoder(EncodedScorer):
    """Maps the features of a table to vectors: numbers by value and quantile, codes by vectors of their own.

    Args:
      table: The table.
      dim: The size of the vectors.
      seed: Seed of the weights and of the order of the rows in training.
    """

    def __init__(self, table: Table, dim: int, seed: int) -> None:
        super().__init__(dtype="float32")
        initial = [tf.keras.initializers.GlorotUniform(seed=2 * seed + place) for place in range(2)]
        hidden = tf.keras.layers.Dense(2 * dim, activation="relu", kernel_initializer=initial[0])
        self._network = tf.keras.Sequential([hidden, tf.keras.layers.Dense(dim, kernel_initializer=initial[1])])
        layer = TableFeatures(table.columns)
        self._table, self._seed = table, seed
        self._config = {"normalization": "quantiles", "embeddings": layer.embeddings, "vectors": layer.vectors}
        self._config["embedding_dim"] = _EMBEDDING_DIM
        self.set_encoding(seed)
        self.build((None, None, layer.num_features))
        if self.normalizer is not None:
            self.normalizer.learn([table.values[:, self._numbers].astype(np.float64)])

    def build_network(self, width: int) -> None:
        """Creates the weights of the dense layers for encoded features of this width."""
        self._network.build((None, width))

    def learned(self, vectors: np.ndarray, is_known: np.ndarray) -> np.ndarray:
        """Learns the directions of vectors, by their cosines, from the features of their rows.

        Args:
          vectors: float32 [rows, size].
          is_known: The rows to learn from, bool [rows].

        Returns:
          The vectors of all rows by their features, float32 [rows, size].

        Time O(rows) per epoch, memory O(rows).
        """
        values, known = self._table.values, np.random.default_rng(self._seed).permutation(np.flatnonzero(is_known))
        epochs = max(_EPOCHS, -(-_STEPS // -(-len(known) // _ROWS)))
        # Many steps per call, as they are short.
        options = {"jit_compile": False, "steps_per_execution": _STEPS_PER_CALL}
        self.compile(tf.keras.optimizers.Adam(_RATE), tf.keras.losses.CosineSimilarity(), **options)
        # One epoch of Keras, as each takes some milliseconds besides its steps.
        rows = tf.data.Dataset.from_tensor_slices((values[known], vectors[known])).repeat(epochs)
        self.fit(rows.batch(min(_ROWS, len(known)), drop_remainder=True), shuffle=False, verbose=0)
        return self.predict(values, batch_size=_ROWS_AT_ONCE, verbose=0)

    def call(self, features: tf.Tensor) -> tf.Tensor:
        """Returns the vectors [rows, size]."""
        return self._network(self.encode(features[tf.newaxis])[0])
