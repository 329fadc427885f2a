"""What the rerankers take: token ids of texts, and what the frozen layers make of them, computed once."""

from __future__ import annotations

import abc
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _files
from tfr_smooth.text import layout
from tfr_smooth.text.bert import BertEncoder
from tfr_smooth.text.collection import Collection
from tfr_smooth.text.rerankers import CrossEncoder, LateInteraction, Reranker
from tfr_smooth.text.tokenizer import Tokenizer

Progress = Callable[[Iterable[Any], str], Iterable[Any]]
_BATCH = 64  # texts that are encoded at once
_LAID_OUT = 1024  # pairs that are laid out at once


def no_progress(steps: Iterable[Any], title: str) -> Iterable[Any]:
    """Shows no progress."""
    return steps


class Inputs(abc.ABC):
    """The inputs of a reranker for the queries and documents of a collection.

    Args:
      arrays: Token ids [texts, ..., tokens] int32, by the name of the model's input without `_ids`.
      special: The special tokens.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], special: layout.SpecialTokens) -> None:
        self.ids = dict(arrays)
        self._special = special
        self.hidden: dict[str, np.ndarray] = {}

    def freeze(self, encoder: BertEncoder, folder: str | os.PathLike[str], *, progress: Progress = no_progress) -> None:
        """Computes what the encoder's frozen layers return for all texts, once, and gives models that from then on.

        Args:
          encoder: The encoder; without frozen layers nothing is done.
          folder: Where the results are kept, as float16: tokens times width times two bytes per text. Files that are
            there for the same weights and texts are taken; each is written whole or not at all.
          progress: Wraps the steps, as `tqdm.tqdm` does; also takes a title.
        """
        if not encoder.frozen_layers:
            return
        Path(folder).mkdir(parents=True, exist_ok=True)
        weights = _digest(variable.numpy() for variable in encoder.non_trainable_weights)
        frozen = tf.function(encoder.frozen, autograph=False, reduce_retracing=True)
        for name, ids in self.ids.items():
            path = Path(folder) / f"{name}_{encoder.frozen_layers}_{weights}_{_digest([ids])}.npy"
            if not path.is_file():
                flat = ids.reshape(-1, ids.shape[-1])
                with _files.replacing(path) as unfinished:
                    shape = (*flat.shape, encoder.config.hidden_size)
                    found = np.lib.format.open_memmap(unfinished, "w+", np.float16, shape)
                    for start in progress(range(0, len(flat), _BATCH), f"Encoding {name} texts"):
                        found[start : start + _BATCH] = frozen(tf.constant(flat[start : start + _BATCH])).numpy()
                    found.flush()
            self.hidden[name] = np.load(path, mmap_mode="r").reshape(*ids.shape, -1)

    def rows(self, name: str, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Returns a model's inputs of this name for rows of the arrays; -1 is a row of padding."""
        there = rows >= 0
        there = there.reshape(*rows.shape, *[1] * (self.ids[name].ndim - 1))
        ids = np.where(there, self.ids[name][rows], np.int32(self._special.pad))
        inputs = {f"{name}_ids": ids}
        if name in self.hidden:
            inputs[f"{name}_hidden"] = self.hidden[name][rows]
        return inputs

    def signature(self) -> dict[str, tf.TensorSpec]:
        """Returns the specs of the model's ids for any number of lists of any length."""
        specs = {}
        for name, array in self.ids.items():
            lists = [None] if name == "query" else [None, None]
            specs[f"{name}_ids"] = tf.TensorSpec([*lists, *array.shape[1:]], tf.int32, name=f"{name}_ids")
        return specs

    @abc.abstractmethod
    def from_tokens(
        self, queries: tf.RaggedTensor, documents: tf.RaggedTensor, lists: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Returns the model's inputs for the tokens of other texts.

        Args:
          queries: [batch, (tokens)] int32, without special tokens.
          documents: [batch * list, (tokens)] int32, likewise.
          lists: The numbers of lists and of documents per list.
        """

    @abc.abstractmethod
    def batch(self, queries: Sequence[str], documents: Sequence[Sequence[str]]) -> dict[str, np.ndarray]:
        """Returns the model's inputs for lists of documents, each padded to the length of the longest."""

    @abc.abstractmethod
    def scores(self, model: Any, run: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, dict[str, float]]]:
        """Yields each query with the model's scores of its documents."""


