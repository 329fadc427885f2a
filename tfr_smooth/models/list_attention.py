"""Self-attention over the documents of a list, and the latent cross with it."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _serialization


@_serialization.register
class DocumentInteractionAttention(_serialization.ConfiguredLayer, tf.keras.layers.Layer):
    r"""Represents each document by self-attention over its list; TF-Ranking's layer.

    $$h_0 = \mathrm{ReLU}(W x + b), \qquad
      h_l = \mathrm{LayerNorm}_l(h_{l-1} + \mathrm{MultiHead}_l(h_{l-1}, h_{l-1}))$$

    (Pasumarthi et al., "Permutation Equivariant Document Interaction Network for Neural Learning to Rank", ICTIR 2020.)
    Permuting a list permutes the outputs, and padding has no effect.

    Weights are in the order of TF-Ranking's layer, whose outputs are equal, except at padding, where they are not 0.
    Called without `training` outside of a model, this layer is in inference mode; TF-Ranking's is in training mode.

    Args:
      num_heads: Number of attention heads, >= 1.
      head_size: Width of the output and of each head, >= 1.
      num_layers: Number of attention layers, >= 1.
      dropout: Dropout rate, in [0, 1), of the attention weights and of the output of the attention.
      name: Name of the layer. None uses Keras's default.
      input_noise_stddev: Standard deviation, > 0, of the Gaussian noise added to h_0 in training. None or 0 for none.
      **kwargs: Arguments of `tf.keras.layers.Layer`.

    Call with a tuple of `example_inputs` [batch, list, width] and `list_mask` [batch, list] bool, False for padding, or
    None. Returns [batch, list, head_size], 0 at padding.

    Raises:
      ValueError: If an argument is out of range.

    Time O(num_layers * num_heads * (N^2 head_size + N head_size^2)), memory O(num_layers * num_heads * N^2) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> layer = models.DocumentInteractionAttention(num_heads=1, head_size=64)
      >>> documents = tf.constant([[[1.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]])
      >>> layer((documents, tf.constant([[True, True, False], [True, False, False]]))).shape
      TensorShape([2, 3, 64])
    """

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        num_layers: int = 1,
        dropout: float = 0.5,
        name: str | None = None,
        input_noise_stddev: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.num_heads = _arguments.integer("num_heads", num_heads, least=1)
        self.head_size = _arguments.integer("head_size", head_size, least=1)
        self.num_layers = _arguments.integer("num_layers", num_layers, least=1)
        self.dropout = _arguments.real("dropout", dropout, least=0.0, below=1.0)
        noise = _arguments.real("input_noise_stddev", input_noise_stddev, above=0.0) if input_noise_stddev else None
        self.input_noise_stddev = noise
        layers, dtype = tf.keras.layers, self.dtype_policy
        self.input_projection = layers.Dense(self.head_size, activation="relu", dtype=dtype)
        self.input_noise = None if noise is None else layers.GaussianNoise(noise, dtype=dtype)
        # One list, so that the weights are in TF-Ranking's order.
        self.blocks = []
        for _ in range(self.num_layers):
            attention = layers.MultiHeadAttention(self.num_heads, self.head_size, dropout=self.dropout, dtype=dtype)
            norm = layers.LayerNormalization(epsilon=1e-12, dtype=dtype)
            self.blocks += [attention, layers.Dropout(self.dropout, dtype=dtype), norm]

    def build(self, input_shape: Any) -> None:
        """Creates the weights for inputs [batch, list, width] and a mask."""
        width = int(tf.TensorShape(input_shape[0])[-1])
        self.input_projection.build((None, None, width))
        for attention, _, norm in self._blocks():
            with tf.init_scope():  # Keras 2 creates these weights in a call.
                attention(*[tf.zeros([1, 2, self.head_size])] * 2)
            norm.build((None, None, self.head_size))
        super().build(input_shape)

    def call(self, inputs: tuple[Any, Any], training: bool | None = None) -> tf.Tensor:
        """Returns [batch, list, head_size]."""
        documents, mask = tf.convert_to_tensor(inputs[0]), inputs[1]
        mask = tf.ones(tf.shape(documents)[:2], tf.bool) if mask is None else tf.cast(mask, tf.bool)
        real = mask[:, :, tf.newaxis]
        # NaN at padding would reach real documents: its product with a weight of 0 is NaN.
        hidden = self.input_projection(tf.where(real, documents, tf.zeros_like(documents)))
        if self.input_noise is not None:
            hidden = self.input_noise(hidden, training=training)
        for attention, dropout, norm in self._blocks():
            attended = attention(hidden, hidden, attention_mask=mask[:, tf.newaxis], training=training)
            hidden = norm(hidden + dropout(attended, training=training))
        return tf.where(real, hidden, tf.zeros_like(hidden))

    def _blocks(self) -> zip[Any]:
        """Returns the attention, the dropout and the normalization of each layer."""
        return zip(self.blocks[::3], self.blocks[1::3], self.blocks[2::3], strict=True)

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """Stops mask propagation: Keras would pass the mask to the loss and weight documents by it.

        Args:
          inputs: Ignored.
          mask: Ignored.
        """
        return None


@_serialization.register
class ListAttention(_serialization.ConfiguredLayer, tf.keras.layers.Layer):
    r"""Scales hidden features of each document by self-attention over its list (latent cross).

    $$h'_i = h_i \odot (1 + W_o a_i + b_o), \qquad a = \mathrm{DocumentInteractionAttention}(h)$$

    (Qin et al., "Are Neural Rankers still Outperformed by Gradient Boosted Decision Trees?", ICLR 2021, section 5.2,
    with one layer of attention.) $W_o$ is initialized to 0, so the layer starts as the identity. Permuting a list
    permutes the outputs, and padding has no effect.

    Args:
      heads: Number of attention heads, >= 1.
      units: Width of the attention and of each head, >= 1.
      dropout: Dropout rate of the attention, in [0, 1).
      **kwargs: Arguments of `tf.keras.layers.Layer`.

    Call with hidden features [batch, list, width] and `mask` [batch, list] bool, False for padding. Returns [batch,
    list, width], 0 at padding.

    Raises:
      ValueError: If an argument is out of range.

    Time O(heads (N^2 units + N units^2)), memory O(heads N^2) per list.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> layer = models.ListAttention(heads=2, units=8)
      >>> hidden = tf.random.normal([1, 3, 4])
      >>> bool(tf.reduce_all(layer(hidden, mask=tf.ones([1, 3], tf.bool)) == hidden))
      True
    """

    def __init__(self, *, heads: int = 2, units: int = 64, dropout: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.heads = _arguments.integer("heads", heads, least=1)
        self.units = _arguments.integer("units", units, least=1)
        self.attention = DocumentInteractionAttention(self.heads, self.units, dropout=dropout, dtype=self.dtype_policy)
        self.dropout = self.attention.dropout

    def build(self, input_shape: Any) -> None:
        """Creates the weights for inputs [batch, list, width]."""
        width = int(input_shape[-1])
        self.outer = tf.keras.layers.Dense(width, kernel_initializer="zeros", dtype=self.dtype_policy)
        self.attention.build(((None, None, width), None))
        self.outer.build((None, None, self.units))
        super().build(input_shape)

    def call(self, hidden: tf.Tensor, mask: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Returns [batch, list, width], given a mask [batch, list] bool."""
        scales = 1.0 + self.outer(self.attention((hidden, mask), training=training))
        # NaN at padding would reach the gradient of the weights.
        return tf.where(mask[:, :, tf.newaxis], hidden, tf.zeros_like(hidden)) * scales

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """Stops mask propagation: Keras would pass the mask to the loss and weight documents by it.

        Args:
          inputs: Ignored.
          mask: Ignored.
        """
        return None
