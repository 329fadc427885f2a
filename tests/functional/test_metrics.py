"""The metrics as pure functions: closed forms, references, what counts as relevant."""

import numpy as np
import pytest
import tensorflow as tf

from tests import references
from tfr_smooth import functional, ops

EXACT = {
    "ndcg": (functional.NDCG(), references.exact_ndcg),
    "ndcg@3": (functional.NDCG(topn=3), lambda y, s: references.exact_ndcg(y, s, 3)),
    "ndcg@3 linear": (functional.NDCG(topn=3, gain="linear"), lambda y, s: references.exact_ndcg(y, s, 3, "linear")),
    "p@1": (functional.Precision(topn=1), lambda y, s: references.exact_precision(y, s, 1)),
    "p@10": (functional.Precision(), references.exact_precision),
    "map": (functional.AveragePrecision(), references.exact_map),
    "rr": (functional.ReciprocalRank(), references.exact_rr),
    "rr@2": (functional.ReciprocalRank(topn=2), lambda y, s: references.exact_rr(y, s, 2)),
    "err": (functional.ExpectedReciprocalRank(), references.exact_err),
    "err@3, 2 grades": (functional.ExpectedReciprocalRank(3, 2), lambda y, s: references.exact_err(y, s, 3, 2.0)),
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("seed", range(4))
def test_exact_values_equal_the_reference(name, seed):
    metric, reference = EXACT[name]
    random = np.random.RandomState(seed)
    for length in (1, 2, 8, 40):
        labels = random.randint(0, 4, length)
        labels[random.randint(length)] = 2
        scores = random.randint(0, 6, length).astype(np.float32)
        value = metric(tf.constant(labels[None]), tf.constant(scores[None])).numpy()
        np.testing.assert_allclose(value, [reference(labels, scores)], rtol=1e-6)


@pytest.mark.parametrize("name", EXACT)
def test_a_sharp_smoothi_is_the_exact_metric(name):
    metric, _ = EXACT[name]
    random = np.random.RandomState(0)
    scores = tf.constant(np.stack([random.permutation(15) for _ in range(8)]), tf.float32)
    labels = tf.constant(random.randint(0, 4, (8, 15)))
    smooth = metric(labels, scores, ranking=ops.SmoothI(alpha=1e4))
    np.testing.assert_allclose(smooth.numpy(), metric(labels, scores).numpy(), atol=1e-5)


def test_ndcg_by_hand():
    labels, scores = tf.constant([[0.0, 2.0, 1.0]]), tf.constant([[3.0, 2.0, 1.0]])
    expected = (3.0 / np.log2(3.0) + 1.0 / 2.0) / (3.0 + 1.0 / np.log2(3.0))
    np.testing.assert_allclose(functional.NDCG()(labels, scores).numpy(), [expected], rtol=1e-6)


def test_average_precision_by_hand():
    labels, scores = tf.constant([[1, 0, 3, 0, 1]]), tf.constant([[5.0, 4.0, 3.0, 2.0, 1.0]])
    expected = (1.0 + 2.0 / 3.0 + 3.0 / 5.0) / 3.0
    np.testing.assert_allclose(functional.AveragePrecision()(labels, scores).numpy(), [expected], rtol=1e-6)


def test_precision_divides_by_the_cut_off_of_short_lists_too():
    value = functional.Precision(topn=10)(tf.constant([[1, 1]]), tf.constant([[1.0, 2.0]]))
    np.testing.assert_allclose(value.numpy(), [0.2], rtol=1e-6)


def test_precision_without_cut_off_is_over_the_real_documents():
    value = functional.Precision(topn=None)(tf.constant([[1, 0, -1, -1]]), tf.constant([[1.0, 2.0, 3.0, 4.0]]))
    np.testing.assert_allclose(value.numpy(), [0.5], rtol=1e-6)


def test_expected_reciprocal_rank_by_hand():
    labels, scores = tf.constant([[2, 0, 1], [4, 0, 0]]), tf.constant([[1.0, 3.0, 2.0], [3.0, 2.0, 1.0]])
    # Ranks hold 0, 1, 2: the chances to stop are 0, 1/16, 3/16; 4 alone has 15/16.
    expected = [1.0 / 16.0 / 2.0 + 15.0 / 16.0 * 3.0 / 16.0 / 3.0, 15.0 / 16.0]
    np.testing.assert_allclose(functional.ExpectedReciprocalRank()(labels, scores).numpy(), expected, rtol=1e-6)


def test_labels_above_the_highest_grade_count_as_it():
    err = functional.ExpectedReciprocalRank(max_grade=2)
    scores = tf.constant([[1.0, 2.0]])
    np.testing.assert_array_equal(err(tf.constant([[7, 0]]), scores), err(tf.constant([[2, 0]]), scores))


def test_a_reciprocal_rank_of_found_relevance_is_the_cascade():
    labels, scores = np.array([1, 0, 2, 0, 1]), np.array([0.3, 1.0, 0.5, -0.2, 0.1])
    found = np.minimum(references.smoothi_indicators(scores) @ references.binary(labels), 1.0)
    value = functional.ReciprocalRank()(labels[None], scores[None], ranking=ops.SmoothI())
    np.testing.assert_allclose(value.numpy(), [references.cascade(found)], rtol=1e-6)
    found = np.minimum(references.smoothi_indicators(scores) @ references.satisfaction(labels), 1.0)
    value = functional.ExpectedReciprocalRank()(labels[None], scores[None], ranking=ops.SmoothI())
    np.testing.assert_allclose(value.numpy(), [references.cascade(found)], rtol=1e-6)


def test_what_counts_as_relevant():
    labels = tf.constant([[0.0, 0.5], [0.0, 0.0], [-1.0, -1.0], [1.0, -1.0]])
    np.testing.assert_array_equal(functional.NDCG().has_relevant(labels), [True, False, False, True])
    np.testing.assert_array_equal(functional.Precision().has_relevant(labels), [False, False, False, True])
    np.testing.assert_array_equal(functional.AveragePrecision().has_relevant(labels), [False, False, False, True])


def test_a_mask_is_further_padding():
    labels, scores = tf.constant([[0.0, 2.0, 1.0]]), tf.constant([[3.0, 2.0, 1.0]])
    masked = functional.NDCG()(labels, scores, tf.constant([[False, True, True]]))
    np.testing.assert_allclose(masked.numpy(), [1.0], rtol=1e-6)


def test_document_weights_follow_tf_rankings_rule():
    labels = tf.constant([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    mask = tf.constant([[True, True, True], [True, True, False]])
    weights = tf.constant([[1.0, 4.0, 100.0], [2.0, 4.0, np.nan]])
    np.testing.assert_allclose(functional.list_weights(weights, labels, mask), [(2.0 + 4.0) / 3.0, 3.0])


@pytest.mark.parametrize("weights", [[2.0, 3.0], [[2.0], [3.0]]])
def test_list_weights_as_they_are(weights):
    labels, mask = tf.ones([2, 3]), tf.ones([2, 3], tf.bool)
    np.testing.assert_allclose(functional.list_weights(tf.constant(weights), labels, mask), [2.0, 3.0])
    np.testing.assert_allclose(functional.list_weights(2.5, labels, mask), [2.5, 2.5])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: functional.NDCG(topn=0), "`topn` must be an integer >= 1 or None, got 0."),
        (lambda: functional.NDCG(gain="log"), "`gain` must be one of 'exponential', 'linear', got 'log'."),
        (lambda: functional.Precision(topn=-1), "`topn` must be an integer >= 1 or None, got -1."),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError) as error:
        make()
    assert str(error.value) == message
