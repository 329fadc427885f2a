"""The losses that are not measures of a ranking. To add one, import its class here and add it to `BASELINES`."""

from tfr_smooth.losses.lambda_loss import LambdaLoss as LambdaLoss
from tfr_smooth.losses.list_ap import ListAPLoss as ListAPLoss
from tfr_smooth.losses.list_mle import ListMLELoss as ListMLELoss
from tfr_smooth.losses.list_net import ListNetLoss as ListNetLoss
from tfr_smooth.losses.mean_squared import MeanSquaredLoss as MeanSquaredLoss
from tfr_smooth.losses.pairwise_hinge import PairwiseHingeLoss as PairwiseHingeLoss
from tfr_smooth.losses.rank_net import RankNetLoss as RankNetLoss
from tfr_smooth.losses.ranking_loss import RankingLoss

BASELINES: tuple[type[RankingLoss], ...] = (
    ListAPLoss,
    LambdaLoss,
    ListMLELoss,
    ListNetLoss,
    MeanSquaredLoss,
    PairwiseHingeLoss,
    RankNetLoss,
)
