"""All rankings, measures and their pairs by name: the source of losses, metrics, flags, documentation, plots and tests.

The classes say everything about themselves in their attribute `about`.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from tfr_smooth import measures, rankings
from tfr_smooth._about import Cost

T = TypeVar("T")
# Longer lists of names would hide the rest of an error message.
_MOST_LISTED = 10

RANKINGS: dict[str, type[rankings.Ranking]] = {ranking.about.name: ranking for ranking in rankings.RANKINGS}
MEASURES: dict[str, type[measures.Measure]] = {measure.about.name: measure for measure in measures.MEASURES}
# The measures with a metric of the exact ranking: all.
EXACT: dict[str, type[measures.Measure]] = {
    **MEASURES,
    **{measure.about.name: measure for measure in measures.EXACT_ONLY},
}


@dataclasses.dataclass(frozen=True)
class Pair:
    """A measure of a smooth ranking.

    Args:
      ranking: The class of the ranking.
      measure: The class of the measure.
    """

    ranking: type[rankings.Ranking]
    measure: type[measures.Measure]

    @property
    def stem(self) -> str:
        """Common prefix of its class names, such as "SmoothINDCG"."""
        return self.ranking.about.prefix + self.measure.about.suffix

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Arguments of the ranking and the measure, with their defaults."""
        return {**defaults(self.ranking), **defaults(self.measure)}

    @property
    def citation(self) -> str:
        """Papers and equations."""
        return f"{self.ranking.about.citation}; {self.measure.about.citation}"

    @property
    def formula(self) -> str:
        """The formula of the measure for this kind of ranking."""
        by_position = issubclass(self.ranking, rankings.PositionRanking)
        return self.measure.about.position_formula if by_position else self.measure.about.formula

    @property
    def cost(self) -> Cost:
        """(time, memory), as in `AboutRanking`."""
        costs = self.ranking.about.costs
        return costs.get(self.measure.about.name, costs["ndcg"])

    def parts(self, arguments: Mapping[str, Any]) -> tuple[rankings.Ranking, measures.Measure]:
        """Returns the ranking and the measure with these hyperparameters."""

        def make(part: type[T]) -> T:
            return part(**{name: arguments[name] for name in defaults(part)})

        return make(self.ranking), make(self.measure)


PAIRS: dict[str, Pair] = {
    f"{name}_{of}": Pair(ranking, measure)
    for name, ranking in RANKINGS.items()
    for of, measure in MEASURES.items()
    if issubclass(ranking, measure.ranking_class)
}


def defaults(part: type) -> dict[str, Any]:
    """Returns the hyperparameters of a ranking or a measure, with their defaults."""
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
    some = ", ".join(map(repr, names[:_MOST_LISTED]))
    more = f" and {len(names) - _MOST_LISTED} others" if len(names) > _MOST_LISTED else ""
    raise ValueError(f"`{argument}` must be one of {some}{more}, got {name!r}.{hint}")
