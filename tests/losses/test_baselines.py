"""The baselines equal hand-computed values, float64 references written from the papers, and TF-Ranking."""

import functools
import itertools
import math

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import references, value_and_gradient
from tfr_smooth import losses

METRICS = ["ndcg_loss1", "ndcg_loss2", "ndcg_loss2++", "lambda_rank", "precision"]


def a_list(seed, length, grades=4):
    random = np.random.RandomState(seed)
    labels = random.randint(0, grades, length).astype(np.float64)
    labels[0], labels[1:2] = grades - 1, 0
    return labels, random.randn(length)


def value_of(loss, labels, scores):
    return float(loss(np.array([labels], np.float64), np.array([scores], np.float64)))


def p_list_mle_weights(length):
    """Returns the weights of Lan et al., computed with integers and divided by the first."""
    return [(2 ** (length - i) - 1) / max(2 ** (length - 1) - 1, 1) for i in range(1, length + 1)]


def plackett_luce(order, scores, weights):
    """Returns the loss of Xia et al. and Lan et al. for one order."""
    ordered = np.asarray(scores)[list(order)]
    return sum(w * (np.logaddexp.reduce(ordered[i:]) - ordered[i]) for i, w in enumerate(weights))


def orders(keys):
    """Returns all orders by decreasing key, with ties in any order."""
    groups = [[j for j, k in enumerate(keys) if k == key] for key in sorted(set(keys), reverse=True)]
    return [sum(map(list, parts), []) for parts in itertools.product(*map(itertools.permutations, groups))]


# LambdaLoss with different hyperparameters. tests/losses/test_properties.py checks other losses.
VARIANTS = [{"metric": metric, "topn": 3} for metric in METRICS]
VARIANTS += [{"metric": metric} for metric in METRICS[:-1]] + [{"sigma": 2.0, "mu": 5.0}]
PLAIN = [losses.ListNetLoss(temperature=0.1), losses.ListMLELoss(), losses.ListMLELoss(position_aware=True)]
PLAIN += [losses.RankNetLoss(sigma=3.0), losses.PairwiseHingeLoss(temperature=3.0), losses.MeanSquaredLoss()]
PLAIN += [losses.LambdaLoss()]

LOG2 = math.log(2.0)
RANK_2_LOSS = 1.0 - 1.0 / math.log2(3.0)  # Difference of the discounts at ranks 1 and 2.


def test_values_equal_hand_computed_values():
    for loss, labels, scores, expected in (
        (losses.ListNetLoss(), [1, 0], [1, 0], math.log(1 + math.e) - math.e / (1 + math.e)),
        (losses.ListNetLoss(temperature=0.5), [9, 9], [1, 0], math.log(1 + math.e**2) - 1.0),
        (losses.ListMLELoss(), [2, 1, 0], [0, 0, 0], math.log(6)),
        (losses.ListMLELoss(position_aware=True), [2, 1, 0], [0, 0, 0], math.log(3) + LOG2 / 3),
        (losses.ListMLELoss(position_aware=True), [1], [3], 0.0),
        (losses.RegressionCompatibleLoss(list_weight=1.0), [0, 1, 1, 0], [9, 9, 9, 9], 2 * LOG2),
        (losses.RegressionCompatibleLoss(list_weight=0.25), [0, 0], [0, 0], 0.75 * LOG2),
        (losses.RankNetLoss(), [2, 1, 0], [1, 0, 1], (math.log(1 + 1 / math.e) + LOG2 + math.log(1 + math.e)) / 3),
        (losses.PairwiseHingeLoss(), [2, 1, 0], [1, 0, 0.75], (0.0 + 0.75 + 1.75) / 3),
        (losses.PairwiseLogisticLoss(lambda_weight=losses.LabelDiffLambdaWeight()), [3, 1], [0, 0], LOG2),
        (losses.PairwiseSoftZeroOneLoss(temperature=1e-3), [0, 2, 1], [2, 1, 0], 2 / 3),
        (losses.PairwiseMSELoss(), [2, 0, 1], [0, 0, 0], 2 * (4 + 1 + 1) / 3),
        (losses.CoupledRankDistilLoss(topk=1), [90, 30], [0, 0], LOG2),
        (losses.ADRMSELoss(), [9, 5], [0, 0], (0.5**2 + 0.5**2 / math.log2(3)) / 2),
        (losses.ADRMSELoss(alpha=1e3), [9, 7, 7], [2, 1, 0], 2 * 0.5**2 / math.log2(3.5) / 3),
        (losses.ADRMSELoss(), [9, 9], [1, 0], 0.0),
        (losses.LambdaLoss(metric="lambda_rank"), [1, 0], [0, 0], RANK_2_LOSS),
        (losses.LambdaLoss(mu=10.0), [1, 0], [0, 0], 11 * RANK_2_LOSS),
        (losses.LambdaLoss(metric="ndcg_loss1", topn=1), [1, 0], [0, 1], math.log2(1 + math.e) / (math.log2(3) - 1)),
        (losses.LambdaLoss(metric="precision", topn=2), [1, 0, 0, 0], [0, 0, 0, 0], 3 * (2 / 3) / 2),
    ):
        np.testing.assert_allclose(value_of(loss, labels, scores), expected, 1e-12, 1e-15, err_msg=repr(loss))


