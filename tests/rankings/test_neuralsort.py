"""NeuralSort equals the paper: Eq. 5, Theorem 4, size of tensors."""

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import references
from tests.rankings import evaluate
from tfr_smooth import measures
from tfr_smooth.rankings.neuralsort import NeuralSort


def test_gradient_at_ties_uses_derivative_0_of_the_absolute_value():
    """Hand-derived: the derivative of the softmax times that of its inputs, where |s_i - s_j| is constant at ties."""
    scores, weights = np.array([1.0, 0.0, 1.0, -2.0, 1.0]), np.random.RandomState(0).randn(5, 5)
    rows, signs = references.neuralsort_indicators(scores, 0.7), np.sign(scores[:, None] - scores)
    expected = np.zeros(5)
    for r in range(5):
        slopes = (5 + 1 - 2 * (r + 1)) * np.eye(5) - np.diag(signs.sum(axis=1)) + signs
        inner = rows[r] * (weights[r] - rows[r] @ weights[r]) / 0.7
        expected += inner @ slopes
    np.testing.assert_allclose(evaluate.gradient(NeuralSort(0.7).indicators, scores, weights), expected, rtol=1e-12)


def test_no_tensor_is_larger_than_ranks_times_list():
    """For K = 5 and 200 documents, the full matrix of score differences would be 40x larger."""
    spec = tf.TensorSpec([1, 200])

    @tf.function(input_signature=[spec, spec])
    def step(scores, relevance):
        with tf.GradientTape() as tape:
            tape.watch(scores)
            total = tf.reduce_sum(NeuralSort().rank_relevance(scores, relevance, tf.ones([1, 200], tf.bool), topn=5))
        return tape.gradient(total, scores)

    shapes = [out.shape for op in step.get_concrete_function().graph.get_operations() for out in op.outputs]
    assert max(shape.num_elements() for shape in shapes if shape.is_fully_defined()) == 5 * 200


@pytest.mark.parametrize("scale", [1.0, 1e30])
def test_scaled_indicators_are_doubly_stochastic(scale):
    """In the limit of many steps. NeuralNDCG takes up to 50, after which ranks sum to 1 and documents nearly so."""
    scores = scale * np.random.RandomState(0).randn(40)
    matrices = [evaluate.value(NeuralSort(0.5, steps).indicators, scores) for steps in (0, 50, 2000)]
    errors = [np.abs(matrix.sum(axis=0) - 1.0).max() for matrix in matrices]
    assert scale != 1.0 or errors[0] > 0.2
    assert errors[1] < 0.005 and errors[2] < 1e-9
    for matrix in matrices:
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-12)


def test_linear_ndcg_of_gains_is_neural_ndcg():
    """Eq. 6 of arXiv:2102.07831: the sum over ranks of the discounted scaled gains, over the ideal DCG."""
    labels, scores = np.array([[0, 3, 1, 2]]), np.random.RandomState(1).randn(1, 4)
    matrix = references.neuralsort_indicators(scores[0], 0.5, 50)
    expected = matrix @ (2.0 ** labels[0] - 1.0) @ references.discounts(4) / references.ideal_dcg(labels[0])
    found = measures.NDCG(gain="linear")(2**labels - 1, scores, ranking=NeuralSort(0.5, 50))
    np.testing.assert_allclose(found, [expected], rtol=1e-9)
