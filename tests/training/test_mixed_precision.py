"""Training with a half-precision policy: layers in half precision, loss and gradient in float32."""

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import losses, models


@pytest.fixture(params=["mixed_float16", pytest.param("mixed_bfloat16", marks=pytest.mark.slow)])
def policy(request):
    with helpers.precision(request.param) as name:
        yield name


def a_batch(lists=6, length=7):
    random = np.random.RandomState(0)
    labels = random.randint(0, 3, (lists, length)).astype(np.float32)
    labels[:, 0], labels[::2, -1] = 2.0, -1.0
    return {"features": random.randn(lists, length, 4).astype(np.float32), "mask": labels >= 0.0}, labels


def a_model(loss):
    tf.keras.utils.set_random_seed(2)
    model = models.FeedForwardScorer(hidden=[16])
    model.compile(tf.keras.optimizers.SGD(0.5), loss)
    model.build((None, None, 4))
    return model


@pytest.mark.keras_2
def test_a_step_is_nearly_that_of_full_precision(policy):
    inputs, labels = a_batch()
    steps = {}
    for name in (policy, "float32"):
        tf.keras.mixed_precision.set_global_policy(name)
        model = a_model(losses.SmoothINDCGLoss(alpha=10.0))
        before = model.get_weights()
        model.fit(tf.data.Dataset.from_tensors((inputs, labels)), verbose=0)
        steps[name] = [after - weight for after, weight in zip(model.get_weights(), before, strict=True)]
    tf.keras.mixed_precision.set_global_policy(policy)
    assert any((ours != theirs).any() for ours, theirs in zip(*steps.values(), strict=True))  # half precision was used
    size = max(np.abs(step).max() for step in steps["float32"])
    assert size > 1e-2
    tolerance = {"mixed_float16": 0.01, "mixed_bfloat16": 0.08}[policy] * size
    helpers.assert_same(steps[policy], steps["float32"], rtol=1e-7, atol=tolerance)


def test_scores_in_half_precision_get_the_float32_gradient(policy):
    """For a scorer that does not cast its scores to float32. Half precision would round sums of differences."""
    _, labels = a_batch()
    dtype = tf.as_dtype(policy.removeprefix("mixed_"))
    half = tf.cast(tf.random.stateless_normal(labels.shape, [1, 2]), dtype)
    found = {}
    for scores in (half, tf.cast(half, tf.float32)):
        with tf.GradientTape() as tape:
            tape.watch(scores)
            value = losses.SmoothINDCGLoss(alpha=10.0)(labels, scores)
        found[scores.dtype] = value, tape.gradient(value, scores)
    assert found[dtype][0].dtype == tf.float32
    np.testing.assert_array_equal(found[dtype][0], found[tf.float32][0])
    assert found[dtype][1].dtype == dtype
    np.testing.assert_array_equal(found[dtype][1], tf.cast(found[tf.float32][1], dtype))
