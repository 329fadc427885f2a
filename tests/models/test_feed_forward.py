"""FeedForwardScorer, called directly and in Keras's training loop."""

import io
import json
import warnings
import zipfile

import h5py
import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import _keras, losses, metrics, models

NORMALIZATIONS = [None, "min_max", "standardize", "quantiles", "log1p"]
every_normalization = pytest.mark.parametrize("normalization", NORMALIZATIONS)


def a_batch(seed=0, batch=4, length=6, width=5):
    random = np.random.RandomState(seed)
    features = (random.randn(batch, length, width) * 2 + 1).astype(np.float32)
    mask = np.arange(length) < np.array([1 + (i * 2 + 5) % length for i in range(batch)])[:, None]
    return features, mask


def a_scorer(width=5, seed=0, **kwargs):
    """Returns a scorer with random weights and moving statistics instead of the initial zeros and ones."""
    scorer = models.FeedForwardScorer(**{"hidden": [8, 3], **kwargs})
    scorer.build({"features": (None, None, width)})
    random = np.random.RandomState(seed)
    scorer.set_weights([np.abs(random.randn(*w.shape)) * 0.5 + 0.1 for w in scorer.get_weights()])
    for layer in scorer.tower:
        if isinstance(layer, tf.keras.layers.Dense):
            layer.set_weights([random.randn(*w.shape) for w in layer.get_weights()])
    return scorer


def moving_statistics(scorer):
    layers = [layer for layer in scorer.tower if isinstance(layer, tf.keras.layers.BatchNormalization)]
    return [w.numpy() for layer in layers for w in (layer.moving_mean, layer.moving_variance)]


def forward_pass(scorer, features):
    """Computes the network in inference mode with NumPy in float64."""
    hidden = features.astype(np.float64)
    for layer in scorer.tower:
        if isinstance(layer, tf.keras.layers.Dense):
            kernel, bias = layer.get_weights()
            hidden = hidden @ kernel + bias
            hidden = hidden if layer is scorer.tower[-1] else np.maximum(hidden, 0.0)
        else:
            gamma, beta, mean, variance = layer.get_weights()
            hidden = (hidden - mean) / np.sqrt(variance + layer.epsilon) * gamma + beta
    return hidden[..., 0]


@pytest.mark.parametrize(("hidden", "batch_norm"), [("linear", False), ([8, 3], False), ([8, 3], True), ("B64", True)])
@pytest.mark.keras_2
def test_scores_equal_the_documented_network(hidden, batch_norm):
    scorer = a_scorer(hidden=hidden, batch_norm=batch_norm)
    features, _ = a_batch()
    expected = forward_pass(scorer, features)
    assert expected.std() > 0.05
    scores = scorer(features).numpy()
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def test_named_architectures_have_the_documented_widths():
    assert list(models.ARCHITECTURES) == ["linear", "B64", "B128", "B256", "B512", "B1024"]
    for name, first in zip(models.ARCHITECTURES, (0, 64, 128, 256, 512, 1024), strict=True):
        widths = [width for width in (1024, 512, 256, 128, 64, 32, 16) if width <= first]
        scorer = models.FeedForwardScorer(hidden=name)
        dense = [layer for layer in scorer.tower if isinstance(layer, tf.keras.layers.Dense)]
        assert [layer.units for layer in dense] == [*widths, 1]
        # Batch normalization of the input and after each hidden layer.
        assert len(scorer.tower) - len(dense) == len(widths) + 1
        assert scorer.get_config()["hidden"] == name


def test_dropout_applies_only_in_training():
    features, mask = a_batch()
    inputs = {"features": features, "mask": mask}
    quiet, scorer = a_scorer(), a_scorer(dropout=0.5)
    scorer.set_weights(quiet.get_weights())
    np.testing.assert_array_equal(scorer(inputs), quiet(inputs))
    first, second = (scorer(inputs, training=True).numpy()[mask] for _ in range(2))
    assert np.abs(first - second).max() > 1e-3
    layers = [type(layer).__name__ for layer in a_scorer(hidden=[8], dropout=0.5).tower]
    assert layers == ["BatchNormalization", "Dense", "BatchNormalization", "MemberDropout", "Dense"]
    assert models.FeedForwardScorer.from_config(scorer.get_config()).get_config() == scorer.get_config()


