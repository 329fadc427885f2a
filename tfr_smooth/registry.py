"""The registry of all rankings, metrics and baselines, used by losses, metrics, flags, docs and tests.

A new ranking, metric or baseline takes one file and one entry here. Its losses and Keras metrics, their names, the
tables of the documentation and the property tests are generated from the entry. `make stubs` then updates the
signatures for editors and type checkers.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from tfr_smooth import functional, ops

T = TypeVar("T")

# From Thonet et al. 2021, Section 5.1, except for SoftRank; Approx also has values from Bruch et al.
_POWERS = (0.1, 1.0, 10.0, 100.0)
_STRENGTHS = (0.01, 0.1, 1.0, 10.0)
# Degree to which the position of document j is within the cutoff K.
_WITHIN = r"\, \sigma(\beta (K + \tfrac12 - \pi_j))"


@dataclasses.dataclass(frozen=True)
class RankingEntry:
    """A smooth ranking.

    Args:
      ranking: The class, a dataclass of its hyperparameters.
      prefix: Prefix of the names of its loss and metric classes.
      title: Name used in the literature.
      formula: The formula in LaTeX.
      citation: Paper and equation.
      searched: Values searched in the papers, by hyperparameter.
      sharp: Hyperparameters for which it equals the exact ranking if scores differ by at least 1.
      costs: (time, memory) in terms of the list length N, the cutoff K (N without one) and the number of steps T.
        Metrics without an entry of their own cost the same as "ndcg".
    """

    ranking: type[ops.Ranking]
    prefix: str
    title: str
    formula: str
    citation: str
    searched: Mapping[str, tuple[Any, ...]]
    sharp: Mapping[str, Any]
    costs: Mapping[str, tuple[str, str]]

    @property
    def temperature(self) -> str:
        """Name of the hyperparameter that controls the smoothness: a number or a `tf.Variable`."""
        return next(iter(self.sharp))


@dataclasses.dataclass(frozen=True)
class MetricEntry:
    r"""A metric.

    Args:
      metric: The class, a dataclass of its hyperparameters.
      suffix: Suffix of the names of its loss and metric classes, before "Loss" and "Metric".
      title: Name used in the literature.
      formula: The formula in LaTeX, where $y_r$ is the relevance at rank r.
      position_formula: The formula for position-based rankings, where $\pi_j$ is the position of document j and
        $A_{ji}$ is the degree to which document i precedes document j.
      citation: Paper and equation.
      exact: Name of the Keras metric for the exact ranking.
      example: Value of the metric when the labels in ranked order are 0, 2, 1.
    """

    metric: type[functional.RankingMetric]
    suffix: str
    title: str
    formula: str
    position_formula: str
    citation: str
    exact: str
    example: float


@dataclasses.dataclass(frozen=True)
class BaselineEntry:
    """A baseline.

    Args:
      criterion: The class, a dataclass of its hyperparameters.
      loss: Name of its loss class.
      citation: Paper and equation.
      cost: (time, memory) in terms of the list length N.
      searched: Values searched in the papers, by hyperparameter.
    """

    criterion: type[functional.Criterion]
    loss: str
    citation: str
    cost: tuple[str, str]
    searched: Mapping[str, tuple[Any, ...]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Pair:
    """A metric computed from a smooth ranking.

    Args:
      ranking: Entry of the ranking.
      metric: Entry of the metric.
      cost: (time, memory), as in `RankingEntry`.
    """

    ranking: RankingEntry
    metric: MetricEntry
    cost: tuple[str, str]

    @property
    def stem(self) -> str:
        """Common prefix of its class names, such as "SmoothINDCG"."""
        return self.ranking.prefix + self.metric.suffix

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Arguments of the ranking and the metric, with their defaults."""
        return {**defaults(self.ranking.ranking), **defaults(self.metric.metric)}

    @property
    def citation(self) -> str:
        """Papers and equations."""
        return f"{self.ranking.citation}; {self.metric.citation}"

    def parts(self, arguments: Mapping[str, Any]) -> tuple[ops.Ranking, functional.RankingMetric]:
        """Returns the ranking and the metric with these hyperparameters."""

        def make(part: type[T]) -> T:
            return part(**{name: arguments[name] for name in defaults(part)})

        return make(self.ranking.ranking), make(self.metric.metric)


