"""The values, the table and the plot of a partial dependence."""

import numpy as np
import pytest

from tfr_smooth.training import PartialDependence, partial_dependence

OF_NUMBERS = PartialDependence("price", [1.0, 2.5], [0.5, -0.25], [1.0, 2.0, 2.5])
OF_TEXTS = PartialDependence("$a$", ["x", "y"], [0.5, 0.25], ["x", "x", "y", "z"])
OF_DATES = PartialDependence("day", np.array(["2024-01-01", "2024-03-01"], "M8[s]"), [1.0, 2.0], np.array([], "M8[s]"))


def test_tables_have_shares_of_texts():
    assert str(OF_NUMBERS).splitlines() == ["price  mean score", "1          0.5000", "2.5       -0.2500"]
    assert str(OF_TEXTS).splitlines()[1:] == ["x        0.5000        50%", "y        0.2500        25%"]
    assert str(OF_DATES).splitlines()[1].startswith("2024-01-01")


def test_plots_have_ticks_or_shares(tmp_path):
    (axes,) = partial_dependence.draw(OF_NUMBERS).axes
    curve, ticks = axes.get_lines()
    assert curve.get_ydata().tolist() == [0.5, -0.25] and ticks.get_xdata().tolist() == [1.0, 2.0, 2.5]
    (axes,) = partial_dependence.draw(OF_TEXTS).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x (50%)", "y (25%)"] and axes.yaxis_inverted()
    assert axes.get_title() == r"Mean score by \$a\$"
    for dependence in (OF_NUMBERS, OF_TEXTS, OF_DATES):
        dependence.plot(tmp_path / "plot.png")


def test_values_are_quantiles_or_the_most_frequent_ones():
    values = np.array([3.0, 1.0, 1.0, 2.0, 9.0, 3.0, 3.0])
    assert partial_dependence.at_quantiles(values, 9).tolist() == [1.0, 2.0, 3.0, 9.0]
    assert partial_dependence.at_quantiles(values, 3).tolist() == [1.0, 3.0, 9.0]
    assert partial_dependence.most_frequent(values, 2).tolist() == [3.0, 1.0]


def test_there_is_a_score_for_each_value():
    with pytest.raises(
        ValueError, match="`scores` must be 2 numbers, one for each of `values` and at least one, got 1"
    ):
        PartialDependence("price", [1.0, 2.0], [0.5], [])
