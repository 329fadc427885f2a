"""The rankers of a study. To add a ranker, add a module and a line in `RANKERS`."""

from tfr_smooth import losses
from tfr_smooth.study.rankers.chance import Chance
from tfr_smooth.study.rankers.lambdamart import LambdaMart
from tfr_smooth.study.rankers.method import Fitted, Method
from tfr_smooth.study.rankers.neural import Neural
from tfr_smooth.study.rankers.ridge import Ridge
from tfr_smooth.study.rankers.single_feature import SingleFeature

RANKERS: dict[str, Method] = {
    "lambdamart": LambdaMart(),
    "ridge": Ridge(),
    "single_feature": SingleFeature(),
    "random": Chance(),
    **{name: Neural(name) for name in losses.NAMES},
}

__all__ = ["RANKERS", "Fitted", "Method"]
