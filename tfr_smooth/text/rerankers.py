"""Models that score documents from the texts of query and document."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _compiled
from tfr_smooth.text import layout
from tfr_smooth.text.encoder import Encoder

_HIDDEN = ("tanh", "relu", "gelu", "linear")


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
      >>> import keras_hub, tensorflow as tf
      >>> from tfr_smooth import text
      >>> class FirstToken(text.Reranker):
      ...     def call(self, inputs, training=None):
      ...         hidden, mask = self.encode(inputs["pair_ids"], training=training)
      ...         return tf.reduce_mean(hidden[:, :, 0, 0, :], axis=-1)
      >>> tokenizer = keras_hub.models.BertTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] lift heat".split())
      >>> backbone = keras_hub.models.BertBackbone(
      ...     vocabulary_size=7, num_layers=1, num_heads=2, hidden_dim=4, intermediate_dim=8
      ... )
      >>> FirstToken(text.Encoder(backbone, tokenizer))({"pair_ids": tf.ones([2, 4, 1, 5], tf.int32)}).shape
      TensorShape([2, 4])
    """

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
        lengths = tf.reduce_max(tf.where(inputs[0] == self.encoder.special.pad, 0, tf.range(1, size + 1)), axis=1)
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

    def copy(self) -> Reranker:
        """Returns a new model that is not compiled, with other variables of the same values."""
        same = type(self).from_config(self.get_config())
        same.encoder.tokenizer = self.encoder.tokenizer  # Configurations do not have the vocabulary.
        same.set_weights(self.get_weights())
        return same


def _groups() -> int:
    """Returns the number of groups of texts of like lengths in which a batch is encoded in training."""
    # A CPU takes the time of the tokens; on a GPU, small groups leave cores idle. More groups take longer to trace.
    return 1 if tf.config.list_physical_devices("GPU") else 4


def _layer(vectors: tf.Tensor, kernel: Any, bias: Any, *, activation: str) -> tf.Tensor:
    """Returns the output of a dense layer, in float32."""
    kernel, bias = (tf.cast(each, tf.float32) for each in (kernel, bias))
    return getattr(tf.keras.activations, activation)(tf.einsum("...v,vw->...w", vectors, kernel) + bias)


