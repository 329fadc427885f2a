"""The measures that have no losses: values by hand, references, relations to other measures, and labels by subtopic."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import metric_value as value
from tests.helpers import references
from tfr_smooth import measures, metrics, rankings

NAN = math.nan


def random_lists(seed=0, lists=16, documents=9):
    """Returns labels and scores without ties, with padding and a relevant document in every list."""
    random = np.random.RandomState(seed)
    labels = random.randint(0, 4, (lists, documents)).astype(np.float32)
    labels[random.rand(lists, documents) < 0.3] = -1.0
    labels[:, 2] = 1.0
    scores = random.rand(lists, documents).argsort(axis=1).astype(np.float32)
    return labels, scores


def random_subtopics(seed=0, lists=16, documents=9, subtopics=3):
    """Returns labels by subtopic, where lists have different numbers of documents and subtopics, and scores."""
    random = np.random.RandomState(seed)
    labels = random.randint(0, 3, (lists, documents, subtopics)).astype(np.float32)
    for row in range(lists):
        labels[row, :, 1 + row % subtopics :] = -1.0
        labels[row, 2 + row % (documents - 1) :] = -1.0
        labels[row, 0, 0] = 1.0
    return labels, random.randn(lists, documents).astype(np.float32)


# ---- Values.


def test_values_by_hand():
    subtopics = [[0, 1], [1, 0], [1, 1]]
    for metric, labels, scores, expected in (
        (metrics.RecallMetric(topn=2), [0, 1, 1], [3, 1, 2], 1 / 2),
        (metrics.MeanAveragePrecisionMetric(topn=2), [0, 1, 1], [3, 1, 2], 1 / 2 / 2),
        (metrics.HitsMetric(topn=1), [0, 1, 1], [3, 1, 2], 0.0),
        (metrics.DCGMetric(), [0, 1, 1], [3, 1, 2], 1 / math.log2(3) + 1 / 2),
        (metrics.DCGMetric(topn=2), [2, 0, 1], [1, 2, 3], 1.0),
        (metrics.ARPMetric(), [0, 1, 1], [3, 1, 2], (2 + 3) / 2),
        (metrics.ARPMetric(), [1, 0, 3], [1, 2, 3], (3 * 1 + 1 * 3) / 4),
        (metrics.OPAMetric(), [0, 1, 2], [3, 1, 2], 1 / 3),
        (metrics.OPAMetric(), [0, 1, 1], [2, 2, 3], 1 / 2),
        (metrics.PrecisionIAMetric(topn=None), subtopics, [3, 1, 2], 4 / (2 * 3)),
        (metrics.PrecisionIAMetric(topn=2), subtopics, [3, 1, 2], 3 / (2 * 2)),
        (metrics.PrecisionIAMetric(topn=4), subtopics, [3, 1, 2], 4 / (2 * 4)),
        (metrics.PrecisionMetric(topn=10), [1, 1], [1, 2], 0.2),
        (metrics.PrecisionMetric(topn=None), [1, 0, -1, -1], [1, 2, 3, 4], 0.5),  # of the real documents
        # The labels by rank are 0, 1, 2, with stop probabilities 0, 1/16, 3/16; label 4 has 15/16.
        (metrics.ERRMetric(), [2, 0, 1], [1, 3, 2], 1 / 16 / 2 + 15 / 16 * 3 / 16 / 3),
        (metrics.AlphaDCGMetric(), subtopics, [3, 1, 2], 1 + 1.5 / math.log2(3) + 0.5 / 2),
        (metrics.AlphaDCGMetric(alpha=1.0), subtopics, [3, 1, 2], 1 + 1 / math.log2(3)),
    ):
        found = value(metric, tf.constant([labels]), tf.constant([scores], tf.float32))
        assert found == pytest.approx(expected, rel=1e-6), metric


def test_measures_of_ranks_are_defined_for_smooth_rankings():
    labels, scores = random_lists()
    ranking = rankings.SoftSort(temperature=0.01)
    for measure in (measures.Hits(topn=2), measures.DCG(topn=3), measures.AverageRelevancePosition()):
        np.testing.assert_allclose(measure(labels, scores, ranking=ranking), measure(labels, scores), rtol=1e-5)


def test_measures_without_a_smooth_variant_refuse_smooth_rankings_and_alpha_is_at_most_1():
    with pytest.raises(ValueError, match=r"`alpha` must be a number in \[0, 1\], got 1.5"):
        measures.AlphaDCG(alpha=1.5)
    message = "`ranking` must be an instance of tfr_smooth.rankings.ExactRanking, got Approx"
    for measure in (measures.OrderedPairAccuracy(), measures.AlphaDCG(), measures.PrecisionIA(), measures.KendallTau()):
        with pytest.raises(ValueError, match=message):
            measure(*random_lists(), ranking=rankings.Approx())


# ---- Functions of labels and ranks.


def linear_discount(ranks):
    return tf.maximum(0.0, tf.constant(8.0) - ranks)  # float32, like TF-Ranking's functions


def test_padding_has_no_gain_also_if_the_label_0_has_one():
    for dtype in (np.float32, np.float64):
        measure = measures.DCG(gain_fn=lambda labels: 2.0 * labels + 1.0, rank_discount_fn=linear_discount)
        found = measure(tf.constant([[1, -1, 0, -1]]), tf.constant([[1.0, 4.0, 2.0, 9.0]], dtype))
        assert found.dtype == dtype
        np.testing.assert_allclose(found, [7.0 * 1.0 + 6.0 * 3.0])


# ---- Labels by subtopic.


SUBTOPIC_MEASURES = {
    "alpha_dcg": (measures.AlphaDCG(), references.alpha_dcg),
    "alpha_dcg@3": (measures.AlphaDCG(topn=3, alpha=0.2), lambda y, s: references.alpha_dcg(y, s, 3, 0.2)),
    "precision_ia": (measures.PrecisionIA(topn=None), lambda y, s: references.precision_ia(y, s, None)),
    "precision_ia@3": (measures.PrecisionIA(topn=3), lambda y, s: references.precision_ia(y, s, 3)),
}
every_subtopic_measure = pytest.mark.parametrize("name", SUBTOPIC_MEASURES)


@every_subtopic_measure
def test_subtopic_measures_equal_the_reference(name):
    measure, reference = SUBTOPIC_MEASURES[name]
    labels, scores = random_subtopics()
    real = [((of_list >= 0.0).any(axis=1), (of_list >= 0.0).any(axis=0)) for of_list in labels]
    expected = [reference(y[of][:, topics], s[of]) for (of, topics), y, s in zip(real, labels, scores, strict=True)]
    np.testing.assert_allclose(measure(labels, scores), expected, rtol=1e-6)
    unknown = tf.function(measure, input_signature=[tf.TensorSpec([None] * 3), tf.TensorSpec([None, None])])
    np.testing.assert_allclose(unknown(labels, scores), expected, rtol=1e-6)


@every_subtopic_measure
def test_padding_of_documents_and_subtopics_changes_nothing_and_nan_makes_its_list_nan(name):
    measure, _ = SUBTOPIC_MEASURES[name]
    labels, scores = random_subtopics()
    expected = measure(labels, scores).numpy()
    more = np.pad(labels, [(0, 0), (2, 1), (1, 2)], constant_values=-1.0)
    np.testing.assert_array_equal(measure(more, np.pad(scores, [(0, 0), (2, 1)], constant_values=NAN)), expected)
    junk = np.pad(labels, [(0, 0), (0, 2), (0, 0)], constant_values=3.0)
    mask = np.pad(np.ones(scores.shape, bool), [(0, 0), (0, 2)])
    np.testing.assert_array_equal(measure(junk, np.pad(scores, [(0, 0), (0, 2)]), mask), expected)
    labels[2, 0, 0], labels[3, 0, 0], scores[5, 0] = math.inf, NAN, NAN
    expected[[2, 3, 5]] = NAN
    np.testing.assert_array_equal(measure(labels, scores), expected)


by_subtopic = pytest.mark.parametrize("metric", [metrics.AlphaDCGMetric, metrics.PrecisionIAMetric])


@by_subtopic
def test_ragged_labels_by_subtopic_equal_padded_labels(metric):
    rows = [[[0.0, 0.0], [1.0, 0.0]], [[1.0, 1.0], [0.0, 2.0], [1.0, 0.0]]]
    scores = [[2.0, 1.0], [2.0, 5.0, 4.0]]
    padded = [rows[0] + [[-1.0, -1.0]], rows[1]], [scores[0] + [7.0], scores[1]]
    expected = value(metric(), tf.constant(padded[0]), tf.constant(padded[1]))
    for inner in ({"inner_shape": (2,)}, {}):
        ragged = tf.ragged.constant(rows, ragged_rank=None if not inner else 1, **inner)
        assert value(metric(ragged=True), ragged, tf.ragged.constant(scores)) == expected
    weights = tf.ragged.constant([[1.0, 2.0], [3.0, 3.0, 3.0]])
    by_list = value(metric(), tf.constant(padded[0]), tf.constant(padded[1]), tf.constant([2.0, 3.0]))
    # The second document of the first list is its only relevant one.
    assert value(metric(ragged=True), ragged, tf.ragged.constant(scores), weights) == pytest.approx(by_list)


@by_subtopic
def test_lists_without_a_relevant_subtopic_count_as_zero_or_are_skipped(metric):
    labels = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.5], [0.0, 0.0]], [[-1.0, -1.0]] * 2])
    scores = np.ones([3, 2])
    one = value(metric(), labels[:1], scores[:1])
    assert one > 0.0 and value(metric(no_relevant="skip"), labels, scores) == pytest.approx(one)
    assert value(metric(), np.floor(labels), scores) == pytest.approx(one / 2.0)


def test_labels_by_subtopic_must_fit_the_scores():
    for metric, shape, got in (
        (metrics.AlphaDCGMetric(), [2, 4, 2], "2, 4"),
        (metrics.DCGMetric(), [2, 3, 2], "2, 3, 2"),
    ):
        with pytest.raises(ValueError, match=rf"`labels` must have the shape of the scores, \(2, 3\), got \({got}\)"):
            metric.update_state(tf.zeros(shape), tf.zeros([2, 3]))


# ---- Names.


def test_the_constants_are_names_of_exact_metrics():
    keys = {name: key for name, key in vars(metrics.RankingMetricKey).items() if name.isupper()}
    assert keys == {key.upper(): key for key in metrics.NAMES if key in keys.values()}
    assert {type(metrics.get(key).ranking) for key in keys.values()} == {rankings.ExactRanking}


def test_the_argument_of_get_may_be_named_as_in_tf_ranking():
    metric = metrics.get(key="ndcg", topn=5, name="metric/ndcg_5", dtype="float64")
    assert metric.get_config() == metrics.NDCGMetric(topn=5, name="metric/ndcg_5", dtype="float64").get_config()
