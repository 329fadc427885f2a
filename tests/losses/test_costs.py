"""Costs of the losses, counted instead of timed: loops over ranks, ranks, array sizes, operations."""

import math
import re

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import a_batch, assert_same, value_and_gradient
from tests.helpers.modes import step
from tfr_smooth import _compiled, losses
from tfr_smooth.losses import pairwise
from tfr_smooth.rankings import smoothi

ONE_PASS = [losses.SmoothINDCGLoss(), losses.SmoothIPrecisionLoss(topn=None)]
TWO_PASSES = [losses.SmoothIMAPLoss()]


def for_xla(loss, batch, length):
    """Returns the XLA program of value and gradient as text, for float64 scores, as float32 has two branches."""
    arrays = [tf.constant(array) for array in a_batch(batch=batch, length=length, dtype=np.float64)]
    program = tf.function(lambda *batch: step(loss)(*batch), jit_compile=True)
    return program.experimental_get_compiler_ir(*arrays)(stage="hlo")


def largest_array(program):
    shapes = re.findall(r"\b[fsu](?:8|16|32|64)\[([0-9,]+)\]", program)
    return max(math.prod(map(int, shape.split(","))) for shape in shapes)


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "passes"), [(ONE_PASS[0], 1), (TWO_PASSES[0], 2)])
def test_smoothi_has_few_loops_and_no_array_of_ranks_times_documents(loss, passes):
    lists, documents = 8, 64
    program = for_xla(loss, lists, documents)
    # With several cores, each loop is inside a loop over parts of the batch.
    loops = 1 if _compiled._cores() == 1 else 2
    assert len(re.findall(r" while\(", program)) == loops * passes
    # The ideal order compares each label with eight grades.
    assert largest_array(program) <= 8 * lists * documents < documents * lists * documents


@pytest.mark.slow
def test_memory_is_quadratic_in_the_list_at_most():
    """Also that of Yeti's loss, which has the pairs of few samples at a time."""
    for loss in (losses.SoftNDCGLoss(topn=3), losses.SoftNDCGLoss(discount="linear")):
        assert largest_array(for_xla(loss, 1, 64)) == 64**2
    documents, samples = 3000, 8
    assert largest_array(for_xla(losses.YetiLogisticLoss(), 1, documents)) <= 2**25 < samples * documents**2


@pytest.mark.parametrize("lists", [1, 5])
def test_losses_of_pairs_in_parts_equal_those_at_once(lists, monkeypatch):
    labels, scores = map(tf.constant, a_batch(batch=lists, length=11))
    mask, gains = labels >= 0.0, tf.nn.relu(labels)
    sums = losses.NDCGLambdaWeight().rank_sums(16)
    constants = labels, mask, labels, gains, sums, tf.constant(2.0), tf.constant(False)  # weights by label

    def loss(_, scores, __=None):
        return pairwise._weighted_logistic.__wrapped__(scores, *constants)  # not the trace that all losses share

    expected = value_and_gradient(loss, labels, scores)
    monkeypatch.setattr(pairwise, "_MOST_PAIRS", 2 * 16**2)
    found = value_and_gradient(loss, labels, scores)
    assert_same(found, expected, rtol=1e-6, atol=1e-7)


def test_smoothi_computes_no_rank_of_padding_nor_after_the_cutoff_nor_with_small_products():
    """The last product that is not small has the rank log(0.002 / (alpha max|S|)) / log(0.9): 78."""
    settings = smoothi._Settings(tf.constant(1.0, tf.float64), tf.constant(0.1, tf.float64), tf.constant(True))
    cases = ([60], 60, 60, False), ([100], 10, 10, False), ([1000], 1000, 78, True), ([7, 40], 300, 40, False)
    for documents, ranks, looped, has_tail in cases:
        mask = tf.sequence_mask(documents, max(documents))
        scores = tf.linspace(0.0, 7.0, max(documents)) * tf.cast(mask, tf.float32)
        if documents[0] < max(documents):  # The shorter list has the highest score.
            scores = tf.concat([scores[:, :1] + 7.0, scores[:, 1:] * 0.1], axis=1)
        is_sharp, *found = smoothi._plan(scores, mask, tf.zeros([1, ranks]), settings)
        assert (int(found[0]), bool(found[1]), bool(is_sharp)) == (looped, has_tail, False)


@pytest.mark.parametrize(("loss", "most"), [(x, 200) for x in ONE_PASS] + [(x, 250) for x in TWO_PASSES])
def test_the_graph_around_the_programs_is_small(loss, most):
    spec = tf.TensorSpec([None, None])
    operations = tf.function(step(loss)).get_concrete_function(spec, spec).graph.get_operations()
    assert len([operation for operation in operations if operation.type != "Const"]) < most
