"""Latent cross of hidden features with self-attention over the documents of a list."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _serialization
from tfr_smooth.models.document_interaction_attention import DocumentInteractionAttention


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
