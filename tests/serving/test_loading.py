"""Loaded exports take plain Python values, and return what the estimators return."""

import datetime
import json
import os
import re
import shutil
import signal

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from tests.ranker.test_ranker import FRAME, NEW
from tfr_smooth import serving
from tfr_smooth.serving import loading

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


@pytest.mark.slow
def test_lists_without_documents_have_empty_rankings_and_ties_keep_their_order(loaded, lists):
    query, documents, scores = lists[0]
    assert loaded.rank(query, documents=[]) == [] and loaded.rank([query], documents=[[]]) == [[]]
    first, empty, last = loaded.rank([query] * 3, documents=[documents, [], documents])
    assert empty == []
    for ranking in (first, last):
        np.testing.assert_allclose(scores_of(ranking), scores, **CLOSE)
    assert [ranked.place for ranked in loaded.rank(query, documents=[documents[0]] * 9)] == [*range(9)]
    places = [ranked.place for ranked in loaded.rank(query, documents=[*documents[:2], *documents[:2]])]
    assert places in ([0, 2, 1, 3], [1, 3, 0, 2])


@pytest.mark.slow
def test_each_query_has_its_own_keys(loaded, lists):
    """A value of the query stands in its dict or in its documents, whatever the other queries do."""
    (query, documents, scores), (other, others, scores_of_others) = lists[:2]
    rankings = loaded.rank([query, {}], documents=[documents, [{**row, **other} for row in others]])
    np.testing.assert_allclose(scores_of(rankings[0]), scores, **CLOSE)
    np.testing.assert_allclose(scores_of(rankings[1]), scores_of_others, **CLOSE)
    # A key of the query stands for all of its documents, which otherwise have the same value.
    rows = [{**row, "age": -5 * place} for place, row in enumerate(documents)]
    np.testing.assert_allclose(scores_of(loaded.rank(query, documents=rows)), scores, **CLOSE)
    wrong = len(others) + 1
    message = f"column 'age' must be the same in all rows of a query, got different values in the query of row {wrong}."
    with pytest.raises(ValueError, match=re.escape(message)):
        loaded.rank([other, {}], documents=[others, rows])


@pytest.mark.slow
def test_a_value_has_one_meaning_however_it_is_written(loaded, lists):
    query, documents, _ = lists[0]
    for name, same, other in (
        ("listed", [datetime.date(2024, 5, 1), "2024-05-01", "2024-05-01T00:00"], None),
        ("genres", [["a", "b"], "a|b", ("a", "b")], ["c"]),
        ("image", [[1.0, 2.0, 3.0], [1, 2, 3], np.float32([1, 2, 3])], None),
    ):
        results = [
            scores_of(loaded.rank(query, documents=[{**document, name: value} for document in documents[:2]]))
            for value in [*same, other]
        ]
        for result in results[1:-1]:
            np.testing.assert_array_equal(result, results[0], err_msg=name)
        assert results[-1] != results[0], name


@pytest.mark.slow
def test_a_wrong_value_or_a_missing_column_is_named(loaded, lists):
    query, documents, _ = lists[0]
    for changed, message in (
        ({"price": "cheap"}, r"column 'price'.* numbers.*'cheap'.* row 2"),
        ({"color": np.datetime64("2024-01-01")}, r"column 'color' must be text, numbers or booleans, got .* in row 2"),
        ({"listed": "yesterday"}, r"column 'listed' must be dates, got 'yesterday' in row 2"),
        ({"image": [1.0, 2.0]}, r"column 'image' must be vectors"),
    ):
        with pytest.raises(ValueError, match=message):
            loaded.rank(query, documents=[*documents[:2], {**documents[2], **changed}])
    without = {name: value for name, value in documents[1].items() if name != "price"}
    with pytest.raises(ValueError, match=r"column 'price' must be in the query or in each document .* in row 1"):
        loaded.rank(query, documents=[documents[0], without])
    for given, rows in (
        (None, documents),
        ([query] * 2, documents[:1]),
        ("age", documents),
        (query, documents[0]),
        ([query] * 2, [documents, None]),
    ):
        with pytest.raises(ValueError, match="column|`documents`|`query`"):
            loaded.rank(given, documents=rows)


def test_the_last_version_is_loaded_and_others_are_refused(exported, tmp_path):
    for version in ("9", "10"):
        shutil.copytree(exported.path, tmp_path / version)
    (tmp_path / "11").mkdir()  # not uploaded yet
    assert serving.load(tmp_path).path == tmp_path / "10"
    assert serving.load(str(tmp_path / "9")).card["data"]["queries"] == 4
    (tmp_path / "10" / "assets.extra" / "model_card.json").unlink()
    for wrong in (tmp_path, tmp_path / "11", tmp_path / "nowhere"):
        with pytest.raises(ValueError, match="`path` must be"):
            serving.load(wrong)


