"""Scorers that encode the features of documents, numbers, codes and vectors: the base class, and any Keras layer."""

from __future__ import annotations

import abc
import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _keras, _serialization
from tfr_smooth.models.normalization import NORMALIZATIONS, Quantiles, QueryMinMax, Standardize, get_normalizer
from tfr_smooth.models.scorer import FeatureScorer

# The score at padding. It is finite, so JSON can represent it and its product with 0 is 0. It is below every score of a
# network, so padding sorts last.
PADDING_SCORE = -1e30


@_serialization.register
class Embeddings(_serialization.ConfiguredLayer, tf.keras.layers.Layer):
    r"""Maps codes among the features of documents to the mean of their vectors.

    $$y_t = \frac{1}{|C_t|} \sum_{c \in C_t} E_t[c], \qquad C_t = \{c_{t,1}, c_{t,2}, \dots\} \setminus \{0\}$$

    for each table t of vectors, or 0 without codes. The code 1 is that of rare values in training, whose vector unseen
    values then have, too.

    Args:
      tables: For each table, (first, length, rows): the place of its first code among the features, the number of codes
        per document and the number of vectors.
      dim: The length of the vectors, >= 1.
      seed: Seed of the initial vectors. None uses Keras's global seed.
      **kwargs: `name` and other arguments of a Keras layer.

    Call with features [documents, features], whose codes are integers in [0, rows). Returns float32 [documents, tables
    * dim].

    Raises:
      ValueError: If an argument is out of range.

    Time and memory O(documents * codes * dim); gradients are sparse.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> layer = models.Embeddings([(1, 2, 10)], dim=4)
      >>> layer(tf.constant([[0.5, 3.0, 7.0], [0.1, 0.0, 0.0]])).numpy()[1].tolist()
      [0.0, 0.0, 0.0, 0.0]
    """

    def __init__(
        self, tables: Sequence[Sequence[int]], *, dim: int = 16, seed: int | None = None, **kwargs: Any
    ) -> None:
        # Codes exceed the integers of float16.
        super().__init__(dtype="float32", **kwargs)
        self.tables = [tuple(int(number) for number in table) for table in tables]
        self.dim = _arguments.integer("dim", dim, least=1)
        self.seed = seed
        self.vectors = []
        for number, (_, _, rows) in enumerate(self.tables):
            initializer = tf.keras.initializers.RandomNormal(0.1, seed=None if seed is None else seed + number)
            name = f"embeddings_{number}"
            self.vectors.append(self.add_weight(name=name, shape=(rows, self.dim), initializer=initializer))
        self.built = True

    def call(self, features: tf.Tensor) -> tf.Tensor:
        """Returns the mean vectors [documents, tables * dim]."""
        vectors = []
        for (first, length, _), table in zip(self.tables, _keras.tensorflow_variables(self.vectors), strict=True):
            codes = tf.cast(features[:, first : first + length], tf.int32)
            vectors.append(tf.gather(table, codes[:, 0]) if length == 1 else _mean(table, codes))
        return tf.concat(vectors, axis=1)


def _mean(table: tf.Tensor, codes: tf.Tensor) -> tf.Tensor:
    """Returns the mean vectors of codes [documents, length], each computed once for equal documents in a row.

    A set of the query, such as the items of a session, is that of all documents of its list.
    """
    is_new = tf.reduce_any(tf.not_equal(codes[1:], codes[:-1]), axis=1)
    is_new = tf.concat([tf.ones_like(codes[:1, 0], tf.bool), is_new], axis=0)
    different = tf.boolean_mask(codes, is_new)
    known = tf.cast(different > 0, tf.float32)
    total = tf.reduce_sum(tf.gather(table, different) * known[:, :, tf.newaxis], axis=1)
    means = tf.math.divide_no_nan(total, tf.reduce_sum(known, axis=1, keepdims=True))
    return tf.gather(means, tf.cumsum(tf.cast(is_new, tf.int32)) - 1)


