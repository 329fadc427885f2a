"""Losses made of losses: means over noisy scores and weighted sums; and the weights of pairs."""

import itertools
import json

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import a_batch, assert_same, each, references, value_and_gradient
from tfr_smooth import losses
from tfr_smooth.losses import gumbel

LABELS, SCORES = np.float32([[2, 0, 1, 0]]), np.float32([[0.5, 2.0, 1.0, -1.0]])


@pytest.fixture
def random_noise(monkeypatch, _repeatable_noise):
    monkeypatch.undo()  # of the noise of tests/conftest.py


# ---- Noise.


def test_orders_of_noisy_scores_have_the_plackett_luce_distribution(random_noise):
    tf.random.set_seed(0)
    scores = np.float32([[1.0, 0.0, -0.5]])
    noise = gumbel.gumbel_noise(tf.constant(scores), 200_000, None).numpy()[0]
    assert noise.shape == (200_000, 3) and np.isfinite(noise).all()
    orders = np.argsort(-(scores + noise), axis=1)
    first = references.softmax(scores[0])
    np.testing.assert_allclose(np.bincount(orders[:, 0]) / len(orders), first, atol=5e-3)
    both = (orders[:, 0] == 1) & (orders[:, 1] == 0)
    np.testing.assert_allclose(both.mean(), first[1] * first[0] / (1.0 - first[1]), atol=5e-3)
    np.testing.assert_allclose(noise.mean(), 0.5772, atol=5e-3)


def test_noise_differs_between_calls_and_repeats_with_the_global_seed(random_noise):
    kinds = lambda: losses.GumbelLoss(losses.ApproxNDCGLoss(), sample_size=2), lambda: losses.PLRankNDCGLoss(seed=3)
    for make, mode in itertools.product(kinds, (lambda loss: loss, tf.function)):
        values = []
        for _ in range(2):
            tf.random.set_seed(3)
            function = mode(make())
            values.append([float(function(LABELS, SCORES)) for _ in range(3)])
        assert values[0] == values[1] and len(set(values[0])) == 3
    values = []
    for seed in (1, 2):
        tf.random.set_seed(3)
        values.append(float(losses.GumbelLoss(losses.ApproxNDCGLoss(), seed=seed)(LABELS, SCORES)))
    assert values[0] != values[1]


def test_rank_distil_of_the_first_document_estimates_list_net(random_noise):
    tf.random.set_seed(0)
    found = losses.CoupledRankDistilLoss(sample_size=100_000, topk=1)(LABELS, SCORES).numpy()
    np.testing.assert_allclose(found, losses.ListNetLoss()(LABELS, SCORES), rtol=1e-2)


def test_gumbel_losses_are_gumbel_loss_of_their_loss():
    labels, scores = a_batch()
    arguments = {"sample_size": 3, "gumbel_temperature": 0.5}
    inner = losses.PairwiseLogisticLoss(lambda_weight=losses.YetiDCGLambdaWeight(), temperature=0.7)
    for short, long in (
        (losses.GumbelApproxNDCGLoss(alpha=3.0, topn=4, **arguments), losses.ApproxNDCGLoss(alpha=3.0, topn=4)),
        (losses.YetiLogisticLoss(temperature=0.7, **arguments), inner),
    ):
        expected = value_and_gradient(losses.GumbelLoss(long, **arguments), labels, scores)
        assert_same(value_and_gradient(short, labels, scores), expected)


# ---- Weighted sums.


def test_a_weighted_sum_is_the_sum_of_the_losses():
    labels, scores = a_batch()
    parts = [losses.SoftmaxLoss(temperature=0.5), losses.get("softsort_ndcg"), losses.MeanSquaredLoss()]
    weights = [1.0, 3.0, 0.1]
    for reduction in ("none", "sum", "sum_over_batch_size"):
        loss = losses.WeightedSumLoss(parts, weights=weights, reduction=reduction)
        again = [type(part).from_config({**part.get_config(), "reduction": reduction}) for part in parts]
        found = [value_and_gradient(part, labels, scores) for part in again]
        value, gradient = value_and_gradient(loss, labels, scores)
        np.testing.assert_allclose(value, sum(w * f[0] for w, f in zip(weights, found, strict=True)), rtol=1e-5)
        expected = sum(w * f[1] for w, f in zip(weights, found, strict=True))
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6)
    assert float(losses.WeightedSumLoss(["softmax"])(labels, scores)) == float(losses.SoftmaxLoss()(labels, scores))


def test_a_part_has_no_share_in_lists_that_it_excludes():
    labels, scores = np.float32([[1, 0], [0, 0], [-1, -1]]), np.float32([[1, 2], [3, 4], [5, 6]])
    names = ["softmax", "mean_squared"]
    softmax, squared = (each(name)(labels, scores).numpy() for name in names)
    assert softmax[1] == 0.0 < squared[1]
    found = losses.WeightedSumLoss(names, reduction="none")(labels, scores)
    np.testing.assert_allclose(found, softmax + squared, rtol=1e-6)
    mean = losses.WeightedSumLoss(names)(labels, scores)
    np.testing.assert_allclose(mean, (softmax + squared).sum() / 2.0, rtol=1e-6)


