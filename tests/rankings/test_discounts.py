"""The mixture that approximates the log discount, shallow discounts, and custom dcg."""

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tests.helpers import references
from tfr_smooth.rankings import dcg
from tfr_smooth.rankings.softrank import log2_mixture


def test_the_mixture_approximates_the_log_discount():
    for length, at_most in ((0, 16), (1, 16), (16, 16), (64, 16), (65, 22), (1000, 22), (1024, 22), (16384, 29)):
        weights, decays = (x.numpy() for x in log2_mixture(length))
        assert weights.dtype == decays.dtype == np.float64
        assert (weights > 0).all() and (decays > 0).all() and (decays < 1).all()
        assert len(weights) == len(decays) <= at_most
        found = ((1 - decays) ** np.arange(length)[:, None]) @ weights
        np.testing.assert_allclose(found, references.discounts(length), rtol=1e-7)
        np.testing.assert_allclose(weights.sum(), 1.0, rtol=1e-14)


def test_graphs_of_unknown_length_use_the_same_mixture():
    unknown = tf.function(log2_mixture, input_signature=[tf.TensorSpec([], tf.int32)])
    for length in (1, 64, 65, 900, 65536):
        helpers.assert_same(unknown(length), log2_mixture(length))


def test_shallow_discounts_decrease_from_one_with_curvature_alpha():
    ranks, count = np.arange(8.0), np.array([[8.0], [5.0]])
    x = np.minimum(ranks / count, 1.0)
    for alpha in (-1.0, -0.4, 0.0, 0.4, 1.0):
        found = dcg.ShallowDiscount(alpha).at(ranks, count).numpy()
        np.testing.assert_allclose(found, (1 - x) * (1 + alpha * x), rtol=1e-14)
        assert (found[:, 0] == 1.0).all() and (found[1, 5:] == 0.0).all()
        assert (np.diff(found[0]) < 0).all()
        np.testing.assert_allclose(np.diff(found[0], 2), -2 * alpha / 64, atol=1e-14)


def test_expected_shallow_discounts_need_only_mean_and_variance():
    count, ranks, chances = np.array([[6.0]]), np.arange(6.0), np.random.RandomState(0).dirichlet(np.ones(6))
    mean = chances @ ranks
    variance = chances @ (ranks - mean) ** 2
    for alpha in (-1.0, 0.0, 0.7):
        discount = dcg.ShallowDiscount(alpha)
        found = discount.expected(np.array([[mean]]), np.array([[variance]]), count).numpy()
        np.testing.assert_allclose(found, discount.at(ranks, count).numpy() @ chances[:, None], rtol=1e-13)


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match=r"`alpha` must be a number in \[-1, 1\], got 1.5."):
        dcg.ShallowDiscount(1.5)
    for discount in ([], [[1.0]], [1.0, float("nan")], 3.0, None, ["a"], "log"):
        with pytest.raises(ValueError, match="`discount` must be 'log2', 'linear', a ShallowDiscount, a function or"):
            dcg.checked_discount(discount)


MASK = tf.constant([[True] * 4, [True] * 2 + [False] * 2])


def test_discounts_at_ranks_equal_their_formula_or_table():
    for discount, expected in (
        ("log2", [references.discounts(5)]),
        ("linear", [[1.0, 0.75, 0.5, 0.25, 0.0], [1.0, 0.5, 0.0, 0.0, 0.0]]),
        (dcg.ShallowDiscount(-1.0), [[1.0, 9 / 16, 1 / 4, 1 / 16, 0.0], [1.0, 1 / 4, 0.0, 0.0, 0.0]]),
        ([3.0, 1.0, -2.0], [[3.0, 1.0, -2.0, 0.0, 0.0]]),
        (tuple(range(9)), [[0.0, 1.0, 2.0, 3.0, 4.0]]),
        (lambda ranks: 1.0 / (1.0 + ranks), [[1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 5]]),
    ):
        for number in (int, tf.constant):
            found = dcg.discounts_at_ranks(discount, number(5), MASK)
            assert found.dtype == tf.float64
            np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_tables_are_interpolated_between_ranks_and_decrease_to_zero_after_their_end():
    for dtype in (tf.float32, tf.float64):
        ranks = tf.constant([[0.0, 0.25, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 1e6]], dtype)
        with tf.GradientTape() as tape:
            tape.watch(ranks)
            found = dcg.discounts_at([3.0, 1.0, -2.0], ranks, MASK)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, [[3.0, 2.5, 1.0, -0.5, -2.0, -1.0, 0.0, 0.0, 0.0]], rtol=1e-6)
        slopes = tape.gradient(found, ranks).numpy()[0]
        np.testing.assert_allclose(slopes[[1, 3, 5, 7, 8]], [-2.0, -3.0, 2.0, 0.0, 0.0], rtol=1e-6)


def test_discounts_between_ranks_equal_their_formula():
    ranks = tf.constant([[0.5, 2.3]], tf.float64)
    np.testing.assert_allclose(dcg.discounts_at("log2", ranks, MASK), 1.0 / np.log2(2.0 + ranks.numpy()), rtol=1e-14)
    np.testing.assert_allclose(dcg.discounts_at("linear", ranks, MASK)[0], 1.0 - ranks.numpy()[0] / 4.0, rtol=1e-14)
    np.testing.assert_allclose(dcg.discounts_at(tf.exp, ranks, MASK), np.exp(ranks.numpy()), rtol=1e-14)
