"""The light and dark files of a figure."""

import matplotlib
from matplotlib.figure import Figure
from PIL import Image

from tools.figures import save_both


def test_both_themes_are_saved_and_matplotlib_settings_restored(tmp_path):
    before = dict(matplotlib.rcParams)
    paths = save_both(tmp_path / "plot.png", lambda: Figure(figsize=(2.0, 1.0)))
    assert [path.name for path in paths] == ["plot.png", "plot_dark.png"]
    pixels = []
    for path in paths:
        with Image.open(path) as image:
            pixels.append(image.convert("RGB").getpixel((0, 0)))
    assert pixels == [(255, 255, 255), (0x1E, 0x21, 0x29)]
    assert dict(matplotlib.rcParams) == before