# ---- Weights of pairs.

WEIGHTS = [
    *(losses.LabelDiffLambdaWeight(), losses.PrecisionLambdaWeight(topn=2), losses.DCGLambdaWeight(normalized=True)),
    *(losses.DCGLambdaWeight(topn=3, smooth_fraction=0.3), losses.NDCGLambdaWeight(topn=2, smooth_fraction=1.0)),
    *(losses.DCGLambdaWeightV2(topn=2), losses.NDCGLambdaWeightV2(topn=3), losses.YetiDCGLambdaWeight(normalized=True)),
]


@pytest.mark.parametrize("weight", WEIGHTS, ids=lambda weight: type(weight).__name__)
def test_weights_of_pairs_equal_the_reference(weight):
    """Those of ties are means over their orders."""
    random = np.random.RandomState(4)
    labels, scores = random.randint(0, 4, 7).astype(np.float64), random.randn(7)
    expected = references.pair_weights(weight, labels, scores)
    assert expected.max() > 0.1
    mask = tf.constant([[True] * 7 + [False] * 2])
    padded = [tf.constant(np.pad(array, [0, 2])[None]) for array in (labels, scores)]
    found = weight.pair_weights(*padded, mask).numpy()[0]
    np.testing.assert_allclose(found[:7, :7], expected, rtol=1e-6, atol=1e-9)

    labels, scores = np.array([2.0, 0.0, 1.0, 3.0]), np.array([1.0, 1.0, 0.0, 1.0])
    orders = [np.array([*tied, 2]) for tied in itertools.permutations([0, 1, 3])]
    expected = np.mean([references.pair_weights(weight, labels, -np.argsort(order)) for order in orders], axis=0)
    found = weight.pair_weights(tf.constant(labels[None]), tf.constant(scores[None]), tf.fill([1, 4], True))
    np.testing.assert_allclose(found[0], expected, rtol=1e-6, atol=1e-9)


def test_document_weights_of_ties_share_the_mean_discount():
    weight = losses.DCGLambdaWeight()
    labels, scores = tf.constant([[2.0, 4.0, 1.0, 9.0]]), tf.constant([[1.0, 1.0, 5.0, 0.0]])
    found = weight.document_weights(labels, scores, tf.constant([[True, True, True, False]]))
    shared = (1.0 / 2.0 + 1.0 / 3.0) / 2.0
    np.testing.assert_allclose(found, [[2.0 * shared, 4.0 * shared, 1.0, 0.0]], rtol=1e-6)


@tf.keras.utils.register_keras_serializable(package="tests")
def squared(values):
    return tf.square(values)


def test_configs_contain_losses_and_weights():
    labels, scores = a_batch()
    for loss in (
        losses.WeightedSumLoss(["softmax", losses.get("approx_ndcg@3", alpha=2.0)], weights=[0.5, 2.0], name="both"),
        losses.GumbelLoss(losses.ListNetLoss(temperature=0.5), sample_size=3, seed=1),
        losses.GumbelLoss(losses.WeightedSumLoss(["softmax"])),
        *(losses.PairwiseLogisticLoss(lambda_weight=weight) for weight in WEIGHTS),
        losses.SoftmaxLoss(lambda_weight=losses.DCGLambdaWeight(gain_fn=squared, rank_discount_fn=squared)),
    ):
        config = json.loads(json.dumps(tf.keras.losses.serialize(loss)))
        for again in (losses.get(config), tf.keras.losses.deserialize(config)):
            assert type(again) is type(loss) and again.get_config() == loss.get_config()
            assert getattr(again, "lambda_weight", None) == getattr(loss, "lambda_weight", None)
            assert float(again(labels, scores)) == float(loss(labels, scores))


def test_bad_arguments_are_named():
    for make, message in (
        (lambda: losses.WeightedSumLoss("softmax"), "`losses` must be a sequence of losses or names, got 'softmax'"),
        (lambda: losses.WeightedSumLoss([3]), "`losses` must be an instance of .*RankingLoss, got 3"),
        (lambda: losses.WeightedSumLoss(["click_em"]), "`losses` must be losses of one score per document, got Click"),
        (lambda: losses.WeightedSumLoss(["softmax"], weights=[1.0, 2.0]), "one entry per loss, 1, got 2"),
        (lambda: losses.GumbelLoss("softmax"), "`loss` must be an instance of .*RankingLoss, got 'softmax'"),
        (lambda: losses.PrecisionLambdaWeight(topn=0), "`topn` must be an integer >= 1, got 0"),
        (lambda: losses.DCGLambdaWeight(smooth_fraction=1.5), r"`smooth_fraction` must be a number in \[0, 1\], got 1"),
        (lambda: losses.ListMLELambdaWeight(rank_discount_fn=None), "`rank_discount_fn` must be a function, got None"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
