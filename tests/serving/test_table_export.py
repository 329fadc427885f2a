"""Exports of models of table columns: every signature returns the scores of the Keras model."""

import json
import re

import numpy as np
import onnxruntime
import pytest
import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from tests.serving import wrong_shapes
from tests.serving.conftest import example, example_list
from tfr_smooth import _keras, models, serving
from tfr_smooth.columns import Boolean, Category, Date, Number, TableFeatures, infer_columns
from tfr_smooth.serving.servable import RankerInputs

NO_DATE = np.iinfo(np.int64).min
CLOSE = {"rtol": 1e-6, "atol": 1e-6}
COLUMNS = [
    Category(name="brand", has_missing=True, categories=("acme", "ä")),
    Number(name="price", fill=2.5, has_missing=True),
    Date(name="day", fill=19000.25, has_missing=True),
    Boolean(name="new", fill=0.25),
]
# Per document: brand, price, day, new. The values that mean "missing" are None in protos.
LISTS = [
    [("acme", 7.0, 19001 * 86400, 1.0), ("unseen", np.nan, NO_DATE, np.nan), ("", -3.5, 0, 0.0)],
    [("ä", 0.5, 18999 * 86400 + 3601, np.nan)],
    [("ä", np.nan, 19123 * 86400, 1.0), ("acme", 1e6, NO_DATE, 0.0)],
]
MASK = np.array([[True, True, True], [True, False, False], [True, True, False]])


def tensors():
    """Returns the columns [3, 3], padded with the first document of the list."""
    found = {}
    for place, column in enumerate(COLUMNS):
        values = [[row[place] for row in (rows + [rows[0]] * 2)[:3]] for rows in LISTS]
        found[column.name] = tf.constant(values, column.dtype)
    return found


def proto_values(row, names):
    """Returns the values of a document that a proto has."""
    values = {}
    for column, value in zip(COLUMNS, row, strict=True):
        if column.name in names and value == value and value != column.missing_value:
            values[column.name] = [value.encode() if isinstance(value, str) else value]
    return values


@pytest.fixture(scope="module")
def model():
    tf.keras.utils.set_random_seed(5)
    scorer = models.FeedForwardScorer(hidden=[6], normalization="log1p")
    return models.TableScorer(TableFeatures(COLUMNS), scorer)


@pytest.mark.keras_2
def test_every_signature_returns_the_scores_of_the_model(model, tmp_path):
    query_columns = ("brand", "day")
    model = models.TableScorer(model.table_features, model.scorer, query_columns=query_columns)
    inputs = tensors()
    for name in query_columns:
        inputs[name] = inputs[name][:, 0]
    path = serving.export_ranker(model, tmp_path, **model.export_arguments)
    signatures = tf.saved_model.load(str(path)).signatures
    assert set(signatures["rank"].structured_input_signature[1]) == {*inputs, "mask"}
    whole, masked = model(inputs).numpy(), model({**inputs, "mask": MASK}).numpy()
    assert np.unique(whole).size >= 5
    np.testing.assert_allclose(signatures["serving_default"](**inputs)["scores"], whole, **CLOSE)
    ranked = signatures["rank"](**inputs, mask=tf.constant(MASK))
    np.testing.assert_allclose(ranked["scores"], masked, **CLOSE)
    np.testing.assert_array_equal(ranked["valid"], MASK)
    of_documents = [column.name for column in COLUMNS if column.name not in query_columns]
    lists = [
        example_list(
            [example(**proto_values(row, of_documents)) for row in rows], **proto_values(rows[0], query_columns)
        )
        for rows in LISTS
    ]
    for name in ("predict", "tensorflow/serving/predict"):
        np.testing.assert_allclose(signatures[name](inputs=tf.constant(lists))["outputs"], masked, **CLOSE)
    assert wrong_shapes.accepted(str(path)) == []


def test_missing_numbers_of_a_matrix_reach_the_model(tmp_path):
    features = np.random.RandomState(1).randn(2, 4, 3).astype(np.float32)
    features[[0, 0, 1], [1, 2, 3], [0, 1, 1]] = np.nan
    layer = TableFeatures(infer_columns(dict(zip("abc", features.reshape(-1, 3).T, strict=True))), stacked=True)
    model = models.TableScorer(layer, models.FeedForwardScorer(hidden=[6], normalization="log1p"))
    model.build()
    if _keras.IS_KERAS_3:  # Keras 2 has no signatures. Here, the model was not called before.
        model.export(str(tmp_path / "keras"), verbose=False)
    path = serving.export_ranker(model, tmp_path / "ranker", num_features=3, missing_values=True)
    loaded, expected = tf.saved_model.load(str(path)), model(features).numpy()
    if _keras.IS_KERAS_3:
        by_keras = tf.saved_model.load(str(tmp_path / "keras"))
        given = {"features": features, "mask": np.ones([2, 4], bool)}
        np.testing.assert_allclose(by_keras.serve(given), expected, **CLOSE)
    np.testing.assert_allclose(loaded.rank(features)["scores"], expected, **CLOSE)
    np.testing.assert_allclose(loaded.scores({"features": features})["scores"], expected, **CLOSE)
    lists = [example_list([example(features=row) for row in rows]) for rows in features.tolist()]
    np.testing.assert_allclose(loaded.predict(tf.constant(lists))["outputs"], expected, **CLOSE)
    inputs = RankerInputs.dense(2, ["a", "b"], missing_values=True)
    parsed, _ = inputs.parse_lists(tf.constant([example_list([example(a=[1.5])])]))
    np.testing.assert_array_equal(parsed["features"], [[[1.5, np.nan]]])


