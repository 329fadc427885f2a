"""Loaded exports take plain Python values, and return what the estimators return."""

import concurrent.futures
import datetime
import functools
import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tfr_smooth
from tests import helpers
from tests.ranker.test_ranker import FRAME, NEW, SMALL, numbers
from tests.recommendation.groups import likes
from tfr_smooth import _keras, recommendation, serving
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


def documents_of(frame, **changed):
    """The documents as dicts of plain values, with a key that is no column."""
    rows = [
        {name: plain(value) for name, value in zip(COLUMNS, row, strict=True)}
        for row in frame[COLUMNS].itertuples(index=False)
    ]
    return [{"url": f"/{place}", **row, **changed} for place, row in enumerate(rows)]


def scores_of(ranking):
    """The scores in the order of the given documents."""
    return [document.score for document in sorted(ranking, key=lambda document: document.place)]


@pytest.fixture(scope="module")
def lists(ranker):
    """The query, the documents and the scores of each list of the new table."""
    frames = [frame for _, frame in NEW.groupby("query", sort=False)]
    return [({"age": int(frame["age"].iloc[0])}, documents_of(frame), ranker.predict(frame)) for frame in frames]


def test_one_query_several_queries_and_tables_have_the_scores_of_predict(ranker, loaded, lists):
    queries, documents, expected = zip(*lists, strict=True)
    together = loaded.rank(queries, documents=documents)
    for query, rows, scores, of_batch in zip(queries, documents, expected, together, strict=True):
        ranking = loaded.rank(query, documents=rows)
        np.testing.assert_allclose(scores_of(ranking), scores, **CLOSE)
        np.testing.assert_allclose(scores_of(of_batch), scores, **CLOSE)
        assert [document.place for document in ranking] == np.argsort(-scores, kind="stable").tolist()
        assert all(document.document is rows[document.place] for document in ranking)
        # A value of the list may also be given with each document.
        np.testing.assert_array_equal(
            scores_of(loaded.rank(documents=[{**row, **query} for row in rows])), scores_of(ranking)
        )
    table = NEW.drop(columns=["query", "label"]).sample(frac=1.0, random_state=0)
    queries = NEW["query"][table.index]
    np.testing.assert_allclose(loaded.score(table, qid=queries), ranker.predict(table, qid=queries), **CLOSE)
    with pytest.raises(ValueError, match="column 'age' must be the same in all rows of a query, got different"):
        loaded.score(table.sort_values("age"), group=[1, len(table) - 1])
    assert loaded.score(table[:0], qid=[]).shape == (0,)
    one = table.assign(age=30)
    np.testing.assert_allclose(loaded.score(one), ranker.predict(one, qid=[0] * len(one)), **CLOSE)


def test_lists_without_documents_have_empty_rankings(loaded, lists):
    query, documents, scores = lists[0]
    assert loaded.rank(query, documents=[]) == [] and loaded.rank([query], documents=[[]]) == [[]]
    first, empty, last = loaded.rank([query] * 3, documents=[documents, [], documents])
    assert empty == []
    for ranking in (first, last):
        np.testing.assert_allclose(scores_of(ranking), scores, **CLOSE)


def test_ties_keep_their_order(loaded, lists):
    query, documents, _ = lists[0]
    assert [ranked.place for ranked in loaded.rank(query, documents=[documents[0]] * 9)] == [*range(9)]
    places = [ranked.place for ranked in loaded.rank(query, documents=[*documents[:2], *documents[:2]])]
    assert places in ([0, 2, 1, 3], [1, 3, 0, 2])


