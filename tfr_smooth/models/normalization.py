"""Keras layers that normalize ranking features inside the model and ignore padding.

Call them as `layer(features, mask=mask)` with features [batch, list, F] and a bool mask [batch, list] that is True for
real documents; without a mask, all documents are real. The output is float32 and 0 in padded rows, whatever values the
padded rows contain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _serialization

# Ranking did not get better beyond 8 segments, 16 leave some to columns that are mostly zero. The others are not tuned.
_SEGMENTS = 16  # of the piecewise linear quantiles
_SAMPLED = 1 << 15  # documents that quantiles are computed from
_LARGEST = 10.0  # standard deviations
# The product of a slope in this range and a difference of float32 numbers, which may be 0 or infinite, is no NaN.
_SLOPES = (float(np.finfo(np.float32).tiny), 1e30)


class _Normalizer(_serialization.ConfiguredLayer, tf.keras.layers.Layer):
    """Base of the normalization layers: sets padding to 0 before and after `normalize`."""

    def __init__(self, *, dtype: Any = "float32", **kwargs: Any) -> None:
        # Raw features may exceed the range of float16, so a global mixed precision policy, which casts inputs, does not
        # apply here.
        super().__init__(dtype=dtype, **kwargs)
        self.supports_masking = True

    def call(self, features: tf.Tensor, mask: tf.Tensor | None = None) -> tf.Tensor:
        """Normalizes the features of real documents and sets padding to 0.

        Args:
          features: [batch, list, F], finite in real documents.
          mask: bool [batch, list], True for real documents. None: all documents are real.

        Returns:
          float32 [batch, list, F].
        """
        features = tf.cast(features, tf.float32)
        if mask is None:
            return self.normalize(features, tf.ones_like(features[..., :1], tf.bool))
        real = tf.cast(mask, tf.bool)[..., tf.newaxis]
        features = tf.where(real, features, 0.0)
        return tf.where(real, self.normalize(features, real), 0.0)

    def normalize(self, features: tf.Tensor, real: tf.Tensor) -> tf.Tensor:
        """Returns the normalized features; called by the layer.

        Args:
          features: float32 [batch, list, F], 0 for padding.
          real: bool [batch, list, 1], True for real documents.

        Returns:
          float32 [batch, list, F]; values for padding are ignored.
        """
        raise NotImplementedError

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """Stops the mask here: Keras would pass it to the loss and weight documents by it."""
        return None

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns the shape of the features."""
        return input_shape


@_serialization.register
class QueryMinMax(_Normalizer):
    """Scales each feature to [0, 1] within its query.

    `y = (x - min) / (max - min)`, with min and max over the real documents of the query. A feature that is constant in
    the query becomes 0. LETOR 4.0 normalizes this way.

    Args:
      dtype: Dtype policy of the layer; the computation uses float32.
      **kwargs: `name` and other arguments of a Keras layer.

    Call args:
      features: [batch, list, F], finite in real documents.
      mask: bool [batch, list], True for real documents. None: all documents are real.

    Returns:
      float32 [batch, list, F] in [0, 1]; 0 for padding.

    Time and memory are linear in the size of the features.

    Example:
      >>> QueryMinMax()(tf.constant([[[1.0], [5.0], [2.0]]])).numpy().ravel().tolist()
      [0.0, 1.0, 0.25]
    """

    def normalize(self, features: tf.Tensor, real: tf.Tensor) -> tf.Tensor:
        """Returns the normalized features; called by the layer.

        Args:
          features: float32 [batch, list, F], 0 for padding.
          real: bool [batch, list, 1], True for real documents.

        Returns:
          float32 [batch, list, F]; values for padding are ignored.
        """
        halves = features * 0.5  # The range of finite features may overflow, half of it cannot.
        low = tf.reduce_min(tf.where(real, halves, np.inf), axis=-2, keepdims=True)
        high = tf.reduce_max(tf.where(real, halves, -np.inf), axis=-2, keepdims=True)
        varies = high > low
        half_range = tf.where(varies, high - low, 1.0)
        return tf.where(varies & real, (halves - low) / half_range, 0.0)


