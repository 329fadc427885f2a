"""The calibration of predicted probabilities: a table by bins, the expected calibration error, and a plot."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tfr_smooth import _arguments, _plotting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
      The table, for `plot_reliability`, with the property `expected_calibration_error`.

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
    counts = np.bincount(places, minlength=bins)
    filled = counts > 0
    sums = [np.bincount(places, values, minlength=bins)[filled] for values in (predictions, labels)]
    predicted, observed = (of_bin / counts[filled] for of_bin in sums)
    return Reliability(counts[filled], predicted, observed, max(1.0, float(labels.max())))


def plot_reliability(path: str | os.PathLike[str], tables: Mapping[str, Reliability]) -> None:
    """Plots the observed against the predicted rate of relevance of each bin, with the ideal diagonal.

    Bars show the 95% intervals of the observed rates, and the panel below the documents of each bin.

    Args:
      path: The PNG file to write (about 820 x 930 pixels), in an existing directory. An existing file is replaced
        atomically.
      tables: By the name in the legend, the result of `reliability`; at least one.

    Raises:
      ValueError: If there are no tables.
      ImportError: If matplotlib is not installed; the extra `tfr_smooth[evaluation]` includes it.

    Takes about a second. Does not change the global state of matplotlib and needs no display.

    Example:
      >>> import os, tempfile
      >>> from tfr_smooth import evaluation
      >>> table = evaluation.reliability([0, 1, 1, 1], [0.1, 0.3, 0.8, 0.9], bins=2)
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = os.path.join(folder, "reliability.png")
      ...     evaluation.plot_reliability(path, {"ranker": table})
      ...     os.path.getsize(path) > 0
      True
    """
    if not tables:
        raise ValueError("`tables` must have at least one table, got none.")
    _plotting.write_png(path, lambda: draw(tables), by="`plot_reliability`")


def draw(tables: Mapping[str, Reliability]) -> Figure:
    """Returns the figure of `plot_reliability` in the current theme."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5, 6.2), layout="constrained")
    axes, below = figure.subplots(2, 1, sharex=True, height_ratios=(4.0, 1.0))
    highest = max([1.0, *(float(max(table.predicted.max(), table.observed.max())) for table in tables.values())])
    axes.plot([0.0, highest], [0.0, highest], color=_plotting.GRAY, linestyle=":", label="ideal")
    for (name, table), color in zip(tables.items(), itertools.cycle(_plotting.COLORS), strict=False):
        label = f"{name} (ECE {table.expected_calibration_error:.3f})"
        look: dict[str, Any] = {"color": color, "marker": "o", "markersize": 4.5}
        errors = np.abs(table.intervals - table.observed[:, np.newaxis]).T
        axes.errorbar(table.predicted, table.observed, yerr=errors, label=label, capsize=2.0, elinewidth=1.0, **look)
        below.plot(table.predicted, table.counts, **look)
    axes.set_title("Reliability, with 95% intervals")
    axes.set_ylabel("observed rate of relevance")
    axes.legend(loc="upper left")
    below.set_yscale("log")
    below.set_ylim(0.7, 1.5 * max(table.counts.max() for table in tables.values()))  # from one document on
    below.set_ylabel("documents")
    below.set_xlabel("predicted rate of relevance")
    return figure
