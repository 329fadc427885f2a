"""Keras ranking losses, and all losses by name."""

from tfr_smooth._padded import list_weights
from tfr_smooth.losses.distillation import ADRMSELoss as ADRMSELoss
from tfr_smooth.losses.distillation import CoupledRankDistilLoss as CoupledRankDistilLoss
from tfr_smooth.losses.gumbel import GumbelApproxNDCGLoss as GumbelApproxNDCGLoss
from tfr_smooth.losses.gumbel import GumbelLoss, PLRankLoss
from tfr_smooth.losses.gumbel import PLRankNDCGLoss as PLRankNDCGLoss
from tfr_smooth.losses.gumbel import XENDCGLoss as XENDCGLoss
from tfr_smooth.losses.gumbel import YetiLogisticLoss as YetiLogisticLoss
from tfr_smooth.losses.lambda_loss import LambdaLoss as LambdaLoss
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
from tfr_smooth.losses.listwise import ListAPLoss as ListAPLoss
from tfr_smooth.losses.listwise import ListMLELoss as ListMLELoss
from tfr_smooth.losses.pairwise import PairwiseHingeLoss as PairwiseHingeLoss
from tfr_smooth.losses.pairwise import PairwiseLogisticLoss as PairwiseLogisticLoss
from tfr_smooth.losses.pairwise import PairwiseMSELoss as PairwiseMSELoss
from tfr_smooth.losses.pairwise import PairwiseQRLoss as PairwiseQRLoss
from tfr_smooth.losses.pairwise import PairwiseSoftZeroOneLoss as PairwiseSoftZeroOneLoss
from tfr_smooth.losses.pairwise import RankNetLoss as RankNetLoss
from tfr_smooth.losses.pointwise import ClickEMLoss as ClickEMLoss
from tfr_smooth.losses.pointwise import DualLearningLoss as DualLearningLoss
from tfr_smooth.losses.pointwise import MeanSquaredLoss as MeanSquaredLoss
from tfr_smooth.losses.pointwise import MixtureEMLoss as MixtureEMLoss
from tfr_smooth.losses.pointwise import OrdinalLoss as OrdinalLoss
from tfr_smooth.losses.pointwise import RegressionCompatibleLoss as RegressionCompatibleLoss
from tfr_smooth.losses.pointwise import SigmoidCrossEntropyLoss as SigmoidCrossEntropyLoss
from tfr_smooth.losses.ranking_loss import LOSSES, RankingLoss
from tfr_smooth.losses.smooth import ApproxMRRLoss as ApproxMRRLoss
from tfr_smooth.losses.smooth import ApproxNDCGLoss as ApproxNDCGLoss
from tfr_smooth.losses.smooth import MeasureLoss
from tfr_smooth.losses.smooth import SmoothIMAPLoss as SmoothIMAPLoss
from tfr_smooth.losses.smooth import SmoothINDCGLoss as SmoothINDCGLoss
from tfr_smooth.losses.smooth import SmoothIPrecisionLoss as SmoothIPrecisionLoss
from tfr_smooth.losses.smooth import SoftNDCGLoss as SoftNDCGLoss
from tfr_smooth.losses.softmax import BSLLoss as BSLLoss
from tfr_smooth.losses.softmax import CalibratedSoftmaxLoss as CalibratedSoftmaxLoss
from tfr_smooth.losses.softmax import ListNetLoss as ListNetLoss
from tfr_smooth.losses.softmax import Poly1SoftmaxLoss as Poly1SoftmaxLoss
from tfr_smooth.losses.softmax import PSLLoss as PSLLoss
from tfr_smooth.losses.softmax import SoftmaxAtKLoss as SoftmaxAtKLoss
from tfr_smooth.losses.softmax import SoftmaxLoss as SoftmaxLoss
from tfr_smooth.losses.softmax import UniqueSoftmaxLoss as UniqueSoftmaxLoss
from tfr_smooth.losses.table import MultiObjectiveLoss, RankingLossKey, WeightedSumLoss, get, hyperparameters
from tfr_smooth.losses.table import names as _names

NAMES: tuple[str, ...] = _names()

__all__ = [
    "LOSSES",
    "NAMES",
    "DCGLambdaWeight",
    "DCGLambdaWeightV2",
    "GumbelLoss",
    "LabelDiffLambdaWeight",
    "LambdaWeight",
    "ListMLELambdaWeight",
    "MeasureLoss",
    "MultiObjectiveLoss",
    "NDCGLambdaWeight",
    "NDCGLambdaWeightV2",
    "PLRankLoss",
    "PrecisionLambdaWeight",
    "RankingLoss",
    "RankingLossKey",
    "WeightedSumLoss",
    "YetiDCGLambdaWeight",
    "get",
    "hyperparameters",
    "list_weights",
]
__all__ += [loss.__name__ for loss in LOSSES.values()]
