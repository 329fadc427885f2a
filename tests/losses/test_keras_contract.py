"""What Keras passes to losses and metrics, and what it expects of them."""

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import check_run, checks, value_and_gradient
from tfr_smooth import _keras, losses, measures, metrics, rankings

LABELS = np.array([[2.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 3.0], [0.0, 0.0, 0.0, 0.0]], np.float32)
SCORES = np.array([[0.3, 1.2, -0.4, 0.1], [0.7, 0.1, -0.2, 0.5], [1.0, 2.0, 3.0, 4.0]], np.float32)
REAL = np.array([[True, True, True, False], [True, True, True, True], [True, False, True, True]])


@pytest.mark.keras_2
def test_scores_of_a_last_dense_layer_and_masks_of_labels_and_scores():
    """Scores are squeezed, and a mask beside the labels or of Keras marks padding."""
    scores = tf.constant(SCORES)
    scores._keras_mask = tf.constant(REAL)
    for each in (losses.ListNetLoss(), losses.get("softsort_ndcg"), metrics.NDCGMetric(), metrics.get("approx_err")):
        expected = value(each, np.where(REAL, LABELS, -1.0), SCORES)
        assert value(each, LABELS, SCORES[:, :, np.newaxis]) == value(each, LABELS, SCORES) != expected
        assert value(each, {"labels": LABELS, "mask": REAL}, SCORES) == expected
        assert value(each, LABELS, scores) == expected


def value(each, *batch):
    if isinstance(each, tf.keras.metrics.Metric):
        each.reset_state()
    return float(each(*batch))


def test_fit_shows_labels_that_are_no_number():
    labels = LABELS.copy()
    labels[1, 2] = np.nan
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", losses.ListNetLoss(), metrics=[metrics.NDCGMetric()])
    history = model.fit(np.ones([3, 4, 2], np.float32), labels, verbose=0).history
    assert np.isnan(history["loss"]) and np.isnan(history["ndcg"])


@pytest.mark.keras_2
def test_fit_reads_the_mask_of_an_embedding():
    ids = np.array([[1, 2, 3, 0], [2, 3, 1, 4], [4, 0, 1, 2]])
    model = tf.keras.Sequential([tf.keras.layers.Embedding(5, 3, mask_zero=True), tf.keras.layers.Dense(1)])
    model.compile("sgd", losses.ListNetLoss())
    model.fit(ids, LABELS, verbose=0)
    expected = losses.ListNetLoss()(np.where(ids > 0, LABELS, -1.0), model(ids)[:, :, 0].numpy())
    np.testing.assert_allclose(model.evaluate(ids, LABELS, verbose=0), expected, rtol=1e-5)


def test_unknown_keys_of_labels_raise():
    with pytest.raises(ValueError, match="`y_true` must be labels or a dict of 'labels' and 'mask', got the keys"):
        losses.ListNetLoss()({"label": LABELS}, SCORES)


@pytest.mark.keras_2
def test_float64_scores_and_policies_select_the_type_of_the_result():
    for name in ("softsort_ndcg", "list_mle"):
        for dtype in ("float64", "float32", tf.float16, "mixed_bfloat16"):
            loss, computed = losses.get(name, dtype=dtype), "float64" if dtype == "float64" else "float32"
            assert loss.dtype == loss.get_config()["dtype"] == computed
            found = loss(LABELS, tf.constant(SCORES, tf.float64 if computed == "float32" else tf.float32))
            assert found.dtype.name == computed
            np.testing.assert_allclose(found, losses.get(name)(LABELS, SCORES), rtol=1e-5)
    assert losses.ListNetLoss()(LABELS, tf.constant(SCORES, tf.float64)).dtype == tf.float64
    policy = tf.keras.mixed_precision.Policy("mixed_float16")
    assert losses.ListNetLoss(dtype=policy).dtype == "float32"
    with pytest.raises(ValueError, match="`dtype` must be a floating-point type or None, got 'int32'"):
        losses.ListNetLoss(dtype="int32")


@pytest.mark.parametrize("name", ["softsort_ndcg", pytest.param("list_net", marks=pytest.mark.keras_2)])
def test_mean_with_sample_weight_divides_by_the_weights_of_included_lists(name):
    subject = checks.SUBJECTS[name]
    labels, scores = subject.batch
    labels = np.vstack([labels, np.full((1, 6), -1.0, np.float32)])
    scores = np.vstack([scores, scores[:1]])
    weights = np.array([1.0, 2.0, 0.5, 3.0, 0.0, 9.0], np.float32)
    each = subject.each()(labels, scores).numpy()
    found, gradient = value_and_gradient(subject.loss(reduction="mean_with_sample_weight"), labels, scores, weights)
    np.testing.assert_allclose(found, np.average(each[:5], weights=weights[:5]), rtol=1e-5)
    _, of_sum = value_and_gradient(subject.loss(reduction="sum"), labels, scores, weights)
    np.testing.assert_allclose(gradient, of_sum / weights[:5].sum(), rtol=1e-5, atol=1e-7)
    without = subject.loss(reduction="mean_with_sample_weight")(labels, scores)
    np.testing.assert_allclose(without, subject.loss()(labels, scores), rtol=1e-6)


def test_losses_and_metrics_are_found_by_class_name_and_cutoff():
    for name, topn in (("smoothi_ndcg@3", 3), ("SmoothINDCGLoss@3", 3), ("ApproxNDCGLoss", None)):
        assert losses.get(name).measure.topn == topn
    assert metrics.get("ndcg@10").name == metrics.get("NDCGMetric@10").name == "ndcg_10"
    for bad in ("ndcg@", "ndcg@x", "ndcg@-1"):
        with pytest.raises(ValueError, match=f"`key` must be a name, or NAME@K without `topn`, got '{bad}'"):
            metrics.get(bad)


def test_repr_is_a_constructor_call():
    names = {**vars(losses), **vars(measures), **vars(rankings)}
    for loss in (
        losses.MeasureLoss(rankings.Approx(alpha=3.0), measures.NDCG(topn=2, discount=[1.0, 0.5])),
        losses.SoftNDCGLoss(discount=rankings.ShallowDiscount(-0.5)),
        losses.LambdaLoss(metric="precision", topn=3),
    ):
        again = eval(repr(loss), names)
        assert again.get_config() == loss.get_config() and repr(again) == repr(loss)


@pytest.mark.keras_2
@pytest.mark.slow
def test_the_mean_in_a_custom_loop_over_replicas_raises_in_keras_2():
    found = dict(line.split(": ", 1) for line in check_run("tests/losses/own_loop.py").splitlines())
    if _keras.IS_KERAS_3:
        assert found["sum_over_batch_size"] == "right"
    else:
        assert "tf.keras.losses.Reduction" in found["sum_over_batch_size"]
    assert found["sum"] == found["none"] == "right"


@pytest.mark.keras_2
@pytest.mark.slow
def test_an_own_model_takes_every_metric_by_get():
    names = [name for name in metrics.NAMES if name in metrics.METRICS]
    model = tf.keras.Sequential([tf.keras.Input((4, 2)), tf.keras.layers.Dense(1), tf.keras.layers.Reshape((4,))])
    model.compile("sgd", losses.ListNetLoss(), metrics=[metrics.get(name) for name in names])
    found = model.evaluate(np.ones((2, 4, 2)), np.float32([[1, 0, 2, 0]] * 2), return_dict=True, verbose=0)
    assert {metrics.get(name).name for name in names} <= set(found)
