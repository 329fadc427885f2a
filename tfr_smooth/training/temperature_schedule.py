"""A schedule for the temperature of a loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments


class TemperatureSchedule(tf.keras.callbacks.Callback):
    """Sets the temperature of a loss before each epoch.

    The temperature is a `tf.Variable` that is passed to the loss and to smooth metrics. The compiled training step
    reads it, so a new value requires no retracing. The value depends only on the epoch: a resumed training run only
    needs the correct `initial_epoch` of `fit`.

    Smooth metrics at different temperatures are not comparable: select the best epoch by an exact metric.

    Args:
      variable: The temperature: a scalar float variable with `trainable=False` and a value > 0.
      schedule: A function from the epoch, counted from 0, to the temperature, > 0; for example a Keras
        `LearningRateSchedule`, whose steps are then epochs.
      name: The name of the temperature in the epoch's logs.

    Raises:
      ValueError: If `variable` is not such a variable, or the schedule returns a value that is not a finite number > 0.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> dataset = tf.data.Dataset.from_tensors((tf.random.normal([4, 3, 2]), tf.tile([[1.0, 0.0, 0.0]], [4, 1])))
      >>> alpha = tf.Variable(1.0, trainable=False)
      >>> model = tfr_smooth.models.FeedForwardScorer(hidden=[4])
      >>> model.compile(optimizer="adam", loss=tfr_smooth.losses.SmoothINDCGLoss(alpha=alpha))
      >>> schedule = tfr_smooth.training.TemperatureSchedule(alpha, lambda epoch: 2.0**epoch, name="alpha")
      >>> model.fit(dataset, epochs=3, verbose=0, callbacks=[schedule]).history["alpha"]
      [1.0, 2.0, 4.0]
    """

    def __init__(self, variable: tf.Variable, schedule: Callable[[int], float], *, name: str = "temperature") -> None:
        super().__init__()
        _arguments.temperature("variable", _arguments.instance("variable", variable, tf.Variable))
        self._variable = variable
        if not callable(schedule):
            raise ValueError(f"`schedule` must be a function of the epoch, got {schedule!r}.")
        self._schedule = schedule
        self._name = name

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras: sets the temperature."""
        self._variable.assign(_arguments.real(f"schedule({epoch})", float(self._schedule(epoch)), above=0.0))

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras: adds the temperature to the logs."""
        if logs is not None:
            logs[self._name] = float(tf.convert_to_tensor(self._variable))
