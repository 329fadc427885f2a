"""Hard negatives."""

import numpy as np
import pandas as pd
import pytest

from experiments import text_collections
from tests.text.conftest import made_up
from tfr_smooth import text

DOCUMENTS = [" ".join(each) for each in made_up()[0].values()]


@pytest.mark.parametrize(
    ("name", "skipped", "margin"), [("bm25", 0, None), pytest.param("single", 3, 0.1, marks=pytest.mark.slow)]
)
def test_the_best_unjudged_documents_are_mined(single, table, name, skipped, margin):
    def scores_of(query, documents):
        if name == "single":
            return single.predict({"query": [query] * len(documents), "text": documents})
        found = text_collections.best_documents(pd.Series([query]), pd.Series(documents), topn=len(documents))
        return found.set_index("doc_id")["score"].reindex(range(len(documents))).fillna(-np.inf).to_numpy()

    some, retriever = table.groupby("query_id").head(8), single if name == "single" else name
    options = {"negatives": 4, "range_min": skipped, "relative_margin": margin}
    found = text.mine_negatives(retriever, some, DOCUMENTS, query_id="query_id", **options)
    by_query = {query: rows for query, rows in some.groupby("query_id") if rows["label"].max() > 0}
    assert set(found["query_id"]) == set(by_query) and [*found] == ["query", "text", "label", "query_id"]
    corpus, any_mined = [*dict.fromkeys([*some["text"], *DOCUMENTS])], False
    for query, rows in by_query.items():
        of_query = found[found["query_id"] == query].iloc[:, :3].reset_index(drop=True)
        kept, mined = of_query.iloc[: len(rows)], of_query.iloc[len(rows) :]
        pd.testing.assert_frame_equal(kept, rows[["query", "text", "label"]].reset_index(drop=True))
        assert (mined["label"] == 0).all() and (mined["query"] == rows["query"].iloc[0]).all()
        scores = pd.Series(scores_of(rows["query"].iloc[0], corpus), corpus)
        most = np.inf if margin is None else (1.0 - margin) * scores[rows.loc[rows["label"] > 0, "text"]].min()
        expected = scores.drop(rows["text"].unique()).sort_values(ascending=False)[skipped:]
        expected = expected[(expected <= most) & np.isfinite(expected)][:4]
        np.testing.assert_allclose(scores[mined["text"]], expected, atol=1e-4)  # ties have any order
        assert mined["text"].is_unique and not set(mined["text"]) & set(rows["text"])
        any_mined |= len(mined) > 0
    assert any_mined


def test_bad_arguments_are_refused(table):
    bad = {"retriever": "bm26", "negatives": 0, "range_min": -1, "relative_margin": 1.0, "documents": "a", "text": "b"}
    for name, value in bad.items():
        with pytest.raises(ValueError, match=f"`{name}` must be"):
            text.mine_negatives(**{"retriever": "bm25", "X": table, name: value})
