"""SoftRank against the paper: contests, rank distributions, expected discounts, gradients, limits, cost."""

import math

import numpy as np
import pytest
import tensorflow as tf
from tfr_smooth.ops.rank_binomial import pairwise_probabilities, rank_distributions

from tests import references
from tfr_smooth.ops.discounts import ShallowDiscount
from tfr_smooth.ops.softrank import SoftRank, expected_discount

SIGMAS = [0.01, 0.3, 1.0, 10.0, 100.0]


def a_list(seed, length, spread=1.0):
    return (spread * np.random.RandomState(seed).randn(length)).astype(np.float32)


def contests(scores, j, sigma):
    """Eq. 9: the other documents, the chances that they beat j and that they do not, and d pi_ij / d s_i (Eq. 20)."""
    others = np.delete(np.arange(len(scores)), j)
    scores = scores.astype(np.float64)
    ahead = (scores[others] - scores[j]) / (2.0 * sigma)
    won, lost = (0.5 * np.array([math.erfc(x) for x in sign * ahead]) for sign in (-1, 1))
    return others, won, lost, np.exp(-(ahead**2)) / (2.0 * sigma * math.sqrt(math.pi))


def recursion(won, lost):
    """Eq. 11 and 12: the distribution after each contest, padded to one rank for each."""
    found = [np.eye(1, len(won) + 1)[0]]
    for pi, rest in zip(won, lost, strict=True):
        found.append(np.append(0.0, found[-1][:-1]) * pi + found[-1] * rest)
    return found


def distributions(scores, sigma=1.0):
    return np.array([recursion(*contests(scores, j, sigma)[1:3])[-1] for j in range(len(scores))])


def expectation_and_slopes(scores, sigma, tables, documents=None):
    """sum_r D_j(r) p_j(r) for some documents j, and the gradient of the sum of them to all scores.

    The derivative to one contest is the difference that it makes: the worth of the ranks after it, before which the
    distribution of the contests before it.
    """
    values, slopes = [], np.zeros(len(scores))
    for j, table in zip(range(len(scores)) if documents is None else documents, tables, strict=True):
        others, won, lost, density = contests(scores, j, sigma)
        before, worth = recursion(won, lost), np.asarray(table, np.float64)
        values.append(before[-1] @ worth)
        for i in reversed(range(len(others))):
            if_won = np.append(worth[1:], 0.0)
            slope = (before[i] @ (if_won - worth)) * density[i]
            slopes[others[i]] += slope
            slopes[j] -= slope
            worth = worth * lost[i] + if_won * won[i]
    return np.array(values), slopes


def value_and_gradient(function, scores, weights):
    scores = tf.constant(scores)[tf.newaxis]
    with tf.GradientTape() as tape:
        tape.watch(scores)
        found = function(scores)
        total = tf.reduce_sum(found[0] * tf.cast(weights, found.dtype))
    return found.numpy()[0], tape.gradient(total, scores).numpy()[0]


def assert_near(found, expected, relative):
    """Near the expected vector, relative to its largest element."""
    assert np.abs(found - expected).max() <= relative * np.abs(expected).max() + 1e-37


def test_the_reference_slopes_are_those_of_equation_18():
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


@pytest.mark.parametrize("sigma", SIGMAS)
def test_pairwise_probabilities_keep_their_digits(sigma):
    scores = a_list(0, 9)
    found = pairwise_probabilities(scores.astype(np.float64)[None], sigma=sigma).numpy()[0]
    for j in range(9):
        others, won, *_ = contests(scores, j, sigma)
        np.testing.assert_allclose(found[others, j], won, rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(found + found.T, 1.0 - np.eye(9), rtol=1e-15)


def test_pairwise_probabilities_of_padding_are_zero():
    scores, mask = np.array([[1.0, np.nan, 0.0, np.inf]], np.float32), np.array([[True, False, True, False]])
    found = pairwise_probabilities(scores, mask).numpy()[0]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found[[1, 3]], 0.0)
    np.testing.assert_array_equal(found[:, [1, 3]], 0.0)
    np.testing.assert_allclose(found[0, 2], 0.5 * math.erfc(-0.5), rtol=1e-6)


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("length", [1, 2, 7, 33])
def test_rank_distributions_equal_the_recursion(length, sigma):
    scores = a_list(length, length)
    tables = np.random.RandomState(1).randn(length, length)
    found, gradient = value_and_gradient(lambda s: rank_distributions(s, sigma=sigma), scores, tables)
    np.testing.assert_allclose(found, distributions(scores, sigma), rtol=1e-6, atol=1e-37)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-6)
    assert_near(gradient, expectation_and_slopes(scores, sigma, tables)[1], 1e-6)


