"""Layers of both libraries side by side, with the differences that docs/tf_ranking.md lists."""

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import keras_ranking, models

tfr = helpers.tf_ranking(module=True)
theirs = tfr.keras.layers
LOG = np.float32(np.log(1e-10))
SIZES = [3, 5, 1]


def batch(seed=0, length=5):
    """Context features, example features and the mask of lists with padding at their end."""
    random = np.random.RandomState(seed)
    context = {"b": random.randn(3, 2), "a": random.randn(3, 1)}
    examples = {"d": random.randn(3, length, 3), "c": random.randn(3, length, 1)}
    groups = tf.nest.map_structure(lambda each: tf.constant(each, tf.float32), (context, examples))
    return *groups, tf.constant(np.arange(length) < np.array(SIZES)[:, np.newaxis])


def check_equal(ours, others):
    tf.nest.assert_same_structure(ours, others)
    helpers.assert_same(tf.nest.flatten(ours), tf.nest.flatten(others), rtol=1e-6, atol=1e-6)


def test_flattened_concatenated_and_restored_lists_are_equal():
    scores = tf.random.stateless_normal([15, 1], [1, 2])
    for flag in (True, False):
        for name in ("FlattenList", "ConcatFeatures"):
            layers = [getattr(package, name)(circular_padding=flag) for package in (models, theirs)]
            check_equal(*(layer(batch()) for layer in layers))
        check_equal(*(package.RestoreList(by_scatter=flag)((scores, batch()[2])) for package in (models, theirs)))


@pytest.mark.parametrize(("arguments", "training"), [((1, 8), True), ((2, 4, 3), False)])
def test_attention_is_equal_with_the_same_weights(arguments, training):
    _, examples, mask = batch()
    layers = [package.DocumentInteractionAttention(*arguments, dropout=0.0) for package in (models, theirs)]
    for layer in layers:
        layer((examples["d"], mask), training=False)
    random = np.random.RandomState(3)
    weights = [0.5 * random.randn(*each.shape) for each in layers[1].get_weights()]
    outputs = []
    for layer in layers:
        layer.set_weights(weights)
        outputs.append(tf.boolean_mask(layer((examples["d"], mask), training=training), mask))
    check_equal(*outputs)


def test_additive_models_are_equal_with_the_same_weights():
    random = np.random.RandomState(4)
    inputs = [tf.constant(random.randn(6, width), tf.float32) for width in (1, 3, 2, 1)]
    examples, context = inputs[:2], inputs[2:]
    layers = [package.GAMLayer(2, [3, 2], 2, [4], activation="relu", dropout=0.0) for package in (models, theirs)]
    for layer in layers:
        layer((examples, context), training=False)
    weights = [np.abs(random.randn(*each.shape)) for each in layers[1].get_weights()]
    outputs = []
    for layer in layers:
        layer.set_weights(weights)
        calls = [layer((examples, given), training=training) for training in (True, False) for given in (context, None)]
        outputs.append(tf.nest.flatten([calls, layer.weights]))
    check_equal(*outputs)


def test_towers_are_equal_with_the_same_weights():
    arguments = {"activation": "relu", "input_batch_norm": True, "dropout": 0.0}
    towers = [package.create_tower([4, 3], 2, **arguments) for package in (models, theirs)]
    inputs = tf.random.stateless_normal([2, 5, 3], [1, 2])
    for tower in towers:
        tower(inputs)
    towers[0].set_weights(towers[1].get_weights())
    check_equal(*([tower(inputs), tower(inputs, training=True)] for tower in towers))


# Each test below covers differences that the page lists.


def test_padding_before_documents_moves_scores_in_tf_ranking():
    mask, feature = tf.constant([[True, False, True]]), tf.constant([[[1.0], [2.0], [3.0]]])
    found = []
    for package in (models, theirs):
        rows = package.FlattenList()(({}, {"x": feature}, mask))[1]["x"]
        found.append(package.RestoreList()((rows, mask)).numpy()[0])
    np.testing.assert_allclose(found, [[1.0, LOG, 3.0], [1.0, LOG, 1.0]])


def test_lists_of_padding_have_a_score_with_by_scatter_and_nan_reaches_rows_in_tf_ranking():
    mask, logits = tf.constant([[False, False]]), tf.constant([1.0, 2.0])
    ours, others = (package.RestoreList(by_scatter=True)((logits, mask)) for package in (models, theirs))
    np.testing.assert_allclose([ours[0], others[0]], [[LOG, LOG], [1.5, LOG]])
    missing = ({}, {"x": tf.fill([1, 2, 1], np.nan)}, mask)
    ours, others = (package.FlattenList()(missing)[1]["x"] for package in (models, theirs))
    assert (ours == 0.0).numpy().all() and np.isnan(others).all()


def test_nan_at_padding_reaches_all_documents_of_the_attention_of_tf_ranking():
    documents, mask = tf.constant([[[1.0], [2.0], [np.nan]]]), tf.constant([[True, True, False]])
    layers = (package.DocumentInteractionAttention(1, 4, dropout=0.0) for package in (models, theirs))
    ours, others = (layer((documents, mask), training=False) for layer in layers)
    assert np.isfinite(ours).all() and np.isnan(others).all()


def test_attention_without_training_drops_out_in_tf_ranking():
    documents = tf.random.stateless_normal([2, 3, 4], [1, 2])
    for package, random in ((models, False), (theirs, True)):
        layer = package.DocumentInteractionAttention(1, 8)
        assert np.array_equal(layer((documents, None)), layer((documents, None))) != random


# keras_ranking.


def test_features_are_sorted_in_the_same_order():
    scores, mask = tf.random.stateless_normal([3, 5], [1, 2]), batch()[2]
    features = [tf.reshape(tf.range(15), [3, 5]), tf.random.stateless_normal([3, 5, 2], [1, 3])]
    for arguments in ({}, {"topn": 2}, {"topn": 9}):
        ours, others = (each.utils.sort_by_scores(scores, features, **arguments) for each in (keras_ranking, tfr))
        check_equal(ours, others)
    ours, others = (each.utils.sort_by_scores(scores, features[:1], mask=mask)[0] for each in (keras_ranking, tfr))
    for one, other, size in zip(ours.numpy(), others.numpy(), SIZES, strict=True):
        np.testing.assert_array_equal(one[:size], other[:size])
