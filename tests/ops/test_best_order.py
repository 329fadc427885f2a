"""The gain of the best order: by sorting and, in compiled programs, level by level."""

import numpy as np
import pytest
import tensorflow as tf

from tests import references
from tfr_smooth.ops import best_order, compiled


@compiled.once_for_each_size
def in_a_program(relevance, worth, *, gain):
    assert compiled.is_inside()
    return best_order.gained(relevance, worth, gain)


def outside(relevance, worth, *, gain):
    assert not compiled.is_inside()
    return best_order.gained(relevance, worth, gain)


@pytest.mark.parametrize("gained", [in_a_program, outside])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gain", ["linear", "exponential"])
@pytest.mark.parametrize("ranks", [1, 3, 64, 100])
@pytest.mark.parametrize("levels", [1, 4, 8, 9, 1000])
def test_equals_the_sorted_sum(levels, ranks, gain, dtype, gained):
    random = np.random.RandomState(levels)
    relevance = random.randint(0, levels + 1, (5, 100)).astype(dtype) * 4.0 / levels
    relevance[0] = 0.0
    relevance[1, 3:] = 0.0  # ends before the others
    relevance[2] = 1.0  # all tied
    worth = references.discounts(ranks)[np.newaxis]
    expected = [references.ideal_dcg(row, ranks, gain) for row in relevance]
    found = gained(tf.constant(relevance), tf.constant(worth), gain=gain)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("gained", [in_a_program, outside])
def test_each_list_may_have_a_worth_of_its_own(gained):
    relevance = tf.constant([[0.0, 2.0, 2.0, 1.0], [3.0, 0.0, 0.0, 1.0]])
    worth = tf.constant([[1.0, 0.5, 0.25], [10.0, 0.0, 1.0]], tf.float64)
    expected = [2.0 + 1.0 + 0.25, 30.0]
    np.testing.assert_allclose(gained(relevance, worth, gain="linear"), expected, rtol=1e-6)
    longer = [tf.pad(values, [[0, 0], [0, 70]]) for values in (relevance, worth)]
    np.testing.assert_allclose(gained(*longer, gain="linear"), expected, rtol=1e-6)


@pytest.mark.parametrize(("levels", "ranks", "is_sorted"), [(3, 80, False), (100, 80, True), (3, 10, True)])
def test_few_levels_of_many_ranks_are_not_sorted(levels, ranks, is_sorted, monkeypatch):
    """The program has the sort, for batches that need it, but does not run it."""
    sorted_batches = []
    by_sorting = best_order._by_sorting

    def counting(relevance, worth, gain):
        tf.py_function(lambda: sorted_batches.append(1), [], [])
        return by_sorting(relevance, worth, gain)

    monkeypatch.setattr(best_order, "_by_sorting", counting)
    monkeypatch.setattr(compiled, "_has_xla", lambda: False)  # It knows no calls of Python.
    gained = compiled.once_for_each_size(in_a_program.__wrapped__)
    worth = tf.constant(references.discounts(ranks)[np.newaxis])
    gained(tf.constant([np.arange(100) % (levels + 1)], tf.float32), worth, gain="linear")
    assert bool(sorted_batches) == is_sorted


def test_outside_again_after_an_error():
    @compiled.once_for_each_size
    def failing(values):
        raise KeyError

    with pytest.raises(KeyError):
        failing(tf.ones([8, 8]))
    assert not compiled.is_inside()
