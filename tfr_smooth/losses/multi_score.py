"""Base class of losses of models with several scores per document."""

from __future__ import annotations

from collections.abc import Mapping
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
        keras_mask = getattr(y_pred, "_keras_mask", None)
        if keras_mask is not None:
            labels = y_true if isinstance(y_true, Mapping) else {"labels": y_true}
            keras_mask = tf.cast(tf.convert_to_tensor(keras_mask), tf.bool)
            if "mask" in labels:
                keras_mask = tf.logical_and(keras_mask, tf.cast(_lists.squeezed(labels["mask"]), tf.bool))
            y_true = {**labels, "mask": keras_mask}
        batches = [super(MultiScoreLoss, self)._clean(y_true, y_pred[:, :, place]) for place in range(count)]
        scores = tf.stack([batch.scores for batch in batches], axis=2)
        validity = tf.reduce_prod(tf.stack([batch.validity for batch in batches]), axis=0)
        return batches[0]._replace(scores=scores, validity=validity)
