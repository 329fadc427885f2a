"""Tables of texts as `Lists`, training lists that are drawn from them, and the inputs of rerankers for their pairs."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf

from tfr_smooth import _arguments, _compiled, _estimator, _files
from tfr_smooth.data.batches import share_by_data
from tfr_smooth.data.column_values import OUTER_BLANKS, TEXTS, value_type
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.reading import checks, sources
from tfr_smooth.data.reading.ids import plain_array
from tfr_smooth.text import layout
from tfr_smooth.text.architectures import CrossEncoder, LateInteraction, SingleVector
from tfr_smooth.text.encoder import Encoder
from tfr_smooth.text.reranker import any_size


def table_of(X: Any, columns: Mapping[str, str | None]) -> Any:
    """Returns the table of files, whose texts are text, if paths are given, and others as they are."""
    return sources.of_files(X, {str(columns[role]): "text" for role in ("query", "text")}, [columns["query_id"]])


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
    sources.check_constant(lists, lists.source[str(query)], f"column {query!r}", "another text in")
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
        return share_by_data(_compiled.dataset_of(batches, signature).prefetch(1))


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


# Not tuned: limits of memory, on which results do not depend.
_BATCH = 32  # texts encoded in one batch; larger ones leave the cache of a CPU core
_TOKENIZED = 1024  # texts tokenized in one batch


class _Inputs:
    """The inputs of a reranker for pairs of a query and a document.

    Args:
      encoder: The encoder.

    Attributes:
      ids: Token ids, int32 [texts, ..., tokens], by the name of the model's input without `_ids`.
      hidden: After `freeze`, the output of the encoder's frozen layers for these ids.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder, self._layout = encoder, encoder.layout
        self.ids: dict[str, np.ndarray] = {}
        self.hidden: dict[str, np.ndarray] = {}

    def _tokenized(self, texts: Sequence[str], role: str | None = None) -> tuple[list[np.ndarray], np.ndarray]:
        """Returns the tokens of the different texts, and the row of each text among them."""
        different = [*dict.fromkeys(texts)]
        known = {text: row for row, text in enumerate(different)}
        found: list[np.ndarray] = []
        for start in range(0, len(known), _TOKENIZED):
            tokens = self._encoder.tokenize(different[start : start + _TOKENIZED], role)
            found += [np.array(ids, np.int32) for ids in tokens]
        return found, np.array([known[text] for text in texts], np.int64)

    def freeze(self, folder: str | os.PathLike[str]) -> None:
        """Computes the output of the encoder's frozen layers, if any, for all texts once; models then use it as input.

        Args:
          folder: The folder of the outputs, stored as float16: tokens times width times two bytes per text. Existing
            files of the same weights and texts are reused.
        """
        encoder = self._encoder
        if not encoder.frozen_layers:
            return
        Path(folder).mkdir(parents=True, exist_ok=True)
        weights = _estimator.digest(variable.numpy() for variable in encoder.non_trainable_weights)
        of_any_size = [tf.TensorSpec([None, None], tf.int32)]
        frozen = _compiled.traced(encoder.frozen, input_signature=of_any_size)
        for name, ids in self.ids.items():
            path = Path(folder) / f"{name}_{encoder.frozen_layers}_{weights}_{_estimator.digest([ids])}.npy"
            if not path.is_file():
                flat = ids.reshape(-1, ids.shape[-1])
                with _files.replacing(path) as unfinished:
                    shape = (*flat.shape, encoder.width)
                    outputs = np.lib.format.open_memmap(unfinished, "w+", np.float16, shape)
                    _files.reserve(unfinished)
                    for rows in self._by_length(flat):
                        trimmed = self._trimmed(flat[rows])
                        outputs[rows, : trimmed.shape[1]] = frozen(trimmed).numpy()
                    outputs.flush()
            self.hidden[name] = np.load(path, mmap_mode="r").reshape(*ids.shape, -1)

    def rows(self, name: str, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Returns model inputs for rows of an array.

        Args:
          name: Name of the array.
          rows: Row numbers, integers of any shape; -1 for padding.

        Returns:
          `NAME_ids`, int32 [*rows.shape, ..., tokens], and after `freeze` also `NAME_hidden`, float16
          [*rows.shape, ..., tokens, width]. There are as many tokens as the longest text needs.
        """
        there = rows >= 0
        there = there.reshape(*rows.shape, *[1] * (self.ids[name].ndim - 1))
        ids = self._trimmed(np.where(there, self.ids[name][rows], np.int32(layout.PADDING)))
        inputs = {f"{name}_ids": ids}
        if name in self.hidden:
            inputs[f"{name}_hidden"] = self.hidden[name][rows, ..., : ids.shape[-1], :]
        return inputs

    def _by_length(self, ids: np.ndarray) -> Iterator[np.ndarray]:
        """Yields the rows of each batch of texts of similar lengths."""
        lengths = self._lengths(ids).max(axis=tuple(range(1, ids.ndim - 1)), initial=0)
        order = np.argsort(lengths, kind="stable")
        return (order[start : start + _BATCH] for start in range(0, len(ids), _BATCH))

    def _lengths(self, ids: np.ndarray) -> np.ndarray:
        """Returns the number of tokens up to the last one that is not padding, [...]."""
        return ((ids != layout.PADDING) * np.arange(1, ids.shape[-1] + 1)).max(axis=-1)

    def _trimmed(self, ids: np.ndarray) -> np.ndarray:
        """Returns the token ids without columns of padding at the end."""
        return ids[..., : max(1, int(self._lengths(ids).max(initial=0)))]


class LateInputs(_Inputs):
    """The inputs of `LateInteraction`: `query_ids` [batch, tokens] and `document_ids` [batch, list, tokens].

    Args:
      encoder: The encoder.
      queries: The text of the query of each pair.
      documents: The text of the document of each pair.
      query_length: Maximum number of tokens of a query, including special tokens, >= 3; longer queries are truncated.
      length: Maximum number of tokens of a document, including special tokens, >= 3; longer ones are truncated.
    """

    ARGUMENTS = ("length", "query_length")  # of `TextRanker`

    def __init__(
        self, encoder: Encoder, queries: Sequence[str], documents: Sequence[str], *, query_length: int, length: int
    ) -> None:
        super().__init__(encoder)
        self._pairs = {}
        for name, texts in (("query", queries), ("document", documents)):
            tokens, self._pairs[name] = self._tokenized(texts, name)
            self.ids[name] = self._layout.single(tokens, {"query": query_length, "document": length}[name], name)

    def batch(self, pairs: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the model inputs for a batch of lists.

        Args:
          pairs: Numbers of pairs, integers [batch, list], of one query in each list; -1 for padding.
        """
        documents = np.where(pairs >= 0, self._pairs["document"][pairs], -1)
        return {**self.rows("query", self._pairs["query"][pairs[:, 0]]), **self.rows("document", documents)}

    def scores(self, model: LateInteraction) -> np.ndarray:
        """Returns the scores of all pairs, float32 [pairs]; encodes each query and document once."""
        vectors = {name: self._vectors(model, name) for name in self.ids}
        queries, documents = self._pairs["query"], self._pairs["document"]
        order = np.argsort(queries, kind="stable")
        scores = np.zeros(len(queries), np.float32)
        for pairs in np.split(order, np.flatnonzero(np.diff(queries[order])) + 1) if len(order) else []:
            some = vectors["query"][queries[pairs[:1]]], vectors["document"][documents[pairs]][np.newaxis]
            scores[pairs] = model.in_graph("interact", *some)[0].numpy()
        return scores

    def vectors(self, model: SingleVector, name: str) -> np.ndarray:
        """Returns the vector of each query or document, float32 [pairs, width]."""
        return self._vectors(model, name)[self._pairs[name], 0]

    def _vectors(self, model: LateInteraction, name: str) -> np.ndarray:
        """Returns the vectors of the different queries or documents, float32 [texts, tokens, width]; 1 for a token."""
        ids = self.ids[name]
        tokens = 1 if model.has_one_vector else ids.shape[1]
        vectors = np.zeros((len(ids), tokens, model.width), np.float32)
        for rows in self._by_length(ids):
            some = model.in_graph("vectors", *self.rows(name, rows).values()).numpy()
            vectors[rows, : some.shape[1]] = some
        return vectors


class PairInputs(_Inputs):
    """The inputs of `CrossEncoder`: `pair_ids` [batch, list, passages, tokens].

    A document that does not fit in one input with its query is split into passages of equal length.

    Args:
      encoder: The encoder.
      queries: The text of the query of each pair.
      documents: The text of the document of each pair.
      length: Number of tokens of an input (query, passage and special tokens), at least `Layout.least_pair`.
      passages: Maximum number of passages per document, >= 1; longer documents are truncated.
    """

    ARGUMENTS = ("length", "passages")  # of `TextRanker`

    def __init__(
        self, encoder: Encoder, queries: Sequence[str], documents: Sequence[str], *, length: int, passages: int
    ) -> None:
        super().__init__(encoder)
        _arguments.integer("length", length, least=self._layout.least_pair)
        (of_queries, query_rows), (of_documents, document_rows) = self._tokenized(queries), self._tokenized(documents)
        self.ids["pair"] = self._layout.pairs(
            [of_queries[row] for row in query_rows], [of_documents[row] for row in document_rows], length, passages
        )

    def batch(self, pairs: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the model inputs for a batch of lists."""
        return self.rows("pair", pairs)

    def scores(self, model: CrossEncoder) -> np.ndarray:
        """Returns the scores of all pairs, float32 [pairs]."""
        scores = np.zeros(len(self.ids["pair"]), np.float32)
        for rows in self._by_length(self.ids["pair"]):
            scores[rows] = model.in_graph("call", self.rows("pair", rows[np.newaxis]))[0].numpy()
        return scores


Inputs = LateInputs | PairInputs
