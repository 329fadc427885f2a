"""Evaluation over all unseen items: equal to trec_eval, also for ties; hand-computed values; bad input."""

import functools

import numpy as np
import pytest

from tests.helpers import assert_error
from tfr_smooth import evaluation, recommendation
from tfr_smooth.recommendation import catalog_order

MEASURES = ["map", "ndcg", "recip_rank", "Rprec"]
NAMES = ("P", "map_cut", "ndcg_cut", "recall", "recip_rank", "success")
MEASURES += [f"{name}_{k}" for name in NAMES for k in (1, 3, 20, 1000)]

# Without a measure of the whole ranking, only the first items are sorted.
SHALLOW = [name for name in MEASURES if name.endswith(("_1", "_3"))]


def random_split(seed=0, users=25, items=40, text_ids=False):
    """Returns training and test items; some users have no training items and some no test items."""
    random = np.random.default_rng(seed)
    parts = random.choice(3, (users, items), p=[0.7, 0.15, 0.15])
    parts[0][parts[0] == 1] = 0
    parts[1][parts[1] == 2] = 0
    ids = [f"i{each}" for each in random.permutation(items)] if text_ids else random.permutation(items)
    return [recommendation.Interactions(parts == part, item_ids=ids) for part in (1, 2)]


def by_trec_eval(scores, test, seen, measures=MEASURES):
    """Returns trec_eval's values of a run with all unseen items, named by their ids, by user."""
    names, seen = [str(each) for each in test.item_ids.tolist()], seen.matrix.toarray() > 0
    labels, queries = test.matrix.toarray().astype(int), []
    for user in np.flatnonzero(test.items_per_user):
        unseen = np.flatnonzero(~seen[user])
        doc_ids = [names[item] for item in unseen]
        queries.append(evaluation.ScoredQuery(str(user), doc_ids, labels[user, unseen], scores[user, unseen]))
    return evaluation.trec_eval_by_query(queries, measures)


def check_like_trec_eval(scores, test, seen):
    expected = by_trec_eval(scores, test, seen)
    for measures in (MEASURES, SHALLOW):
        found = recommendation.evaluate(lambda users: scores[users], test, seen=seen, measures=measures)
        assert list(map(str, found.user_ids)) == list(expected)
        for measure in measures:
            values = [each[measure] for each in expected.values()]
            np.testing.assert_allclose(found.values[measure], values, rtol=0, atol=1e-12, err_msg=measure)
            assert found.means[measure].mean == pytest.approx(np.mean(values), abs=1e-12)


@pytest.mark.parametrize("text_ids", [False, True])
def test_values_are_those_of_trec_eval(text_ids, monkeypatch):
    train, test = random_split(text_ids=text_ids)
    if text_ids:  # in blocks of few users
        monkeypatch.setattr(catalog_order, "_BLOCK", 3 * test.num_items)
    random = np.random.default_rng(1)
    shape = test.matrix.shape
    for scores in (
        random.normal(size=shape).astype(np.float32),
        random.integers(-2, 3, shape).astype(np.float32),  # many ties
        np.zeros(shape),
        1.0 + 1e-8 * random.integers(0, 20, shape),  # ties in float32
        random.choice([-3e38, -1e30, -1e-45, 1e-45, 1e30, 3e38], shape),
        random.choice([-0.0, 0.0, 1.0], shape),
    ):
        check_like_trec_eval(scores, test, train)


def test_values_by_user_can_be_compared():
    train, test = random_split(users=200)
    scores = np.random.default_rng(1).normal(size=test.matrix.shape)
    better = recommendation.evaluate(lambda users: scores[users] + test.dense(users), test, seen=train)
    worse = recommendation.evaluate(lambda users: scores[users], test, seen=train).by_user("ndcg_cut_20")
    users, found = np.flatnonzero(test.items_per_user).tolist(), better.by_user("ndcg_cut_20")
    assert found == dict(zip(users, better.values["ndcg_cut_20"].tolist(), strict=True))
    assert evaluation.randomization_test(found, worse, samples=1000).p_value < 0.01
    assert_error("'map', got 'ndcg'.", better.by_user, "ndcg")


