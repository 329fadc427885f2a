"""FlattenList, RestoreList, ConcatFeatures and GAMLayer, called directly and in Keras models on both Keras versions."""

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import _keras, models

MASK = np.array([[True, True, False, False], [True] * 4, [False] * 4, [False, True, False, True]])
LOG = np.float32(np.log(1e-10))


def features(seed=0, padding=None):
    """Returns context features, example features and the mask."""
    random = np.random.RandomState(seed)
    context = {"b": random.randn(4, 2), "a": random.randn(4, 1)}
    examples = {"d": random.randn(4, 4, 3), "c": random.randn(4, 4, 1)}
    context, examples = (
        {name: each.astype(np.float32) for name, each in group.items()} for group in (context, examples)
    )
    if padding is not None:
        for each in examples.values():
            each[~MASK] = padding
    return tf.nest.map_structure(tf.constant, (context, examples, MASK))


def numpy_of(tensors):
    return tf.nest.map_structure(np.asarray, tensors)


# FlattenList.


def test_rows_contain_the_features_of_their_document_and_list():
    context, examples = numpy_of(models.FlattenList()(features()))
    given = numpy_of(features())
    for name, each in given[0].items():
        np.testing.assert_array_equal(context[name], np.repeat(each, 4, axis=0))
    # Padding contains real documents in a circular way; the list of padding its first position.
    documents = np.array([[0, 1, 0, 1], [0, 1, 2, 3], [0, 0, 0, 0], [1, 1, 1, 3]])
    documents[3, 0], documents[3, 2] = 1, 1
    for name, each in given[1].items():
        expected = np.stack([rows[order] for rows, order in zip(each, documents, strict=True)])
        np.testing.assert_array_equal(examples[name], expected.reshape(16, -1))
    examples = numpy_of(models.FlattenList(circular_padding=False)(features()))[1]
    np.testing.assert_array_equal(examples["d"], given[1]["d"].reshape(16, 3))


@pytest.mark.parametrize(
    ("layer", "circular"), [(models.FlattenList, True), (models.FlattenList, False), (models.ConcatFeatures, True)]
)
def test_padding_that_is_not_finite_reaches_no_row_and_no_gradient(layer, circular):
    context, examples, mask = features(padding=np.nan)
    with tf.GradientTape() as tape:
        tape.watch(examples)
        outputs = layer(circular_padding=circular)((context, examples, mask))
        total = tf.add_n([tf.reduce_sum(tf.square(each)) for each in tf.nest.flatten(outputs)])
    assert all(np.isfinite(each).all() for each in tf.nest.flatten([outputs, tape.gradient(total, examples)]))
    # NaN of a real document stays in its own row and in copies of it.
    values = np.array(numpy_of(features())[1]["d"])
    values[1, 2] = np.nan
    rows = layer(circular_padding=circular)(({}, {"d": tf.constant(values)}, mask))
    rows = rows if layer is models.ConcatFeatures else rows[1]["d"]
    missing = np.isnan(np.reshape(rows, [16, 3])).any(axis=1)
    assert np.flatnonzero(missing).tolist() == [6]


def test_concatenated_features_are_sorted_by_name_context_first():
    (context, examples, mask), given = features(), numpy_of(features())
    outputs = models.ConcatFeatures(circular_padding=False)((context, examples, mask))
    parts = [np.repeat(given[0][name][:, np.newaxis], 4, axis=1) for name in "ab"]
    np.testing.assert_array_equal(outputs, np.concatenate([*parts, given[1]["c"], given[1]["d"]], axis=2))
    rows = models.FlattenList()((context, examples, mask))
    circular = models.ConcatFeatures()((context, examples, mask))
    expected = np.concatenate([rows[0]["a"], rows[0]["b"], rows[1]["c"], rows[1]["d"]], axis=1)
    np.testing.assert_array_equal(circular, expected.reshape(4, 4, 7))


# RestoreList.


def test_scores_return_to_their_positions_or_by_scatter_are_averaged_over_the_rows_of_a_document():
    scores = np.arange(16, dtype=np.float32)
    for shape in ((16,), (16, 1)):
        restored = models.RestoreList()((tf.constant(scores.reshape(shape)), tf.constant(MASK)))
        np.testing.assert_array_equal(restored, np.where(MASK, scores.reshape(4, 4), LOG))
    restored = models.RestoreList(by_scatter=True)((tf.constant(scores), tf.constant(MASK)))
    expected = [[(0 + 2) / 2, (1 + 3) / 2, LOG, LOG], [4, 5, 6, 7], [LOG] * 4, [LOG, (12 + 13 + 14) / 3, LOG, 15]]
    np.testing.assert_allclose(restored, expected, rtol=1e-6)


