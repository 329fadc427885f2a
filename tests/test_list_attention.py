"""ListAttention: self-attention over the documents of a list."""

import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth.models import ListAttention

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
    np.testing.assert_array_equal(layer(hidden(), mask=MASK), hidden())


def test_permuting_a_list_permutes_the_outputs():
    layer, order = attention(), [3, 1, 4, 0, 2]
    outputs = layer(hidden(), mask=MASK)
    permuted = layer(tf.gather(hidden(), order, axis=1), mask=tf.gather(MASK, order, axis=1))
    real = tf.gather(MASK, order, axis=1).numpy()
    np.testing.assert_allclose(permuted[real], tf.gather(outputs, order, axis=1)[real], rtol=1e-5)


def test_outputs_depend_on_the_documents_of_the_list_and_not_on_padding():
    layer, inputs = attention(), hidden().numpy()
    outputs = layer(inputs, mask=MASK).numpy()
    inputs[1, 2:] = 7.0
    again = layer(inputs, mask=MASK).numpy()
    np.testing.assert_array_equal(again[MASK.numpy()], outputs[MASK.numpy()])
    inputs[1, 1] += 1.0
    assert np.abs(layer(inputs, mask=MASK).numpy()[1, 0] - outputs[1, 0]).max() > 1e-3
    np.testing.assert_array_equal(layer(inputs, mask=MASK).numpy()[0], outputs[0])


def test_one_head_equals_the_formula():
    layer = attention(heads=1)
    z = layer.inner(hidden())[0]
    query, key, value = (
        (tf.einsum("nu,uhk->nk", z, w[0]) + w[1][0])
        for w in (layer.attention.get_weights()[i : i + 2] for i in (0, 2, 4))
    )
    weights = tf.nn.softmax(query @ tf.transpose(key) / np.sqrt(8.0))
    kernel, bias = layer.attention.get_weights()[6:]
    a = layer.normalization((z + tf.einsum("nk,hku->nu", weights @ value, kernel) + bias)[tf.newaxis])[0]
    expected = hidden()[0] * (1.0 + a @ layer.outer.kernel)
    np.testing.assert_allclose(layer(hidden(), mask=MASK)[0], expected, rtol=1e-4, atol=1e-6)


def test_outputs_of_a_list_of_padding_are_finite():
    outputs = attention()(hidden(), mask=tf.zeros([2, 5], tf.bool))
    assert np.isfinite(outputs).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"heads": 0}, "`heads` must be an integer >= 1, got 0."),
        ({"heads": 4, "units": 2}, "`units` must be an integer >= 4, got 2."),
        ({"dropout": 1.0}, "`dropout` must be a number in (0, 1), got 1.0."),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(ValueError) as error:
        ListAttention(**arguments)
    assert str(error.value) == message
