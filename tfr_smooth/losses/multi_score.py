"""Base class of losses of models with several scores per document."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfr_smooth import _lists, _serialization
from tfr_smooth.losses.ranking_loss import RankingLoss


class MultiScoreLoss(RankingLoss):
    """Base class of losses of scores [batch, list, scores]; `compute` gets scores of this shape.

    NaN in any score of a real document makes the loss of its list NaN.
    """

    # The number of scores per document; None for any number.
    num_scores: int | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Registers the subclasses with Keras."""
        super().__init_subclass__(**kwargs)
        tf.keras.utils.register_keras_serializable(package=_serialization.PACKAGE)(cls)

    def _clean(self, y_true: Any, y_pred: Any) -> _lists.Batch:
        if not isinstance(y_pred, tf.RaggedTensor):
            y_pred = tf.convert_to_tensor(y_pred)
        expected = "scores" if self.num_scores is None else str(self.num_scores)
        count = y_pred.shape[2] if y_pred.shape.rank == 3 else None
        if count is None or count < 1 or self.num_scores not in (None, count):
            raise ValueError(f"`scores` must have the shape [batch, list, {expected}], got {y_pred.shape}.")
        return _lists.from_keras(y_true, y_pred, ragged=self.ragged, dtype=self._computed_in, clean=_clean_each)


def _clean_each(labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None) -> _lists.Batch:
    """Returns clean lists with scores [batch, list, scores]."""
    batches = [_lists.clean(labels, each, mask) for each in tf.unstack(scores, axis=2)]
    validity = tf.reduce_prod(tf.stack([batch.validity for batch in batches]), axis=0)
    return batches[0]._replace(scores=tf.stack([batch.scores for batch in batches], axis=2), validity=validity)
