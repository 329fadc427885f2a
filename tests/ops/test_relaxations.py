"""What is true of NeuralSort, SoftSort, FastSort and Sinkhorn alike."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests import references
from tfr_smooth.ops.fastsort import FastSort
from tfr_smooth.ops.neuralsort import NeuralSort
from tfr_smooth.ops.sinkhorn import Sinkhorn
from tfr_smooth.ops.softsort import SoftSort

ROWS = [NeuralSort(0.7), SoftSort(0.7), SoftSort(0.7, power=2.0), SoftSort(0.7, power=0.5)]
POSITIONS = [FastSort(0.7), FastSort(0.7, "kl"), Sinkhorn(0.1)]
ALL = ROWS + POSITIONS
# So near to the exact ranking that nothing is left between.
SHARP = [NeuralSort(1e-3), SoftSort(1e-3), FastSort(1e-3), FastSort(1e-3, "kl"), Sinkhorn(1e-4)]

each = pytest.mark.parametrize("ranking", ALL, ids=str)


def result(ranking, scores, mask=None):
    """[batch, rank, list] indicators or [batch, 1, list] positions."""
    if hasattr(ranking, "relevance"):
        return ranking.indicators(scores, mask)
    return ranking.positions(scores, mask)[:, tf.newaxis]


def value_and_gradient(ranking, scores, mask=None, weights=None, wrap=lambda function: function):
    """The result and the gradient of its sum weighted by rank (or by list) and document."""

    def compute(scores):
        with tf.GradientTape() as tape:
            tape.watch(scores)
            found = result(ranking, scores, mask)
            total = tf.reduce_sum(tf.cast(weights, found.dtype) * found)
        return found, tape.gradient(total, scores)

    scores = tf.convert_to_tensor(scores)
    weights = np.ones(1) if weights is None else weights
    return tuple(tensor.numpy() for tensor in wrap(compute)(scores))


def some(batch, length, seed=0, dtype=np.float64):
    random = np.random.RandomState(seed)
    return random.randn(batch, length).astype(dtype), random.randn(batch, 1, length)


def exactly(ranking):
    """As `ranking`, with steps up to float64's resolution."""
    return dataclasses.replace(ranking, threshold=1e-13) if isinstance(ranking, Sinkhorn) else ranking


@each
def test_gradient_equals_finite_differences(ranking):
    ranking = exactly(ranking)
    scores, weights = some(1, 8)
    if hasattr(ranking, "relevance"):
        weights = np.random.RandomState(1).randn(1, 8, 8)
    _, gradient = value_and_gradient(ranking, scores, weights=weights)
    expected = references.central_differences(
        lambda s: float(np.sum(weights * result(ranking, s[np.newaxis]).numpy())), scores[0]
    )
    assert np.abs(expected).max() > 0.05
    np.testing.assert_allclose(gradient[0], expected, rtol=1e-6, atol=1e-6)


@each
def test_float32_is_near_float64(ranking):
    scores, _ = some(3, 60)
    scores = scores.astype(np.float32)
    weights = np.random.RandomState(1).rand(3, 60 if hasattr(ranking, "relevance") else 1, 60)
    found, gradient = value_and_gradient(ranking, scores, weights=weights)
    expected, slopes = value_and_gradient(ranking, scores.astype(np.float64), weights=weights)
    assert found.dtype == gradient.dtype == np.float32
    assert expected.dtype == slopes.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=3e-6, atol=1e-6)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=3e-6 * np.abs(slopes).max())


@each
def test_padding_and_what_stands_there_change_nothing(ranking):
    scores, weights = some(2, 9)
    places = np.array([0, 2, 3, 4, 6, 8, 9, 11, 12])
    padded, mask = np.tile([np.nan, np.inf, -np.inf, 1e30, 0.0, -1e30, np.nan], (2, 2))[:, :13], np.zeros((2, 13), bool)
    padded[:, places], mask[:, places] = scores, True
    padded_weights = np.ones((2, 1, 13))
    padded_weights[:, :, places] = weights
    expected, slopes = value_and_gradient(ranking, scores, weights=weights)
    found, gradient = value_and_gradient(ranking, padded, mask, weights=padded_weights)
    np.testing.assert_allclose(found[:, : expected.shape[1], places], expected, rtol=1e-12)
    np.testing.assert_allclose(gradient[:, places], slopes, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found[:, :, ~mask[0]], 0.0)
    np.testing.assert_array_equal(found[:, expected.shape[1] :], 0.0)
    np.testing.assert_array_equal(gradient[~mask], 0.0)


