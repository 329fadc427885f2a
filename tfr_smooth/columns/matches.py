"""Comparisons of two columns, such as a query and a title."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf

from tfr_smooth import _serialization
from tfr_smooth.columns.date import are_dates, date_format_of
from tfr_smooth.columns.kinds import Column, has_words
from tfr_smooth.columns.statistics import mean_labels
from tfr_smooth.columns.text import words
from tfr_smooth.data.column_values import value_type, varying
from tfr_smooth.data.lists import Lists

_CODES = 2**32 - 5  # a prime; codes of different terms are rarely equal
_MOST_LETTERS = 2**21  # Unicode has fewer
# Not tuned: limits of memory and time.
_MOST_TERMS = 100_000  # whose frequencies are stored
_MOST_ROWS = 2**20  # in which different texts are looked for
_MOST_TEXTS = 2**18  # of a column, whose terms are counted
_TEXTS_AT_ONCE = 2**12  # splitting takes much more memory than the texts
_OF_TERMS = 6  # features of two bags of terms
# Not tuned: which texts are compared without being named in `matches`.
SOME_WORDS = 1.1  # words per value of a column of text that is compared with text, at least
_SAMPLED = 2**10  # queries in which pairs of columns are looked for
_MOST_SAMPLED = 2**13  # rows
_RELATED = 0.1  # of the rows, at least, have a common word
_EQUAL = 0.01  # of the rows, at least, have the same value


class Frequencies(NamedTuple):
    """In how many texts terms occur, for their weights.

    The weight of a term is its inverse document frequency, `ln((1 + texts) / (1 + count)) + 1`. Terms of one text count
    like unseen ones, which thus have the highest weight.

    Attributes:
      texts: The number of texts.
      codes: The codes of terms of several texts, increasing.
      counts: The number of texts with each of them.
    """

    texts: int = 1
    codes: Sequence[int] = ()
    counts: Sequence[int] = ()

    @classmethod
    def of(cls, texts: int, codes: np.ndarray, counts: np.ndarray) -> Frequencies:
        """Returns the frequencies of the most frequent terms."""
        codes, places = np.unique(codes, return_inverse=True)
        totals = np.bincount(places, counts, len(codes)).astype(int)
        kept = np.sort(np.argsort(-totals, kind="stable")[: min(_MOST_TERMS, np.count_nonzero(totals > 1))])
        return cls(texts, codes[kept].tolist(), totals[kept].tolist())


# All matches share the traces, since ragged tensors have hundreds of operations.
_traced_once = functools.partial(tf.function, autograph=False, experimental_attributes={"_noinline": True})
_PARTS = tf.RaggedTensorSpec([None, None], tf.string)


class _Terms(NamedTuple):
    """The different terms of texts.

    Attributes:
      texts: The number of texts.
      text: The text of each term, int64 [terms].
      code: The term, int64 [terms].
      count: How often the text has it, float32 [terms].
    """

    texts: tf.Tensor
    text: tf.Tensor
    code: tf.Tensor
    count: tf.Tensor

    @staticmethod
    @_traced_once(input_signature=[tf.RaggedTensorSpec([None, None], tf.int64)])
    def of(codes: tf.RaggedTensor) -> _Terms:
        """Returns the terms of the codes int64 [texts, (terms)]."""
        keys, _, counts = tf.unique_with_counts(codes.value_rowids() * 2**32 + codes.values)
        return _Terms(codes.nrows(), keys // 2**32, keys % 2**32, tf.cast(counts, tf.float32))


@_serialization.register
@dataclasses.dataclass(frozen=True, kw_only=True)
class Match(_serialization.Configurable):
    """A comparison of two columns: of vectors, of texts, or of values such as ids and sets.

    Args:
      columns: The names of the two columns.
      compares: "vectors", "words" or "values".
      scale: Of vectors, what their scalar product is divided by.
      frequencies: Those of the values; for texts, of words and of trigrams of letters. () if nothing is known.
    """

    columns: tuple[str, ...]
    compares: str
    scale: float = 1.0
    frequencies: tuple[Frequencies, ...] = ()

    def __post_init__(self) -> None:
        """Restores what JSON has as lists."""
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "frequencies", tuple(Frequencies(*counted) for counted in self.frequencies))

    @classmethod
    def of(cls, names: Sequence[str], columns: Sequence[Column]) -> Match:
        """Returns the match of two columns, with unknown frequencies.

        Args:
          names: The names of the columns.
          columns: All columns.

        Raises:
          ValueError: If it is no pair of columns with several values or words, or of vectors of one length.
        """
        pair = [column for name in names for column in columns if column.name == name]
        kinds = {tuple(column.vector) or ("values" if column.has_terms else "") for column in pair}
        if isinstance(names, str) or len(pair) != 2 or len(names) != 2 or len(kinds) > 1 or "" in kinds:
            expected = "pairs of names of feature columns of text, or of vectors of one length"
            own = [column.name for column in columns]
            absent = [name for name in names if name not in own]
            hint = f" {absent[0]!r} is no feature: `features` must list it, too." if absent else ""
            raise ValueError(f"`matches` must be {expected}, got {names!r}.{hint}")
        if pair[0].vector:
            return cls(columns=tuple(names), compares="vectors", scale=math.prod(column.scale for column in pair))  # type: ignore[attr-defined]
        return cls(columns=tuple(names), compares="words" if {"text"} == {c.kind for c in pair} else "values")

    @property
    def name(self) -> str:
        """The names of the columns."""
        return " ~ ".join(self.columns)

    @property
    def _splitters(self) -> list[Any]:
        """The functions from the words or values of texts to codes of terms."""
        return {"vectors": [], "values": [_hashed], "words": [_hashed, _trigrams]}[self.compares]

    @property
    def width(self) -> int:
        """Number of features."""
        return _OF_TERMS * len(self._splitters) or 2

    def learn(self, columns: Sequence[Column], raw: Mapping[str, pa.ChunkedArray], rows: np.ndarray | None) -> Match:
        """Returns the match with the frequencies of terms in the different texts of both columns.

        Args:
          columns: All columns.
          raw: The raw values of the columns.
          rows: The training rows. None for all.
        """
        splitters = self._splitters
        if not splitters:
            return self
        texts, counted, by_name = 0, [], {column.name: column for column in columns}
        rows = np.arange(len(raw[self.columns[0]])) if rows is None else rows
        chosen = pa.array(rows[:: len(rows) // _MOST_ROWS + 1])
        for name in self.columns:
            distinct = pc.unique(raw[name].take(chosen))
            distinct = distinct.filter(pc.not_equal(distinct, ""))
            distinct = distinct.take(np.arange(0, len(distinct), len(distinct) // _MOST_TEXTS + 1))
            texts += len(distinct)
            for first in range(0, len(distinct), _TEXTS_AT_ONCE):
                given = tf.constant(distinct[first : first + _TEXTS_AT_ONCE].to_pylist(), tf.string)
                parts = by_name[name].split(given)  # type: ignore[attr-defined]
                codes = [tf.unique_with_counts(_Terms.of(split(parts)).code) for split in splitters]
                counted.append([np.stack([unique.y, unique.count]) for unique in codes])
        of_terms = (np.concatenate(counts, axis=1) for counts in zip(*counted, strict=True))
        return dataclasses.replace(self, frequencies=tuple(Frequencies.of(texts, *counts) for counts in of_terms))

    @functools.cached_property
    def _tables(self) -> list[tuple[tf.Tensor, tf.Tensor]]:
        """For each kind of terms, the codes and their weights; the last weight is that of other terms."""
        tables = []
        for counted in self.frequencies or [Frequencies() for _ in self._splitters]:
            counts = np.array([*counted.counts, 1])
            weights = np.log((1 + counted.texts) / (1 + counts)) + 1
            with tf.init_scope():
                tables.append((tf.constant([*counted.codes, _CODES], tf.int64), tf.constant(weights, tf.float32)))
        return tables

    def features(self, first: Any, second: Any) -> tf.Tensor:
        """Returns the features: of vectors, the scalar product and the cosine; of others, those of their terms.

        Args:
          first: What `prepare` of the first column returned.
          second: The same of the second one.

        Returns:
          float32 [..., width].
        """
        if self.compares == "vectors":
            return self._of_vectors(first, second)
        with tf.device("CPU:0"):  # strings are there
            sides = first, second
            places = tuple(tf.reshape(values.places, [-1]) for values in sides)
            features = []
            for split, table in zip(self._splitters, self._tables, strict=True):
                features.append(_overlap(tuple(_Terms.of(split(values.parts)) for values in sides), places, table))
            shape = tf.concat([tf.shape(first.places), [self.width]], axis=0)
            return tf.reshape(tf.concat(features, axis=-1), shape)

    def _of_vectors(self, first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
        first, second = (tf.where(tf.math.is_nan(values), 0.0, values) for values in (first, second))
        product = tf.reduce_sum(first * second, axis=-1)
        norms = tf.norm(first, axis=-1) * tf.norm(second, axis=-1)
        return tf.stack([product / self.scale, tf.math.divide_no_nan(product, norms)], axis=-1)


def text_pairs(lists: Lists, kinds: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns the pairs of a text of the query and a text of the document that have words in common.

    Args:
      lists: The training lists.
      kinds: The kinds of columns that are given; only columns of unknown kind and of text are looked at.

    Returns:
      The pairs of names: a column with one value in each list, which may be the column of the queries, and a feature of
      texts of several words that vary.
    """
    sample = _sampled(lists)
    if not len(sample) or lists.is_dense:
        return []
    of_queries, of_documents = {}, {}
    for name in dict.fromkeys([lists.roles.query, *lists.roles.features]):
        if kinds.get(name, "text") != "text" or value_type(lists.source[name].type) != "text":
            continue
        texts = lists.source[name].take(pa.array(sample.rows)).combine_chunks()
        distinct = pc.unique(texts.drop_null())
        if are_dates(distinct) or date_format_of(distinct):
            continue
        if _is_of_lists(texts, sample):
            of_queries[name] = texts
        elif name in lists.roles.features and has_words(texts, SOME_WORDS):
            of_documents[name] = texts
    pairs = itertools.product(of_queries, of_documents)
    return [pair for pair in pairs if _have_common_words(of_queries[pair[0]], of_documents[pair[1]])]


