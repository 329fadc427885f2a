"""Estimators recover the propensities and the relevance of simulated users."""

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression

from experiments.click_simulation import ClickLog, User, simulate
from tfr_smooth import clicks

USER = User(eta=1.0, noise=0.1, max_label=2)
TRUE = USER.propensities(5)


@pytest.fixture(scope="module")
def documents():
    """Labels, queries, and the scores of a ranker that is better than random."""
    random = np.random.default_rng(0)
    labels = random.choice(3, 300, p=[0.6, 0.3, 0.1])
    return labels, np.repeat(np.arange(30), 10), labels + random.normal(size=300)


def simulated(documents, scores, user=USER, num_sessions=20_000, seed=0):
    labels, queries, _ = documents
    return simulate(labels, queries, scores, user, num_sessions=num_sessions, topn=5, seed=seed)


def two_rankers(documents):
    """A log of two rankers, which show the same documents at different positions."""
    logs = [simulated(documents, documents[2], seed=0)]
    shown = np.isin(np.arange(300), logs[0].rows)
    others = np.where(shown, np.random.default_rng(1).random(300), -1.0)
    logs.append(simulated(documents, others, seed=1))
    return ClickLog(*map(np.concatenate, zip(*logs, strict=True)))


def test_random_rankings_give_the_propensities(documents):
    log = simulated(documents, None)
    found = clicks.propensities_from_random_rankings(log.positions, log.clicks)
    np.testing.assert_allclose(found, TRUE, atol=0.03)


def test_a_ranking_by_relevance_confounds_click_through_rates_but_not_em(documents):
    log = two_rankers(documents)
    one = simulated(documents, documents[2])
    rates = clicks.propensities_from_random_rankings(one.positions, one.clicks)
    assert (rates[1:] < TRUE[1:] - 0.03).all()  # lower documents are less relevant
    model = clicks.fit_position_based(log.rows, log.positions, log.clicks, steps=300)
    np.testing.assert_allclose(model.propensities, TRUE, atol=0.03)
    shown = np.isfinite(model.relevance)
    np.testing.assert_array_equal(np.flatnonzero(shown), np.unique(log.rows))
    errors = model.relevance[shown] - USER.attraction(documents[0])[shown]
    assert np.sqrt(np.mean(errors**2)) < 0.05


def test_no_em_step_lowers_the_likelihood_and_the_truth_has_no_higher_one(documents):
    log = simulated(documents, documents[2], num_sessions=2000)
    found = clicks.fit_position_based(log.rows, log.positions, log.clicks, steps=200)
    assert (np.diff(found.log_likelihoods) > -1e-12).all()
    rates = TRUE[log.positions - 1] * USER.attraction(documents[0])[log.rows]
    truth = np.mean(np.where(log.clicks, np.log(rates), np.log1p(-np.minimum(rates, 1.0 - 1e-12))))
    assert found.log_likelihoods[-1] > truth
    first = np.mean(np.where(log.clicks, np.log(0.25), np.log(0.75)))
    assert found.log_likelihoods[0] == pytest.approx(first)


def test_regression_em_generalizes_over_documents_with_the_same_features(documents):
    """Each document is shown at one position, but those of a label at many."""
    labels, _, scores = documents
    log = simulated(documents, scores)
    one_hot = np.eye(3)[labels]
    model = clicks.fit_position_based(
        log.rows, log.positions, log.clicks, features=one_hot, regressor=LinearRegression(), steps=100
    )
    np.testing.assert_allclose(model.propensities, TRUE, atol=0.04)
    np.testing.assert_allclose(model.relevance, USER.attraction(labels), atol=0.08)
    # Without the features, the same log does not identify them.
    without = clicks.fit_position_based(log.rows, log.positions, log.clicks, steps=300)
    assert np.abs(without.propensities - TRUE).max() > 0.08


def test_regression_em_weights_documents_by_their_sessions():
    documents, same = [0, 0, 0, 1], np.ones([2, 1])
    constant = {"features": same, "regressor": DummyRegressor(), "steps": 500}
    model = clicks.fit_position_based(documents, [1] * 4, [1, 1, 1, 0], **constant)
    np.testing.assert_allclose(model.relevance, 0.75, atol=1e-3)


def test_affine_corrections_remove_trust_bias_and_inverse_propensities_do_not(documents):
    user = User(eta=1.0, noise=0.1, max_label=2, trust=0.6)
    log = simulated(documents, documents[2], user, num_sessions=100_000)
    truth = user.attraction(documents[0])
    columns = (log.rows, log.positions, log.clicks)
    corrected = clicks.relevance_from_clicks(*columns, user.propensities(5), user.offsets(5))
    inverse = clicks.relevance_from_clicks(*columns, USER.propensities(5))
    shown = np.unique(log.rows)
    first = np.unique(log.rows[log.positions == 1])  # only there, as all sessions show one ranking
    assert abs(np.mean(corrected[shown] - truth[shown])) < 0.01
    np.testing.assert_allclose(inverse[first], 0.4 * truth[first] + 0.6, atol=0.05)
    # About 3300 sessions per query, and a standard deviation of at most 0.5 / alpha per click.
    assert np.abs(corrected[shown] - truth[shown]).max() < 5.0 * 0.5 / user.propensities(5).min() / np.sqrt(3000.0)


def test_documents_that_were_not_shown_have_no_relevance():
    assert np.isnan(clicks.relevance_from_clicks([2], [1], [1], [1.0])[:2]).all()
    assert np.isnan(clicks.fit_position_based([2], [1], [1], steps=1).relevance[:2]).all()


def test_bad_arguments_are_named():
    for make, argument in [
        (lambda: clicks.propensities_from_random_rankings([1, 3], [1, 1]), "positions"),
        (lambda: clicks.fit_position_based([-1], [1], [1]), "documents"),
        (lambda: clicks.fit_position_based([0], [1], [1], features=[[1.0]]), "features"),
        (lambda: clicks.relevance_from_clicks([0], [2], [1], [1.0]), "propensities"),
        (lambda: clicks.relevance_from_clicks([0], [1], [1], [0.0]), "propensities"),
    ]:
        with pytest.raises(ValueError, match=f"`{argument}`"):
            make()
    with pytest.raises(ValueError, match=r"`documents` must be .*, got <U1 \(1,\); `pandas.factorize` numbers ids"):
        clicks.fit_position_based(["a"], [1], [1])