@pytest.mark.parametrize("training", [False, True])
@every_normalization
def test_padding_changes_neither_scores_nor_moving_statistics(normalization, training):
    features, mask = a_batch()
    features[~mask] = np.resize([np.nan, 1e30], features[~mask].shape)
    padded, alone = a_scorer(normalization=normalization), a_scorer(normalization=normalization)
    scores = padded({"features": features, "mask": mask}, training=training).numpy()
    assert (scores[~mask] == np.float32(-1e30)).all() and (~mask).sum() > 5
    # The same documents without padding: normalized per list, then scored as one long list.
    rows = [f[m] for f, m in zip(features, mask, strict=True)]
    if normalization is not None:
        rows = [alone.normalizer(row[np.newaxis]).numpy()[0] for row in rows]
        alone.normalizer, alone.num_features = None, rows[0].shape[1]
    expected = alone(np.concatenate(rows)[np.newaxis], training=training).numpy()[0]
    np.testing.assert_allclose(scores[mask], expected, rtol=1e-4, atol=1e-5)
    helpers.assert_same(moving_statistics(padded), moving_statistics(alone), rtol=1e-5, atol=1e-6)


def test_training_updates_moving_statistics_from_real_documents_only():
    scorer = a_scorer(hidden="linear", batch_norm_momentum=0.75)
    features, mask = a_batch()
    features[~mask] = np.nan
    mean, variance = moving_statistics(scorer)
    scorer({"features": features, "mask": mask})
    np.testing.assert_array_equal(moving_statistics(scorer), [mean, variance])
    scorer({"features": features, "mask": mask}, training=True)
    documents = features[mask]
    expected = [0.75 * mean + 0.25 * documents.mean(axis=0), 0.75 * variance + 0.25 * documents.var(axis=0)]
    np.testing.assert_allclose(moving_statistics(scorer), expected, rtol=1e-5)


@every_normalization
def test_padding_has_no_gradient_and_changes_no_other_gradient(normalization):
    features, mask = a_batch()
    upstream = np.random.RandomState(3).randn(*mask.shape).astype(np.float32)

    def gradients(features, mask, upstream):
        scorer, features = a_scorer(normalization=normalization), tf.constant(features)
        with tf.GradientTape() as tape:
            tape.watch(features)
            value = tf.reduce_sum(upstream * scorer({"features": features, "mask": mask}, training=True))
        to_features, *to_weights = tape.gradient(value, [features, *scorer.trainable_weights])
        return to_features.numpy(), [gradient.numpy() for gradient in to_weights]

    expected, expected_of_weights = gradients(features, mask, upstream)
    features[~mask] = np.resize([np.nan, 1e30], features[~mask].shape)
    found, of_weights = gradients(features, mask, np.where(mask, upstream, np.float32(1e6)))
    assert np.abs(found[mask]).max() > 1e-3
    np.testing.assert_array_equal(found[~mask], 0.0)
    np.testing.assert_array_equal(found, expected)
    helpers.assert_same(of_weights, expected_of_weights)


@pytest.mark.parametrize("members", [1, 3])
def test_scores_add_a_piecewise_linear_function_of_each_number(members):
    """Beside the vectors and codes of ids."""
    options = {"hidden": "linear", "batch_norm": False, "vectors": [[0, 1]], "embeddings": [[2, 1, 3]]}
    scorer = models.FeedForwardScorer(normalization="quantiles", members=members, **options)
    scorer.build([None, None, 4])
    train = np.float32([[[9.0, x, 1.0, 5.0 * x] for x in (0.0, 1.0, 2.0, 8.0)]])
    scorer.adapt([({"features": train}, None)])
    new = np.float32([[[7.0, x, 2.0, 5.0 * y] for x, y in ((-1.0, 1.0), (1.5, 0.0), (8.0, 5.0), (3.0, 9.0))]])
    assert np.ptp(scorer(new)) > 0.0
    scorer.tower[-1].set_weights([np.zeros_like(weight) for weight in scorer.tower[-1].get_weights()])
    assert not scorer(new).numpy().any()  # the functions start at 0
    rises = np.float32([[[0.5, 3.0], [-2.0, 1.0], [4.0, 0.0]]] * members) * np.arange(members)[:, None, None]
    scorer.additive.rises.assign(np.pad(rises.reshape(members, 6), [(0, 0), (0, 26)]).T)
    heights = np.pad(np.cumsum(rises.mean(axis=0), axis=0), [(1, 0), (0, 0)])
    functions = [np.interp(new[0, :, place], train[0, :, place], heights[:, i]) for i, place in enumerate((1, 3))]
    np.testing.assert_allclose(scorer(new)[0], sum(functions), rtol=1e-5, atol=1e-6)


