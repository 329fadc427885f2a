"""Metrics of both libraries on the same lists, and the differences that docs/tf_ranking.md lists."""

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import losses, metrics

tfr = helpers.tf_ranking(module=True)
from tests.tf_ranking.pipelines import LABELS, SCORES  # noqa: E402

# The metrics of both libraries, and the arguments with which they agree.
NO_CUTOFF = {"topn": None}
METRICS = {
    "ndcg": ("NDCGMetric", {}),
    "dcg": ("DCGMetric", {}),
    "mrr": ("MRRMetric", {}),
    "precision": ("PrecisionMetric", NO_CUTOFF),
    "recall": ("RecallMetric", NO_CUTOFF),
    "hits": ("HitsMetric", NO_CUTOFF),
    "map": ("MeanAveragePrecisionMetric", {}),
    "arp": ("ARPMetric", {}),
    "ordered_pair_accuracy": ("OPAMetric", {}),
    "alpha_dcg": ("AlphaDCGMetric", {}),
    "precision_ia": ("PrecisionIAMetric", NO_CUTOFF),
}
# Those whose lists do not have equal weights.
WEIGHTED = ("arp", "ordered_pair_accuracy")
SUBTOPICS = ("alpha_dcg", "precision_ia")
CASES = [(name, topn) for name in METRICS for topn in (None, 1, 3) if topn is None or name not in WEIGHTED]
OF_EQUAL_LISTS = [name for name in METRICS if name not in WEIGHTED]


def values(name, labels, scores, weights=None, topn=None):
    """The values of TF-Ranking's metric and ours; labels [batch, list] are those of one subtopic."""
    metric, arguments = METRICS[name]
    if name in SUBTOPICS and np.ndim(labels) == 2:
        labels = np.float32(labels)[:, :, np.newaxis]
    cut = {} if topn is None else {"topn": topn}
    both = getattr(tfr.keras.metrics, metric)(**cut), getattr(metrics, metric)(**{**arguments, **cut})
    for metric in both:
        metric.update_state(tf.constant(labels), tf.constant(scores), weights)
    return [float(metric.result()) for metric in both]


def lists():
    """Labels and scores of 40 lists of 3 to 8 documents, the first five without a relevant document."""
    random = np.random.RandomState(3)
    labels = random.randint(0, 4, (40, 8)).astype(np.float32)
    labels[:5] = 0.0
    labels[np.arange(8) >= random.randint(3, 9, (40, 1))] = -1.0
    return labels, random.randn(40, 8).astype(np.float32)


@pytest.mark.parametrize(("name", "topn"), CASES)
def test_metrics_with_and_without_weights_of_lists_are_those_of_tf_ranking(name, topn):
    labels, scores = lists()
    if name in SUBTOPICS:  # The second subtopic has the labels of the documents in another order.
        labels = np.stack([labels, np.where(labels < 0.0, -1.0, np.abs(labels[::-1]))], axis=2)
    theirs, ours = values(name, labels, scores, topn=topn)
    assert ours > 0.0 and ours == pytest.approx(theirs, rel=1e-6)
    relevant = (labels >= 1.0).any(axis=tuple(range(1, labels.ndim)))
    labels, scores = labels[relevant], scores[relevant]
    weights = np.random.RandomState(4).uniform(0.5, 2.0, (len(labels), 1)).astype(np.float32)
    theirs, ours = values(name, labels, scores, weights, topn=topn)
    assert ours == pytest.approx(theirs, rel=1e-6)
    is_one = name in ("recall", "hits") and topn is None
    assert is_one or ours != pytest.approx(values(name, labels, scores, topn=topn)[1], rel=1e-4)


# Each test below covers rows of the page.


def test_losses_and_precision_of_short_lists_differ_as_documented():
    theirs, ours = tfr.keras.losses, losses
    two, four = (LABELS[:2], SCORES[:2]), (LABELS[:2, :4], SCORES[:2, :4])
    # A list without a relevant document counts in TF-Ranking.
    approx = theirs.ApproxNDCGLoss(temperature=0.1)
    np.testing.assert_allclose(ours.ApproxNDCGLoss(alpha=10.0)(*two), 1.0 + approx(*two), rtol=1e-5)
    np.testing.assert_allclose(approx(LABELS, SCORES), approx(*two) * 2.0 / 3.0, rtol=1e-5)
    np.testing.assert_allclose(ours.ApproxNDCGLoss()(LABELS, SCORES), ours.ApproxNDCGLoss()(*two), rtol=1e-6)
    # TF-Ranking's denominator includes padding: 3 + 2 documents of 8.
    np.testing.assert_allclose(
        theirs.MeanSquaredLoss()(*four) * 8.0, np.sum(np.where(four[0] < 0.0, 0.0, (four[0] - four[1]) ** 2)), rtol=1e-5
    )
    assert float(ours.MeanSquaredLoss()(*four)) > float(theirs.MeanSquaredLoss()(*four))
    # Three relevant of five documents, in lists of three and two.
    for name in ("precision", "precision_ia"):
        assert values(name, *two, topn=10) == pytest.approx([(2 / 3 + 1 / 2) / 2, (2 / 10 + 1 / 10) / 2])


def test_lists_without_a_relevant_document_count_in_losses_of_tf_ranking():
    irrelevant = ([[0.0, 0.0, 0.0]], [[1.0, 2.0, 3.0]])
    for name, expected in (("SoftmaxLoss", 0.0), ("ApproxNDCGLoss", 0.0), ("ListMLELoss", None)):
        theirs = float(getattr(tfr.keras.losses, name)()(*irrelevant))
        assert theirs == expected if expected is not None else theirs > 0.1
    assert float(losses.ListMLELoss()(*irrelevant)) == 0.0