@pytest.mark.parametrize("arguments", VARIANTS, ids=str)
def test_value_equals_the_reference(arguments):
    """And the gradient equals finite differences: the weights are constant, because a small step changes no rank."""
    loss = losses.LambdaLoss(**arguments)
    assert value_of(loss, *a_list(1, 1)) == 0.0
    for length in (2, 7, 30):
        labels, scores = a_list(length, length)
        expected = references.lambda_loss(labels, scores, **arguments)
        np.testing.assert_allclose(value_of(loss, labels, scores), expected, rtol=1e-10)
        single = loss(labels[None].astype(np.float32), scores[None].astype(np.float32))
        assert single.dtype == tf.float32
        np.testing.assert_allclose(single, expected, rtol=2e-6)
    labels, scores = a_list(5, 12)
    _, gradient = value_and_gradient(loss, labels[None], scores[None])
    assert np.diff(np.sort(scores)).min() > 1e-3
    expected = references.central_differences(lambda s: value_of(loss, labels, s), scores)
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(gradient[0], expected, rtol=1e-5, atol=1e-8)


@pytest.mark.slow
def test_float32_equals_float64_for_large_scores():
    labels, scores = a_list(2, 10)
    scores = np.float32(np.round(scores * 1e4))
    assert np.ptp(scores) > 1e4
    for loss in PLAIN:
        value, gradient = value_and_gradient(loss, labels[None], scores[None])
        expected, expected_gradient = value_and_gradient(loss, labels[None], np.float64(scores)[None])
        assert np.isfinite(expected) and np.isfinite(expected_gradient).all()
        np.testing.assert_allclose(value, expected, rtol=1e-6)
        near = 1e-6 * np.abs(expected_gradient).max()
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-5, atol=near)


# ---- SL@K and PSL


def test_softmax_at_k_raises_relevant_documents_of_every_rank():
    """For the scale that its default is for: scores of 1,000 documents in [-5, 5], one of which is relevant."""
    labels, scores = np.eye(1000), np.tile(np.linspace(5.0, -5.0, 1000), [1000, 1])
    _, gradient = value_and_gradient(losses.SoftmaxAtKLoss(reduction="sum"), labels, scores)
    assert np.diag(gradient).max() < 0.0