def test_arrays_tensors_and_dicts_give_the_same_scores():
    scorer = a_scorer()
    features, mask = a_batch()
    expected = scorer({"features": features, "mask": np.ones_like(mask)}).numpy()
    ids = {"query_id": tf.constant(list("abcd")), "doc_id": tf.fill(mask.shape, "d")}
    for same in (features, tf.constant(features), {"features": features}, {"features": features, **ids}):
        np.testing.assert_array_equal(scorer(same), expected)
    for same in (mask, mask.astype(np.int32)):
        masked = scorer({"features": features, "mask": same, **ids})
        np.testing.assert_allclose(masked, np.where(mask, expected, models.PADDING_SCORE), rtol=1e-5)


def test_a_graph_of_unknown_sizes_computes_the_same():
    scorer = a_scorer(normalization="min_max")
    specs = [tf.TensorSpec([None, None, 5], tf.float32), tf.TensorSpec([None, None], tf.bool)]
    score = tf.function(lambda features, mask: scorer({"features": features, "mask": mask}), input_signature=specs)
    assert score.get_concrete_function().output_shapes.as_list() == [None, None]
    for batch, length in [(4, 6), (1, 3), (2, 1), (0, 4)]:
        features, mask = a_batch(batch=batch, length=length)
        expected = scorer({"features": features, "mask": mask}).numpy()
        found = score(features, mask).numpy()
        assert found.shape == (batch, length)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.keras_2
def test_losses_and_metrics_are_found_by_name_wherever_keras_takes_names():
    scorer = models.FeedForwardScorer(hidden=[2])
    for name in ("smoothi_ndcg", "SmoothINDCGLoss", "tfr_smooth>SmoothINDCGLoss"):
        for given in (name, [name]):
            scorer.compile("sgd", given)
            (found,) = tf.nest.flatten(scorer.loss)
            assert type(found) is losses.SmoothINDCGLoss
    given = ["ndcg", "softsort_map", "ERRMetric", metrics.NDCGMetric(topn=3), "mae", "accuracy"]
    scorer.compile("sgd", "mse", metrics=given, weighted_metrics=["mrr"])
    logs = scorer.evaluate(tf.ones([2, 3, 4]), np.eye(2, 3, dtype=np.float32), verbose=0, return_dict=True)
    assert sorted(logs) == sorted(["loss", "ndcg", "softsort_map", "err", "ndcg_3", "mae", "accuracy", "mrr"])
    # An unknown name is refused in one line.
    for argument in ("loss", "metrics", "weighted_metrics"):
        for name, hint in {"smooth_ndcg": " Did you mean 'smoothi_ndcg' or ", "zzz": "", "tfr_smooth>None": ""}.items():
            with pytest.raises(ValueError) as error:
                scorer.compile("sgd", **{argument: name if argument == "loss" else ["mae", name]})
            message = f"`{argument}` must be known to tfr_smooth or Keras by its name, got {name!r}.{hint}"
            assert str(error.value).startswith(message) and str(error.value).endswith("?" if hint else ".")


