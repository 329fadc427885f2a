"""Losses of several scores per document."""

import json
import re

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import references, value_and_gradient
from tfr_smooth import losses

NUM_SCORES = {"click_em": 2, "dual_learning": 2, "mixture_em": 3, "ordinal": 3}
ARGUMENTS = {
    "click_em": {"exam_loss_weight": 0.5, "rel_loss_weight": 2.0},
    "dual_learning": {"max_weight": 3.0},
    "mixture_em": {"temperature": 0.7, "alpha": 0.5},
    "ordinal": {"ordinal_size": 3, "use_fraction_label": True},
}
BAD = {
    "click_em": {"exam_loss_weight": -1.0, "rel_loss_weight": None},
    "dual_learning": {"max_weight": 0.5},
    "mixture_em": {"alpha": -0.1, "temperature": 0.0},
    "ordinal": {"ordinal_size": 0, "use_fraction_label": 1},
}
every_loss = pytest.mark.parametrize("name", NUM_SCORES)


def batch(name, dtype=np.float32):
    """Labels and scores of four lists of six documents."""
    random = np.random.RandomState(0)
    labels = random.randint(0, 4, (4, 6)) if name == "ordinal" else random.randint(0, 2, (4, 6))
    labels[:, 0] = 1
    return labels.astype(dtype), random.randn(4, 6, NUM_SCORES[name]).astype(dtype)


def get(name, **options):
    return losses.get(name, **ARGUMENTS[name], reduction="none", **options)


def cross_entropy(target, logit):
    return target * np.logaddexp(0.0, -logit) + (1.0 - target) * np.logaddexp(0.0, logit)


def click_em(labels, scores, exam_loss_weight, rel_loss_weight):
    """Wang et al. 2018, Eq. 2: the posterior probabilities from those of the model."""
    exam, relevance = references.sigmoid(scores[:, 0]), references.sigmoid(scores[:, 1])
    neither = 1.0 - exam * relevance
    examined = np.where(labels >= 1.0, 1.0, exam * (1.0 - relevance) / neither)
    relevant = np.where(labels >= 1.0, 1.0, relevance * (1.0 - exam) / neither)
    found = exam_loss_weight * cross_entropy(examined, scores[:, 0])
    return np.mean(found + rel_loss_weight * cross_entropy(relevant, scores[:, 1]))


def dual_learning(labels, scores, max_weight):
    """Ai et al. 2018, the losses of the ranker and of the propensity model, relative to the highest probability."""
    exam, relevance = references.softmax(scores[:, 0]), references.softmax(scores[:, 1])
    of_ranker = np.minimum(exam.max() / exam, max_weight) * np.log(relevance)
    of_examination = np.minimum(relevance.max() / relevance, max_weight) * np.log(exam)
    return -np.sum(labels * (of_ranker + of_examination))


def mixture_em(labels, scores, temperature, alpha):
    of_models = cross_entropy(labels[:, None], scores / temperature).sum(axis=0)
    return (references.softmax(-alpha * of_models) * of_models).sum()


def ordinal(labels, scores, ordinal_size, use_fraction_label):
    targets = np.clip(labels[:, None] - np.arange(ordinal_size), 0.0, 1.0)
    return cross_entropy(targets if use_fraction_label else np.floor(targets), scores).sum(axis=1).mean()


REFERENCES = {"click_em": click_em, "dual_learning": dual_learning, "mixture_em": mixture_em, "ordinal": ordinal}


@every_loss
def test_values_equal_the_reference(name):
    labels, scores = batch(name, np.float64)
    labels[1] *= 0.8 if name == "ordinal" else 1.0
    plain = {**ARGUMENTS[name], **({"use_fraction_label": False} if name == "ordinal" else {})}
    for arguments in (ARGUMENTS[name], plain):
        expected = [REFERENCES[name](*row, **arguments) for row in zip(labels, scores, strict=True)]
        found = losses.get(name, **arguments, reduction="none")(labels, scores)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert losses.get(name, **arguments)(labels, scores).numpy() == pytest.approx(np.mean(expected))


@every_loss
def test_gradients_keep_the_posterior_probabilities_constant(name):
    labels, scores = batch(name, np.float64)
    gradient = value_and_gradient(get(name), labels, scores)[1]
    sigmoids = references.sigmoid(scores / ARGUMENTS[name].get("temperature", 1.0))
    if name == "ordinal":
        expected = (sigmoids - np.clip(labels[:, :, None] - np.arange(3), 0.0, 1.0)) / 6.0
    elif name == "click_em":
        targets = sigmoids * (1.0 - sigmoids[:, :, ::-1]) / (1.0 - sigmoids.prod(axis=2, keepdims=True))
        targets = np.where(labels[:, :, None] >= 1.0, 1.0, targets)
        expected = np.array([0.5, 2.0]) * (sigmoids - targets) / 6.0
    elif name == "dual_learning":
        shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        weights = np.minimum(shares.max(axis=1, keepdims=True) / shares, 3.0)[:, :, ::-1] * labels[:, :, None]
        expected = weights.sum(axis=1, keepdims=True) * shares - weights
    else:
        of_models = cross_entropy(labels[:, :, None], scores / 0.7).sum(axis=1)
        models = np.array([references.softmax(-0.5 * row) for row in of_models])
        expected = models[:, None] * (sigmoids - labels[:, :, None]) / 0.7
    np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-12)


