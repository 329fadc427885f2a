"""The look of all plots: colors, a light and a dark theme, and small PNG files."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tfr_smooth import _arguments, _files
from tfr_smooth._arguments import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colors, which color-blind people can distinguish. The text color, theirs in black, completes them.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GRAY = "#808080"  # readable in both themes

_STYLE = {
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "axes.grid": True,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}
_BACKGROUND = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
_FOREGROUND = ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color")
# The dark background is that of the documentation's dark scheme.
_THEMES = {
    "light": dict.fromkeys(_BACKGROUND, "#FFFFFF") | dict.fromkeys(_FOREGROUND, "#333333") | {"grid.color": "#E5E5E5"},
    "dark": dict.fromkeys(_BACKGROUND, "#1E2129") | dict.fromkeys(_FOREGROUND, "#DDE0E6") | {"grid.color": "#3A3F4B"},
}


@contextlib.contextmanager
def theme(name: str = "light") -> Iterator[None]:
    """Draws in the "light" or the "dark" theme, in which figures are created and saved; other settings stay."""
    import matplotlib

    settings: Any = _STYLE | _THEMES[name]
    with matplotlib.rc_context(settings):
        yield


def text_color() -> str:
    """The color of the text in the current theme."""
    import matplotlib

    return str(matplotlib.rcParams["text.color"])


def plain(name: object) -> str:
    """Returns a name from data as text of a plot: in one line, and without mathematics between dollar signs."""
    return printable(name).replace("$", r"\$")


def bars(values: Mapping[str, float], top: int, *, title: str, label: str, numbers: str) -> Figure:
    """Returns a figure of horizontal bars, the first one at the top.

    Args:
      values: The values by name.
      top: The number of bars, at most.
      title: The title.
      label: What the values are.
      numbers: The format of the numbers at the bars, such as "{:.2f}".
    """
    from matplotlib.figure import Figure

    names, lengths = [plain(name) for name in values][:top], list(values.values())[:top]
    figure = Figure(figsize=(7.0, 1.2 + 0.26 * len(names)), layout="constrained")
    axes = figure.subplots()
    colors = [COLORS[int(length < 0.0)] for length in lengths]
    drawn = axes.barh(names, lengths, color=colors)
    axes.bar_label(drawn, fmt=numbers, padding=3, fontsize=9.0)
    axes.margins(x=0.18)  # for the numbers of the longest bars
    axes.invert_yaxis()
    axes.axvline(0.0, color=text_color(), linewidth=0.8)
    axes.grid(axis="y", visible=False)
    axes.set_title(title)
    axes.set_xlabel(label)
    return figure


def write_png(path: str | os.PathLike[str], draw: Callable[[], Figure], *, by: str) -> None:
    """Writes the figure that a function creates to a file, which is replaced atomically.

    Args:
      path: The path, in an existing folder.
      draw: Creates the figure.
      by: The function that draws, for the error without matplotlib.
    """
    buffer = io.BytesIO()
    with _arguments.needed("matplotlib", extra="evaluation", by=by), theme():
        draw().savefig(buffer, format="png", dpi=150)
    _files.write_bytes(path, [buffer.getvalue()])