class LateInputs(Inputs):
    """The inputs of `LateInteraction`.

    Args:
      collection: Queries and documents.
      tokenizer: The tokenizer.
      query_length: Tokens of a query, special ones included; what is longer is cut off.
      document_length: Tokens of a document, likewise.
    """

    def __init__(
        self, collection: Collection, tokenizer: Tokenizer, *, query_length: int = 48, document_length: int = 180
    ) -> None:
        _arguments.integer("query_length", query_length, least=3)
        _arguments.integer("document_length", document_length, least=3)
        queries = tokenizer.tokens(list(collection.queries.values()))
        documents = tokenizer.tokens([document.content for document in collection.documents.values()])
        super().__init__(
            {
                "query": layout.single(queries, query_length, tokenizer.special).numpy(),
                "document": layout.single(documents, document_length, tokenizer.special).numpy(),
            },
            tokenizer.special,
        )
        self._queries = {query_id: row for row, query_id in enumerate(collection.queries)}
        self._documents = {doc_id: row for row, doc_id in enumerate(collection.documents)}

    def batch(self, queries: Sequence[str], documents: Sequence[Sequence[str]]) -> dict[str, np.ndarray]:
        """Returns the model's inputs for lists of documents, each padded to the length of the longest."""
        query_rows = np.array([self._queries[query_id] for query_id in queries])
        document_rows = padded([[self._documents[doc_id] for doc_id in doc_ids] for doc_ids in documents])
        return {**self.rows("query", query_rows), **self.rows("document", document_rows)}

    def from_tokens(
        self, queries: tf.RaggedTensor, documents: tf.RaggedTensor, lists: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Returns the model's inputs for the tokens of other texts."""
        lengths = {name: array.shape[1] for name, array in self.ids.items()}
        ids = layout.single(documents, lengths["document"], self._special)
        return {
            "query_ids": layout.single(queries, lengths["query"], self._special),
            "document_ids": tf.reshape(ids, [lists[0], lists[1], lengths["document"]]),
        }

    def scores(
        self, model: LateInteraction, run: Mapping[str, Iterable[str]]
    ) -> Iterator[tuple[str, dict[str, float]]]:
        """Yields each query with the model's scores of its documents; each document is encoded once."""

        def vectors(name: str, rows: np.ndarray) -> tf.Tensor:
            texts = _tensors(self.rows(name, rows))
            return model.compiled_vectors(texts[f"{name}_ids"], texts.get(f"{name}_hidden"))

        wanted = sorted({self._documents[doc_id] for documents in run.values() for doc_id in documents})
        length, width = self.ids["document"].shape[1], model.encoder.config.hidden_size
        encoded = np.zeros((len(wanted), length, width), np.float32)
        for start in range(0, len(wanted), _BATCH):
            rows = np.array(wanted[start : start + _BATCH])
            # All batches are of one size, so that one graph does.
            full = np.pad(rows, (0, _BATCH - len(rows)), constant_values=-1)
            found = vectors("document", full).numpy()
            encoded[start : start + len(rows)] = found[: len(rows)]
        place = {row: number for number, row in enumerate(wanted)}
        for query_id, documents in run.items():
            doc_ids = list(documents)
            rows = np.array([self._documents[doc_id] for doc_id in doc_ids], np.int64)
            if not doc_ids:
                yield query_id, {}
                continue
            query = vectors("query", np.array([self._queries[query_id]]))
            chosen = encoded[[place[row] for row in rows]]
            mask = model.encoder.mask(self.ids["document"][rows])
            scores = model.compiled_interact(query, tf.constant(chosen)[tf.newaxis], mask[tf.newaxis])[0].numpy()
            yield query_id, dict(zip(doc_ids, scores.tolist(), strict=True))


class PairInputs(Inputs):
    """The inputs of `CrossEncoder`.

    Args:
      collection: Queries and documents.
      tokenizer: The tokenizer.
      run: For each query id, the documents that may be asked for.
      length: Tokens of an input: those of query and passage, and special ones.
      passages: The largest number of passages of a document; what is longer is cut off.
    """

    def __init__(
        self,
        collection: Collection,
        tokenizer: Tokenizer,
        run: Mapping[str, Iterable[str]],
        *,
        length: int = 180,
        passages: int = 1,
    ) -> None:
        _arguments.integer("length", length, least=5)
        _arguments.integer("passages", passages, least=1)
        queries = tokenizer.tokens(list(collection.queries.values()))
        documents = tokenizer.tokens([document.content for document in collection.documents.values()])
        query_rows = {query_id: row for row, query_id in enumerate(collection.queries)}
        document_rows = {doc_id: row for row, doc_id in enumerate(collection.documents)}
        pairs = [(query_id, doc_id) for query_id, doc_ids in run.items() for doc_id in doc_ids]
        ids = np.zeros((len(pairs), passages, length), np.int32)
        for start in range(0, len(pairs), _LAID_OUT):
            some = pairs[start : start + _LAID_OUT]
            ids[start : start + len(some)] = layout.pairs(
                tf.gather(queries, [query_rows[query_id] for query_id, _ in some]),
                tf.gather(documents, [document_rows[doc_id] for _, doc_id in some]),
                length,
                passages,
                tokenizer.special,
            )
        super().__init__({"pair": ids}, tokenizer.special)
        self._pairs = {pair: row for row, pair in enumerate(pairs)}

    def batch(self, queries: Sequence[str], documents: Sequence[Sequence[str]]) -> dict[str, np.ndarray]:
        """Returns the model's inputs for lists of documents, each padded to the length of the longest."""
        lists = zip(queries, documents, strict=True)
        rows = [[self._pairs[query_id, doc_id] for doc_id in doc_ids] for query_id, doc_ids in lists]
        return self.rows("pair", padded(rows))

    def from_tokens(
        self, queries: tf.RaggedTensor, documents: tf.RaggedTensor, lists: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Returns the model's inputs for the tokens of other texts."""
        _, passages, length = self.ids["pair"].shape
        queries = tf.gather(queries, tf.repeat(tf.range(lists[0]), lists[1]))
        ids = layout.pairs(queries, documents, length, passages, self._special)
        return {"pair_ids": tf.reshape(ids, [lists[0], lists[1], passages, length])}

    def scores(self, model: CrossEncoder, run: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, dict[str, float]]]:
        """Yields each query with the model's scores of its documents."""
        for query_id, documents in run.items():
            doc_ids, found = list(documents), []
            rows = np.array([self._pairs[query_id, doc_id] for doc_id in doc_ids], np.int64)
            for start in range(0, len(rows), _BATCH):
                full = np.pad(rows[start : start + _BATCH], (0, max(0, start + _BATCH - len(rows))), constant_values=-1)
                found += model.compiled_call(_tensors(self.rows("pair", full[np.newaxis])))[0].numpy().tolist()
            yield query_id, dict(zip(doc_ids, found, strict=False))


def rank(model: Reranker, inputs: Inputs, run: Mapping[str, Iterable[str]]) -> dict[str, dict[str, float]]:
    """Scores the documents of each query.

    Args:
      model: The reranker.
      inputs: Its inputs.
      run: For each query id, the documents; what `bm25` returned.

    Returns:
      For each query id, doc id to score.
    """
    return dict(inputs.scores(model, run))


def padded(rows: Sequence[Sequence[float]], dtype: Any = np.int64) -> np.ndarray:
    """Returns the rows as an array [rows, longest], filled up with -1."""
    array = np.full((len(rows), max(map(len, rows), default=0)), -1, dtype)
    for line, row in zip(array, rows, strict=True):
        line[: len(row)] = row
    return array


def _tensors(arrays: Mapping[str, np.ndarray]) -> dict[str, tf.Tensor]:
    return {name: tf.constant(array) for name, array in arrays.items()}


def _digest(arrays: Iterable[np.ndarray]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:12]
