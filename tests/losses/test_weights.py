"""Weights of documents: what they multiply in each loss; shifts of scores; AutoGraph."""

import logging

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import a_batch, checks, each, modes, value_and_gradient
from tests.helpers.modes import quick_or_slow, step
from tfr_smooth import _compiled, losses

MULTI_SCORE = {"click_em": 2, "dual_learning": 2, "mixture_em": 3, "ordinal": 1}
DOCUMENTS = {"calibrated_softmax", "click_em", "mean_squared", "ordinal", "regression_compatible"}
DOCUMENTS |= {"sigmoid_cross_entropy", "softmax"}
PAIRS = {name for name in losses.NAMES if name.startswith("pairwise_")} | {"lambda_loss", "rank_net", "yeti_logistic"}
# One of each kind of loss that weights lists, as they share the code.
LISTS = {"approx_mrr", "softsort_precision", "smoothi_ndcg", "list_mle", "psl", "mixture_em", "dual_learning"}
COVERED = LISTS | {"softmax", "mean_squared", "ordinal", "click_em", "pairwise_logistic", "pairwise_mse", "rank_net"}
SLOW = ("smoothi_ndcg", "lambda_loss", "yeti_logistic", "pairwise_qr")


def each_of(names):
    return quick_or_slow(sorted(names), quick=[name for name in names if name not in SLOW])


def get(name):
    seed = {"seed": 3} if "seed" in (losses.hyperparameters(name) if name in losses.NAMES else {}) else {}
    return each(name, **seed) if name in MULTI_SCORE else checks.SUBJECTS[name].each(**seed)


def batch(name, length=5):
    labels, scores = a_batch(batch=3, length=length)
    labels = np.minimum(labels, 1.0) if name in ("click_em", "mixture_em") else labels
    labels[1, -1] = -1.0
    if name in MULTI_SCORE:
        scores = np.random.RandomState(1).randn(*labels.shape, MULTI_SCORE[name]).astype(np.float32)
    return labels, scores


def one_weight_at_a_time(name):
    """Returns the labels, and value and gradient of the loss, [documents, batch, ..], if one document has a weight."""
    labels, scores = batch(name)
    found = []
    for place in range(labels.shape[1]):
        weights = np.zeros_like(labels)
        weights[:, place] = 1.0
        tf.random.set_seed(0)
        found.append(value_and_gradient(get(name), labels, scores, weights))
    return labels, np.stack([value for value, _ in found]), np.stack([gradient for _, gradient in found])


def unweighted(name, weights=None):
    tf.random.set_seed(0)
    return value_and_gradient(get(name), *batch(name), weights)


def assert_near(found, expected, error=2e-5):
    np.testing.assert_allclose(found, expected, rtol=error, atol=error * np.abs(expected).max())


@each_of(DOCUMENTS | PAIRS)
def test_the_losses_of_single_documents_sum_to_the_loss(name):
    """So equal weights of documents are a weight of the list."""
    _, values, gradients = one_weight_at_a_time(name)
    value, gradient = unweighted(name)
    assert_near(values.sum(axis=0), value)
    assert_near(gradients.sum(axis=0), gradient)
    of_lists = np.float32([3.0, 0.0, -2.0])
    for weights in (of_lists, np.repeat(of_lists[:, None], 5, axis=1)):
        found = unweighted(name, weights)
        assert_near(found[0], of_lists * value)
        assert_near(found[1], of_lists.reshape(-1, *[1] * (gradient.ndim - 1)) * gradient)


def test_pointwise_losses_weight_documents():
    for name in ("click_em", "mean_squared", "ordinal", "sigmoid_cross_entropy"):
        labels, _, gradients = one_weight_at_a_time(name)
        gradients = np.abs(gradients.reshape(5, 3, 5, -1)).sum(axis=-1)
        for place, gradient in enumerate(gradients):
            assert not np.delete(gradient, place, axis=1).any()
            np.testing.assert_array_equal(gradient[:, place] > 0.0, labels[:, place] >= 0.0)


def test_softmax_losses_weight_labels():
    for name in ("softmax", "calibrated_softmax"):
        labels, values, _ = one_weight_at_a_time(name)
        np.testing.assert_array_equal(values.T > 0.0, labels > 0.0)


