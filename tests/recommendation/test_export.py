"""Exported recommenders: ids in, ids and scores out, as `recommend` returns them."""

import json

import numpy as np
import pytest
import tensorflow as tf
from usearch import index

from tests import helpers
from tests.recommendation.groups import likes, likes_in_time
from tfr_smooth import models, recommendation
from tfr_smooth.data.reading import ids as ids_of
from tfr_smooth.recommendation import factors


def requests_of(users, items, nobody, new):
    """Returns requests, also of a user and an item that are not known."""
    return {
        "users": {"users": [*users, nobody]},
        "histories": {"histories": [[items[20], new], [new], [], [new, *items[:3]]]},
        "excluded": {"users": users[:3], "exclude": [items[3], new, items[5]]},
        "excluded by user": {"histories": [[], [items[9]]], "exclude": [[], items[2:9]]},
        "choice": {"users": users[:3], "only": [*items[:9], new]},
        "choice by user": {"users": users[:3], "exclude": [items[8]], "only": [items[7:10], [], [new]]},
        "no choice": {"histories": [items[20:22]], "only": []},
    }


SMALL = {"dim": 8, "softmax_epochs": 3, "softmax_batch_size": 4, "verbose": False, "loss": None, "refit": False}


@pytest.fixture(scope="module", params=["vectors", "factors", pytest.param("sequences", marks=pytest.mark.slow)])
def exported(request, tmp_path_factory):
    """A recommender, its ids, the id after the last item, and the signatures and the folder of its export."""
    if request.param != "sequences":
        users, items, no_item = [f"user {user}" for user in range(24)], [f"item {item}" for item in range(24)], ""
        recommender = recommendation.Recommender(**SMALL, baselines=request.param == "factors")
        recommender.fit(recommendation.Interactions(likes(), users, items))
    else:
        users, items, no_item = list(range(100, 124)), list(range(300, 324)), -1
        recommender = recommendation.Recommender(**SMALL, history_items="sequence", history_length=5)
        recommender.fit(likes_in_time(user_ids=users, item_ids=items))
    folder = recommender.export(tmp_path_factory.mktemp("export"), topn=22)
    return recommender, users, items, no_item, tf.saved_model.load(str(folder)).signatures, folder


def given(ids):
    """Returns ids as a client sends them: integers are of 64 bits."""
    ids = np.array(ids)
    return tf.constant(ids.tolist(), tf.int64 if ids.dtype.kind == "i" else tf.string)


def ids(tensor):
    return np.array([[each.decode() if isinstance(each, bytes) else each for each in row] for row in tensor.numpy()])


def served(signatures, no_item, **request):
    """Returns the answer of the signature that takes these ids, with lists padded."""
    prefix = "filtered_" if "only" in request else "excluding_" if "exclude" in request else ""
    inputs = {"exclude": []} | request if "only" in request else request
    for name, lists in inputs.items():
        if name != "users":
            lists = lists if lists and isinstance(lists[0], list) else [lists]
            longest = 1 + max(map(len, lists))
            lists = [[*each, *[no_item] * (longest - len(each))] for each in lists]
        inputs = {**inputs, name: given(lists)}
    return signatures[prefix + ("users" if "users" in request else "histories")](**inputs)


@pytest.mark.keras_2
def test_exports_answer_as_recommend_does(exported):
    recommender, users, items, no_item, signatures, _ = exported
    unknown = ("nobody", "new") if no_item == "" else (7, 999)
    for name, request in requests_of(users, items, *unknown).items():
        found, expected = served(signatures, no_item, **request), recommender.recommend(**request, topn=22)
        np.testing.assert_array_equal(ids(found["items"]), expected.items, err_msg=name)
        is_item = expected.items != no_item
        assert not is_item.all() and is_item.any() == (name != "no choice")
        np.testing.assert_allclose(found["scores"].numpy()[is_item], expected.scores[is_item], rtol=1e-5, atol=1e-5)
        assert (found["scores"].numpy()[~is_item] == models.PADDING_SCORE).all()
        assert np.isneginf(expected.scores[~is_item]).all()
        vectors = recommender.user_vectors(request.get("users"), histories=request.get("histories"))
        np.testing.assert_allclose(found["vectors"], vectors, rtol=1e-5, atol=1e-5)


def test_unknown_ids_and_empty_lists_have_one_meaning(exported):
    recommender, users, items, no_item, *_ = exported
    nobody, new = ("nobody", "new") if no_item == "" else (7, 999)
    empty = recommender.recommend(histories=[[]], topn=24)
    assert set(empty.items[0]) == set(items)
    for request in ({"users": [nobody]}, {"histories": [[new]]}):
        np.testing.assert_array_equal(recommender.recommend(**request, topn=24).items, empty.items)
        for filters in ({"only": [new]}, {"only": []}, {"only": [[]]}):
            assert (recommender.recommend(**request, **filters).items == no_item).all()
        for filters in ({"exclude": [new]}, {"exclude": []}, {"exclude": [[]]}):
            assert (recommender.recommend(**request, topn=24, **filters).items == empty.items).all()
    several = recommender.recommend([users[0], nobody, users[3]], topn=5).items
    for row, user in ((0, users[0]), (2, users[3])):
        np.testing.assert_array_equal(several[row], recommender.recommend([user], topn=5).items[0])


