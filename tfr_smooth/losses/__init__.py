"""Keras losses, and the table of them by name."""

from __future__ import annotations

from typing import Any

from tfr_smooth import _arguments
from tfr_smooth.losses.approx import ApproxMAPLoss, ApproxNDCGLoss, ApproxPrecisionLoss
from tfr_smooth.losses.base import MetricLoss, RankingLoss
from tfr_smooth.losses.lambda_loss import LambdaLoss
from tfr_smooth.losses.list_mle import ListMLELoss
from tfr_smooth.losses.list_net import ListNetLoss
from tfr_smooth.losses.mean_squared import MeanSquaredLoss
from tfr_smooth.losses.rank_net import RankNetLoss
from tfr_smooth.losses.smoothi import SmoothIMAPLoss, SmoothINDCGLoss, SmoothIPrecisionLoss
from tfr_smooth.losses.softrank import SoftNDCGLoss, SoftPrecisionLoss

# Name -> class, for flags and pipelines. What stands here is tested by every property test.
TABLE: dict[str, type[RankingLoss]] = {
    "smoothi_ndcg": SmoothINDCGLoss,
    "smoothi_precision": SmoothIPrecisionLoss,
    "smoothi_map": SmoothIMAPLoss,
    "approx_ndcg": ApproxNDCGLoss,
    "approx_precision": ApproxPrecisionLoss,
    "approx_map": ApproxMAPLoss,
    "soft_ndcg": SoftNDCGLoss,
    "soft_precision": SoftPrecisionLoss,
    "lambda_loss": LambdaLoss,
    "list_mle": ListMLELoss,
    "list_net": ListNetLoss,
    "mean_squared": MeanSquaredLoss,
    "rank_net": RankNetLoss,
}


def get(name: str, /, **kwargs: Any) -> RankingLoss:
    """Makes a loss by its name in `TABLE`.

    Args:
      name: A name in `TABLE`.
      **kwargs: The constructor's arguments.

    Returns:
      The loss.

    Raises:
      ValueError: If there is no such loss, or an argument is out of its range.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.losses.get("smoothi_ndcg", alpha=10.0).get_config()["alpha"]
      10.0
    """
    return TABLE[_arguments.choice("name", name, tuple(TABLE))](**kwargs)


__all__ = [
    "TABLE",
    "ApproxMAPLoss",
    "ApproxNDCGLoss",
    "ApproxPrecisionLoss",
    "LambdaLoss",
    "ListMLELoss",
    "ListNetLoss",
    "MeanSquaredLoss",
    "MetricLoss",
    "RankNetLoss",
    "RankingLoss",
    "SmoothIMAPLoss",
    "SmoothINDCGLoss",
    "SmoothIPrecisionLoss",
    "SoftNDCGLoss",
    "SoftPrecisionLoss",
    "get",
]
