"""Export of a reranker as a SavedModel."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from tfr_smooth import _keras
from tfr_smooth.serving import versions
from tfr_smooth.text.rerankers import Reranker, SingleVector
from tfr_smooth.text.token_inputs import Inputs, LateInputs


def export(
    model: Reranker, inputs: Inputs, path: str | os.PathLike[str], version: int | None, card: Mapping[str, Any]
) -> Path:
    """Exports a reranker as PATH/VERSION, a SavedModel of strings; of a `SingleVector`, also with its vectors.

    Args:
      model: The reranker.
      inputs: Inputs of the model, of any texts.
      path: The folder of the versions, on the local file system.
      version: Number of the version, >= 1; None for the last version plus 1.
      card: The entries of the model card.

    Returns:
      The folder PATH/VERSION.
    """
    module, tokenize = tf.Module(), model.encoder.tokenize
    # Only the variables: with the model itself, Keras would also save all of its functions.
    module.model_variables = _keras.tensorflow_variables(model.variables)
    module.tokenizer = model.encoder.tokenizer  # with its vocabulary

    def score(query: tf.Tensor, documents: tf.Tensor) -> dict[str, tf.Tensor]:
        query, documents = tf.ensure_shape(query, [None]), tf.ensure_shape(documents, [None, None])  # unchecked before
        message = "`documents` must have a list for each query."
        with tf.control_dependencies([tf.debugging.assert_equal(tf.size(query), tf.shape(documents)[0], message)]):
            query = tf.identity(query)
        ids = inputs.from_tokens(tokenize(query), tokenize(tf.reshape(documents, [-1])), tf.shape(documents))
        return {"scores": model(ids, training=False)}

    signature = tf.function(score, autograph=False).get_concrete_function(
        tf.TensorSpec([None], tf.string, name="query"), tf.TensorSpec([None, None], tf.string, name="documents")
    )
    signatures = {"serving_default": signature}
    if isinstance(model, SingleVector) and isinstance(inputs, LateInputs):
        for name, role in (("queries", "query"), ("documents", "document")):
            signatures[name] = _vector_signature(model, inputs, role)

    def write(folder: Path, number: int) -> None:
        tf.saved_model.save(module, os.fspath(folder), signatures=signatures)
        described = {"class": type(model).__name__, "version": number, "parameters": model.count_params()}
        versions.write_card(folder, card, model=described)

    return versions.publish(path, version, write)


def _vector_signature(model: SingleVector, inputs: LateInputs, role: str) -> Any:
    """Returns a function of strings to the vectors of queries or documents."""

    def vectors(texts: tf.Tensor) -> dict[str, tf.Tensor]:
        tokens = model.encoder.tokenize(tf.ensure_shape(texts, [None]))
        return {"vectors": model.vectors(inputs.of_texts(role, tokens))[:, 0]}

    return tf.function(vectors, autograph=False).get_concrete_function(tf.TensorSpec([None], tf.string, name="texts"))
