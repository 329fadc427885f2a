"""Losses and metrics of both libraries by name."""

import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import losses, metrics

tfr = helpers.tf_ranking(module=True)
from tests.tf_ranking.pipelines import LABELS, SCORES  # noqa: E402
from tfr_smooth import tf_ranking  # noqa: E402

THEIRS = tfr.keras.losses.RankingLossKey.all_keys()


def test_our_losses_have_their_names():
    assert not set(losses.NAMES) & set(THEIRS)
    for name in losses.NAMES:
        assert tf_ranking.get(name).get_config() == losses.get(name).get_config()


def test_our_losses_take_the_arguments_of_tf_ranking():
    loss = tf_ranking.get(loss="smoothi_ndcg@2", reduction=tf.keras.losses.Reduction.NONE, name="mine", alpha=3.0)
    assert loss(LABELS, SCORES).shape == [3]
    config = loss.get_config()
    assert (config["topn"], config["alpha"], config["name"]) == (2, 3.0, "mine")


def test_losses_of_tf_ranking_have_their_names():
    for name in THEIRS:
        ours, theirs = tf_ranking.get(name, name="x"), tfr.keras.losses.get(name, name="x")
        assert type(ours) is type(theirs) and ours.get_config() == theirs.get_config()


def test_arguments_that_a_loss_does_not_have_are_refused():
    for name, arguments, error, problem in (
        ("ndcg", {}, ValueError, " must be one of "),
        ("smoothi_ndcg", {"alpha": -1.0}, ValueError, "`alpha` must be a finite number > 0, got -1.0."),
        ("list_net", {"topn": 5}, TypeError, "'topn'"),
        ("softmax_loss", {"alpha": 5}, TypeError, "'alpha'"),
    ):
        with pytest.raises(error) as raised:
            tf_ranking.get(name, **arguments)
        assert problem in str(raised.value)


@pytest.mark.parametrize("name", ["approx_ndcg", "lambda_loss", "list_net"])  # of a measure, of pairs, and another
def test_ragged_models_train_with_our_losses(name):
    """They score ragged documents, as the models for text do."""
    labels, scores = (tf.ragged.boolean_mask(each, LABELS >= 0.0) for each in (LABELS, SCORES))
    tower = tf.keras.layers.TimeDistributed(tf.keras.layers.Dense(1, kernel_initializer="ones"))
    model = tf.keras.Sequential([tower, tf.keras.layers.Lambda(lambda outputs: tf.squeeze(outputs, 2))])
    model.compile(optimizer="sgd", loss=tf_ranking.get(name, ragged=True), run_eagerly=True)
    trained = model.train_on_batch(tf.expand_dims(scores, 2), labels)
    assert trained == pytest.approx(float(losses.get(name)(LABELS, SCORES)), rel=1e-6)


# Metrics.


def value(metric):
    metric.update_state(LABELS, SCORES)
    return float(metric.result())


def test_our_metrics_have_their_names():
    for name in metrics.NAMES:
        assert tf_ranking.get_metric(name).get_config() == metrics.get(name).get_config()


def test_metrics_of_tf_ranking_have_the_prefix_tfr():
    for name in ("mrr", "arp", "ndcg"):
        assert value(tf_ranking.get_metric("tfr/" + name)) == value(tfr.keras.metrics.get(name))


def test_our_metrics_have_the_keys_of_tf_ranking():
    theirs, ours = (vars(package.RankingMetricKey) for package in (tfr.keras.metrics, metrics))
    keys = {name: key for name, key in theirs.items() if name.isupper()}
    assert keys == {name: ours[name] for name in keys}
    for key in set(keys.values()) - {"precision_ia", "alpha_dcg"}:  # TF-Ranking's `get` does not know them.
        assert type(metrics.get(key=key)).__name__ == type(tfr.keras.metrics.get(key=key)).__name__


def test_metric_names_may_contain_a_cutoff():
    assert tf_ranking.get_metric("ndcg@3").get_config()["topn"] == 3
    assert tf_ranking.get_metric("tfr/ndcg@3").get_config()["topn"] == 3
    names = [tf_ranking.get_metric(metric).name for metric in ("ndcg@3", "precision", "tfr/ndcg@3", "tfr/arp")]
    assert names == ["ndcg_3", "precision_10", "ndcg_3", "arp"]
    assert tf_ranking.get_metric("map", name="x").name == tf_ranking.get_metric("tfr/map", name="x").name == "x"


def test_bad_metrics_are_refused():
    for metric in ("ndgc", "tfr/ndgc", "tfr/ndcg@x"):
        with pytest.raises(ValueError, match=metric.rpartition("/")[2]):
            tf_ranking.get_metric(metric)
    with pytest.raises(ValueError, match="NAME@K without `topn`, got 'tfr/ndcg@5'"):
        tf_ranking.get_metric("tfr/ndcg@5", topn=5)
