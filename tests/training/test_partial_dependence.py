"""The values, the table and the plot of a partial dependence."""

import numpy as np
import pytest

from tfr_smooth.training import PartialDependence, explanation

OF_NUMBERS = PartialDependence("price", [1.0, 2.5], [0.5, -0.25], [1.0, 2.0, 2.5])
OF_TEXTS = PartialDependence("$a$", ["x", "y"], [0.5, 0.25], ["x", "x", "y", "z"])
OF_DATES = PartialDependence("day", np.array(["2024-01-01", "2024-03-01"], "M8[s]"), [1.0, 2.0], np.array([], "M8[s]"))


def test_tables_have_a_line_per_value():
    assert str(OF_NUMBERS).splitlines() == ["price  mean score", "1          0.5000", "2.5       -0.2500"]
    assert str(OF_DATES).splitlines()[1].startswith("2024-01-01 00:00:00")


def test_plots_have_ticks_or_shares(tmp_path):
    (axes,) = explanation.draw_dependence(OF_NUMBERS).axes
    ticks, curve = axes.get_lines()
    assert curve.get_ydata().tolist() == [0.5, -0.25] and ticks.get_xdata().tolist() == [1.0, 2.0, 2.5]
    (axes,) = explanation.draw_dependence(OF_TEXTS).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["x (50%)", "y (25%)"]
    assert axes.get_xlabel() == r"\$a\$"
    for dependence in (OF_NUMBERS, OF_TEXTS, OF_DATES):
        dependence.plot(tmp_path / "plot.png")


def test_there_is_a_score_for_each_value():
    with pytest.raises(ValueError, match="`scores` must be 2, one for each of `values`, got 1"):
        PartialDependence("price", [1.0, 2.0], [0.5], [])
