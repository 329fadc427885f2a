"""Training that starts on the softmax loss, with a learning rate that decays to 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _serialization, losses


class _SoftmaxOfWeighted(losses.SoftmaxLoss):
    """The softmax loss without the documents of weight 0, which would be pushed down, whatever their labels."""

    def weighted(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        return super().weighted(labels, scores, tf.logical_and(mask, weights != 0.0), weights)


@_serialization.register
class SoftmaxFirstLoss(losses.RankingLoss):
    """The softmax loss in the first epochs, then another loss; `SoftmaxFirst` switches.

    Softmax quickly finds a good ranking, and the metric's loss then improves its top. The training step contains both,
    so the switch requires no retracing.

    Weights multiply what they multiply in the current loss: on softmax, the terms of the documents. Documents of weight
    0 are no part of the softmax, so that their labels, right or wrong, do not matter in these epochs. (In `SoftmaxLoss`
    and TF-Ranking, they are still pushed down by the relevant ones.)

    Args:
      loss: The other loss, of one score per document.
      is_first: Whether softmax is the current loss.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> loss = tfr_smooth.training.SoftmaxFirstLoss(tfr_smooth.losses.SmoothINDCGLoss())
      >>> first = float(loss([[1.0, 0.0]], [[0.0, 0.0]]))
      >>> _ = loss.is_first.assign(False)
      >>> round(first, 3), round(float(loss([[1.0, 0.0]], [[0.0, 0.0]])), 3)
      (0.693, 0.324)
    """

    def __init__(self, loss: losses.RankingLoss, *, is_first: bool = True) -> None:
        _arguments.instance("loss", loss, losses.RankingLoss)
        super().__init__(dtype=loss.dtype, ragged=loss.ragged, reduction=loss.reduction, name=loss.name)
        self.first, self.loss = _SoftmaxOfWeighted(), loss
        self.highest_label, self.shift_invariant = loss.highest_label, loss.shift_invariant
        with tf.init_scope():  # Keras describes losses, by their configs, while it traces a step.
            self.is_first = tf.Variable(_arguments.boolean("is_first", is_first), trainable=False, name="is_first")

    def weighted(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists, with the weights as the current loss takes them."""

        # TensorFlow logs errors of its type inference about the gradient of a `tf.cond`, so each branch has its own.
        @tf.custom_gradient
        def by_list(scores: tf.Tensor) -> tuple[tf.Tensor, Any]:
            def value_and_gradient(loss: losses.RankingLoss) -> tuple[tf.Tensor, tf.Tensor]:
                with tf.GradientTape() as tape:
                    tape.watch(scores)
                    values = loss.weighted(labels, scores, mask, weights)
                return values, tape.gradient(values, scores)

            values, gradient = self._by_stage(value_and_gradient)
            return values, lambda upstream: upstream[:, tf.newaxis] * gradient

        return by_list(scores)

    def weight_shares(self, weights: tf.Tensor, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch], what a list adds to the divisor of the current loss."""
        return self._by_stage(lambda loss: loss.weight_shares(weights, labels, mask))

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool, False for lists that the current loss excludes."""
        return self._by_stage(lambda loss: loss.counts(labels, mask))

    def _by_stage(self, function: Callable[[losses.RankingLoss], Any]) -> Any:
        return tf.cond(self.is_first, lambda: function(self.first), lambda: function(self.loss))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, with the current stage."""
        with tf.init_scope():
            is_first = bool(self.is_first.numpy())
        return {"loss": _serialization.serialize(self.loss), "is_first": is_first}


class SoftmaxFirst(tf.keras.callbacks.Callback):
    r"""Sets the learning rate of each epoch, and switches a `SoftmaxFirstLoss`.

    $$\mathrm{rate}(e) = \frac{\mathrm{rate}}{2} \Big(1 + \cos \frac{\pi e}{\mathrm{epochs}}\Big)$$

    in epoch e, from 0 on. Both depend only on the epoch: a resumed training run only needs the correct `initial_epoch`.
    Unless `fit` is silent, a line tells where the loss changes, because its values then do, too.

    Args:
      learning_rate: The rate of the first epoch, > 0.
      epochs: The number of epochs, >= 1.
      loss: The loss. None for none to switch.
      softmax_epochs: The number of epochs of its first loss, >= 0.
      constant: Whether all epochs have the same learning rate.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> dataset = tf.data.Dataset.from_tensors((tf.random.normal([4, 3, 2]), tf.tile([[1.0, 0.0, 0.0]], [4, 1])))
      >>> model = tfr_smooth.models.FeedForwardScorer(hidden=[4])
      >>> loss = tfr_smooth.training.SoftmaxFirstLoss(tfr_smooth.losses.SmoothINDCGLoss())
      >>> model.compile(optimizer="adam", loss=loss)
      >>> start = tfr_smooth.training.SoftmaxFirst(0.01, epochs=3, loss=loss, softmax_epochs=2)
      >>> _ = model.fit(dataset, epochs=3, verbose=0, callbacks=[start])
      >>> round(float(model.optimizer.learning_rate), 4), bool(loss.is_first)
      (0.0025, False)
    """

    def __init__(
        self,
        learning_rate: float,
        *,
        epochs: int,
        loss: SoftmaxFirstLoss | None = None,
        softmax_epochs: int = 0,
        constant: bool = False,
    ) -> None:
        super().__init__()
        self._rate = _arguments.real("learning_rate", learning_rate, above=0.0)
        self._epochs = _arguments.integer("epochs", epochs, least=1)
        self._softmax_epochs = _arguments.integer("softmax_epochs", softmax_epochs, least=0)
        self._constant = _arguments.boolean("constant", constant)
        self.loss = loss

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Called by Keras: sets the learning rate, and the loss."""
        share = 1.0 if self._constant else 0.5 * (1.0 + math.cos(math.pi * epoch / self._epochs))
        self.model.optimizer.learning_rate = self._rate * share
        if self.loss is not None:
            self.loss.is_first.assign(epoch < self._softmax_epochs)
            if self.params.get("verbose") and epoch == self._softmax_epochs > 0:
                print(f"From this epoch on, the loss is {self.loss.loss.name}; before, it was softmax", flush=True)


def softmax_first(
    loss: tf.keras.losses.Loss, softmax_epochs: float, *, learning_rate: float, epochs: int, constant: bool
) -> tuple[tf.keras.losses.Loss, SoftmaxFirst]:
    """Returns the loss of a training whose first epochs are on softmax, and the callback that switches it.

    Args:
      loss: The loss. If it is not one of `losses` or softmax itself, all epochs are on it.
      softmax_epochs: The number of the first epochs, or a fraction of all.
      learning_rate: As for `SoftmaxFirst`.
      epochs: The number of all epochs.
      constant: As for `SoftmaxFirst`.
    """
    number = softmax_epochs if isinstance(softmax_epochs, int) else round(softmax_epochs * epochs)
    switches = softmax_epochs and isinstance(loss, losses.RankingLoss) and type(loss) is not losses.SoftmaxLoss
    first = SoftmaxFirstLoss(loss) if switches else None
    options: dict[str, Any] = {"epochs": max(1, epochs), "softmax_epochs": number, "constant": constant}
    return first or loss, SoftmaxFirst(learning_rate, loss=first, **options)