@each
def test_a_list_does_not_depend_on_the_others_of_its_batch(ranking):
    scores, weights = some(3, 10)
    scores[1] *= 1e3
    scores[2] = np.round(scores[2])
    together = value_and_gradient(ranking, scores, weights=weights)
    for i in range(3):
        alone = value_and_gradient(ranking, scores[i : i + 1], weights=weights[i : i + 1])
        np.testing.assert_allclose(together[0][i], alone[0][0], rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(together[1][i], alone[1][0], rtol=1e-9, atol=1e-12)


@each
def test_permutation_of_the_documents_permutes_the_result(ranking):
    scores, weights = some(1, 11)
    scores[0, 3:6] = scores[0, 7]  # ties too
    order = np.random.RandomState(3).permutation(11)
    expected, slopes = value_and_gradient(ranking, scores, weights=weights)
    found, gradient = value_and_gradient(ranking, scores[:, order], weights=weights[:, :, order])
    np.testing.assert_allclose(found, expected[:, :, order], rtol=1e-12)
    np.testing.assert_allclose(gradient, slopes[:, order], rtol=1e-9, atol=1e-11)


@each
def test_ties_share_value_and_gradient(ranking):
    scores = np.array([[2.0, 0.5, 2.0, 1.4, 2.0, 0.5]])
    weights = np.random.RandomState(1).rand(1, 6, 1)  # by rank: equal for all documents
    found, gradient = value_and_gradient(ranking, scores, weights=weights)
    for tied in ([0, 2, 4], [1, 5]):
        np.testing.assert_allclose(found[:, :, tied], found[:, :, tied[:1]].repeat(len(tied), 2), rtol=1e-12)
        np.testing.assert_allclose(gradient[0, tied], gradient[0, tied[0]], rtol=1e-9, atol=1e-12)


@each
@pytest.mark.parametrize("shift", [-7.0, 1e4])
def test_a_shift_of_the_scores_changes_nothing(ranking, shift):
    scores, weights = some(2, 9)
    expected, slopes = value_and_gradient(ranking, scores, weights=weights)
    found, gradient = value_and_gradient(ranking, scores + shift, weights=weights)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(gradient.sum(axis=1), 0.0, atol=1e-8)


@pytest.mark.parametrize(
    ("ranking", "scaled"),
    [
        (NeuralSort(0.7), NeuralSort(0.7 * 3.0)),
        (SoftSort(0.7), SoftSort(0.7 * 3.0)),
        (SoftSort(0.7, power=2.0), SoftSort(0.7 * 9.0, power=2.0)),
        (FastSort(0.7), FastSort(0.7 * 3.0)),
        (FastSort(0.7, "kl"), FastSort(0.7 * 3.0, "kl")),
        (Sinkhorn(0.1), Sinkhorn(0.1)),
    ],
    ids=str,
)
def test_a_factor_on_the_scores_is_one_on_the_strength(ranking, scaled):
    scores, _ = some(2, 9)
    np.testing.assert_allclose(result(scaled, 3.0 * scores), result(ranking, scores), rtol=1e-12)


@each
def test_nan_score_stays_in_its_list(ranking):
    scores, weights = some(2, 5)
    expected, slopes = value_and_gradient(ranking, scores, weights=weights)
    scores[0, 1] = np.nan
    found, gradient = value_and_gradient(ranking, scores, weights=weights)
    assert np.isnan(found[0]).all()
    assert np.isnan(gradient[0]).any()
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-12)
    np.testing.assert_allclose(gradient[1], slopes[1], rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("ranking", ALL + SHARP, ids=str)
def test_value_and_gradient_are_finite_on_every_list(ranking, dtype):
    infinite = np.inf if dtype == np.float16 else 1e30
    scores = np.array(
        [
            [0.0, 0.0, 0.0, 0.0],
            [3.0, 9.0, 9.0, 9.0],  # one document
            [1.0, 2.0, 3.0, 4.0],  # none
            [infinite, 1.0, 1.0, -infinite],
            [np.inf, np.inf, -np.inf, -np.inf],
            [1e-7, 0.0, -1e-7, 1e-7],
            [-0.0, 0.0, 60000.0, -60000.0],
        ],
        dtype,
    )
    mask = np.ones(scores.shape, bool)
    mask[1, 1:], mask[2] = False, False
    weights = np.random.RandomState(0).randn(7, 1, 4)
    found, gradient = value_and_gradient(ranking, scores, mask, weights)
    assert found.dtype == (np.float64 if dtype == np.float64 else np.float32)
    assert gradient.dtype == dtype
    assert np.isfinite(found).all()
    # Sinkhorn's slope at ties, 1e6, is infinite in float16.
    assert np.isfinite(gradient).all() or (dtype == np.float16 and isinstance(ranking, Sinkhorn))
    np.testing.assert_array_equal(found[1], [[1.0, 0.0, 0.0, 0.0]] + [[0.0] * 4] * (found.shape[1] - 1))
    np.testing.assert_array_equal(found[2], 0.0)
    np.testing.assert_array_equal(gradient[1:3], 0.0)


@pytest.mark.parametrize("ranking", SHARP, ids=str)
def test_sharp_limit_is_the_exact_ranking(ranking):
    scores = np.random.RandomState(0).permutation(12).astype(np.float32)[np.newaxis]
    expected = np.eye(12)[np.argsort(-scores[0])]
    if not hasattr(ranking, "relevance"):
        expected = np.arange(1, 13) @ expected
    np.testing.assert_allclose(result(ranking, scores)[0], np.reshape(expected, (-1, 12)), atol=1e-5)


@pytest.mark.parametrize("ranking", ROWS[:3] + POSITIONS[:2] + SHARP[:4], ids=str)
def test_far_scores_do_not_blur_near_ones(ranking):
    found, expected = (result(ranking, np.array([[far, 2.0, 1.5, 1.4, -far]])) for far in (1e30, 1e4))
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)


