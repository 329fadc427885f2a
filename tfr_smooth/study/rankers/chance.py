"""Random scores, the lower baseline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfr_smooth.study.folds import Fold
from tfr_smooth.study.rankers.method import Fitted, Method


class Chance(Method):
    """Ranks documents at random."""

    randomized = True

    def fit(self, fold: Fold, settings: Mapping[str, Any], seed: int) -> Fitted:
        """Draws uniform scores."""
        random = np.random.default_rng(seed)
        valid, test = (random.random(len(fold.parts[part].labels), np.float32) for part in ("valid", "test"))
        return Fitted(valid, test)