def test_rank_distributions_of_a_longer_list_equal_the_recursion():
    scores, tables = a_list(3, 120).astype(np.float64), np.random.RandomState(1).randn(120, 120)
    found, gradient = value_and_gradient(rank_distributions, scores, tables)
    np.testing.assert_allclose(found, distributions(scores), rtol=1e-9, atol=1e-300)
    assert_near(gradient, expectation_and_slopes(scores, 1.0, tables)[1], 1e-12)


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("length", [1, 2, 7, 40, 120])
def test_expected_log_discount_equals_the_recursion(length, sigma):
    scores, weights = a_list(length + 1, length), np.random.RandomState(2).rand(length)
    expected, slopes = expectation_and_slopes(scores, sigma, np.outer(weights, references.discounts(length)))
    for dtype in (np.float32, np.float64):
        found, gradient = value_and_gradient(lambda s: expected_discount(s, sigma=sigma), scores.astype(dtype), weights)
        assert found.dtype == gradient.dtype == dtype
        np.testing.assert_allclose(found * weights, expected, rtol=1e-7 if dtype == np.float64 else 3e-7)
        assert_near(gradient, slopes, 3e-6)


@pytest.mark.parametrize("spread", [0.01, 1.0, 100.0])
def test_expected_log_discount_of_a_thousand_documents(spread):
    """Some documents have a weight, so the reference needs the recursion for those only."""
    scores, documents = a_list(4, 1000, spread), [0, 1, 500, 998, 999]
    scores[[0, 999]] = scores.max() * 1.1, scores.min() * 1.1
    weights = np.zeros(1000)
    weights[documents] = [1.0, 3.0, 0.5, 2.0, 7.0]
    found, gradient = value_and_gradient(expected_discount, scores, weights)
    table = references.discounts(1000)
    expected, slopes = expectation_and_slopes(scores, 1.0, np.outer(weights[documents], table), documents)
    np.testing.assert_allclose(found[documents] * weights[documents], expected, rtol=3e-7)
    assert_near(gradient, slopes, 1e-5)


@pytest.mark.parametrize(
    ("topn", "sigma"), [(1, 10.0), (5, 0.01), (5, 1.0), (5, 10.0), (39, 1.0), (40, 1.0), (99, 1.0)]
)
def test_a_cut_discount_keeps_its_digits_however_small(topn, sigma):
    """At sigma 10 hardly any of the 40 documents is ever at the top: values of 1e-12 for K = 1."""
    scores = a_list(6, 40).astype(np.float64)
    table = np.where(np.arange(40) < topn, references.discounts(40), 0.0)
    weights = np.random.RandomState(2).rand(40)
    found, gradient = value_and_gradient(lambda s: expected_discount(s, sigma=sigma, topn=topn), scores, weights)
    expected, slopes = expectation_and_slopes(scores, sigma, np.outer(weights, table))
    np.testing.assert_allclose(found * weights, expected, rtol=1e-7, atol=1e-290)
    assert_near(gradient, slopes, 1e-6)


def test_the_gradient_of_a_document_that_all_others_beat_keeps_its_digits():
    scores = np.array([6.0, 9.0, 8.0, -4.0])
    found, gradient = value_and_gradient(lambda s: expected_discount(s, topn=1), scores, np.eye(4)[3])
    expected, slopes = expectation_and_slopes(scores, 1.0, [np.eye(4)[0]], [3])
    assert 0 < expected[0] < 1e-40
    np.testing.assert_allclose(found[3], expected[0], rtol=1e-10)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-10)


TABLE = [4.0, 2.0, -1.0, 0.5]


