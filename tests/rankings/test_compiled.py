"""Compiled programs, their derivatives, and the sizes to which batches are padded."""

import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth import _compiled


def test_a_program_is_traced_once_per_dtype_for_all_sizes():
    traces = []

    @_compiled.program
    def scaled(values, factor):
        traces.append(values.dtype)
        return factor * values

    for size in (3, 4, 3):
        np.testing.assert_array_equal(scaled(tf.ones([2, size]), 2.0), np.full((2, size), 2.0))
        np.testing.assert_array_equal(scaled(tf.ones([2, size]), 3.0), np.full((2, size), 3.0))
    assert traces == [tf.float32]
    scaled(tf.ones([2, 3], tf.float64), tf.constant(2.0, tf.float64))
    assert traces == [tf.float32, tf.float64]


def test_a_program_is_compiled_if_tensorflow_has_xla_and_has_no_gradient(monkeypatch):
    values = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        found = _compiled.program(tf.square)(values)
    assert tape.gradient(found, values) is None
    calls, function = [], tf.function
    monkeypatch.setattr(tf, "function", lambda *args, **kwargs: calls.append(kwargs) or function(*args, **kwargs))
    for has_xla in (True, False):
        monkeypatch.setattr(_compiled, "has_xla", lambda has_xla=has_xla: has_xla)
        np.testing.assert_array_equal(_compiled.program(lambda values: values + 1.0)(tf.ones([2])), [2.0, 2.0])
    assert [call["jit_compile"] for call in calls] == [True, False]


@pytest.mark.parametrize(("of", "in_graph"), [("x", False), ("upstream", False), ("x", True)])
def test_differentiable_uses_the_given_gradient_and_refuses_a_second_derivative(in_graph, of):
    """To show which function is used, the first derivative is 7 x upstream."""
    odd = _compiled.differentiable(lambda x: (x**3, lambda upstream: 7.0 * upstream * x))
    inputs = {"x": tf.constant([2.0, 3.0]), "upstream": tf.constant([1.0, 4.0])}
    with tf.GradientTape() as outer:
        outer.watch(inputs[of])
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(inputs["x"])
            y = (tf.function(odd) if in_graph else odd)(inputs["x"])
        gradient = inner.gradient(y, *inputs.values())
    np.testing.assert_array_equal(y, [8.0, 27.0])
    np.testing.assert_array_equal(gradient, [14.0, 84.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="has only first derivatives"):
        outer.gradient(gradient, inputs[of])


@pytest.mark.parametrize(("cores", "batch"), [(1, 8), (4, 2), (4, 8)])
def test_over_lists_splits_the_batch_into_one_part_per_core(cores, batch, monkeypatch):
    monkeypatch.setattr(_compiled, "_cores", lambda: cores)

    @_compiled.program
    def scaled(factor, values, labels):
        # The number of rows shows the size of the parts.
        rows = tf.shape(values)[0] * tf.ones([tf.shape(values)[0], 1], tf.int32)
        return factor * values + labels, rows

    values, labels = tf.reshape(tf.range(3.0 * batch), [batch, 3]), 10.0 * tf.ones([batch, 1])

    @tf.function
    def step(values, labels):
        return _compiled.over_lists(scaled, [tf.constant(2.0)], [values, labels], (tf.float32, tf.int32))

    results, rows = step(values, labels)
    np.testing.assert_array_equal(results, 2.0 * values + labels)
    np.testing.assert_array_equal(rows, np.full([batch, 1], batch // min(cores, batch)))


def test_padded_lengths_are_few_and_less_than_1_5_times_the_length_and_batches_are_powers_of_two():
    padded = {length: _compiled.padded_length(length) for length in range(1, 5001)}
    assert all(length <= more < max(1.5 * length, length + 8) for length, more in padded.items())
    padded = [*padded.values()]
    assert padded == sorted(padded)
    assert all(_compiled.padded_length(more) == more for more in padded)
    assert len({more for more in padded if more <= 1024}) == 16
    assert _compiled.padded_length(0) == 8
    assert [_compiled.padded_batch(size) for size in (0, 1, 2, 3, 5, 64, 65)] == [1, 1, 2, 4, 8, 64, 128]


@pytest.mark.parametrize("padded", [_compiled.padded_length, _compiled.padded_batch])
def test_graphs_of_unknown_size_pad_to_the_same_size(padded):
    unknown = tf.function(padded, input_signature=[tf.TensorSpec([], tf.int32)])
    for size in (0, 1, 7, 8, 9, 64, 65, 79, 80, 81, 127, 128, 129, 1000, 1024, 1025, 65536, 65537):
        assert int(unknown(size)) == padded(size), size


@pytest.mark.parametrize("signature", [None, [tf.TensorSpec([None, None])]])
def test_pad_appends_zeros_and_unpad_removes_them(signature):
    @tf.function(input_signature=signature)
    def there_and_back(values):
        padded = _compiled.pad(values)
        return padded, _compiled.unpad(padded, values)

    for batch, length in ((1, 5), (3, 8), (4, 8), (3, 70), (0, 3)):
        values = tf.ones([batch, length])
        padded, back = there_and_back(values)
        assert padded.shape == [_compiled.padded_batch(batch), _compiled.padded_length(length)]
        np.testing.assert_array_equal(padded[:batch, :length], values)
        assert float(tf.reduce_sum(padded)) == batch * length
        np.testing.assert_array_equal(back, values)
    assert _compiled.pad(tf.ones([4, 16])).shape == [4, 16]
