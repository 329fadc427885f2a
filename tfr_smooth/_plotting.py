"""The look of all plots: one color and marker per relaxation, a light and a dark theme, and small PNG files."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfr_smooth import _files, rankings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colors, which color-blind people can distinguish. The text color, theirs in black, completes them.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GRAY = "#808080"  # readable in both themes
_MARKERS = "osD^vPX*p<>"
_LINES = ("-", "--", ":", "-.")

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


@dataclasses.dataclass(frozen=True)
class Look:
    """How a curve or a point is drawn."""

    color: str
    marker: str = "o"
    line: str = "-"

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of `Axes.plot`. Markers on broken lines are hollow."""
        hollow = {} if self.line == "-" else {"markerfacecolor": background()}
        return {"color": self.color, "marker": self.marker, "linestyle": self.line, **hollow}


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


def background() -> str:
    """The background color in the current theme."""
    import matplotlib

    return str(matplotlib.rcParams["axes.facecolor"])


def relaxation(name: str) -> str | None:
    """Returns the relaxation of a loss, metric or ranker, or None.

    Example:
      >>> relaxation("smoothi_ndcg:alpha=10"), relaxation("list_net")
      ('smoothi', None)
    """
    prefix = name.partition("_")[0]
    return prefix if prefix in rankings.RANKINGS else None


def look(name: str) -> Look:
    """Returns the look of a loss, metric or ranker: that of its relaxation, or gray."""
    if (kind := relaxation(name)) is None:
        return Look(GRAY)
    place, palette = list(rankings.RANKINGS).index(kind), (*COLORS, text_color())
    return Look(palette[place % len(palette)], _MARKERS[place % len(_MARKERS)], _LINES[place // len(palette)])


def looks(names: Sequence[str]) -> dict[str, Look]:
    """Returns looks that differ, for curves in the same plot.

    Further names of the same relaxation have broken lines, and names without a relaxation are gray with different
    markers. If all names have the same relaxation, such as in a sweep of its temperature, the colors differ.
    """
    kinds = {name: relaxation(name) for name in names}
    if len(set(kinds.values())) == 1 and len(kinds) > 1:
        palette = (*COLORS, text_color())
        styles = ((color, line) for line, color in itertools.product(_LINES, palette))
        return {
            name: Look(color, _MARKERS[place % len(_MARKERS)], line)
            for place, (name, (color, line)) in enumerate(zip(kinds, itertools.cycle(styles), strict=False))
        }
    counts: dict[str | None, Iterator[int]] = {kind: itertools.count() for kind in kinds.values()}
    found = {}
    for name, kind in kinds.items():
        place = next(counts[kind])
        marker = _MARKERS[place % len(_MARKERS)] if kind is None else look(name).marker
        found[name] = Look(look(name).color, marker, _LINES[(place + (kind is None)) % len(_LINES)])
    return found


def colors(names: Sequence[str]) -> dict[str, str]:
    """Returns the color of each relaxation's first name, and the other colors in turn for all other names."""
    firsts = {relaxation(name): name for name in reversed(names) if relaxation(name)}
    own = {name: look(name).color for name in firsts.values()}
    others = itertools.cycle([color for color in COLORS if color not in own.values()] or COLORS)
    return {name: own.get(name) or next(others) for name in names}


def on_color(rgb: Sequence[float]) -> str:
    """Returns black or white, whichever is easier to read on a color."""
    return "black" if 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] > 0.5 else "white"


def save_both(path: str | os.PathLike[str], draw: Callable[[], Figure]) -> list[Path]:
    """Writes a figure for the light scheme to NAME.png and for the dark scheme to NAME_dark.png, in 128 colors.

    Args:
      path: The path of NAME.png, in an existing folder.
      draw: Creates the figure; called once per theme.

    Returns:
      Both paths.
    """
    from PIL import Image  # matplotlib needs it too

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