class EncodedScorer(FeatureScorer):
    """Base class of scorers of encoded documents: normalized numbers, vectors, and the vectors of codes.

    A subclass sets `_config`, with its arguments and those of the encoding, and calls `set_encoding`.
    """

    _config: dict[str, Any]
    _uses_segments = False  # whether `encode` returns the segments of the quantiles
    _num_segments = 0
    num_features: int | None = None

    @abc.abstractmethod
    def build_network(self, width: int) -> None:
        """Creates the weights for encoded documents of this width."""

    def set_encoding(self, seed: int | None) -> None:
        """Creates the layers of the encoding, from `_config`; the seed is that of the vectors of codes."""
        self.normalizer = get_normalizer(self._config["normalization"])
        if self._uses_segments:
            others = self._places_of_blocks
            plain = [place for place in self._config["weak"] if place not in others]
            plain = [place - sum(other < place for other in others) for place in plain]  # among the numbers
            self.normalizer = Quantiles(segments=True, plain=plain)
        tables, dim = self._config["embeddings"], self._config["embedding_dim"]
        self.embeddings = Embeddings(tables, dim=dim, seed=seed) if tables else None

    def offset(self, inputs: Any, mask: tf.Tensor) -> tf.Tensor | float:
        """Returns the feature that is added to scores of real documents, float32 [documents, 1]; 0 for none."""
        place = self._config["offset"]
        features = inputs["features"] if isinstance(inputs, dict) else inputs
        return 0.0 if place is None else tf.boolean_mask(features[..., place : place + 1], mask)

    @property
    def _blocks(self) -> list[Sequence[int]]:
        """The features that are no numbers to normalize: (first, length, ...) of codes and vectors."""
        return [*self._config["embeddings"], *self._config["vectors"]]

    @property
    def _places_of_blocks(self) -> set[int]:
        return {first + place for first, length, *_ in self._blocks for place in range(length)}

    def build(self, input_shape: Any) -> None:
        """Creates the weights for features of this shape, or for a dict with `features` of this shape."""
        if self.num_features is not None:
            return
        shape = input_shape["features"] if isinstance(input_shape, dict) else input_shape
        self.num_features = int(shape[-1])
        others = self._places_of_blocks
        # An array, since TensorFlow takes an empty list for floats.
        self._numbers = np.array([place for place in range(self.num_features) if place not in others], np.int32)
        width = len(self._numbers)
        if not width:
            self.normalizer = None
        if isinstance(self.normalizer, Standardize) and not self.normalizer.built:
            self.normalizer.build((None, None, width))
        if self.normalizer is not None:
            self._num_segments = self.normalizer.num_segments if self._uses_segments else 0
            width = int(self.normalizer.compute_output_shape((None, width))[-1]) - self._num_segments
        width += sum(length for _, length in self._config["vectors"])
        width += len(self._config["embeddings"]) * self._config["embedding_dim"]
        self.build_network(width)
        self.built = True

    def encoded_places(self) -> np.ndarray:
        """Returns the place of the feature of each column of encoded documents; for vectors of codes, of the first."""
        vectors = [np.arange(first, first + length) for first, length in self._config["vectors"]]
        codes = [np.full(self._config["embedding_dim"], first) for first, *_ in self._config["embeddings"]]
        quantiles = [self._numbers[self.normalizer.others]] if isinstance(self.normalizer, Quantiles) else []
        return np.concatenate([self._numbers, *quantiles, *vectors, *codes])

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**self._config, "name": self.name}

    def adapt(self, dataset: Iterable[Any]) -> None:
        """Computes the statistics of `normalization="standardize"` or "quantiles" from a training set.

        Does nothing for other normalizations.

        Args:
          dataset: Batches of (inputs, labels), such as from `data.Lists.batches`. Iterated once.
        """
        if isinstance(self.normalizer, Standardize):
            self.normalizer.adapt(map(self._of_numbers, dataset) if self._blocks else dataset)

    def _of_numbers(self, element: Any) -> Any:
        """Returns an element of a dataset with only the features that are numbers."""
        inputs, *others = element
        return {**inputs, "features": tf.gather(inputs["features"], self._numbers, axis=-1)}, *others

    def encode(self, inputs: Any) -> tuple[tf.Tensor, tf.Tensor | None, tf.Tensor]:
        """Returns the encoded real documents [documents, width], their segments or None, and the mask [batch, list]."""
        features = tf.convert_to_tensor(inputs["features"] if isinstance(inputs, dict) else inputs)
        if features.shape[-1] not in (None, self.num_features):
            raise ValueError(f"`features` must be {self.num_features} per document, got shape {features.shape}.")
        mask = inputs.get("mask") if isinstance(inputs, dict) else None
        mask = tf.ones(tf.shape(features)[:2], tf.bool) if mask is None else tf.cast(mask, tf.bool)
        numbers = tf.gather(features, self._numbers, axis=-1) if self._blocks else features
        if isinstance(self.normalizer, QueryMinMax):
            numbers = self.normalizer(numbers, mask=mask)
        documents = tf.boolean_mask(numbers, mask)
        if self.normalizer is not None and not isinstance(self.normalizer, QueryMinMax):
            documents = self.normalizer(documents[tf.newaxis])[0]
        segments = None
        if self._num_segments:
            documents, segments = tf.split(documents, [-1, self._num_segments], axis=1)
        if self._blocks:
            others = tf.boolean_mask(features, mask)
            parts = [documents, *(others[:, first : first + length] for first, length in self._config["vectors"])]
            if self.embeddings is not None:
                parts.append(self.embeddings(others))
            documents = tf.concat(parts, axis=1)
        return documents, segments, mask