def equal_pairs(columns: Sequence[Column], raw: Mapping[str, Any], lists: Lists) -> list[tuple[str, str]]:
    """Returns the pairs of an id or category of the query and one of the document whose equality predicts labels.

    So the codes of columns that only have the same names, such as "1" and "2", are not compared.

    Args:
      columns: The columns.
      raw: Their raw values.
      lists: The training lists.

    Returns:
      The pairs of names: a column with one value in each list, and one that varies.
    """
    sample = _sampled(lists)
    of_queries: dict[str, pa.Array] = {}
    of_documents: dict[str, pa.Array] = {}
    for name in (column.name for column in columns if column.shared and not column.several):
        values = raw[name].take(pa.array(sample.rows)).combine_chunks().cast(pa.string())
        (of_queries if _is_of_lists(values, sample) else of_documents)[name] = values
    labels, starts, pairs = mean_labels(sample), sample.starts[:-1], []
    target = labels - np.repeat(np.add.reduceat(labels, starts) / sample.lengths, sample.lengths)
    for (query, values), (document, others) in itertools.product(of_queries.items(), of_documents.items()):
        equal = pc.fill_null(pc.and_(pc.equal(values, others), pc.not_equal(values, "")), False).to_numpy(False)
        by_list = np.add.reduceat(equal * target, starts)
        if equal.mean() >= _EQUAL and abs(by_list.sum()) > 2.0 * np.sqrt(np.square(by_list).sum()):
            pairs.append((query, document))
    return pairs


