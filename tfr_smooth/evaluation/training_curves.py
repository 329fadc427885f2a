"""A plot of training curves, as a PNG file."""

from __future__ import annotations

import itertools
import numbers
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tfr_smooth import _arguments, _plotting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LOSS = "loss"
_VALIDATION = "val_"
# Losses have a logarithmic scale from this ratio of the highest to the lowest one on.
_WIDE = 10.0
# A logarithmic scale is linear below this fraction of the highest loss, if losses are not all above 0.
_LINEAR = 1e-3


def plot_training_curves(
    path: str | os.PathLike[str], history: Mapping[str, Sequence[float]], *, best_epoch: int | None = None
) -> None:
    """Plots the loss (left) and the metrics (right) of a training run by epoch.

    Training values are dashed and validation values solid, in the same color for each quantity. A smooth metric may
    exceed the exact one. Epochs count from 1 on the plot, as in Keras's log.

    Args:
      path: The PNG file to write (about 1650 x 720 pixels, half as wide without metrics or without a loss), in an
        existing directory. An existing file is replaced atomically.
      history: Name to one number per epoch, as in the `history` of Keras's `History`. "loss" and "val_loss" are plotted
        on the left, on a logarithmic scale if they differ by more than a factor of 10 (linear near 0 for losses that
        are not all above 0), all other names on the right;
        the prefix "val_" marks validation. All sequences have the same length, >= 1. NaN and infinity leave a gap.
      best_epoch: The epoch to mark, in [1, number of epochs]. None marks none.

    Raises:
      ValueError: If an argument is invalid.
      ImportError: If matplotlib is not installed; the extra `tfr_smooth[evaluation]` includes it.

    Takes about a second. Does not change the global state of matplotlib and needs no display.

    Example:
      >>> import os, tempfile
      >>> history = {"loss": [0.5, 0.4], "ndcg": [0.3, 0.4], "val_ndcg": [0.3, 0.35]}
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = os.path.join(folder, "curves.png")
      ...     plot_training_curves(path, history, best_epoch=1)
      ...     os.path.getsize(path) > 0
      True
    """
    curves = _checked_curves(history)
    if best_epoch is not None:
        _arguments.integer("best_epoch", best_epoch, least=1, most=len(next(iter(curves.values()))))

    _plotting.write_png(path, lambda: draw(curves, best_epoch), by="`plot_training_curves`")


def _checked_curves(history: Mapping[str, Sequence[float]]) -> dict[str, np.ndarray]:
    """Returns the curves as float64 arrays, NaN where not finite."""
    curves: dict[str, np.ndarray] = {}
    for name, values in history.items():
        numeric = np.ndim(values) == 1 and all(isinstance(value, numbers.Real) for value in values)
        if not numeric or len(values) == 0:
            raise ValueError(f"`history[{name!r}]` must be one number per epoch, at least one, got {values!r}.")
        curve = np.array([float(value) for value in values])
        curves[name] = np.where(np.isfinite(curve), curve, np.nan)
    lengths = {name: len(curve) for name, curve in curves.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"`history` must have one number per epoch for each name, got lengths {lengths}.")
    return curves


def draw(curves: Mapping[str, np.ndarray], best_epoch: int | None) -> Figure:
    """Returns the figure of `plot_training_curves` in the current theme, from float arrays of one length."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    losses = {name: curve for name, curve in curves.items() if _quantity(name) == _LOSS}
    metrics = {name: curve for name, curve in curves.items() if name not in losses}
    panels = [(title, panel) for title, panel in (("Loss", losses), ("Metrics", metrics)) if panel]
    figure = Figure(figsize=(5.5 * len(panels), 4.8), layout=ConstrainedLayoutEngine(wspace=0.05))
    for axes, (title, panel) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        _draw_panel(axes, panel)
        values = np.concatenate(list(panel.values()))
        lowest, highest = np.nanmin(values, initial=np.inf), np.nanmax(values, initial=0.0)
        if title == "Loss" and abs(lowest) * _WIDE < highest:  # such as of a softmax loss, and then another one
            # 1 minus a smooth metric may fall below 0.
            if lowest > 0.0:
                axes.set_yscale("log")
            else:
                axes.set_yscale("symlog", linthresh=highest * _LINEAR)
        mark = ""
        if best_epoch is not None:
            axes.axvline(best_epoch, color=_plotting.GRAY, linewidth=1.5, linestyle=":", zorder=1.5)
            mark = f" (dotted: best on validation, {best_epoch})"
        axes.set_title(f"{title} by epoch")
        axes.set_xlabel(f"epoch{mark}")
        axes.set_ylabel(title.lower())
    return figure


def _draw_panel(axes: Axes, curves: Mapping[str, np.ndarray]) -> None:
    from matplotlib.ticker import MaxNLocator

    epochs = len(next(iter(curves.values())))
    axes.set_xlim(0.5, epochs + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    quantities = list(dict.fromkeys(map(_quantity, curves)))
    # The loss has a color of its own, so that the panels share none.
    palette = [_plotting.text_color()] if quantities == [_LOSS] else _plotting.COLORS
    colors = dict(zip(quantities, itertools.cycle(palette), strict=False))
    # Training first, so the columns of the legend are training and validation.
    for prefix, kind, line in (("", "training", "--"), (_VALIDATION, "validation", "-")):
        for quantity, color in colors.items():
            if (curve := curves.get(prefix + quantity)) is not None:
                label = f"{quantity}, {kind}"
                axes.plot(np.arange(1, epochs + 1), curve, line, color=color, marker="o", markersize=3.0, label=label)
    # Below the panel, where it can cover no curve.
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)


def _quantity(name: str) -> str:
    return name.removeprefix(_VALIDATION)