@pytest.mark.parametrize("by_scatter", [False, True])
def test_lists_of_any_mask_survive_the_round_trip(by_scatter):
    """Also lists with padding at the start, where TF-Ranking assigns scores to other documents."""
    given = features()
    rows = models.FlattenList()(given)[1]["c"]
    restored = models.RestoreList(by_scatter=by_scatter)((rows, given[2]))
    np.testing.assert_allclose(restored, np.where(MASK, given[1]["c"][:, :, 0], LOG), rtol=1e-6)


@pytest.mark.parametrize("by_scatter", [False, True])
def test_gradients_of_restored_scores_are_finite_and_those_of_unused_rows_0(by_scatter):
    scores = tf.where(tf.reshape(tf.repeat(tf.reduce_any(MASK, 1), 4), [-1]), tf.range(16.0), np.nan)
    with tf.GradientTape() as tape:
        tape.watch(scores)
        restored = models.RestoreList(by_scatter=by_scatter)((scores, tf.constant(MASK)))
        total = tf.reduce_sum(tf.where(MASK, restored, 0.0))
    gradient = tape.gradient(total, scores).numpy().reshape(4, 4)
    expected = [[0.5] * 4, [1.0] * 4, [0.0] * 4, [1 / 3] * 3 + [1.0]] if by_scatter else MASK
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)


def test_errors_name_the_argument():
    one, mask = [tf.ones([2, 1])], tf.constant(MASK)
    cases = [
        (lambda: models.FlattenList(circular_padding=1), "`circular_padding` must be True or False, got 1."),
        (lambda: models.FlattenList()(({}, {}, mask)), "`example_features` must contain at least one featu"),
        (lambda: models.RestoreList()((tf.zeros([4, 4, 2]), mask)), "`flattened_logits` must have the shape [batch"),
        (lambda: models.ListAttention(heads=0), "`heads` must be an integer >= 1, got 0."),
        (lambda: models.GAMLayer(0, [2]), "`example_feature_num` must be an integer >= 1, got 0."),
        (lambda: models.GAMLayer(1, [2], 2), "`context_hidden_layer_dims` must contain at least one width for "),
        (lambda: gam()((one, None)), "`example_inputs` must contain `example_feature_num` = 2 tensors, g"),
        (lambda: models.GAMLayer(1, [2])((one, one)), "`context_inputs` must contain `context_feature_num` = 0 tens"),
    ]
    helpers.assert_refused(cases)


# GAMLayer and create_tower.


def gam(**options):
    return models.GAMLayer(2, [3, 2], 2, [4], **{"activation": "relu", "dropout": 0.3, **options})


def gam_inputs(seed=0):
    random = np.random.RandomState(seed)
    wide = [random.randn(6, width).astype(np.float32) for width in (1, 3, 2, 1)]
    tensors = [tf.constant(each) for each in wide]
    return tensors[:2], tensors[2:]


def randomize(layer, seed=1):
    random = np.random.RandomState(seed)
    layer.set_weights([np.abs(random.randn(*each.shape)) + 0.1 for each in layer.get_weights()])


def forward_pass(tower, hidden):
    """Computes a tower in inference mode with NumPy in float64."""
    for layer in tower.layers:
        weights = [np.float64(each) for each in layer.get_weights()]
        if isinstance(layer, tf.keras.layers.Dense):
            hidden = hidden @ weights[0] + weights[1]
        elif isinstance(layer, tf.keras.layers.BatchNormalization):
            gamma, beta, mean, variance = weights
            hidden = (hidden - mean) / np.sqrt(variance + layer.epsilon) * gamma + beta
        elif isinstance(layer, tf.keras.layers.Activation):
            hidden = layer.activation(hidden).numpy()
    return hidden


def test_additive_scores_equal_the_formula():
    layer, (examples, context) = gam(), gam_inputs()
    layer((examples, context))
    randomize(layer)
    scores, parts, weights = numpy_of(layer((examples, context)))
    expected = [forward_pass(tower, each) for tower, each in zip(layer.example_towers, numpy_of(examples), strict=True)]
    logits = [forward_pass(tower, each) for tower, each in zip(layer.context_towers, numpy_of(context), strict=True)]
    softmax = [np.exp(each) / np.exp(each).sum(axis=1, keepdims=True) for each in logits]
    for found, wanted in ((parts, expected), (weights, softmax)):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    total = (np.concatenate(expected, axis=1) * sum(softmax)).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(scores, total, rtol=1e-5)
    scores, parts, weights = layer((examples, None))
    np.testing.assert_allclose(scores, sum(expected), rtol=1e-5)
    assert weights == []


