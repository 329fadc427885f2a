"""The exported SavedModel: its signatures, its scores, and that it requires only TensorFlow."""

import json
import os
import signal

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tests.serving.conftest import example, example_list
from tfr_smooth import models, serving

FLOATS, BOOLS = tf.TensorSpec([None, None], tf.float32), tf.TensorSpec([None, None], tf.bool)
PLACES, STRINGS = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.string)
FEATURES = tf.TensorSpec([None, None, 3], tf.float32)
PADDING, INVALID = np.float32(models.PADDING_SCORE), np.float32(serving.INVALID_SCORE)

SIGNATURES = {
    "serving_default": ({"features": FEATURES}, {"scores": FLOATS}),
    "rank": ({"features": FEATURES, "mask": BOOLS}, {"scores": FLOATS, "valid": BOOLS, "order": PLACES}),
    "predict": ({"inputs": STRINGS}, {"outputs": FLOATS}),
}
SIGNATURES["tensorflow/serving/predict"] = SIGNATURES["predict"]


def unnamed(specs):
    return {name: tf.TensorSpec(spec.shape, spec.dtype) for name, spec in specs.items()}


def ask(path, *inputs):
    """The outputs of `rank` of an export, as NumPy arrays."""
    loaded = tf.saved_model.load(str(path))  # in a variable: functions do not keep their variables alive
    return {name: values.numpy() for name, values in loaded.rank(*inputs).items()}


def small_model():
    return models.FeedForwardScorer(hidden=[4], batch_norm=False)


@pytest.mark.keras_2
def test_signatures_have_the_documented_inputs_and_outputs(loaded, tmp_path):
    of_protos = {"num_features": 3, "serving_default": "predict", "warmup": False}
    other = tf.saved_model.load(str(serving.export_ranker(small_model(), tmp_path, **of_protos)))
    for signatures, expected in (
        (loaded.signatures, SIGNATURES),
        (other.signatures, {**SIGNATURES, "serving_default": SIGNATURES["predict"]}),
    ):
        assert set(signatures) == set(expected)
        for name, (inputs, outputs) in expected.items():
            assert unnamed(signatures[name].structured_input_signature[1]) == inputs, name
            assert unnamed(signatures[name].structured_outputs) == outputs, name


@pytest.mark.keras_2
def test_scores_are_those_of_the_model_and_the_order_is_that_of_a_stable_sort(exported, loaded):
    found = loaded.signatures["serving_default"](features=tf.constant(exported.features))["scores"]
    np.testing.assert_allclose(found, exported.scores(), rtol=1e-6, atol=1e-6)
    rank = loaded.signatures["rank"](features=tf.constant(exported.features), mask=tf.constant(exported.mask))
    np.testing.assert_allclose(rank["scores"], exported.scores(mask=exported.mask), rtol=1e-6, atol=1e-6)
    assert (rank["scores"].numpy()[~exported.mask] == PADDING).all()
    np.testing.assert_array_equal(rank["valid"], exported.mask)
    for scores, mask, order in zip(rank["scores"].numpy(), exported.mask, rank["order"].numpy(), strict=True):
        real = sorted(np.flatnonzero(mask).tolist(), key=lambda place: -scores[place])
        assert order.tolist() == real + [-1] * (5 - len(real))
    tied = loaded.rank(np.ones([1, 6, 3], np.float32), np.array([[True, False, True, True, False, True]]))
    assert tied["order"].numpy().tolist() == [[0, 2, 3, 5, -1, -1]]
    masked = loaded.rank(np.ones([2, 3, 3], np.float32), np.zeros([2, 3], bool))
    assert (masked["scores"].numpy() == PADDING).all() and (masked["order"].numpy() == -1).all()
    assert loaded.rank(np.ones([2, 0, 3], np.float32), np.ones([2, 0], bool))["scores"].shape == (2, 0)


