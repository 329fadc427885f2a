"""Losses and metrics of labels of several objectives: weighted sums of those of each label."""

import json

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import a_batch, assert_same, in_graph, value_and_gradient
from tfr_smooth import losses, metrics

FIRST, SCORES = a_batch()
SECOND = (a_batch(seed=1)[0] > 2.0).astype(np.float32)  # binary and rare
SECOND[0] = 0.0  # a list without a purchase
FIRST[-1, 5:] = SECOND[-1, 5:] = -1.0
LABELS = np.stack([FIRST, SECOND], axis=2)
WEIGHTS = [1.0, 0.3]
DOCUMENT_WEIGHTS = np.random.default_rng(0).uniform(0.5, 2.0, SCORES.shape).astype(np.float32)


def single(name, reduction, labels, weight=None):
    return value_and_gradient(losses.get(name, reduction=reduction), labels, SCORES, weight)


@pytest.mark.parametrize("reduction", ["none", "sum", "sum_over_batch_size", "mean_with_sample_weight"])
def test_weights_1_and_0_are_the_loss_of_one_label_exactly(reduction):
    for sample_weight in (None, DOCUMENT_WEIGHTS):
        for weights, labels in (([1.0, 0.0], FIRST), ([0.0, 1.0], SECOND)):
            loss = losses.MultiObjectiveLoss("softmax", weights=weights, reduction=reduction)
            expected = single("softmax", reduction, labels, sample_weight)
            assert_same(value_and_gradient(loss, LABELS, SCORES, sample_weight), expected)


@pytest.mark.parametrize(("names", "reduction"), [("softmax", "sum"), (["softmax", "mean_squared"], "none")])
def test_value_and_gradient_are_the_sums_of_those_of_the_labels(names, reduction):
    loss = losses.MultiObjectiveLoss(names, weights=WEIGHTS, reduction=reduction)
    parts = [names] * 2 if isinstance(names, str) else names
    first, second = (
        single(part, reduction, labels, DOCUMENT_WEIGHTS) for part, labels in zip(parts, (FIRST, SECOND), strict=True)
    )
    value, gradient = value_and_gradient(loss, LABELS, SCORES, DOCUMENT_WEIGHTS)
    np.testing.assert_allclose(value, first[0] + 0.3 * second[0], rtol=1e-6)
    np.testing.assert_allclose(gradient, first[1] + 0.3 * second[1], rtol=1e-5, atol=1e-7)


def test_the_mean_is_over_lists_that_any_objective_includes():
    loss = losses.MultiObjectiveLoss("softmax", weights=WEIGHTS)
    first, second = single("softmax", "none", FIRST)[0], single("softmax", "none", SECOND)[0]
    assert second[0] == 0.0 < first[0]
    turned = losses.MultiObjectiveLoss("softmax", weights=WEIGHTS[::-1])
    for value in (loss(LABELS, SCORES), turned(LABELS[..., ::-1], SCORES)):
        np.testing.assert_allclose(float(value), np.mean(first + 0.3 * second), rtol=1e-6)
    nothing = np.zeros_like(LABELS)
    value, gradient = value_and_gradient(loss, nothing, SCORES)
    assert value == 0.0 and not gradient.any()


@pytest.mark.slow
def test_the_value_is_the_same_in_graphs():
    loss = losses.MultiObjectiveLoss("softmax", weights=WEIGHTS)
    eager = value_and_gradient(loss, LABELS, SCORES)
    unknown = [tf.TensorSpec([None, None, 2]), tf.TensorSpec([None, None])]
    for options in ({}, {"jit_compile": True, "input_signature": unknown}):
        assert_same(in_graph(loss, LABELS, SCORES, **options), eager, rtol=1e-4, atol=1e-6)


