"""A callback that ends a training whose loss is no number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf


class StopOnNaN(tf.keras.callbacks.Callback):
    """Ends a training whose loss becomes NaN with an error that names the step and the features that are not finite.

    `train` uses it, and so do the estimators. Without it, all weights become NaN, and the training goes on.

    Args:
      dataset: The training data, finite, as passed to `fit`: the error names its features that have missing or infinite
        values in real documents. None names none.
      names: The names of the features. None calls them by their number, from 1.

    Raises:
      ValueError: In `fit`, at the first step after which the mean loss of the epoch is NaN.

    Time O(1) per step. Waits for the loss of each step, which costs less than a progress bar.

    Example:
      >>> import tfr_smooth
      >>> features, labels = tf.constant([[[0.5], [float("nan")]]]), tf.constant([[1.0, 0.0]])
      >>> dataset = tf.data.Dataset.from_tensors((features, labels))
      >>> model = tfr_smooth.models.FeedForwardScorer(hidden=[])
      >>> model.compile(optimizer="sgd", loss="softmax")
      >>> callback = tfr_smooth.training.StopOnNaN(dataset)
      >>> _ = model.fit(dataset, callbacks=[callback], shuffle=False, verbose=0)
      Traceback (most recent call last):
      ...
      ValueError: The loss is NaN since step 1 of epoch 1. Features with missing or infinite values: 1.
    """

    def __init__(self, dataset: tf.data.Dataset | None = None, *, names: Sequence[str] | None = None) -> None:
        super().__init__()
        self.dataset, self.names = dataset, names
        self._epoch = 0

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Takes the number of the epoch."""
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Checks the loss."""
        if not math.isnan(float((logs or {}).get("loss", 0.0))):
            return
        message = f"The loss is NaN since step {batch + 1} of epoch {self._epoch + 1}."
        if wrong := self._not_finite():
            raise ValueError(f"{message} Features with missing or infinite values: {', '.join(wrong)}.")
        raise ValueError(f"{message} The features are finite: try a lower learning rate, or check labels and weights.")

    def _not_finite(self) -> list[str]:
        """Returns the names of the features that are not finite in real documents."""
        wrong: Any = False
        for element in self.dataset or ():
            inputs = element[0] if isinstance(element, (tuple, list)) else element
            inputs = inputs if isinstance(inputs, Mapping) else {"features": inputs}
            if "features" not in inputs:
                return []
            mask = inputs.get("mask")
            mask = np.ones(inputs["features"].shape[:-1], bool) if mask is None else np.asarray(mask, bool)
            wrong = wrong | ~np.isfinite(np.asarray(inputs["features"])[mask]).all(axis=0)
        places = np.flatnonzero(wrong)
        return [str(place + 1) if self.names is None else repr(self.names[place]) for place in places.tolist()]