def test_serialized_lists_are_padded_to_the_longest_and_features_may_have_names(exported, loaded, tmp_path):
    documents = [example(features=row) for row in exported.features[0].tolist()]
    serialized = [example_list(documents), example_list(documents[:2], query=[b"x"]), example_list([])]
    outputs = loaded.predict(tf.constant(serialized))["outputs"].numpy()
    expected = np.full([3, 5], PADDING)
    expected[0], expected[1, :2] = exported.scores()[0], exported.scores()[0, :2]
    np.testing.assert_allclose(outputs, expected, rtol=1e-6, atol=1e-6)
    model = small_model()
    named = tf.saved_model.load(str(serving.export_ranker(model, tmp_path, feature_names=["price", "7"])))
    documents = [example(**{"7": [2.0], "price": [1.0]}), example(**{"7": [4.0], "price": [3.0], "label": [1.0]})]
    found = named.predict(tf.constant([example_list(documents)]))["outputs"]
    np.testing.assert_allclose(found, model(np.float32([[[1.0, 2.0], [3.0, 4.0]]])), rtol=1e-6, atol=1e-6)


@pytest.mark.keras_2
def test_a_sequential_model_of_the_features_is_exported(tmp_path):
    model = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1), tf.keras.layers.Reshape([-1])])
    features, mask = tf.random.stateless_normal([1, 3, 2], [1, 2]), tf.constant([[True, False, True]])
    found = ask(serving.export_ranker(model, tmp_path, feature_names=["a", "b"]), features, mask)
    expected = np.where(mask, model(features), PADDING)
    np.testing.assert_allclose(found["scores"], expected, rtol=1e-5, atol=1e-6)


