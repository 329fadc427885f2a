"""What the losses cost, counted and not timed: passes over the ranks, ranks, sizes of arrays, compilations, ops."""

import math
import re

import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth import functional, losses
from tfr_smooth.ops import compiled, smoothi_loops

ONE_PASS = [losses.SmoothINDCGLoss(), losses.SmoothIPrecisionLoss(topn=None), losses.SmoothINDCGLoss(topn=10)]
TWO_PASSES = [losses.SmoothIMAPLoss()]


def a_batch(lists, documents, dtype=np.float32):
    random = np.random.RandomState(0)
    return random.randint(0, 5, (lists, documents)).astype(dtype), random.randn(lists, documents).astype(dtype)


def step(loss, **kwargs):
    @tf.function(**kwargs)
    def value_and_gradient(labels, scores):
        with tf.GradientTape() as tape:
            tape.watch(scores)
            value = loss(labels, scores)
        return value, tape.gradient(value, scores)

    return value_and_gradient


def for_xla(loss, lists, documents):
    """The program that XLA gets for value and gradient, as text; of float64 scores, as float32 has two branches."""
    batch = [tf.constant(array) for array in a_batch(lists, documents, np.float64)]
    return step(loss, jit_compile=True).experimental_get_compiler_ir(*batch)(stage="hlo")


def largest_array(program):
    shapes = re.findall(r"\b[fsu](?:8|16|32|64)\[([0-9,]+)\]", program)
    return max(math.prod(map(int, shape.split(","))) for shape in shapes)


@pytest.mark.parametrize(("loss", "passes"), [(x, 1) for x in ONE_PASS] + [(x, 2) for x in TWO_PASSES])
def test_smoothi_passes_over_the_ranks_and_keeps_no_array_of_ranks_times_documents(loss, passes):
    lists, documents = 8, 64
    program = for_xla(loss, lists, documents)
    # One loop a pass, with one exponential of the batch's size in each. (NDCG has one over the levels of relevance.)
    assert len(re.findall(r" while\(", program)) == passes + isinstance(loss.metric, functional.NDCG)
    of_batch = rf"f64\[(?:{lists},{documents}|{documents},{lists})\]\S* exponential\("
    assert len(re.findall(of_batch, program)) == passes
    # The five moments that the closed form needs are summed at once.
    assert largest_array(program) == 5 * lists * documents


@pytest.fixture
def ranks_computed(monkeypatch):
    """The number of ranks that each call of a loop computes."""
    computed = []
    monkeypatch.setattr(compiled, "_has_xla", lambda: False)  # It knows no calls of Python.
    for name in ("_gain_and_slopes", "_found_at_ranks", "_slopes_of_found"):
        loop = getattr(smoothi_loops, name).__wrapped__

        def starting(*arguments, loop=loop, **constants):
            tf.py_function(lambda: computed.append(0), [], [])
            return loop(*arguments, **constants)

        monkeypatch.setattr(smoothi_loops, name, compiled.once_for_each_size(starting))
    step = smoothi_loops._Recursion.step

    def counting(recursion, factors):
        def count():
            computed[-1] += 1

        tf.py_function(count, [], [])
        return step(recursion, factors)

    monkeypatch.setattr(smoothi_loops._Recursion, "step", counting)
    return computed


def run(loss, labels, scores):
    scores = tf.constant(scores)
    with tf.GradientTape() as tape:
        tape.watch(scores)
        value = loss(labels, scores)
    tape.gradient(value, scores)


@pytest.mark.parametrize(
    ("loss", "documents", "expected"),
    [
        (losses.SmoothINDCGLoss(), 60, [60]),
        (losses.SmoothINDCGLoss(topn=10), 100, [10]),
        (losses.SmoothIPrecisionLoss(), 100, [10]),
        (losses.SmoothIMAPLoss(), 60, [60, 60]),
        # Those after them have a closed form: log(0.002 / (alpha max|S|)) / log(0.9), and max|S| is about 7.
        (losses.SmoothINDCGLoss(), 1000, [78]),
        (losses.SmoothINDCGLoss(alpha=0.1), 1000, [56]),
        (losses.SmoothIMAPLoss(), 1000, [78, 78]),
        (losses.SmoothINDCGLoss(delta=0.3), 1000, [23]),
    ],
)
def test_smoothi_computes_no_rank_after_those_that_count(loss, documents, expected, ranks_computed):
    run(loss, *a_batch(1, documents))
    assert len(ranks_computed) == len(expected)
    np.testing.assert_allclose(ranks_computed, expected, atol=0 if documents <= 100 else 3)


def test_smoothi_computes_no_rank_of_padding(ranks_computed):
    labels, scores = a_batch(4, 300)
    labels[:, 40:] = -1.0
    run(losses.SmoothINDCGLoss(), labels, scores)
    assert ranks_computed == [40]


def test_few_sizes_are_compiled_for_all_lengths_of_lists():
    assert len({compiled.padded_size(size) for size in range(1, 1252)}) == 25
    for size in range(1, 3000):
        padded = compiled.padded_size(size)
        assert size <= padded <= max(8, 1.25 * size + 1, size + 7)
        assert int(compiled.padded_size(tf.constant(size))) == padded


def test_lengths_of_one_size_are_one_compilation(monkeypatch):
    traced = []

    @compiled.once_for_each_size
    def double(values):
        traced.append(values.shape)
        return 2.0 * values

    for size in range(33, 41):
        grown = compiled.pad(tf.ones([3, size]))
        assert grown.shape == (8, 40)
        assert double(grown).shape == (8, 40)
    assert len(traced) == 1


@pytest.mark.parametrize(("loss", "most"), [(x, 350) for x in ONE_PASS] + [(x, 550) for x in TWO_PASSES])
def test_the_graph_around_the_loops_is_small(loss, most):
    spec = tf.TensorSpec([None, None])
    operations = step(loss).get_concrete_function(spec, spec).graph.get_operations()
    assert len([o for o in operations if o.type != "Const"]) < most


@pytest.mark.parametrize("loss", [losses.ListNetLoss(), losses.MeanSquaredLoss()])
def test_masking_takes_no_kernel_that_broadcasts(loss):
    """It takes three times as long as the one for arrays of one shape: a seventh of such a loss."""
    spec = tf.TensorSpec([16, 30])
    operations = step(loss).get_concrete_function(spec, spec).graph.get_operations()
    of_batch = [operation.type for operation in operations if spec.shape in [o.shape for o in operation.outputs]]
    assert "Select" in of_batch
    assert "SelectV2" not in of_batch
