"""BERT's encoder as Keras layers, with the weights of any checkpoint of this architecture."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments


def _gelu(x: tf.Tensor, *, approximate: bool = False) -> tf.Tensor:
    # In float32: on CPUs, bfloat16 is five times slower and less precise.
    return tf.cast(tf.nn.gelu(tf.cast(x, tf.float32), approximate=approximate), x.dtype)


_ACTIVATIONS = {"gelu": _gelu, "gelu_new": functools.partial(_gelu, approximate=True), "relu": tf.nn.relu}


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """The configuration of a BERT encoder, with the names of a checkpoint's `config.json`.

    Args:
      vocab_size: Number of tokens in the vocabulary, >= 1.
      hidden_size: Width of the hidden states, a multiple of `num_attention_heads`.
      num_hidden_layers: Number of layers, >= 1.
      num_attention_heads: Number of attention heads, >= 1.
      intermediate_size: Width of the feed-forward network of a layer, >= 1.
      max_position_embeddings: Maximum length of an input in tokens, >= 1.
      type_vocab_size: Number of segment embeddings, >= 1.
      layer_norm_eps: Epsilon of the layer normalizations, > 0.
      hidden_act: Activation of the feed-forward networks: "gelu", "gelu_new" or "relu".
      hidden_dropout_prob: Dropout rate of the layers' outputs, in [0, 1).
      attention_probs_dropout_prob: Dropout rate of the attention weights, in [0, 1).

    Raises:
      ValueError: If an argument is out of its range.

    Example:
      >>> from tfr_smooth import text
      >>> config = text.BertConfig(
      ...     vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
      ... )
      >>> config.max_position_embeddings
      512
    """

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1

    def __post_init__(self) -> None:
        """Checks the arguments."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type == "int":
                _arguments.integer(field.name, value, least=1)
            elif field.name.endswith("_prob") and value != 0.0:
                _arguments.real(field.name, value, above=0.0, below=1.0)
        _arguments.real("layer_norm_eps", self.layer_norm_eps, above=0.0)
        _arguments.choice("hidden_act", self.hidden_act, tuple(_ACTIVATIONS))
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"`hidden_size` must be a multiple of `num_attention_heads`, {self.num_attention_heads}, "
                f"got {self.hidden_size}."
            )

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> BertConfig:
        """Reads a checkpoint's `config.json`.

        Args:
          path: Path of the file.

        Returns:
          The configuration.

        Raises:
          ValueError: If the file describes another architecture, lacks a value, or contains one out of its range.
        """
        with open(path, encoding="utf-8") as file:
            values = json.load(file)
        expected = {"model_type": "bert", "position_embedding_type": "absolute"}
        for name, value in expected.items():
            if values.get(name, value) != value:
                raise ValueError(f"{os.fspath(path)}: {name} must be {value!r}, got {values[name]!r}")
        fields = dataclasses.fields(cls)
        missing = [f.name for f in fields if f.default is dataclasses.MISSING and f.name not in values]
        if missing:
            raise ValueError(f"{os.fspath(path)}: {missing[0]} is missing")
        try:
            return cls(**{f.name: values[f.name] for f in fields if f.name in values})
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)}: {error}") from None


