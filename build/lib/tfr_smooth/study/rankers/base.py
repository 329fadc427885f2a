"""What every ranker of a study shares."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfr_smooth.study.folds import Fold


@dataclasses.dataclass(frozen=True)
class Fitted:
    """What a ranker found on one fold.

    Args:
      valid: Scores of the validation documents, [documents].
      test: Scores of the test documents.
      curves: One number per epoch, by name.
      details: What else to keep, as JSON values.
    """

    valid: np.ndarray
    test: np.ndarray
    curves: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict)
    details: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class Ranker(abc.ABC):
    """A way to rank documents, which a study fits on the training queries of each fold.

    Attributes:
      randomized: Whether the result depends on the seed.
      is_neural: Whether it is trained by a `Recipe`.
      defaults: The settings that it takes, with their default values.
    """

    randomized = False
    is_neural = False
    defaults: Mapping[str, Any] = {}

    def grid(self) -> dict[str, tuple[Any, ...]]:
        """Returns the values that a study searches, by setting."""
        return {}

    @abc.abstractmethod
    def fit(self, fold: Fold, settings: Mapping[str, Any], seed: int) -> Fitted:
        """Fits the ranker, and scores the validation and test documents.

        Args:
          fold: The fold. Test documents are only to be scored.
          settings: The settings that differ from the defaults.
          seed: Seed of all that is random.
        """

    def check(self, settings: Mapping[str, Any]) -> None:
        """Raises a `ValueError` if these settings are not the ranker's."""
        for name in settings:
            if name not in self.defaults:
                known = ", ".join(self.defaults) or "none"
                raise ValueError(f"`settings` of {type(self).__name__} must be among {known}, got {name!r}.")

    def canonical(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the settings that tell one result from another."""
        return dict(settings)

    def affinity(self, settings: Mapping[str, Any]) -> Any:
        """Returns the part of the settings, as JSON values, that jobs should share to run fast in one process."""
        return None
