"""Losses of both libraries on the same lists: equal where docs/tf_ranking.md says so."""

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import losses

tfr = helpers.tf_ranking(module=True)
from tests.tf_ranking.test_values import lists  # noqa: E402

theirs = tfr.keras.losses
FUNCTIONS = {"gain_fn": tfr.keras.utils.pow_minus_1, "rank_discount_fn": tfr.keras.utils.log2_inverse}
WEIGHTS = {
    "none": {},
    "label_diff": {"lambda_weight": ("LabelDiffLambdaWeight", {})},
    "precision": {"lambda_weight": ("PrecisionLambdaWeight", {"topn": 3})},
    "dcg": {"lambda_weight": ("DCGLambdaWeight", {})},
    "dcg@3": {"lambda_weight": ("DCGLambdaWeight", {"topn": 3, "normalized": True, "smooth_fraction": 0.3})},
    "ndcg": {"lambda_weight": ("NDCGLambdaWeight", {})},
    "ndcg@2": {"lambda_weight": ("NDCGLambdaWeight", {"topn": 2, "smooth_fraction": 1.0})},
    "ndcg_v2@3": {"lambda_weight": ("NDCGLambdaWeightV2", {"topn": 3})},
    "functions": {"lambda_weight": ("DCGLambdaWeight", FUNCTIONS)},
}


def pair_of_losses(name, *, lambda_weight=None, **arguments):
    """The loss of TF-Ranking and ours."""
    made = []
    for package in (theirs, losses):
        if lambda_weight is not None:
            arguments["lambda_weight"] = getattr(package, lambda_weight[0])(**lambda_weight[1])
        made.append(getattr(package, name)(**arguments))
    return made


def value_and_gradient(loss, labels, scores, factors=1.0, weights=None):
    """The sum of the losses with these weights times factors, and its gradient."""
    return helpers.value_and_gradient(lambda *batch: tf.reduce_sum(loss(*batch, weights) * factors), labels, scores)


PAIRWISE = ("PairwiseHingeLoss", "PairwiseSoftZeroOneLoss", "PairwiseMSELoss")
# What weights multiply in the losses of both libraries.
weighted = pytest.mark.parametrize("shape", ["unweighted", "lists", "documents"])


def weights_of(shape, labels):
    if shape == "unweighted":
        return None
    weights = np.random.RandomState(7).rand(*labels.shape).astype(np.float32)
    return weights if shape == "documents" else weights[:, :1]


def assert_near(found, expected, error=2e-6):
    for ours, their in zip(found, expected, strict=True):
        scale = np.abs(their).max()
        assert np.isfinite(scale) and scale > 0.0
        np.testing.assert_allclose(ours, their, rtol=error, atol=error * scale)


@pytest.mark.parametrize("weight", ["none", "dcg", "ndcg", "functions"])
@pytest.mark.parametrize(
    ("name", "arguments", "shape"),
    [
        ("SoftmaxLoss", {"temperature": 0.3}, "unweighted"),
        ("SoftmaxLoss", {}, "lists"),
        ("SoftmaxLoss", {}, "documents"),
        ("CalibratedSoftmaxLoss", {"virtual_label": 0.3, "temperature": 0.3}, "unweighted"),
    ],
)
def test_softmax_losses_equal_those_of_tf_ranking(name, arguments, shape, weight):
    labels, scores = lists()
    pair, weights = pair_of_losses(name, reduction="sum", **WEIGHTS[weight], **arguments), weights_of(shape, labels)
    assert_near(*(value_and_gradient(loss, labels, scores, weights=weights) for loss in pair[::-1]))


@weighted
@pytest.mark.parametrize("name", ["UniqueSoftmaxLoss", "ApproxNDCGLoss"])
def test_weighted_listwise_losses_equal_those_of_tf_ranking(name, shape):
    labels, scores = lists()
    relevant = (labels > 0.0).any(axis=1)
    labels, scores = labels[relevant], scores[relevant]
    sharpness = {"alpha": 2.0}, {"temperature": 0.5}
    our, their = (
        getattr(package, name)(reduction="sum", **(own if name == "ApproxNDCGLoss" else {}))
        for package, own in zip((losses, theirs), sharpness, strict=True)
    )
    weights = weights_of(shape, labels)
    expected, gradient = value_and_gradient(their, labels, scores, weights=weights)
    if name == "ApproxNDCGLoss":  # Their loss is ours minus 1.
        expected += losses.list_weights(weights, tf.maximum(labels, 0.0), labels >= 0.0).numpy().sum()
    assert_near(value_and_gradient(our, labels, scores, weights=weights), (expected, gradient), 1e-5)


LOGISTIC = "PairwiseLogisticLoss"


@pytest.mark.parametrize(
    ("name", "weight", "shape"),
    [
        *((LOGISTIC, weight, "documents") for weight in WEIGHTS),
        *((LOGISTIC, "ndcg", shape) for shape in ("unweighted", "lists")),
        *((name, *case) for name in PAIRWISE for case in (("none", "lists"), ("ndcg", "documents"))),
    ],
)
def test_pairwise_losses_equal_those_of_tf_ranking(name, weight, shape):
    labels, scores = lists()
    weights = weights_of(shape, labels)
    their, our = pair_of_losses(name, reduction="none", temperature=0.7, **WEIGHTS[weight])
    # TF-Ranking has one value per document; its weights of DCG have the length of the padded list as a factor.
    documents = np.sum(labels >= 0.0, axis=1, keepdims=True).astype(np.float32)
    lengths = documents if weight in ("none", "label_diff", "precision") else np.full_like(documents, labels.shape[1])
    expected = value_and_gradient(their, labels, scores, 1.0 / lengths, weights)
    assert_near(value_and_gradient(our, labels, scores, weights=weights), expected)


