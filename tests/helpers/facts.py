"""What the tests know about the relaxations of the library."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from tfr_smooth import _lookup, losses, measures, rankings

COMBINATIONS = _lookup.COMBINATIONS
# The losses of one score per document that are not a measure of a ranking.
BASELINES = [name for name in losses.NAMES if name not in COMBINATIONS]

_POWERS, _STRENGTHS, _DISTRIBUTIONS = (0.1, 1.0, 10.0, 100.0), (0.01, 0.1, 1.0, 10.0), ("binomial", "normal")
_OF_NETWORKS = {"sorting_network": ("bitonic", "odd_even"), "distribution": ("cauchy", "logistic")}
_SHARP = {"sharp": {"temperature": 1e-3}, "sharp_error": 0.0}
_BY_INDICATORS = tuple(name for name, measure in measures.MEASURES.items() if measure.ranking_class is rankings.Ranking)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Relaxation:
    """A relaxation.

    Attributes:
      sharp: Hyperparameters for which it equals the exact ranking if scores differ by at least 1. The first is the
        temperature.
      searched: Values searched in the papers, by hyperparameter.
      sharp_error: The largest difference of an indicator, or of a position, from the exact ranking for `sharp`.
      converged: Hyperparameters for full precision, of rankings that iterate.
      not_monotone: Names of the measures that may decrease as the score of a relevant document increases, for example
        because a document occupies several ranks.
    """

    sharp: Mapping[str, float]
    searched: Mapping[str, tuple[Any, ...]]
    sharp_error: float = 1e-5
    converged: Mapping[str, float] = dataclasses.field(default_factory=dict)
    not_monotone: tuple[str, ...] = ()

    @property
    def temperature(self) -> str:
        """Name of the hyperparameter that controls the smoothness."""
        return next(iter(self.sharp))


RELAXATIONS: dict[str, Relaxation] = {
    "smoothi": Relaxation(
        sharp={"alpha": 1e4}, searched={"alpha": _POWERS, "delta": (0.1,)}, not_monotone=_BY_INDICATORS
    ),
    "approx": Relaxation(
        sharp={"alpha": 1e3, "beta": 1e3}, searched={"alpha": (0.1, 1.0, 5.0, 10.0, 20.0, 40.0, 100.0), "beta": _POWERS}
    ),
    "soft": Relaxation(
        sharp={"sigma": 1e-3},
        searched={"sigma": (1e-4, 1e-3, 1e-2, 0.1, 1.0), "distribution": _DISTRIBUTIONS, "sinkhorn_steps": (0, 10)},
        not_monotone=("map", "mrr"),
    ),
    "neuralsort": Relaxation(
        **_SHARP, searched={"temperature": _POWERS, "sinkhorn_steps": (0, 50)}, not_monotone=_BY_INDICATORS
    ),
    "softsort": Relaxation(
        **_SHARP, searched={"temperature": _POWERS, "power": (1.0, 2.0)}, not_monotone=_BY_INDICATORS
    ),
    "fastsort": Relaxation(
        sharp={"regularization_strength": 1e-3, "beta": 1e3},
        searched={"regularization_strength": _STRENGTHS, "regularization": ("l2", "kl")},
        sharp_error=1e-11,
    ),
    "sinkhorn": Relaxation(
        sharp={"epsilon": 1e-4, "beta": 1e3}, searched={"epsilon": _STRENGTHS}, converged={"threshold": 1e-12}
    ),
    "lapsum": Relaxation(sharp={"alpha": 1e-3, "beta": 1e3}, searched={"alpha": (0.1, 1.0)}, sharp_error=0.0),
    "sortingnetwork": Relaxation(
        sharp={"steepness": 1e7},
        searched={"steepness": (1.0, 10.0, 100.0), **_OF_NETWORKS},
        not_monotone=tuple(name for name in _BY_INDICATORS if name != "err"),
    ),
}


def of_ranking(ranking: rankings.Ranking) -> Relaxation:
    """Returns the facts of a ranking's relaxation."""
    names = {kind: name for name, kind in rankings.RANKINGS.items()}
    return RELAXATIONS[names[type(ranking)]]
