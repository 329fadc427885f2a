"""The losses that are not measures of a ranking. To add one, import its class here and add it to `BASELINES`."""

from tfr_smooth.losses.adr_mse import ADRMSELoss as ADRMSELoss
from tfr_smooth.losses.calibrated_softmax import CalibratedSoftmaxLoss as CalibratedSoftmaxLoss
from tfr_smooth.losses.coupled_rankdistil import CoupledRankDistilLoss as CoupledRankDistilLoss
from tfr_smooth.losses.gumbel_approx_ndcg import GumbelApproxNDCGLoss as GumbelApproxNDCGLoss
from tfr_smooth.losses.lambda_loss import LambdaLoss as LambdaLoss
from tfr_smooth.losses.list_ap import ListAPLoss as ListAPLoss
from tfr_smooth.losses.list_mle import ListMLELoss as ListMLELoss
from tfr_smooth.losses.list_net import ListNetLoss as ListNetLoss
from tfr_smooth.losses.mean_squared import MeanSquaredLoss as MeanSquaredLoss
from tfr_smooth.losses.pairwise_hinge import PairwiseHingeLoss as PairwiseHingeLoss
from tfr_smooth.losses.pairwise_logistic import PairwiseLogisticLoss as PairwiseLogisticLoss
from tfr_smooth.losses.pairwise_mse import PairwiseMSELoss as PairwiseMSELoss
from tfr_smooth.losses.pairwise_soft_zero_one import PairwiseSoftZeroOneLoss as PairwiseSoftZeroOneLoss
from tfr_smooth.losses.rank_net import RankNetLoss as RankNetLoss
from tfr_smooth.losses.ranking_loss import RankingLoss
from tfr_smooth.losses.regression_compatible import RegressionCompatibleLoss as RegressionCompatibleLoss
from tfr_smooth.losses.sigmoid_cross_entropy import SigmoidCrossEntropyLoss as SigmoidCrossEntropyLoss
from tfr_smooth.losses.softmax import SoftmaxLoss as SoftmaxLoss
from tfr_smooth.losses.softmax_at_k import SoftmaxAtKLoss as SoftmaxAtKLoss
from tfr_smooth.losses.unique_softmax import UniqueSoftmaxLoss as UniqueSoftmaxLoss
from tfr_smooth.losses.yeti_logistic import YetiLogisticLoss as YetiLogisticLoss

BASELINES: tuple[type[RankingLoss], ...] = (
    ADRMSELoss,
    CalibratedSoftmaxLoss,
    CoupledRankDistilLoss,
    GumbelApproxNDCGLoss,
    ListAPLoss,
    LambdaLoss,
    ListMLELoss,
    ListNetLoss,
    MeanSquaredLoss,
    PairwiseHingeLoss,
    PairwiseLogisticLoss,
    PairwiseMSELoss,
    PairwiseSoftZeroOneLoss,
    RankNetLoss,
    RegressionCompatibleLoss,
    SigmoidCrossEntropyLoss,
    SoftmaxAtKLoss,
    SoftmaxLoss,
    UniqueSoftmaxLoss,
    YetiLogisticLoss,
)
