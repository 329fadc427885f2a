"""The files of the figures in docs/images."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

from tfr_smooth import _files, _plotting


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
        with _plotting.theme(name):
            draw().savefig(drawn, format="png", dpi=150)
        Image.open(drawn).convert("RGB").quantize(128).save(small, format="png", optimize=True)
        _files.write_bytes(target, [small.getvalue()])
        written.append(target)
    return written
