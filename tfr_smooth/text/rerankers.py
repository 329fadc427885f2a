"""Models that score the documents of a query by their texts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.text.bert import BertEncoder


class Reranker(tf.keras.Model):
    """Base class of models that score texts with a BERT encoder.

    Args:
      encoder: The encoder.
      micro_batches: The number of parts that a training batch is computed in: gradients are added up over them, for
        one step of the optimizer. Memory is that of one part.
      head_rate: How many times as fast as the encoder the head is trained: its weights are kept divided by this
        number, which Adam's steps, of the size of the learning rate, then are multiplied with.
      **kwargs: Arguments of `tf.keras.Model`.

    Raises:
      ValueError: If an argument is out of its range.
    """

    def __init__(
        self,
        encoder: BertEncoder | Mapping[str, Any],
        *,
        micro_batches: int = 1,
        head_rate: float = 50.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.supports_jit = False  # XLA would compile each shape of a batch, for longer than it saves.
        self.encoder = encoder if isinstance(encoder, BertEncoder) else BertEncoder.from_config(dict(encoder))
        self.micro_batches = _arguments.integer("micro_batches", micro_batches, least=1)
        self.head_rate = _arguments.real("head_rate", head_rate, above=0.0)
        if not self.encoder.built:
            self.encoder.build()
        self.mean_loss = tf.keras.metrics.Mean(name="loss")

    @property
    def metrics(self) -> list[Any]:
        """What `fit` shows and resets after each epoch."""
        return [self.mean_loss]

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Returns the scores [batch, list] float32."""
        raise NotImplementedError

    def encode(
        self, ids: tf.Tensor, frozen: tf.Tensor | None = None, training: bool | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the hidden states [..., tokens, width] float32 of ids [..., tokens], and their mask.

        Args:
          ids: Token ids.
          frozen: What the encoder's frozen layers return for them, [..., tokens, width]; None computes it.
          training: Whether this is a training step.
        """
        flat = tf.reshape(ids, [-1, tf.shape(ids)[-1]])
        if frozen is None:
            hidden = self.encoder(flat, training=training)
        else:
            width = self.encoder.config.hidden_size
            frozen = tf.reshape(frozen, [tf.shape(flat)[0], tf.shape(flat)[1], width])
            hidden = self.encoder.trained(flat, frozen, training=training)
        shape = tf.concat([tf.shape(ids), [self.encoder.config.hidden_size]], axis=0)
        return tf.reshape(tf.cast(hidden, tf.float32), shape), self.encoder.mask(ids)

    @functools.cached_property
    def compiled_call(self) -> Callable[..., tf.Tensor]:
        """The model's call as a graph, for inference."""
        return tf.function(functools.partial(self.call, training=False), autograph=False, reduce_retracing=True)

    def train_step(self, data: Any) -> dict[str, Any]:
        """Called by `fit`: one step of the optimizer, in `micro_batches` parts."""
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
                scores = self(part[0], training=True)
                loss = share * self.compute_loss(x=part[0], y=part[1], y_pred=scores, sample_weight=part[2])
            found = tape.gradient(loss, self.trainable_variables)
            gradients = [a + b for a, b in zip(gradients, found, strict=True)]
            total += loss
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        self.mean_loss.update_state(total, sample_weight=lists)
        return {"loss": self.mean_loss.result()}

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            "name": self.name,
            "encoder": self.encoder.get_config(),
            "micro_batches": self.micro_batches,
            "head_rate": self.head_rate,
        }


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class CrossEncoder(Reranker):
    r"""Scores each pair of query and document from the encoder's [CLS] output.

    $$s = w^\top \frac{1}{P} \sum_{p=1}^P \mathrm{CLS}_p + b$$

    over the P passages of the document (the vanilla BERT of MacAvaney et al., "CEDR", SIGIR 2019, which the SmoothI
    paper trains). Takes `{"pair_ids": [batch, list, passages, tokens] int32}`, with `pair_hidden` beside it for
    what the frozen layers return; see `PairInputs`. Returns scores [batch, list] float32.

    Args:
      encoder: The encoder.
      **kwargs: Arguments of `Reranker`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import text
      >>> config = text.BertConfig(
      ...     vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
      ... )
      >>> text.CrossEncoder(text.BertEncoder(config, sep_id=3))({"pair_ids": tf.ones([2, 4, 1, 5], tf.int32)}).shape
      TensorShape([2, 4])
    """

    def __init__(self, encoder: BertEncoder | Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(encoder, **kwargs)
        width = self.encoder.config.hidden_size
        start = tf.keras.initializers.TruncatedNormal(stddev=0.02 / self.head_rate)
        self.kernel = self.add_weight(name="head_kernel", shape=(width,), initializer=start)
        self.bias = self.add_weight(name="head_bias", shape=(), initializer="zeros")
        self.dropout = tf.keras.layers.Dropout(self.encoder.config.hidden_dropout_prob)
        self.built = True

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Returns the scores."""
        hidden, mask = self.encode(inputs["pair_ids"], inputs.get("pair_hidden"), training)
        real = tf.cast(mask[..., :1], tf.float32)  # [batch, list, passages, 1]: whether the passage has tokens
        mean = tf.math.divide_no_nan(tf.reduce_sum(hidden[..., 0, :] * real, axis=2), tf.reduce_sum(real, axis=2))
        kernel, bias = tf.convert_to_tensor(self.kernel), tf.convert_to_tensor(self.bias)
        scores = tf.linalg.matvec(self.dropout(mean, training=training), tf.cast(kernel, tf.float32))
        return self.head_rate * (scores + tf.cast(bias, tf.float32))


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class LateInteraction(Reranker):
    r"""Scores each document from the vectors of its tokens and those of the query's tokens (MaxSim).

    $$s = \gamma \sum_{i \in q} \max_{j \in d} \cos(h_i, h_j)$$

    (Khattab and Zaharia, "ColBERT", SIGIR 2020, Eq. 3, without the projection; the scale $\gamma$ is trained and starts
    at 1.) A document is encoded once for all queries. Takes `{"query_ids": [batch, tokens], "document_ids": [batch,
    list, tokens]}`, int32, with `query_hidden` and `document_hidden` beside them for what the frozen layers return; see
    `LateInputs`. Returns scores [batch, list] float32; a document without tokens scores the least possible.

    Args:
      encoder: The encoder.
      **kwargs: Arguments of `Reranker`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import text
      >>> config = text.BertConfig(
      ...     vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
      ... )
      >>> ids = {"query_ids": tf.ones([2, 3], tf.int32), "document_ids": tf.ones([2, 4, 5], tf.int32)}
      >>> text.LateInteraction(text.BertEncoder(config, sep_id=3))(ids).shape
      TensorShape([2, 4])
    """

    def __init__(self, encoder: BertEncoder | Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(encoder, **kwargs)
        start = tf.keras.initializers.Constant(1.0 / self.head_rate)
        self.scale = self.add_weight(name="head_scale", shape=(), initializer=start)
        self.built = True

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Returns the scores."""
        queries = self.vectors(inputs["query_ids"], inputs.get("query_hidden"), training)
        documents = self.vectors(inputs["document_ids"], inputs.get("document_hidden"), training)
        return self.interact(queries, documents, self.encoder.mask(inputs["document_ids"]))

    @functools.cached_property
    def compiled_vectors(self) -> Callable[..., tf.Tensor]:
        """`vectors` as a graph, for inference."""
        return tf.function(self.vectors, autograph=False, reduce_retracing=True)

    @functools.cached_property
    def compiled_interact(self) -> Callable[..., tf.Tensor]:
        """`interact` as a graph, for inference."""
        return tf.function(self.interact, autograph=False, reduce_retracing=True)

    def vectors(self, ids: tf.Tensor, frozen: tf.Tensor | None = None, training: bool | None = None) -> tf.Tensor:
        """Returns the vectors of length 1 of tokens, [..., tokens, width]; those of padding are 0."""
        hidden, mask = self.encode(ids, frozen, training)
        return tf.math.l2_normalize(hidden, axis=-1) * tf.cast(mask, tf.float32)[..., tf.newaxis]

    def interact(self, queries: tf.Tensor, documents: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the scores [batch, list].

        Args:
          queries: [batch, query tokens, width], from `vectors`.
          documents: [batch, list, document tokens, width], from `vectors`.
          mask: [batch, list, document tokens] bool.
        """
        # -1 is the least that a cosine can be.
        cosines = tf.einsum("bqw,bndw->bnqd", queries, documents)
        nearest = tf.reduce_max(tf.where(mask[:, :, tf.newaxis, :], cosines, -1.0), axis=-1)
        real = tf.cast(tf.reduce_any(queries != 0.0, axis=-1), tf.float32)
        scale = tf.cast(tf.convert_to_tensor(self.scale), tf.float32) * self.head_rate
        return scale * tf.einsum("bnq,bq->bn", nearest, real)