def test_each_query_has_its_own_keys(loaded, lists):
    """A value of the query stands in its dict or in its documents, whatever the other queries do."""
    queries, documents, expected = zip(*lists, strict=True)
    in_documents = [[{**row, **query} for row in rows] for query, rows in zip(queries, documents, strict=True)]
    for is_given in ([True, False], [False, True]):
        is_given = np.resize(is_given, len(lists))
        rankings = loaded.rank(
            [query if given else {} for query, given in zip(queries, is_given, strict=True)],
            documents=[documents[place] if given else in_documents[place] for place, given in enumerate(is_given)],
        )
        for ranking, scores in zip(rankings, expected, strict=True):
            np.testing.assert_allclose(scores_of(ranking), scores, **CLOSE)
    # A key of the query stands for all of its documents.
    ranking = loaded.rank(queries[0], documents=[{**row, "age": -5 * place} for place, row in enumerate(documents[0])])
    np.testing.assert_allclose(scores_of(ranking), expected[0], **CLOSE)


def test_a_value_of_the_query_that_differs_among_the_documents_is_refused(loaded, lists):
    (query, documents, _), (_, others, _) = lists[:2]
    rows = [{**row, "age": 40} for row in others]
    rows[2]["age"] = 41
    wrong = len(documents) + 2
    message = f"column 'age' must be the same in all rows of a query, got different values in the query of row {wrong}."
    with pytest.raises(ValueError, match=re.escape(message)):
        loaded.rank([query, {}], documents=[documents, rows])
    rows[2]["age"] = None
    with pytest.raises(ValueError, match=re.escape(message)):
        loaded.rank([query, {}], documents=[documents, rows])
    loaded.rank([query, {}], documents=[documents, [{**row, "age": None} for row in others]])


def test_lists_of_uneven_lengths_take_the_memory_of_their_documents(loaded, lists, monkeypatch):
    query, documents, scores = lists[0]
    rank, sizes = loaded._rank, []

    @functools.wraps(rank)
    def watched(inputs):
        sizes.append(inputs["mask"].shape.num_elements())
        return rank(inputs)

    watched.structured_input_signature = rank.structured_input_signature
    monkeypatch.setattr(loaded, "_rank", watched)
    long = documents * 60
    together = loaded.rank([query] * 202, documents=[*[documents[:1]] * 100, long, *[[]] * 1, *[documents[:1]] * 100])
    assert sum(sizes) <= 2 * (200 + len(long))
    np.testing.assert_allclose(together[0][0].score, loaded.rank(query, documents=documents[:1])[0].score, **CLOSE)
    np.testing.assert_allclose(scores_of(together[100]), scores_of(loaded.rank(query, documents=long)), **CLOSE)
    assert together[101] == [] and together[201][0].document is documents[0]


@pytest.mark.parametrize(
    "name, same, other",
    [
        ("listed", [datetime.datetime(2024, 5, 1), datetime.date(2024, 5, 1), "2024-05-01", "2024-05-01T00:00"], None),
        ("item", ["item 7"], None),
        ("genres", [["a", "b"], "a|b", ("a", "b")], ["c"]),
        ("is_new", [True, 1, 1.0, np.True_], False),
        ("price", [2, 2.0, np.float32(2.0)], -2),
        ("image", [[1.0, 2.0, 3.0], [1, 2, 3], np.float32([1, 2, 3])], None),
        ("title", ["Red (42)"], ""),
    ],
)
def test_a_value_has_one_meaning_however_it_is_written(name, same, other, loaded, lists):
    query, documents, _ = lists[0]
    results = [
        scores_of(loaded.rank(query, documents=[{**document, name: value} for document in documents[:2]]))
        for value in [*same, other]
    ]
    for result in results[1:-1]:
        np.testing.assert_array_equal(result, results[0])
    assert results[-1] != results[0]
    mixed = [{**documents[0], name: value} for value in [*same, other]]
    rankings = loaded.rank([query] * len(mixed), documents=[[document, documents[1]] for document in mixed])
    alone = loaded.rank(query, documents=[mixed[0], documents[1]])
    np.testing.assert_allclose(scores_of(rankings[0]), scores_of(alone), **CLOSE)


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"price": "cheap"}, r"column 'price'.* numbers.*'cheap'.* row 2"),
        ({"price": float("inf")}, r"column 'price' must be finite .*inf in row 2"),
        ({"color": np.datetime64("2024-01-01")}, r"column 'color' must be text, numbers or booleans, got .* in row 2"),
        ({"listed": "yesterday"}, r"column 'listed' must be dates, got 'yesterday' in row 2"),
        ({"image": [1.0, 2.0]}, r"column 'image' must be vectors"),
        ({"item": 1.5}, r"column 'item' must be text or integers, got 1.5 in row 2"),
    ],
)
def test_a_wrong_value_names_the_column_and_what_was_expected(changed, message, loaded, lists):
    query, documents, _ = lists[0]
    wrong = [*documents[:2], {**documents[2], **changed}]
    with pytest.raises(ValueError, match=message):
        loaded.rank(query, documents=wrong)


