"""Measures by segment: means, errors and counts, the table and the plot."""

import numpy as np
import pytest

from tfr_smooth.evaluation import BySegment, segments

VALUES = {"ndcg": {"1": 0.5, "2": 1.0, "3": 0.25, "4": 0.75}, "recip_rank": dict.fromkeys("1234", 1.0)}
PARTS = BySegment(VALUES, {"1": "a", "2": 7, "3": 7, "4": 7, "5": "of no query"})


def test_the_table_has_the_largest_segment_first():
    assert str(PARTS).splitlines() == [
        "segment  queries             ndcg       recip_rank",
        "7              3  0.6667 ± 0.2205  1.0000 ± 0.0000",
        "a              1           0.5000           1.0000",
    ]


def test_the_plot_has_counts_and_intervals_of_95_percent(tmp_path):
    (axes,) = segments._draw(PARTS, "ndcg", 20).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["7 (3)", "a (1)"]
    lengths = [np.ptp(segment[:, 0]) for segment in axes.collections[0].get_segments()]
    assert lengths == pytest.approx([2 * 1.96 * PARTS["7"]["ndcg"].standard_error, 0.0])
    with pytest.raises(ValueError, match="`measure` must be one of 'ndcg', 'recip_rank', got 'map'"):
        PARTS.plot(tmp_path / "plot.png", measure="map")


def test_each_query_has_a_segment():
    with pytest.raises(ValueError, match="`segments` must have each query of `values`, got none for '2'"):
        BySegment(VALUES, {"1": "a"})
