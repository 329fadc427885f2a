from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import models
from tfr_smooth.models import Quantiles, Standardize, get_normalizer, normalization

NAMES = ["min_max", "standardize", "quantiles", "log1p"]


def _batch(seed=0, batch=4, size=6, width=3):
    source = np.random.RandomState(seed)
    features = (source.standard_normal((batch, size, width)) * 10 + 3).astype(np.float32)
    lengths = [1 + i % size for i in range(size - 1, size - 1 + batch)]
    mask = np.arange(size) < np.array(lengths)[:, None]
    return features, mask


def _adapted(name, features=None, layer=None):
    """Returns the layer, with the statistics of these features or of a random batch if it has any."""
    layer = layer or get_normalizer(name)
    if isinstance(layer, Standardize):
        random = dict(zip(("features", "mask"), _batch(seed=9), strict=True))
        layer.adapt([random if features is None else {"features": features}])
    return layer


def _expected(name, features, mask):
    """Computes the formulas document by document."""
    expected = np.zeros((*features.shape[:2], features.shape[2] * (1 + (name == "quantiles"))))
    train, real = _batch(seed=9)
    train = train[real].astype(np.float64)
    for query, row in np.argwhere(mask):
        x = features[query, row].astype(np.float64)
        documents = features[query][mask[query]].astype(np.float64)
        if name == "min_max":
            low, high = documents.min(axis=0), documents.max(axis=0)
            y = np.divide(x - low, high - low, out=np.zeros_like(x), where=high > low)
        elif name in ("standardize", "quantiles"):
            y = (x - train.mean(axis=0)) / train.std(axis=0)
            if name == "quantiles":
                levels = np.linspace(0.0, 1.0, len(train))  # fewer documents than segments
                shares = [np.interp(x[i], np.sort(train[:, i]), levels) for i in range(len(x))]
                y = np.concatenate([np.clip(y, -10.0, 10.0), np.sqrt(3.0) * (2.0 * np.array(shares) - 1.0)])
        else:
            y = np.sign(x) * np.log(1 + np.abs(x))
        expected[query, row] = y
    return expected


@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_the_formula(name):
    layer = _adapted(name)
    features, mask = _batch()

    def apply(features, mask):
        return layer(features, mask=mask)

    for function in (apply, tf.function(apply)):
        found = function(tf.constant(features), tf.constant(mask))
        assert found.dtype == tf.float32
        np.testing.assert_allclose(found, _expected(name, features, mask), rtol=1e-4, atol=1e-5)
    with helpers.precision("mixed_float16"):
        layer = _adapted(name, np.array([[[0.0], [2e6]]]))
        found = layer(tf.constant([[[1e6], [1e5], [0.0]]]))
    assert found.dtype == tf.float32 and np.isfinite(found).all()
    top = np.finfo(np.float32).max
    features = np.array([[[top, 0.0], [-top, 1e-45], [1.0, -1e-38]]], np.float32)
    assert np.isfinite(_adapted(name, features)(tf.constant(features))).all()


@pytest.mark.parametrize("plain", [[2, 0], [0, 1, 2]])
def test_plain_features_are_only_standardized(plain):
    features = np.random.default_rng(0).normal(size=[1, 50, 3]).astype(np.float32)
    every, some = Quantiles(segments=True), Quantiles(segments=True, plain=plain)
    for layer in (every, some):
        layer.adapt([{"features": features}])
    of_feature = np.tile(np.arange(3), 18)  # values, quantiles and 16 segments
    kept = (np.arange(54) < 3) | ~np.isin(of_feature, plain)
    np.testing.assert_array_equal(some(features), every(features).numpy()[..., kept])
    assert some.compute_output_shape((None, 3)) == (None, kept.sum())