@each
def test_large_scores_keep_their_differences(ranking):
    """At 2^52 float64 holds whole numbers: a sum, or a quotient, would be rounded."""
    scores = np.array([[2.0, 0.0, 0.0, -1.0, 5.0]])
    found, gradient = value_and_gradient(ranking, scores + 2.0**52, weights=np.arange(5.0))
    expected, slopes = value_and_gradient(ranking, scores, weights=np.arange(5.0))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "xla"])
@each
def test_graph_of_unknown_shape_and_xla_give_the_same(ranking, jit_compile):
    scores, _ = some(3, 7)
    scores[1] = np.round(scores[1])
    mask = tf.sequence_mask([7, 5, 0], 7)
    expected = value_and_gradient(ranking, scores, mask)

    def wrap(function):
        signature = None if jit_compile else [tf.TensorSpec([None, None], tf.float64)]
        return tf.function(function, input_signature=signature, jit_compile=jit_compile)

    found = value_and_gradient(ranking, scores, mask, wrap=wrap)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("ranking", ROWS, ids=str)
@pytest.mark.parametrize("topn", [None, 1, 4, 50])
def test_rows_give_the_relevance_and_topn_cuts_them(ranking, topn):
    scores, _ = some(2, 9)
    relevance = np.random.RandomState(1).rand(2, 9)
    mask = np.arange(9) < [[9], [3]]
    every = ranking.indicators(scores, mask).numpy()
    np.testing.assert_allclose(every.sum(axis=2), np.arange(9) < [[9], [3]], rtol=1e-12)
    assert (every >= 0.0).all()
    ranks = min(topn or 9, 9)
    some_rows = ranking.indicators(scores, mask, topn).numpy()
    np.testing.assert_allclose(some_rows, every[:, :ranks], rtol=1e-12)
    found = ranking.relevance(scores, relevance, mask, topn).numpy()
    np.testing.assert_allclose(found, np.einsum("brj,bj->br", every, relevance)[:, :ranks], rtol=1e-12)


