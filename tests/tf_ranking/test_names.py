"""Losses and metrics of both libraries by name, and our losses in TF-Ranking's models."""

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import losses, metrics, registry

tfr = helpers.tf_ranking(module=True)
from tests.tf_ranking.pipelines import LABELS, SCORES, model_builder  # noqa: E402
from tfr_smooth import tf_ranking  # noqa: E402

THEIRS = tfr.keras.losses.RankingLossKey.all_keys()
# Each ranking with one metric, each metric with one ranking or more, and all baselines.
FEW = {f"{ranking}_{metric}" for ranking, metric in zip(registry.RANKINGS, [*registry.MEASURES] * 2, strict=False)}
FEW |= set(losses.NAMES) - set(registry.PAIRS)
# A metric of a ranking, and a baseline.
TWO = {"approx_ndcg", "list_net"}


def every(table, few=FEW):
    """All names; those that are not in `few` are marked slow."""
    return [pytest.param(name, marks=[] if name in few else [pytest.mark.slow]) for name in sorted(table)]


def test_the_names_of_the_libraries_do_not_collide():
    assert not set(losses.TABLE) & set(THEIRS)


@pytest.mark.parametrize("name", every(losses.TABLE))
def test_our_losses_have_their_names(name):
    ours = tf_ranking.get(name)
    assert ours.get_config() == losses.get(name).get_config()
    assert float(ours(LABELS, SCORES)) == float(losses.get(name)(LABELS, SCORES))
    assert tf_ranking.get(loss=name, reduction=tf.keras.losses.Reduction.NONE)(LABELS, SCORES).shape == [3]
    assert tf_ranking.get(name, name="mine").name == "mine"


@pytest.mark.parametrize("name", sorted(THEIRS))
def test_losses_of_tf_ranking_have_their_names(name):
    ours, theirs = tf_ranking.get(name, name="x"), tfr.keras.losses.get(name, name="x")
    assert type(ours) is type(theirs) and ours.get_config() == theirs.get_config()


def test_lambda_weights_are_passed_to_losses_of_tf_ranking():
    weight = tfr.keras.losses.NDCGLambdaWeight(topn=2)
    for name in ("pairwise_logistic_loss", "softmax_loss"):
        ours, theirs = (get(name, lambda_weight=weight) for get in (tf_ranking.get, tfr.keras.losses.get))
        assert float(ours(LABELS, SCORES)) == float(theirs(LABELS, SCORES))


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("ndcg", {}, "`loss` must be one of 'smoothi_ndcg'"),
        ("smoothi_ndcg", {"alpha": -1.0}, "`alpha` must be a finite number > 0, got -1.0."),
        ("list_net", {"topn": 5}, "`topn` is not an argument of 'list_net', which takes "),
        ("approx_ndcg_loss", {"alpha": 5}, "`alpha` is not an argument of 'approx_ndcg_loss', which takes ragged, te"),
        ("softmax_loss", {"temprature": 5}, "`temprature` is not an argument of 'softmax_loss', which takes ragged, "),
        ("calibrated_softmax_loss", {"ragged": True}, "`ragged` is not an argument of 'calibrated_softmax_loss', whi"),
        ("smoothi_ndcg", {"lambda_weight": 1}, "`lambda_weight` must be None for 'smoothi_ndcg', got 1."),
        ("approx_ndcg_loss", {"lambda_weight": 1}, "`lambda_weight` must be None for 'approx_ndcg_loss', got 1."),
    ],
)
def test_arguments_that_a_loss_does_not_have_are_refused(name, arguments, problem):
    with pytest.raises(ValueError) as raised:
        tf_ranking.get(name, **arguments)
    assert problem in str(raised.value)


@pytest.mark.parametrize("name", every(losses.TABLE, TWO))
def test_document_weights_are_averaged_by_label(name):
    """TF-Ranking passes weights [batch, list]; the weight of a list is sum(w y) / sum(y)."""
    weights = tf.constant([[1.0, 7.0, 4.0, 99.0], [5.0, 3.0, 99.0, 99.0], [1.0, 1.0, 1.0, 1.0]])
    by_list = tf.constant([(1.0 * 2 + 4.0 * 1) / 3.0, 3.0, 1.0])
    loss = tf_ranking.get(name)
    np.testing.assert_allclose(
        loss(LABELS, SCORES, sample_weight=weights), loss(LABELS, SCORES, sample_weight=by_list), rtol=1e-6
    )


