"""Scores of pairs of a query and a document in one input of the encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.text.encoder import Encoder
from tfr_smooth.text.reranker import HIDDEN, Reranker, dense_layer


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class CrossEncoder(Reranker):
    r"""Scores pairs of query and document with the encoder's output for the first token ([CLS] in BERT).

    $$s = w^\top \frac{1}{P} \sum_{p=1}^P \mathrm{CLS}_p + b$$

    over the P passages of the document (the vanilla BERT of MacAvaney et al., "CEDR", SIGIR 2019, which the SmoothI
    paper trains). With a hidden layer, as published rerankers have, $f(W \mathrm{CLS}_p + c)$ takes the place of
    $\mathrm{CLS}_p$; W and c start as the identity and 0.

    The input is `{"pair_ids": int32 [batch, list, passages, tokens]}`, optionally with `pair_hidden`, the output of the
    encoder's frozen layers; see `PairInputs`. Returns scores, float32 [batch, list].

    Args:
      encoder: The encoder.
      hidden: The activation f of a hidden layer, "tanh", "relu", "gelu" or "linear". None: no hidden layer.
      output: "sigmoid" for probabilities in place of scores, except in training. None for scores.
      **kwargs: Arguments of `Reranker`.

    Example:
      >>> import keras_hub, tensorflow as tf, tokenizers
      >>> from tfr_smooth import text
      >>> words = "[PAD] [UNK] [CLS] [SEP] [MASK] lift heat".split()
      >>> tokenizer = tokenizers.BertWordPieceTokenizer({word: number for number, word in enumerate(words)})
      >>> backbone = keras_hub.models.BertBackbone(
      ...     vocabulary_size=7, num_layers=1, num_heads=2, hidden_dim=4, intermediate_dim=8
      ... )
      >>> text.CrossEncoder(text.Encoder(backbone, tokenizer))({"pair_ids": tf.ones([2, 4, 1, 5], tf.int32)}).shape
      TensorShape([2, 4])
    """

    def __init__(
        self, encoder: Encoder, *, hidden: str | None = None, output: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(encoder, **kwargs)
        width = self.encoder.width
        self.hidden = None if hidden is None else _arguments.choice("hidden", hidden, HIDDEN)
        self.output_activation = None if output is None else _arguments.choice("output", output, ("sigmoid",))
        if hidden is not None:
            self.hidden_kernel = self.add_weight(name="hidden_kernel", shape=(width, width), initializer="identity")
            self.hidden_bias = self.add_weight(name="hidden_bias", shape=(width,), initializer="zeros")
        start = tf.keras.initializers.TruncatedNormal(stddev=0.02 / self.head_rate)
        self.kernel = self.add_weight(name="head_kernel", shape=(width,), initializer=start)
        self.bias = self.add_weight(name="head_bias", shape=(), initializer="zeros")
        self.dropout = tf.keras.layers.Dropout(self.encoder.dropout, dtype="float32")
        self.built = True

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Returns the scores.

        Args:
          inputs: `pair_ids`, int32 [batch, list, passages, tokens], and optionally `pair_hidden`, the output of the
            encoder's frozen layers, [batch, list, passages, tokens, width].
          training: Whether to apply dropout.

        Returns:
          Scores, float32 [batch, list].
        """
        hidden, mask = self.encode(inputs["pair_ids"], inputs.get("pair_hidden"), training)
        real = tf.cast(mask[..., :1], tf.float32)  # [batch, list, passages, 1]: whether the passage has tokens
        first = hidden[..., 0, :]
        if self.hidden is not None:
            first = dense_layer(first, self.hidden_kernel, self.hidden_bias, activation=self.hidden)
        mean = tf.math.divide_no_nan(tf.reduce_sum(first * real, axis=2), tf.reduce_sum(real, axis=2))
        kernel, bias = tf.convert_to_tensor(self.kernel), tf.convert_to_tensor(self.bias)
        scores = tf.linalg.matvec(self.dropout(mean, training=training), tf.cast(kernel, tf.float32))
        scores = self.head_rate * (scores + tf.cast(bias, tf.float32))
        return scores if training or self.output_activation is None else tf.sigmoid(scores)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "hidden": self.hidden, "output": self.output_activation}

    def set_head(self, weights: Sequence[Any]) -> None:
        """Sets the weights of a published head.

        Args:
          weights: Kernel and bias of the hidden layer, [width, width] and [width], and of the score, [width] and [].
        """
        kernel, bias, scores, offset = weights
        self.hidden_kernel.assign(kernel)
        self.hidden_bias.assign(bias)
        self.kernel.assign(scores / self.head_rate)
        self.bias.assign(offset / self.head_rate)
