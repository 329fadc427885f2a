"""The calibration of predicted probabilities: a table by bins and the expected calibration error."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tfr_smooth import _arguments

_STRATEGIES = ("uniform", "quantile")
STANDARD_ERRORS = 1.96  # standard errors of a 95% interval


class Reliability(NamedTuple):
    """Predicted and observed rates of relevance, by bins of predictions; empty bins are left out.

    Attributes:
      counts: The documents of each bin, int64 [bins].
      predicted: The mean prediction of each bin, float64 [bins], increasing.
      observed: The mean label of each bin, float64 [bins].
      highest: The highest label, >= 1.

    Example:
      >>> import numpy as np
      >>> from tfr_smooth import evaluation
      >>> table = evaluation.Reliability(np.array([3, 1]), np.array([0.2, 0.9]), np.array([0.1, 0.5]))
      >>> round(table.expected_calibration_error, 3), table.intervals.round(2).tolist()
      (0.175, [[0.01, 0.64], [0.05, 0.95]])
    """

    counts: np.ndarray
    predicted: np.ndarray
    observed: np.ndarray
    highest: float = 1.0

    @property
    def expected_calibration_error(self) -> float:
        r"""ECE: $\sum_b \frac{n_b}{n} |\mathrm{observed}_b - \mathrm{predicted}_b|$, >= 0.

        (Naeini et al., "Obtaining Well Calibrated Probabilities Using Bayesian Binning", AAAI 2015.)
        """
        return float(np.average(np.abs(self.observed - self.predicted), weights=self.counts))

    @property
    def intervals(self) -> np.ndarray:
        r"""The 95% interval of each observed rate, float64 [bins, 2]: Wilson's score interval (JASA 1927).

        $$\frac{p + z^2 / 2n \pm z \sqrt{p (1 - p) / n + z^2 / 4n^2}}{1 + z^2 / n}$$

        for the rate p of n documents and z = 1.96. Labels are taken as fractions of the highest one; with labels
        between 0 and this, the intervals are too wide.
        """
        rates, squared = self.observed / self.highest, STANDARD_ERRORS**2 / self.counts
        half = STANDARD_ERRORS * np.sqrt(rates * (1.0 - rates) / self.counts + squared / self.counts / 4.0)
        middle = rates + squared / 2.0
        return self.highest * (np.stack([middle - half, middle + half], axis=1) / (1.0 + squared[:, np.newaxis]))


def reliability(labels: Any, predictions: Any, *, bins: int = 10, strategy: str = "uniform") -> Reliability:
    """Compares predicted and observed rates of relevance.

    Args:
      labels: Whether each document is relevant, [documents], 0 or 1; or the labels, for predictions of these.
      predictions: The predicted probabilities, [documents]; in [0, 1] with "uniform".
      bins: The number of bins, >= 1.
      strategy: "uniform" for bins of equal width in [0, 1], which contain their lower ends; "quantile" for bins of
        equally many documents, up to rounding. Equal predictions may then be in different bins, in the order of the
        documents.

    Returns:
      The table, with the properties `expected_calibration_error` and `intervals`.

    Raises:
      ValueError: If an argument is invalid.

    Time O(N), with "quantile" O(N log N).

    Example:
      >>> from tfr_smooth import evaluation
      >>> table = evaluation.reliability([0, 1, 1, 1], [0.1, 0.3, 0.8, 0.9], bins=2)
      >>> table.counts.tolist(), table.observed.tolist(), round(table.expected_calibration_error, 3)
      ([2, 2], [0.5, 1.0], 0.225)
    """
    _arguments.integer("bins", bins, least=1)
    _arguments.choice("strategy", strategy, _STRATEGIES)
    labels, predictions = np.asarray(labels, np.float64), np.asarray(predictions, np.float64)
    uniform = strategy == "uniform"
    expected = "numbers in [0, 1]" if uniform else "finite numbers"
    if predictions.ndim != 1 or not predictions.size or not np.isfinite(predictions).all():
        raise ValueError(f"`predictions` must be {expected} [documents], at least one, got shape {predictions.shape}.")
    if uniform and (predictions.min() < 0.0 or predictions.max() > 1.0):
        raise ValueError(f"`predictions` must be {expected}, got {predictions.min():g} to {predictions.max():g}.")
    if labels.shape != predictions.shape or not (labels >= 0.0).all():
        raise ValueError(f"`labels` must be {len(predictions)} numbers >= 0, got shape {labels.shape}.")
    if uniform:
        places = np.minimum((predictions * bins).astype(np.int64), bins - 1)
    else:
        places = np.empty(len(predictions), np.int64)
        places[np.argsort(predictions, kind="stable")] = np.arange(len(predictions)) * bins // len(predictions)
    counts = np.bincount(places)
    filled = counts > 0
    predicted, observed = (np.bincount(places, values)[filled] / counts[filled] for values in (predictions, labels))
    return Reliability(counts[filled], predicted, observed, max(1.0, float(labels.max())))
