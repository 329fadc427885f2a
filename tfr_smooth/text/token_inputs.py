"""Inputs of the rerankers: token ids, and cached outputs of the encoder's frozen layers."""

from __future__ import annotations

import abc
import functools
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _files
from tfr_smooth.text import layout
from tfr_smooth.text.collection import Collection
from tfr_smooth.text.encoder import Encoder
from tfr_smooth.text.rerankers import CrossEncoder, LateInteraction

Progress = Callable[[Iterable[Any], str], Iterable[Any]]
_BATCH = 64  # texts encoded in one batch
_STEP = 16  # lengths of inputs are multiples of this, so that there are few shapes
_LAID_OUT = 1024  # texts or pairs whose token ids are computed in one batch
# Pads lists to the longest one with -1.
padded = functools.partial(tf.keras.utils.pad_sequences, padding="post", value=-1)


def no_progress(steps: Iterable[Any], title: str) -> Iterable[Any]:
    """Returns the steps, without showing progress."""
    return steps


class Inputs(abc.ABC):
    """Base class of the inputs of a reranker for the queries and documents of a collection.

    Use `LateInputs` for `LateInteraction` and `PairInputs` for `CrossEncoder`. A subclass sets `ids`.

    Args:
      tokenizer: A KerasHub tokenizer.

    Attributes:
      tokenizer: The tokenizer.
      tokenize: Its function of strings [texts] to token ids, int32 [texts, (tokens)], in TensorFlow operations.
      ids: Token ids, int32 [texts, ..., tokens], by the name of the model's input without `_ids`.

    Raises:
      ValueError: If the tokenizer lacks a special token, or does not return ragged token ids in a TensorFlow graph.
      ImportError: If the extra `tfr_smooth[text]` is not installed.

    Example:
      >>> import keras_hub
      >>> from tfr_smooth import text
      >>> tokenizer = keras_hub.models.BertTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] lift heat".split())
      >>> collection = text.Collection({"d1": text.Document("", "lift")}, {"q1": "lift"}, {}, {})
      >>> inputs = text.LateInputs(collection, tokenizer, query_length=4, document_length=4)
      >>> inputs.signature()["document_ids"].shape
      TensorShape([None, None, 4])
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.tokenize = layout.in_graph(tokenizer)
        self._special = layout.special_tokens(tokenizer)
        self.ids: dict[str, np.ndarray] = {}
        self.hidden: dict[str, np.ndarray] = {}

    def _tokens(self, collection: Collection) -> Iterator[tuple[tf.RaggedTensor, dict[str, int]]]:
        """Yields the tokens and the row of each id, for the queries and for the documents."""
        documents = {doc_id: document.content for doc_id, document in collection.documents.items()}
        for texts in (collection.queries, documents):
            strings = list(texts.values())
            starts = range(0, max(1, len(strings)), _LAID_OUT)
            parts = [self.tokenize(tf.constant(strings[start : start + _LAID_OUT], tf.string)) for start in starts]
            yield tf.concat(parts, axis=0), {name: row for row, name in enumerate(texts)}

    def freeze(self, encoder: Encoder, folder: str | os.PathLike[str], *, progress: Progress = no_progress) -> None:
        """Computes the output of the encoder's frozen layers for all texts once; models then use it as input.

        Args:
          encoder: The encoder. Without frozen layers, the method does nothing.
          folder: The folder of the outputs, stored as float16: tokens times width times two bytes per text. Existing
            files of the same weights and texts are reused. Files are written atomically.
          progress: Wraps an iterable to show progress, as `tqdm.tqdm` does; called with the iterable and a title.
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
                    shape = (*flat.shape, encoder.width)
                    found = np.lib.format.open_memmap(unfinished, "w+", np.float16, shape)
                    order = np.argsort(self._lengths(flat), kind="stable")
                    for start in progress(range(0, len(flat), _BATCH), f"Encoding {name} texts"):
                        rows = order[start : start + _BATCH]
                        trimmed = self._trimmed(flat[rows])
                        found[rows, : trimmed.shape[1]] = frozen(tf.constant(trimmed)).numpy()
                    found.flush()
            self.hidden[name] = np.load(path, mmap_mode="r").reshape(*ids.shape, -1)

    def check(self, encoder: Encoder) -> None:
        """Checks that the encoder allows the length of the inputs.

        Args:
          encoder: The encoder.

        Raises:
          ValueError: If the inputs are longer.
        """
        longest = max(array.shape[-1] for array in self.ids.values())
        if encoder.max_length is not None and longest > encoder.max_length:
            raise ValueError(f"`inputs` must have at most {encoder.max_length} tokens per text, got {longest}.")

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
        ids = self._trimmed(np.where(there, self.ids[name][rows], np.int32(self._special.pad)))
        inputs = {f"{name}_ids": ids}
        if name in self.hidden:
            inputs[f"{name}_hidden"] = self.hidden[name][rows, ..., : ids.shape[-1], :]
        return inputs

    def _batches(self, name: str, rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields the places in `rows` and the rows of each batch, by length; the last batch is padded with -1."""
        lengths = self._lengths(self.ids[name][rows])
        order = np.argsort(lengths.reshape(len(rows), -1).max(axis=1, initial=0), kind="stable")
        for start in range(0, len(rows), _BATCH):
            places = order[start : start + _BATCH]
            # Batches of the same size share a graph.
            yield places, np.pad(rows[places], (0, _BATCH - len(places)), constant_values=-1)

    def _lengths(self, ids: np.ndarray) -> np.ndarray:
        """Returns the number of tokens up to the last one that is not padding, [...]."""
        return ((ids != self._special.pad) * np.arange(1, ids.shape[-1] + 1)).max(axis=-1)

    def _trimmed(self, ids: np.ndarray) -> np.ndarray:
        """Returns the token ids without columns of padding at the end, up to a multiple of `_STEP`."""
        longest = max(1, int(self._lengths(ids).max(initial=0)))
        return ids[..., : -(-longest // _STEP) * _STEP]

    def signature(self) -> dict[str, tf.TensorSpec]:
        """Returns the specs of the model's token ids for any number of lists of any length.

        Returns:
          A `tf.TensorSpec` by the name of the input.
        """
        specs = {}
        for name, array in self.ids.items():
            lists = [None] if name == "query" else [None, None]
            specs[f"{name}_ids"] = tf.TensorSpec([*lists, *array.shape[1:]], tf.int32, name=f"{name}_ids")
        return specs

    @abc.abstractmethod
    def from_tokens(
        self, queries: tf.RaggedTensor, documents: tf.RaggedTensor, lists: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Returns the model inputs for the tokens of any texts, in TensorFlow operations.

        Args:
          queries: Token ids of the queries without special tokens, int32 [batch, (tokens)].
          documents: Token ids of the documents without special tokens, int32 [batch * list, (tokens)].
          lists: The numbers [batch, list], int32 [2].

        Returns:
          Token ids by the name of the input.
        """

    @abc.abstractmethod
    def batch(self, queries: Sequence[str], documents: Sequence[Sequence[str]]) -> dict[str, np.ndarray]:
        """Returns the model inputs for a batch of lists, padded to the longest list.

        Args:
          queries: A query id per list.
          documents: The doc ids of each list.

        Returns:
          Arrays by the name of the input.
        """

    @abc.abstractmethod
    def rank(self, model: Any, run: Mapping[str, Iterable[str]]) -> dict[str, dict[str, float]]:
        """Scores the documents of each query with a reranker.

        Args:
          model: The reranker.
          run: For each query id, the doc ids, such as the return value of `bm25`.

        Returns:
          The run: for each query id, a dict of doc id to score, in the order of the input.
        """


class LateInputs(Inputs):
    """The inputs of `LateInteraction`.

    Args:
      collection: The queries and documents.
      tokenizer: A KerasHub tokenizer.
      query_length: Maximum number of tokens of a query, including special tokens, >= 3; longer queries are truncated.
      document_length: Maximum number of tokens of a document, including special tokens, >= 3; longer documents are
        truncated.

    Raises:
      ValueError: If an argument is out of its range.

    Example:
      >>> import keras_hub
      >>> from tfr_smooth import text
      >>> tokenizer = keras_hub.models.BertTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] lift heat".split())
      >>> documents = {"d1": text.Document("", "lift"), "d2": text.Document("", "heat heat")}
      >>> collection = text.Collection(documents, {"q1": "lift"}, {}, {})
      >>> inputs = text.LateInputs(collection, tokenizer, query_length=4, document_length=4)
      >>> inputs.batch(["q1"], [["d1", "d2"]])["document_ids"].tolist()
      [[[2, 5, 3, 0], [2, 6, 6, 3]]]
    """

    def __init__(
        self, collection: Collection, tokenizer: Any, *, query_length: int = 48, document_length: int = 180
    ) -> None:
        _arguments.integer("query_length", query_length, least=3)
        _arguments.integer("document_length", document_length, least=3)
        super().__init__(tokenizer)
        (queries, self._queries), (documents, self._documents) = self._tokens(collection)
        self.ids["query"] = layout.single(queries, query_length, self._special).numpy()
        self.ids["document"] = layout.single(documents, document_length, self._special).numpy()

    def batch(self, queries: Sequence[str], documents: Sequence[Sequence[str]]) -> dict[str, np.ndarray]:
        """Returns the model inputs for a batch of lists, padded to the longest list.

        Returns:
          `query_ids`, int32 [batch, tokens], and `document_ids`, int32 [batch, list, tokens]; after `freeze` also
          `query_hidden` and `document_hidden`, float16 [..., tokens, width].
        """
        query_rows = np.array([self._queries[query_id] for query_id in queries])
        document_rows = padded([[self._documents[doc_id] for doc_id in doc_ids] for doc_ids in documents])
        return {**self.rows("query", query_rows), **self.rows("document", document_rows)}

    def from_tokens(
        self, queries: tf.RaggedTensor, documents: tf.RaggedTensor, lists: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Returns the model inputs for the tokens of any texts, in TensorFlow operations.

        Returns:
          `query_ids`, int32 [batch, tokens], and `document_ids`, int32 [batch, list, tokens].
        """
        lengths = {name: array.shape[1] for name, array in self.ids.items()}
        ids = layout.single(documents, lengths["document"], self._special)
        return {
            "query_ids": layout.single(queries, lengths["query"], self._special),
            "document_ids": tf.reshape(ids, [lists[0], lists[1], lengths["document"]]),
        }

    def rank(self, model: LateInteraction, run: Mapping[str, Iterable[str]]) -> dict[str, dict[str, float]]:
        """Scores the documents of each query with a reranker; encodes each document once.

        Args:
          model: The reranker.
          run: For each query id, the doc ids.

        Returns:
          The run: for each query id, a dict of doc id to score.
        """

        def vectors(name: str, rows: np.ndarray) -> tf.Tensor:
            texts = _tensors(self.rows(name, rows))
            return model.compiled_vectors(texts[f"{name}_ids"], texts.get(f"{name}_hidden"))

        wanted = np.unique([self._documents[doc_id] for documents in run.values() for doc_id in documents]).astype(int)
        length, width = self.ids["document"].shape[1], model.encoder.width
        encoded = np.zeros((len(wanted), length, width), np.float32)
        for places, rows in self._batches("document", wanted):
            found = vectors("document", rows).numpy()
            encoded[places, : found.shape[1]] = found[: len(places)]
        ranked: dict[str, dict[str, float]] = {query_id: {} for query_id in run}
        for query_id, documents in run.items():
            rows = np.array([self._documents[doc_id] for doc_id in documents], np.int64)
            if len(rows):
                query = vectors("query", np.array([self._queries[query_id]]))
                chosen = tf.constant(encoded[np.searchsorted(wanted, rows)])
                mask = model.encoder.mask(self.ids["document"][rows])
                scores = model.compiled_interact(query, chosen[tf.newaxis], mask[tf.newaxis])[0].numpy()
                ranked[query_id] = dict(zip(documents, scores.tolist(), strict=True))
        return ranked


class PairInputs(Inputs):
    """The inputs of `CrossEncoder`.

    A document that does not fit in one input with its query is split into passages of equal length.

    Args:
      collection: The queries and documents.
      tokenizer: A KerasHub tokenizer.
      run: For each query id, the doc ids to pair it with: all candidates and relevant documents that will be used.
      length: Number of tokens of an input (query, passage and special tokens), >= 5, or >= 6 if two special tokens
        separate the texts, as in RoBERTa.
      passages: Maximum number of passages per document, >= 1; longer documents are truncated.

    Raises:
      ValueError: If an argument is out of its range.

    Example:
      >>> import keras_hub
      >>> from tfr_smooth import text
      >>> tokenizer = keras_hub.models.BertTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] lift heat".split())
      >>> documents = {"d1": text.Document("", "lift"), "d2": text.Document("", "heat heat")}
      >>> collection = text.Collection(documents, {"q1": "lift"}, {}, {})
      >>> inputs = text.PairInputs(collection, tokenizer, {"q1": ["d1", "d2"]}, length=6)
      >>> inputs.batch(["q1"], [["d1", "d2"]])["pair_ids"].tolist()
      [[[[2, 5, 3, 5, 3, 0]], [[2, 5, 3, 6, 6, 3]]]]
    """

    def __init__(
        self,
        collection: Collection,
        tokenizer: Any,
        run: Mapping[str, Iterable[str]],
        *,
        length: int = 180,
        passages: int = 1,
    ) -> None:
        super().__init__(tokenizer)
        _arguments.integer("length", length, least=layout.least_pair(self._special))
        _arguments.integer("passages", passages, least=1)
        (queries, query_rows), (documents, document_rows) = self._tokens(collection)
        pairs = [(query_id, doc_id) for query_id, doc_ids in run.items() for doc_id in doc_ids]
        ids = np.zeros((len(pairs), passages, length), np.int32)
        for start in range(0, len(pairs), _LAID_OUT):
            some = pairs[start : start + _LAID_OUT]
            ids[start : start + len(some)] = layout.pairs(
                tf.gather(queries, [query_rows[query_id] for query_id, _ in some]),
                tf.gather(documents, [document_rows[doc_id] for _, doc_id in some]),
                length,
                passages,
                self._special,
            )
        self.ids["pair"] = ids
        self._pairs = {pair: row for row, pair in enumerate(pairs)}

    def batch(self, queries: Sequence[str], documents: Sequence[Sequence[str]]) -> dict[str, np.ndarray]:
        """Returns the model inputs for a batch of lists, padded to the longest list.

        Returns:
          `pair_ids`, int32 [batch, list, passages, tokens]; after `freeze` also `pair_hidden`, float16
          [batch, list, passages, tokens, width].
        """
        lists = zip(queries, documents, strict=True)
        rows = [[self._pairs[query_id, doc_id] for doc_id in doc_ids] for query_id, doc_ids in lists]
        return self.rows("pair", padded(rows))

    def from_tokens(
        self, queries: tf.RaggedTensor, documents: tf.RaggedTensor, lists: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Returns the model inputs for the tokens of any texts, in TensorFlow operations.

        Returns:
          `pair_ids`, int32 [batch, list, passages, tokens].
        """
        _, passages, length = self.ids["pair"].shape
        queries = tf.gather(queries, tf.repeat(tf.range(lists[0]), lists[1]))
        ids = layout.pairs(queries, documents, length, passages, self._special)
        return {"pair_ids": tf.reshape(ids, [lists[0], lists[1], passages, length])}

    def rank(self, model: CrossEncoder, run: Mapping[str, Iterable[str]]) -> dict[str, dict[str, float]]:
        """Scores the documents of each query with a reranker.

        Args:
          model: The reranker.
          run: For each query id, the doc ids.

        Returns:
          The run: for each query id, a dict of doc id to score.
        """
        pairs = [(query_id, doc_id) for query_id, documents in run.items() for doc_id in documents]
        scores = np.zeros(len(pairs), np.float32)
        for places, rows in self._batches("pair", np.array([self._pairs[pair] for pair in pairs], np.int64)):
            found = model.compiled_call(_tensors(self.rows("pair", rows[np.newaxis])))
            scores[places] = found[0, : len(places)].numpy()
        ranked: dict[str, dict[str, float]] = {query_id: {} for query_id in run}
        for (query_id, doc_id), score in zip(pairs, scores.tolist(), strict=True):
            ranked[query_id][doc_id] = score
        return ranked


def _tensors(arrays: Mapping[str, np.ndarray]) -> dict[str, tf.Tensor]:
    return {name: tf.constant(array) for name, array in arrays.items()}


def _digest(arrays: Iterable[np.ndarray]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:12]