def test_padding_of_one_objective_is_padding_for_it_only():
    unknown = SECOND.copy()
    unknown[:, 3] = -1.0
    labels, scores = np.stack([FIRST, unknown], axis=2), SCORES.copy()
    loss = losses.MultiObjectiveLoss("softmax", weights=WEIGHTS, reduction="none")
    expected = single("softmax", "none", FIRST)[0] + 0.3 * single("softmax", "none", unknown)[0]
    np.testing.assert_allclose(loss(labels, scores), expected, rtol=1e-6)
    scores[-1, 5:] = np.nan  # padding of both
    value, gradient = value_and_gradient(loss, labels, scores)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    assert np.isfinite(gradient).all() and not gradient[-1, 5:].any()


def test_ragged_labels_and_dicts_are_those_of_the_padded_batch():
    loss = losses.MultiObjectiveLoss("softmax", weights=WEIGHTS)
    real = FIRST >= 0.0
    ragged = [tf.RaggedTensor.from_row_lengths(each[real], real.sum(axis=1)) for each in (LABELS, SCORES)]
    expected = float(loss(LABELS, SCORES))
    found = losses.MultiObjectiveLoss("softmax", weights=WEIGHTS, ragged=True)(*ragged)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    found = loss({"labels": np.maximum(LABELS, 0.0), "mask": real}, SCORES)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_metric_is_the_weighted_mean_over_labels():
    metric = metrics.MultiObjectiveMetric(metrics.NDCGMetric(topn=3), weights=WEIGHTS)
    assert metric.name == metrics.NDCGMetric(topn=3).name
    each = [metrics.NDCGMetric(topn=3), metrics.NDCGMetric(topn=3)]
    for half in (slice(0, 2), slice(2, None)):
        metric.update_state(LABELS[half], SCORES[half])
        for of_one, labels in zip(each, (FIRST, SECOND), strict=True):
            of_one.update_state(labels[half], SCORES[half])
    first, second = (float(of_one.result()) for of_one in each)
    np.testing.assert_allclose(float(metric.result()), (first + 0.3 * second) / 1.3, rtol=1e-6)
    assert [float(of_one.result()) for of_one in metric.objectives] == [first, second]
    metric.reset_state()
    assert float(metric.result()) == 0.0


def test_configs_contain_the_losses_and_the_metric():
    loss = losses.MultiObjectiveLoss(["softmax", losses.get("approx_ndcg@3", alpha=2.0)], weights=WEIGHTS)
    config = json.loads(json.dumps(tf.keras.losses.serialize(loss)))
    for again in (losses.get(config), tf.keras.losses.deserialize(config)):
        assert again.get_config() == loss.get_config() and float(again(LABELS, SCORES)) == float(loss(LABELS, SCORES))
    metric = metrics.MultiObjectiveMetric(metrics.NDCGMetric(topn=3), weights=WEIGHTS)
    again = tf.keras.metrics.deserialize(json.loads(json.dumps(tf.keras.metrics.serialize(metric))))
    assert again.get_config() == metric.get_config()


def test_bad_arguments_are_named():
    loss = losses.MultiObjectiveLoss("softmax", weights=WEIGHTS)
    for make, message in (
        (lambda: losses.MultiObjectiveLoss("softmax", weights=[]), r"`weights` must be a sequence of numbers >= 0"),
        (lambda: losses.MultiObjectiveLoss("softmax", weights=[0.0, 0]), "`weights` must be .* one is above 0, got"),
        (lambda: losses.MultiObjectiveLoss(["softmax"], weights=[1.0, 1.0]), "one entry per loss, 1, got 2"),
        (lambda: loss(FIRST, SCORES), r"`labels` must have the shape \[batch, list, 2\], .*, got \(5, 9\)"),
        (lambda: loss(LABELS[:, :, :1], SCORES), r"\[batch, list, 2\], one per objective, got \(5, 9, 1\)"),
        (lambda: metrics.MultiObjectiveMetric("ndcg", weights=[1.0]), "`metric` must be an instance of"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