def test_a_missing_column_names_the_document(loaded, lists):
    query, documents, _ = lists[0]
    without = {name: value for name, value in documents[1].items() if name != "price"}
    with pytest.raises(ValueError, match=r"column 'price' must be in the query or in each document .* in row 1"):
        loaded.rank(query, documents=[documents[0], without])
    for call in (
        lambda: loaded.rank(documents=documents),
        lambda: loaded.rank([query] * 2, documents=documents[:1]),
        lambda: loaded.rank("age", documents=documents),
        lambda: loaded.rank(query, documents=["a"]),
        lambda: loaded.rank(query, documents=None),
        lambda: loaded.rank(query, documents=documents[0]),
        lambda: loaded.rank([query] * 2, documents=[documents, None]),
        lambda: loaded.rank([query] * 2, documents=[documents, 3]),
        lambda: loaded.rank([query, None], documents=[documents, documents]),
        lambda: loaded.score({"age": [20]}),
    ):
        with pytest.raises(ValueError, match="column|`documents`|`query`"):
            call()


def test_threads_share_an_export(loaded, lists):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        rankings = [pool.submit(loaded.rank, query, documents=documents) for query, documents, _ in lists * 5]
        for ranking, (_, _, scores) in zip(rankings, lists * 5, strict=True):
            np.testing.assert_allclose(scores_of(ranking.result()), scores, **CLOSE)


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
    "null features": lambda card: card.update(features=None),
    "a feature less": lambda card: card["features"].pop(),
    "another kind": lambda card: card["features"][0].update(kind="nimber"),
    "a huge shape": lambda card: card["features"][0].update(kind="vector", shape=[10**9]),
    "a shape of text": lambda card: card["features"][0].update(shape="[3]"),
    "another owner": lambda card: card["features"][0].update(of="user"),
}


@pytest.mark.parametrize("damage", ["no JSON", "a list", *DAMAGES])
def test_a_damaged_card_is_refused_with_its_file(damage, exported, tmp_path):
    folder = shutil.copytree(exported.path, tmp_path / "1")
    file = folder / "assets.extra" / "model_card.json"
    card = json.loads(file.read_text())
    if damage in DAMAGES:
        DAMAGES[damage](card)
    file.write_text({"no JSON": "{", "a list": "[]"}.get(damage, json.dumps(card)))
    with pytest.raises(ValueError, match=rf"`path` must be an export .*{re.escape(str(file))}: ") as caught:
        serving.load(tmp_path)
    assert "\n" not in str(caught.value)


FORKED = """
import os, signal, sys
from tfr_smooth import models, serving

ranker = serving.load(sys.argv[1])
model = models.FeedForwardScorer(hidden=[2])
model.build([None, None, 3])
calls = [
    lambda: ranker.rank(documents=[[1.0, 2.0, 3.0]]),
    lambda: ranker.score([[1.0, 2.0, 3.0]]),
    lambda: serving.load(sys.argv[1]),
    lambda: serving.export_ranker(model, sys.argv[1] + "/again", num_features=3),
    lambda: serving.export_onnx(model, sys.argv[1] + "/ranker.onnx"),
]
for call in calls:
    child = os.fork()
    if not child:
        signal.alarm(20)  # TensorFlow would wait forever
        try:
            print(call(), flush=True)
        except RuntimeError as error:
            print(error, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
print(len(ranker.rank(documents=[[1.0, 2.0, 3.0]])))
"""


