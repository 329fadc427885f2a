"""Export of a reranker as a SavedModel."""

from __future__ import annotations

import os
from pathlib import Path

import tensorflow as tf

from tfr_smooth import _keras
from tfr_smooth.serving import versions
from tfr_smooth.text.rerankers import Reranker
from tfr_smooth.text.token_inputs import Inputs


def export_reranker(
    model: Reranker,
    path: str | os.PathLike[str],
    *,
    inputs: Inputs,
    texts: bool = True,
    version: int | None = None,
) -> Path:
    """Exports a reranker as PATH/VERSION, a SavedModel for TF Serving.

    The signatures return `scores` [batch, list] float32:

    - `serving_default`, if `texts` is True: takes the strings `query` [batch] and `documents` [batch, list], where a
      document is its title followed by its text. Pad lists with ""; ignore the scores of padding.
    - `ids`: takes the model's token ids, such as `query_ids` and `document_ids`. If `texts` is False, this is also
      `serving_default`.

    Import `tensorflow_text` before loading a SavedModel with the signature for texts; TF Serving includes it.

    Args:
      model: The reranker.
      path: The folder of the versions, on the local file system.
      inputs: The inputs that the model was trained with, which define the tokenizer and the lengths.
      texts: Whether to export the signature for texts, which contains the tokenizer.
      version: Number of the version, >= 1; None for the last version plus 1.

    Returns:
      The folder PATH/VERSION.

    Raises:
      ValueError: If the version exists.

    Example:
      >>> import keras_hub, tempfile
      >>> from tfr_smooth import text
      >>> tokenizer = keras_hub.models.BertTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] lift heat".split())
      >>> collection = text.Collection({"d1": text.Document("", "lift")}, {"q1": "lift"}, {}, {})
      >>> inputs = text.LateInputs(collection, tokenizer, query_length=4, document_length=4)
      >>> backbone = keras_hub.models.BertBackbone(
      ...     vocabulary_size=7, num_layers=1, num_heads=2, hidden_dim=4, intermediate_dim=8
      ... )
      >>> model = text.LateInteraction(text.Encoder(backbone, tokenizer))
      >>> text.export_reranker(model, tempfile.mkdtemp(), inputs=inputs).name
      '1'
    """
    module = tf.Module()
    # Only the variables: with the model itself, Keras would also save all of its functions.
    module.model_variables = _keras.tensorflow_variables(model.variables)

    def score(**ids: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"scores": model(ids, training=False)}

    module.ids = tf.function(score, autograph=False).get_concrete_function(**inputs.signature())
    signatures = {"serving_default": module.ids, "ids": module.ids}
    if texts:
        module.tokenizer = inputs.tokenizer  # with its vocabulary

        def score_texts(query: tf.Tensor, documents: tf.Tensor) -> dict[str, tf.Tensor]:
            tokenize, flat = inputs.tokenize, tf.reshape(documents, [-1])
            ids = inputs.from_tokens(tokenize(query), tokenize(flat), tf.shape(documents))
            return {"scores": model(ids, training=False)}

        module.texts = tf.function(score_texts, autograph=False).get_concrete_function(
            tf.TensorSpec([None], tf.string, name="query"), tf.TensorSpec([None, None], tf.string, name="documents")
        )
        signatures["serving_default"] = module.texts

    def write(folder: Path, number: int) -> None:
        tf.saved_model.save(module, os.fspath(folder), signatures=signatures)

    return versions.publish(path, version, write)
