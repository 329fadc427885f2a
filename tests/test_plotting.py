"""Colors and markers of relaxations, themes, and the light and dark files of a figure."""

import itertools

import matplotlib
import pytest
from matplotlib.figure import Figure
from PIL import Image

from tfr_smooth import _plotting, losses


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_relaxations_differ_in_color_and_marker(theme):
    with _plotting.theme(theme):
        looks = [_plotting.look(name) for name in losses.NAMES if name.endswith("_map")]
        for first, second in itertools.combinations([*looks, _plotting.look("list_net")], 2):
            assert (first.color, first.line) != (second.color, second.line)
        assert len({look.marker for look in looks}) == len(looks)


def test_a_relaxation_has_the_same_color_in_all_plots_and_names_differ():
    names = ["smoothi_ndcg", "list_net", "smoothi_ndcg@10", "smoothi_map", "list_mle", "approx_ndcg:alpha=1.0"]
    looks = _plotting.looks(names)
    assert all(looks[name].color == _plotting.look(name).color for name in names)
    assert len({(look.color, look.marker, look.line) for look in looks.values()}) == len(names)
    colors = _plotting.colors(["loss", "smoothi_ndcg", "ndcg"])
    assert colors["smoothi_ndcg"] == _plotting.look("smoothi_map").color and len(set(colors.values())) == 3
    settings = _plotting.looks([f"smoothi_ndcg:alpha={alpha}" for alpha in range(10)])
    assert len({(look.color, look.line) for look in settings.values()}) == 10


def test_both_themes_are_saved_and_matplotlib_settings_restored(tmp_path):
    before = dict(matplotlib.rcParams)
    paths = _plotting.save_both(tmp_path / "plot.png", lambda: Figure(figsize=(2.0, 1.0)))
    assert [path.name for path in paths] == ["plot.png", "plot_dark.png"]
    pixels = []
    for path in paths:
        with Image.open(path) as image:
            pixels.append(image.convert("RGB").getpixel((0, 0)))
    assert pixels == [(255, 255, 255), (0x1E, 0x21, 0x29)]
    assert dict(matplotlib.rcParams) == before