def test_a_process_forked_after_loading_is_refused_in_one_line(exported, tmp_path):
    *lines, last = helpers.check_run("-c", FORKED, shutil.copytree(exported.path, tmp_path / "1")).splitlines()
    assert last == "1" and len(lines) == 5
    assert all("TensorFlow does not work in a process forked from one that used it" in line for line in lines)


def test_rankers_of_matrices_take_vectors_and_columns(tmp_path):
    features, labels, queries = numbers()
    ranker = tfr_smooth.Ranker(**{**SMALL, "validation_fraction": 0.0}).fit(features, labels, qid=queries)
    if _keras.IS_KERAS_3:  # Keras 2 has no signatures. Here, the model was not called before.
        ranker.model_.export(str(tmp_path / "keras"), verbose=False)
    loaded = serving.load(ranker.export(tmp_path, warmup=False))
    new = features[:5]
    assert np.isnan(features).any()
    expected = ranker.predict(new, qid=[0] * 5)
    rows = [[None if np.isnan(value) else value for value in row] for row in new.tolist()]
    named = [dict(zip("123", row, strict=True)) for row in rows]
    for documents in (rows, named, new):
        np.testing.assert_allclose(scores_of(loaded.rank(documents=documents)), expected, **CLOSE)
    if _keras.IS_KERAS_3:
        inputs = {"features": tf.constant(new[np.newaxis], tf.float32), "mask": tf.ones([1, 5], tf.bool)}
        by_keras = tf.saved_model.load(str(tmp_path / "keras"))
        np.testing.assert_allclose(by_keras.serve(inputs)[0], expected, **CLOSE)
    np.testing.assert_allclose(loaded.score(features, qid=queries), ranker.predict(features, qid=queries), **CLOSE)
    with pytest.raises(ValueError, match="'features' must be vectors of 3 numbers, got 2"):
        loaded.rank(documents=[[1.0, 2.0]])


class Ints(tf.keras.Model):
    def call(self, inputs, training=False):
        return tf.cast(inputs["price (USD)"], tf.float32)[:, :, 0]


class Sum(tf.keras.Model):
    def call(self, inputs, training=False):
        return inputs["price (USD)"][:, :, 0] + inputs["size"][:, :, 1] + inputs["length"]


def test_other_models_are_loaded_with_the_features_of_their_specs(exported, tmp_path):
    loaded = serving.load(exported.path)
    expected = exported.scores(exported.features[:1])[0]
    np.testing.assert_allclose(scores_of(loaded.rank(documents=exported.features[0])), expected, **CLOSE)
    documents = [{"features": row} for row in exported.features[0].tolist()]
    np.testing.assert_allclose(scores_of(loaded.rank(documents=documents)), expected, **CLOSE)
    float32 = lambda *shape: tf.io.FixedLenFeature(shape, tf.float32)  # noqa: E731
    arguments = {"context_feature_spec": {"length": float32(1)}, "warmup": False}
    specs = {"price (USD)": float32(1), "size": float32(2)}
    loaded = serving.load(serving.export_ranker(Sum(), tmp_path / "sum", example_feature_spec=specs, **arguments))
    documents = [{"price (USD)": 1, "size": [0, 2]}, {"price (USD)": 5, "size": [0, 3]}]
    ranking = loaded.rank({"length": 10}, documents=documents)
    assert [(document.place, document.score) for document in ranking] == [(1, 18.0), (0, 13.0)]
    assert loaded.rank({"length": 10}, documents=[{"price (USD)": None, "size": [0, 2]}])[0].score == np.float32(
        serving.INVALID_SCORE
    )
    specs = {**specs, "price (USD)": tf.io.FixedLenFeature([1], tf.int64)}
    with pytest.raises(ValueError, match=r"column 'price \(USD\)' must be float32 or strings .*, got int64"):
        serving.load(serving.export_ranker(Ints(), tmp_path / "int", example_feature_spec=specs, warmup=False))


OF_TEXT = pytest.mark.parametrize("of_text", [True, False])