def test_bad_scores_are_refused():
    test = recommendation.Interactions([[1, 0, 0], [0, 0, 0], [0, 1, 0]])
    for scores, message in (
        (np.zeros([2, 2]), "`scorer` must return numbers [users, items] of shape (2, 3), got float64 of shape (2, 2)."),
        ([[0, 0, 0], [0, np.nan, 0]], "`scorer` must return scores that are finite in float32, got others for user 2."),
    ):
        assert_error(message, recommendation.evaluate, lambda users: scores, test)  # noqa: B023
        assert_error(message, recommendation.top_items, lambda users: scores, test, [0, 2], topn=1)  # noqa: B023


def test_bad_test_items_measures_and_scorers_of_other_ids_are_refused():
    for test, seen, message in (
        ([[0, 0]], None, "`test` must have a user with items, got none."),
        ([[1, 1], [0, 1]], [[1, 0], [0, 1]], "`test` must have no pairs of `seen`, got 2 pairs, such as user 0 and"),
        (
            [[1, 0]],
            [[0, 1, 0]],
            "`seen` must have the same `item_ids` as `test`: read both with one call, or take `renum",
        ),
    ):
        seen = None if seen is None else recommendation.Interactions(seen)
        assert_error(
            message, recommendation.evaluate, lambda users: [[0, 0]], recommendation.Interactions(test), seen=seen
        )
    test = recommendation.Interactions([[1]])
    for measures, message in (("recall@20", "be map, "), ([], "name at least one measure, got none")):
        assert_error(
            f"`measures` must {message}", recommendation.evaluate, lambda users: [[0]], test, measures=measures
        )
    scorer = recommendation.Popularity().fit(recommendation.Interactions([[1, 0, 0]], item_ids=[1, 2, 3]))
    test = recommendation.Interactions([[1, 0, 0]], item_ids=[3, 2, 1])
    message = "must have the same `item_ids` as `scorer.interactions_`"
    assert_error(f"`test` {message}", recommendation.evaluate, scorer, test)
    assert_error(f"`interactions` {message}", recommendation.top_items, scorer, test, [0], topn=1)


# The best items.


@pytest.mark.parametrize("exclude_seen", [False, True])
def test_top_items_are_those_of_a_stable_sort(exclude_seen):
    train, _ = random_split(text_ids=True)
    scores = np.random.default_rng(1).integers(0, 4, train.matrix.shape).astype(np.float32)
    users, names = [3, 0, 3], train.item_ids.tolist()
    found = recommendation.top_items(lambda users: scores[users], train, users, topn=39, exclude_seen=exclude_seen)
    for row, user in enumerate(users):
        allowed = [item for item in range(40) if not (exclude_seen and train.matrix.toarray()[user, item])]
        best = sorted(allowed, key=lambda item: (scores[user, item], names[item]), reverse=True)[:39]  # noqa: B023
        assert found.items[row].tolist() == best + [-1] * (39 - len(best))
        assert found.scores[row].tolist() == scores[user, best].tolist() + [-np.inf] * (39 - len(best))
    assert found.items.dtype == np.int32 and found.scores.dtype == np.float32


def test_top_items_of_a_small_catalog_and_of_no_users():
    interactions = recommendation.Interactions([[1, 0]])
    top = functools.partial(recommendation.top_items, lambda users: [[2, 1]], interactions)
    assert top([0], topn=5).items.tolist() == [[1, -1, -1, -1, -1]]
    assert top([], topn=5).items.shape == (0, 5)
    assert_error("`exclude_seen` must be True or False, got 1.", top, [0], topn=1, exclude_seen=1)