@each_of(PAIRS)
def test_pairwise_losses_weight_the_pairs_of_the_preferred_document(name):
    labels, values, gradients = one_weight_at_a_time(name)
    for place, (value, gradient) in enumerate(zip(values, gradients, strict=True)):
        real, others = (labels >= 0.0) & (labels[:, place, None] >= 0.0), np.arange(5) != place
        behind = others & (real if name == "pairwise_mse" else real & (labels < labels[:, place, None]))
        assert not gradient[~behind & others].any()
        if name not in ("pairwise_hinge", "yeti_logistic"):  # of which some pairs may be 0
            np.testing.assert_array_equal(value > 0.0, behind.any(axis=1))


@each_of(LISTS)
def test_listwise_losses_weight_lists_by_label(name):
    labels, _ = batch(name)
    weights = np.random.RandomState(2).rand(*labels.shape).astype(np.float32)
    real = np.maximum(labels, 0.0)
    of_lists = (weights * real).sum(axis=1) / real.sum(axis=1)
    value, gradient = unweighted(name)
    found = unweighted(name, weights)
    assert_near(found[0], of_lists * value)
    assert_near(found[1], of_lists.reshape(-1, *[1] * (gradient.ndim - 1)) * gradient)


@each_of(COVERED)
def test_huge_weights_have_a_finite_value_and_gradient(name):
    labels, scores = batch(name)
    scores[0] *= 1e30
    for shape in (labels.shape[:1], labels.shape):
        weights = np.full(shape, 1e30, np.float32)
        weights[2] = -3e38
        value, gradient = value_and_gradient(get(name), labels, scores, weights)
        assert np.isfinite(value).all() and np.isfinite(gradient).all()


@pytest.mark.parametrize("is_slow", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_shift_invariant_says_whether_a_shift_of_the_scores_changes_the_loss(is_slow):
    cheap = [name for name in (*modes.BASELINES, *MULTI_SCORE, "softsort_ndcg", "approx_ndcg") if name not in SLOW]
    for name in [*SLOW, *modes.ONE_OF_EACH] if is_slow else cheap:
        labels, scores = batch(name)
        found = []
        for shift in (0.0, 2.0):
            tf.random.set_seed(0)
            found.append(get(name)(labels, scores + np.float32(shift)).numpy())
        assert get(name).shift_invariant == np.allclose(*found, rtol=1e-4, atol=1e-5), name


def test_losses_of_parts_are_shift_invariant_if_their_parts_are():
    for loss, expected in (
        (losses.SmoothINDCGLoss(shift=False), False),
        (losses.GumbelLoss(losses.MeanSquaredLoss()), False),
        (losses.WeightedSumLoss(["softmax", "rank_net"]), True),
        (losses.WeightedSumLoss(["softmax", "mean_squared"]), False),
        (losses.MultiObjectiveLoss("softmax", weights=[1.0, 1.0]), True),
    ):
        assert loss.shift_invariant is expected, loss


def test_means_with_weights_divide_by_the_weights_of_the_terms():
    labels, scores = batch("mean_squared")
    weights = np.random.RandomState(2).rand(*labels.shape).astype(np.float32)
    weights[labels < 0.0] = 0.0
    counts = (labels >= 0.0).sum(axis=1)
    found = losses.MeanSquaredLoss(reduction="mean_with_sample_weight")(labels, scores, weights)
    terms = (weights * (labels - scores) ** 2).sum(axis=1) / counts
    np.testing.assert_allclose(found, terms.sum() / (weights.sum(axis=1) / counts).sum(), rtol=1e-6)


def test_a_subclass_of_a_loss_that_weights_terms_overrides_weighted():
    with pytest.raises(TypeError, match="Mine must override `weighted` instead of `compute`"):

        class Mine(losses.MeanSquaredLoss):
            def compute(self, labels, scores, mask):
                return labels[:, 0]


@quick_or_slow([*modes.SAMPLE, "ordinal", "mixture_em"], quick=["approx_err", "list_mle", "ordinal"])
def test_autograph_converts_no_function_of_the_library_in_a_function_of_the_user(name, caplog, monkeypatch):
    """It would take seconds, and print that it could not."""
    monkeypatch.setattr(_compiled, "_cores", lambda: 2)  # Then programs of part of a batch are in loops.
    logger = logging.getLogger("tensorflow")
    logger.addHandler(caplog.handler)
    try:
        tf.function(step(get(name))).get_concrete_function(*map(tf.constant, batch(name)))
    finally:
        logger.removeHandler(caplog.handler)
    assert "AutoGraph" not in caplog.text
