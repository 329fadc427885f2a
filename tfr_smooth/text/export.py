"""Export of a reranker as a SavedModel."""

from __future__ import annotations

import os
from pathlib import Path

import tensorflow as tf

from tfr_smooth import _extras, _keras
from tfr_smooth.serving import versions
from tfr_smooth.text.inputs import Inputs
from tfr_smooth.text.rerankers import Reranker
from tfr_smooth.text.tokenizer import Tokenizer


def export_reranker(
    model: Reranker,
    tokenizer: Tokenizer,
    path: str | os.PathLike[str],
    *,
    inputs: Inputs,
    texts: bool = True,
    version: int | None = None,
) -> Path:
    """Writes a reranker as PATH/VERSION, a SavedModel that TF Serving finds.

    The signatures return `scores` [batch, list] float32:

    - `serving_default`, if `texts`: `query` [batch] and `documents` [batch, list], strings, a document with its title
      before its text. "" pads a list: its score means nothing.
    - `ids`: what the model takes, such as `query_ids` and `document_ids`; without `texts` also `serving_default`.

    To load the signature of texts, `tensorflow_text` must be imported before; TF Serving has it built in.

    Args:
      model: The reranker.
      tokenizer: Its tokenizer.
      path: The folder of the versions, on this machine.
      inputs: The inputs that it was trained with, which have the lengths.
      texts: Whether to write the signature of texts, which needs the package tensorflow-text.
      version: Its number, >= 1; None for the one after the last.

    Returns:
      The folder PATH/VERSION.

    Raises:
      ValueError: If the version is there already.
      ImportError: If `texts` and tensorflow-text is not installed.
    """
    if texts:
        with _extras.needed("tensorflow-text", extra="text", by="`export_reranker` with `texts`"):
            import tensorflow_text
    module = tf.Module()
    # The variables alone: Keras would save all of the model's own functions with it.
    module.model_variables = _keras.tensorflow_variables(model.variables)

    def score(**ids: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"scores": model(ids, training=False)}

    module.ids = tf.function(score, autograph=False).get_concrete_function(**inputs.signature())
    signatures = {"serving_default": module.ids, "ids": module.ids}
    if texts:
        module.tokenizer = tensorflow_text.FastBertTokenizer(
            tokenizer.vocabulary, lower_case_nfd_strip_accents=tokenizer.lowercase, token_out_type=tf.int32
        )

        def score_texts(query: tf.Tensor, documents: tf.Tensor) -> dict[str, tf.Tensor]:
            tokenize, flat = module.tokenizer.tokenize, tf.reshape(documents, [-1])
            ids = inputs.from_tokens(tokenize(query), tokenize(flat), tf.shape(documents))
            return {"scores": model(ids, training=False)}

        module.texts = tf.function(score_texts, autograph=False).get_concrete_function(
            tf.TensorSpec([None], tf.string, name="query"), tf.TensorSpec([None, None], tf.string, name="documents")
        )
        signatures["serving_default"] = module.texts

    def write(folder: Path, number: int) -> None:
        tf.saved_model.save(module, os.fspath(folder), signatures=signatures)

    return versions.publish(path, version, write)
