"""Approx: positions and the metrics computed from them equal the papers."""

import numpy as np
import pytest
import tensorflow as tf

from tests import references
from tests.helpers import tf_ranking
from tests.rankings import evaluate
from tfr_smooth import losses, rankings


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def positions(scores, alpha):
    """Computes pi_j = 1 + sum over i != j of sigmoid(alpha (s_i - s_j)) with two loops."""
    n = len(scores)
    return np.array([1.0 + sum(sigmoid(alpha * (scores[i] - scores[j])) for i in range(n) if i != j) for j in range(n)])


def approx_ndcg(labels, scores, alpha=10.0, beta=10.0, topn=None):
    places = positions(scores, alpha)
    discounts = 1.0 / np.log2(1.0 + places)
    if topn is not None:
        discounts = discounts * sigmoid(beta * (topn + 0.5 - places))
    return (2.0**labels - 1.0) @ discounts / references.ideal_dcg(labels, topn)


def approx_precision(labels, scores, alpha=10.0, beta=10.0, topn=10):
    return references.binary(labels) @ sigmoid(beta * (topn + 0.5 - positions(scores, alpha))) / topn


def before(places, relevant, beta, j):
    """Returns the relevance of each other document times its degree of being ranked before document j."""
    return [relevant[i] * sigmoid(beta * (places[j] - 0.5 - places[i])) for i in range(len(places)) if i != j]


def approx_map(labels, scores, alpha=10.0, beta=10.0):
    places, relevant = positions(scores, alpha), references.binary(labels)
    terms = [relevant[j] / places[j] * (1.0 + sum(before(places, relevant, beta, j))) for j in range(len(scores))]
    return sum(terms) / relevant.sum()


def approx_mrr(labels, scores, alpha=10.0, beta=10.0, topn=None, satisfaction=references.binary):
    places, relevant = positions(scores, alpha), satisfaction(labels)
    within = np.ones(len(scores)) if topn is None else sigmoid(beta * (topn + 0.5 - places))
    none_before = [np.prod(1.0 - np.array(before(places, relevant, beta, j))) for j in range(len(scores))]
    return within * relevant / places @ none_before


def approx_err(labels, scores, alpha=10.0, beta=10.0, topn=None):
    return approx_mrr(labels, scores, alpha, beta, topn, references.satisfaction)


CASES = {
    "approx_ndcg": (approx_ndcg, {}),
    "approx_ndcg@3": (approx_ndcg, {"topn": 3}),
    "approx_precision": (approx_precision, {"topn": 3}),
    "approx_map": (approx_map, {}),
    "approx_mrr": (approx_mrr, {}),
    "approx_mrr@3": (approx_mrr, {"topn": 3}),
    "approx_err": (approx_err, {}),
}


def a_list(seed, length):
    random = np.random.RandomState(seed)
    labels = random.randint(0, 4, length)
    labels[0] = 2
    return labels, random.randn(length)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0, 100.0])
def test_positions_and_their_gradients_equal_the_papers(alpha):
    rows = [a_list(length, length)[1] for length in (1, 2, 9, 60)]
    scores, mask = evaluate.padded(rows)
    weights = np.random.RandomState(0).randn(*scores.shape)
    found, gradient = evaluate.value_and_gradient(
        lambda s, m: tf.where(m, rankings.Approx(alpha).positions(s, m), 0.0), scores, weights, mask
    )
    for i, row in enumerate(rows):
        np.testing.assert_allclose(found[i, : len(row)], positions(row, alpha), rtol=1e-12)
        slopes = sigmoid(alpha * (row[:, None] - row)) * sigmoid(alpha * (row - row[:, None])) * alpha
        of_row = weights[i, : len(row)]
        np.testing.assert_allclose(gradient[i, : len(row)], slopes @ of_row - slopes.sum(axis=0) * of_row, atol=1e-10)
    np.testing.assert_array_equal(gradient[~mask], 0.0)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("alpha", [0.3, 10.0])
def test_metrics_equal_the_papers_and_their_gradients_finite_differences(name, alpha):
    reference, arguments = CASES[name]
    loss = losses.get(name.partition("@")[0], alpha=alpha, beta=3.0, **arguments)
    labels, scores = a_list(3, 12)
    tensor = tf.constant(scores[None])
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        value = loss(labels[None], tensor)
    np.testing.assert_allclose(1.0 - value, reference(labels, scores, alpha, 3.0, **arguments), rtol=1e-12)
    expected = -references.central_differences(lambda s: reference(labels, s, alpha, 3.0, **arguments), scores)
    np.testing.assert_allclose(tape.gradient(value, tensor)[0], expected, rtol=1e-5, atol=1e-8)


def test_ndcg_equals_tf_ranking():
    tfr = tf_ranking()
    random = np.random.RandomState(1)
    labels = random.randint(0, 4, (6, 11)).astype(np.float32)
    labels[:, 0], labels[2:, 8:] = 1.0, -1.0
    scores = random.randn(6, 11).astype(np.float32)
    for alpha in (0.5, 10.0):
        theirs = tfr.keras.losses.ApproxNDCGLoss(temperature=1.0 / alpha)(labels, scores)
        np.testing.assert_allclose(losses.ApproxNDCGLoss(alpha=alpha)(labels, scores), 1.0 + theirs, rtol=1e-5)


@pytest.mark.parametrize("topn", [3, None])
def test_document_discounts_are_the_discounts_at_the_positions(topn):
    _, scores = a_list(5, 8)
    ranking = rankings.Approx(2.0, beta=3.0)
    found = evaluate.value(lambda s, m: ranking.document_discounts(s, m, discount=[2.0, 1.0, 0.5], topn=topn), scores)
    places = positions(scores, 2.0)
    expected = np.interp(places - 1.0, [0.0, 1.0, 2.0, 3.0], [2.0, 1.0, 0.5, 0.0])
    within = sigmoid(3.0 * (3.5 - places)) if topn else 1.0
    np.testing.assert_allclose(found, expected * within, rtol=1e-12)
