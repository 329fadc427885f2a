"""Training with a half-precision policy: layers in half precision, loss and gradient in float32."""

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tests.training.small import make_dataset, make_model
from tfr_smooth import losses


@pytest.fixture(params=["mixed_float16", pytest.param("mixed_bfloat16", marks=pytest.mark.slow)])
def policy(request):
    with helpers.precision(request.param) as name:
        yield name


@pytest.mark.keras_2
def test_a_step_is_nearly_that_of_full_precision(policy):
    dataset, _, _ = make_dataset(batch=7)
    steps = {}
    for name in (policy, "float32"):
        tf.keras.mixed_precision.set_global_policy(name)
        model = make_model(losses.SmoothINDCGLoss(alpha=10.0))
        before = model.get_weights()
        model.fit(dataset, verbose=0)
        steps[name] = [after - weight for after, weight in zip(model.get_weights(), before, strict=True)]
    tf.keras.mixed_precision.set_global_policy(policy)
    assert any((ours != theirs).any() for ours, theirs in zip(*steps.values(), strict=True))  # half precision was used
    size = max(np.abs(step).max() for step in steps["float32"])
    assert size > 1e-2
    tolerance = {"mixed_float16": 0.01, "mixed_bfloat16": 0.08}[policy] * size
    helpers.assert_same(steps[policy], steps["float32"], rtol=1e-7, atol=tolerance)


def test_scores_in_half_precision_get_the_float32_gradient(policy):
    """For a scorer that does not cast its scores to float32. Half precision would round sums of differences."""
    _, _, labels = make_dataset()
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