@pytest.fixture(scope="module")
def recommenders(tmp_path_factory):
    """A function from whether ids are text to the ids of users and items, the export, and the recommender."""

    @functools.cache
    def make(of_text):
        user_ids, item_ids = [*range(100, 124)], [*range(300, 324)]
        if of_text:
            user_ids, item_ids = ([f"item {number}" for number in ids] for ids in (user_ids, item_ids))
        options = {"dim": 8, "softmax_epochs": 4, "softmax_batch_size": 4, "loss": None, "refit": False}
        recommender = recommendation.Recommender(**options, verbose=False)
        recommender.fit(recommendation.Interactions(likes(), user_ids, item_ids))
        return user_ids, item_ids, recommender.export(tmp_path_factory.mktemp("recommender")), recommender

    return make


@OF_TEXT
def test_recommendations_are_those_of_the_recommender(of_text, recommenders, monkeypatch):
    user_ids, item_ids, path, recommender = recommenders(of_text)
    loaded = serving.load(path)
    histories = [item_ids[:3], [item_ids[5]], []]
    calls = [
        {"users": user_ids[:4]},
        {"users": user_ids[:4], "topn": 3, "exclude": item_ids[:9]},
        {"users": user_ids[:2], "only": [item_ids[3:6], item_ids[8:20]], "exclude": [[], item_ids[:12]]},
        {"users": user_ids[:2], "only": []},
        {"users": user_ids[:2], "exclude": np.array(item_ids[:3], object)},
        {"users": user_ids[:2], "exclude": set(item_ids[:3])},
        {"users": user_ids[:2], "exclude": pd.Series(item_ids[:3], index=[7, 8, 9])},
        {"users": user_ids[:2], "only": pd.Series([item_ids[3:9], item_ids[:9]], index=[7, 8])},
        {"histories": histories},
        {"histories": histories * 9, "exclude": item_ids[:3]},
        {"histories": histories, "only": item_ids[2:12], "exclude": [[], item_ids[:12], [item_ids[4]]]},
    ]
    no_item = "" if of_text else -1
    monkeypatch.setattr(loading, "_USERS", 2)  # in parts
    for call in calls:
        expected = recommender.recommend(**call)
        for recommended, items, scores in zip(loaded.recommend(**call), expected.items, expected.scores, strict=True):
            is_item = items != no_item
            assert [entry.item for entry in recommended] == items[is_item].tolist()
            np.testing.assert_allclose([entry.score for entry in recommended], scores[is_item], rtol=1e-5, atol=1e-5)
    given = {name: (item for item in ids) for name, ids in (("users", user_ids[:2]), ("exclude", item_ids[:3]))}
    assert loaded.recommend(**given) == loaded.recommend(user_ids[:2], exclude=item_ids[:3])
    if not of_text:
        assert loaded.recommend(["100", "101"]) == loaded.recommend([100.0, 101])
        with pytest.raises(ValueError, match="`users` must be integers of 64 bits"):
            loaded.recommend(["a"])
    assert loaded.recommend(["99999"]) == loaded.recommend(histories=[[]])
    for wrong in ({}, {"users": user_ids, "histories": []}, {"users": user_ids, "topn": 0}):
        with pytest.raises(ValueError, match="`users`|`topn`"):
            loaded.recommend(**wrong)


@OF_TEXT
def test_malformed_users_histories_and_filters_are_refused_by_name(of_text, recommenders):
    (a, b, *_), (item, *_), path, _ = recommenders(of_text)
    loaded = serving.load(path)
    wrong = [{"users": users} for users in ([[a]], [{}], [None], a, 5, np.array([[a]]), {a: 1})]
    wrong += [{"histories": histories} for histories in ([item], [[item], None], [[item, None]], item, 5, [[[item]]])]
    filters = [[[item]], [[item]] * 3, [[]], [[item], None], [item, None], [None, item], [[item], item]]
    filters += [item, 5, {item: 1}]
    wrong += [{"users": [a, b], name: given} for name in ("exclude", "only") for given in filters]
    for call in wrong:
        name = [*call][-1]
        with pytest.raises(ValueError, match=f"`{name}` must"):
            loaded.recommend(**call)
