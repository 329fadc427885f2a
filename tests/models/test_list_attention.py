"""ListAttention and DocumentInteractionAttention: self-attention over the documents of a list."""

import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth.models import DocumentInteractionAttention, ListAttention

MASK = tf.constant([[True] * 5, [True, True, False, False, False]])


def attention(heads=2, units=8):
    """Returns a layer with random weights; a new layer is the identity."""
    tf.keras.utils.set_random_seed(1)
    layer = ListAttention(heads=heads, units=units)
    layer.build((None, None, 3))
    layer.outer.kernel.assign(tf.random.stateless_normal([units, 3], [0, 1]))
    return layer


def hidden(seed=0):
    return tf.random.stateless_normal([2, 5, 3], [seed, 2])


def test_a_new_layer_is_the_identity():
    layer = ListAttention()
    np.testing.assert_array_equal(layer(hidden(), mask=MASK), np.where(MASK[:, :, tf.newaxis], hidden(), 0.0))


def normalized(values):
    return (values - values.mean(axis=1, keepdims=True)) / values.std(axis=1, keepdims=True)


def attended(attention, hidden):
    """Computes multi-head attention of one list with NumPy in float64."""
    weights = [np.float64(each) for each in attention.get_weights()]
    query, key, value = (np.einsum("nu,uhk->hnk", hidden, weights[i]) + weights[i + 1][:, None] for i in (0, 2, 4))
    logits = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[2])
    shares = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    return np.einsum("hnk,hku->nu", shares @ value, weights[6]) + weights[7]


@pytest.mark.parametrize(("heads", "count"), [(1, 1), (2, 3)])
def test_outputs_equal_the_formula_of_each_list(heads, count):
    layer = DocumentInteractionAttention(heads, 8, count)
    layer((hidden(), MASK))
    random = np.random.RandomState(1)
    layer.set_weights([each + 0.3 * random.randn(*each.shape) for each in layer.get_weights()])
    outputs = layer((hidden(), MASK)).numpy()
    for inputs, found, real in zip(hidden().numpy(), outputs, MASK.numpy(), strict=True):
        kernel, bias = layer.input_projection.get_weights()
        expected = np.maximum(inputs[real] @ np.float64(kernel) + bias, 0.0)
        for attention, norm in zip(layer.blocks[::3], layer.blocks[2::3], strict=True):
            gamma, beta = norm.get_weights()
            expected = normalized(expected + attended(attention, expected)) * gamma + beta
        np.testing.assert_allclose(found[real], expected, rtol=1e-4, atol=1e-5)
        assert (found[~real] == 0.0).all()


def test_the_latent_cross_scales_features_by_the_attention():
    layer = attention()
    scales = 1.0 + layer.attention((hidden(), MASK)) @ tf.convert_to_tensor(layer.outer.kernel)
    expected = np.where(MASK[:, :, tf.newaxis], hidden() * scales, 0.0)
    np.testing.assert_allclose(layer(hidden(), mask=MASK), expected, rtol=1e-5, atol=1e-6)


def test_dropout_and_noise_are_random_in_training_only():
    for arguments in ({"dropout": 0.5}, {"dropout": 0.0, "input_noise_stddev": 0.5}):
        layer = DocumentInteractionAttention(1, 8, **arguments)
        inference = layer((hidden(), MASK)).numpy()
        np.testing.assert_array_equal(layer((hidden(), MASK)), inference)
        assert np.abs(layer((hidden(), MASK), training=True) - inference).max() > 0.01
    exact = DocumentInteractionAttention(1, 8, dropout=0.0)
    np.testing.assert_array_equal(exact((hidden(), MASK), training=True), exact((hidden(), MASK)))


def test_nan_at_padding_reaches_no_output_and_no_gradient():
    layer = attention()
    inputs = tf.where(MASK[:, :, tf.newaxis], hidden(), np.nan)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = layer(inputs, mask=MASK)
        gradients = tape.gradient(tf.reduce_sum(tf.square(outputs)), [inputs, *layer.trainable_variables])
    np.testing.assert_array_equal(outputs, layer(hidden(), mask=MASK))
    assert all(np.isfinite(each).all() for each in gradients)
    assert (layer(hidden(), mask=tf.zeros([2, 5], tf.bool)) == 0.0).numpy().all()  # lists of padding