def ragged(tensor):
    return tf.ragged.boolean_mask(tensor, LABELS >= 0.0)


class RaggedModel(tf.keras.Model):
    """Scores ragged documents, as the models for text do."""

    def __init__(self):
        super().__init__()
        self.tower = tf.keras.layers.Dense(1, kernel_initializer="ones")

    def call(self, inputs):
        return tf.ragged.map_flat_values(lambda values: tf.squeeze(self.tower(values[:, tf.newaxis]), 1), inputs)


@pytest.mark.parametrize("name", every(losses.TABLE, TWO))
def test_ragged_models_train_with_our_losses(name):
    model = RaggedModel()
    model.compile(optimizer="sgd", loss=tf_ranking.get(name, ragged=True), run_eagerly=True)
    trained = model.train_on_batch(ragged(SCORES), ragged(LABELS))
    expected = float(losses.get(name)(LABELS, SCORES))
    assert trained == pytest.approx(expected, rel=1e-6)


FEATURES = {name: tf.io.FixedLenFeature([1], tf.float32, 0.0) for name in ("a", "b")}
SCORERS = {
    "dnn": lambda: tfr.keras.model.DNNScorer(hidden_layer_dims=[4], output_units=1, dropout=0.0),
    "gam": lambda: tfr.keras.model.GAMScorer(example_hidden_layer_dims=[4], dropout=0.0),
}


@pytest.mark.parametrize("scorer", ["dnn", pytest.param("gam", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", every(losses.TABLE, TWO))
def test_models_of_a_model_builder_train_with_our_losses(name, scorer):
    """A training step with document weights changes the model, and padding does not affect it."""
    tf.keras.utils.set_random_seed(1)
    model = model_builder(None, SCORERS[scorer](), FEATURES).build()
    start = model.get_weights()
    model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss=tf_ranking.get(name), run_eagerly=True)
    trained = []
    for padding in (0.0, 1e6):
        inputs = {n: tf.where(LABELS < 0.0, padding, x)[..., tf.newaxis] for n, x in (("a", SCORES), ("b", -SCORES))}
        inputs["mask"] = LABELS >= 0.0
        model.set_weights(start)
        value = model.train_on_batch(inputs, LABELS, sample_weight=tf.ones_like(LABELS))
        assert np.isfinite(value)
        trained.append(model.get_weights())
    assert any((before != after).any() for before, after in zip(start, trained[0], strict=True))
    for one, other in zip(*trained, strict=True):
        np.testing.assert_array_equal(one, other)


# Metrics.


def value(metric):
    metric.update_state(LABELS, SCORES)
    return float(metric.result())


@pytest.mark.parametrize("name", every(metrics.TABLE, FEW | set(registry.EXACT)))
def test_our_metrics_have_their_names(name):
    assert value(tf_ranking.get_metric(name)) == value(metrics.get(name))


@pytest.mark.parametrize("name", ["mrr", "arp", "ndcg", "dcg", "precision", "map", "ordered_pair_accuracy", "hits"])
def test_metrics_of_tf_ranking_have_the_prefix_tfr(name):
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
    assert tf_ranking.get_metric("map", name="x").name == "x"


@pytest.mark.parametrize(
    ("metric", "arguments", "problem"),
    [
        ("ndgc", {}, "`metric` must be one of 'ndcg', "),
        (5, {}, "`metric` must be one of 'ndcg', "),
        ("ndcg@x", {}, "end in '@K' for an integer K, without an argument `topn`, got 'ndcg@x'."),
        ("ndcg@5", {"topn": 5}, "end in '@K' for an integer K, without an argument `topn`, got 'ndcg@5'."),
        ("arp@5", {}, "`topn` is not an argument of 'arp@5', which takes "),
    ],
)
def test_bad_metrics_are_refused(metric, arguments, problem):
    with pytest.raises(ValueError) as raised:
        tf_ranking.get_metric(metric, **arguments)
    assert problem in str(raised.value)