RANKINGS: dict[str, RankingEntry] = {
    "smoothi": RankingEntry(
        ops.SmoothI,
        prefix="SmoothI",
        title="SmoothI",
        formula=r"I^r_j = \mathrm{softmax}_j(\alpha S_j \, \mathrm{sg}[\prod_{l<r} (1 - I^l_j - \delta)])",
        citation="Thonet et al. 2021 (arXiv:2105.00942), Eq. 7 and 9",
        searched={"alpha": _POWERS, "delta": (0.1,)},
        sharp={"alpha": 1e4},
        costs={"ndcg": ("min(K, 80) N", "N + K"), "map": ("min(N, 200) N", "N")},
    ),
    "approx": RankingEntry(
        ops.Approx,
        prefix="Approx",
        title="Approx",
        formula=r"\pi_j = 1 + \sum_{i \ne j} \sigma(\alpha (s_i - s_j))",
        citation="Qin, Liu, Li 2010; Bruch et al. 2019, Eq. 5",
        searched={"alpha": (0.1, 1.0, 5.0, 10.0, 20.0, 40.0, 100.0), "beta": _POWERS},
        sharp={"alpha": 1e3, "beta": 1e3},
        costs={"ndcg": ("N^2", "N"), "map": ("N^2", "N^2"), "mrr": ("N^2", "N^2"), "err": ("N^2", "N^2")},
    ),
    "soft": RankingEntry(
        ops.SoftRank,
        prefix="Soft",
        title="SoftRank",
        formula=r"y_r = \sum_j rel_j \, p_j(r), \quad \pi_{ij} = \Phi((s_i - s_j) / (\sigma \sqrt 2))",
        citation="Taylor et al. 2008 (SoftRank), Eq. 9 to 15",
        searched={"sigma": (1e-4, 1e-3, 1e-2, 0.1, 1.0)},  # Section 4.5: from 1 down to 1e-4.
        sharp={"sigma": 1e-3},
        costs={
            "ndcg": ("20 N^2; with a cutoff K N^2", "N^2"),
            "precision": ("K N^2", "N^2 + (N / 16 + 16) K N"),
            "map": ("N^3", "N^2.5"),
            "mrr": ("K N^2", "N^2 + (N / 16 + 16) K N"),
            "err": ("K N^2", "N^2 + (N / 16 + 16) K N"),
        },
    ),
    "neuralsort": RankingEntry(
        ops.NeuralSort,
        prefix="NeuralSort",
        title="NeuralSort",
        formula=r"I^r = \mathrm{softmax}[((n + 1 - 2r) s - A \mathbf{1}) / \tau], \quad A_{ij} = |s_i - s_j|",
        citation="Grover et al. 2019 (arXiv:1903.08850), Eq. 5",
        searched={"temperature": _POWERS},
        sharp={"temperature": 1e-3},
        costs={"ndcg": ("N log N + K N", "K N"), "map": ("N^2", "N^2")},
    ),
    "softsort": RankingEntry(
        ops.SoftSort,
        prefix="SoftSort",
        title="SoftSort",
        formula=r"I^r_j = \mathrm{softmax}_j(-|s_{[r]} - s_j|^p / \tau)",
        citation="Prillo, Eisenschlos 2020 (arXiv:2006.16038)",
        searched={"temperature": _POWERS, "power": (1.0, 2.0)},
        sharp={"temperature": 1e-3},
        costs={"ndcg": ("N log N + K N", "K N"), "map": ("N^2", "N^2")},
    ),
    "fastsort": RankingEntry(
        ops.FastSort,
        prefix="FastSort",
        title="FastSort",
        formula=r"\pi = P_\Psi(-s / \epsilon, (n, .., 1))",
        citation="Blondel et al. 2020 (arXiv:2002.08871), Section 5",
        searched={"regularization_strength": _STRENGTHS, "regularization": ("l2", "kl")},
        sharp={"regularization_strength": 1e-3, "beta": 1e3},
        costs={
            "ndcg": ("N log N + T N", "N"),
            "map": ("N^2 + T N", "N^2"),
            "mrr": ("N^2 + T N", "N^2"),
            "err": ("N^2 + T N", "N^2"),
        },
    ),
    "sinkhorn": RankingEntry(
        ops.Sinkhorn,
        prefix="Sinkhorn",
        title="Sinkhorn (optimal transport)",
        formula=r"\pi_j = \sum_k k \, Q_{jk}, \quad Q_{jk} = \exp((f_j + g_k - C_{jk}) / \epsilon)",
        citation="Cuturi et al. 2019 (arXiv:1905.11885)",
        searched={"epsilon": _STRENGTHS},
        sharp={"epsilon": 1e-4, "beta": 1e3},
        costs={"ndcg": ("T N^2", "N^2")},
    ),
}