@pytest.mark.parametrize(
    ("discount", "table"),
    [
        ("log2", references.discounts(20)),
        ("linear", 1.0 - np.arange(20) / 20),
        (ShallowDiscount(-0.8), (1.0 - np.arange(20) / 20) * (1.0 - 0.8 * np.arange(20) / 20)),
        (ShallowDiscount(1.0), 1.0 - (np.arange(20) / 20) ** 2),
        (TABLE, TABLE + [0.0] * 16),
        (tuple(range(30)), np.arange(20.0)),
        (lambda rank: 1.0 / (1.0 + rank), 1.0 / (1.0 + np.arange(20))),
    ],
    ids=["log2", "linear", "below", "above", "table", "long table", "function"],
)
@pytest.mark.parametrize("topn", [None, 3])
def test_every_discount_equals_its_table(discount, table, topn):
    scores, weights = a_list(8, 20).astype(np.float64), np.random.RandomState(2).rand(20)
    table = np.where(np.arange(20) < (topn or 20), table, 0.0)
    found, gradient = value_and_gradient(lambda s: expected_discount(s, discount=discount, topn=topn), scores, weights)
    tight = 1e-6 if discount == "log2" else 1e-12
    expected, slopes = expectation_and_slopes(scores, 1.0, np.outer(weights, table))
    np.testing.assert_allclose(found * weights, expected, rtol=tight)
    assert_near(gradient, slopes, tight)


def test_shallow_discounts_are_over_the_real_documents():
    scores = np.array([[2.0, 1.0, 0.0, 9.0]])
    mask = np.array([[True, True, True, False]])
    for topn, expected in ((None, [1.0, 2 / 3, 1 / 3, 0.0]), (2, [1.0, 2 / 3, 0.0, 0.0])):
        found = expected_discount(scores, mask, sigma=1e-3, discount="linear", topn=topn)
        np.testing.assert_allclose(found, [expected], rtol=1e-12)


@pytest.mark.parametrize("seed", [0, 1])
def test_equals_a_simulation_of_independent_contests(seed):
    random, draws, length = np.random.RandomState(seed), 20000, 6
    scores = a_list(seed, length)
    found = rank_distributions(scores[None], sigma=0.8).numpy()[0]
    worth = expected_discount(scores[None], sigma=0.8).numpy()[0]
    for j in range(length):
        won = contests(scores, j, 0.8)[1]
        ranks = (random.rand(draws, length - 1) < won).sum(axis=1)
        chances = np.bincount(ranks, minlength=length) / draws
        assert (np.abs(chances - found[j]) < 4.5 * np.sqrt(found[j] / draws) + 3 / draws).all()
        drawn = references.discounts(length)[ranks]
        assert abs(drawn.mean() - worth[j]) < 4.5 * drawn.std() / np.sqrt(draws)


@pytest.mark.parametrize("topn", [None, 5])
def test_without_noise_it_is_the_exact_rank(topn):
    ranks = np.random.RandomState(0).permutation(12)
    scores = (-0.1 * ranks).astype(np.float32)[None]
    np.testing.assert_array_equal(rank_distributions(scores, sigma=1e-4)[0], np.eye(12)[ranks])
    expected = np.where(ranks < (topn or 12), references.discounts(12)[ranks], 0.0)
    np.testing.assert_allclose(expected_discount(scores, sigma=1e-4, topn=topn)[0], expected, rtol=3e-7)


def test_two_tied_documents_share_their_ranks():
    scores = np.array([[1.0, 0.5, 0.5, 0.0]], np.float32)
    first, second, third, last = references.discounts(4)
    shared = (second + third) / 2
    np.testing.assert_allclose(expected_discount(scores, sigma=1e-4), [[first, shared, shared, last]], rtol=3e-7)