def test_psl_is_at_most_the_softmax_loss_and_equals_it_for_a_wide_range_of_scores():
    """Lemma 4.1: its functions are at most the exponential one, and 1 + d like it for small differences d."""
    labels, scores = a_list(6, 20)
    softmax = value_of(losses.SoftmaxLoss(temperature=0.5), labels, scores)
    for activation, at_half in (("tanh", math.tanh(0.5)), ("atan", math.atan(0.5)), ("relu", 0.5)):
        make = functools.partial(losses.PSLLoss, activation=activation)
        narrow, wide = (value_of(make(score_range=x, temperature=0.5), labels, scores) for x in (np.ptp(scores), 1e6))
        assert narrow < 0.99 * softmax
        np.testing.assert_allclose(wide, softmax, rtol=1e-4)
        of_two = value_of(make(score_range=4.0), [2, 0], [1, 3])
        np.testing.assert_allclose(of_two, 2 * math.log(1 + (1 + at_half) ** 4), rtol=1e-12)


# ---- BSL


def test_bsl_of_binary_labels_is_the_authors_loss_times_their_temperature():
    """junkangwu/BSL, -log(E exp(s+ / t) / E exp(s- / t)) with one temperature and the exponent 1."""
    labels, scores = np.array([1, 0, 1, 0, 0]), np.random.RandomState(4).randn(5)
    relevant, others = (np.exp(scores[labels == each] / 0.3).mean() for each in (1, 0))
    found = value_of(losses.BSLLoss(positive_temperature=0.3, temperature=0.3), labels, scores)
    np.testing.assert_allclose(found, -0.3 * np.log(relevant / others), rtol=1e-6)


# ---- ListMLE


@pytest.mark.parametrize("position_aware", [False, True])
@pytest.mark.parametrize("labels", [[1, 0, 0, 0, 1], [2, 1, 1, 0, 0], [1, 4, 0, 2, 3]])
def test_list_mle_is_the_mean_over_the_orders_of_tied_labels(labels, position_aware):
    """The negative Plackett-Luce log likelihood; an upper bound if tied documents have different scores."""
    weights = p_list_mle_weights(5) if position_aware else np.ones(5)
    loss = losses.ListMLELoss(position_aware=position_aware)
    scores = np.random.RandomState(2).randn(5)
    mean = np.mean([plackett_luce(order, scores, weights) for order in orders(labels)])
    assert len(set(labels)) == 5 or mean < value_of(loss, labels, scores) < 1.25 * mean
    # If documents with equal labels have equal scores, the loss equals the mean.
    scores = np.random.RandomState(3).randn(5)[labels]
    mean = np.mean([plackett_luce(order, scores, weights) for order in orders(labels)])
    np.testing.assert_allclose(value_of(loss, labels, scores), mean, rtol=1e-12)


def test_p_list_mle_weights_do_not_overflow():
    labels, scores = np.arange(2000, 0.0, -1.0), np.random.RandomState(2000).randn(2000)
    loss = losses.ListMLELoss(position_aware=True)
    value, gradient = value_and_gradient(loss, np.float32(labels[None]), np.float32(scores[None]))
    # After 60 ranks, the weights are negligible.
    expected = plackett_luce(range(2000), scores, p_list_mle_weights(2000)[:60])
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    assert np.isfinite(gradient).all() and gradient[0, 0] < -0.5


@pytest.mark.parametrize("gap", [90.0, 1e4, 1e8])
def test_list_mle_is_exact_for_wide_gaps_of_scores(gap):
    # The last two documents are tied far below the first: log 2 is below the float32 resolution of such scores.
    labels, scores = np.float32([[2, 1, 0]]), np.float32([[gap, -gap, -gap]])
    value, gradient = value_and_gradient(losses.ListMLELoss(), labels, scores, np.float32([0.25]))
    np.testing.assert_allclose(value, 0.25 * LOG2, rtol=1e-6)
    np.testing.assert_allclose(gradient, [[0.0, -0.125, 0.125]], rtol=1e-6, atol=1e-7)
    labels = np.float32([[0, 2, 1]])  # Every pair is in the wrong order.
    value, gradient = value_and_gradient(losses.ListMLELoss(), labels, scores, np.float32([0.25]))
    np.testing.assert_allclose(value, 0.25 * (2 * gap + 2 * gap), rtol=1e-6)
    np.testing.assert_allclose(gradient, [[0.5, -0.25, -0.25]], rtol=1e-6)


