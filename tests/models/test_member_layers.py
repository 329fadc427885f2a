"""FeedForwardScorer with several members: their training, mean scores, initial weights, files and exports."""

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import losses, models
from tfr_smooth.models.feed_forward import MemberDense, MemberDropout

RANDOM = np.random.RandomState(0)
FEATURES = RANDOM.randn(2, 4, 3).astype(np.float32)
INPUTS = {"features": tf.constant(FEATURES), "mask": tf.constant([[True] * 4, [True, True, False, False]])}
LABELS = tf.constant([[2.0, 0.0, 1.0, 0.0], [0.0, 1.0, -1.0, -1.0]])


def a_scorer(members=3, **kwargs):
    scorer = models.FeedForwardScorer(**{"hidden": [5, 4], "seed": 0, "members": members, **kwargs})
    scorer.build([None, None, 3])
    scorer.adapt([(INPUTS, LABELS)])
    random = np.random.RandomState(1)
    scorer.set_weights([weight + 0.1 * np.abs(random.randn(*weight.shape)) for weight in scorer.get_weights()])
    return scorer


def alone(scorer):
    """Returns a scorer of one member for each member, with its weights."""
    config = {name: value for name, value in scorer.get_config().items() if name != "members"}
    singles = []
    for member in range(scorer.members):
        single = models.FeedForwardScorer(**config)
        single.build([None, None, 3])
        for own, layer in zip(single.tower, scorer.tower, strict=True):
            own.set_weights([of_member(weight, member, scorer.members, layer) for weight in layer.get_weights()])
        if scorer.additive is not None:
            single.additive.rises.assign(scorer.additive.rises.numpy()[:, [member]])
        if scorer.normalizer is not None:
            single.normalizer.set_weights(scorer.normalizer.get_weights())
        singles.append(single)
    return singles


def of_member(weight, member, members, layer):
    return weight[member] if isinstance(layer, MemberDense) else weight.reshape(members, -1)[member]


# The mean of several padding scores may differ from the padding score by rounding.
@pytest.mark.parametrize("members", [1, 3, 11])
def test_scores_are_means_and_padded_documents_get_the_padding_score(members):
    scorer = a_scorer(members, normalization="quantiles")
    scores, real = scorer(INPUTS).numpy(), INPUTS["mask"].numpy()
    np.testing.assert_array_equal(scores[~real], np.float32(models.PADDING_SCORE))
    assert a_scorer(members)(INPUTS, training=True).shape == ((members, 2, 4) if members > 1 else (2, 4))
    if members == 3:
        of_members = [single(INPUTS).numpy() for single in alone(scorer)]
        np.testing.assert_allclose(scores[real], np.mean(of_members, axis=0)[real], rtol=1e-5, atol=1e-6)
        assert np.ptp(of_members, axis=0)[real].min() > 1e-3


@pytest.mark.parametrize(
    ("arguments", "weights"),
    [
        pytest.param({"normalization": "quantiles"}, [0.5, 2.0], marks=pytest.mark.slow),
        ({"hidden": "linear", "batch_norm": False}, None),
    ],
    ids=str,
)
def test_members_train_as_if_alone(arguments, weights):
    scorer = a_scorer(2, **{"normalization": "standardize", **arguments})
    singles, start = alone(scorer), alone(scorer)
    data = (INPUTS, LABELS) if weights is None else (INPUTS, LABELS, tf.constant(weights))
    dataset = tf.data.Dataset.from_tensors(data).repeat(3)
    found = []
    for model in (scorer, *singles):
        model.compile(tf.keras.optimizers.SGD(0.1), losses.ListNetLoss())
        found.append(model.fit(dataset, epochs=2, verbose=0, shuffle=False).history["loss"])
    np.testing.assert_allclose(found[0], np.mean(found[1:], axis=0), rtol=1e-5)
    for together, single, before in zip(alone(scorer), singles, start, strict=True):
        helpers.assert_same(together.get_weights(), single.get_weights(), rtol=1e-6, atol=1e-6)
        assert max(np.abs(a - b).max() for a, b in zip(single.weights, before.weights, strict=True)) > 1e-2