def test_fit_refuses_weights_of_classes_and_labels_of_nan_or_that_pad_by_zeros():
    model = models.FeedForwardScorer(hidden=[2])
    model.compile("sgd", "softmax")
    features, labels = np.ones([2, 3, 4], np.float32), np.eye(2, 3, dtype=np.float32)
    with pytest.raises(ValueError, match="`class_weight` must be None: labels of lists are no classes"):
        model.fit(features, labels, class_weight={0: 1.0, 1: 2.0})
    with pytest.raises(ValueError, match="^`y` must be numbers, negative for padding, got NaN.$"):
        model.fit(features, np.where(labels, np.nan, 0.0), verbose=0)
    features[0, 2] = 0.0
    with pytest.warns(UserWarning, match="^`y` should be negative for padding, got 0 at the end of 1 lists"):
        model.fit(features, labels, verbose=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels[0, 2] = -1.0
        model.fit(features, y=labels, verbose=0)


@pytest.mark.parametrize("options", [{"normalization": "quantiles"}, {"batch_norm": True, "hidden": []}])
def test_weak_features_reach_only_half_of_the_members(options):
    random = np.random.default_rng(0)
    features = random.normal(size=[8, 6, 9]).astype(np.float32)
    features[..., 2:5] = random.integers(0, 7, [8, 6, 3])
    blocks = {"embeddings": [[2, 1, 7], [3, 2, 7]], "vectors": [[5, 2]]}
    scorer = models.FeedForwardScorer(
        **{"hidden": [8], "batch_norm": False, **options}, **blocks, members=7, weak=[0, 3, 6], seed=0
    )
    labels = random.integers(0, 2, [8, 6]).astype(np.float32)
    scorer.build([None, None, 9])
    scorer.adapt([({"features": features}, labels)])
    scorer.compile("adam", losses.SoftmaxLoss())
    scorer.fit({"features": features}, labels, epochs=1, verbose=0)
    scores = scorer({"features": features}, training=True).numpy()
    for places, is_weak in (([0], True), ([1], False), ([2], False), ([3, 4], True), ([5], False), ([6], True)):
        changed = features.copy()
        changed[..., places] = changed[::-1, :, places]
        others = scorer({"features": changed}, training=True).numpy()
        is_same = [np.array_equal(*pair) for pair in zip(scores, others, strict=True)]
        assert is_same == [False, False, is_weak, is_weak, False, False, is_weak]
    if not options.get("batch_norm"):  # which is another one in training
        np.testing.assert_allclose(scorer(features), scores.mean(axis=0), rtol=1e-4, atol=1e-5)


@pytest.mark.keras_2
def test_the_names_in_a_keras_file_are_stable(tmp_path):
    """Files of earlier versions can be loaded only while these names stay the same."""
    scorer = a_scorer(hidden=[8], normalization="standardize", name="mine")
    scorer.save(tmp_path / "scorer.keras")
    with zipfile.ZipFile(tmp_path / "scorer.keras") as archive:
        config = json.loads(archive.read("config.json"))
        with h5py.File(io.BytesIO(archive.read("model.weights.h5")), "r") as file:
            names = []
            file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    assert config["registered_name"] == "tfr_smooth>FeedForwardScorer"
    assert config["build_config"] == {"num_features": 5}
    arguments = {"hidden": [8], "normalization": "standardize", "batch_norm": True, "batch_norm_momentum": 0.9}
    arguments |= {"dropout": 0.0, "members": 1, "embeddings": [], "vectors": [], "embedding_dim": 16, "seed": None}
    arguments |= {"output_bias": True, "offset": None, "weak": []}
    assert config["config"] == {**arguments, "name": "mine"}
    weights = {"batch_normalization": 4, "batch_normalization_1": 4, "dense": 2, "dense_1": 2}
    folder, normalizer = ("layers", "layers/standardize") if _keras.IS_KERAS_3 else ("tower", "normalizer")
    expected = {f"{folder}/{layer}/vars/{i}" for layer, count in weights.items() for i in range(count)}
    assert set(names) == expected | {f"{normalizer}/vars/{i}" for i in range(3)}


@pytest.mark.slow
def test_two_towers_in_a_functional_model():
    features = tf.keras.Input([None, 5], name="features")
    mask = tf.keras.Input([None], dtype="bool", name="mask")
    towers = [
        models.FeedForwardScorer(hidden=[8], normalization=normalization, name=name)
        for normalization, name in (("min_max", "relevance"), (None, "bias"))
    ]
    scores = [tower({"features": features, "mask": mask}) for tower in towers]
    total = tf.keras.layers.Add(dtype="float32")(scores)
    model = tf.keras.Model({"features": features, "mask": mask}, total)
    assert tf.as_dtype(scores[0].dtype) == tf.float32 and tuple(model.output.shape) == (None, None)
    inputs = dict(zip(("features", "mask"), a_batch(batch=8), strict=True))
    found = model.predict(inputs, verbose=0)
    np.testing.assert_allclose(found, towers[0](inputs) + towers[1](inputs), rtol=1e-5, atol=1e-5)


def test_invalid_arguments_raise():
    for arguments, message in [
        ({"hidden": "B32"}, "`hidden` must be one of 'linear', 'B64', 'B128', 'B256', 'B512', 'B1024', got 'B32'."),
        ({"dropout": 1.0}, "`dropout` must be a number in [0, 1), got 1.0."),
        ({"members": 0}, "`members` must be an integer >= 1, got 0."),
        ({"batch_norm_momentum": 0.0}, "`batch_norm_momentum` must be a number in (0, 1), got 0.0."),
    ]:
        with pytest.raises(ValueError) as error:
            models.FeedForwardScorer(**arguments)
        assert str(error.value) == message


def test_embeddings_are_means_of_the_vectors_of_known_codes():
    layer = models.Embeddings([(1, 1, 5), (2, 3, 4)], dim=2, seed=0)
    one, other = (np.array(weight) for weight in layer.get_weights())
    features = tf.constant([[0.5, 4.0, 3.0, 2.0, 0.0], [0.5, 1.0, 0.0, 0.0, 0.0]])
    expected = [[*one[4], *(other[3] + other[2]) / 2], [*one[1], 0.0, 0.0]]
    np.testing.assert_allclose(layer(features), expected, rtol=1e-6)
