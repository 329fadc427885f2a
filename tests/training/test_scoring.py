"""The scores of a dataset, query by query."""

import gc
import logging

import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth import models, training
from tfr_smooth.training import scoring


def batches(lengths, width=3):
    random = np.random.RandomState(0)
    for size, length in enumerate(lengths, start=2):
        mask = np.arange(length) < random.randint(1, length + 1, [size, 1])
        inputs = {"features": tf.constant(random.randn(size, length, width), tf.float32), "mask": tf.constant(mask)}
        ids = {
            "query_id": tf.constant([f"{length}-{i}" for i in range(size)]),
            "doc_id": tf.constant([[f"d{j}" for j in range(length)]] * size),
        }
        yield {**inputs, **ids}, tf.constant(np.where(mask, 1.0, -1.0), tf.float32)


@pytest.fixture
def warnings():
    """What TensorFlow logs."""
    messages = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    tf.get_logger().addHandler(handler)
    yield messages
    tf.get_logger().removeHandler(handler)


def test_scores_are_those_of_the_model():
    model = models.FeedForwardScorer(hidden=[4])
    queries = training.score_queries(model, batches([5, 3, 8]))
    for inputs, labels in batches([5, 3, 8]):
        expected = model(inputs, training=False).numpy()
        for row, mask in enumerate(inputs["mask"].numpy()):
            query = next(queries)
            assert query.query_id == inputs["query_id"][row].numpy().decode()
            np.testing.assert_allclose(query.scores, expected[row][mask], rtol=1e-5, atol=1e-6)
            np.testing.assert_array_equal(query.labels, labels[row][mask])
    assert next(queries, None) is None


def test_many_calls_trace_no_more_than_one_and_warn_of_nothing(warnings):
    several = [models.FeedForwardScorer(hidden=[4]) for _ in range(8)]
    counts = []
    for _ in range(20):
        list(training.score_queries(several[0], batches([5, 3, 8, 2])))
        counts.append(scoring._scorer(several[0]).experimental_get_tracing_count())
    for model in several:
        list(training.score_queries(model, batches([5, 3])))
    assert [message for message in warnings if "retracing" in message] == []
    assert counts == [counts[0]] * 20 and counts[0] <= 3


def test_scores_follow_the_weights():
    model = models.FeedForwardScorer(hidden=[])
    before = np.concatenate([query.scores for query in training.score_queries(model, batches([5]))])
    kernel = model.tower[-1].kernel
    kernel.assign(2.0 * kernel)
    after = np.concatenate([query.scores for query in training.score_queries(model, batches([5]))])
    np.testing.assert_allclose(after, 2.0 * before, rtol=1e-5)


def test_a_model_that_is_gone_leaves_nothing():
    gc.collect()
    before = len(scoring._scorers)
    model = models.FeedForwardScorer(hidden=[4])
    list(training.score_queries(model, batches([5])))
    assert len(scoring._scorers) == before + 1
    del model
    gc.collect()
    assert len(scoring._scorers) == before