@pytest.mark.slow
@pytest.mark.parametrize("exported", ["sequences"], indirect=True)
def test_inputs_of_wrong_shapes_are_errors_and_do_not_end_the_process(exported):
    *_, folder = exported
    assert helpers.check_run("tests/serving/wrong_shapes.py", folder).splitlines()[-1] == "[]"


def test_users_are_the_default_and_vectors_search_the_catalog(exported):
    recommender, users, items, _, signatures, _ = exported
    by_default, by_users = (signatures[name](users=given(users))["items"] for name in ("serving_default", "users"))
    np.testing.assert_array_equal(by_default, by_users)
    catalog = signatures["item_vectors"]()
    assert ids(catalog["items"][tf.newaxis])[0].tolist() == items
    vectors = recommender.item_vectors()
    np.testing.assert_array_equal(vectors, catalog["vectors"])
    everyone = recommender.user_vectors()
    assert everyone.dtype == vectors.dtype == np.float32
    if recommender.model_.baselines is not None:  # are no part of the vectors
        assert np.abs(everyone @ vectors.T - recommender.predict(np.arange(24))).max() > 0.1
        return
    np.testing.assert_allclose(everyone @ vectors.T, recommender.predict(np.arange(24)), rtol=1e-5, atol=1e-5)
    nearest = index.Index(ndim=vectors.shape[1], metric="ip", dtype="f32")
    nearest.add(np.arange(24), vectors)
    for request in ({"users": users[3:9]}, {"histories": [items[:3], [], items[20:21]]}):
        expected = recommender.recommend(**request, topn=5, exclude_seen=False)
        matches = nearest.search(recommender.user_vectors(**request), 5, exact=True)
        np.testing.assert_array_equal(recommender.interactions_.item_ids[matches.keys.astype(int)], expected.items)
        np.testing.assert_allclose(1.0 - matches.distances, expected.scores, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("exported", ["sequences"], indirect=True)
def test_seen_items_can_be_kept_and_the_card_says_what_is_inside(exported, tmp_path):
    recommender, users, items, no_item, *_ = exported
    folder = recommender.export(tmp_path, topn=100, exclude_seen=False, version=7)
    found = tf.saved_model.load(str(folder)).signatures["users"](users=given(users))
    assert all(sorted(row) == sorted(items) for row in ids(found["items"]).tolist())
    card = json.loads((folder / "assets.extra" / "model_card.json").read_text())
    assert card["model"]["num_items"] == 24 and set(card["signatures"]) >= {"users", "histories", "item_vectors"}
    assert card["special_values"]["id after the last item"] == no_item


@pytest.mark.parametrize(("similarity", "item_bias"), [("cosine", False), ("dot", True)])
def test_history_vectors_have_the_greatest_likelihood(similarity, item_bias):
    options = {"dim": 3, "similarity": similarity, "temperature": 0.5, "item_bias": item_bias, "seed": 3}
    model = recommendation.CatalogFactors(num_users=9, num_items=30, **options)
    bias = np.sin(np.arange(30.0)) * item_bias
    if item_bias:
        model.set_weights([*model.get_weights()[:2], bias])
    vectors, users = (each.numpy().astype(float)[:, :3] for each in (model.item_vectors(), model.user_vectors()))
    norm = np.linalg.norm(users, axis=1).mean()

    def likelihood(vector):
        scores = vectors @ vector / 0.5 + bias
        return scores[[4, 17]].mean() - np.log(np.exp(scores).sum())

    found = model.history_vectors(tf.constant([[17, 4, -1], [-1, -1, -1]])).numpy()
    assert (found[:, 3:] == 1.0).all() and found.shape == (2, 3 + item_bias)
    found = found[:, :3]
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), norm, rtol=1e-5)
    # On the sphere: all directions of a fine grid.
    longitude, height = (grid.ravel() for grid in np.meshgrid(np.linspace(0, 2 * np.pi, 200), np.linspace(-1, 1, 200)))
    radius = np.sqrt(1 - height**2)
    grid = norm * np.stack([radius * np.cos(longitude), radius * np.sin(longitude), height], axis=1)
    scores = vectors @ grid.T / 0.5 + bias[:, np.newaxis]
    best = (scores[[4, 17]].mean(axis=0) - np.log(np.exp(scores).sum(axis=0))).max()
    assert likelihood(found[0]) > best - 1e-4
    np.testing.assert_allclose(found[1], norm * users.mean(axis=0) / np.linalg.norm(users.mean(axis=0)), rtol=1e-4)
    repeated = model.history_vectors(tf.constant([[17, 4, -1, 4], [-1] * 4]))[:, :3]
    np.testing.assert_allclose(repeated, found, rtol=1e-5)
    np.testing.assert_allclose(model.history_vectors(tf.zeros([1, 0], tf.int32))[:, :3], found[1:], rtol=1e-6)


@pytest.mark.slow
def test_further_requests_prepare_nothing_for_all_users_items_or_ids(monkeypatch):
    recommender = recommendation.Recommender(**SMALL).fit(recommendation.Interactions(likes()))
    ask = [{"histories": [[3, 4]], "exclude": [7]}, {"users": [5, 99]}]
    first = [recommender.recommend(**each, topn=3).items.tolist() for each in ask]
    monkeypatch.setattr(factors, "folding_in", None)
    monkeypatch.setattr(recommendation.CatalogFactors, "item_vectors", None)
    known = recommender.interactions_
    assert ids_of._places(known.item_ids) is ids_of._places(known.item_ids)
    assert [recommender.recommend(**each, topn=3).items.tolist() for each in ask] == first
