"""Export of a ranker as a SavedModel that loads with TensorFlow alone."""

from __future__ import annotations

import os
import shutil

import tensorflow as tf

from tfr_smooth import _arguments, _keras


class _Servable(tf.Module):
    """What is exported: the model behind a function of tensors, without Keras."""

    def __init__(self, model: tf.keras.Model, num_features: int) -> None:
        super().__init__()
        self.model_variables = _keras.tensorflow_variables(model.variables)

        def rank(features: tf.Tensor, mask: tf.Tensor = tf.constant([[True]])) -> dict[str, tf.Tensor]:  # noqa: B008
            mask = tf.logical_and(mask, tf.ones(tf.shape(features)[:2], tf.bool))
            return {"scores": model({"features": features, "mask": mask}, training=False)}

        self.rank = tf.function(
            rank,
            input_signature=[
                tf.TensorSpec([None, None, num_features], tf.float32, name="features"),
                tf.TensorSpec([None, None], tf.bool, name="mask"),
            ],
        )


def export_ranker(model: tf.keras.Model, path: str | os.PathLike[str], *, num_features: int) -> None:
    """Writes a ranker as a SavedModel with a signature of raw tensors.

    The signature `serving_default` takes `features` float32 [batch, list, num_features] and `mask` bool [batch, list],
    and returns `scores` float32 [batch, list]. The signature has a default for `mask`, "all documents are real": TF
    Serving, the C++ loader and `saved_model_cli` may leave it out, and so may Python in `loaded.rank(features)` for
    `loaded = tf.saved_model.load(path)`. (Only Python's own `loaded.signatures["serving_default"]` asks for every
    input; `mask=tf.constant([[True]])` will do.) The scores of padded places are `models.PADDING_SCORE`. Needed to
    load it: TensorFlow, not this package.

    The folder appears whole: it is written under another name and then renamed. An export that was there is replaced.

    Args:
      model: A model that takes a dict of `features` and `mask`, such as `models.FeedForwardScorer`.
      path: The folder to write.
      num_features: The width of the features, >= 1.

    Raises:
      ValueError: If `num_features` is not an integer >= 1.

    Example:
      >>> import os, tempfile
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> path = os.path.join(tempfile.mkdtemp(), "export")
      >>> tfr_smooth.serving.export_ranker(tfr_smooth.models.FeedForwardScorer(hidden=[4]), path, num_features=3)
      >>> loaded = tf.saved_model.load(path)
      >>> loaded.rank(tf.ones([1, 2, 3]))["scores"].shape
      TensorShape([1, 2])
    """
    num_features = _arguments.integer("num_features", num_features, least=1)
    model({"features": tf.zeros([1, 1, num_features]), "mask": tf.ones([1, 1], tf.bool)}, training=False)
    servable = _Servable(model, num_features)
    path = os.path.abspath(os.fspath(path))
    unfinished, replaced = path + ".unfinished", path + ".replaced"
    shutil.rmtree(unfinished, ignore_errors=True)
    tf.saved_model.save(servable, unfinished, signatures={"serving_default": servable.rank})
    shutil.rmtree(replaced, ignore_errors=True)
    if os.path.exists(path):
        os.rename(path, replaced)
    os.rename(unfinished, path)
    shutil.rmtree(replaced, ignore_errors=True)
