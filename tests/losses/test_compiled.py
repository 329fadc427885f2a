"""Losses that XLA compiles in graphs: which, when, how often, and that nothing but time tells."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tests.losses.test_properties import NAMES, a_batch, get, in_a_graph, pad, value_and_gradient
from tfr_smooth import functional, losses, ops
from tfr_smooth.losses import compiled

COMPILED = [name for name in NAMES if get(name).passes_over_pairs()]
UNKNOWN = [tf.TensorSpec([None, None])] * 2


@pytest.fixture
def programs(monkeypatch):
    """The losses that are handed to XLA, one entry a traced call; all batches count as large."""
    seen = []
    program = compiled._program

    def counting(labels, scores, *, named):
        seen.append(named)
        return program(labels, scores, named=named)

    monkeypatch.setattr(compiled, "_program", counting)
    monkeypatch.setattr(compiled, "LEAST_PAIRS", 0)
    return seen


def test_those_are_compiled_that_pass_over_all_pairs():
    assert {"lambda_loss", "rank_net", "soft_ndcg", "approx_precision", "neuralsort_map", "sinkhorn_err"} < {*COMPILED}
    others = {"fastsort_ndcg", "list_net", "list_mle", "neuralsort_precision", "softsort_precision"}
    assert not others & {*COMPILED}


def test_smoothi_is_compiled_whatever_the_batch_unless_the_recursion_is_differentiated():
    assert losses.SmoothIPrecisionLoss().passes_over_pairs() == math.inf
    assert losses.SmoothIPrecisionLoss(stop_gradient=False).passes_over_pairs() == 0


@pytest.mark.parametrize(("name", "signature"), [("rank_net", None), *((name, UNKNOWN) for name in COMPILED)])
def test_the_same_as_in_eager_mode(name, signature, programs):
    labels, scores = pad(a_batch()[0], 2, -1.0), pad(a_batch()[1], 2, np.nan)
    labels[4] = -1.0  # a list of padding only
    scores[0, :3] = scores[0, 0]  # ties
    value, gradient = in_a_graph(get(name), labels, scores, input_signature=signature)
    assert len(programs) == (2 if name.startswith("smoothi") else 1)  # SmoothI's are for two precisions.
    expected, expected_gradient = value_and_gradient(get(name), labels, scores)
    np.testing.assert_allclose(value, expected, rtol=2e-6)
    np.testing.assert_allclose(gradient, expected_gradient, atol=1e-5 * np.abs(expected_gradient).max())


def test_only_large_batches_are_compiled(programs, monkeypatch):
    monkeypatch.setattr(compiled, "LEAST_PAIRS", 100)
    ran = []
    program = compiled._program

    def running(labels, scores, *, named):
        tf.py_function(lambda: ran.append(1), [], [])
        return program(labels, scores, named=named)

    monkeypatch.setattr(compiled, "_program", running)
    for lists, documents, large in ((3, 5, False), (4, 5, True), (1, 10, True), (1, 9, False)):
        for signature in (None, UNKNOWN):
            ran.clear()
            in_a_graph(losses.RankNetLoss(), *a_batch(batch=lists, length=documents), input_signature=signature)
            assert bool(ran) == large, (lists, documents, signature)


def test_the_size_of_a_batch_does_not_overflow(programs, monkeypatch):
    monkeypatch.setattr(compiled, "LEAST_PAIRS", 2**20)
    assert int(compiled._pairs(tf.constant(512), tf.constant(2048))) == 2**31
    assert int(compiled._pairs(512, tf.constant(2048))) == compiled._pairs(512, 2048) == 2**31


def test_eager_calls_are_not_compiled(programs):
    value_and_gradient(losses.RankNetLoss(), *a_batch())
    assert programs == []


def test_losses_that_compute_the_same_share_a_program(programs):
    for loss in (losses.ApproxNDCGLoss(alpha=3.0), losses.ApproxNDCGLoss(alpha=3.0, reduction="sum", name="other")):
        in_a_graph(loss, *a_batch())
    in_a_graph(losses.ApproxNDCGLoss(alpha=4.0), *a_batch())
    first, second, third = programs
    assert first == second != third
    assert hash(first) == hash(second)


@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "none"])
def test_weights_and_reductions_are_those_of_eager_mode(reduction, programs):
    loss, weights = losses.ApproxNDCGLoss(reduction=reduction), np.array([1.0, 2.0, 0.5], "f")
    labels, scores = a_batch(batch=3)
    labels[2] = -1.0
    expected = value_and_gradient(loss, labels, scores, weights)
    found = in_a_graph(loss, labels, scores, tf.constant(weights))
    assert len(programs) == 1
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_scaled_half_precision_gradients_do_not_underflow(programs):
    labels, scores = a_batch()
    scores = tf.constant(scores + 20.0 * labels, tf.float16)  # well ordered: hardly any gradient
    tiny = value_and_gradient(losses.RankNetLoss(), labels, tf.cast(scores, tf.float32))[1]
    assert 0.0 < np.abs(tiny).max() < 2.0**-15

    @tf.function
    def step(scores):
        with tf.GradientTape() as tape:
            tape.watch(scores)
            value = 2.0**15 * losses.RankNetLoss()(labels, scores)
        return tape.gradient(value, scores)

    np.testing.assert_allclose(step(scores), 2.0**15 * tiny, rtol=2e-2, atol=1e-6)
    assert len(programs) == 1


@pytest.mark.parametrize(("spread", "expected"), [(1.0, tf.float32), (40.0, tf.float64)])
def test_smoothi_runs_the_program_of_the_precision_that_the_scores_need(spread, expected, programs, monkeypatch):
    ran = []
    program = compiled._program

    def running(labels, scores, *, named):
        tf.py_function(lambda: ran.append(named.loss.ranking._precision), [], [])
        return program(labels, scores, named=named)

    monkeypatch.setattr(compiled, "_program", running)
    labels, scores = a_batch()
    scores *= spread / np.ptp(scores, axis=1).max()
    found = in_a_graph(losses.SmoothINDCGLoss(), labels, scores)
    assert ran == [expected]
    for one, other in zip(found, value_and_gradient(losses.SmoothINDCGLoss(), labels, scores), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("order", [(np.float32, np.float64), (np.float64, np.float32)])
def test_float64_scores_are_computed_in_float64_whatever_came_before(order):
    labels, scores = a_batch()
    loss = losses.SmoothINDCGLoss(alpha=1.1 if order[0] == np.float32 else 1.2)  # that no other test has compiled
    found = {dtype: in_a_graph(loss, labels, scores.astype(dtype)) for dtype in order}
    expected = value_and_gradient(loss, labels, scores.astype(np.float64))
    assert found[np.float64][0].dtype == np.float64
    for dtype, error in ((np.float64, 1e-12), (np.float32, 1e-5)):
        for one, other in zip(found[dtype], expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=error, atol=0.1 * error)


def test_what_a_subclass_overrides_is_compiled(programs):
    class Halved(losses.SmoothINDCGLoss):
        def list_losses(self, labels, scores):
            values, counts = super().list_losses(labels, scores)
            return 0.5 * values, counts

    class Other(ops.SmoothI):
        def gained(self, *arguments, **named):
            return 0.5 * super().gained(*arguments, **named)

    batch = a_batch()
    for loss in (Halved(), losses.MetricLoss(Other(), functional.NDCG())):
        for one, other in zip(in_a_graph(loss, *batch), value_and_gradient(loss, *batch), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)
    assert len(programs) == 2


def test_a_second_derivative_is_refused(programs):
    @tf.function
    def second(labels, scores):
        with tf.GradientTape() as outer:
            outer.watch(scores)
            with tf.GradientTape() as tape:
                tape.watch(scores)
                value = losses.RankNetLoss()(labels, scores)
            slope = tf.reduce_sum(tape.gradient(value, scores) ** 2)
        return outer.gradient(slope, scores)

    with pytest.raises(NotImplementedError, match="has no second derivative"):
        second(*map(tf.constant, a_batch()))


def test_losses_whose_config_tells_nothing_share_no_program(programs):
    class Mine(losses.RankNetLoss):
        def get_config(self):
            return {**super().get_config(), "part": object()}

    mine = Mine()
    in_a_graph(mine, *a_batch())
    in_a_graph(mine, *a_batch())
    in_a_graph(Mine(), *a_batch())
    assert programs[0] == programs[1] != programs[2]


def test_a_class_defined_again_under_its_name_is_compiled_again(programs):
    """As when the cell of a notebook is edited and run again."""

    def loss(factor):
        class Mine(ops.Approx):
            def positions(self, *arguments, **named):
                return factor * super().positions(*arguments, **named)

        return losses.MetricLoss(Mine(), functional.NDCG())

    expected = [loss(factor)(*a_batch()) for factor in (1.0, 1.5)]
    assert abs(expected[0] - expected[1]) > 0.01
    for factor, value in zip((1.0, 1.5), expected, strict=True):
        found = in_a_graph(loss(factor), *a_batch())
        np.testing.assert_allclose(found[0], value, rtol=1e-6)
    assert programs[0] != programs[1]


def test_a_discount_of_ones_own_is_compiled(programs):
    for discount in ([1.0, 0.5, 0.25], [1.0, 0.5]):
        loss = losses.MetricLoss(ops.SoftRank(), functional.NDCG(discount=discount))
        found = in_a_graph(loss, *a_batch())
        np.testing.assert_allclose(found[0], loss(*a_batch()), rtol=1e-6)
    assert programs[0] != programs[1]
