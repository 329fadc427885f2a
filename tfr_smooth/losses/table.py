"""The table of losses: what drives flags, pipelines, documentation and property tests."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

from tfr_smooth import _arguments
from tfr_smooth.functional import parts
from tfr_smooth.losses import approx, fastsort, neuralsort, sinkhorn, smoothi, softrank, softsort
from tfr_smooth.losses.base import MetricLoss, RankingLoss
from tfr_smooth.losses.lambda_loss import LambdaLoss
from tfr_smooth.losses.list_ap import ListAPLoss
from tfr_smooth.losses.list_mle import ListMLELoss
from tfr_smooth.losses.list_net import ListNetLoss
from tfr_smooth.losses.mean_squared import MeanSquaredLoss
from tfr_smooth.losses.rank_net import RankNetLoss

# What every loss takes.
_COMMON = frozenset(inspect.signature(RankingLoss.__init__).parameters)


@dataclasses.dataclass(frozen=True)
class Entry:
    """A loss in the table.

    Args:
      loss: The class.
      equation: Where its formula stands.
      time: What it costs in the length of a list N, and in the cut-off K (N without one).
      memory: The same for what is held at once.
      searched: The values that a paper searched, by hyperparameter.

    Example:
      >>> import tfr_smooth
      >>> entry = tfr_smooth.losses.TABLE["smoothi_ndcg"]
      >>> entry.loss.__name__, entry.defaults["alpha"], entry.searched["alpha"]
      ('SmoothINDCGLoss', 1.0, (0.1, 1.0, 10.0, 100.0))
    """

    loss: type[RankingLoss]
    equation: str
    time: str
    memory: str
    searched: Mapping[str, tuple[Any, ...]] = dataclasses.field(default_factory=dict)

    @property
    def defaults(self) -> dict[str, Any]:
        """The hyperparameters with their default values."""
        parameters = inspect.signature(self.loss.__init__).parameters
        return {name: parameter.default for name, parameter in parameters.items() if name not in _COMMON}


_SMOOTHI = "Thonet et al. 2022 (arXiv:2105.00942), "
_APPROX = "Qin, Liu, Li 2010"
_SOFTRANK = "Taylor et al. 2008 (SoftRank), "
_NEURALSORT = "Grover et al. 2019 (arXiv:1903.08850), Eq. 5"
_SOFTSORT = "Prillo, Eisenschlos 2020 (arXiv:2006.16038)"
_FASTSORT = "Blondel et al. 2020 (arXiv:2002.08871), Section 5"
_SINKHORN = "Cuturi et al. 2019 (arXiv:1905.11885)"

# By Thonet et al. 2022, Section 5.1, but for SoftRank's, and some of Bruch et al. among those of ApproxNDCG.
_POWERS = (0.1, 1.0, 10.0, 100.0)
_STRENGTHS = (0.01, 0.1, 1.0, 10.0)

# T: steps until convergence.
TABLE: dict[str, Entry] = {
    "smoothi_ndcg": Entry(
        smoothi.SmoothINDCGLoss,
        _SMOOTHI + "Eq. 9 and 12",
        "min(K, 80) N",
        "N + K",
        {"alpha": _POWERS, "delta": (0.1,)},
    ),
    "smoothi_precision": Entry(
        smoothi.SmoothIPrecisionLoss,
        _SMOOTHI + "Eq. 9 and 10",
        "min(K, 80) N",
        "N + K",
        {"alpha": _POWERS, "delta": (0.1,)},
    ),
    "smoothi_map": Entry(
        smoothi.SmoothIMAPLoss, _SMOOTHI + "Eq. 9 and 11", "min(N, 200) N", "N", {"alpha": _POWERS, "delta": (0.1,)}
    ),
    "approx_ndcg": Entry(
        approx.ApproxNDCGLoss,
        _APPROX + "; Bruch et al. 2019, Eq. 4 and 5",
        "N^2",
        "N^2",
        {"alpha": (0.1, 1.0, 5.0, 10.0, 20.0, 40.0, 100.0), "beta": _POWERS},
    ),
    "approx_precision": Entry(approx.ApproxPrecisionLoss, _APPROX, "N^2", "N^2", {"alpha": _POWERS, "beta": _POWERS}),
    "approx_map": Entry(approx.ApproxMAPLoss, _APPROX, "N^2", "N^2", {"alpha": _POWERS, "beta": _POWERS}),
    "soft_ndcg": Entry(
        softrank.SoftNDCGLoss,
        _SOFTRANK + "Eq. 9 to 15",
        "20 N^2; with a cut-off K N^2",
        "N^2",
        {"sigma": (1.0, 1e-4)},  # the ends of a range; section 4.5
    ),
    "soft_precision": Entry(softrank.SoftPrecisionLoss, _SOFTRANK + "Eq. 12", "K N^2", "N^2 + (N / 16 + 16) K N"),
    "neuralsort_ndcg": Entry(
        neuralsort.NeuralSortNDCGLoss, _NEURALSORT, "N log N + K N", "K N", {"temperature": _POWERS}
    ),
    "neuralsort_precision": Entry(neuralsort.NeuralSortPrecisionLoss, _NEURALSORT, "N log N + K N", "K N"),
    "neuralsort_map": Entry(neuralsort.NeuralSortMAPLoss, _NEURALSORT, "N^2", "N^2"),
    "softsort_ndcg": Entry(
        softsort.SoftSortNDCGLoss,
        _SOFTSORT,
        "N log N + K N",
        "K N",
        {"temperature": _POWERS, "power": (1.0, 2.0)},
    ),
    "softsort_precision": Entry(softsort.SoftSortPrecisionLoss, _SOFTSORT, "N log N + K N", "K N"),
    "softsort_map": Entry(softsort.SoftSortMAPLoss, _SOFTSORT, "N^2", "N^2"),
    "fastsort_ndcg": Entry(
        fastsort.FastSortNDCGLoss,
        _FASTSORT,
        "N log N + T N",
        "N",
        {"regularization_strength": _STRENGTHS, "regularization": ("l2", "kl")},
    ),
    "fastsort_precision": Entry(fastsort.FastSortPrecisionLoss, _FASTSORT, "N log N + T N", "N"),
    "fastsort_map": Entry(fastsort.FastSortMAPLoss, _FASTSORT, "N^2 + T N", "N^2"),
    "sinkhorn_ndcg": Entry(sinkhorn.SinkhornNDCGLoss, _SINKHORN, "T N^2", "N^2", {"epsilon": _STRENGTHS}),
    "sinkhorn_precision": Entry(sinkhorn.SinkhornPrecisionLoss, _SINKHORN, "T N^2", "N^2"),
    "sinkhorn_map": Entry(sinkhorn.SinkhornMAPLoss, _SINKHORN, "T N^2", "N^2"),
    "list_ap": Entry(ListAPLoss, "Revaud et al. 2019 (arXiv:1906.07589)", "M N with M bins", "M N"),
    "lambda_loss": Entry(LambdaLoss, "Wang et al. 2018; Jagerman et al. 2022 for the cut-off", "N^2", "N^2"),
    "list_mle": Entry(ListMLELoss, "Xia et al. 2008; Lan et al. 2014 for the position-aware form", "N log N", "N"),
    "list_net": Entry(ListNetLoss, "Cao et al. 2007, top-one", "N", "N"),
    "mean_squared": Entry(MeanSquaredLoss, "mean of (score - label)^2", "N", "N"),
    "rank_net": Entry(RankNetLoss, "Burges et al. 2005", "N^2", "N^2"),
}

# Every name that `get` takes: the table's, and each smooth ranking with each metric.
NAMES: tuple[str, ...] = (*TABLE, *(name for name in parts.PAIRS if name not in TABLE))


def get(name: str, /, **kwargs: Any) -> RankingLoss:
    """Makes a loss by its name.

    Args:
      name: A name in `TABLE`, or RANKING_METRIC with a ranking out of smoothi, approx, soft, neuralsort, softsort,
        fastsort, sinkhorn and a metric out of ndcg, precision, map, mrr, err: what has no class of its own, such as
        "smoothi_err", is a `MetricLoss` of the two.
      **kwargs: The constructor's arguments; for a pair, those of the ranking, of the metric and of every loss.

    Returns:
      The loss.

    Raises:
      ValueError: If there is no such loss, or an argument is out of its range.
      TypeError: If the loss has no such argument.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.losses.get("smoothi_ndcg", alpha=10.0).get_config()["alpha"]
      10.0
      >>> tfr_smooth.losses.get("smoothi_err", alpha=10.0, max_grade=2).metric
      ExpectedReciprocalRank(topn=None, max_grade=2.0)
    """
    if _arguments.choice("name", name, NAMES) in TABLE:
        return TABLE[name].loss(**kwargs)
    ranking, metric, rest = parts.make_pair(name, kwargs)
    return MetricLoss(ranking, metric, **{"name": f"{name}_loss", **rest})


def hyperparameters(name: str, /) -> dict[str, Any]:
    """Returns what `get(name)` takes beside `ragged`, `name` and `reduction`, with default values.

    Args:
      name: A name that `get` takes.

    Returns:
      Name -> default value.

    Raises:
      ValueError: If there is no such loss.

    Example:
      >>> import tfr_smooth
      >>> tfr_smooth.losses.hyperparameters("neuralsort_mrr")
      {'temperature': 1.0, 'topn': None}
    """
    if _arguments.choice("name", name, NAMES) in TABLE:
        return TABLE[name].defaults
    return parts.hyperparameters(name)