@every_loss
def test_padding_changes_nothing_and_permutations_permute_the_gradient(name):
    labels, scores = batch(name)
    expected = value_and_gradient(get(name), labels, scores)
    padded = np.insert(labels, [0, 3], -1.0, axis=1), np.insert(scores, [0, 3], np.nan, axis=1)
    value, gradient = value_and_gradient(get(name), *padded)
    np.testing.assert_allclose(value, expected[0], rtol=1e-6)
    real = padded[0][0] >= 0.0
    np.testing.assert_allclose(gradient[:, real], expected[1], rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(gradient[:, ~real], 0.0)
    order = np.random.RandomState(1).permutation(6)
    value, gradient = value_and_gradient(get(name), labels[:, order], scores[:, order])
    np.testing.assert_allclose(value, expected[0], rtol=1e-6)
    np.testing.assert_allclose(gradient, expected[1][:, order], rtol=1e-5, atol=1e-7)
    masked = {"labels": np.maximum(padded[0], 0.0), "mask": np.repeat(real[None], 4, axis=0)}
    np.testing.assert_allclose(get(name)(masked, padded[1]), expected[0], rtol=1e-6)
    # An empty list has no loss and no share in the mean.
    more = np.vstack([labels, np.full((1, 6), -1.0, "f")]), np.vstack([scores, np.full((1, *scores.shape[1:]), np.nan)])
    mean = losses.get(name, **ARGUMENTS[name])(np.float32(more[0]), np.float32(more[1]))
    np.testing.assert_allclose(mean, expected[0].mean(), rtol=1e-6)


@every_loss
def test_values_and_gradients_are_finite_for_extreme_scores_and_nan_for_a_list_with_nan(name):
    labels, scores = batch(name)
    for scale in (1e30, 3e38):
        value, gradient = value_and_gradient(get(name), labels, np.sign(scores) * np.float32(scale))
        assert np.isfinite(value).all() and np.isfinite(gradient).all() and (value > 1e13).all()
    scores[2, 1, -1], labels[3, 1] = np.nan, np.inf
    value, gradient = value_and_gradient(get(name), labels, scores)
    np.testing.assert_array_equal(np.isnan(value), [False, False, True, True])
    np.testing.assert_array_equal(np.isnan(gradient).any(axis=(1, 2)), [False, False, True, True])


@every_loss
def test_graphs_and_ragged_lists_equal_padded_lists_in_eager_mode(name):
    labels, scores = batch(name)
    lengths = [6, 3, 1, 5]
    ragged = [tf.RaggedTensor.from_tensor(array, lengths) for array in (labels, scores)]
    labels[np.arange(6) >= np.array(lengths)[:, None]] = -1.0
    expected = get(name)(labels, scores)
    np.testing.assert_allclose(get(name, ragged=True)(*ragged), expected, rtol=1e-6)
    unknown = [tf.TensorSpec([None, None]), tf.TensorSpec([None, None, NUM_SCORES[name]])]
    for options in ({"jit_compile": True}, {"input_signature": unknown}):
        found = tf.function(get(name), **options)(tf.constant(labels), tf.constant(scores))
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@every_loss
def test_config_and_bad_arguments(name):
    for argument, bad in BAD[name].items():
        with pytest.raises(ValueError, match=f"`{argument}` must be .*, got {bad!r}"):
            losses.get(name, **{argument: bad})
    loss = get(name, dtype="float64")
    config = json.loads(json.dumps(tf.keras.losses.serialize(loss)))
    for again in (losses.get(config), tf.keras.losses.deserialize(config)):
        assert type(again) is type(loss) and again.get_config() == loss.get_config()
    assert {**loss.get_config(), **ARGUMENTS[name]} == loss.get_config()


def test_scores_of_another_shape_are_refused():
    cases = ("click_em", (2, 3), "2"), ("click_em", (2, 3, 3), "2"), ("mixture_em", (2, 3), "scores")
    for name, shape, expected in (*cases, ("ordinal", (2, 3, 2), "3")):
        message = f"`scores` must have the shape [batch, list, {expected}], got {shape}."
        with pytest.raises(ValueError, match=re.escape(message)):
            get(name)(np.zeros((2, 3), "f"), np.zeros(shape, "f"))
