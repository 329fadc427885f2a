"""The base class of scorers that encode the features of documents: numbers, codes and vectors."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.models.embeddings import Embeddings
from tfr_smooth.models.normalization import NORMALIZATIONS, Quantiles, QueryMinMax, Standardize, get_normalizer
from tfr_smooth.models.scorer import FeatureScorer

# The score at padding. It is finite, so JSON can represent it and its product with 0 is 0. It is below every score of a
# network, so padding sorts last.
PADDING_SCORE = -1e30


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
