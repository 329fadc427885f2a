"""Hard negatives."""

import numpy as np
import pandas as pd
import pytest

from experiments import text_collections
from tests.text.conftest import made_up
from tfr_smooth import text
from tfr_smooth.text import mining

TEXTS, ASKED, LABELS = made_up()
DOCUMENTS = [" ".join(each) for each in TEXTS.values()]


@pytest.fixture(scope="module")
def retrievers(single):
    """Returns a retriever's argument, and the scores of documents of a query."""

    def bm25(query, documents):
        found = text_collections.best_documents(pd.Series([query]), pd.Series(documents), topn=len(documents))
        return found.set_index("doc_id")["score"].reindex(range(len(documents))).fillna(-np.inf).to_numpy()

    def cosines(query, documents):
        return single.predict({"query": [query] * len(documents), "text": documents})

    return {"bm25": ("bm25", bm25), "single": (single, cosines)}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *(("bm25", each) for each in ({}, {"range_min": 3}, {"relative_margin": 0.1}, {"negatives": 100})),
        pytest.param("single", {"range_min": 3, "relative_margin": 0.1}, marks=pytest.mark.slow),
    ],
)
def test_the_best_unjudged_documents_are_mined(retrievers, table, name, options):
    (retriever, scores_of), some = retrievers[name], table.groupby("query_id").head(8)
    found = text.mine_negatives(retriever, some, DOCUMENTS, query_id="query_id", **{"negatives": 4, **options})
    by_query = {query: rows for query, rows in some.groupby("query_id") if rows["label"].max() > 0}
    assert set(found["query_id"]) == set(by_query) and [*found] == ["query", "text", "label", "query_id"]
    corpus, any_mined = [*dict.fromkeys([*some["text"], *DOCUMENTS])], False
    for query, rows in by_query.items():
        of_query = found[found["query_id"] == query].iloc[:, :3].reset_index(drop=True)
        kept, mined = of_query.iloc[: len(rows)], of_query.iloc[len(rows) :]
        pd.testing.assert_frame_equal(kept, rows[["query", "text", "label"]].reset_index(drop=True))
        assert (mined["label"] == 0).all() and (mined["query"] == rows["query"].iloc[0]).all()
        scores = pd.Series(scores_of(rows["query"].iloc[0], corpus), corpus)
        most = (
            (1.0 - options["relative_margin"]) * scores[rows.loc[rows["label"] > 0, "text"]].min()
            if "relative_margin" in options
            else np.inf
        )
        others = scores.drop(rows["text"].unique()).sort_values(ascending=False)
        expected = others[options.get("range_min", 0) :]
        expected = expected[(expected <= most) & np.isfinite(expected)][: options.get("negatives", 4)]
        np.testing.assert_allclose(scores[mined["text"]], expected, atol=1e-4)  # ties have any order
        assert mined["text"].is_unique and not set(mined["text"]) & set(rows["text"])
        any_mined |= len(mined) > 0
    assert any_mined


@pytest.mark.parametrize(("margin", "mined"), [(0.0, ["below", "near"]), (0.2, ["below"])])
def test_the_margin_of_negative_scores_is_below_them(single, monkeypatch, margin, mined):
    scores = {"relevant": -0.5, "above": -0.4, "near": -0.55, "below": -0.7}
    scorer = lambda *_: lambda queries: np.array([[*scores.values()]] * len(queries))  # noqa: E731
    monkeypatch.setattr(mining, "_scorer", scorer)
    table = {"query": ["q"], "text": ["relevant"], "label": [1]}
    found = text.mine_negatives(single, table, list(scores)[1:], relative_margin=margin)
    assert sorted(found["text"][1:]) == mined


@pytest.mark.slow
def test_training_takes_mined_negatives(single, table):
    found = text.mine_negatives(single, table, DOCUMENTS, query_id="query_id")
    ranker = text.TextRanker(**{**single.get_params(), "epochs": 1})
    assert ranker.fit(found, query_id="query_id", init_model=single).history_["loss"][0] > 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"retriever": "bm26"}, "`retriever` must be one of .*, got 'bm26'"),
        ({"negatives": 0}, "`negatives` must be"),
        ({"range_min": -1}, "`range_min` must be"),
        ({"relative_margin": 1.0}, "`relative_margin` must be"),
        ({"documents": "lift"}, "`documents` must be a list of texts"),
        ({"text": "content"}, "`text` must be one of"),
    ],
)
def test_bad_arguments_are_refused(table, options, message):
    arguments = {"retriever": "bm25", "X": table, **options}
    with pytest.raises(ValueError, match=message):
        text.mine_negatives(**arguments)