@pytest.mark.parametrize(("sigma", "error"), [(0.01, 0.2), (0.3, 0.012), (1.0, 0.004), (10.0, 0.001), (100.0, 0.001)])
def test_the_normal_approximation_is_near_and_exact_at_the_ends(sigma, error):
    scores = a_list(9, 60).astype(np.float64)[None]
    exact = rank_distributions(scores, sigma=sigma).numpy()[0]
    normal = rank_distributions(scores, sigma=sigma, method="normal").numpy()[0]
    np.testing.assert_allclose(normal.sum(axis=1), 1.0, rtol=1e-12)
    assert (normal >= 0).all()
    from_middle = np.argsort(np.abs(exact @ np.arange(60) - 29.5))
    np.testing.assert_allclose(normal[from_middle[-16:]], exact[from_middle[-16:]], rtol=1e-12)
    assert 1e-9 < np.abs(normal - exact)[from_middle[:-16]].max() < error


def test_the_normal_approximation_has_the_mean_and_variance_and_their_gradient():
    scores, weights = a_list(10, 80).astype(np.float64), np.random.RandomState(0).rand(80)
    ranks = np.arange(80.0)
    for moment, rounding in ((ranks, 0.0), (ranks**2, 1 / 12)):  # rounding to whole ranks adds 1/12 of variance
        tables = np.outer(weights, moment)
        normal, gradient = value_and_gradient(lambda s: rank_distributions(s, method="normal"), scores, tables)
        expected, slopes = expectation_and_slopes(scores, 1.0, tables)
        np.testing.assert_allclose(normal @ moment, expected / weights, atol=1.01 * rounding + 1e-5)
        assert_near(gradient, slopes, 1e-4)


@pytest.mark.parametrize("method", ["exact", "normal"])
def test_sinkhorn_scaling_makes_ranks_sum_to_one(method):
    scores = np.append(a_list(11, 30), [np.nan, 7.0]).astype(np.float64)[None]
    mask = np.array([[True] * 30 + [False] * 2])
    plain = rank_distributions(scores, mask, sigma=3.0, method=method).numpy()[0]
    assert np.abs(plain[:, :30].sum(axis=0) - 1.0).max() > 0.5
    found = rank_distributions(scores, mask, sigma=3.0, method=method, sinkhorn_iterations=50).numpy()[0]
    np.testing.assert_allclose(found[:30].sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(found[:, :30].sum(axis=0), 1.0, atol=1e-5)
    np.testing.assert_array_equal(found[30:], 0.0)
    np.testing.assert_array_equal(found[:, 30:], 0.0)
    expected = plain[:30, :30]
    for _ in range(50):
        expected = expected / expected.sum(axis=0)
        expected = expected / expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found[:30, :30], expected, rtol=1e-9, atol=1e-280)


def test_sinkhorn_scaling_has_its_gradient():
    scores, tables = a_list(12, 6).astype(np.float64), np.random.RandomState(0).randn(6, 6)

    def scaled(s):
        return rank_distributions(s, sinkhorn_iterations=3)

    _, gradient = value_and_gradient(scaled, scores, tables)
    expected = references.central_differences(lambda s: (scaled(s[None]).numpy()[0] * tables).sum(), scores)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)


def test_sinkhorn_scaling_comes_nearer_to_the_ranks_of_noisy_scores():
    """The paper's reason for it (section 3.2): the contests of a real sort are not independent."""
    random = np.random.RandomState(0)
    scores = a_list(13, 8)
    order = np.argsort(-(scores + random.randn(40000, 8)), axis=1)
    sorted_chances = np.array([(order == j).mean(axis=0) for j in range(8)])
    errors = [
        np.abs(rank_distributions(scores[None], sinkhorn_iterations=n).numpy()[0] - sorted_chances).mean()
        for n in (0, 20)
    ]
    assert errors[1] < 0.9 * errors[0] < 0.1


FUNCTIONS = {
    "log2": lambda s, m: expected_discount(s, m),
    "log2@3": lambda s, m: expected_discount(s, m, topn=3),
    "linear": lambda s, m: expected_discount(s, m, discount="linear"),
    "linear@3": lambda s, m: expected_discount(s, m, discount="linear", topn=3),
    "table": lambda s, m: expected_discount(s, m, discount=[3.0, 1.0]),
    "function": lambda s, m: expected_discount(s, m, discount=lambda rank: 1.0 / (1.0 + rank)),
    "exact": lambda s, m: rank_distributions(s, m, sinkhorn_iterations=2),
    "normal": lambda s, m: rank_distributions(s, m, method="normal"),
    "relevance": lambda s, m: SoftRank().relevance(s, tf.stop_gradient(tf.clip_by_value(s, -1.0, 5.0)), m, topn=4),
}
every_function = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)


