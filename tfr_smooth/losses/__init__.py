"""Keras ranking losses, and a table of all losses by name."""

from tfr_smooth._lists import list_weights
from tfr_smooth.losses import measure_losses
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
from tfr_smooth.losses.loss_table import (
    MULTI_SCORE,
    NAMES,
    TABLE,
    Entry,
    RankingLossKey,
    deserialize,
    get,
    hyperparameters,
    serialize,
)
from tfr_smooth.losses.measure_losses import *  # noqa: F403
from tfr_smooth.losses.mixture_em import MixtureEMLoss
from tfr_smooth.losses.multi_objective import MultiObjectiveLoss
from tfr_smooth.losses.ordinal import OrdinalLoss
from tfr_smooth.losses.ranking_loss import MeasureLoss, RankingLoss
from tfr_smooth.losses.weighted_sum import WeightedSumLoss

__all__ = [
    "BASELINES",
    "MULTI_SCORE",
    "NAMES",
    "TABLE",
    "ClickEMLoss",
    "DualLearningLoss",
    "DCGLambdaWeight",
    "DCGLambdaWeightV2",
    "Entry",
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
    "WeightedSumLoss",
    "YetiDCGLambdaWeight",
    "deserialize",
    "get",
    "hyperparameters",
    "list_weights",
    "serialize",
]
__all__ += [*(loss.__name__ for loss in BASELINES), *measure_losses.__all__]