DAMAGES = {
    "no signatures": lambda card: card.pop("signatures"),
    "other signatures": lambda card: card["signatures"].pop("rank"),
    "a feature less": lambda card: card["features"].pop(),
    "another kind": lambda card: card["features"][0].update(kind="nimber"),
    "a huge shape": lambda card: card["features"][0].update(kind="vector", shape=[10**9]),
}


def test_a_damaged_card_is_refused_with_its_file(exported, tmp_path):
    file = shutil.copytree(exported.path, tmp_path / "1") / "assets.extra" / "model_card.json"
    text = file.read_text()
    for damage in ("no JSON", *DAMAGES):
        card = json.loads(text)
        DAMAGES.get(damage, lambda card: None)(card)
        file.write_text("{" if damage == "no JSON" else json.dumps(card))
        with pytest.raises(ValueError, match=rf"`path` must be an export .*{re.escape(str(file))}: ") as caught:
            serving.load(tmp_path)
        assert "\n" not in str(caught.value)


def test_a_forked_process_is_refused_in_one_line(exported, tmp_path):
    path, model = shutil.copytree(exported.path, tmp_path / "1"), exported.model
    ranker = serving.load(path)
    for call in (
        lambda: ranker.rank(documents=[[1.0, 2.0, 3.0]]),
        lambda: serving.load(path),
        lambda: serving.export_ranker(model, tmp_path / "again", num_features=3),
        lambda: serving.export_onnx(model, tmp_path / "ranker.onnx"),
    ):
        reading, writing = os.pipe()
        if not (child := os.fork()):
            signal.alarm(20)  # TensorFlow would wait forever
            try:
                call()
            except RuntimeError as error:
                os.write(writing, str(error).encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(writing)
        (line,) = os.read(reading, 10_000).decode().splitlines()
        assert "TensorFlow does not work in a process forked from one that used it" in line
        os.close(reading)
    assert len(ranker.rank(documents=[[1.0, 2.0, 3.0]])) == 1


class Sum(tf.keras.Model):
    def call(self, inputs, training=False):
        return inputs["price (USD)"][:, :, 0] + inputs["size"][:, :, 1] + inputs["length"]


def test_other_models_are_loaded_with_the_features_of_their_specs(tmp_path):
    price, size, length = (tf.io.FixedLenFeature([size], tf.float32) for size in (1, 2, 1))
    specs = {"example_feature_spec": {"price (USD)": price, "size": size}, "context_feature_spec": {"length": length}}
    loaded = serving.load(serving.export_ranker(Sum(), tmp_path / "sum", **specs, warmup=False))
    documents = [{"price (USD)": price, "size": [0, 2]} for price in (1, 5, None)]
    ranking = loaded.rank({"length": 10}, documents=documents)
    assert [(each.place, each.score) for each in ranking] == [(1, 17), (0, 13), (2, np.float32(serving.INVALID_SCORE))]


@pytest.mark.slow
def test_recommendations_are_those_of_the_recommender(recommender, monkeypatch):
    fitted, path = recommender
    loaded, items, histories = serving.load(path), [f"i{number}" for number in range(24)], [["i0", "i2"], ["i5"], []]
    monkeypatch.setattr(loading, "_USERS", 2)  # in parts
    for call in (
        {"users": [100, 101, 102], "topn": 3, "exclude": set(items[:9])},
        {"users": [100, 101], "only": []},
        {"users": [100, 101], "only": pd.Series([items[3:9], items[:9]], index=[7, 8])},
        {"histories": histories * 3, "only": items[2:12], "exclude": [[], items[:12], [items[4]]] * 3},
    ):
        expected = fitted.recommend(**call)
        for recommended, of_user, scores in zip(loaded.recommend(**call), expected.items, expected.scores, strict=True):
            is_item = of_user != ""
            assert [entry.item for entry in recommended] == of_user[is_item].tolist()
            np.testing.assert_allclose([entry.score for entry in recommended], scores[is_item], rtol=1e-5, atol=1e-5)
    assert loaded.recommend(iter([100, 101])) == loaded.recommend(["100", 101.0])
    assert loaded.recommend(["99999"]) == loaded.recommend(histories=[[]])


@pytest.mark.slow
def test_malformed_users_histories_and_filters_are_refused_by_name(recommender):
    loaded = serving.load(recommender[1])
    wrong = [{"users": users} for users in ([[100]], [{}], [None], 100, np.array([[100]]), {100: 1}, ["a"])]
    wrong += [{"histories": histories} for histories in (["i0"], [["i0"], None], [["i0", None]], "i0", 5, [[["i0"]]])]
    filters = [[["i0"]], [["i0"]] * 3, [["i0"], None], ["i0", None], [["i0"], "i0"], "i0", 5, {"i0": 1}]
    wrong += [{"users": [100, 101], name: given} for name in ("exclude", "only") for given in filters]
    for call in (*wrong, {"users": [100], "topn": 0}):
        with pytest.raises(ValueError, match=f"`{[*call][-1]}` must"):
            loaded.recommend(**call)
    for call in ({}, {"users": [100], "histories": []}):
        with pytest.raises(ValueError, match="`users`"):
            loaded.recommend(**call)