def test_metrics_are_those_of_the_mean_score():
    scorer = a_scorer()
    scorer.compile(tf.keras.optimizers.SGD(0.0), "softsort_ndcg", metrics=["ndcg", "softsort_ndcg"])
    scores = tf.reduce_mean(scorer(INPUTS, training=True), axis=0)
    logs = scorer.fit(tf.data.Dataset.from_tensors((INPUTS, LABELS)), verbose=0, shuffle=False).history
    expected = -losses.get("softsort_ndcg")(LABELS, scores) + 1.0
    assert logs["softsort_ndcg"][0] == pytest.approx(float(expected), rel=1e-5)
    evaluated = scorer.evaluate(tf.data.Dataset.from_tensors((INPUTS, LABELS)), verbose=0, return_dict=True)
    assert evaluated["loss"] == pytest.approx(float(losses.get("softsort_ndcg")(LABELS, scorer(INPUTS))), rel=1e-5)


@pytest.mark.parametrize("shared", [False, True])
def test_kernels_have_the_variance_of_one_member_and_differ_between_members(shared):
    layer = MemberDense(300, members=4, shared_inputs=shared, scale=2.0, seed=0)
    layer.build((None, 100 if shared else 4 * 100))
    kernels = layer.kernel.numpy()
    assert kernels.shape == (4, 100, 300) and not layer.bias.numpy().any()
    np.testing.assert_allclose(kernels.std(axis=(1, 2)), np.sqrt(2.0 / 100), rtol=0.02)
    assert np.abs(np.corrcoef(kernels.reshape(4, -1)) - np.eye(4)).max() < 0.03


@pytest.mark.parametrize(("units", "shared"), [(1, False), (3, True), (3, False)])
def test_outputs_and_their_mean_are_those_of_each_member(shared, units):
    inputs = RANDOM.randn(6, 5 if shared else 20).astype(np.float32)
    layer = MemberDense(units, members=4, shared_inputs=shared)
    layer.build(inputs.shape)
    layer.bias.assign(RANDOM.randn(4, units))
    own = [inputs] * 4 if shared else np.split(inputs, 4, axis=1)
    expected = [x @ k + b for x, k, b in zip(own, layer.kernel.numpy(), layer.bias.numpy(), strict=True)]
    np.testing.assert_allclose(layer(inputs), np.concatenate(expected, axis=1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(layer.mean(inputs), np.mean(expected, axis=0), rtol=1e-5, atol=1e-6)


def test_dropout_drops_the_same_units_of_each_member_and_keeps_the_mean():
    layer, inputs = MemberDropout(0.25, members=3, seed=0), tf.ones([2000, 3 * 5])
    np.testing.assert_array_equal(layer(inputs, training=False), inputs)
    dropped = layer(inputs, training=True).numpy().reshape(2000, 3, 5)
    np.testing.assert_array_equal(dropped, np.repeat(dropped[:, :1], 3, axis=1))
    assert set(np.unique(dropped)) == {0.0, np.float32(4.0 / 3.0)}
    np.testing.assert_allclose(dropped.mean(axis=0), 1.0, atol=0.05)


@pytest.mark.parametrize("members", [1, 2])
def test_the_seed_determines_the_initial_weights(members):
    def kernels(seed):
        scorer = models.FeedForwardScorer(hidden=[5], members=members, seed=seed)
        scorer.build([None, None, 3])
        return [scorer.tower[place].kernel.numpy() for place in (1, 3)]

    for first, again, other in zip(kernels(1), kernels(1), kernels(2), strict=True):
        np.testing.assert_array_equal(first, again)
        assert np.abs(first - other).min() > 1e-5


@pytest.mark.keras_2
def test_a_keras_file_restores_the_members(tmp_path):
    scorer = a_scorer(dropout=0.5)
    scorer.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == scorer.get_config() and loaded.members == 3
    helpers.assert_same(loaded.get_weights(), scorer.get_weights())
    np.testing.assert_array_equal(loaded(INPUTS), scorer(INPUTS))


@pytest.mark.parametrize("members", [1, 2])
def test_functions_of_features_compute_under_mixed_precision(members):
    with helpers.precision("mixed_float16"):
        scorer = models.FeedForwardScorer(hidden=[4], normalization="quantiles", members=members)
        scorer.build([None, None, 3])
        scorer.adapt([(INPUTS, LABELS)])
        scorer.additive.rises.assign(np.ones(scorer.additive.rises.shape))
        for training in (False, True):
            scores = scorer(INPUTS, training=training)
            assert scores.dtype == tf.float32 and np.isfinite(scores).all()