class _Block(tf.keras.layers.Layer):
    """One encoder layer: attention and a feed-forward network, each with a residual connection and normalization."""

    def __init__(self, config: BertConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.width = config.hidden_size
        self.attention = tf.keras.layers.MultiHeadAttention(
            config.num_attention_heads,
            config.hidden_size // config.num_attention_heads,
            dropout=config.attention_probs_dropout_prob,
        )
        self.attention_norm = tf.keras.layers.LayerNormalization(epsilon=config.layer_norm_eps)
        self.inner = tf.keras.layers.Dense(config.intermediate_size, activation=_ACTIVATIONS[config.hidden_act])
        self.outer = tf.keras.layers.Dense(config.hidden_size)
        self.outer_norm = tf.keras.layers.LayerNormalization(epsilon=config.layer_norm_eps)
        self.dropout = tf.keras.layers.Dropout(config.hidden_dropout_prob)

    def build(self, input_shape: Any) -> None:
        """Creates the weights."""
        with tf.init_scope():  # Keras 2 creates these weights in the first call.
            self.attention(*[tf.zeros([1, 2, self.width])] * 2)
        for layer in (self.attention_norm, self.inner, self.outer_norm):
            layer.build((None, None, self.width))
        self.outer.build((None, None, self.inner.units))
        super().build(input_shape)

    def call(self, hidden: tf.Tensor, mask: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Returns the hidden states [texts, tokens, width], given a mask [texts, tokens] bool."""
        attended = self.attention(hidden, hidden, attention_mask=mask[:, tf.newaxis, :], training=training)
        hidden = self.attention_norm(hidden + self.dropout(attended, training=training))
        outer = self.outer(self.inner(hidden))
        return self.outer_norm(hidden + self.dropout(outer, training=training))


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class BertEncoder(tf.keras.layers.Layer):
    r"""BERT's encoder: embeddings and attention layers, without the pooler.

    (Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", NAACL 2019.)
    `load_bert` creates an encoder with the weights of a checkpoint.

    Args:
      config: The configuration.
      frozen_layers: Number of layers, counted from the input, that are not trained, from 0 to the number of layers. If
        > 0, the embeddings are not trained either. The output of the frozen layers (see `frozen`) can be computed once
        and passed to `trained`.
      pad_id: Id of the token [PAD].
      sep_id: Id of the token [SEP], which ends the first segment.
      **kwargs: Arguments of `tf.keras.layers.Layer`.

    Raises:
      ValueError: If an argument is out of its range.

    Time O(layers (N width^2 + N^2 width)), memory O(layers N (width + N heads)) per text of N tokens.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import text
      >>> config = text.BertConfig(
      ...     vocab_size=9, hidden_size=4, num_hidden_layers=2, num_attention_heads=2, intermediate_size=8
      ... )
      >>> text.BertEncoder(config, sep_id=3)(tf.constant([[2, 5, 3, 0]])).shape
      TensorShape([1, 4, 4])
    """

    def __init__(
        self,
        config: BertConfig | Mapping[str, Any],
        *,
        frozen_layers: int = 0,
        pad_id: int = 0,
        sep_id: int = 102,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.config = config if isinstance(config, BertConfig) else BertConfig(**config)
        self.frozen_layers = _arguments.integer("frozen_layers", frozen_layers, least=0)
        if self.frozen_layers > self.config.num_hidden_layers:
            raise ValueError(
                f"`frozen_layers` must be at most {self.config.num_hidden_layers}, the number of layers, "
                f"got {frozen_layers}."
            )
        self.pad_id, self.sep_id = pad_id, sep_id
        width = self.config.hidden_size
        self.tokens = tf.keras.layers.Embedding(self.config.vocab_size, width)
        self.positions = tf.keras.layers.Embedding(self.config.max_position_embeddings, width)
        self.segments = tf.keras.layers.Embedding(self.config.type_vocab_size, width)
        self.norm = tf.keras.layers.LayerNormalization(epsilon=self.config.layer_norm_eps)
        self.dropout = tf.keras.layers.Dropout(self.config.hidden_dropout_prob)
        self.blocks = [_Block(self.config, name=f"block_{n}") for n in range(self.config.num_hidden_layers)]

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights."""
        for layer in (self.tokens, self.positions, self.segments):
            layer.build((None, None))
        for layer in (self.norm, *self.blocks):
            layer.build((None, None, self.config.hidden_size))
        if self.frozen_layers:  # Keras 3 sets `trainable` on each variable, so after they are created.
            for layer in (self.tokens, self.positions, self.segments, self.norm, *self.blocks[: self.frozen_layers]):
                layer.trainable = False
        super().build(input_shape)

    def call(self, ids: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Returns the hidden states of token ids.

        Args:
          ids: Token ids, int32 [texts, tokens].
          training: Whether to apply dropout.

        Returns:
          Hidden states [texts, tokens, width], in the layer's compute dtype.
        """
        return self.trained(ids, self.frozen(ids, training=training and not self.frozen_layers), training=training)

    def mask(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns the mask of token ids.

        Args:
          ids: Token ids of any shape.

        Returns:
          A bool tensor of the same shape: False for padding.
        """
        return tf.not_equal(ids, self.pad_id)

    def frozen(self, ids: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Returns the output of the embeddings and the frozen layers, the input of `trained`.

        Args:
          ids: Token ids, int32 [texts, tokens].
          training: Whether to apply dropout.

        Returns:
          Hidden states [texts, tokens, width], in the layer's compute dtype.
        """
        length = tf.shape(ids)[1]
        # The second segment starts after the first [SEP].
        separators = tf.cast(tf.equal(ids, self.sep_id), tf.int32)
        second = tf.minimum(tf.cumsum(separators, axis=1, exclusive=True), self.config.type_vocab_size - 1)
        hidden = self.tokens(ids) + self.positions(tf.range(length))[tf.newaxis] + self.segments(second)
        hidden = self.dropout(self.norm(hidden), training=training)
        return self._through(self.blocks[: self.frozen_layers], ids, hidden, training)

    def trained(self, ids: tf.Tensor, hidden: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Returns the hidden states, computed from the output of `frozen`.

        Args:
          ids: Token ids, int32 [texts, tokens].
          hidden: The output of `frozen` for these ids, [texts, tokens, width].
          training: Whether to apply dropout.

        Returns:
          Hidden states [texts, tokens, width], in the layer's compute dtype.
        """
        return self._through(self.blocks[self.frozen_layers :], ids, tf.cast(hidden, self.compute_dtype), training)

    def _through(self, blocks: list[_Block], ids: tf.Tensor, hidden: tf.Tensor, training: bool | None) -> tf.Tensor:
        mask = self.mask(ids)
        for block in blocks:
            hidden = block(hidden, mask, training=training)
        return hidden

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "config": dataclasses.asdict(self.config),
            "frozen_layers": self.frozen_layers,
            "pad_id": self.pad_id,
            "sep_id": self.sep_id,
        }
