"""Keras ranking losses, and all losses by name."""

from tfr_smooth._lists import list_weights
from tfr_smooth.losses.distillation import ADRMSELoss, CoupledRankDistilLoss
from tfr_smooth.losses.gumbel import GumbelApproxNDCGLoss, GumbelLoss, YetiLogisticLoss
from tfr_smooth.losses.lambda_loss import LambdaLoss
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
from tfr_smooth.losses.list_ap import ListAPLoss
from tfr_smooth.losses.list_mle import ListMLELoss
from tfr_smooth.losses.multi_score import ClickEMLoss, DualLearningLoss, MixtureEMLoss, OrdinalLoss
from tfr_smooth.losses.pairwise import (
    PairwiseHingeLoss,
    PairwiseLogisticLoss,
    PairwiseMSELoss,
    PairwiseSoftZeroOneLoss,
    RankNetLoss,
)
from tfr_smooth.losses.pointwise import MeanSquaredLoss, RegressionCompatibleLoss, SigmoidCrossEntropyLoss
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
from tfr_smooth.losses.softmax import CalibratedSoftmaxLoss, ListNetLoss, SoftmaxAtKLoss, SoftmaxLoss, UniqueSoftmaxLoss
from tfr_smooth.losses.table import NAMES, RankingLossKey, deserialize, get, hyperparameters, serialize
from tfr_smooth.losses.weighted_sum import MultiObjectiveLoss, WeightedSumLoss

__all__ = [
    "NAMES",
    "ADRMSELoss",
    "ApproxMRRLoss",
    "ApproxNDCGLoss",
    "CalibratedSoftmaxLoss",
    "ClickEMLoss",
    "CoupledRankDistilLoss",
    "DCGLambdaWeight",
    "DCGLambdaWeightV2",
    "DualLearningLoss",
    "GumbelApproxNDCGLoss",
    "GumbelLoss",
    "LabelDiffLambdaWeight",
    "LambdaLoss",
    "LambdaWeight",
    "ListAPLoss",
    "ListMLELambdaWeight",
    "ListMLELoss",
    "ListNetLoss",
    "MeanSquaredLoss",
    "MeasureLoss",
    "MixtureEMLoss",
    "MultiObjectiveLoss",
    "NDCGLambdaWeight",
    "NDCGLambdaWeightV2",
    "OrdinalLoss",
    "PairwiseHingeLoss",
    "PairwiseLogisticLoss",
    "PairwiseMSELoss",
    "PairwiseSoftZeroOneLoss",
    "PrecisionLambdaWeight",
    "RankNetLoss",
    "RankingLoss",
    "RankingLossKey",
    "RegressionCompatibleLoss",
    "SigmoidCrossEntropyLoss",
    "SmoothIMAPLoss",
    "SmoothINDCGLoss",
    "SmoothIPrecisionLoss",
    "SoftNDCGLoss",
    "SoftmaxAtKLoss",
    "SoftmaxLoss",
    "UniqueSoftmaxLoss",
    "WeightedSumLoss",
    "YetiDCGLambdaWeight",
    "YetiLogisticLoss",
    "deserialize",
    "get",
    "hyperparameters",
    "list_weights",
    "serialize",
]