def test_lists_of_padding_count_in_metrics_of_tf_ranking_except_those_over_documents_or_pairs():
    labels, scores = [[0.0, 2.0, 1.0], [-1.0, -1.0, -1.0], [0.0, 0.0, 0.0]], [[0.3, 0.2, 0.1]] * 3
    for name in OF_EQUAL_LISTS:
        theirs, ours = values(name, labels[:2], scores[:2])
        assert theirs == pytest.approx(ours / 2.0)
    for name in WEIGHTED:
        assert values(name, labels, scores) == pytest.approx([values(name, labels[:1], scores[:1])[1]] * 2)


@pytest.mark.parametrize("name", OF_EQUAL_LISTS)
def test_lists_without_a_relevant_document_have_the_mean_weight_in_metrics_of_tf_ranking(name):
    labels, scores = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [[0.3, 0.2]] * 3
    theirs, ours = values(name, labels, scores, [[6.0], [2.0], [1.0]])
    second, third = (values(name, labels[i : i + 1], scores[:1])[1] for i in (1, 2))
    assert theirs == pytest.approx((2.0 * second + 1.0 * third) / (1.5 + 2.0 + 1.0))
    assert ours == pytest.approx((2.0 * second + 1.0 * third) / (6.0 + 2.0 + 1.0))


@pytest.mark.parametrize("name", METRICS)
def test_documents_of_weight_zero_are_padding_in_metrics_of_tf_ranking_without_subtopics(name):
    labels, scores, weights = [[0.0, 2.0, 1.0]], [[0.3, 0.2, 0.1]], [[0.0, 1.0, 1.0]]
    if name in SUBTOPICS:
        scores, weights = [[0.1, 0.2, 0.3]], [[0.0, 3.0, 3.0]]
        assert values(name, labels, scores, weights) == pytest.approx([values(name, labels, scores)[1]] * 2)
        return
    topn = 1 if name in ("recall", "hits") else None
    theirs, ours = values(name, labels, scores, weights, topn)
    assert theirs == pytest.approx(values(name, [[-1.0, 2.0, 1.0]], scores, topn=topn)[1])
    assert ours == pytest.approx(values(name, labels, scores, topn=topn)[1])
    assert ours > theirs if name == "arp" else ours < theirs


def test_labels_below_0_of_a_subtopic_count_in_alpha_dcg_of_tf_ranking():
    labels, scores = [[[1.0, -1.0], [1.0, -1.0]]], [[2.0, 1.0]]
    second = np.log(2.0) / np.log(3.0)
    expected = (1.0 - 1.0) + (0.5 - 0.5**-1) * second, 1.0 + 0.5 * second
    assert values("alpha_dcg", labels, scores) == pytest.approx(expected)
    assert values("precision_ia", labels, scores) == pytest.approx([1.0, 1.0])


def test_padding_has_the_gain_of_label_0_in_dcg_of_tf_ranking():
    functions = {"gain_fn": lambda labels: labels + 1.0, "rank_discount_fn": lambda ranks: 1.0 / ranks}
    for package, expected in ((tfr.keras.metrics, 2.0 + 1.0 / 2.0), (metrics, 2.0)):
        metric = package.DCGMetric(**functions)
        metric.update_state([[1.0, -1.0]], [[1.0, 2.0]])
        assert float(metric.result()) == pytest.approx(expected)


@pytest.mark.parametrize("topn", [None, 2])
def test_functions_of_tf_ranking_are_gains_and_discounts(topn):
    labels, scores = map(tf.constant, lists())
    discount = {"rank_discount_fn": tfr.keras.utils.inverse}
    for name, functions in (
        ("DCGMetric", {"gain_fn": tfr.keras.utils.identity, **discount}),
        ("AlphaDCGMetric", {"alpha": 0.3, "seed": 1, **discount}),
    ):
        found = []
        for package in (tfr.keras.metrics, metrics):
            metric = getattr(package, name)(topn=topn, **functions)
            metric.update_state(labels[:, :, tf.newaxis] if "alpha" in functions else labels, scores)
            found.append(float(metric.result()))
        assert found[1] == pytest.approx(found[0], rel=1e-6)
        again = metrics.get(tf.keras.metrics.serialize(metric))
        assert again.measure == metric.measure


def test_document_weights_enter_metrics_of_tf_ranking():
    labels, scores, weights = [[0.0, 2.0, 1.0]], [[0.3, 0.2, 0.1]], [[1.0, 2.0, 5.0]]
    third = np.log(2.0) / np.log(4.0)
    dcg = 2 * 3 * np.log(2.0) / np.log(3.0) + 5 * 1 * third
    expected = {
        "ndcg": dcg / (2 * 3 + 5 * 1 * np.log(2.0) / np.log(3.0)),
        "map": (2 * 1 / 2 + 5 * 2 / 3) / (2 + 5),
        "mrr": 1 / 2,
        "precision": 2 / 3,
        "recall": 1.0,
        "hits": 1.0,
        "dcg": dcg / ((2 * 3 + 5 * 1) / (3 + 1)),
        "arp": (2 * 2 * 2 + 5 * 1 * 3) / (2 * 2 + 5 * 1),
        "ordered_pair_accuracy": 2 / (2 + 5 + 2),
        "alpha_dcg": (2 * 2 * np.log(2.0) / np.log(3.0) + 5 * 0.25 * third) / ((2 + 5) / 2),
        "precision_ia": 2 / 3,
    }
    assert set(expected) == set(METRICS)
    for name, value in expected.items():
        theirs, ours = values(name, labels, scores, weights)
        assert theirs == pytest.approx(value)
        assert ours == pytest.approx(values(name, labels, scores)[1])