def test_arguments_of_a_tower_reach_its_layers():
    arguments = {"input_batch_norm": True, "batch_norm_moment": 0.9, "dropout": 0.2, "name": "mine"}
    tower = models.create_tower([3, 2], 1, activation="tanh", kernel_regularizer="l2", **arguments)
    hidden = ["Dense", "BatchNormalization", "Activation", "Dropout"] * 2
    assert [type(layer).__name__ for layer in tower.layers] == ["BatchNormalization", *hidden, "Dense"]
    assert tower.name == "mine" and [layer.units for layer in tower.layers[1::4]] == [3, 2, 1]
    assert all(layer.kernel_regularizer is not None for layer in tower.layers[1::4])
    assert tower.layers[0].momentum == 0.9 and tower.layers[4].rate == 0.2
    assert len(models.create_tower([3], 1, use_batch_norm=False, dropout=None).layers) == 3


def test_configs_create_the_same_layer():
    layers = [gam(activation=activation, name="mine") for activation in (tf.keras.activations.gelu, "relu", None)]
    layers += [models.FlattenList(False), models.ConcatFeatures(False), models.RestoreList(by_scatter=True)]
    layers += [models.DocumentInteractionAttention(2, 4, 3, input_noise_stddev=0.1)]
    layers += [models.ListAttention(heads=2, units=4, dropout=0.1)]
    for layer in layers:
        config = tf.keras.layers.serialize(layer)
        again = tf.keras.layers.deserialize(config)
        assert type(again) is type(layer) and again.get_config() == layer.get_config()


# In models.

WIDTHS = {"a": 1, "b": 2, "c": 1, "d": 3}


def network(context, examples, mask):
    """Returns scores [batch, list] by all layers."""
    documents = models.ConcatFeatures()((context, examples, mask))
    hidden = models.DocumentInteractionAttention(2, 4, dropout=0.1)((documents, mask))
    context, examples = models.FlattenList()((context, {**examples, "hidden": hidden}, mask))
    rows, lists = ([group[name] for name in sorted(group)] for group in (examples, context))
    logits = models.GAMLayer(len(rows), [4], len(lists), [4], dropout=0.1)((rows, lists))[0]
    return models.RestoreList()((logits, mask))


def functional():
    inputs = {
        name: tf.keras.Input([None, width] if name in "cd" else [width], name=name) for name, width in WIDTHS.items()
    }
    inputs["mask"] = tf.keras.Input([None], dtype="bool", name="mask")
    groups = [{name: inputs[name] for name in names} for names in ("ab", "cd")]
    model = tf.keras.Model(inputs, network(*groups, inputs["mask"]))
    randomize(model)
    return model


def model_inputs(**options):
    context, examples, mask = features(**options)
    return {**context, **examples, "mask": mask}


def test_padding_changes_no_score_of_a_functional_model():
    tf.keras.utils.set_random_seed(0)
    model = functional()
    scores = model(model_inputs()).numpy()
    assert np.std(scores[MASK]) > 1e-3 and (scores[~MASK] == LOG).all()
    for padding in (np.nan, 1e30):
        np.testing.assert_allclose(model(model_inputs(padding=padding)), scores, rtol=1e-5)
    shorter = {name: each[:1, :2] if name in ("c", "d", "mask") else each[:1] for name, each in model_inputs().items()}
    np.testing.assert_allclose(model(shorter), scores[:1, :2], rtol=1e-5)


@pytest.mark.parametrize("form", ["keras", pytest.param("saved_model", marks=pytest.mark.slow)])
@pytest.mark.keras_2
def test_models_are_saved_and_exported(form, tmp_path):
    model, inputs = functional(), model_inputs()
    if form == "keras":
        model.save(tmp_path / "model.keras")
        again = tf.keras.models.load_model(tmp_path / "model.keras")
    else:
        model.export(str(tmp_path / "model"))
        loaded = tf.saved_model.load(str(tmp_path / "model"))
        again = (
            loaded.serve if _keras.IS_KERAS_3 else lambda given: loaded.serve([given[name] for name in sorted(given)])
        )
    np.testing.assert_allclose(again(inputs), model(inputs), rtol=1e-5)


def test_layers_follow_the_policy_of_data_types():
    with helpers.precision("mixed_bfloat16"):
        mask = tf.constant(MASK)
        hidden = models.DocumentInteractionAttention(1, 4, 2)((tf.ones([4, 4, 3]), mask))
        scores = models.GAMLayer(1, [3])(([tf.reshape(hidden, [16, 4])], None))[0]
        restored = models.RestoreList()((scores, mask))
        assert hidden.dtype == scores.dtype == restored.dtype == "bfloat16"
        assert np.isfinite(tf.cast(restored, tf.float32)).all()
