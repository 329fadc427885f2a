"""The namespace `tfr.keras.losses`: all names of `tfr_smooth.losses`, and `get` with TF-Ranking's arguments."""

from __future__ import annotations

from typing import Any

from tfr_smooth import _arguments, losses
from tfr_smooth.losses import *  # noqa: F403

__all__ = losses.__all__


def get(
    loss: str, reduction: str = "auto", lambda_weight: Any = None, name: str | None = None, **kwargs: Any
) -> losses.RankingLoss:
    """Creates a loss, with the arguments of TF-Ranking's `get`.

    Args:
      loss: A `RankingLossKey` ("softmax_loss"), or another name that `tfr_smooth.losses.get` takes ("smoothi_ndcg").
      reduction: "auto" or "sum_over_batch_size", "sum" or "none"; the values of `tf.losses.Reduction`.
      lambda_weight: A weight such as `NDCGLambdaWeight`, for losses that take one. None for none.
      name: Name of the loss. None uses its default.
      **kwargs: Further arguments of the loss, such as `ragged`. The losses of the Approx ranking take TF-Ranking's
        `temperature`, too: one over their `alpha`.

    Returns:
      The loss.

    Raises:
      ValueError: If the loss does not exist, or an argument is out of range.
      TypeError: If the loss has no such argument.

    Example:
      >>> from tfr_smooth import keras_ranking as tfr
      >>> tfr.keras.losses.get(tfr.keras.losses.RankingLossKey.APPROX_NDCG_LOSS, temperature=0.5).get_config()["alpha"]
      2.0
    """
    optional = {"lambda_weight": lambda_weight, "name": name}
    arguments = {**kwargs, **{key: value for key, value in optional.items() if value is not None}}
    if "temperature" in arguments and "approx_" in loss:
        arguments["alpha"] = 1.0 / _arguments.real("temperature", arguments.pop("temperature"), above=0.0)
    return losses.get(loss, reduction=reduction, **arguments)