def _heavy_tails(size):
    return np.concatenate([[-1e30, 1e30], np.linspace(1.0, 2.0, size)])


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        (np.linspace(0.0, 1.0, 4097), [-1.0, 0.0, 0.1, 0.5, 0.77, 1.0, 2.0], [0.0, 0.0, 0.1, 0.5, 0.77, 1.0, 1.0]),
        # The value 0 counts for 1/16, the others for 15/16.
        (np.append(np.zeros(39_900), 1.0 + np.arange(3000) / 3000), [0.0, 1.0, 1.5, 2.0], [0.0, 1 / 16, 17 / 32, 1.0]),
        (np.repeat(np.arange(17.0) ** 2, np.arange(17) ** 3 + 1), [0.0, 1.0, 81.0, 256.0], [0.0, 1 / 16, 9 / 16, 1.0]),
        (np.full(100, 3.0), [-1.0, 3.0, 4.0], [0.5, 0.5, 0.5]),
        (_heavy_tails(32_000), [-3e38, 1.25, 1.5, 1.75, 3e38], [0.0, 0.25, 0.5, 0.75, 1.0]),
        (np.float32([-3.4e38, 3.4e38]), [-3.4e38, 3.4e38], [0.0, 1.0]),
    ],
    ids=["uniform", "zeros", "17 values", "constant", "heavy tails", "largest"],
)
def test_quantiles_count_no_value_for_more_than_a_segment(column, values, expected):
    layer = Quantiles()
    layer.adapt([{"features": column[np.newaxis, :, np.newaxis]}])
    standardized, quantiles = layer(tf.constant(values)[tf.newaxis, :, tf.newaxis])[0].numpy().T
    assert np.abs(standardized).max() <= 10.0
    np.testing.assert_allclose(quantiles, np.sqrt(3.0) * (2.0 * np.array(expected) - 1.0), atol=2e-3)


def test_quantiles_of_more_documents_than_the_sample_are_those_of_all(monkeypatch):
    monkeypatch.setattr(normalization, "_SAMPLED", 2000)
    layer, values = Quantiles(), np.arange(50_000, dtype=np.float32)
    parts = np.array_split(values, 7)
    layer.adapt([{"features": part[np.newaxis, :, np.newaxis]} for part in parts])
    found = layer(values[np.newaxis, :, np.newaxis])[0, :, 1]
    np.testing.assert_allclose(found, np.sqrt(3.0) * (2.0 * values / 50_000 - 1.0), atol=0.1)


@pytest.mark.parametrize("name", NAMES)
def test_padding_is_zero_and_changes_neither_output_nor_gradient(name):
    """Also columns and a list that are only padding."""
    layer = _adapted(name)
    features, mask = _batch()
    mask[1] = False
    clean = np.pad(layer(tf.constant(features), mask=tf.constant(mask)), [(0, 0), (0, 5), (0, 0)])
    features, mask = np.pad(features, [(0, 0), (0, 5), (0, 0)]), np.pad(mask, [(0, 0), (0, 5)])
    features[~mask] = np.resize([np.nan, -np.inf, 1e30], features[~mask].shape)
    dirty = tf.constant(features)
    with tf.GradientTape() as tape:
        tape.watch(dirty)
        found = layer(dirty, mask=tf.constant(mask))
        loss = tf.reduce_sum(found**2)
    np.testing.assert_array_equal(found, clean)
    np.testing.assert_array_equal(found.numpy()[~mask], 0.0)
    gradient = tape.gradient(loss, dirty).numpy()
    assert np.isfinite(gradient).all() and (gradient[~mask] == 0).all()


@pytest.mark.parametrize(("value", "dtype"), [(0.1, np.float32), (0.1, np.float64), (1e9, np.float32)])
def test_standardize_zeroes_a_feature_that_was_constant_in_training(value, dtype):
    parts = [np.full((1, size, 2), value, dtype) for size in (1, 3, 7, 1000, 11)]
    for part in parts:
        part[..., 1] = np.arange(part.shape[1])
    layer = Standardize()
    layer.adapt([{"features": part} for part in parts])
    for served in (value, 2 * value + 1):
        found = layer(tf.constant([[[served, 1.0], [served, 2.0]]])).numpy()
        assert (found[..., 0] == 0).all() and (found[..., 1] != 0).all()


