"""The mean of a loss over scores with random noise, which samples rankings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfr_smooth import _arguments, _lists, _lookup, _serialization
from tfr_smooth.losses.ranking_loss import LossOptions, RankingLoss

if TYPE_CHECKING:
    from typing_extensions import Unpack


class SampledLoss(RankingLoss):
    """Base class of means of a loss over scores with Gumbel noise; see `GumbelLoss`."""

    def __init__(
        self,
        loss: RankingLoss,
        *,
        sample_size: int,
        gumbel_temperature: float,
        seed: int | None,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(**options)
        self.loss = _arguments.instance("loss", loss, RankingLoss)
        self.sample_size = _arguments.integer("sample_size", sample_size, least=1)
        self.gumbel_temperature = _arguments.real("gumbel_temperature", gumbel_temperature, above=0.0)
        self.seed = _arguments.integer_or_none("seed", seed, least=0)

    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] from clean lists."""
        limit = scores.dtype.max / 8.0 * min(self.gumbel_temperature, 1.0)  # avoids overflow
        noise = gumbel_noise(labels, self.sample_size, self.seed)
        noisy = (tf.clip_by_value(scores, -limit, limit)[:, tf.newaxis] + noise) / self.gumbel_temperature
        shape = tf.shape(noisy)
        noisy = tf.reshape(noisy, [-1, shape[2]])
        labels, mask = (tf.repeat(tensor, self.sample_size, axis=0) for tensor in (labels, mask))
        values = self.loss.compute(labels, _lists.fill(noisy, mask, 0.0), mask)
        return tf.reduce_mean(tf.reshape(values, shape[:2]), axis=1)

    def counts(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns [batch] bool: False for lists that the loss excludes."""
        return self.loss.counts(labels, mask)


@tf.keras.utils.register_keras_serializable(package=_serialization.PACKAGE)
class GumbelLoss(SampledLoss):
    r"""Mean of a loss over scores with Gumbel noise: $\frac{1}{S} \sum_{a=1}^S L(y, (s + \epsilon^a) / \beta)$.

    (Bruch et al., "A Stochastic Treatment of Learning to Rank Scoring Functions", WSDM 2020.) The
    $\epsilon^a$ are independent samples of the standard Gumbel distribution, drawn at each call, so the orders of the
    noisy scores are samples of the Plackett-Luce distribution of the scores. The gradient is that of the sampled
    losses. The lists that the loss excludes are excluded.

    Call with labels [batch, list] (float or int, >= 0; negative labels mark padding) and scores [batch, list]. Returns
    a scalar, or [batch] for the reduction "none".

    Args:
      loss: A ranking loss. Its own `dtype`, `ragged` and `reduction` are not used.
      sample_size: The number of samples S, >= 1.
      gumbel_temperature: $\beta$, the divisor of the noisy scores, > 0.
      seed: Seed of the noise, >= 0, as in `tf.random.uniform`: a program draws the same sequence each time it runs.
        None draws different ones, unless `tf.random.set_seed` is called.
      **options: `dtype`, `ragged`, `name` and `reduction`; see `RankingLoss`.

    Raises:
      ValueError: If an argument is invalid.

    Time and memory are S times those of the loss.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import losses
      >>> loss = losses.GumbelLoss(losses.SmoothINDCGLoss(), sample_size=4, seed=1)
      >>> value = loss(tf.constant([[1.0, 0.0, 0.0]]), tf.constant([[2.0, 1.0, 0.0]]))
      >>> 0.0 < float(value) < 1.0
      True
    """

    def __init__(
        self,
        loss: RankingLoss,
        *,
        sample_size: int = 8,
        gumbel_temperature: float = 1.0,
        seed: int | None = None,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(loss, sample_size=sample_size, gumbel_temperature=gumbel_temperature, seed=seed, **options)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {"loss": _lookup.serialize(self.loss), **super().get_config()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> GumbelLoss:
        """Creates the loss from the result of `get_config`."""
        return cls(**{**config, "loss": _lookup.deserialize(config["loss"], RankingLoss)})


def gumbel_noise(like: tf.Tensor, sample_size: int, seed: int | None) -> tf.Tensor:
    """Returns standard Gumbel noise, [batch, samples, list], for a tensor [batch, list], in its type."""
    batch, length = tf.unstack(tf.shape(like))
    # Not from 0, where the logarithm is infinite.
    uniform = tf.random.uniform([batch, sample_size, length], 1e-30, 1.0, like.dtype, seed)
    return -tf.math.log(-tf.math.log(uniform))
