"""Text encoders: the backbones of KerasHub, with frozen layers."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _keras, _serialization
from tfr_smooth.text import layout

if not _keras.IS_KERAS_3:
    raise ImportError(f"tfr_smooth.text needs Keras 3, as KerasHub does, but TensorFlow uses {_keras.PACKAGE}.")

_LONGEST, _TEXTS = 256, 32  # tokens of a text, and texts at once, in `embed`; not tuned: limits of time and memory
_INPUTS = {"token_ids", "padding_mask", "segment_ids"}
_POOLINGS = ("mean", "first")


def _gelu(x: tf.Tensor) -> tf.Tensor:
    """Returns the exact gelu, by an operation that is several times as fast on CPUs as that of `tf.nn.gelu`."""
    return 0.5 * x * (1.0 + tf.math.erf(x / 2.0**0.5))


_ACTIVATIONS = {
    "gelu": _gelu,
    "gelu_new": functools.partial(tf.keras.activations.gelu, approximate=True),
    "relu": tf.keras.activations.relu,
}


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class Encoder(tf.keras.layers.Layer):
    """The hidden states of a KerasHub backbone, such as BERT, RoBERTa, DistilBERT, DeBERTa-v3 or ELECTRA.

    `load_encoder` creates an encoder with the weights of a checkpoint.

    Args:
      backbone: The backbone, a functional model of `keras_hub.models` with the input `token_ids`, and no others than
        `padding_mask` and `segment_ids`. The encoder sets `trainable` of the layers that it does not train.
      tokenizer: The tokenizer of the backbone, which files of the encoder contain: a `tokenizers.Tokenizer` or the text
        of its file, tokenizer.json. Its post-processor defines the special tokens around texts. Its padding and its
        truncation are ignored.
      frozen_layers: Number of layers, counted from the input, that are not trained, from 0 to the number of layers. If
        > 0, the embeddings are not trained either. The output of the frozen layers (see `frozen`) can be computed once
        and passed to `call`.
      activation: Activation of the feed-forward networks of a backbone that consists of
        `keras_hub.layers.TransformerEncoder`, with the names of Hugging Face: "gelu", "gelu_new" (approximated) or
        "relu". None for the backbone's: KerasHub's BERT approximates gelu, Hugging Face's does not.
      epsilon: What all layer normalizations add to the variance, > 0. None for the backbone's.
      pooling: The vector of a text: "mean" for the mean of the hidden states, "first" for that of the first token.
      markers: For `LateInteraction` and `SingleVector`, the token after the first one of a query and that of a
        document, such as ColBERT's ("[unused0]", "[unused1]"). Empty for none.
      fill: For `LateInteraction`, the token that fills queries up to their length and is not attended to, such as
        ColBERT's "[MASK]". None for padding.
      segments: Whether the tokenizer's `type_ids` are the segments, such as 1 for the second text of a pair for BERT.
        False: everything is segment 0, as for tokenizers of Hugging Face without `token_type_ids`.
      prompts: What precedes each text, by role, such as {"query": "query: ", "document": "passage: "}; for
        `LateInteraction` and `SingleVector`.
      truncation_side: "right" keeps the start of long texts, "left" their end.
      **kwargs: Arguments of `tf.keras.layers.Layer`.

    Attributes:
      backbone: The backbone.
      tokenizer: The tokenizer, without padding and truncation.
      layout: The layout of its tokens.
      has_segments: Whether the backbone has segments, and `segments` is True.
      width: Width of the hidden states.
      max_length: Maximum number of tokens of an input; None without limit.
      dropout: The dropout rate of the backbone.

    Raises:
      ValueError: If an argument is out of its range, the backbone has other inputs or no sequence of hidden states as
        output, or its layers are not known and `frozen_layers` > 0.

    Example:
      >>> import keras_hub, tensorflow as tf, tokenizers
      >>> from tfr_smooth import text
      >>> words = "[PAD] [UNK] [CLS] [SEP] [MASK] lift heat".split()
      >>> tokenizer = tokenizers.BertWordPieceTokenizer({word: number for number, word in enumerate(words)})
      >>> backbone = keras_hub.models.BertBackbone(
      ...     vocabulary_size=7, num_layers=2, num_heads=2, hidden_dim=4, intermediate_dim=8
      ... )
      >>> text.Encoder(backbone, tokenizer, frozen_layers=1)(tf.constant([[2, 5, 3, -1]])).shape
      TensorShape([1, 4, 4])
    """

    def __init__(
        self,
        backbone: Any,
        tokenizer: Any,
        *,
        frozen_layers: int = 0,
        activation: str | None = None,
        epsilon: float | None = None,
        pooling: str = "mean",
        markers: Sequence[str] = (),
        fill: str | None = None,
        segments: bool = True,
        prompts: Mapping[str, str] | None = None,
        truncation_side: str = "right",
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"dtype": backbone.dtype_policy, **kwargs})
        inputs, states = _checked(backbone.input, backbone.output)
        self.backbone = backbone
        self.tokenizer = _tokenizer_of(tokenizer)
        self.frozen_layers = _arguments.integer("frozen_layers", frozen_layers, least=0)
        self.activation = activation
        self.epsilon = None if epsilon is None else _arguments.real("epsilon", epsilon, above=0.0)
        self.pooling = _arguments.choice("pooling", pooling, _POOLINGS)
        self.markers, self.fill = list(markers), fill
        self.segments = _arguments.boolean("segments", segments)
        self.prompts = {
            _arguments.choice("prompts", role, layout.ROLES): str(it) for role, it in (prompts or {}).items()
        }
        self.truncation_side = _arguments.choice("truncation_side", truncation_side, ("right", "left"))
        if len(self.markers) not in (0, len(layout.ROLES)):
            raise ValueError(f"`markers` must have a token for queries and one for documents, got {self.markers}.")
        self.width = states.shape[-1]
        self.max_length = getattr(backbone, "max_sequence_length", None)
        self.dropout = getattr(backbone, "dropout", 0.0)
        if activation is not None:
            _set_activation(backbone, activation)
        for layer in backbone._flatten_layers() if self.epsilon is not None else ():
            if isinstance(layer, tf.keras.layers.LayerNormalization):
                layer.epsilon = self.epsilon
        if (known := self.tokenizer.get_vocab_size()) > backbone.vocabulary_size:
            expected = f"at most {backbone.vocabulary_size} tokens, the embeddings of the backbone"
            raise ValueError(f"`tokenizer` must have {expected}, got {known}.")
        self.has_segments = self.segments and "segment_ids" in inputs
        self.layout = layout.Layout(
            self.tokenizer,
            backbone.vocabulary_size,
            markers=self.markers,
            is_filled=fill is not None,
            segments=self.has_segments,
            keeps_end=self.truncation_side == "left",
        )
        self._fill = 0 if fill is None else layout.ids_of(self.tokenizer, [fill])[0]
        places = list(inputs.values())
        if self.frozen_layers:
            boundary = _boundary(backbone, self.frozen_layers)
            self._below = tf.keras.Model(places, boundary)
            self._above = None if boundary is states else tf.keras.Model([boundary, *places], states)
        else:
            self._below, self._above = None, tf.keras.Model(places, states)
        # Heads such as BERT's pooler are not trained either: the hidden states do not depend on them.
        below, above = ([] if part is None else part.layers for part in (self._below, self._above))
        trained = {id(layer) for layer in above} - {id(layer) for layer in below}
        for layer in backbone.layers:
            if id(layer) not in trained:
                layer.trainable = False
        self.built = True

    def tokenize(self, texts: Sequence[str], role: str | None = None) -> list[list[int]]:
        """Returns the ids of the tokens of each text, without those that the layout adds.

        Args:
          texts: The texts.
          role: "query" or "document", whose prompt precedes each text; None for none.
        """
        prompt = self.prompts.get(role or "", "")
        found = self.tokenizer.encode_batch_fast([prompt + text for text in texts], add_special_tokens=False)
        return [encoding.ids for encoding in found]

    def call(self, ids: tf.Tensor, hidden: tf.Tensor | None = None, training: bool | None = None) -> tf.Tensor:
        """Returns the hidden states of token ids.

        Args:
          ids: Token ids, int32 [texts, tokens], -1 for padding; in the second segment, the size of the vocabulary is
            added. -2 stands for `fill`.
          hidden: The output of `frozen` for these ids, [texts, tokens, width]; None computes it.
          training: Whether to apply dropout, except in frozen layers.

        Returns:
          Hidden states [texts, tokens, width], in the layer's compute dtype.
        """
        if hidden is None and self.frozen_layers:
            hidden = self.frozen(ids)
        start = [] if hidden is None else [tf.cast(hidden, self.compute_dtype)]
        return start[0] if self._above is None else self._above(start + self._inputs(ids), training=training)

    def mask(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns the mask of token ids.

        Args:
          ids: Token ids of any shape, as for `call`.

        Returns:
          A bool tensor of the same shape: False for padding and for `fill`.
        """
        return tf.greater_equal(ids, 0)

    def frozen(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns the output of the embeddings and the frozen layers, an input of `call`.

        Args:
          ids: Token ids, int32 [texts, tokens].

        Returns:
          Hidden states [texts, tokens, width], in the layer's compute dtype.

        Raises:
          ValueError: If no layers are frozen.
        """
        if self._below is None:
            raise ValueError(f"`frozen_layers` must be > 0 for `frozen`, got {self.frozen_layers}.")
        return self._below(self._inputs(ids), training=False)

    def _inputs(self, ids: tf.Tensor) -> list[tf.Tensor]:
        """Returns the inputs of the backbone in its order."""
        length = ids.shape[-1]
        if self.max_length is not None and length is not None and length > self.max_length:
            raise ValueError(f"`ids` must have at most {self.max_length} tokens per text, got {length}.")
        mask, size = self.mask(ids), self.backbone.vocabulary_size
        masked = tf.where(tf.equal(ids, layout.FILL), self._fill, 0)  # any token that exists for padding
        found = {"token_ids": tf.where(mask, ids % size, masked), "padding_mask": tf.cast(mask, tf.int32)}
        found["segment_ids"] = tf.where(mask, ids // size, 0)
        return [found[name] for name in self.backbone.input]

    def pool(self, hidden: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
        """Returns the vector of each text, by `pooling`; 0 for padding.

        Args:
          hidden: Hidden states, float32 [..., tokens, width].
          ids: Their token ids, int32 [..., tokens].

        Returns:
          float32 [..., width].
        """
        weights = tf.cast(self.mask(ids), tf.float32)
        if self.pooling == "first":
            weights *= tf.one_hot(0, tf.shape(ids)[-1])
        weights = tf.math.divide_no_nan(weights, tf.reduce_sum(weights, axis=-1, keepdims=True))
        return tf.matmul(weights[..., tf.newaxis, :], hidden)[..., 0, :]

    def embed(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns the vector of each text, scaled to a mean square of 1.

        Args:
          texts: Strings [texts], or their token ids as for `call`, int32 [texts, tokens]. At most the first 256 tokens
            count.

        Returns:
          float32 [texts, width].
        """
        ids = texts if texts.dtype.is_integer else tf.numpy_function(self._laid_out, [texts], tf.int32)
        ids.set_shape([None, None])
        count = -(-tf.shape(ids)[0] // _TEXTS)
        ids = tf.pad(ids, [[0, count * _TEXTS - tf.shape(ids)[0]], [0, 0]], constant_values=layout.PADDING)

        def scaled(block: tf.Tensor) -> tf.Tensor:
            tokens = tf.reduce_max(tf.reduce_sum(tf.cast(self.mask(block), tf.int32), axis=1))
            block = block[:, : tf.maximum(tokens, 2)]  # Keras warns of a softmax over one token.
            vectors = self.pool(tf.cast(self(block, training=False), tf.float32), block)
            return self.width**0.5 * tf.math.l2_normalize(vectors, axis=-1)

        blocks = tf.reshape(ids, [count, _TEXTS, tf.shape(ids)[1]])
        vectors = tf.map_fn(scaled, blocks, fn_output_signature=tf.TensorSpec([_TEXTS, self.width], tf.float32))
        return tf.reshape(vectors, [-1, self.width])[: tf.shape(texts)[0]]

    @property
    def pad_id(self) -> int:
        """The id of the token that pads texts in exports."""
        known = [self.tokenizer.token_to_id(token) for token in ("[PAD]", "<pad>")]
        return next((number for number in known if number is not None), 0)

    def tokenizer_file(self, role: str | None, length: int, is_padded: bool = False) -> Any:
        """Returns the tokenizer of pairs, or of the texts of a role, which truncates and pads, for an export.

        Args:
          role: "query" or "document"; None for pairs.
          length: The most tokens.
          is_padded: Whether all texts have as many.
        """
        import tokenizers

        found = tokenizers.Tokenizer.from_str(self.tokenizer.to_str())
        if self.markers:
            start, end = self.layout.around(role)
            used = [(str(found.id_to_token(number)), number) for number in dict.fromkeys(start + end)]
            names = {number: token for token, number in used}
            template = " ".join([*map(names.__getitem__, start), "$A", *map(names.__getitem__, end)])
            found.post_processor = tokenizers.processors.TemplateProcessing(single=template, special_tokens=used)
        found.enable_truncation(length, direction=self.truncation_side)
        is_filled = role == "query" and self.fill is not None
        pad = self._fill if is_filled else self.pad_id
        options = {"length": length} if is_filled or is_padded else {}
        found.enable_padding(pad_id=pad, pad_token=found.id_to_token(pad), **options)
        return found

    def unpadded(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns ids with `pad_id` at their end as those for `call`, int32 [texts, tokens]."""
        is_real = tf.not_equal(ids, self.pad_id)
        is_real = tf.cumsum(tf.cast(is_real, tf.int32), axis=1, reverse=True) > 0
        return tf.where(is_real, tf.cast(ids, tf.int32), layout.PADDING)

    def is_blank(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns whether there are no ids [texts, tokens] but those of special tokens, bool [texts]."""
        start, end = self.layout.around(None)
        return tf.reduce_sum(tf.cast(self.mask(ids), tf.int32), axis=1) <= len(start) + len(end)

    @property
    def embedded_length(self) -> int:
        """The most tokens of a text of which `embed` returns the vector."""
        return min(self.max_length or _LONGEST, _LONGEST)

    def _laid_out(self, texts: np.ndarray) -> np.ndarray:
        """Returns the token ids of texts in UTF-8, without columns of padding at the end, int32 [texts, tokens]."""
        tokens = self.tokenize([text.decode() for text in texts.tolist()], "document")
        return self.layout.single(tokens, self.embedded_length)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        own = _serialization.arguments_of(self)
        return {**super().get_config(), **own, "tokenizer": self.tokenizer.to_str()}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Encoder:
        """Creates an encoder with the return value of `get_config`."""
        import_keras_hub("`Encoder`")  # It registers the classes of the backbones.
        return cls(**{**config, "backbone": tf.keras.utils.deserialize_keras_object(config["backbone"])})


def import_keras_hub(by: str) -> Any:
    """Returns the package, or raises an error that says how to install it."""
    with _arguments.needed("keras-hub", extra="text", by=by):
        import keras_hub
    return keras_hub


def _tokenizer_of(tokenizer: Any) -> Any:
    """Returns a tokenizer without padding and truncation."""
    with _arguments.needed("tokenizers", extra="text", by="`Encoder`"):
        import tokenizers
    if not hasattr(tokenizer, "to_str") and not isinstance(tokenizer, str):
        expected = "a tokenizer of the package tokenizers, or the text of tokenizer.json"
        raise ValueError(f"`tokenizer` must be {expected}, got {type(tokenizer).__name__}.")
    try:
        found = tokenizers.Tokenizer.from_str(tokenizer if isinstance(tokenizer, str) else tokenizer.to_str())
    except Exception as error:  # of no other class
        raise ValueError(f"`tokenizer` must be the text of tokenizer.json, got another one: {error}") from error
    found.no_padding()
    found.no_truncation()
    return found


def blocks_of(backbone: Any) -> list[Any]:
    """Returns the layers whose activation can be set."""
    block = import_keras_hub("`Encoder`").layers.TransformerEncoder
    return [layer for layer in backbone.layers if isinstance(layer, block)]


def _checked(inputs: Any, output: Any) -> tuple[Mapping[str, Any], Any]:
    """Returns the inputs and the hidden states of a backbone."""
    if not isinstance(inputs, dict) or "token_ids" not in inputs or not set(inputs) <= _INPUTS:
        found = sorted(inputs) if isinstance(inputs, dict) else inputs
        raise ValueError(f"`backbone` must have inputs among {sorted(_INPUTS)}, with token_ids, got {found}.")
    states = output.get("sequence_output") if isinstance(output, dict) else output
    if states is None or len(states.shape) != 3:
        raise ValueError(f"`backbone` must return hidden states [texts, tokens, width], got {output}.")
    return inputs, states


def _set_activation(backbone: Any, activation: str) -> None:
    function = _ACTIVATIONS[_arguments.choice("activation", activation, tuple(_ACTIVATIONS))]
    blocks = blocks_of(backbone)
    if not blocks:
        raise ValueError(f"`activation` must be None for {type(backbone).__name__}, got {activation!r}.")
    for block in blocks:
        dense = block._feedforward_intermediate_dense
        dense.activation, dense.call = function, functools.partial(_fused, dense)


def _fused(dense: Any, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
    """Returns the dense layer in operations that TensorFlow fuses with the activation, unlike those on three axes."""
    rows = tf.reshape(inputs, [-1, inputs.shape[-1]])
    outputs = dense.activation(tf.nn.bias_add(tf.matmul(rows, dense.kernel), dense.bias))
    return tf.reshape(outputs, tf.concat([tf.shape(inputs)[:-1], [dense.units]], axis=0))


def _boundary(backbone: Any, frozen_layers: int) -> Any:
    """Returns the output of the last frozen layer."""
    layers = getattr(backbone, "transformer_layers", None) or [None]
    if not all(isinstance(layer, tf.keras.layers.Layer) for layer in layers):
        name = type(backbone).__name__
        raise ValueError(f"`frozen_layers` must be 0 for {name}, whose layers are not separable, got {frozen_layers}.")
    if frozen_layers > len(layers):
        raise ValueError(f"`frozen_layers` must be at most {len(layers)}, the number of layers, got {frozen_layers}.")
    return layers[frozen_layers - 1].output