def _checked_blocks(name: str, value: Any, expected: str, size: int) -> list[list[int]]:
    if not all(len(_arguments.sequence(name, block)) == size for block in _arguments.sequence(name, value)):
        raise ValueError(f"`{name}` must be tuples {expected}, got {value!r}.")
    return [[_arguments.integer(name, number, least=0) for number in block] for block in value]


# The checks of the arguments of the encoding, by name.
ENCODING_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "normalization": lambda name, value: value if value is None else _arguments.choice(name, value, NORMALIZATIONS),
    "embeddings": lambda name, value: _checked_blocks(name, value, "(first, length, rows)", 3),
    "vectors": lambda name, value: _checked_blocks(name, value, "(first, length)", 2),
    "embedding_dim": functools.partial(_arguments.integer, least=1),
    "offset": functools.partial(_arguments.integer_or_none, least=0),
    "seed": functools.partial(_arguments.integer_or_none, least=0),
}


@_serialization.register
class NetworkScorer(EncodedScorer):
    """Scores the documents of a list by a Keras layer of their encoded features.

    Args:
      network: A layer from encoded documents [batch, list, width], 0 at padding, to scores [batch, list] or [batch,
        list, 1]; if its `call` has the argument `mask`, it gets the mask [batch, list] bool. To load the model from a
        file, Keras needs the class of the layer to be registered.
      normalization: As for `FeedForwardScorer`.
      embeddings: As for `FeedForwardScorer`.
      vectors: As for `FeedForwardScorer`.
      embedding_dim: As for `FeedForwardScorer`.
      offset: As for `FeedForwardScorer`.
      seed: Seed of the vectors of codes. None uses Keras's global seed.
      name: Name of the model. None uses Keras's default.

    Call with a dict of `features` [batch, list, num_features] and an optional `mask` [batch, list] bool, or with only
    the features. Returns scores [batch, list], float32; `PADDING_SCORE` (-1e30) at padding.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory are those of the layer, padding included.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> scorer = models.NetworkScorer(tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)]))
      >>> scorer(tf.ones([2, 3, 5])).shape
      TensorShape([2, 3])
    """

    def __init__(
        self,
        network: tf.keras.layers.Layer,
        *,
        normalization: str | None = None,
        embeddings: Sequence[Sequence[int]] = (),
        vectors: Sequence[Sequence[int]] = (),
        embedding_dim: int = 16,
        offset: int | None = None,
        seed: int | None = None,
        name: str | None = "network_scorer",
    ) -> None:
        arguments = {key: value for key, value in locals().items() if key in ENCODING_CHECKS}
        super().__init__(name=name, autocast=False)
        self.network = _arguments.instance("network", network, tf.keras.layers.Layer)
        self.network.supports_masking = True  # Keras warns if a layer with the argument `mask` does not.
        self._config = {key: ENCODING_CHECKS[key](key, value) for key, value in arguments.items()}
        self.supports_jit = False
        self.set_encoding(seed)

    def build_network(self, width: int) -> None:
        """Creates the weights for encoded documents of this width."""
        if not self.network.built:
            self._scores(tf.zeros([1, 2, width]), tf.ones([1, 2], tf.bool), False)

    def call(self, inputs: Any, training: bool | None = None) -> tf.Tensor:
        """Returns scores [batch, list]."""
        documents, _, mask = self.encode(inputs)
        shape = tf.concat([tf.shape(mask), [documents.shape[1]]], axis=0)
        padded = tf.scatter_nd(tf.where(mask), documents, tf.cast(shape, tf.int64))
        padded = tf.ensure_shape(padded, [*mask.shape, documents.shape[1]])
        scores = tf.boolean_mask(self._scores(padded, mask, training), mask)[:, tf.newaxis] + self.offset(inputs, mask)
        return tf.tensor_scatter_nd_update(tf.fill(tf.shape(mask), PADDING_SCORE), tf.where(mask), scores[:, 0])

    def _scores(self, padded: tf.Tensor, mask: tf.Tensor, training: bool | None) -> tf.Tensor:
        known = {"mask": mask, "training": training}
        parameters = inspect.signature(self.network.call).parameters
        scores = self.network(padded, **{name: value for name, value in known.items() if name in parameters})
        if scores.shape.rank == 3 and scores.shape[2] == 1:
            scores = scores[:, :, 0]
        if scores.shape.rank != 2:
            raise ValueError(f"`network` must return scores [batch, list] or [batch, list, 1], got {scores.shape}.")
        return tf.cast(scores, tf.float32)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "network": tf.keras.utils.serialize_keras_object(self.network)}
