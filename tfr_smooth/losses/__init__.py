"""Keras ranking losses, and all losses by name."""

from tfr_smooth._lists import list_weights
from tfr_smooth.losses.baselines import *  # noqa: F403
from tfr_smooth.losses.baselines import BASELINES
from tfr_smooth.losses.click_em import ClickEMLoss
from tfr_smooth.losses.dual_learning import DualLearningLoss
from tfr_smooth.losses.gumbel import GumbelLoss
from tfr_smooth.losses.lambda_weights import (
    DCGLambdaWeight,
    DCGLambdaWeightV2,
    LabelDiffLambdaWeight,
    LambdaWeight,
    ListMLELambdaWeight,
    NDCGLambdaWeight,
    NDCGLambdaWeightV2,
    PrecisionLambdaWeight,
    YetiDCGLambdaWeight,
)
from tfr_smooth.losses.mixture_em import MixtureEMLoss
from tfr_smooth.losses.multi_objective import MultiObjectiveLoss
from tfr_smooth.losses.ordinal import OrdinalLoss
from tfr_smooth.losses.ranking_loss import RankingLoss
from tfr_smooth.losses.smooth import (
    ApproxMRRLoss,
    ApproxNDCGLoss,
    MeasureLoss,
    SmoothIMAPLoss,
    SmoothINDCGLoss,
    SmoothIPrecisionLoss,
    SoftNDCGLoss,
)
from tfr_smooth.losses.table import NAMES, RankingLossKey, deserialize, get, hyperparameters, serialize
from tfr_smooth.losses.weighted_sum import WeightedSumLoss

__all__ = [
    "NAMES",
    "ApproxMRRLoss",
    "ApproxNDCGLoss",
    "ClickEMLoss",
    "DCGLambdaWeight",
    "DCGLambdaWeightV2",
    "DualLearningLoss",
    "GumbelLoss",
    "LabelDiffLambdaWeight",
    "LambdaWeight",
    "ListMLELambdaWeight",
    "MeasureLoss",
    "MixtureEMLoss",
    "MultiObjectiveLoss",
    "NDCGLambdaWeight",
    "NDCGLambdaWeightV2",
    "OrdinalLoss",
    "PrecisionLambdaWeight",
    "RankingLoss",
    "RankingLossKey",
    "SmoothIMAPLoss",
    "SmoothINDCGLoss",
    "SmoothIPrecisionLoss",
    "SoftNDCGLoss",
    "WeightedSumLoss",
    "YetiDCGLambdaWeight",
    "deserialize",
    "get",
    "hyperparameters",
    "list_weights",
    "serialize",
]
__all__ += [loss.__name__ for loss in BASELINES.values()]
