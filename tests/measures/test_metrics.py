"""The metrics as pure functions: references, relevant labels, large labels."""

import fractions
import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import references
from tfr_smooth import measures, metrics, rankings
from tfr_smooth.rankings.dcg import NDCGGain


def test_the_relevance_at_a_rank_is_at_most_one_in_the_measures_of_a_first_document():
    """Three tied documents have the ranks 1, 2, 3 with the chances 1/4, 1/2, 1/4, so rank 2 has 3/2 of them."""
    labels, scores = np.float32([[4, 4, 4]]), np.zeros((1, 3), np.float32)
    reciprocal_rank = measures.ReciprocalRank()(labels, scores, ranking=rankings.SoftRank())
    np.testing.assert_allclose(reciprocal_rank, [3 / 4 + 1 / 4 / 2], rtol=1e-6)
    first, second = 15 / 16 * 3 / 4, 1.0  # of 15/16 * 3/2
    err = measures.ExpectedReciprocalRank()(labels, scores, ranking=rankings.SoftRank())
    np.testing.assert_allclose(err, [first + (1 - first) * second / 2], rtol=1e-6)


def test_lists_have_relevant_documents_by_the_definition_of_each_metric():
    labels = tf.constant([[0.0, 0.5], [0.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    mask = tf.constant([[True, True], [True, True], [True, False], [False, False]])
    for metric, expected in (
        (measures.NDCG(), [True, False, True, False]),
        (measures.ExpectedReciprocalRank(), [True, False, True, False]),
        (measures.Precision(), [False, False, True, False]),
        (measures.AveragePrecision(), [False, False, True, False]),
        (measures.ReciprocalRank(), [False, False, True, False]),
    ):
        np.testing.assert_array_equal(metric.has_relevant(labels, mask), expected)


def test_ideal_dcg_equals_the_reference():
    labels = np.array([[0.0, 3.0, 1.0, 3.0, 0.0], [2.0, 1.0, 0.0, 0.0, 0.0]])
    mask = tf.constant([[True] * 5, [True] * 2 + [False] * 3])
    for topn, kind in itertools.product((None, 1, 3, 50), ("linear", "exponential")):
        gain = NDCGGain.of(kind, tf.constant(labels))
        found = measures.ideal_dcg(tf.constant(labels), mask, topn, gain=gain)
        np.testing.assert_allclose(found, [references.ideal_dcg(row, topn, kind) for row in labels], rtol=1e-12)
    np.testing.assert_array_equal(measures.ideal_dcg(tf.constant(labels), mask, topn), found)


def test_ideal_dcg_accepts_a_discount_and_has_no_gradient():
    labels, mask = tf.constant([[1.0, 2.0, 3.0]]), tf.ones([1, 3], tf.bool)
    with tf.GradientTape() as tape:
        tape.watch(labels)
        found = measures.ideal_dcg(labels, mask, None, [1.0, 0.5])
    np.testing.assert_allclose(found, [7.0 + 0.5 * 3.0])
    assert tape.gradient(found, labels) is None


@pytest.mark.parametrize("highest", [127, 1000])
@pytest.mark.parametrize("ranking", [None, rankings.SmoothI(1e4), rankings.Approx(100.0, 100.0)], ids=str)
def test_ndcg_is_exact_for_labels_whose_gain_overflows(highest, ranking):
    labels = np.array([[highest - 2, 0, highest, highest - 1]])
    exact = [fractions.Fraction(2 ** int(label) - 1, 2**highest - 1) for label in labels[0]]
    gains = np.array([float(ratio) for ratio in exact])
    expected = gains @ references.discounts(4) / (np.sort(gains)[::-1] @ references.discounts(4))
    found = measures.NDCG()(labels, np.float32([[4.0, 3.0, 2.0, 1.0]]), ranking=ranking)
    np.testing.assert_allclose(found, [expected], rtol=1e-5)


def test_ndcg_of_the_ideal_order_is_one_in_graphs_of_unknown_length():
    """The ideal gain is computed from the numbers of documents per grade, or by sorting other labels."""
    for topn in (1, 2, None):
        ndcg = tf.function(measures.NDCG(topn=topn), input_signature=[tf.TensorSpec([None, None])] * 2)
        for labels in ([1, 1, 1], [9, 1, 0], [8, 8, 2], [1.5, 1, 0.5], [3, 0, 0]):
            found = ndcg(np.float32([labels]), np.float32([[3.0, 2.0, 1.0]]))
            np.testing.assert_allclose(found, [1.0], rtol=1e-6, err_msg=f"{labels} {topn}")


@pytest.mark.parametrize("label", [101.0, 3e38])
def test_dcg_refuses_labels_whose_gain_overflows(label):
    labels, scores = tf.constant([[0.0, label, 1.0]]), tf.constant([[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="at most 100 for the gain 2.* use `gain_fn` for other labels, got"):
        measures.DCG()(labels, scores)
    with pytest.raises(tf.errors.InvalidArgumentError, match="`labels` must be at most 100"):
        tf.function(measures.DCG())(labels, scores)
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="`labels` must be at most 100"):
        metrics.DCGMetric().update_state(labels, scores)
    largest = measures.DCG()(tf.fill([1, 1000], 100.0), tf.zeros([1, 1000]))
    np.testing.assert_allclose(largest, [2.0**100 * references.discounts(1000).sum()], rtol=1e-5)
    linear = measures.DCG(gain_fn=tf.identity)(labels, scores)
    np.testing.assert_allclose(linear, [1.0 + label / np.log2(3.0)], rtol=1e-6)