# ---- LambdaLoss


@pytest.mark.parametrize("topn", [2, None])
@pytest.mark.parametrize("metric", METRICS)
def test_lambda_weights_of_tied_scores_are_means_over_their_orders(metric, topn, scores=(1, 0, 0, 1, -1)):
    topn = 3 if metric == "precision" and topn is None else topn
    labels = [2.0, 0.0, 1.0, 0.0, 2.0]
    weights_of = functools.partial(references.lambda_weights, labels, metric=metric, topn=topn)
    weights = np.mean([weights_of(-np.argsort(order)) for order in orders(scores)], axis=0)
    loss = losses.LambdaLoss(metric=metric, topn=topn)
    value, gradient = value_and_gradient(loss, np.float64([labels]), np.float64([scores]))
    np.testing.assert_allclose(value, references.weighted_logistic(weights, scores), rtol=1e-10)
    expected = references.central_differences(lambda s: references.weighted_logistic(weights, s), scores)
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(gradient[0], expected, rtol=1e-6, atol=1e-8)


def test_lambda_rank_weights_are_changes_of_ndcg_by_swaps():
    labels, scores = a_list(7, 6)
    weights = references.lambda_weights(labels, scores, metric="lambda_rank", topn=4)
    for i, j in itertools.combinations(range(6), 2):
        swapped = scores.copy()
        swapped[[i, j]] = scores[[j, i]]
        before, after = (references.exact_ndcg(labels, s, 4) for s in (scores, swapped))
        np.testing.assert_allclose(weights[i, j] + weights[j, i], abs(before - after), atol=1e-12)


def test_ndcg_loss1_is_an_upper_bound_of_one_minus_ndcg():
    for topn, sigma, seed in itertools.product((None, 3), (0.5, 20.0), range(10)):
        loss = losses.LambdaLoss(metric="ndcg_loss1", topn=topn, sigma=sigma)
        labels, scores = a_list(seed, 8)
        assert value_of(loss, labels, scores) >= 1.0 - references.exact_ndcg(labels, scores, topn) - 1e-12


# ---- Skipped lists


def test_pairwise_losses_skip_lists_of_equal_labels():
    labels, scores = np.float32([[2, 0, 1], [3, 3, 3], [1, -1, -1]]), np.float32([[0, 1, 2]] * 3)
    for name in ("rank_net", "pairwise_hinge", "lambda_loss"):
        expected, _ = value_and_gradient(losses.get(name), labels[:1], scores[:1])
        value, gradient = value_and_gradient(losses.get(name), labels, scores)
        np.testing.assert_allclose(value, expected, rtol=1e-6)
        np.testing.assert_array_equal(gradient[1:], 0.0)


def test_mean_squared_counts_lists_without_a_relevant_document():
    labels, scores = np.float32([[0, 0], [2, -1], [-1, -1]]), np.float32([[1, 3], [0, 9], [7, 7]])
    value, gradient = value_and_gradient(losses.MeanSquaredLoss(), labels, scores)
    np.testing.assert_allclose(value, (5.0 + 4.0) / 2)
    np.testing.assert_allclose(gradient, [[0.5, 1.5], [-2.0, 0.0], [0.0, 0.0]])


@pytest.mark.parametrize(("label", "score"), [(1.0, 1e30), (3e38, 0.5), (1e9, -3e38)])
def test_larger_labels_and_scores_equal_the_largest(label, score):
    found, expected = (
        value_and_gradient(losses.MeanSquaredLoss(), np.float32([[y, 0]]), np.float32([[s, 1e14]]))
        for y, s in ((label, score), (min(label, 1e9), np.clip(score, -1e15, 1e15)))
    )
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])  # of the larger score, too
    assert np.abs(found[1]).min() > 1e8


def test_the_metric_precision_needs_a_cutoff():
    with pytest.raises(ValueError, match='`topn` must be an integer >= 1 for the metric "precision", got None.'):
        losses.get("lambda_loss", metric="precision")
