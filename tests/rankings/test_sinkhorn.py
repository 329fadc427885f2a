"""Sinkhorn equals the paper: the transport, its marginals, its implicit gradient, its stopping criterion."""

import itertools

import numpy as np
import tensorflow as tf

from tests.helpers import references
from tests.rankings import evaluate
from tfr_smooth.rankings.sinkhorn import Sinkhorn

CONVERGED = {"threshold": 1e-13, "max_iterations": 20000}


def squash(scores):
    deviation = max(np.std(scores), 1e-6)
    return 1.0 / (1.0 + np.exp(-(scores - np.mean(scores)) / deviation * np.pi / np.sqrt(3.0)))


def transport(ranking, scores):
    """Returns the transport [batch, document, rank] for lists without padding."""
    return ranking.transport(tf.convert_to_tensor(scores), tf.ones_like(scores, tf.bool)).numpy()


def positions(ranking, scores):
    return ranking.positions(tf.convert_to_tensor(scores), tf.ones_like(scores, tf.bool)).numpy()


def test_positions_of_two_documents_equal_hand_computed_values():
    """Q is ((p, 1 - p), (1 - p, p)), and a swap costs 2 (x_1 - x_2) (y_1 - y_2) = epsilon log (p / (1 - p))^2."""
    upper = 1.0 / (1.0 + np.exp(-np.pi / np.sqrt(3.0)))  # Two standardized scores are 1 and -1.
    stays = 1.0 / (1.0 + np.exp(-(2.0 * upper - 1.0) / 0.5))
    found = positions(Sinkhorn(0.5, **CONVERGED), np.array([[-3.0, 8.0]]))[0]
    np.testing.assert_allclose(found, [1.0 + stays, 2.0 - stays], rtol=1e-12)


def test_iterations_stop_at_the_threshold_or_max_iterations():
    scores = np.random.RandomState(1).randn(2, 12)
    errors = []
    for threshold in (1e-1, 1e-3, 1e-6):
        plan = transport(Sinkhorn(0.02, threshold), scores)
        errors.append(np.abs(plan.sum(axis=1) - 1.0).max())
        assert errors[-1] <= threshold
    assert errors[0] > errors[1] > errors[2]

    by_iterations = [transport(Sinkhorn(0.02, 1e-13, max_iterations=count), scores) for count in (1, 3, 10)]
    errors = [np.abs(plan.sum(axis=1) - 1.0).max() for plan in by_iterations]
    assert errors[0] > 1.5 * errors[1] > 1.5 * 1.5 * errors[2] > 1e-9
    np.testing.assert_allclose(by_iterations[0].sum(axis=2), 1.0, rtol=1e-12)


def test_the_gradient_of_a_stopped_transport_is_exact_for_its_marginals():
    """The reference is a transport with the row and column sums of the stopped one as fixed marginals."""
    scores, weights = np.random.RandomState(2).randn(6), np.random.RandomState(3).randn(6)
    ranking = Sinkhorn(0.05, threshold=0.2)
    order = np.argsort(-scores)
    plan = transport(ranking, scores[None])[0][order]
    row_sums, column_sums = plan.sum(axis=1), plan.sum(axis=0)
    assert np.abs(column_sums - 1.0).max() > 0.01

    def stopped(s):
        x, y = squash(s)[order], np.linspace(1.0, 0.0, 6)
        kernel, v = np.exp(-((x[:, None] - y) ** 2) / 0.05), np.ones(6)
        for _ in range(3000):
            u = row_sums / (kernel @ v)
            v = column_sums / (u @ kernel)
        return (u[:, None] * kernel * v) @ np.arange(1.0, 7.0) @ weights[order]

    slopes = references.central_differences(stopped, scores, step=1e-5)
    np.testing.assert_allclose(evaluate.gradient(ranking.positions, scores, weights), slopes, rtol=1e-6, atol=1e-8)


def test_the_gradient_of_nearly_tied_scores_is_that_of_a_deviation_of_a_hundredth():
    scores, weights = np.array([2.0, -1.0, 0.5, 0.0]), np.array([1.0, 0.0, 0.0, 2.0])
    scores /= scores.std()
    expected = evaluate.gradient(Sinkhorn().positions, scores, weights)
    for deviation in (10.0, 1.0, 0.02, 0.01, 1e-3, 2e-6):
        found = evaluate.gradient(Sinkhorn().positions, deviation * scores, weights)
        np.testing.assert_allclose(found, expected / max(deviation, 0.01), rtol=1e-6)
        np.testing.assert_allclose(positions(Sinkhorn(), deviation * scores[None]), positions(Sinkhorn(), scores[None]))
    tied = evaluate.gradient(Sinkhorn().positions, np.zeros(4), weights)
    assert 10.0 < np.abs(tied).max() < 1000.0


def test_rows_and_columns_sum_to_one():
    """Also for a small epsilon, within 500 iterations and without overflow."""
    random = np.random.RandomState(0)
    batches = random.randn(2, 50), random.randint(0, 3, (2, 50)), random.standard_cauchy((2, 50))
    for epsilon, scores in itertools.product((1e-8, 1e-5, 1e-3, 1e-2, 0.1, 10.0), batches):
        plan = transport(Sinkhorn(epsilon, max_iterations=500), scores.astype(np.float32))
        np.testing.assert_allclose(plan.sum(axis=2), 1.0, rtol=1e-5)
        np.testing.assert_allclose(plan.sum(axis=1), 1.0, atol=1.1e-3)
        assert (plan >= 0.0).all()


def test_memory_does_not_grow_with_the_iterations():
    """TensorFlow's gradient of the loop, which stores every step, is not used."""

    @tf.function(input_signature=[tf.TensorSpec([None, None])])
    def step(scores):
        with tf.GradientTape() as tape:
            tape.watch(scores)
            total = tf.reduce_sum(Sinkhorn().positions(scores, tf.ones_like(scores, tf.bool)))
        return tape.gradient(total, scores)

    graph = step.get_concrete_function().graph.as_graph_def()
    operations = {node.op for node in graph.node}
    for function in graph.library.function:
        operations |= {node.op for node in function.node_def}
    assert "TensorListPushBack" not in operations
    assert operations & {"While", "StatelessWhile"}