@pytest.mark.parametrize("parts", [[1] * 24, [5, 1, 18]])
def test_adapt_does_not_depend_on_the_batches(parts):
    features, mask = _batch(batch=24)
    features += 1e4
    bounds = np.cumsum([0, *parts])
    layer = Standardize()
    layer.adapt(
        [({"features": features[a:b], "mask": mask[a:b]}, None) for a, b in zip(bounds, bounds[1:], strict=False)]
    )
    real = features[mask].astype(np.float64)
    np.testing.assert_allclose(layer.mean.numpy(), real.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(layer.stddev.numpy(), real.std(axis=0), rtol=1e-6)
    # Later statistics replace them.
    layer = Standardize()
    for shift in (100.0, 0.0):
        layer.adapt([{"features": np.array([[[shift], [shift + 2.0]]])}])
    assert layer.mean.numpy() == [1.0] and layer.stddev.numpy() == [1.0]


@pytest.mark.parametrize(
    "values",
    [
        [3e38, -3e38, -3e38],  # differences exceed float32
        [16777216, 16777216, 16777218],  # the mean is no float32
        [1e-36, 2e-36, 4e-36],
    ],
)
def test_standardize_is_exact_for_extreme_features(values):
    features = np.array(values, np.float32).reshape(1, -1, 1)
    layer = Standardize()
    layer.adapt([{"features": features}])
    exact = features.astype(np.float64)
    for apply in (layer, tf.function(lambda x: layer(x), jit_compile=True)):
        found = apply(tf.constant(features))
        np.testing.assert_allclose(found, (exact - exact.mean()) / exact.std(), rtol=1e-6, atol=1e-7)


def test_a_model_that_is_not_adapted_refuses_calls_and_training():
    features, mask = _batch()
    inputs = {"features": features, "mask": mask}
    for model in (_functional(Standardize()), models.FeedForwardScorer(hidden=[2], normalization="standardize")):
        model.compile("sgd", "mse")
        for call in (
            lambda model: model(tf.nest.map_structure(tf.constant, inputs)),
            lambda model: model.predict(inputs, verbose=0),
            lambda model: model.fit(inputs, np.zeros(mask.shape), verbose=0),
        ):
            with pytest.raises(ValueError, match="`Standardize` needs the statistics of the training set, got none"):
                call(model)


def test_adapt_refuses_invalid_datasets():
    for dataset, message in [
        ([{"features": np.zeros((1, 2, 3)), "mask": np.zeros((1, 2), bool)}], "`dataset` must contain at least one .*"),
        ([{"features": np.array([[[1.0, np.nan, 2]]])}], "`dataset` must have finite .*, got nan in feature 2."),
        ([{"features": np.zeros((1, 2, 2))}], "`dataset` must have 3 features, got 2."),
        (tf.data.Dataset.from_tensors(0).repeat(), "`dataset` must be finite, got one that repeats forever."),
    ]:
        layer = Standardize()
        layer.build((None, None, 3))
        with pytest.raises(ValueError, match=f"^{message}$"):
            layer.adapt(dataset)
    with pytest.raises(ValueError, match="known last dimension"):
        Standardize().build((None, None, None))


def _functional(layer, width=3):
    features = tf.keras.Input([None, width], name="features")
    mask = tf.keras.Input([None], name="mask", dtype="bool")
    hidden = layer(features, mask=mask)
    assert tuple(hidden.shape) == tuple(layer.compute_output_shape((None, None, width)))
    return tf.keras.Model({"features": features, "mask": mask}, tf.keras.layers.Dense(1)(hidden))


@pytest.mark.keras_2
@pytest.mark.parametrize("name", NAMES)
def test_saved_model_takes_raw_features(tmp_path, name):
    features, mask = _batch()
    inputs = {"features": tf.constant(features), "mask": tf.constant(mask)}
    layer = get_normalizer(name)
    model = _functional(layer)
    _adapted(name, layer=layer)
    before = model(inputs).numpy()
    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(inputs), before)
    if isinstance(layer, Standardize):
        assert abs(layer.mean.numpy()).max() > 0
        assert len(loaded.trainable_variables) == 2 and len(loaded.variables) == 5 + 3 * (name == "quantiles")


@pytest.mark.filterwarnings("error:.*mask")
@pytest.mark.keras_2
def test_mask_does_not_reach_the_loss():
    # Keras weights the loss by the mask that the output carries.
    features, mask = _batch()
    layer = _adapted("quantiles")
    inputs = {"features": tf.constant(features), "mask": tf.constant(mask)}
    assert getattr(layer(inputs["features"], mask=inputs["mask"]), "_keras_mask", None) is None
    model = _functional(layer)
    model.compile("sgd", "mse")
    value = model.evaluate(inputs, tf.zeros([*mask.shape, 1]), verbose=0)
    np.testing.assert_allclose(value, np.mean(model(inputs).numpy() ** 2), rtol=1e-5)


def test_unknown_normalizer_is_refused():
    with pytest.raises(ValueError, match="`normalization` must be one of 'min_max', .* Did you mean 'min_max'"):
        get_normalizer("Min_Max")
