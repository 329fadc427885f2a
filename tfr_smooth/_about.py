"""What rankings, measures and losses say about themselves, for tables, documentation, plots and tests."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

Cost = tuple[str, str]
TIES = (
    "Tied documents are ranked by descending index in the list, which is trec_eval's rule for documents named by index."
)

_LOSS_NOTE = (
    "The loss is at most 1. It may be slightly below 0, as a smooth ranking may place a document at\n"
    "more than one rank. Lists without a relevant document are excluded."
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AboutRanking:
    """A smooth ranking.

    Args:
      prefix: Prefix of the names of its loss and metric classes; in lower case, its name in the registry.
      title: Name used in the literature.
      formula: The formula in LaTeX.
      citation: Paper and equation.
      searched: Values searched in the papers, by hyperparameter.
      sharp: Hyperparameters for which it equals the exact ranking if scores differ by at least 1, the temperature
        first: a number or a `tf.Variable`.
      sharp_error: The largest difference of an indicator, or of a position, from the exact ranking for `sharp`.
      converged: Hyperparameters for full precision, of rankings that iterate.
      not_monotone: Names of the measures that may decrease as the score of a relevant document increases, for example
        because a document occupies several ranks.
      costs: (time, memory) by name of the measure, in terms of the list length N, the cutoff K (N without one) and the
        number of steps T. Measures without an entry cost the same as "ndcg".
    """

    prefix: str
    title: str
    formula: str
    citation: str
    searched: Mapping[str, tuple[Any, ...]]
    sharp: Mapping[str, Any]
    costs: Mapping[str, Cost]
    sharp_error: float = 1e-5
    converged: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    not_monotone: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name in the registry, the first word of the names of its losses."""
        return self.prefix.lower()

    @property
    def temperature(self) -> str:
        """Name of the hyperparameter that controls the smoothness."""
        return next(iter(self.sharp))


@dataclasses.dataclass(frozen=True, kw_only=True)
class AboutMeasure:
    r"""A measure.

    Args:
      suffix: Suffix of the names of its loss and metric classes, before "Loss" and "Metric"; its words in lower case
        are its name in the registry.
      title: Name used in the literature.
      formula: The formula in LaTeX, where $y_r$ is the relevance at rank r.
      citation: Paper and equation.
      exact: Name of the Keras metric for the exact ranking.
      example: Value of the measure for the arguments and labels of the example.
      position_formula: The formula for position-based rankings, where $\pi_j$ is the position of document j and
        $A_{ji}$ is the degree to which document i precedes document j. Empty for measures without losses.
      example_arguments: Arguments of the measure in the example.
      example_labels: Labels of the four documents of the example, in ranked order.
      cost: (time, memory) for the exact ranking, in terms of the list length N.
      note: What users of the metric of the exact ranking should know.
      loss_note: The range of its losses, and the lists that they exclude.
    """

    suffix: str
    title: str
    formula: str
    citation: str
    exact: str
    example: float
    position_formula: str = ""
    example_arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    example_labels: str = "[0, 2, 1, -1]"
    cost: Cost = ("N log N", "N")
    note: str = TIES
    loss_note: str = _LOSS_NOTE

    @property
    def name(self) -> str:
        """Name in the registry, the last word of the names of its losses."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.suffix).lower()


@dataclasses.dataclass(frozen=True, kw_only=True)
class AboutLoss:
    """A loss that is not a measure of a ranking.

    Args:
      name: Name in the registry.
      citation: Paper and equation.
      cost: (time, memory) in terms of the list length N.
      searched: Values searched in the papers, by hyperparameter.
    """

    name: str
    citation: str
    cost: Cost
    searched: Mapping[str, tuple[Any, ...]] = dataclasses.field(default_factory=dict)


# From Thonet et al. 2021, Section 5.1.
POWERS = (0.1, 1.0, 10.0, 100.0)
STRENGTHS = (0.01, 0.1, 1.0, 10.0)
# LaTeX of the degree to which the position of document j is within the cutoff K.
WITHIN = r"\, \sigma(\beta (K + \tfrac12 - \pi_j))"