def squares_and_gradient(function, scores, mask):
    with tf.GradientTape() as tape:
        tape.watch(scores)
        found = function(scores, mask)
        total = tf.reduce_sum(tf.square(found))
    return found, tape.gradient(total, scores)


@every_function
def test_padding_changes_nothing(function):
    scores = a_list(14, 21)[None]
    padded = np.insert(scores, [0, 5, 21], [np.nan, np.inf, 1e30], axis=1)
    mask = np.insert(np.ones_like(scores, bool), [0, 5, 21], False, axis=1)
    alone = squares_and_gradient(function, tf.constant(scores), tf.ones_like(scores, tf.bool))
    found, gradient = squares_and_gradient(function, tf.constant(padded), tf.constant(mask))
    found = found.numpy()[0] if len(found.shape) == 2 and found.shape[1] == 4 else found.numpy()[0][mask[0]]
    np.testing.assert_allclose(found[:, :21] if found.ndim == 2 else found, alone[0][0], rtol=2e-6, atol=1e-37)
    np.testing.assert_allclose(gradient[mask], alone[1][0], rtol=1e-5, atol=1e-8)
    np.testing.assert_array_equal(gradient[~mask], 0.0)


@every_function
def test_a_document_may_stand_anywhere(function):
    scores, order = a_list(15, 20)[None], np.random.RandomState(0).permutation(20)
    real = tf.ones_like(scores, tf.bool)
    found, gradient = squares_and_gradient(function, tf.constant(scores), real)
    moved, moved_gradient = squares_and_gradient(function, tf.constant(scores[:, order]), real)
    by_document = found.shape[1] == 20
    np.testing.assert_allclose(moved[0], found.numpy()[0][order] if by_document else found[0], rtol=2e-6, atol=1e-37)
    np.testing.assert_allclose(moved_gradient[0], gradient.numpy()[0][order], rtol=1e-5, atol=1e-8)


@every_function
def test_extreme_lists_are_finite(function):
    batch = [[1e30, -1e30, 0.0, 1e30, 3e38], [-3e38, 3e38, np.inf, -np.inf, 0.0], [2.0] * 5, [1.0] * 5, [np.nan] * 5]
    mask = tf.constant([[True] * 5, [True] * 5, [True] * 5, [False, True] + [False] * 3, [False] * 5])
    found, gradient = squares_and_gradient(function, tf.constant(batch, tf.float32), mask)
    assert np.isfinite(gradient).all()
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[4], 0.0)
    huge = tf.constant([[1e300, -1e300, 1e308, -1.7e308]], tf.float64)
    for result in squares_and_gradient(function, huge, tf.ones([1, 4], tf.bool)):
        assert np.isfinite(result).all()


@every_function
def test_a_nan_score_stays_in_its_list(function):
    scores = np.stack([a_list(16, 6), a_list(17, 6)])
    real = tf.ones_like(scores, tf.bool)
    clean = squares_and_gradient(function, tf.constant(scores), real)
    scores[0, 2] = np.nan
    found, gradient = squares_and_gradient(function, tf.constant(scores), real)
    assert np.isnan(found[0]).all() and np.isnan(gradient[0]).any()
    np.testing.assert_array_equal(found[1], clean[0][1])
    np.testing.assert_array_equal(gradient[1], clean[1][1])


