"""The base class of models that score documents from the texts of query and document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import tensorflow as tf

from tfr_smooth import _arguments, _compiled
from tfr_smooth.text import layout
from tfr_smooth.text.encoder import Encoder

HIDDEN = ("tanh", "relu", "gelu", "linear")  # activations of `dense_layer`


class Reranker(tf.keras.Model):
    """Base class of models that score texts with an encoder.

    A subclass implements `call`, from the tensors of its inputs by name to scores, float32 [batch, list], with the help
    of `encode`. `CrossEncoder`, `LateInteraction` and `SingleVector` are ready to use.

    Args:
      encoder: The encoder.
      micro_batches: Number of parts of a training batch, >= 1. Gradients are accumulated over the parts for one step of
        the optimizer, so that a step needs the memory of one part.
      head_rate: Ratio of the head's learning rate to the encoder's, > 0. `call` multiplies the head's weights by this
        number, so that a step of Adam, whose size is the learning rate, changes the head `head_rate` times as much.
      **kwargs: Arguments of `tf.keras.Model`.

    Raises:
      ValueError: If an argument is out of its range.

    Example:
      >>> import keras_hub, tensorflow as tf, tokenizers
      >>> from tfr_smooth import text
      >>> class FirstToken(text.Reranker):
      ...     def call(self, inputs, training=None):
      ...         hidden, mask = self.encode(inputs["pair_ids"], training=training)
      ...         return tf.reduce_mean(hidden[:, :, 0, 0, :], axis=-1)
      >>> words = "[PAD] [UNK] [CLS] [SEP] [MASK] lift heat".split()
      >>> tokenizer = tokenizers.BertWordPieceTokenizer({word: number for number, word in enumerate(words)})
      >>> backbone = keras_hub.models.BertBackbone(
      ...     vocabulary_size=7, num_layers=1, num_heads=2, hidden_dim=4, intermediate_dim=8
      ... )
      >>> FirstToken(text.Encoder(backbone, tokenizer))({"pair_ids": tf.ones([2, 4, 1, 5], tf.int32)}).shape
      TensorShape([2, 4])
    """

    roles: ClassVar[Sequence[str | None]] = (None,)  # of the texts that the model takes alone; None for pairs
    has_one_vector: ClassVar[bool] = False  # of a text

    def __init__(self, encoder: Encoder, *, micro_batches: int = 1, head_rate: float = 50.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_jit = False  # XLA would compile each batch shape, which takes longer than it saves.
        self.encoder = encoder
        self.micro_batches = _arguments.integer("micro_batches", micro_batches, least=1)
        self.head_rate = _arguments.real("head_rate", head_rate, above=0.0)
        self._graphs: dict[str, Callable[..., tf.Tensor]] = {}
        self.mean_loss = tf.keras.metrics.Mean(name="loss")

    @property
    def metrics(self) -> list[Any]:
        """The metrics that `fit` reports and resets after each epoch."""
        return [self.mean_loss]

    def encode(
        self, ids: tf.Tensor, frozen: tf.Tensor | None = None, training: bool | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the encoder's hidden states and the mask of token ids.

        Args:
          ids: Token ids, int32 [..., tokens].
          frozen: The output of the encoder's frozen layers for these ids, [..., tokens, width]; None computes it.
          training: Whether to apply dropout.

        Returns:
          Hidden states, float32 [..., tokens, width], of padding without meaning, and the mask, bool [..., tokens],
          False for padding.
        """
        flat, shape = tf.reshape(ids, [-1, tf.shape(ids)[-1]]), tf.concat([tf.shape(ids), [self.encoder.width]], axis=0)
        inputs = [flat] if frozen is None else [flat, tf.reshape(frozen, tf.concat([tf.shape(flat), shape[-1:]], 0))]
        is_grouped = training and len(ids.shape) > 2  # Queries are too few.
        groups = max(1, _groups() // self.micro_batches) if is_grouped else 1
        hidden = self._by_length(inputs, groups) if groups > 1 else self.encoder(*inputs, training=training)
        return tf.reshape(tf.cast(hidden, tf.float32), shape), self.encoder.mask(ids)

    def _by_length(self, inputs: list[tf.Tensor], groups: int) -> tf.Tensor:
        """Returns the hidden states of texts, encoded in groups of like lengths without the padding of each group."""
        texts, size = tf.unstack(tf.shape(inputs[0]))
        lengths = tf.reduce_max(tf.where(inputs[0] == layout.PADDING, 0, tf.range(1, size + 1)), axis=1)
        order = tf.argsort(lengths)[tf.reduce_sum(tf.cast(lengths == 0, tf.int32)) :]  # without those of no tokens
        order = tf.pad(order, [[tf.maximum(groups - tf.size(order), 0), 0]], constant_values=texts)
        # oneDNN refuses groups without a text: they have one that is padding.
        inputs = [tf.pad(each, [[0, 1], *[[0, 0]] * (each.shape.rank - 1)]) for each in inputs]
        lengths, parts = tf.pad(lengths, [[0, 1]]), []
        # Traced once for all groups.
        signature = [any_size(each) for each in inputs]
        encode = _compiled.traced(lambda *part: self.encoder(*part, training=True), input_signature=signature)
        for number in range(groups):
            rows = order[tf.size(order) * number // groups : tf.size(order) * (number + 1) // groups]
            longest = tf.maximum(tf.reduce_max(tf.gather(lengths, rows)), 1)
            hidden = encode(*(tf.gather(each, rows)[:, :longest] for each in inputs))
            parts.append(tf.pad(tf.cast(hidden, tf.float32), [[0, 0], [0, size - longest], [0, 0]]))
        shape = [texts + 1, size, self.encoder.width]
        return tf.scatter_nd(order[:, tf.newaxis], tf.concat(parts, axis=0), shape)[:texts]

    def in_graph(self, method: str, *inputs: Any) -> tf.Tensor:
        """Calls a method in a graph, for inference; one graph serves batches and texts of all sizes.

        Args:
          method: The name of the method.
          *inputs: Its arguments, arrays or dicts of arrays.

        Returns:
          The result of the method.
        """
        signature = tf.nest.map_structure(any_size, inputs)
        key = f"{method} {signature}"
        if key not in self._graphs:
            self._graphs[key] = _compiled.traced(getattr(self, method), input_signature=signature)
        return self._graphs[key](*inputs)

    def train_step(self, data: Any) -> dict[str, Any]:
        """Performs one step of the optimizer in `micro_batches` parts; called by `fit`."""
        inputs, labels, weights = tf.keras.utils.unpack_x_y_sample_weight(data)
        lists = tf.shape(labels)[0]
        total, gradients = tf.zeros([]), [tf.zeros_like(variable) for variable in self.trainable_variables]
        for number in range(self.micro_batches):
            part = tf.nest.map_structure(
                lambda x: None if x is None else x[number :: self.micro_batches],  # noqa: B023
                (inputs, labels, weights),
            )
            share = tf.cast(tf.shape(part[1])[0], tf.float32) / tf.cast(lists, tf.float32)
            with tf.GradientTape() as tape:
                scores, targets = self.training_scores(part[0], part[1])
                loss = share * self.compute_loss(x=part[0], y=targets, y_pred=scores, sample_weight=part[2])
                scaled = self.optimizer.scale_loss(loss)
            of_part = tape.gradient(scaled, self.trainable_variables)
            gradients = [a + b for a, b in zip(gradients, of_part, strict=True)]
            total += loss
        self._apply(gradients)
        self.mean_loss.update_state(total, sample_weight=lists)
        return {"loss": self.mean_loss.result()}

    def served(self, ids: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the outputs of an export by name, given the ids of texts or of pairs [..., tokens]."""
        raise NotImplementedError

    def training_scores(self, inputs: Mapping[str, tf.Tensor], labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the scores and labels of the loss: those of the lists, unless a subclass adds documents.

        Args:
          inputs: As for `call`.
          labels: Labels, float32 [batch, list], -1 for padding.

        Returns:
          Scores and labels, float32 [batch, documents].
        """
        return self(inputs, training=True), labels

    def _apply(self, gradients: list[tf.Tensor]) -> None:
        pairs = list(zip(gradients, self.trainable_variables, strict=True))
        # Keras sums the gradients over the replicas with a `tf.custom_gradient`, also without a strategy. TensorFlow
        # keeps every graph with one, and its variables, until the process ends. In cross-replica context, Keras does
        # not sum. The optimizer for float16 refuses this context.
        scales_loss = isinstance(self.optimizer, tf.keras.mixed_precision.LossScaleOptimizer)
        if scales_loss or tf.distribute.has_strategy():
            self.optimizer.apply_gradients(pairs)
        else:
            tf.distribute.get_replica_context().merge_call(lambda _: self.optimizer.apply_gradients(pairs))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        own = {"micro_batches": self.micro_batches, "head_rate": self.head_rate}
        return {"name": self.name, "encoder": self.encoder.get_config(), **own}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Any = None) -> Reranker:
        """Creates a model with the return value of `get_config`."""
        return cls(**{**config, "encoder": Encoder.from_config(config["encoder"])})

    def set_weights_of(self, other: Reranker) -> None:
        """Sets the weights of a model with the same layers, so that the scores are the same for each `head_rate`."""
        shapes = [[tuple(variable.shape) for variable in model.weights] for model in (self, other)]
        if type(self) is not type(other) or shapes[0] != shapes[1]:
            raise ValueError(f"`init_model` must be a {type(self).__name__} with the same layers, got another model.")
        self.set_weights(other.get_weights())
        for variable in self.weights:
            if variable.name.startswith("head_"):
                variable.assign(variable * (other.head_rate / self.head_rate))

    def copy(self) -> Reranker:
        """Returns a new model that is not compiled, with other variables of the same values."""
        same = type(self).from_config(self.get_config())
        same.set_weights(self.get_weights())
        return same


def _groups() -> int:
    """Returns the number of groups of texts of like lengths in which a batch is encoded in training."""
    # A CPU takes the time of the tokens; on a GPU, small groups leave cores idle. More groups take longer to trace.
    return 1 if tf.config.list_physical_devices("GPU") else 4


def dense_layer(vectors: tf.Tensor, kernel: Any, bias: Any, *, activation: str) -> tf.Tensor:
    """Returns the output of a dense layer, in float32."""
    kernel, bias = (tf.cast(each, tf.float32) for each in (kernel, bias))
    return getattr(tf.keras.activations, activation)(tf.tensordot(vectors, kernel, 1) + bias)


def any_size(array: Any) -> tf.TensorSpec:
    """Returns the spec of an input of which all sizes may change, except the width of hidden states."""
    shape, dtype = array.shape, tf.as_dtype(array.dtype)
    width = shape[-1] if len(shape) > 2 and dtype.is_floating else None
    return tf.TensorSpec([*[None] * (len(shape) - 1), width], dtype)
