"""Measures by segment: means, errors and counts, and the table."""

import pytest

from tfr_smooth.evaluation import BySegment

VALUES = {"ndcg": {"1": 0.5, "2": 1.0, "3": 0.25, "4": 0.75}, "recip_rank": dict.fromkeys("1234", 1.0)}
PARTS = BySegment(VALUES, {"1": "a", "2": 7, "3": 7, "4": 7, "5": "of no query"})


def test_the_table_has_the_largest_segment_first():
    assert str(PARTS).splitlines() == [
        "segment  queries             ndcg       recip_rank",
        "7              3  0.6667 ± 0.2205  1.0000 ± 0.0000",
        "a              1           0.5000           1.0000",
    ]


def test_a_missing_value_is_not_the_text_missing():
    parts = BySegment(VALUES, {"1": None, "2": "missing", "3": float("nan"), "4": "None"})
    assert parts.queries == {None: 2, "missing": 1, "None": 1}
    assert [line.split()[0] for line in str(parts).splitlines()] == ["segment", "(missing)", "missing", "None"]


def test_pandas_draws_the_table():
    frame = BySegment(VALUES, {"1": None, "2": 7, "3": 7, "4": 7}).to_pandas()
    assert frame.index.tolist() == ["7", None] and frame["queries"].tolist() == [3, 1]
    assert list(frame) == ["queries", "ndcg", "ndcg_error", "recip_rank", "recip_rank_error"]
    axes = frame["ndcg"].plot.barh(xerr=1.96 * frame["ndcg_error"])
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([2 / 3, 0.5])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["7", "None"]


def test_each_query_has_a_segment():
    with pytest.raises(ValueError, match="`segments` must have each query of `values`, got none for '2'"):
        BySegment(VALUES, {"1": "a"})