def _sampled(lists: Lists) -> Lists:
    """Returns some lists of several documents."""
    several = np.flatnonzero(lists.lengths > 1)
    return lists.take(several[:: len(several) // _SAMPLED + 1])


def _is_of_lists(values: pa.Array, lists: Lists) -> bool:
    """Returns whether values of the documents are the same in each list."""
    return not len(varying(values.dictionary_encode(null_encoding="encode").indices.to_numpy(), lists.lengths))


def _have_common_words(*texts: pa.Array) -> bool:
    """Returns whether the two texts of a row often have a word in common."""
    step = len(texts[0]) // _MOST_SAMPLED + 1
    first, second = (words(tf.constant(pc.fill_null(array[::step], "").to_pylist())) for array in texts)
    common = [not set(one).isdisjoint(other) for one, other in zip(first.to_list(), second.to_list(), strict=True)]
    return bool(np.mean(common) >= _RELATED)


@_traced_once(input_signature=[_PARTS])
def _hashed(parts: tf.RaggedTensor) -> tf.RaggedTensor:
    """Returns the codes of values or words [texts, (parts)] that are not empty."""
    known = tf.ragged.boolean_mask(parts, tf.not_equal(parts, ""))
    return known.with_values(tf.strings.to_hash_bucket_fast(known.values, _CODES))


@_traced_once(input_signature=[_PARTS])
def _trigrams(words: tf.RaggedTensor) -> tf.RaggedTensor:
    """Returns the codes of trigrams of the letters of words [texts, (words)], which start and end with a mark."""
    distinct, places = tf.unique(words.values)  # most words occur in many texts
    letters = tf.cast(tf.strings.unicode_decode(distinct, "UTF-8"), tf.int64)
    marks = tf.RaggedTensor.from_tensor(tf.zeros([tf.size(distinct), 1], tf.int64))
    letters = tf.concat([marks, letters, marks], axis=1)
    one, two, three = letters.values[:-2], letters.values[1:-1], letters.values[2:]
    word = letters.value_rowids()
    inside = tf.equal(word[:-2], word[2:])
    codes = ((one * _MOST_LETTERS + two) * _MOST_LETTERS + three) % _CODES
    codes, word = (tf.boolean_mask(of_trigrams, inside) for of_trigrams in (codes, word[:-2]))
    gathered = tf.gather(tf.RaggedTensor.from_value_rowids(codes, word, letters.nrows(), validate=False), places)
    splits = tf.gather(gathered.row_splits, words.row_splits)
    return tf.RaggedTensor.from_row_splits(gathered.values, splits, validate=False)


_CODES_AND_NUMBERS = tf.TensorSpec([None], tf.int64), tf.TensorSpec([None], tf.float32)
_OF_TEXTS = _Terms(tf.TensorSpec([], tf.int64), tf.TensorSpec([None], tf.int64), *_CODES_AND_NUMBERS)


@_traced_once(input_signature=[(_OF_TEXTS,) * 2, (tf.TensorSpec([None], tf.int32),) * 2, _CODES_AND_NUMBERS])
def _overlap(
    terms: tuple[_Terms, _Terms], places: tuple[tf.Tensor, tf.Tensor], table: tuple[tf.Tensor, tf.Tensor]
) -> tf.Tensor:
    """Returns what two texts have in common.

    Args:
      terms: The terms of the different texts of two columns.
      places: The text of each row in each of them, [rows].
      table: The codes of terms and their weights.

    Returns:
      float32 [rows, 6]: the fraction of the terms of the first text that the second one has, and the reverse; the same
      with weighted terms; the cosine of the counts times the weights; and the sum of the weights of the common terms.
    """
    first, second = terms
    weights = [_weights(of_column.code, table) for of_column in terms]
    scaled = [of_column.count * weight for of_column, weight in zip(terms, weights, strict=True)]
    totals = []
    for of_column, weight, vector, place in zip(terms, weights, scaled, places, strict=True):
        sums = tf.stack([tf.ones_like(weight), weight, vector * vector], axis=1)
        totals.append(tf.gather(tf.math.unsorted_segment_sum(sums, of_column.text, of_column.texts), place))
    # The terms of the first text of each row, and their places among those of the second text.
    terms_of_texts = tf.range(tf.size(first.text)), first.text, first.texts
    of_rows = tf.gather(tf.RaggedTensor.from_value_rowids(*terms_of_texts, validate=False), places[0])
    row, ours = of_rows.value_rowids(), of_rows.values
    wanted = tf.cast(tf.gather(places[1], row), tf.int64) * 2**32 + tf.gather(first.code, ours)
    size = tf.size(second.text)
    # The keys of the second column are unique, so the first index of each is its place.
    theirs = tf.unique(tf.concat([second.text * 2**32 + second.code, wanted], axis=0)).idx[size:]
    common = theirs < size
    row, ours, theirs = (tf.boolean_mask(values, common) for values in (row, ours, theirs))
    weight = tf.gather(weights[0], ours)
    products = tf.gather(scaled[0], ours) * tf.gather(scaled[1], theirs)
    sums = tf.stack([tf.ones_like(weight), weight, products], axis=1)
    sums = tf.math.unsorted_segment_sum(sums, row, tf.size(places[0]))
    shares = [tf.math.divide_no_nan(sums[:, :2], total[:, :2]) for total in totals]
    cosine = tf.math.divide_no_nan(sums[:, 2:], tf.sqrt(totals[0][:, 2:]) * tf.sqrt(totals[1][:, 2:]))
    return tf.concat([*shares, cosine, sums[:, 1:2]], axis=1)


def _weights(codes: tf.Tensor, table: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
    known, weights = table
    places = tf.searchsorted(known, codes)  # the last code is above all others
    return tf.gather(weights, tf.where(tf.equal(tf.gather(known, places), codes), places, tf.size(known) - 1))