@pytest.mark.parametrize(
    ("name", "compiled"),
    [*((name, False) for name in FUNCTIONS), *((name, True) for name in ("log2", "log2@3", "normal", "relevance"))],
)
def test_graphs_of_unknown_shape_equal_eager(name, compiled):
    function = FUNCTIONS[name]
    scores = tf.constant(np.stack([a_list(18, 18), a_list(19, 18), a_list(20, 18)]))
    mask = tf.constant(np.arange(18) < np.array([[18], [7], [0]]))
    signature = [tf.TensorSpec([None, None], tf.float32), tf.TensorSpec([None, None], tf.bool)]

    @tf.function(input_signature=signature, jit_compile=compiled)
    def traced(scores, mask):
        return squares_and_gradient(function, scores, mask)

    for found, expected in zip(traced(scores, mask), squares_and_gradient(function, scores, mask), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("topn", [None, 1, 6, 50])
def test_relevance_is_what_the_rank_distributions_find(topn):
    scores, relevance = a_list(21, 20), np.random.RandomState(0).randint(0, 5, 20).astype(np.float32)
    found = SoftRank(0.5).relevance(scores[None], relevance[None], topn=topn).numpy()
    assert found.shape == (1, min(topn or 20, 20))
    expected = relevance @ distributions(scores, 0.5)
    np.testing.assert_allclose(found[0], expected[: found.shape[1]], rtol=1e-6)


def test_the_class_hands_its_sigma_on():
    scores, mask = a_list(22, 9)[None], np.arange(9)[None] < 7
    found = SoftRank(sigma=0.2).document_discounts(scores, mask, discount="linear", topn=5)
    np.testing.assert_array_equal(found, expected_discount(scores, mask, sigma=0.2, discount="linear", topn=5))
    assert SoftRank(2) == SoftRank(sigma=2.0) and hash(SoftRank(2)) == hash(SoftRank(2.0))


def largest_tensor(function, length):
    """The number of elements of the largest tensor in a training graph, its loops and what they save."""

    @tf.function(input_signature=[tf.TensorSpec([1, length])])
    def gradient(scores):
        return squares_and_gradient(function, scores, tf.ones_like(scores, tf.bool))[1]

    graph, sizes = gradient.get_concrete_function().graph.as_graph_def(add_shapes=True), []
    for nodes in [graph.node, *(function.node_def for function in graph.library.function)]:
        for node in nodes:
            assert node.op != "TensorListPushBack"  # what TensorFlow saves for the gradient of a loop
            for shape in node.attr["_output_shapes"].list.shape:
                if not shape.unknown_rank and all(dim.size >= 0 for dim in shape.dim):
                    sizes.append(math.prod(dim.size for dim in shape.dim))
    return max(sizes)


def test_memory_is_quadratic_in_the_list_without_the_recursion_and_far_from_cubic_with_it():
    assert largest_tensor(FUNCTIONS["log2"], 60) == 60 * 60
    assert largest_tensor(FUNCTIONS["linear"], 60) == 60 * 60
    assert largest_tensor(FUNCTIONS["log2@3"], 60) == 60 * 60


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sigma": 0.0}, "`sigma` must be a finite number > 0, got 0.0."),
        ({"sigma": math.nan}, "`sigma` must be a finite number > 0, got nan."),
        ({"topn": 0}, "`topn` must be an integer >= 1 or None, got 0."),
        ({"discount": "log"}, "`discount` must be one of 'log2', 'linear', got 'log'."),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError) as error:
        expected_discount(tf.zeros([1, 3]), **arguments)
    assert str(error.value) == message


@pytest.mark.parametrize("discount", [[], [[1.0]], [1.0, math.nan], 3.0, None, ["a"]])
def test_bad_tables_are_named(discount):
    with pytest.raises(ValueError, match="`discount` must be 'log2', 'linear', a ShallowDiscount, a function of the"):
        SoftRank().document_discounts(tf.zeros([1, 3]), discount=discount)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (SoftRank, {"sigma": -1.0}, "`sigma` must be a finite number > 0, got -1.0."),
        (rank_distributions, {"sigma": "1"}, "`sigma` must be a finite number > 0, got '1'."),
        (rank_distributions, {"method": "fast"}, "`method` must be one of 'exact', 'normal', got 'fast'."),
        (rank_distributions, {"sinkhorn_iterations": -1}, "`sinkhorn_iterations` must be an integer >= 0, got -1."),
        (pairwise_probabilities, {"sigma": math.inf}, "`sigma` must be a finite number > 0, got inf."),
    ],
)
def test_other_bad_arguments_are_named(function, arguments, message):
    scores = () if function is SoftRank else (tf.zeros([1, 3]),)
    with pytest.raises(ValueError) as error:
        function(*scores, **arguments)
    assert str(error.value) == message
