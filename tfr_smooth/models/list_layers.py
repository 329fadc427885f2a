"""TF-Ranking's layers between lists and rows of documents, and its networks for rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _serialization

# TF-Ranking's score at padding.
_PADDING_SCORE = math.log(1e-10)


@_serialization.register
class FlattenList(_serialization.ConfiguredLayer, tf.keras.layers.Layer):
    """Flattens lists to one row per document, with the context features of its list; TF-Ranking's layer.

    A network for rows can then score all documents, and `RestoreList` returns the scores to their lists.

    A row of padding contains the features of a real document of its list: at position p, those of real document p
    modulo the number of real documents. The rows of real documents do not depend on padding. But a layer that computes
    statistics of its batch, such as batch normalization in training, counts the rows of padding. `FeedForwardScorer`
    processes only real documents.

    Values at padding that are used, such as those of lists without a real document, are replaced by 0 if they are not
    finite.

    The layer equals TF-Ranking's if padding is at the end of lists. Otherwise, TF-Ranking moves real documents to the
    start of their list, and `RestoreList` then assigns their scores to other positions.

    Args:
      circular_padding: Whether rows of padding contain the features of real documents instead of those at padding.
      name: Name of the layer. None uses Keras's default.
      **kwargs: Arguments of `tf.keras.layers.Layer`.

    Call with a tuple of `context_features`, a dict of tensors [batch, ...]; `example_features`, a dict of tensors
    [batch, list, ...]; and `list_mask` [batch, list] bool, False for padding. Returns two dicts with the same keys, of
    tensors [batch * list, ...].

    Raises:
      ValueError: If an argument is invalid or there are no example features.

    Time O(batch * list * (width + log list)), memory O(batch * list * width).

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> context = {"user": tf.constant([[1], [0]])}
      >>> examples = {"price": tf.constant([[[1], [0], [-1]], [[0], [1], [0]]])}
      >>> mask = tf.constant([[True, True, False], [True, False, False]])
      >>> context, examples = models.FlattenList()((context, examples, mask))
      >>> context["user"].numpy().ravel().tolist(), examples["price"].numpy().ravel().tolist()
      ([1, 1, 1, 0, 0, 0], [1, 0, 1, 0, 0, 0])
    """

    def __init__(self, circular_padding: bool = True, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.circular_padding = _arguments.boolean("circular_padding", circular_padding)

    def call(self, inputs: tuple[Any, Any, Any]) -> Any:
        """Returns two dicts of tensors [batch * list, ...]."""
        context_features, example_features, list_mask = inputs
        if not example_features:
            raise ValueError(f"`example_features` must contain at least one feature, got {example_features!r}.")
        mask = tf.cast(list_mask, tf.bool)
        shape = tf.shape(mask)
        context = {name: tf.repeat(values, shape[1], axis=0) for name, values in context_features.items()}
        indices = _circular_indices(mask) if self.circular_padding else None
        examples = {}
        for name, values in example_features.items():
            values = _finite_at_padding(tf.convert_to_tensor(values), mask)
            values = values if indices is None else tf.gather(values, indices, batch_dims=1)
            examples[name] = tf.reshape(values, tf.concat([[shape[0] * shape[1]], tf.shape(values)[2:]], axis=0))
        return context, examples


@_serialization.register
class RestoreList(_serialization.ConfiguredLayer, tf.keras.layers.Layer):
    """Returns the scores of rows to their lists, and sets the scores at padding to log(1e-10); TF-Ranking's layer.

    The rows are those of `FlattenList`. The losses and metrics ignore the scores at padding. For predictions that sort
    padding last, set them to `PADDING_SCORE`: real scores may be below log(1e-10) = -23.03.

    Args:
      name: Name of the layer. None uses Keras's default.
      by_scatter: Whether the score of a real document is the mean of the scores of its rows, including the rows of
        padding that contain its features. They differ only if the network is random, such as with dropout in training.
      **kwargs: Arguments of `tf.keras.layers.Layer`.

    Call with a tuple of `flattened_logits` [batch * list] or [batch * list, 1] and `list_mask` [batch, list] bool,
    False for padding. Returns [batch, list].

    Equal to TF-Ranking's layer if padding is at the end of lists, except with `by_scatter` in lists without a real
    document, where TF-Ranking returns a mean score at the first position.

    Raises:
      ValueError: If an argument is invalid or the shapes do not match.

    Time O(batch * list log list), memory O(batch * list).

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> mask = tf.constant([[True, True, False], [True, False, False]])
      >>> print(models.RestoreList()((tf.constant([1.0, 0.5, 2.0, 0.0, -1.0, 0.0]), mask)).numpy().round(2))
      [[  1.     0.5  -23.03]
       [  0.   -23.03 -23.03]]
    """

    def __init__(self, name: str | None = None, by_scatter: bool = False, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.by_scatter = _arguments.boolean("by_scatter", by_scatter)

    def call(self, inputs: tuple[Any, Any]) -> tf.Tensor:
        """Returns [batch, list]."""
        logits, mask = tf.convert_to_tensor(inputs[0]), tf.cast(inputs[1], tf.bool)
        documents = mask.shape.num_elements()
        if documents is not None and logits.shape.num_elements() not in (None, documents):
            expected = f"[batch * list] or [batch * list, 1] for `list_mask` of the shape {mask.shape}"
            raise ValueError(f"`flattened_logits` must have the shape {expected}, got {logits.shape}.")
        logits = tf.reshape(logits, tf.shape(mask))
        if self.by_scatter:
            documents = _circular_indices(mask) + tf.range(tf.shape(mask)[0])[:, tf.newaxis] * tf.shape(mask)[1]
            means = tf.math.unsorted_segment_mean(tf.reshape(logits, [-1]), tf.reshape(documents, [-1]), tf.size(mask))
            logits = tf.reshape(means, tf.shape(mask))
        return tf.where(mask, logits, tf.constant(_PADDING_SCORE, logits.dtype))


@_serialization.register
class ConcatFeatures(FlattenList):
    """Concatenates the features of each document and the context features of its list; TF-Ranking's layer.

    First the context features, then the example features, each in the order of their names. Padding is treated as in
    `FlattenList`.

    Args:
      circular_padding: Whether padding contains the features of real documents; see `FlattenList`.
      name: Name of the layer. None uses Keras's default.
      **kwargs: Arguments of `tf.keras.layers.Layer`.

    Call with a tuple of `context_features`, a dict of tensors [batch, ...]; `example_features`, a dict of tensors
    [batch, list, ...] of the same type; and `list_mask` [batch, list] bool, False for padding. Returns [batch, list,
    width].

    Raises:
      ValueError: If an argument is invalid or there are no example features.

    Time O(batch * list * (width + log list)), memory O(batch * list * width).

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> context = {"user": tf.constant([[1.0], [2.0]])}
      >>> examples = {"embedding": tf.constant([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])}
      >>> mask = tf.constant([[True, False], [True, True]])
      >>> models.ConcatFeatures()((context, examples, mask)).numpy().tolist()
      [[[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]], [[2.0, 0.0, 1.0], [2.0, 1.0, 0.0]]]
    """

    def call(self, inputs: tuple[Any, Any, Any]) -> tf.Tensor:
        """Returns [batch, list, width]."""
        batch, size = tf.unstack(tf.shape(inputs[2]))
        parts = []
        for features in super().call(inputs):
            for _, rows in sorted(features.items()):
                width = rows.shape[1:].num_elements()  # static if it can be, as dense layers need
                parts.append(tf.reshape(rows, [batch, size, -1 if width is None else width]))
        return tf.concat(parts, axis=2)


@_serialization.register
class GAMLayer(_serialization.ConfiguredLayer, tf.keras.layers.Layer):
    r"""A generalized additive model: the sum of one network per feature, weighted by the context; TF-Ranking's layer.

    $$F(c, x) = \sum_i w_i(c) f_i(x_i), \qquad w(c) = \sum_j \mathrm{softmax}(g_j(c_j))$$

    Without context features, $w_i = 1$. Each $f_i$ and $g_j$ is a network of `create_tower`. (Zhuang et al.,
    "Interpretable Ranking with Generalized Additive Models", WSDM 2021.)

    Equal to TF-Ranking's layer, with weights in the same order. Called without `training` outside of a model, this
    layer is in inference mode; TF-Ranking's is in training mode.

    Args:
      example_feature_num: Number of example features, >= 1.
      example_hidden_layer_dims: Widths of the hidden layers of $f_i$, each >= 1.
      context_feature_num: Number of context features, >= 1. None or 0 for none.
      context_hidden_layer_dims: Widths of the hidden layers of $g_j$, at least one. Required with context features.
      activation: Activation of the hidden layers: a Keras activation, or its name. None for none.
      use_batch_norm: Whether to use batch normalization in each hidden layer.
      batch_norm_moment: Momentum of the moving statistics, in (0, 1).
      dropout: Dropout rate after each hidden layer, in [0, 1). None for none.
      name: Name of the layer. None uses Keras's default.
      **kwargs: Arguments of `tf.keras.layers.Layer`.

    Call with a tuple of two lists of tensors [documents, ...], `example_inputs` and `context_inputs`, with one tensor
    per feature; such as the rows of `FlattenList`. Without `context_inputs` (None or an empty list), all weights are 1.
    Returns the scores [documents, 1]; a list of $f_i(x_i)$, [documents, 1] each; and a list of
    $\mathrm{softmax}(g_j(c_j))$, [documents, example_feature_num] each.

    Raises:
      ValueError: If an argument is out of range, or the number of inputs does not match.

    Time and memory are those of the networks.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> layer = models.GAMLayer(2, [3, 2], context_feature_num=1, context_hidden_layer_dims=[4])
      >>> documents, context = tf.ones([5, 1]), tf.ones([5, 2])
      >>> scores, parts, weights = layer(([documents, documents], [context]))
      >>> scores.shape, len(parts), weights[0].shape
      (TensorShape([5, 1]), 2, TensorShape([5, 2]))
    """

    def __init__(
        self,
        example_feature_num: int,
        example_hidden_layer_dims: Iterable[int],
        context_feature_num: int | None = None,
        context_hidden_layer_dims: Iterable[int] | None = None,
        activation: Any = None,
        use_batch_norm: bool = True,
        batch_norm_moment: float = 0.999,
        dropout: float | None = 0.5,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.example_feature_num = _arguments.integer("example_feature_num", example_feature_num, least=1)
        self.context_feature_num = _arguments.integer("context_feature_num", context_feature_num or 0, least=0)
        self.example_hidden_layer_dims = list(example_hidden_layer_dims)
        self.context_hidden_layer_dims = list(context_hidden_layer_dims or [])
        if self.context_feature_num and not self.context_hidden_layer_dims:
            expected = f"at least one width for `context_feature_num` = {self.context_feature_num}"
            raise ValueError(f"`context_hidden_layer_dims` must contain {expected}, got {context_hidden_layer_dims!r}.")
        self.activation = tf.keras.activations.serialize(tf.keras.activations.get(activation))
        self.use_batch_norm, self.batch_norm_moment, self.dropout = use_batch_norm, batch_norm_moment, dropout
        self.example_towers = self._towers("example", self.example_feature_num, self.example_hidden_layer_dims, 1)
        self.context_towers = self._towers(
            "context", self.context_feature_num, self.context_hidden_layer_dims, self.example_feature_num
        )

    def _towers(self, kind: str, count: int, widths: Sequence[int], outputs: int) -> list[tf.keras.Sequential]:
        options: dict[str, Any] = {"use_batch_norm": self.use_batch_norm, "batch_norm_moment": self.batch_norm_moment}
        options |= {"activation": self.activation, "dropout": self.dropout}
        return [create_tower(widths, outputs, name=f"{self.name}_{kind}_tower_{i}", **options) for i in range(count)]

    def build(self, input_shape: Any) -> None:
        """Creates the weights for two lists of inputs."""
        for towers, shapes in zip((self.example_towers, self.context_towers), input_shape, strict=True):
            for tower, shape in zip(towers, shapes or [], strict=False):
                tower.build((None, *tf.TensorShape(shape)[1:]))
        super().build(input_shape)

    def call(
        self, inputs: tuple[Any, Any], training: bool | None = None
    ) -> tuple[tf.Tensor, list[tf.Tensor], list[tf.Tensor]]:
        """Returns scores [documents, 1], the scores of each feature, and the weights by each context feature."""
        examples, context = inputs
        self._check_number("example", examples, self.example_feature_num)
        scores = [tower(each, training=training) for tower, each in zip(self.example_towers, examples, strict=True)]
        if not context:
            return tf.add_n(scores), scores, []
        self._check_number("context", context, self.context_feature_num)
        weights = [
            tf.nn.softmax(tower(each, training=training))
            for tower, each in zip(self.context_towers, context, strict=True)
        ]
        weighted = tf.concat(scores, axis=-1) * tf.add_n(weights)
        return tf.reduce_sum(weighted, axis=-1, keepdims=True), scores, weights

    @staticmethod
    def _check_number(kind: str, inputs: Sequence[Any], count: int) -> None:
        if len(inputs) != count:
            raise ValueError(f"`{kind}_inputs` must contain `{kind}_feature_num` = {count} tensors, got {len(inputs)}.")


def create_tower(
    hidden_layer_dims: Iterable[int],
    output_units: int,
    activation: Any = None,
    input_batch_norm: bool = False,
    use_batch_norm: bool = True,
    batch_norm_moment: float = 0.999,
    dropout: float | None = 0.5,
    name: str | None = None,
    **kwargs: Any,
) -> tf.keras.Sequential:
    """Creates TF-Ranking's feed-forward network: dense layers, batch normalization, activation and dropout.

    Args:
      hidden_layer_dims: Widths of the hidden layers, each >= 1.
      output_units: Width of the output, >= 1.
      activation: A Keras activation, or its name. None for none.
      input_batch_norm: Whether to normalize the inputs.
      use_batch_norm: Whether to use batch normalization between the dense layer and the activation.
      batch_norm_moment: Momentum of the moving statistics, in (0, 1).
      dropout: Dropout rate after each hidden layer, in [0, 1). None for none.
      name: Name of the model. None uses Keras's default.
      **kwargs: Arguments of all `tf.keras.layers.Dense` layers, such as `kernel_regularizer`. In TF-Ranking, they raise
        a `TypeError`.

    Returns:
      A network for [..., width], which returns [..., output_units].

    Raises:
      ValueError: If an argument is out of range.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> tower = models.create_tower(hidden_layer_dims=[64, 32, 16], output_units=1)
      >>> tower(tf.ones([2, 3, 1])).shape
      TensorShape([2, 3, 1])
    """
    layers = tf.keras.layers
    widths = [_arguments.integer("hidden_layer_dims", width, least=1) for width in hidden_layer_dims]
    output_units = _arguments.integer("output_units", output_units, least=1)
    momentum = _arguments.real("batch_norm_moment", batch_norm_moment, above=0.0, below=1.0)
    rate = _arguments.real("dropout", dropout or 0.0, least=0.0, below=1.0)
    tower = tf.keras.Sequential(name=name)
    if _arguments.boolean("input_batch_norm", input_batch_norm):
        tower.add(layers.BatchNormalization(momentum=momentum))
    for width in widths:
        tower.add(layers.Dense(width, **kwargs))
        if _arguments.boolean("use_batch_norm", use_batch_norm):
            tower.add(layers.BatchNormalization(momentum=momentum))
        tower.add(layers.Activation(activation))
        if rate:
            tower.add(layers.Dropout(rate))
    tower.add(layers.Dense(output_units, **kwargs))
    return tower


def _circular_indices(mask: tf.Tensor) -> tf.Tensor:
    """Returns which document of its list each row contains, [batch, list] int32.

    Real documents contain themselves, and padding at position p contains real document p modulo their number. In lists
    without a real document, it contains the first position.

    Args:
      mask: [batch, list] bool, False for padding.
    """
    positions = tf.range(tf.shape(mask)[1])
    real_first = tf.argsort(tf.where(mask, positions, positions + tf.size(positions)), axis=1)
    count = tf.reduce_sum(tf.cast(mask, tf.int32), axis=1, keepdims=True)
    return tf.where(mask, positions, tf.gather(real_first, positions % tf.maximum(count, 1), batch_dims=1))


def _finite_at_padding(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns [batch, list, ...] values, 0 at padding where they are not finite."""
    if not values.dtype.is_floating:
        return values
    real = tf.reshape(mask, tf.concat([tf.shape(mask), tf.ones([tf.rank(values) - 2], tf.int32)], axis=0))
    return tf.where(tf.logical_or(real, tf.math.is_finite(values)), values, tf.zeros_like(values))