METRICS: dict[str, MetricEntry] = {
    "ndcg": MetricEntry(
        functional.NDCG,
        suffix="NDCG",
        title="NDCG@K",
        formula=r"\frac{1}{N_K} \sum_{r=1}^K \frac{2^{y_r} - 1}{\log_2(r + 1)}",
        position_formula=r"\frac{1}{N_K} \sum_j \frac{2^{rel_j} - 1}{\log_2(1 + \pi_j)} " + _WITHIN,
        citation="Jarvelin, Kekalainen 2002; Thonet et al. 2021, Eq. 3 and 12",
        exact="NDCGMetric",
        example=0.659,
    ),
    "precision": MetricEntry(
        functional.Precision,
        suffix="Precision",
        title="P@K",
        formula=r"\frac{1}{K} \sum_{r=1}^K y_r",
        position_formula=r"\frac{1}{K} \sum_j rel_j " + _WITHIN,
        citation="Thonet et al. 2021, Eq. 1 and 10",
        exact="PrecisionMetric",
        example=0.2,
    ),
    "map": MetricEntry(
        functional.AveragePrecision,
        suffix="MAP",
        title="average precision",
        formula=r"\frac{1}{R} \sum_{K=1}^N y_K \frac{1}{K} \sum_{r=1}^K y_r",
        position_formula=r"\frac{1}{R} \sum_j \frac{rel_j}{\pi_j} \left(1 + \sum_i rel_i A_{ji}\right)",
        citation="Thonet et al. 2021, Eq. 2 and 11",
        exact="MeanAveragePrecisionMetric",
        example=0.5833,
    ),
    "mrr": MetricEntry(
        functional.ReciprocalRank,
        suffix="MRR",
        title="reciprocal rank",
        formula=r"\sum_{r=1}^K \frac{1}{r} \, y_r \prod_{l<r} (1 - y_l)",
        position_formula=r"\sum_j \frac{rel_j}{\pi_j} " + _WITHIN + r" \prod_i (1 - rel_i A_{ji})",
        citation="Voorhees 1999",
        exact="MRRMetric",
        example=0.5,
    ),
    "err": MetricEntry(
        functional.ExpectedReciprocalRank,
        suffix="ERR",
        title="expected reciprocal rank",
        formula=r"\sum_{r=1}^K \frac{1}{r} \, R_r \prod_{l<r} (1 - R_l), \quad R = \frac{2^y - 1}{2^{y_{max}}}",
        position_formula=r"\sum_j \frac{R_j}{\pi_j} " + _WITHIN + r" \prod_i (1 - R_i A_{ji})",
        citation="Chapelle et al. 2009",
        exact="ERRMetric",
        example=0.1107,
    ),
}

BASELINES: dict[str, BaselineEntry] = {
    "list_ap": BaselineEntry(
        functional.ListAPCriterion, "ListAPLoss", "Revaud et al. 2019 (arXiv:1906.07589)", ("M N with M bins", "M N")
    ),
    "lambda_loss": BaselineEntry(
        functional.LambdaCriterion,
        "LambdaLoss",
        "Wang et al. 2018; Jagerman et al. 2022 for the cutoff",
        ("N^2", "N^2"),
    ),
    "list_mle": BaselineEntry(
        functional.ListMLECriterion,
        "ListMLELoss",
        "Xia et al. 2008; Lan et al. 2014 for the position-aware form",
        ("N log N", "N"),
    ),
    "list_net": BaselineEntry(functional.ListNetCriterion, "ListNetLoss", "Cao et al. 2007, top-one", ("N", "N")),
    "mean_squared": BaselineEntry(
        functional.MeanSquaredCriterion, "MeanSquaredLoss", "Cossock, Zhang 2006", ("N", "N")
    ),
    "pairwise_hinge": BaselineEntry(
        functional.PairwiseHingeCriterion, "PairwiseHingeLoss", "Joachims 2002", ("N^2", "N^2")
    ),
    "rank_net": BaselineEntry(functional.RankNetCriterion, "RankNetLoss", "Burges et al. 2005, Eq. 3", ("N^2", "N^2")),
}

PAIRS: dict[str, Pair] = {
    f"{name}_{metric_name}": Pair(ranking, metric, ranking.costs.get(metric_name, ranking.costs["ndcg"]))
    for name, ranking in RANKINGS.items()
    for metric_name, metric in METRICS.items()
}


def defaults(part: type) -> dict[str, Any]:
    """Returns the hyperparameters of a ranking, metric or criterion, with their defaults."""
    return {field.name: field.default for field in dataclasses.fields(part)}


def check_name(argument: str, name: Any, names: Iterable[str]) -> str:
    """Returns `name` if it is one of `names`.

    Args:
      argument: Name of the argument, for the error message.
      name: The value to check.
      names: The valid values.

    Returns:
      `name`.

    Raises:
      ValueError: If it is not valid; the message suggests similar names.
    """
    names = list(names)
    if name in names:
        return name
    near = difflib.get_close_matches(str(name), names, n=3)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ValueError(f"`{argument}` must be one of {', '.join(map(repr, names))}, got {name!r}.{hint}")