@pytest.mark.parametrize("ranking", ROWS, ids=str)
def test_relevance_and_indicators_have_one_gradient_and_the_relevance_has_none(ranking):
    scores, _ = some(1, 6)
    relevance = tf.constant(np.random.RandomState(1).rand(1, 6))
    scores = tf.constant(scores)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([scores, relevance])
        found = tf.reduce_sum(tf.square(ranking.relevance(scores, relevance, topn=3)))
        rows = tf.linalg.matvec(ranking.indicators(scores, topn=3), tf.stop_gradient(relevance))
        expected = tf.reduce_sum(tf.square(rows))
    np.testing.assert_allclose(tape.gradient(found, scores), tape.gradient(expected, scores), rtol=1e-9)
    assert tape.gradient(found, relevance) is None


@pytest.mark.parametrize("ranking", POSITIONS, ids=str)
def test_positions_are_ranks_of_the_real_documents(ranking):
    ranking = exactly(ranking)
    scores, _ = some(2, 15)
    count = np.array([15, 6])
    mask = np.arange(15) < count[:, np.newaxis]
    positions = ranking.positions(scores, mask).numpy()
    np.testing.assert_allclose(positions.sum(axis=1), count * (count + 1) / 2, rtol=1e-10)
    for row, real, n in zip(positions, mask, count, strict=True):
        assert (row[real] >= 1.0).all()
        assert (row[real] <= n).all()
        order = np.argsort(-scores[list(count).index(n)][real])
        assert (np.diff(row[real][order]) >= -1e-12).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NeuralSort(0.0), "`temperature` must be a finite number > 0, got 0.0."),
        (lambda: NeuralSort("1"), "`temperature` must be a finite number > 0, got '1'."),
        (lambda: SoftSort(float("nan")), "`temperature` must be a finite number > 0, got nan."),
        (lambda: SoftSort(power=-1.0), "`power` must be a finite number > 0, got -1.0."),
        (lambda: FastSort(0), "`regularization_strength` must be a finite number > 0, got 0."),
        (lambda: FastSort(True), "`regularization_strength` must be a finite number > 0, got True."),
        (lambda: FastSort(regularization="l1"), "`regularization` must be one of 'l2', 'kl', got 'l1'."),
        (lambda: Sinkhorn(float("inf")), "`epsilon` must be a finite number > 0, got inf."),
        (lambda: Sinkhorn(threshold=0.0), "`threshold` must be a finite number > 0, got 0.0."),
        (lambda: Sinkhorn(max_iterations=0), "`max_iterations` must be an integer >= 1, got 0."),
        (lambda: Sinkhorn(max_iterations=2.5), "`max_iterations` must be an integer >= 1, got 2.5."),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError) as error:
        make()
    assert str(error.value) == message


@each
def test_bad_shapes_are_named(ranking):
    with pytest.raises(ValueError, match=r"`scores` must have the shape \[batch, list\]"):
        result(ranking, tf.zeros([3]))
    with pytest.raises(ValueError, match="`scores` must be floats, got int32"):
        result(ranking, tf.zeros([2, 3], tf.int32))
    with pytest.raises(ValueError, match="`mask` must have the shape of the scores"):
        result(ranking, tf.zeros([2, 3]), tf.ones([1, 3], tf.bool))


@pytest.mark.parametrize("ranking", [*ROWS, Sinkhorn()], ids=str)
def test_bad_topn_and_relevance_are_named(ranking):
    with pytest.raises(ValueError, match="`topn` must be an integer >= 1 or None, got 0"):
        ranking.indicators(tf.zeros([2, 3]), topn=0)
    if hasattr(ranking, "relevance"):
        with pytest.raises(ValueError, match="`relevance` must have the shape of the scores"):
            ranking.relevance(tf.zeros([2, 3]), tf.zeros([2, 4]))
