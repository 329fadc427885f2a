"""Losses compute the same eagerly, in graphs of known and unknown shapes, with XLA, in `fit` and in SavedModels."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tests.helpers import a_batch, in_graph, modes, value_and_gradient
from tests.helpers.facts import RELAXATIONS
from tests.helpers.modes import quick_or_slow
from tfr_smooth import losses, measures, metrics, rankings

few_losses = quick_or_slow(modes.FEW, quick=("approx_err",))
assert_same = functools.partial(helpers.assert_same, rtol=1e-5, atol=1e-6)


class Powered(losses.ApproxNDCGLoss):
    """A custom loss that calls Python with an argument that is not in its config."""

    def __init__(self, exponent=1.0, **kwargs):
        super().__init__(**kwargs)
        self.exponent = exponent

    def compute(self, labels, scores, mask):
        exponent = tf.numpy_function(lambda: np.float32(self.exponent), [], tf.float32)
        return super().compute(labels, scores, mask) ** exponent


class Scaled(rankings.SmoothI):
    """A custom ranking with an attribute that is not a dataclass field."""

    factor = 1.0

    def discounted_gain(self, *arguments, **named):
        return super().discounted_gain(*arguments, **named) / self.factor


@pytest.mark.parametrize("part", ["loss", "ranking"])
def test_instances_of_a_custom_class_share_no_state(part):
    def make(value):
        ranking = Scaled()
        object.__setattr__(ranking, "factor", value)
        return Powered(value) if part == "loss" else losses.MeasureLoss(ranking, measures.NDCG())

    labels, scores = map(tf.constant, modes.batch())
    found = {}
    for value in (1.0, 4.0):
        found[value] = tf.function(modes.step(make(value)))(labels, scores)
        assert_same(found[value], modes.step(make(value))(labels, scores))
    assert abs(found[1.0][0] - found[4.0][0]) > 0.01


@pytest.mark.slow
def test_a_compiled_step_is_compiled_once():
    # Without the flag of the cache on disk, whose programs are not compiled.
    assert helpers.check_run("tests/losses/compiled.py", *modes.FEW, TF_XLA_FLAGS=None) == ""


@quick_or_slow(modes.SAMPLE)
def test_every_mode_computes_the_same(name):
    """Also for ties in list 1, and a NaN label in list 2, which makes only this list NaN."""
    labels, scores = modes.batch()
    scores[1, :3], labels[2, 1] = scores[1, 0], np.nan
    results = dict(modes.in_every_mode(losses.get(name, reduction="none"), labels, scores))
    for array in results["eager"]:
        np.testing.assert_array_equal(np.isnan(np.reshape(array, [4, -1])).any(axis=1), [False, False, True, False])
    for mode, found in results.items():
        assert_same(found, results["eager"], err_msg=mode)


@quick_or_slow(["approx_err", "sinkhorn_ndcg", "yeti_logistic"], quick=["approx_err"])
def test_labels_and_scores_may_have_different_static_shapes(name):
    labels, scores = map(tf.constant, modes.batch(lists=2))
    loss = losses.get(name)
    expected = modes.step(loss)(labels, scores)
    shapes = [([2, 7], [None, None]), ([None, 7], [2, None]), (None, None), ([2, 7], None)]
    for each in shapes:
        signature = [tf.TensorSpec(shape) for shape in each]
        step = tf.function(modes.step(loss), input_signature=signature)
        assert_same(step(labels, scores), expected, err_msg=str(each))


def test_weights_may_have_an_unknown_shape():
    labels, scores = map(tf.constant, modes.batch())
    loss, of_lists = losses.ListNetLoss(), tf.constant([0.5, 1.0, 2.0, 3.0])
    for spec, shape in ((None, [4, 1]), (None, [4, 7]), ([None, None], [4, 1]), ([None, None], [4, 7]), ([None], [4])):
        weights = of_lists if len(shape) == 1 else tf.broadcast_to(of_lists[:, tf.newaxis], shape)
        signature = [*modes.UNKNOWN, tf.TensorSpec(spec)]
        found = tf.function(modes.step(loss), input_signature=signature)(labels, scores, weights)
        assert_same(found, modes.step(loss)(labels, scores, weights), err_msg=f"{spec} {shape}")


def test_the_metric_of_lists_of_length_0_is_0():
    for name in (*measures.MEASURES, *measures.EXACT_ONLY, "softsort_map", "approx_ndcg", "sortingnetwork_err"):
        metric = metrics.get(name)
        metric.update_state(tf.zeros([2, 0]), tf.zeros([2, 0]))
        assert metric.result() == 0.0, name


@pytest.mark.slow
@few_losses
def test_losses_run_in_vectorized_map(name):
    # In float32, SmoothI chooses its precision in a branch, and TensorFlow cannot vectorize loops in unused branches.
    labels, scores = modes.batch(lists=6, dtype=np.float64 if name.startswith("smoothi") else np.float32)
    batches = [tf.reshape(tf.constant(array), [3, 2, 7]) for array in (labels, scores)]
    step = modes.step(losses.get(name))
    found = tf.vectorized_map(lambda pair: step(*pair), tuple(batches))
    for i in range(3):
        assert_same([part[i] for part in found], step(*(array[i] for array in batches)))


def test_trainable_variables_and_tensors_and_bad_values_of_variables_raise():
    constants = [tf.Variable(value, trainable=False) for value in (1, [1.0], -1.0)]
    for bad in (tf.Variable(1.0), tf.constant(1.0), *constants):
        with pytest.raises(ValueError, match=r"`temperature` must be .*number"):
            losses.ListNetLoss(temperature=bad)
        with pytest.raises(ValueError, match=r"`sigma` must be .*number"):
            rankings.SoftRank(sigma=bad)


@quick_or_slow(RELAXATIONS, quick=["softsort"])
@pytest.mark.slow
def test_a_temperature_may_be_a_variable_in_eager_mode_and_xla(name):
    labels, scores = map(tf.constant, modes.batch())
    name, temperature, step = f"{name}_ndcg", RELAXATIONS[name].temperature, modes.step
    variable = tf.Variable(0.5, trainable=False)
    loss = losses.get(name, **{temperature: variable})
    traced = [step(loss), tf.function(step(loss), jit_compile=True)]
    for number in (0.5, 3.0):
        variable.assign(number)
        constant = losses.get(name, **{temperature: number})
        assert constant.get_config() == loss.get_config() and repr(constant) == repr(loss)
        for function in traced:
            assert_same(function(labels, scores), step(constant)(labels, scores))


class Module(tf.Module):
    def __init__(self, loss):
        super().__init__()
        self.loss = loss

    @tf.function(input_signature=modes.UNKNOWN)
    def value(self, labels, scores):
        return self.loss(labels, scores)

    @tf.function(input_signature=modes.UNKNOWN)
    def value_and_gradient(self, labels, scores):
        return modes.step(self.loss)(labels, scores)


@few_losses
def test_a_restored_saved_model_computes_the_same(name, tmp_path):
    labels, scores = modes.batch()
    labels[2, 1] = np.nan
    loss, labels, scores = losses.get(name, reduction="none"), tf.constant(labels), tf.constant(scores)
    expected = modes.step(loss)(labels, scores)
    tf.saved_model.save(Module(loss), str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert_same(loaded.value_and_gradient(labels, scores), expected)
    # The gradient of the loaded function.
    assert_same(modes.step(loaded.value)(labels, scores), expected)


@quick_or_slow(["approx_ndcg", "soft_ndcg", "smoothi_ndcg", "lambda_loss"], quick=["lambda_loss"])
def test_ties_of_any_score_are_ties_in_every_mode(name):
    labels, scores = modes.batch(lists=16, documents=130)
    scores[:8], scores[8:] = 1e30, 12345.678
    results = dict(modes.in_every_mode(losses.get(name), labels, scores))
    near = losses.get(name)(labels, np.zeros_like(scores))
    for mode, (value, gradient) in results.items():
        np.testing.assert_allclose(value, near, rtol=5e-6, err_msg=mode)  # sums of 8,450 pairs
        np.testing.assert_allclose(gradient, results["eager"][1], rtol=1e-4, atol=1e-8, err_msg=mode)
        assert np.abs(gradient).max() > 0.0, mode


def test_losses_with_different_hyperparameters_share_programs(monkeypatch):
    traces = []
    function = tf.function

    def counting(traced, **kwargs):
        if kwargs.get("jit_compile"):
            traces.append(traced)
        return function(traced, **kwargs)

    monkeypatch.setattr(tf, "function", counting)
    labels, scores = map(tf.constant, modes.batch())
    for alpha in range(1, 21):
        modes.step(losses.ApproxNDCGLoss(alpha=float(alpha)))(labels, scores)
        modes.step(losses.SmoothINDCGLoss(alpha=float(alpha)))(labels, scores)
    # One program for values and one for gradients per argument types; fewer if an earlier test traced them.
    assert len(traces) <= 2 + 1


def test_scaled_half_precision_gradients_do_not_underflow():
    labels, scores = a_batch()
    scores = tf.constant(scores + 4.0 * labels, tf.float16)  # Well ordered, so the gradients are tiny.
    loss = losses.ApproxNDCGLoss(alpha=1.0)
    tiny = value_and_gradient(loss, labels, tf.cast(scores, tf.float32))[1]
    scaled = in_graph(lambda *batch: 2.0**12 * loss(*batch), labels, scores)[1]
    assert scaled.dtype == np.float16
    np.testing.assert_allclose(scaled, 2.0**12 * tiny, rtol=2e-2, atol=1e-4)
