"""Scores of a query and a document in one input of the encoder, or by similarities of vectors; exports of both."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _files, _keras
from tfr_smooth.serving import onnx_export, versions
from tfr_smooth.text import layout
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

    def served(self, ids: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the scores of pairs, given by their ids [pairs, tokens]."""
        return {"scores": self({"pair_ids": ids[tf.newaxis, :, tf.newaxis]}, training=False)[0]}

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
      >>> import keras_hub, tensorflow as tf, tokenizers
      >>> from tfr_smooth import text
      >>> words = "[PAD] [UNK] [CLS] [SEP] [MASK] lift heat".split()
      >>> tokenizer = tokenizers.BertWordPieceTokenizer({word: number for number, word in enumerate(words)})
      >>> backbone = keras_hub.models.BertBackbone(
      ...     vocabulary_size=7, num_layers=1, num_heads=2, hidden_dim=4, intermediate_dim=8
      ... )
      >>> ids = {"query_ids": tf.ones([2, 3], tf.int32), "document_ids": tf.ones([2, 4, 5], tf.int32)}
      >>> text.LateInteraction(text.Encoder(backbone, tokenizer))(ids).shape
      TensorShape([2, 4])
    """

    roles = layout.ROLES
    _scale = 1.0

    def __init__(
        self, encoder: Encoder, *, dense: Sequence[Any] | None = None, ignored: Sequence[str] = (), **kwargs: Any
    ) -> None:
        super().__init__(encoder, **kwargs)
        self.width = encoder.width  # of the vectors
        self.ignored, self.dense = list(ignored), None if dense is None else list(dense)
        if ignored and not encoder.markers:
            raise ValueError(f"`encoder` must have `markers` with `ignored`, got none and {self.ignored}.")
        self._ignored_ids = layout.ids_of(encoder.tokenizer, self.ignored)
        self._document_markers = layout.ids_of(encoder.tokenizer, encoder.markers[1:])
        if self.dense is not None:
            self.width = _arguments.integer("dense", self.dense[0], least=1)
            _arguments.choice("dense", self.dense[1], HIDDEN)
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
        counts = tf.not_equal(ids, layout.PADDING)
        if self.ignored:
            is_ignored = tf.reduce_any(ids[..., tf.newaxis] == tf.constant(self._ignored_ids), axis=-1)
            counts &= ~(is_ignored & (ids[..., 1:2] == self._document_markers))
        return self._normalized(hidden) * tf.cast(counts, tf.float32)[..., tf.newaxis]

    def _normalized(self, vectors: tf.Tensor) -> tf.Tensor:
        """Returns the output of the layer after the encoder, scaled to length 1."""
        if self.dense is not None:
            vectors = dense_layer(vectors, *self._dense, activation=self.dense[1])
        return tf.math.l2_normalize(vectors, axis=-1)

    def served(self, ids: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the vectors of the tokens of texts, given by their ids [texts, tokens]."""
        return {"vectors": self.vectors(ids)}

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
      >>> import keras_hub, tensorflow as tf, tokenizers
      >>> from tfr_smooth import text
      >>> words = "[PAD] [UNK] [CLS] [SEP] [MASK] lift heat".split()
      >>> tokenizer = tokenizers.BertWordPieceTokenizer({word: number for number, word in enumerate(words)})
      >>> backbone = keras_hub.models.BertBackbone(
      ...     vocabulary_size=7, num_layers=1, num_heads=2, hidden_dim=4, intermediate_dim=8
      ... )
      >>> ids = {"query_ids": tf.ones([2, 3], tf.int32), "document_ids": tf.ones([2, 4, 5], tf.int32)}
      >>> text.SingleVector(text.Encoder(backbone, tokenizer))(ids).shape
      TensorShape([2, 4])
    """

    has_one_vector = True
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

    def served(self, ids: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the vectors of texts, given by their ids [texts, tokens]."""
        return {"vectors": self.vectors(ids)[:, 0]}

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


def saved_model(
    model: Reranker,
    path: str | os.PathLike[str],
    version: int | None,
    sizes: Mapping[str, Any],
    card: Mapping[str, Any],
) -> Path:
    """Writes the versioned SavedModel, and returns its directory.

    Args:
      model: The model.
      path: The directory of the versions.
      version: The version; None for the next one.
      sizes: The most tokens, by argument of `TextRanker`.
      card: The content of the model card.
    """
    module = tf.Module()
    # Only the variables: with the model itself, Keras would also save all of its functions.
    module.model_variables = _keras.tensorflow_variables(model.variables)
    module.serve = tf.function(_function(model), autograph=False, input_signature=_signature(model))

    def write(folder: Path, number: int) -> None:
        tf.saved_model.save(module, os.fspath(folder), signatures=module.serve)
        described = {"class": type(model).__name__, "version": number, "parameters": model.count_params()}
        versions.write_card(folder, card, model=described)
        _write_tokenizers(model, folder / versions.EXTRA, sizes)

    return versions.publish(path, version, write)


def onnx(model: Reranker, path: Path, sizes: Mapping[str, Any]) -> Path:
    """Writes a folder with model.onnx and the files of the tokenizer, and returns it; arguments as above."""
    if path.exists():
        raise ValueError(f"`path` must be a new folder, got {os.fspath(path)!r}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    proto = onnx_export.with_weights(_function(model), model.variables, _signature(model))
    with _files.replacing(path, overwrite=False) as unfinished:
        unfinished.mkdir()
        _files.write_bytes(unfinished / "model.onnx", [proto.SerializeToString()])
        _write_tokenizers(model, unfinished, sizes)
    return path


def _signature(model: Reranker) -> list[tf.TensorSpec]:
    names = ["input_ids", "attention_mask", *["token_type_ids"] * model.encoder.has_segments]
    return [tf.TensorSpec([None, None], tf.int64, name=name) for name in names]


def _function(model: Reranker) -> Callable[..., dict[str, tf.Tensor]]:
    """Returns the function of the signature."""
    encoder = model.encoder

    def serve(input_ids: tf.Tensor, attention_mask: tf.Tensor, token_type_ids: Any = 0) -> dict[str, tf.Tensor]:
        ids = tf.cast(input_ids + encoder.backbone.vocabulary_size * token_type_ids, tf.int32)
        masked: Any = layout.PADDING
        if encoder.fill is not None:
            masked = tf.where(ids == layout.ids_of(encoder.tokenizer, [encoder.fill])[0], layout.FILL, masked)
        ids = tf.where(attention_mask > 0, ids, masked)
        return model.served(ids)

    return serve


def _write_tokenizers(model: Reranker, folder: Path, sizes: Mapping[str, Any]) -> None:
    """Writes tokenizer.json; for vectors, query_tokenizer.json, too."""
    for role in model.roles:
        name = "query_" * (role == "query")
        tokenizer = model.encoder.tokenizer_file(role, sizes[f"{name}length"])
        tokenizer.save(os.fspath(folder / f"{name}tokenizer.json"))
