"""TF-Ranking's Keras names for this library's classes."""

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import keras_ranking as tfr
from tfr_smooth import losses, metrics, models

LABELS, SCORES = helpers.a_batch()


def value(metric):
    metric.update_state(LABELS, SCORES)
    return float(metric.result())


def test_namespaces_contain_the_classes_of_the_library():
    for name in losses.__all__:
        assert name == "get" or getattr(tfr.keras.losses, name) is getattr(losses, name)
    for name in metrics.__all__:
        assert name == "get" or getattr(tfr.keras.metrics, name) is getattr(metrics, name)
    for name in ("ConcatFeatures", "DocumentInteractionAttention", "FlattenList", "GAMLayer", "RestoreList"):
        assert getattr(tfr.keras.layers, name) is getattr(models, name)
    assert tfr.keras.layers.create_tower is models.create_tower
    with pytest.raises(AttributeError, match="has no 'Bilinear'"):
        _ = tfr.keras.layers.Bilinear


@pytest.mark.keras_2
def test_losses_have_the_names_of_tf_ranking():
    for key in losses.RankingLossKey.all_keys():
        ours, expected = tfr.keras.losses.get(loss=key, name="mine"), losses.get(key)
        assert type(ours) is type(expected) and ours.name == "mine"
        assert ours.get_config() == {**expected.get_config(), "name": "mine"}


@pytest.mark.keras_2
def test_losses_take_the_reductions_of_tf_ranking_and_keras_2_by_position():
    for name in ("AUTO", "SUM", "NONE", "SUM_OVER_BATCH_SIZE"):
        reduction = getattr(tf.losses.Reduction, name)
        ours = tfr.keras.losses.get(tfr.keras.losses.RankingLossKey.SOFTMAX_LOSS, reduction)
        expected = losses.SoftmaxLoss(reduction=name.lower())
        np.testing.assert_array_equal(ours(LABELS, SCORES), expected(LABELS, SCORES))


def test_arguments_reach_the_loss():
    weight = tfr.keras.losses.NDCGLambdaWeight(topn=2, gain_fn=tfr.keras.utils.identity)
    loss = tfr.keras.losses.get("pairwise_logistic_loss", lambda_weight=weight, temperature=0.5)
    assert loss.lambda_weight is weight and loss.temperature == 0.5 and loss.name == "pairwise_logistic_loss"
    again = losses.get(tf.keras.losses.serialize(loss))
    assert float(again(LABELS, SCORES)) == float(loss(LABELS, SCORES))
    for key in ("approx_ndcg_loss", "approx_mrr_loss", "gumbel_approx_ndcg_loss"):
        assert tfr.keras.losses.get(key, temperature=0.25).get_config()["alpha"] == 4.0


@pytest.mark.keras_2
def test_metrics_have_the_names_and_the_cutoffs_of_tf_ranking():
    for key in (value for name, value in vars(tfr.keras.metrics.RankingMetricKey).items() if name.isupper()):
        ours = tfr.keras.metrics.get(key=key)
        assert type(ours) is type(metrics.get(key)) and ours.get_config().get("topn") is None
    for arguments in ({"topn": 3}, {"name": "mine"}, {}):
        ours, expected = tfr.keras.metrics.get(key="ndcg", **arguments), metrics.get("ndcg", **arguments)
        assert ours.name == expected.name and value(ours) == value(expected)
    utils = tfr.keras.utils
    for function, gain in ((utils.pow_minus_1, "exponential"), (utils.identity, "linear"), (None, "exponential")):
        ours = tfr.keras.metrics.get("ndcg", topn=4, gain_fn=function, rank_discount_fn=utils.log2_inverse)
        assert value(ours) == value(metrics.NDCGMetric(topn=4, gain=gain))


def test_dcg_takes_any_gain_and_discount():
    utils = tfr.keras.utils
    metric = tfr.keras.metrics.get("dcg", gain_fn=utils.identity, rank_discount_fn=utils.inverse)
    again = metrics.get(tf.keras.metrics.serialize(metric))
    ranks = 1.0 + np.argsort(np.argsort(-SCORES, axis=1), axis=1)
    assert value(again) == pytest.approx(np.mean(np.sum(LABELS / ranks, axis=1)), rel=1e-6)


def test_default_metrics_have_the_names_of_tf_ranking():
    found = tfr.keras.metrics.default_keras_metrics(ragged=True)
    cut = [f"ndcg_{topn}" for topn in (1, 3, 5, 10)]
    others = ["arp", "ordered_pair_accuracy", "mrr", "precision", "map", "dcg", "ndcg"]
    assert [metric.name for metric in found] == [f"metric/{name}" for name in cut + others]
    assert all(metric.get_config()["ragged"] for metric in found)
    assert [metric.get_config().get("topn") for metric in found] == [1, 3, 5, 10] + [None] * 7


def test_functions_of_utils():
    values, utils = tf.constant([0.0, 1.0, 3.0]), tfr.keras.utils
    expected = {"identity": [0, 1, 3], "inverse": [0, 1, 1 / 3], "pow_minus_1": [0, 1, 7], "log2_inverse": [0, 1, 0.5]}
    expected |= {"is_greater_equal_1": [False, True, True], "symmetric_log1p": np.log([1, 2, 4])}
    for name, wanted in expected.items():
        function = getattr(utils, name)
        np.testing.assert_allclose(tf.cast(function(values), tf.float32), wanted, rtol=1e-6)
        assert tf.keras.utils.get_registered_object(f"tfr_smooth>{name}") is function
    np.testing.assert_allclose(utils.symmetric_log1p(-values), -np.log([1, 2, 4]), rtol=1e-6)


def test_features_are_sorted_by_score_with_padding_last():
    scores = tf.constant([[1.0, 3.0, 3.0, 9.0]])
    features = [tf.constant([["a", "b", "c", "d"]]), tf.reshape(tf.range(8), [1, 4, 2])]
    titles, others = tfr.utils.sort_by_scores(scores, features, mask=tf.constant([[True, True, True, False]]))
    assert titles.numpy().tolist() == [[b"b", b"c", b"a", b"d"]]
    assert others.numpy().tolist() == [[[2, 3], [4, 5], [0, 1], [6, 7]]]
    assert tfr.utils.sort_by_scores(scores, features, topn=1)[0].numpy().tolist() == [[b"d"]]


def test_what_works_only_in_tf_ranking_fails_with_one_line():
    get = tfr.keras.losses.get
    for call, error, message in [
        (lambda: tfr.keras.losses.SoftmaxLoss("sum"), TypeError, "SoftmaxLoss.__init__() takes 1 positional argument"),
        (lambda: tfr.keras.losses.ApproxNDCGLoss(temperature=0.1), TypeError, "unexpected keyword argument 'temperatu"),
        (lambda: get("approx_ndcg_loss", temperature=0.0), ValueError, "`temperature` must be a fini"),
        (lambda: tfr.keras.metrics.get("ndcg", gain_fn=tfr.keras.utils.inverse), ValueError, "(or pass `gain`), got"),
        (
            lambda: tfr.keras.pipeline,
            AttributeError,
            "has no 'pipeline': `tfr_smooth.tf_ranking.tfr` is all of TF-Rank",
        ),
        (lambda: tfr.data, AttributeError, "has no 'data': "),
    ]:
        with pytest.raises(error) as raised:
            call()
        assert message in str(raised.value) and "\n" not in str(raised.value)
