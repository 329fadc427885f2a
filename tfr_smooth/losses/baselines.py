"""The losses that are not measures of a ranking. To add one, import its class here and add it to `BASELINES`."""

from tfr_smooth.losses.distillation import ADRMSELoss, CoupledRankDistilLoss
from tfr_smooth.losses.gumbel import GumbelApproxNDCGLoss, YetiLogisticLoss
from tfr_smooth.losses.lambda_loss import LambdaLoss
from tfr_smooth.losses.list_ap import ListAPLoss
from tfr_smooth.losses.list_mle import ListMLELoss
from tfr_smooth.losses.pairwise import (
    PairwiseHingeLoss,
    PairwiseLogisticLoss,
    PairwiseMSELoss,
    PairwiseSoftZeroOneLoss,
    RankNetLoss,
)
from tfr_smooth.losses.pointwise import MeanSquaredLoss, RegressionCompatibleLoss, SigmoidCrossEntropyLoss
from tfr_smooth.losses.ranking_loss import RankingLoss
from tfr_smooth.losses.softmax import CalibratedSoftmaxLoss, ListNetLoss, SoftmaxAtKLoss, SoftmaxLoss, UniqueSoftmaxLoss

# Name -> class.
BASELINES: dict[str, type[RankingLoss]] = {
    "adr_mse": ADRMSELoss,
    "calibrated_softmax": CalibratedSoftmaxLoss,
    "coupled_rankdistil": CoupledRankDistilLoss,
    "gumbel_approx_ndcg": GumbelApproxNDCGLoss,
    "list_ap": ListAPLoss,
    "lambda_loss": LambdaLoss,
    "list_mle": ListMLELoss,
    "list_net": ListNetLoss,
    "mean_squared": MeanSquaredLoss,
    "pairwise_hinge": PairwiseHingeLoss,
    "pairwise_logistic": PairwiseLogisticLoss,
    "pairwise_mse": PairwiseMSELoss,
    "pairwise_soft_zero_one": PairwiseSoftZeroOneLoss,
    "rank_net": RankNetLoss,
    "regression_compatible": RegressionCompatibleLoss,
    "sigmoid_cross_entropy": SigmoidCrossEntropyLoss,
    "softmax_at_k": SoftmaxAtKLoss,
    "softmax": SoftmaxLoss,
    "unique_softmax": UniqueSoftmaxLoss,
    "yeti_logistic": YetiLogisticLoss,
}
