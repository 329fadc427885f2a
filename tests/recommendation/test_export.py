"""Exported recommenders: ids in, ids and scores out, as `recommend` returns them."""

import json

import numpy as np
import pytest
import tensorflow as tf

from tests.recommendation.groups import GROUPS, likes, likes_in_time
from tfr_smooth import models, recommendation

SMALL = {"dim": 8, "softmax_epochs": 8, "softmax_batch_size": 4, "verbose": False, "loss": None, "refit": False}
IDS = {
    "strings": (
        [f"user {user}" for user in range(24)],
        [f"item {item}" for item in range(24)],
        "",
    ),
    "integers": (list(range(100, 124)), list(range(300, 324)), -1),
}
IDS["sequences"] = IDS["integers"]


@pytest.fixture(
    scope="module",
    params=["strings", *(pytest.param(name, marks=pytest.mark.slow) for name in ("sequences", "integers"))],
)
def exported(request, tmp_path_factory):
    """A recommender, its ids, the id after the last item, and the signatures of its export."""
    users, items, no_item = IDS[request.param]
    recommender = recommendation.Recommender(**SMALL)
    data = recommendation.Interactions(likes(), users, items)
    if request.param == "sequences":
        recommender.set_params(history_items="sequence", history_length=5)
        data = likes_in_time(user_ids=users, item_ids=items)
    recommender.fit(data)
    folder = recommender.export(tmp_path_factory.mktemp("export"), topn=22)
    assert folder.name == "1"
    return recommender, users, items, no_item, tf.saved_model.load(str(folder)).signatures


def given(ids):
    """Returns ids as a client sends them: integers are of 64 bits."""
    ids = np.array(ids)
    return tf.constant(ids.tolist(), tf.int64 if ids.dtype.kind == "i" else tf.string)


def ids(tensor):
    return np.array([[each.decode() if isinstance(each, bytes) else each for each in row] for row in tensor.numpy()])


def test_users_get_what_recommend_returns(exported):
    recommender, users, _, no_item, signatures = exported
    expected = recommender.recommend(users, topn=22)
    for name in ("users", "serving_default"):
        found = signatures[name](users=given(users))
        np.testing.assert_array_equal(ids(found["items"]), expected.items)
        is_item = expected.items != no_item
        assert 0 < is_item.sum() < is_item.size
        np.testing.assert_allclose(found["scores"].numpy()[is_item], expected.scores[is_item], rtol=1e-5, atol=1e-5)
        assert (found["scores"].numpy()[~is_item] == models.PADDING_SCORE).all()
        assert np.isneginf(expected.scores[~is_item]).all()


def test_histories_get_what_recommend_returns(exported):
    recommender, _, items, no_item, signatures = exported
    histories = [items[:3], [], [items[20]]]
    padded = [items[:3], [no_item] * 3, [items[20], no_item, "new" if no_item == "" else 999]]
    expected = recommender.recommend(histories=histories, topn=22)
    found = signatures["histories"](histories=given(padded))
    np.testing.assert_array_equal(ids(found["items"]), expected.items)
    assert not set(items[:3]) & set(expected.items[0])
    groups = GROUPS[1][[[items.index(each) for each in row[:3]] for row in expected.items[[0, 2]].tolist()]]
    assert (groups == [[0], [3]]).all()


def test_filters_are_those_of_recommend(exported):
    recommender, users, items, no_item, signatures = exported
    exclude, only = [[items[3], items[5], no_item]] * 2, [[no_item] * 4, [*items[1:4], no_item]]
    allowed = [[*items[:3], items[4], *items[6:]], items[1:3]]
    found = signatures["filtered_users"](users=given(users[:2]), exclude=given(exclude), only=given(only))
    expected = recommender.recommend(users[:2], topn=22, exclude=exclude[0][:2], only=allowed)
    np.testing.assert_array_equal(ids(found["items"]), expected.items)
    histories = [items[20:22]] * 2
    for_all = {"exclude": given(exclude[:1]), "only": given([[no_item]])}
    found = signatures["filtered_histories"](histories=given(histories), **for_all)
    expected = recommender.recommend(histories=histories, topn=22, exclude=exclude[0][:2])
    np.testing.assert_array_equal(ids(found["items"]), expected.items)


def test_unknown_users_get_what_users_without_items_get(exported):
    recommender, users, _, no_item, signatures = exported
    unknown = "nobody" if no_item == "" else 7
    found = signatures["users"](users=given([users[0], unknown]))
    np.testing.assert_array_equal(ids(found["items"])[1], recommender.recommend(histories=[[]], topn=22).items[0])


def test_vectors_search_the_catalog(exported):
    recommender, users, items, _, signatures = exported
    catalog = signatures["item_vectors"]()
    assert [each.decode() if isinstance(each, bytes) else each for each in catalog["items"].numpy().tolist()] == items
    vectors = signatures["users"](users=given(users[:5]))["vectors"]
    similarities = vectors @ tf.transpose(catalog["vectors"])
    np.testing.assert_allclose(similarities / 0.2, recommender.predict(np.arange(5)), rtol=1e-5, atol=1e-5)


def test_seen_items_can_be_kept_and_the_card_says_what_is_inside(exported, tmp_path):
    recommender, users, items, no_item, _ = exported
    folder = recommender.export(tmp_path, topn=100, exclude_seen=False, version=7)
    found = tf.saved_model.load(str(folder)).signatures["users"](users=given(users))
    assert all(sorted(row) == sorted(items) for row in ids(found["items"]).tolist())
    card = json.loads((folder / "assets.extra" / "model_card.json").read_text())
    assert card["model"]["num_items"] == 24 and set(card["signatures"]) >= {"users", "histories", "item_vectors"}
    assert card["special_values"]["id after the last item"] == no_item


@pytest.mark.parametrize("item_bias", [False, True])
@pytest.mark.parametrize("similarity", recommendation.factors.SIMILARITIES)
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
