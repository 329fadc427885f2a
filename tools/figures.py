"""The figures in docs/images: colors, a light and a dark theme, and their files."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from PIL import Image

from tfr_smooth import _files

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
    settings: Any = _STYLE | _THEMES[name]
    with matplotlib.rc_context(settings):
        yield


def text_color() -> str:
    """The color of the text in the current theme."""
    return str(matplotlib.rcParams["text.color"])


def bars(values: Mapping[str, float], top: int, *, title: str, label: str, numbers: str) -> Figure:
    """Returns a figure of horizontal bars, the first one at the top.

    Args:
      values: The values by name.
      top: The number of bars, at most.
      title: The title.
      label: What the values are.
      numbers: The format of the numbers at the bars, such as "{:.2f}".
    """
    names, lengths = list(values)[:top], list(values.values())[:top]
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


def save_both(path: str | os.PathLike[str], draw: Callable[[], Figure]) -> list[Path]:
    """Writes a figure for the light scheme to NAME.png and for the dark scheme to NAME_dark.png, in 128 colors.

    Args:
      path: The path of NAME.png, in an existing folder.
      draw: Creates the figure; called once per theme.

    Returns:
      Both paths.
    """
    path = Path(path)
    written = []
    for name, target in (("light", path), ("dark", path.with_name(f"{path.stem}_dark{path.suffix}"))):
        drawn, small = io.BytesIO(), io.BytesIO()
        with theme(name):
            draw().savefig(drawn, format="png", dpi=150)
        Image.open(drawn).convert("RGB").quantize(128).save(small, format="png", optimize=True)
        _files.write_bytes(target, [small.getvalue()])
        written.append(target)
    return written