def test_an_invalid_document_does_not_change_the_scores_of_other_documents(tmp_path):
    """Also if the normalization depends on the whole list."""
    model = models.FeedForwardScorer(hidden=[4], normalization="min_max")
    # Far from 0, which replaces the bad feature in the model's input.
    features = 10.0 + np.random.RandomState(2).randn(4, 4, 3).astype(np.float32)
    path = serving.export_ranker(model, tmp_path, num_features=3, warmup=False)
    features[[0, 1, 2], 2, 1] = np.nan, np.inf, -np.inf
    answer = ask(path, features)
    others = model(features[:3, [0, 1, 3]]).numpy()
    np.testing.assert_allclose(answer["scores"][:3, [0, 1, 3]], others, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(answer["scores"][3:], model(features[3:]).numpy(), rtol=1e-6, atol=1e-6)
    assert (answer["scores"][:3, 2] == INVALID).all()
    assert answer["valid"].tolist() == [[True, True, False, True]] * 3 + [[True] * 4]
    assert (answer["order"][:3, 3] == 2).all()
    lists = [example_list([example(features=row) for row in rows]) for rows in features.tolist()]
    predicted = tf.saved_model.load(str(path)).signatures["predict"](inputs=tf.constant(lists))["outputs"]
    np.testing.assert_allclose(predicted, answer["scores"], rtol=1e-6, atol=1e-6)


def test_scores_that_are_not_finite_are_invalid(tmp_path):
    model = small_model()
    model(tf.ones([1, 1, 2]))
    model.set_weights([np.full(weight.shape, 1e30, np.float32) for weight in model.get_weights()])
    path = serving.export_ranker(model, tmp_path, num_features=2, warmup=False)
    answer = ask(path, np.full([1, 1, 2], 1e30, np.float32))
    assert answer["scores"].tolist() == [[INVALID]] and not answer["valid"].any()


@pytest.mark.slow
def test_the_export_requires_only_tensorflow(exported, tmp_path):
    np.save(tmp_path / "features.npy", exported.features)
    program = """
import json, sys
import numpy, tensorflow as tf
loaded = tf.saved_model.load(sys.argv[1])
scores = loaded.signatures["serving_default"](features=tf.constant(numpy.load(sys.argv[2])))["scores"]
foreign = ("tfr_smooth", "tensorflow_ranking", "tensorflow_serving")
print(json.dumps([scores.numpy().tolist(), [name for name in sys.modules if name.startswith(foreign)]]))
"""
    scores, imported = json.loads(helpers.check_run("-c", program, exported.path, tmp_path / "features.npy"))
    assert imported == []
    np.testing.assert_allclose(scores, exported.scores(), rtol=1e-6, atol=1e-6)


def test_a_model_of_named_features_with_a_lookup_table_is_exported(tmp_path):
    """A plain Keras model with strings, a feature of the list, features that may be missing, and a mask."""
    table = tf.keras.layers.StringLookup(vocabulary=["news", "blog"])
    kind = tf.keras.Input([None, 1], dtype=tf.string, name="kind")
    price = tf.keras.Input([None, 2], name="price")
    query = tf.keras.Input([1], name="query_length")
    mask = tf.keras.Input([None], dtype=tf.bool, name="example_list_mask")
    embedded = tf.keras.layers.Reshape([-1, 4])(tf.keras.layers.Embedding(3, 4)(table(kind)))
    scores = tf.keras.layers.Dense(1)(tf.keras.layers.Concatenate()([embedded, price]))
    scores = tf.keras.layers.Reshape([-1])(scores) + query
    inputs = {"kind": kind, "price": price, "query_length": query, "example_list_mask": mask}
    model = tf.keras.Model(inputs, scores)
    kinds = tf.io.FixedLenFeature([1], tf.string, default_value=["other"])
    specs = {
        "example_feature_spec": {"kind": kinds, "price": tf.io.FixedLenFeature([2], tf.float32)},
        "context_feature_spec": {"query_length": tf.io.FixedLenFeature([1], tf.float32, default_value=[0.0])},
    }
    path = serving.export_ranker(model, tmp_path, **specs, mask_feature_name="example_list_mask")
    loaded = tf.saved_model.load(str(path))
    documents = [example(kind=[kind], price=[price, 2.0]) for kind, price in ((b"blog", 1.0), (b"news", 3.0))]
    documents.append(example(price=[5.0, 6.0]))
    serialized = tf.constant([example_list(documents, query_length=[5.0]), example_list(documents[:1])])
    prices = [[1.0, 2.0], [3.0, 2.0], [5.0, 6.0]]
    tensors = {
        "kind": tf.constant([[["blog"], ["news"], ["other"]], [["blog"], [""], [""]]]),
        "price": tf.constant([prices, [prices[0], [0.0, 0.0], [0.0, 0.0]]]),
        "query_length": tf.constant([[5.0], [0.0]]),
        "example_list_mask": tf.constant([[True, True, True], [True, False, False]]),
    }
    expected = np.where(tensors["example_list_mask"], model(tensors).numpy(), PADDING)
    predicted = loaded.signatures["predict"](inputs=serialized)["outputs"].numpy()
    np.testing.assert_allclose(predicted, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(loaded.signatures["rank"](**tensors)["scores"], expected, rtol=1e-6, atol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="price.*must have as many lists and documents as"):
        loaded.signatures["rank"](**{**tensors, "price": tensors["price"][:1]})


def two_towers(names=("click", "buy")):
    features = tf.keras.Input([None, 2], name="x")
    outputs = {name: tf.keras.layers.Dense(1)(features) for name in names}
    return tf.keras.Model({"x": features}, outputs)


TWO = {"example_feature_spec": {"x": tf.io.FixedLenFeature([2], tf.float32)}, "warmup": False}


def test_a_model_with_several_outputs_has_the_scores_of_each(tmp_path):
    model = two_towers()
    path = serving.export_ranker(model, tmp_path, **TWO)
    features = np.random.RandomState(0).randn(1, 4, 2).astype(np.float32)
    signatures = tf.saved_model.load(str(path)).signatures
    answer = signatures["rank"](x=tf.constant(features), mask=tf.constant([[True] * 4]))
    expected = {name: scores.numpy().reshape(1, 4) for name, scores in model({"x": features}).items()}
    for name, scores in expected.items():
        np.testing.assert_allclose(answer[name].numpy(), scores, rtol=1e-6, atol=1e-6)
    assert set(answer) == {"click", "buy", "valid"}


RAGGED = {"words": tf.io.RaggedFeature(tf.int64)}


def test_bad_arguments_are_refused(tmp_path):
    for arguments, message in (
        ({"num_features": 0}, "`num_features` must be an integer >= 1, got 0"),
        ({"feature_names": ["a", "a"]}, "`feature_names` must be a list of unique names"),
        ({"feature_names": ["a", "b"], "num_features": 3}, "`feature_names` must be 3 names, got 2"),
        ({"num_features": 3, "version": 0}, "`version` must be an integer >= 1, got 0"),
        ({"num_features": 3, "serving_default": "rank"}, "`serving_default` must be one of 'scores', 'predict'"),
        ({"num_features": 3, "mask_feature_name": "m"}, "`mask_feature_name` must be None without"),
        ({"example_feature_spec": {}}, "`example_feature_spec` must contain at least one feature"),
        ({"example_feature_spec": {"x": tf.io.VarLenFeature(tf.float32)}}, "must contain tf.io.FixedLenFeature or"),
        ({"example_feature_spec": RAGGED, "mask_feature_name": "words"}, "got \\['words'\\]"),
        ({"example_feature_spec": RAGGED, "serving_default": "scores"}, "must be one of 'predict' for these"),
    ):
        with pytest.raises(ValueError, match=message):
            serving.export_ranker(small_model(), tmp_path, **arguments)
        assert list(tmp_path.iterdir()) == []


def test_a_model_of_other_inputs_is_refused_in_one_line(tmp_path):
    query, documents = tf.keras.Input([1], name="query"), tf.keras.Input([None, 1], name="documents")
    scores = tf.keras.layers.Reshape([-1])(documents) + query
    model = tf.keras.Model({"query": query, "documents": documents}, scores)
    for arguments in ({"num_features": 3}, TWO):
        with pytest.raises(ValueError, match=r"^`model` must take a dict of '(x|features)' \(1, 1, [23]\).*documents"):
            serving.export_ranker(model, tmp_path, **arguments)
    assert list(tmp_path.iterdir()) == []


def test_unsuitable_outputs_are_refused(tmp_path):
    with pytest.raises(ValueError, match="`model` must have no output with a reserved name, got 'valid'"):
        serving.export_ranker(two_towers(["click", "valid"]), tmp_path, **TWO)
    features = tf.keras.Input([None, 2], name="x")
    model = tf.keras.Model({"x": features}, tf.keras.layers.Dense(3)(features))
    with pytest.raises(ValueError, match=r"`model` must return scores \[batch, list\] or .*, got \(None, None, 3\)"):
        serving.export_ranker(model, tmp_path, **TWO)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_forked_process_is_refused(exported, tmp_path):
    """TensorFlow would wait forever."""
    for call in (
        lambda: serving.export_ranker(exported.model, tmp_path / "again", num_features=3),
        lambda: serving.export_onnx(exported.model, tmp_path / "ranker.onnx"),
    ):
        if not (child := os.fork()):
            signal.alarm(20)
            try:
                call()
            except RuntimeError as error:
                os._exit(42 if "TensorFlow does not work in a process forked" in str(error) else 0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42


def test_mixed_precision_scores_are_float32(tmp_path):
    with helpers.precision("mixed_bfloat16"):
        model = small_model()
        path = serving.export_ranker(model, tmp_path, num_features=3, warmup=False)
    features = np.random.RandomState(0).randn(1, 4, 3).astype(np.float32)
    scores = ask(path, features)["scores"]
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, model(features).numpy(), rtol=1e-6, atol=1e-6)
