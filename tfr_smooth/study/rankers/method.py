"""The interface of the ranking methods that a study compares."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfr_smooth.study.folds import Fold


@dataclasses.dataclass(frozen=True)
class Fitted:
    """The scores of a ranker fitted on one fold.

    Args:
      valid: Scores of the validation documents, [documents].
      test: Scores of the test documents, [documents].
      curves: Learning curves: one number per epoch, by name.
      details: Further values to store with the result, as JSON values.

    Example:
      >>> import numpy as np
      >>> from tfr_smooth import study
      >>> fitted = study.Fitted(valid=np.array([0.2, 0.7]), test=np.array([0.4]), details={"best_epoch": 3})
      >>> fitted.test.shape
      (1,)
    """

    valid: np.ndarray
    test: np.ndarray
    curves: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict)
    details: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class Method(abc.ABC):
    """Base class of ranking methods, which a study fits on the training queries of each fold.

    A subclass implements `fit`. `RANKERS` contains the rankers by name.

    Attributes:
      randomized: Whether the result depends on the seed.
      is_neural: Whether the arguments of `tfr_smooth.Ranker` are among its settings.
      defaults: The settings of the ranker with their default values.

    Example:
      >>> from tfr_smooth import study
      >>> class Column(study.Method):
      ...     defaults = {"column": 0}
      ...     def fit(self, fold, settings, seed):
      ...         column = {**self.defaults, **settings}["column"]
      ...         return study.Fitted(*(fold.parts[part].features[:, column] for part in ("valid", "test")))
      >>> Column().check({"column": 2})
    """

    randomized = False
    is_neural = False
    defaults: Mapping[str, Any] = {}

    def grid(self) -> dict[str, tuple[Any, ...]]:
        """Returns the values that a study searches; override it to search some.

        Returns:
          The values by setting; the study searches their Cartesian product.
        """
        return {}

    @abc.abstractmethod
    def fit(self, fold: Fold, settings: Mapping[str, Any], seed: int) -> Fitted:
        """Fits the ranker and scores the validation and test documents.

        Args:
          fold: The fold: `fold.parts` contains the "train", "valid" and "test" queries, each with `features`
            [documents, num_features], `labels` [documents] and `lengths`, the documents per query, [queries]. Use the
            test part only for scoring.
          settings: The settings that differ from the defaults, by name.
          seed: Random seed.

        Returns:
          The scores.
        """

    def expanded(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the settings with those that one of them stands for, such as a recipe.

        Args:
          settings: Settings by name.
        """
        return dict(settings)

    def check(self, settings: Mapping[str, Any]) -> None:
        """Checks settings.

        Args:
          settings: Settings by name.

        Raises:
          ValueError: If the ranker does not have one of these settings, or a value is out of its range.
        """
        for name in settings:
            if name not in self.defaults:
                known = ", ".join(self.defaults) or "none"
                raise ValueError(f"`settings` of {type(self).__name__} must be among {known}, got {name!r}.")

    def canonical(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the settings that identify a result.

        Args:
          settings: Settings by name.

        Returns:
          Settings as JSON values, by name; jobs with equal ones share their result.
        """
        return dict(settings)

    def affinity(self, settings: Mapping[str, Any]) -> Any:
        """Returns the settings that jobs should share to run fast in the same process.

        Args:
          settings: Settings by name.

        Returns:
          A JSON value; None if all jobs of this ranker are alike.
        """
        return None
