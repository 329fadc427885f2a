"""SoftRank equals the paper: contests, rank distributions, expected discounts, gradients, limits, memory."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import references
from tests.rankings import evaluate
from tests.rankings.evaluate import assert_near
from tfr_smooth.rankings import ShallowDiscount, SoftRank, win_probabilities

SIGMAS = [0.01, 0.3, 1.0, 10.0, 100.0]


def a_list(seed, length, spread=1.0):
    return (spread * np.random.RandomState(seed).randn(length)).astype(np.float32)


def distribution_of(sigma=1.0, *arguments):
    """Returns a function that returns the distribution of the rank of each document, [batch, list, rank]."""
    indicators = SoftRank(sigma, *arguments).indicators
    return lambda scores, mask: tf.transpose(indicators(tf.cast(scores, tf.float64), mask), [0, 2, 1])


def discounts_of(sigma=1.0, **arguments):
    return lambda scores, mask: SoftRank(sigma).document_discounts(scores, mask, **arguments)


def contests(scores, j, sigma):
    """Returns the documents i != j, the probabilities that they beat j or not (Eq. 9), and d pi_ij / d s_i (Eq. 20)."""
    others = np.delete(np.arange(len(scores)), j)
    scores = scores.astype(np.float64)
    ahead = (scores[others] - scores[j]) / (2.0 * sigma)
    won, lost = (0.5 * np.array([math.erfc(x) for x in sign * ahead]) for sign in (-1, 1))
    return others, won, lost, np.exp(-(ahead**2)) / (2.0 * sigma * math.sqrt(math.pi))


def recursion(won, lost):
    """Returns the rank distribution after each contest (Eq. 11 and 12)."""
    found = [np.eye(1, len(won) + 1)[0]]
    for pi, rest in zip(won, lost, strict=True):
        found.append(np.append(0.0, found[-1][:-1]) * pi + found[-1] * rest)
    return found


def distributions(scores, sigma=1.0):
    return np.array([recursion(*contests(scores, j, sigma)[1:3])[-1] for j in range(len(scores))])


def expectation_and_slopes(scores, sigma, tables, documents=None):
    """Returns sum_r D_j(r) p_j(r) for some documents j, and the gradient of their sum with respect to all scores.

    The derivative with respect to one contest is the change of the value by another winner, in expectation over the
    contests before it.
    """
    values, slopes = [], np.zeros(len(scores))
    for j, table in zip(range(len(scores)) if documents is None else documents, tables, strict=True):
        others, won, lost, density = contests(scores, j, sigma)
        before, at_ranks = recursion(won, lost), np.asarray(table, np.float64)
        values.append(before[-1] @ at_ranks)
        for i in reversed(range(len(others))):
            if_won = np.append(at_ranks[1:], 0.0)
            slope = (before[i] @ (if_won - at_ranks)) * density[i]
            slopes[others[i]] += slope
            slopes[j] -= slope
            at_ranks = at_ranks * lost[i] + if_won * won[i]
    return np.array(values), slopes


def check(function, rows, tables, value_error, gradient_error, sigma=1.0, dtype=np.float64):
    """Compares the expected discounts of each list, under its weighted table of discounts, with the recursion."""
    scores, mask = evaluate.padded(rows)
    weights = np.zeros(scores.shape)
    for i, (of_documents, _) in enumerate(tables):
        weights[i, : len(of_documents)] = of_documents
    found, gradient = evaluate.value_and_gradient(function, scores.astype(dtype), weights, mask)
    assert found.dtype == gradient.dtype == dtype
    for i, (row, (of_documents, table)) in enumerate(zip(rows, tables, strict=True)):
        n = len(row)
        expected, slopes = expectation_and_slopes(row, sigma, np.outer(of_documents, table))
        np.testing.assert_allclose(found[i, :n] * of_documents, expected, rtol=value_error, atol=1e-290)
        assert_near(gradient[i, :n], slopes, gradient_error)
    np.testing.assert_array_equal(found[~mask], 0.0)
    np.testing.assert_array_equal(gradient[~mask], 0.0)


def test_reference_slopes_equal_equation_18():
    scores, table = a_list(0, 7).astype(np.float64), np.random.RandomState(1).randn(7)
    tables = [table * (j + 1) for j in range(7)]
    _, slopes = expectation_and_slopes(scores, 0.7, tables)
    for m in range(7):
        total = 0.0
        for j in range(7):
            others, won, lost, density = contests(scores, j, 0.7)
            p, psi = np.eye(1, 7)[0], np.zeros(7)
            for i, pi, rest, phi in zip(others, won, lost, density, strict=True):
                by_score = phi * ((m == i) - float(m == j))  # Eq. 20
                psi = np.append(0, psi[:-1]) * pi + psi * rest + (np.append(0, p[:-1]) - p) * by_score
                p = np.append(0, p[:-1]) * pi + p * rest
            total += psi @ tables[j]
        np.testing.assert_allclose(slopes[m], total, rtol=1e-12)
    expected = references.central_differences(lambda s: expectation_and_slopes(s, 0.7, tables)[0].sum(), scores)
    np.testing.assert_allclose(slopes, expected, rtol=1e-6, atol=1e-8)


def test_win_probabilities_are_precise():
    scores = a_list(0, 9)
    for sigma in SIGMAS:
        found = evaluate.value(lambda s, mask, sigma=sigma: win_probabilities(s, mask, sigma=sigma), scores)
        assert found.dtype == np.float64
        for j in range(9):
            others, won, *_ = contests(scores, j, sigma)
            np.testing.assert_allclose(found[others, j], won, rtol=1e-10, atol=1e-300)
        np.testing.assert_allclose(found + found.T, 1.0 - np.eye(9), rtol=1e-15)
    padded = win_probabilities(tf.constant([scores]), tf.constant([[True, False, True] + [False] * 6])).numpy()[0]
    np.testing.assert_allclose(padded[2, 0], contests(scores[[0, 2]], 0, 1.0)[1][0], rtol=1e-10)
    np.testing.assert_allclose(padded.sum(), 1.0, rtol=1e-14)  # those of padding are 0


@pytest.mark.parametrize("sigma", SIGMAS)
def test_rank_distributions_equal_the_recursion(sigma):
    rows = [a_list(length, length) for length in (1, 2, 7, 33)]
    scores, mask = evaluate.padded(rows)
    tables = np.random.RandomState(1).randn(4, 33, 33)
    found, gradient = evaluate.value_and_gradient(distribution_of(sigma=sigma), scores, tables, mask)
    assert found.dtype == np.float64 and gradient.dtype == np.float32
    for i, row in enumerate(rows):
        n = len(row)
        np.testing.assert_allclose(found[i, :n, :n], distributions(row, sigma), rtol=1e-10, atol=1e-290)
        np.testing.assert_allclose(found[i, :n].sum(axis=1), 1.0, rtol=1e-13)
        assert np.abs(found[i]).sum() == pytest.approx(n)
        assert_near(gradient[i, :n], expectation_and_slopes(row, sigma, tables[i, :n, :n])[1], 1e-6)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_expected_log_discount_equals_the_recursion(sigma):
    rows = [a_list(length + 1, length) for length in (1, 2, 7, 60)]
    tables = [(np.random.RandomState(2).rand(len(row)), references.discounts(len(row))) for row in rows]
    for dtype, value_error in ((np.float32, 3e-7), (np.float64, 1e-7)):
        check(discounts_of(sigma), rows, tables, value_error, 3e-6, sigma, dtype)


def test_tiny_expected_discounts_with_a_cutoff_are_precise():
    """For sigma = 10 and K = 1, the values are around 1e-12, because documents are hardly ever at rank 1."""
    weights = np.random.RandomState(2).rand(40)
    for topn, sigma in ((1, 10.0), (5, 0.01), (5, 1.0), (39, 1.0), (40, 1.0), (99, 1.0)):
        table = np.where(np.arange(40) < topn, references.discounts(40), 0.0)
        check(discounts_of(sigma, topn=topn), [a_list(6, 40)], [(weights, table)], 1e-7, 1e-6, sigma)


def test_the_gradient_of_a_document_far_below_all_others_is_precise():
    scores = np.array([6.0, 9.0, 8.0, -4.0])
    found, gradient = evaluate.of_one_list(discounts_of(topn=1), scores, np.eye(4)[3])
    expected, slopes = expectation_and_slopes(scores, 1.0, [np.eye(4)[0]], [3])
    assert 0 < expected[0] < 1e-40
    np.testing.assert_allclose(found[3], expected[0], rtol=1e-10)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-10)


TABLE = [4.0, 2.0, -1.0, 0.5]


@pytest.mark.parametrize("topn", [None, 3])
def test_expected_discounts_of_every_kind_equal_the_recursion(topn):
    ranks, weights = np.arange(20) / 20, np.random.RandomState(2).rand(20)
    for discount, table in (
        ("log2", references.discounts(20)),
        ("linear", 1.0 - ranks),
        (ShallowDiscount(-0.8), (1.0 - ranks) * (1.0 - 0.8 * ranks)),
        (ShallowDiscount(1.0), 1.0 - ranks**2),
        (TABLE, TABLE + [0.0] * 16),
        (tuple(range(30)), np.arange(20.0)),
        (lambda rank: 1.0 / (1.0 + rank), 1.0 / (1.0 + np.arange(20))),
    ):
        table = np.where(np.arange(20) < (topn or 20), table, 0.0)
        tight = 1e-6 if discount == "log2" else 1e-12
        check(discounts_of(discount=discount, topn=topn), [a_list(8, 20)], [(weights, table)], tight, tight)


@pytest.mark.parametrize(("sigma", "error"), [(0.01, 0.2), (0.3, 0.012), (1.0, 0.004), (10.0, 0.001), (100.0, 0.001)])
def test_normal_distributions_are_near_the_recursion_and_equal_it_at_the_ends(sigma, error):
    scores = a_list(9, 60).astype(np.float64)
    expected = distributions(scores, sigma)
    normal = evaluate.value(distribution_of(sigma, "normal"), scores)
    np.testing.assert_allclose(normal.sum(axis=1), 1.0, rtol=1e-12)
    assert (normal >= 0).all()
    from_middle = np.argsort(np.abs(expected @ np.arange(60) - 29.5))
    np.testing.assert_allclose(normal[from_middle[-16:]], expected[from_middle[-16:]], rtol=1e-8, atol=1e-300)
    assert 1e-9 < np.abs(normal - expected)[from_middle[:-16]].max() < error


def test_normal_distributions_have_the_mean_the_variance_and_their_gradients():
    scores, weights = a_list(10, 80).astype(np.float64), np.random.RandomState(0).rand(80)
    ranks = np.arange(80.0)
    for moment, rounding in ((ranks, 0.0), (ranks**2, 1 / 12)):  # Rounding to whole ranks adds 1/12 to the variance.
        tables = np.outer(weights, moment)
        normal, gradient = evaluate.of_one_list(distribution_of(1.0, "normal"), scores, tables)
        expected, slopes = expectation_and_slopes(scores, 1.0, tables)
        np.testing.assert_allclose(normal @ moment, expected / weights, atol=1.01 * rounding + 1e-5)
        assert_near(gradient, slopes, 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("distribution", "sigma"), [("binomial", 3.0), ("normal", 3.0), ("binomial", 0.1)])
def test_scaled_distributions_equal_the_reference_and_ranks_sum_to_one(distribution, sigma):
    rows = [a_list(length, length).astype(np.float64) for length in (1, 9, 25)]
    scores, mask = evaluate.padded(rows)
    tables = np.random.RandomState(0).randn(3, 25, 25)
    found, gradient = evaluate.value_and_gradient(distribution_of(sigma, distribution, 200), scores, tables, mask)
    for i, row in enumerate(rows):
        n = len(row)
        expected = references.softrank_indicators(row, sigma, distribution, 200).T
        np.testing.assert_allclose(found[i, :n, :n], expected, rtol=1e-9, atol=1e-250)
        np.testing.assert_allclose(found[i, :n].sum(axis=1), 1.0, rtol=1e-12)
        np.testing.assert_allclose(found[i, :, :n].sum(axis=0), [1.0] * n, atol=1e-3)
        assert np.abs(found[i]).sum() == pytest.approx(n)
        one, slopes = evaluate.of_one_list(distribution_of(sigma, distribution, 200), row, tables[i, :n, :n])
        np.testing.assert_allclose(gradient[i, :n], slopes, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(gradient[i, n:], 0.0)


@pytest.mark.parametrize(("distribution", "steps"), [("binomial", 0), ("binomial", 20), ("normal", 0), ("normal", 1)])
def test_gradients_of_each_distribution_equal_finite_differences(distribution, steps):
    scores, tables = a_list(12, 22).astype(np.float64), np.random.RandomState(0).randn(22, 22)
    gradient = evaluate.gradient(distribution_of(1.0, distribution, steps), scores, tables)
    expected = references.central_differences(
        lambda s: (references.softrank_indicators(s, 1.0, distribution, steps).T * tables).sum(), scores
    )
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)


def test_scaled_ranks_are_nearer_to_the_ranks_of_noisy_scores():
    """The motivation in section 3.2 of the paper: the contests of a real sort are not independent."""
    scores = a_list(13, 8)
    order = np.argsort(-(scores + np.random.RandomState(0).randn(40000, 8)), axis=1)
    frequencies = np.array([(order == j).mean(axis=0) for j in range(8)])
    errors = [np.abs(evaluate.value(distribution_of(1.0, "binomial", n), scores) - frequencies).mean() for n in (0, 20)]
    assert errors[1] < 0.9 * errors[0] < 0.1


def test_scaling_gives_every_rank_to_many_tied_documents():
    """The chance of the first rank of 1,200 tied documents is 0 in float64 before the scaling."""
    found, gradient = evaluate.of_one_list(distribution_of(1.0, "normal", 2), np.zeros(1200), np.eye(1, 1200))
    np.testing.assert_allclose(found, 1.0 / 1200, rtol=1e-9)
    assert np.isfinite(gradient).all()


def test_invalid_arguments_raise():
    for bad in ("1", math.inf):
        with pytest.raises(ValueError, match=f"`sigma` must be a finite number > 0, got {bad!r}."):
            win_probabilities(tf.zeros([1, 3]), tf.ones([1, 3], tf.bool), sigma=bad)