@_serialization.register
class Standardize(_Normalizer):
    """Standardizes each feature by its mean and standard deviation over the training documents.

    `y = (x - mean) / stddev` with the population standard deviation. A feature that is constant in the training set
    becomes 0. `adapt` computes both, and must be called before the layer is. They are the non-trainable weights `mean`
    [F], `stddev` [F] and `mean_rest` [F], what `mean` lacks as a float32; so a saved model includes them.

    Args:
      dtype: Dtype policy of the layer; the computation uses float32.
      **kwargs: `name` and other arguments of a Keras layer.

    Call args:
      features: [batch, list, F], finite in real documents.
      mask: bool [batch, list], True for real documents. None: all documents are real.

    Returns:
      float32 [batch, list, F]; 0 for padding.

    Raises:
      ValueError: If the layer has no statistics, neither from `adapt` nor from a file.

    Time and memory are linear in the size of the features.

    Example:
      >>> layer = Standardize()
      >>> layer.adapt([({"features": np.array([[[1.0], [3.0]]])}, None)])
      >>> layer(tf.constant([[[1.0], [3.0], [4.0]]])).numpy().ravel().tolist()
      [-1.0, 1.0, 2.0]
    """

    _is_adapted = False

    def __call__(self, features: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls the layer, which must be adapted unless the features are symbolic."""
        if not self._is_adapted and not _is_symbolic(features):
            with tf.init_scope():  # A graph may be being traced.
                if tf.executing_eagerly():
                    # A variable that the graph creates has no value yet.
                    stddev = tf.convert_to_tensor(self.stddev).numpy() if self.built else np.zeros(0)
                    self._is_adapted = stddev.size > 0 and not np.isnan(stddev).any()
                    if not self._is_adapted:
                        needs = "the statistics of the training set, got none: call `adapt(dataset)` first"
                        raise ValueError(f"`{type(self).__name__}` needs {needs}.")
        return super().__call__(features, *args, **kwargs)

    def build(self, input_shape: Any) -> None:
        """Creates the weights; the last dimension of the features must be known."""
        width = tf.TensorShape(input_shape)[-1]
        if width is None:
            raise ValueError("`features` must have a known last dimension, got None.")
        for name, initial in (("mean", 0.0), ("stddev", np.nan), ("mean_rest", 0.0)):
            constant = tf.keras.initializers.Constant(initial)
            weight = self.add_weight(name=name, shape=(width,), dtype="float32", initializer=constant, trainable=False)
            setattr(self, name, weight)
        super().build(input_shape)

    def adapt(self, dataset: Iterable[Any]) -> None:
        """Computes the mean and standard deviation of each feature, and replaces earlier ones.

        Args:
          dataset: A finite dataset of `(inputs, labels)` or `inputs`, such as from `Lists.batches`: a dict with
            "features" [batch, list, F] and optionally "mask" [batch, list].

        Raises:
          ValueError: If the dataset has no real documents, a different number of features than the layer or a value
            that is not finite, or repeats forever.

        One pass. Merges float64 moments batch by batch; memory holds one batch.
        """
        self.learn(_documents(dataset))

    def learn(self, parts: Iterable[np.ndarray]) -> None:
        """Computes the statistics of documents.

        Args:
          parts: Arrays [documents, F], float64, with at least one document.
        """
        count, mean, squares = 0, np.zeros(()), np.zeros(())
        for rows in parts:  # merged as by Chan, Golub and LeVeque (1979), which is numerically stable
            total, mean_of_rows = count + len(rows), rows.mean(axis=0)
            shift = mean_of_rows - mean
            between = np.square(shift) * (count * len(rows) / total)
            squares = squares + np.square(rows - mean_of_rows).sum(axis=0) + between
            mean = mean + shift * (len(rows) / total)
            count = total
        width = len(mean)
        if not self.built:
            self.build((None, None, width))
        if self.mean.shape[0] != width:
            raise ValueError(f"`dataset` must have {self.mean.shape[0]} features, got {width}.")
        self.mean.assign(mean.astype(np.float32))
        self.mean_rest.assign((mean - mean.astype(np.float32)).astype(np.float32))
        self.stddev.assign(np.sqrt(squares / count).astype(np.float32))

    def normalize(self, features: tf.Tensor, real: tf.Tensor) -> tf.Tensor:
        """Returns the normalized features; called by the layer.

        Args:
          features: float32 [batch, list, F], 0 for padding.
          real: bool [batch, list, 1], True for real documents.

        Returns:
          float32 [batch, list, F]; values for padding are ignored.
        """
        # The difference of finite features may overflow, that of their quarters cannot. Programs that simplify
        # exported graphs multiply by 1 / stddev, which is no denormal number for a quarter, and would subtract the sum
        # of the mean and its rest, which is the mean: the maximum keeps the two apart.
        weights = (self.mean, self.mean_rest, self.stddev)
        mean, rest, stddev = (0.25 * tf.convert_to_tensor(weight) for weight in weights)
        constant = stddev == 0.0
        shifted = tf.maximum(0.25 * features - mean, -np.inf) - rest
        return tf.where(constant, 0.0, shifted / tf.where(constant, 1.0, stddev))


@_serialization.register
class Quantiles(Standardize):
    r"""Returns each feature twice: standardized, and by its quantile among the training documents.

    $$y = \left[\mathrm{clip}\Big(\frac{x - \mathrm{mean}}{\mathrm{stddev}}, -10, 10\Big), \;
      \sqrt{3} \, (2 q(x) - 1)\right]$$

    q(x) is the fraction of the training documents with lower values, where no value counts for more than 1/16: a
    feature that is mostly zero has segments for its other values, and one of up to 17 values has a step for each. q is
    linear between at most 17 values of up to 32,768 documents, which are drawn at random. A network learns steps and
    heavy tails faster from quantiles, and linear effects faster from values.

    Args:
      segments: Whether to return also how much of each of the 16 segments of q is below the feature, in [0, 1]: linear
        models of them are sums of piecewise linear functions of the features.
      plain: The places of features that are only standardized.
      dtype: Dtype policy of the layer; the computation uses float32.
      **kwargs: `name` and other arguments of a Keras layer.

    Call args:
      features: [batch, list, F], finite in real documents.
      mask: bool [batch, list], True for real documents. None: all documents are real.

    Returns:
      float32 [batch, list, 2 F - P] for P plain features, with the segments [batch, list, 18 F - 17 P]; 0 for padding.

    Raises:
      ValueError: If the layer has no statistics, neither from `adapt` nor from a file.

    Time and memory are linear in the size of the features.

    Example:
      >>> layer = Quantiles()
      >>> layer.adapt([({"features": np.arange(5.0)[np.newaxis, :, np.newaxis]}, None)])
      >>> layer(tf.constant([[[0.0], [2.0], [9.0]]])).numpy().round(2).tolist()
      [[[-1.409999966621399, -1.7300000190734863], [0.0, 0.0], [4.949999809265137, 1.7300000190734863]]]
    """

    def __init__(
        self, *, segments: bool = False, plain: Sequence[int] = (), dtype: Any = "float32", **kwargs: Any
    ) -> None:
        super().__init__(dtype=dtype, **kwargs)
        self.segments = _arguments.boolean("segments", segments)
        self.plain = [_arguments.integer("plain", place, least=0) for place in plain]

    def build(self, input_shape: Any) -> None:
        """Creates the weights; the last dimension of the features must be known."""
        super().build(input_shape)
        width = tf.TensorShape(input_shape)[-1]
        self.others = np.setdiff1d(np.arange(width, dtype=np.int32), self.plain)
        self.num_segments = _SEGMENTS * len(self.others) if self.segments else 0
        shape = (_SEGMENTS, len(self.others))
        for name in ("starts", "slopes", "heights"):
            setattr(self, name, self.add_weight(name=name, shape=shape, initializer="zeros", trainable=False))

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns the shape of the values, quantiles and segments."""
        width = input_shape[-1]
        others = len(np.setdiff1d(np.arange(width), self.plain))
        return (*input_shape[:-1], width + (1 + _SEGMENTS * self.segments) * others)

    def learn(self, parts: Iterable[np.ndarray]) -> None:
        """Computes the statistics of documents.

        Args:
          parts: Arrays [documents, F], float64, with at least one document.
        """
        sample = Sample(_SAMPLED)
        super().learn(map(sample.add, parts))
        curves = np.empty([3, *self.starts.shape])
        for place, column in enumerate(sample.rows.T[self.others]):
            curves[..., place] = quantile_curve(column, _SEGMENTS)
        rises = 2.0 * np.sqrt(3.0) / 6.0 * curves[2]  # ReLU6 of a whole segment is 6.
        for weight, value in zip((self.starts, self.slopes, self.heights), (*curves[:2], rises), strict=True):
            weight.assign(value.astype(np.float32))

    def normalize(self, features: tf.Tensor, real: tf.Tensor) -> tf.Tensor:
        """Returns the values, quantiles and segments; called by the layer.

        Args:
          features: float32 [batch, list, F], 0 for padding.
          real: bool [batch, list, 1], True for real documents.

        Returns:
          float32 [batch, list, 2 F - P or 18 F - 17 P]; values for padding are ignored.
        """
        values = tf.clip_by_value(super().normalize(features, real), -_LARGEST, _LARGEST)
        features = tf.gather(features, self.others, axis=-1) if self.plain else features
        quantiles = tf.zeros_like(features) - 3.0 * tf.reduce_sum(self.heights, axis=0)  # 0 for constant features
        weights = (tf.unstack(tf.convert_to_tensor(weight)) for weight in (self.starts, self.slopes, self.heights))
        below = []
        # A binary search and look-ups, in place of this sum, take several times as long. ReLU6 clips to [0, 6].
        for start, slope, height in zip(*weights, strict=True):
            below.append(tf.nn.relu6((features - start) * slope))
            quantiles += height * below[-1]
        if self.segments:
            return tf.concat([values, quantiles, tf.concat(below, axis=-1) / 6.0], axis=-1)
        return tf.concat([values, quantiles], axis=-1)


@_serialization.register
class SymmetricLog1p(_Normalizer):
    """Compresses large values of either sign, for raw features such as those of MSLR-WEB.

    `y = sign(x) log(1 + |x|)`

    Args:
      dtype: Dtype policy of the layer; the computation uses float32.
      **kwargs: `name` and other arguments of a Keras layer.

    Call args:
      features: [batch, list, F], finite in real documents.
      mask: bool [batch, list], True for real documents. None: all documents are real.

    Returns:
      float32 [batch, list, F], with absolute values <= 88.8; 0 for padding.

    Time and memory are linear in the size of the features.

    Example:
      >>> y = SymmetricLog1p()(tf.constant([[[-999.0], [0.0], [999.0]]]))
      >>> [round(value, 3) for value in y.numpy().ravel().tolist()]
      [-6.908, 0.0, 6.908]
    """

    def normalize(self, features: tf.Tensor, real: tf.Tensor) -> tf.Tensor:
        """Returns the normalized features; called by the layer.

        Args:
          features: float32 [batch, list, F], 0 for padding.
          real: bool [batch, list, 1], True for real documents.

        Returns:
          float32 [batch, list, F]; values for padding are ignored.
        """
        return tf.sign(features) * tf.math.log1p(tf.abs(features))


def _documents(dataset: Iterable[Any]) -> Iterator[np.ndarray]:
    """Yields the features of real documents, float64 [documents, F], which must be finite."""
    if isinstance(dataset, tf.data.Dataset) and (int(dataset.cardinality()) == tf.data.INFINITE_CARDINALITY):
        raise ValueError("`dataset` must be finite, got one that repeats forever.")
    width = None
    for element in dataset:
        inputs = element[0] if isinstance(element, (tuple, list)) else element
        # float32 first, as in the layer's input. Sums of equal float32 values are exact in float64 (up to 2**29 of
        # them), so a constant feature has a deviation of 0.
        features = np.asarray(inputs["features"], dtype=np.float32).astype(np.float64)
        mask = inputs.get("mask")
        rows = features[np.ones(features.shape[:-1], bool) if mask is None else np.asarray(mask, bool)]
        wrong = np.argwhere(~np.isfinite(rows))
        if len(wrong):
            value, feature = float(rows[tuple(wrong[0])]), int(wrong[0][1]) + 1
            expected = "finite features in real documents"
            raise ValueError(f"`dataset` must have {expected}, got {value} in feature {feature}.")
        if width not in (None, rows.shape[1]):
            raise ValueError(f"`dataset` must have {width} features, got {rows.shape[1]}.")
        if len(rows):
            width = rows.shape[1]
            yield rows
    if width is None:
        raise ValueError("`dataset` must contain at least one real document, got none.")


def _is_symbolic(features: Any) -> bool:
    """Whether Keras calls a layer only for the shapes of a model, which may be adapted later."""
    if type(features).__name__.endswith("KerasTensor"):
        return True
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    while graph is not None:
        # The graphs in which both versions of Keras call layers, and in which Keras 2 builds models.
        if "scratch_graph" in getattr(graph, "name", "") or getattr(graph, "name", "") == "build_graph":
            return True
        graph = getattr(graph, "outer_graph", None)
    return False


_NORMALIZERS = {"min_max": QueryMinMax, "standardize": Standardize, "quantiles": Quantiles, "log1p": SymmetricLog1p}
NORMALIZATIONS = tuple(_NORMALIZERS)


def get_normalizer(normalization: str | None) -> tf.keras.layers.Layer | None:
    """Creates a normalization layer by name.

    Args:
      normalization: "min_max" (`QueryMinMax`), "standardize" (`Standardize`) or "quantiles" (`Quantiles`), which
        must be adapted, "log1p" (`SymmetricLog1p`), or None for no normalization.

    Returns:
      A new layer, or None.

    Raises:
      ValueError: If the name is unknown.

    Example:
      >>> type(get_normalizer("min_max")).__name__, get_normalizer(None)
      ('QueryMinMax', None)
    """
    if normalization is None:
        return None
    return _NORMALIZERS[_arguments.choice("normalization", normalization, NORMALIZATIONS)]()


class Sample:
    """Up to `size` rows, drawn at random from all that are added (Vitter's algorithm R).

    Args:
      size: The most rows, >= 1.

    Example:
      >>> sample = Sample(2)
      >>> for part in np.split(np.arange(6.0), 3):
      ...     _ = sample.add(part[:, np.newaxis])
      >>> sample.rows.shape
      (2, 1)
    """

    def __init__(self, size: int) -> None:
        self._size, self._random, self._count = size, np.random.default_rng(0), 0
        self._rows = np.zeros((0, 0), np.float32)

    @property
    def rows(self) -> np.ndarray:
        """The rows, float32."""
        return self._rows[: self._count]

    def add(self, rows: np.ndarray) -> np.ndarray:
        """Adds rows and returns them."""
        if not self._count:
            self._rows = np.zeros((self._size, rows.shape[1]), np.float32)
        counts = self._count + np.arange(1, len(rows) + 1)
        places = np.where(counts <= self._size, counts - 1, self._random.random(len(rows)) * counts).astype(np.int64)
        kept = places < self._size
        self._rows[places[kept]] = rows[kept]
        self._count += len(rows)
        return rows


def quantile_curve(column: np.ndarray, segments: int) -> np.ndarray:
    """Returns the segments of the curve from the values of a column to their quantiles.

    The quantile is the fraction of lower values, from 0 for the lowest to 1 for the highest. No distinct value counts
    for more than a fraction of 1 / segments, so the curve has segments for values beside a frequent one. With up to
    segments + 1 distinct values, all count the same.

    Args:
      column: float32 [rows], with at least one.
      segments: The most segments, >= 1.

    Returns:
      float64 [3, segments]: where they start, 6 / their lengths, and how far the curve rises. Those that are not needed
      are 0.

    Time O(n log n), memory O(n).

    Example:
      >>> starts, slopes, rises = quantile_curve(np.float32([0] * 93 + [1, 2, 4, 4, 8, 8, 8]), 4)
      >>> starts.tolist(), slopes.tolist(), rises.tolist()
      ([0.0, 1.0, 2.0, 4.0], [6.0, 6.0, 3.0, 1.5], [0.25, 0.25, 0.25, 0.25])
    """
    values, counts = np.unique(column, return_counts=True)
    knots, weights = values, np.ones(len(values))
    if len(values) > segments + 1:
        weights = np.minimum(counts, _cap(counts, segments))
    lower = np.cumsum(weights) - weights
    quantiles = lower / max(lower[-1], 1.0)
    if len(values) > segments + 1:
        places = np.unique(np.searchsorted(quantiles, np.linspace(0.0, 1.0, segments + 1)))
        knots, quantiles = values[places], quantiles[places]
    curve = np.zeros((3, segments))
    slopes = np.clip(6.0 / np.diff(knots.astype(np.float64)), *_SLOPES)
    curve[:, : len(slopes)] = knots[:-1], slopes, np.diff(quantiles)
    return curve


def _cap(counts: np.ndarray, parts: int) -> float:
    """Returns the cap of more than `parts` counts that is their capped sum divided by `parts`."""
    largest = np.sort(counts)[::-1][:parts]
    others = counts.sum() - np.cumsum(largest) + largest
    caps = others / np.arange(parts, 0, -1)  # if the larger ones are capped, but not this one
    return float(caps[np.argmax(largest <= caps)])
