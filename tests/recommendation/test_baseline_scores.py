"""What counts add to the scores of sequences: a Markov chain and EASE with learned weights."""

import types

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from tests.recommendation.groups import in_time, likes
from tfr_smooth import recommendation
from tfr_smooth.recommendation import baseline_scores, stages
from tfr_smooth.recommendation.baseline_scores import BaselineScores, Counts

HISTORIES = [[3, 1, 4, 1, 5], [], [2], [7, 6], [0, 1, 2, 3, 4, 5, 6, 7, 8], [8, 8, 2]]
SETTINGS = {"order": 3, "decay": 0.5, "similarity": 0.0, "strength": 2.0, "weights_of": [0.7, 3.0]}


def test_scores_are_those_of_the_baselines():
    interactions, length = in_time(HISTORIES, 9), 2
    layer, users = Counts(interactions, length).layer(SETTINGS), np.arange(len(HISTORIES))
    chain = recommendation.MarkovChain(order=3, decay=0.5).fit(interactions).predict(users)
    late = in_time([items[-length:] for items in HISTORIES], 9).matrix.toarray()
    weights = recommendation.EASE(strength=2.0).fit(interactions).neighbors(9).toarray()
    items = interactions.latest(users, 9)[0]
    logs, regression = (part.numpy() for part in layer.parts(tf.constant(items)))
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(np.exp(logs), chain / chain.sum(axis=1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(regression, late @ weights, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(layer(tf.constant(items)), 0.7 * logs + 3.0 * regression, rtol=1e-5, atol=1e-6)
    padded = np.pad(items, [[0, 0], [0, 2]], constant_values=-1)
    np.testing.assert_allclose(layer(tf.constant(padded)), layer(tf.constant(items)), rtol=1e-5, atol=1e-6)
    longer = Counts(interactions, 9).layer(SETTINGS)
    (_, once), (_, twice) = longer.parts(tf.constant([[3, 1, 4]])), longer.parts(tf.constant([[3, 1, 4, 1]]))
    np.testing.assert_allclose(twice, once, rtol=1e-5, atol=1e-6)  # equal items count once
    np.testing.assert_allclose(once[0], weights[[3, 1, 4]].sum(axis=0), rtol=1e-5, atol=1e-6)
    copy = BaselineScores.from_config(layer.get_config())
    copy.set_weights(layer.get_weights())
    np.testing.assert_array_equal(copy(tf.constant(items)), layer(tf.constant(items)))


def test_a_new_item_has_the_scores_of_similar_ones():
    random = np.random.default_rng(0)
    interactions = in_time([random.permutation(np.delete(np.arange(12), [3, 7]))[:5] for _ in range(20)], 12)
    is_known, vectors = interactions.users_per_item > 0, random.normal(size=[12, 4]).astype(np.float32)
    plain, layer = (Counts(interactions, 5).layer(SETTINGS, num_new) for num_new in (0, 2))
    layer.set_new(is_known, lambda items: tf.constant(vectors[items] @ vectors.T))
    items = tf.constant(interactions.latest(np.arange(20), 5)[0])
    expected, found = plain(items).numpy(), layer(items).numpy()
    np.testing.assert_array_equal(found[:, is_known], expected[:, is_known])
    for item in (3, 7):
        similar = np.argsort(-np.where(is_known, vectors @ vectors[item], -np.inf))[:10]
        of_item = np.log(np.exp(expected[:, similar].astype(np.float64)).mean(axis=1))
        np.testing.assert_allclose(found[:, item], of_item, rtol=1e-5, atol=1e-6)
    few = in_time([[0, 1], [1, 2], [2, 0]], 30)  # a new item has the scores of all known ones
    layer = Counts(few, 5).layer(SETTINGS, num_new=27)
    layer.set_new(few.users_per_item > 0, lambda items: tf.ones([len(items), 30]))
    scores = layer(tf.constant([[0], [1]])).numpy().astype(np.float64)
    expected = np.log(np.exp(scores[:, :3]).mean(axis=1, keepdims=True))
    np.testing.assert_allclose(scores[:, 3:], np.tile(expected, [1, 27]), rtol=1e-5)


def test_ease_of_frequent_items_is_that_of_their_columns():
    interactions = recommendation.Interactions(np.random.default_rng(0).random([30, 8]) < np.linspace(0.2, 0.9, 8))
    frequent = np.sort(np.argsort(-interactions.users_per_item, kind="stable")[:5])
    found = recommendation.EASE(strength=3.0, max_items=5).fit(interactions)
    expected = np.zeros([30, 8])
    part = recommendation.Interactions(interactions.matrix[:, frequent])
    expected[:, frequent] = recommendation.EASE(strength=3.0).fit(part).predict(np.arange(30))
    np.testing.assert_allclose(found.predict(np.arange(30)), expected, rtol=1e-5)
    weights = found.neighbors(5).toarray()
    np.testing.assert_allclose(interactions.matrix @ weights, expected, rtol=1e-4, atol=1e-6)
    for all_weights, row in zip(weights, found.neighbors(2).toarray(), strict=True):
        chosen = np.sort(np.argsort(-np.abs(all_weights), kind="stable")[:2])
        np.testing.assert_array_equal(row[chosen], all_weights[chosen])
        assert np.count_nonzero(row) <= 2


def draws(weights, length=50, count=1500, num_items=30, seed=0):
    """Users, scores of a network, and a next item of each user drawn by the weighted sum with those of baselines.

    EASE sees the latest `length` items of a user, who has each item twice in succession.
    """
    random = np.random.default_rng(seed)
    start = random.integers(num_items, size=[count, 1])
    items = (start + np.cumsum(random.integers(1, 4, size=[count, 6]), axis=1)) % num_items
    events = {"user": np.repeat(np.arange(count), 12), "item": np.repeat(items, 2), "time": np.arange(12 * count)}
    train = recommendation.from_dataframe(pd.DataFrame(events), user="user", item="item", time="time")
    scores = random.normal(size=[count, num_items]).astype(np.float32)
    chain = recommendation.MarkovChain().fit(train).predict(np.arange(count))
    recent = in_time(train.latest(np.arange(count), min(length, 12))[0], num_items).matrix
    ease = recent @ recommendation.EASE(strength=100.0).fit(train).neighbors(num_items).toarray()
    total = weights[0] * scores + weights[1] * np.log(chain) + weights[2] * ease
    total[train.matrix.toarray() > 0] = -np.inf
    following = (total + random.gumbel(size=total.shape)).argmax(axis=1)
    return train, scores, in_time(following[:, np.newaxis], num_items)


@pytest.mark.parametrize(("weights", "length"), [((0.5, 1.0, 0.0), 50), ((2.0, 0.6, 16.0), 50), ((0.5, 0.3, 8.0), 2)])
def test_weights_of_a_pool_that_items_were_drawn_by_are_found(weights, length):
    train, scores, validation = draws(weights, length)
    start = {**baseline_scores.DEFAULTS, "weights_of": [0.5, 8.0]}
    held_out = Counts(train, length), train, validation
    found = baseline_scores.learned(start, lambda users: scores[users], *held_out, seed=0)
    difference = np.array(found["weights_of"]) - np.array(weights[1:]) / weights[0]
    assert (np.abs(difference) < [0.25, 2.5]).all()


def test_a_network_without_use_has_no_say():
    train, scores, validation = draws((0.0, 1.0, 2.0))
    start = baseline_scores.DEFAULTS
    held_out = Counts(train, 10), train, validation
    settings = baseline_scores.learned(start, lambda users: scores[users], *held_out, seed=0)
    layer = Counts(train, 10).layer(settings)
    alone = layer(tf.constant(train.latest(np.arange(1500), 10)[0])).numpy()
    value, best = (
        recommendation.evaluate(lambda users, each=each: each[users], validation, seen=train, measures="recip_rank")
        for each in (alone + scores, alone)
    )
    assert value.means["recip_rank"].mean > 0.99 * best.means["recip_rank"].mean


def test_the_weights_with_the_best_quality_around_the_most_likely_ones_are_selected():
    train, scores, _ = draws((1.0, 1.0, 8.0), count=50)
    counts, users = Counts(train, 10), np.arange(50)
    settings = {**baseline_scores.DEFAULTS, "weights_of": [0.5, 8.0]}
    logs, regression = counts.layer(settings).parts_of(train, users)
    expected = scores + 3.0 * 0.5 * logs + 0.5 * 8.0 * regression
    quality = lambda found: -np.abs(found(users) - expected).max()  # noqa: E731
    found = baseline_scores.selected(settings, lambda users: scores[users], counts, train, quality)
    assert found == {**settings, "weights_of": [1.5, 4.0]}
    even = baseline_scores.selected(settings, lambda users: scores[users], counts, train, lambda found: 0.0)
    assert even == settings  # the most likely ones


def test_factors_have_the_strength_and_the_weight_of_ease_with_the_best_quality():
    train, scores, _ = draws((1.0, 1.0, 8.0), count=50)
    counts, users = Counts(train, 10), np.arange(50)
    for wanted in ({"strength": 1000.0, "weights_of": [1.0]}, {"strength": 300.0, "weights_of": [0.0]}):
        settings = {**baseline_scores.OF_FACTORS, **wanted}
        (regression,) = counts.layer(settings).parts_of(train, users)
        expected = scores + wanted["weights_of"][0] * regression
        quality = lambda found, expected=expected: -np.square(found(users) - expected).sum()  # noqa: E731
        network = lambda users: scores[users]  # noqa: E731
        before = {**baseline_scores.OF_FACTORS, "weights_of": [0.0]}  # of a model to continue from
        found = baseline_scores.selected(before, network, counts, train, quality)
        assert found["weights_of"] == wanted["weights_of"]
        assert found["strength"] == wanted["strength"] or not wanted["weights_of"][0]


def test_without_held_out_items_the_settings_are_those_of_the_model_before():
    start = types.SimpleNamespace(baselines=types.SimpleNamespace(settings=SETTINGS)), None, None
    assert stages.settings_before(None) == baseline_scores.DEFAULTS
    assert stages.settings_before(start) == SETTINGS


def test_ease_of_weight_0_is_not_served(monkeypatch):
    monkeypatch.setattr(baseline_scores, "_FACTOR_WEIGHTS", (0.0,))
    options = {"dim": 4, "softmax_epochs": 2, "softmax_batch_size": 4, "epochs": 1, "verbose": False}
    interactions = recommendation.Interactions(likes())
    found = recommendation.Recommender(**options).fit(interactions)
    without = recommendation.Recommender(**options, baselines=False).fit(interactions)
    np.testing.assert_array_equal(found.predict([0, 9]), without.predict([0, 9]))
    for recommender in (found, found.update(interactions)):
        assert recommender.model_.baselines.num_neighbors == 0
        assert recommender.model_.baselines.settings["weights_of"] == [0.0]
