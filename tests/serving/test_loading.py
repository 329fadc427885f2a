"""Loaded exports take plain Python values, and return what the estimators return."""

import shutil

import numpy as np
import pandas as pd
import pytest

from tests.ranker.test_ranker import FRAME, NEW
from tfr_smooth import serving

CLOSE = {"rtol": 1e-6, "atol": 1e-6}
COLUMNS = [name for name in FRAME.columns if name not in ("query", "label", "age")]


@pytest.fixture(scope="module")
def loaded(path):
    return serving.load(path)


def plain(value):
    """A value as JSON or a database has it."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return None if not isinstance(value, list) and pd.isna(value) else value


def documents_of(frame):
    """The documents as dicts of plain values, with a key that is no column."""
    rows = [
        {name: plain(value) for name, value in zip(COLUMNS, row, strict=True)}
        for row in frame[COLUMNS].itertuples(index=False)
    ]
    return [{"url": f"/{place}", **row} for place, row in enumerate(rows)]


def scores_of(ranking):
    """The scores in the order of the given documents."""
    return [document.score for document in sorted(ranking, key=lambda document: document.place)]


@pytest.fixture(scope="module")
def lists(ranker):
    """The query, the documents and the scores of each list of the new table."""
    frames = [frame for _, frame in NEW.groupby("query", sort=False)]
    return [({"age": int(frame["age"].iloc[0])}, documents_of(frame), ranker.predict(frame)) for frame in frames]


@pytest.mark.slow
def test_one_query_several_queries_and_tables_have_the_scores_of_predict(ranker, loaded, lists):
    queries, documents, expected = zip(*lists, strict=True)
    together = loaded.rank(queries, documents=documents)
    for query, rows, scores, of_batch in zip(queries, documents, expected, together, strict=True):
        ranking = loaded.rank(query, documents=rows)
        np.testing.assert_allclose(scores_of(ranking), scores, **CLOSE)
        np.testing.assert_allclose(scores_of(of_batch), scores, **CLOSE)
        assert [document.place for document in ranking] == np.argsort(-scores, kind="stable").tolist()
        assert all(document.document is rows[document.place] for document in ranking)
    in_documents = loaded.rank(documents=[{**row, **query} for row in rows])  # the value of the list, too
    np.testing.assert_array_equal(scores_of(in_documents), scores_of(ranking))
    table = NEW.drop(columns=["query", "label"]).sample(frac=1.0, random_state=0)
    queries = NEW["query"][table.index]
    np.testing.assert_allclose(loaded.score(table, qid=queries), ranker.predict(table, qid=queries), **CLOSE)
    assert loaded.score(table[:0], qid=[]).shape == (0,)
    first, empty = loaded.rank(lists[0][0], documents=[lists[0][1][0]] * 9), loaded.rank(lists[0][0], documents=[])
    assert [ranked.place for ranked in first] == [*range(9)] and empty == []  # ties keep their order


@pytest.mark.slow
def test_wrong_requests_are_refused_by_the_name_of_the_column(loaded, lists):
    query, documents, _ = lists[0]
    without = {name: value for name, value in documents[1].items() if name != "price"}
    rows = [{**row, "age": -5 * place} for place, row in enumerate(documents)]
    for given, asked, message in (
        (query, [documents[0], {**documents[1], "price": "cheap"}], r"column 'price'.* numbers.*'cheap'.* row 1"),
        (query, [documents[0], without], r"column 'price' must be in the query or in each document .* in row 1"),
        ({}, rows, "column 'age' must be the same in all rows of a query, got different values in the query of row 1"),
        ([query] * 2, documents[:1], "`documents`"),
        ("age", documents, "`query` must be a dict of columns"),
    ):
        with pytest.raises(ValueError, match=message):
            loaded.rank(given, documents=asked)


def test_the_last_version_is_loaded_and_others_are_refused(exported, tmp_path):
    for version in ("9", "10"):
        card = shutil.copytree(exported.path, tmp_path / version) / "assets.extra" / "model_card.json"
    (tmp_path / "11").mkdir()  # not uploaded yet
    assert serving.load(tmp_path).path == tmp_path / "10"
    assert serving.load(str(tmp_path / "9")).card["data"]["queries"] == 4
    card.write_text("{")
    for wrong in (tmp_path, tmp_path / "11", tmp_path / "nowhere"):
        with pytest.raises(ValueError, match="`path` must be"):
            serving.load(wrong)


@pytest.mark.slow
def test_recommendations_are_those_of_the_recommender(recommender):
    fitted, path = recommender
    loaded, items = serving.load(path), [f"i{number}" for number in range(24)]
    for call in (
        {"users": [100, 101, 102], "topn": 3, "exclude": set(items[:9])},
        {"histories": [["i0", "i2"], ["i5"], []], "only": items[2:12], "exclude": [[], items[:12], [items[4]]]},
    ):
        expected = fitted.recommend(**call)
        for recommended, of_user, scores in zip(loaded.recommend(**call), expected.items, expected.scores, strict=True):
            is_item = of_user != ""
            assert [entry.item for entry in recommended] == of_user[is_item].tolist()
            np.testing.assert_allclose([entry.score for entry in recommended], scores[is_item], rtol=1e-5, atol=1e-5)
    for call in ({"users": [None]}, {"users": [100], "only": [["i0"]] * 3}, {"users": [100], "topn": 0}):
        with pytest.raises(ValueError, match=f"`{[*call][-1]}` must"):
            loaded.recommend(**call)
    with pytest.raises(ValueError, match="One of `users` and `histories`"):
        loaded.recommend()
