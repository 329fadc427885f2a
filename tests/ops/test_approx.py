"""Approx: positions against the papers, the sharp limit, and the metrics read off them."""

import numpy as np
import pytest
import tensorflow as tf

from tests import references
from tfr_smooth import functional, losses, ops


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def positions(scores, alpha):
    """pi_j = 1 + sum over i other than j of sigmoid(alpha (s_i - s_j)), by two loops."""
    n = len(scores)
    return np.array([1.0 + sum(sigmoid(alpha * (scores[i] - scores[j])) for i in range(n) if i != j) for j in range(n)])


def approx_ndcg(labels, scores, alpha=10.0, beta=10.0, topn=None):
    places = positions(scores, alpha)
    worth = 1.0 / np.log2(1.0 + places)
    if topn is not None:
        worth = worth * sigmoid(beta * (topn + 0.5 - places))
    return (2.0**labels - 1.0) @ worth / references.ideal_dcg(labels, topn)


def approx_precision(labels, scores, alpha=10.0, beta=10.0, topn=10):
    return references.binary(labels) @ sigmoid(beta * (topn + 0.5 - positions(scores, alpha))) / topn


def approx_map(labels, scores, alpha=10.0, beta=10.0):
    places, relevant = positions(scores, alpha), references.binary(labels)
    total, n = 0.0, len(scores)
    for j in range(n):
        ahead = sum(relevant[i] * sigmoid(beta * (places[j] - 0.5 - places[i])) for i in range(n) if i != j)
        total += relevant[j] / places[j] * (1.0 + ahead)
    return total / relevant.sum()


CASES = {
    "approx_ndcg": (approx_ndcg, {}),
    "approx_ndcg@3": (approx_ndcg, {"topn": 3}),
    "approx_precision": (approx_precision, {"topn": 3}),
    "approx_map": (approx_map, {}),
}


def a_list(seed, length):
    random = np.random.RandomState(seed)
    labels = random.randint(0, 4, length)
    labels[0] = 2
    return labels, random.randn(length)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0, 100.0])
def test_positions_equal_the_papers(alpha):
    for length in (1, 2, 9, 60):
        _, scores = a_list(length, length)
        found = ops.Approx(alpha).positions(scores[None]).numpy()[0]
        np.testing.assert_allclose(found, positions(scores, alpha), rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("alpha", [0.3, 10.0])
def test_values_equal_the_papers_and_gradients_finite_differences(name, alpha):
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


@pytest.mark.parametrize(
    "metric",
    [
        functional.NDCG(),
        functional.NDCG(topn=4),
        functional.NDCG(topn=4, gain="linear"),
        functional.Precision(topn=3),
        functional.Precision(topn=None),
        functional.AveragePrecision(),
    ],
)
def test_the_sharp_limit_is_the_exact_metric(metric):
    random = np.random.RandomState(0)
    scores = tf.constant(np.stack([random.permutation(15) for _ in range(8)]), tf.float32)
    labels = tf.constant(random.randint(0, 4, (8, 15)))
    smooth = metric(labels, scores, ranking=ops.Approx(alpha=100.0, beta=100.0))
    np.testing.assert_allclose(smooth.numpy(), metric(labels, scores).numpy(), atol=1e-6)


def test_ndcg_equals_tf_rankings():
    tfr = pytest.importorskip("tensorflow_ranking", reason="TF-Ranking is not on this stack")
    random = np.random.RandomState(1)
    labels = random.randint(0, 4, (6, 11)).astype(np.float32)
    labels[:, 0], labels[2:, 8:] = 1.0, -1.0
    scores = random.randn(6, 11).astype(np.float32)
    for alpha in (0.5, 10.0):
        theirs = tfr.keras.losses.ApproxNDCGLoss(temperature=1.0 / alpha)(labels, scores)
        np.testing.assert_allclose(losses.ApproxNDCGLoss(alpha=alpha)(labels, scores), 1.0 + theirs, rtol=1e-5)


def test_padding_has_no_position():
    found = ops.Approx().positions(tf.constant([[1.0, np.nan, 3.0]]), tf.constant([[True, False, True]]))
    np.testing.assert_allclose(found.numpy(), [[2.0, 0.0, 1.0]], atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 0.0}, "`alpha` must be a finite number > 0, got 0.0."),
        ({"beta": -1}, "`beta` must be a finite number > 0, got -1."),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError) as error:
        ops.Approx(**arguments)
    assert str(error.value) == message
