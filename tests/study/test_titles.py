"""Readable names of rankers and measures."""

import pytest

from tfr_smooth import losses
from tfr_smooth.study import RANKERS
from tfr_smooth.study.titles import measure_title, ranker_title


@pytest.mark.parametrize(
    ("label", "title"),
    [
        ("smoothi_ndcg", "SmoothI-NDCG"),
        ("approx_ndcg:alpha=1.0 + bm25", "ApproxNDCG (alpha=1.0) + BM25"),
        ("soft_precision:topn=5", "SoftPrecision (topn=5)"),
        ("softsort_map (ensemble)", "SoftSort-MAP (ensemble)"),
        ("lambda_loss", "LambdaLoss"),
        ("list_mle", "ListMLE"),
        ("lambdamart", "LambdaMART"),
        ('ridge:grid={"a":1}', 'Ridge regression (grid={"a":1})'),
        ("mine + first stage", "mine + first stage"),
    ],
)
def test_rankers_are_named_as_in_papers(label, title):
    assert ranker_title(label) == title


def test_titles_are_distinct_and_no_identifiers():
    titles = [ranker_title(label) for label in dict.fromkeys([*RANKERS, *losses.NAMES])]
    assert len(set(titles)) == len(titles)
    assert [title for title in titles if "_" in title] == []


def test_measures_are_named_as_in_papers():
    assert [*map(measure_title, ("ndcg", "recip_rank", "P_10"))] == ["NDCG", "MRR", "P@10"]