def any_size(array: Any) -> tf.TensorSpec:
    """Returns the spec of an input of which all sizes may change, except the width of hidden states."""
    shape, dtype = array.shape, tf.as_dtype(array.dtype)
    width = shape[-1] if len(shape) > 2 and dtype.is_floating else None
    return tf.TensorSpec([*[None] * (len(shape) - 1), width], dtype)


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
      >>> import keras_hub, tensorflow as tf
      >>> from tfr_smooth import text
      >>> tokenizer = keras_hub.models.BertTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] lift heat".split())
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
        self.hidden = None if hidden is None else _arguments.choice("hidden", hidden, _HIDDEN)
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
            first = _layer(first, self.hidden_kernel, self.hidden_bias, activation=self.hidden)
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


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class LateInteraction(Reranker):
    r"""Scores documents by the similarities between the token vectors of query and document (MaxSim).

    $$s = \gamma \sum_{i \in q} \max_{j \in d} \cos(h_i, h_j)$$

    (Khattab and Zaharia, "ColBERT", SIGIR 2020, Eq. 3; the scale $\gamma$ is trained and initialized to 1.) A document
    is encoded once for all queries. With a layer after the encoder, as ColBERT has, $f(W h + c)$ takes the place of h.

    The input is `{"query_ids": [batch, tokens], "document_ids": [batch, list, tokens]}`, int32, optionally with
    `query_hidden` and `document_hidden`, the output of the encoder's frozen layers; see `LateInputs`. Returns scores,
    float32 [batch, list]. Padding documents have the lowest possible score.

    Args:
      encoder: The encoder.
      dense: The width of a layer after the encoder and its activation f, such as [128, "linear"]. None: no layer.
      ignored: Tokens that do not count in documents, such as punctuation in ColBERT; with `markers` of the encoder.
      **kwargs: Arguments of `Reranker`.

    Example:
      >>> import keras_hub, tensorflow as tf
      >>> from tfr_smooth import text
      >>> tokenizer = keras_hub.models.BertTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] lift heat".split())
      >>> backbone = keras_hub.models.BertBackbone(
      ...     vocabulary_size=7, num_layers=1, num_heads=2, hidden_dim=4, intermediate_dim=8
      ... )
      >>> ids = {"query_ids": tf.ones([2, 3], tf.int32), "document_ids": tf.ones([2, 4, 5], tf.int32)}
      >>> text.LateInteraction(text.Encoder(backbone, tokenizer))(ids).shape
      TensorShape([2, 4])
    """

    _scale = 1.0

    def __init__(
        self, encoder: Encoder, *, dense: Sequence[Any] | None = None, ignored: Sequence[str] = (), **kwargs: Any
    ) -> None:
        super().__init__(encoder, **kwargs)
        self.width = encoder.width  # of the vectors
        self.ignored, self.dense = list(ignored), None if dense is None else list(dense)
        if ignored and not encoder.markers:
            raise ValueError(f"`encoder` must have `markers` with `ignored`, got none and {self.ignored}.")
        if self.dense is not None:
            self.width = _arguments.integer("dense", self.dense[0], least=1)
            _arguments.choice("dense", self.dense[1], _HIDDEN)
            shapes = {"dense_kernel": (encoder.width, self.width), "dense_bias": (self.width,)}
            self._dense = [self.add_weight(name=name, shape=shape) for name, shape in shapes.items()]
        start = tf.keras.initializers.Constant(self._scale / self.head_rate)
        self.scale = self.add_weight(name="head_scale", shape=(), initializer=start)
        self.built = True

    def call(self, inputs: Mapping[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Returns the scores.

        Args:
          inputs: `query_ids`, int32 [batch, tokens], and `document_ids`, int32 [batch, list, tokens]; optionally
            `query_hidden` and `document_hidden`, the output of the encoder's frozen layers, [..., tokens, width].
          training: Whether to apply dropout.

        Returns:
          Scores, float32 [batch, list].
        """
        queries = self.vectors(inputs["query_ids"], inputs.get("query_hidden"), training)
        documents = self.vectors(inputs["document_ids"], inputs.get("document_hidden"), training)
        return self.interact(queries, documents)

    def vectors(self, ids: tf.Tensor, frozen: tf.Tensor | None = None, training: bool | None = None) -> tf.Tensor:
        """Returns the token vectors of texts.

        Args:
          ids: Token ids, int32 [..., tokens].
          frozen: The output of the encoder's frozen layers for these ids, [..., tokens, width]; None computes it.
          training: Whether to apply dropout.

        Returns:
          Vectors of length 1, and 0 for padding, float32 [..., tokens, width].
        """
        hidden, _ = self.encode(ids, frozen, training)
        counts = tf.not_equal(ids, self.encoder.special.pad)
        if self.ignored:
            is_ignored = tf.reduce_any(ids[..., tf.newaxis] == tf.constant(self._ignored_ids), axis=-1)
            counts &= ~(is_ignored & (ids[..., 1:2] == self.encoder.special.markers["document"]))
        return self._normalized(hidden) * tf.cast(counts, tf.float32)[..., tf.newaxis]

    @functools.cached_property
    def _ignored_ids(self) -> list[int]:
        return layout.ids_of(self.encoder.tokenizer, self.ignored)

    def _normalized(self, vectors: tf.Tensor) -> tf.Tensor:
        """Returns the output of the layer after the encoder, scaled to length 1."""
        if self.dense is not None:
            vectors = _layer(vectors, *self._dense, activation=self.dense[1])
        return tf.math.l2_normalize(vectors, axis=-1)

    def set_head(self, weights: Sequence[Any]) -> None:
        """Sets the kernel and the bias of the layer after the encoder, [encoder's width, width] and [width]."""
        for variable, value in zip(self._dense, weights, strict=True):
            variable.assign(value)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "dense": self.dense, "ignored": self.ignored}

    def interact(self, queries: tf.Tensor, documents: tf.Tensor) -> tf.Tensor:
        """Returns the scores of documents, computed from token vectors.

        Args:
          queries: Output of `vectors` for the queries, [batch, query tokens, width].
          documents: Output of `vectors` for the documents, [batch, list, document tokens, width].

        Returns:
          Scores, float32 [batch, list].
        """
        # The lowest value of a cosine is -1.
        cosines = tf.einsum("bqw,bndw->bnqd", queries, documents)
        nearest = tf.reduce_max(tf.where(_is_real(documents)[:, :, tf.newaxis, :], cosines, -1.0), axis=-1)
        scale = tf.cast(tf.convert_to_tensor(self.scale), tf.float32) * self.head_rate
        return scale * tf.einsum("bnq,bq->bn", nearest, tf.cast(_is_real(queries), tf.float32))


def _is_real(vectors: tf.Tensor) -> tf.Tensor:
    """Returns whether vectors are not those of padding, bool [...]."""
    return tf.reduce_any(vectors != 0.0, axis=-1)


@tf.keras.utils.register_keras_serializable(package="tfr_smooth")
class SingleVector(LateInteraction):
    r"""Scores documents by the cosine similarity between one vector of the query and one of the document.

    $$s = \gamma \cos(v_q, v_d)$$

    with the vectors of `Encoder.pool` (Reimers and Gurevych, "Sentence-BERT", EMNLP 2019; the scale $\gamma$ is trained
    and initialized to 20). In training, the documents of the other queries of the batch are further documents with
    label 0 (in-batch negatives; Karpukhin et al., "Dense Passage Retrieval", EMNLP 2020, Section 3.2), except those
    with the tokens of a document of the query. Input and scores are those of `LateInteraction`, as if each text had one
    token. Beside the encoder's, a step takes O(batch^2 * list * (width + list * tokens)) time. With a layer after the
    pooling, as some published encoders have, $f(W v + c)$ takes the place of v.

    Args:
      encoder: The encoder.
      dense: The width of a layer after the pooling and its activation f, such as [256, "tanh"]. None: no layer.
      **kwargs: Arguments of `Reranker`. `micro_batches` > 1 leaves the documents of other parts out.

    Example:
      >>> import keras_hub, tensorflow as tf
      >>> from tfr_smooth import text
      >>> tokenizer = keras_hub.models.BertTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] lift heat".split())
      >>> backbone = keras_hub.models.BertBackbone(
      ...     vocabulary_size=7, num_layers=1, num_heads=2, hidden_dim=4, intermediate_dim=8
      ... )
      >>> ids = {"query_ids": tf.ones([2, 3], tf.int32), "document_ids": tf.ones([2, 4, 5], tf.int32)}
      >>> text.SingleVector(text.Encoder(backbone, tokenizer))(ids).shape
      TensorShape([2, 4])
    """

    _scale = 20.0  # not tuned: the default of the losses of sentence-transformers

    def vectors(self, ids: tf.Tensor, frozen: tf.Tensor | None = None, training: bool | None = None) -> tf.Tensor:
        """Returns the vectors of texts.

        Args:
          ids: Token ids, int32 [..., tokens].
          frozen: The output of the encoder's frozen layers for these ids, [..., tokens, width]; None computes it.
          training: Whether to apply dropout.

        Returns:
          Vectors of length 1, and 0 for padding, float32 [..., 1, width].
        """
        hidden, mask = self.encode(ids, frozen, training)
        vectors = self._normalized(self.encoder.pool(hidden, ids))
        return (vectors * tf.cast(mask[..., :1], tf.float32))[..., tf.newaxis, :]  # padding is 0

    def training_scores(self, inputs: Mapping[str, tf.Tensor], labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the scores and labels of all documents of the batch for each query.

        Args:
          inputs: As for `call`.
          labels: Labels, float32 [batch, list], -1 for padding.

        Returns:
          Scores and labels, float32 [batch, batch * list]; the label is -1 for documents that do not count.
        """
        batch, size = tf.unstack(tf.shape(labels))
        queries = self.vectors(inputs["query_ids"], inputs.get("query_hidden"), True)
        documents = self.vectors(inputs["document_ids"], inputs.get("document_hidden"), True)
        every = tf.repeat(tf.reshape(documents, [1, batch * size, 1, self.width]), batch, axis=0)
        ids = tf.reshape(inputs["document_ids"], [batch * size, tf.shape(inputs["document_ids"])[-1]])
        is_same = tf.reshape(tf.reduce_all(ids[:, tf.newaxis] == ids, axis=-1), [batch, size, batch * size])
        is_padding = tf.reshape(labels, [-1]) < 0.0
        others = tf.where(tf.reduce_any(is_same, axis=1) | is_padding, -1.0, 0.0)
        is_own = tf.repeat(tf.eye(batch, dtype=tf.bool), size, axis=1)
        return self.interact(queries, every), tf.where(is_own, tf.tile(labels, [1, batch]), others)
