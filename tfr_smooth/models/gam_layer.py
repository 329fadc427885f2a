"""Generalized additive models of features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _serialization
from tfr_smooth.models.tower import create_tower


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