@pytest.mark.parametrize(
    ("metric", "weight", "arguments"),
    [
        ("ndcg_loss2", "NDCGLambdaWeightV2", {"topn": 3}),
        ("lambda_rank", "NDCGLambdaWeight", {"smooth_fraction": 1.0, "topn": 3}),
        ("precision", "PrecisionLambdaWeight", {"topn": 3}),
    ],
)
def test_lambda_loss_equals_pairwise_logistic_with_weights_up_to_a_factor(metric, weight, arguments):
    random = np.random.RandomState(0)
    labels, scores = np.float32([random.permutation(8)]) / 2.0, np.float32([random.randn(8)])
    their = theirs.PairwiseLogisticLoss(reduction="sum", lambda_weight=getattr(theirs, weight)(**arguments))
    our = losses.LambdaLoss(metric=metric, topn=arguments.get("topn"))
    # TF-Ranking multiplies by the length of the list (precision: by K) and uses the natural logarithm.
    factor = np.log(2.0) * (3.0 if metric == "precision" else 8.0)
    found = [factor * tensor for tensor in value_and_gradient(our, labels, scores)]
    assert_near(found, value_and_gradient(their, labels, scores), 1e-5)


def test_list_mle_with_weights_equals_that_of_tf_ranking_for_distinct_labels():
    labels = np.argsort(np.random.RandomState(1).rand(20, 6)).astype(np.float32)
    scores = np.random.RandomState(2).randn(20, 6).astype(np.float32)
    weight = {"lambda_weight": ("ListMLELambdaWeight", {"rank_discount_fn": lambda rank: 1.0 / rank})}
    their, our = pair_of_losses("ListMLELoss", temperature=0.5, **weight)
    assert_near(value_and_gradient(our, labels, scores), value_and_gradient(their, labels, scores))


@weighted
@pytest.mark.parametrize("name", ["SigmoidCrossEntropyLoss", "MeanSquaredLoss"])
def test_pointwise_losses_equal_those_of_tf_ranking_without_padding(name, shape):
    labels, scores = np.float32(lists()[0] > 1.0), lists()[1]  # Padding becomes label 0.
    weights = weights_of(shape, labels)
    assert_near(*(value_and_gradient(loss, labels, scores, weights=weights) for loss in pair_of_losses(name)[::-1]))


@pytest.mark.parametrize(
    ("name", "arguments", "num_scores"),
    [
        ("ClickEMLoss", {"exam_loss_weight": 0.7, "rel_loss_weight": 2.0}, 2),
        ("MixtureEMLoss", {"alpha": 1.5}, 3),
        ("OrdinalLoss", {"ordinal_size": 3}, 3),
        ("OrdinalLoss", {"ordinal_size": 3, "use_fraction_label": True}, 3),
    ],
)
@weighted
def test_losses_of_several_scores_equal_those_of_tf_ranking(name, arguments, num_scores, shape):
    labels = lists()[0] * 0.8 if name == "OrdinalLoss" else np.minimum(lists()[0], 1.0)
    scores = np.random.RandomState(5).randn(*labels.shape, num_scores).astype(np.float32)
    their, our = pair_of_losses(name, reduction="none", **arguments)
    # TF-Ranking has one value per document, or per list.
    factors = 1.0 if name == "MixtureEMLoss" else 1.0 / np.float32(np.sum(labels >= 0.0, axis=1, keepdims=True))
    weights = weights_of(shape, labels)
    expected = value_and_gradient(their, labels, scores, factors, weights)
    assert_near(value_and_gradient(our, labels, scores, weights=weights), expected)


def test_sampled_losses_equal_those_of_tf_ranking_with_the_same_noise(monkeypatch):
    labels, scores = lists()
    noise = np.random.RandomState(6).gumbel(size=[40, 8, 8]).astype(np.float32)
    monkeypatch.setattr("tfr_smooth.losses.gumbel.gumbel_noise", lambda like, *_: tf.constant(noise))
    monkeypatch.setattr("tensorflow_ranking.python.losses_impl._sample_gumbel", lambda *_, **__: tf.constant(noise))
    relevant = (labels > 0.0).any(axis=1)
    ndcg = theirs.GumbelApproxNDCGLoss(reduction="sum", temperature=0.5, gumbel_temperature=2.0)
    ours = losses.GumbelApproxNDCGLoss(reduction="sum", alpha=2.0, gumbel_temperature=2.0)
    expected, gradient = value_and_gradient(ndcg, labels, scores)
    # Their sum is over lists and samples, and their loss is ours minus 1.
    assert_near(value_and_gradient(ours, labels, scores), (relevant.sum() + expected / 8.0, gradient / 8.0), 1e-5)
    yeti, ours = pair_of_losses("YetiLogisticLoss", reduction="sum", temperature=0.7)
    expected = value_and_gradient(yeti, labels, scores)  # with the length of the padded list as a factor
    assert_near(value_and_gradient(ours, labels, scores), [tensor / 64.0 for tensor in expected], 1e-5)
    for topk in (2, None):
        distil, ours = pair_of_losses("CoupledRankDistilLoss", reduction="sum", topk=topk, temperature=0.7)
        full = np.maximum(labels, 0.0)  # Their padding has a share.
        assert_near(value_and_gradient(ours, full, scores), value_and_gradient(distil, full, scores), 1e-5)


def test_get_knows_the_names_of_tf_ranking():
    assert set(losses.RankingLossKey.all_keys()) == set(theirs.RankingLossKey.all_keys())
    for key in losses.RankingLossKey.all_keys():
        assert type(losses.get(key)).__name__ == type(theirs.get(key)).__name__