def test_an_infinite_number_of_the_list_invalidates_its_documents(model, tmp_path):
    """The card says which columns have one value in a list."""
    model = models.TableScorer(model.table_features, model.scorer, query_columns=["price"])
    path = serving.export_ranker(model, tmp_path, warmup=False, **model.export_arguments)
    inputs = {**tensors(), "price": tf.constant([np.inf, np.nan, 1.0])}
    scores = tf.saved_model.load(str(path)).signatures["serving_default"](**inputs)["scores"].numpy()
    assert (scores[0] == np.float32(serving.INVALID_SCORE)).all()
    np.testing.assert_allclose(scores[1:], model(inputs).numpy()[1:], **CLOSE)
    features = json.loads((path / "assets.extra" / "model_card.json").read_text())["features"]
    assert [[each[key] for key in ("name", "of", "type", "kind")] for each in features] == [
        ["brand", "document", "string", "category"],
        ["price", "list", "float32", "number"],
        ["day", "document", "int64", "date"],
        ["new", "document", "float32", "boolean"],
    ]
    assert features[0]["values"] == "['acme', 'ä']; others are unseen; '' is missing"
    assert features[2]["values"] == f"seconds since 1970-01-01 UTC; {NO_DATE} is missing"


def test_columns_keep_any_names(tmp_path):
    of_documents, of_queries = ["price (USD)", "größe", "class", "Z", "a/b"], ["z", "7", "input_0"]
    names = [*of_documents, *of_queries]
    layer = TableFeatures([Number(name=name, has_missing=True) for name in names])
    tf.keras.utils.set_random_seed(5)
    model = models.TableScorer(layer, models.FeedForwardScorer(hidden=[6]), query_columns=of_queries)
    path = serving.export_ranker(model, tmp_path, **model.export_arguments)
    random = np.random.RandomState(3)
    inputs = {name: tf.constant(random.randn(2, 3), tf.float32) for name in of_documents}
    inputs |= {name: tf.constant(random.randn(2), tf.float32) for name in of_queries}
    expected, mask = model(inputs).numpy(), tf.constant([[True] * 3] * 2)
    assert np.unique(expected).size == 6
    loaded = tf.saved_model.load(str(path))
    np.testing.assert_allclose(loaded.signatures["rank"](**inputs, mask=mask)["scores"], expected, **CLOSE)
    np.testing.assert_allclose(loaded.rank({**inputs, "mask": mask})["scores"], expected, **CLOSE)
    definition = SavedModel.FromString((path / "saved_model.pb").read_bytes()).meta_graphs[0].signature_def
    assert set(definition["rank"].inputs) == {*names, "mask"} and set(definition["predict"].inputs) == {"inputs"}


@pytest.mark.parametrize("names", [("a b", "a_b"), ("price $", "price €"), ("self", "x")])
def test_names_that_are_one_for_tensorflow_are_refused_in_saved_models(names, tmp_path):
    layer = TableFeatures([Number(name=name) for name in names])
    model = models.TableScorer(layer, models.FeedForwardScorer(hidden=[2]))
    model.build()
    both = re.escape(" and ".join(map(repr, names if names[1] != "x" else ("self", "self"))))
    with pytest.raises(ValueError, match=f"`model` must have columns of .* TensorFlow, got {both}; rename one"):
        serving.export_ranker(model, tmp_path, **model.export_arguments)
    assert list(tmp_path.iterdir()) == []
    session = onnxruntime.InferenceSession(serving.export_onnx(model, tmp_path / "ranker.onnx"))  # has any name
    values = dict(zip(names, np.random.default_rng(0).normal(size=[2, 1, 3]).astype(np.float32), strict=True))
    (scores,) = session.run(["scores"], {**values, "mask": np.array([[True]])})
    np.testing.assert_allclose(scores, model({name: tf.constant(value) for name, value in values.items()}), **CLOSE)
