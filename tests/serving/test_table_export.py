"""Exports of models of table columns: every signature returns the scores of the Keras model."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from tests.serving import wrong_shapes
from tfr_smooth import _keras, models, serving
from tfr_smooth.columns import Boolean, Category, Date, Number, TableFeatures, infer_columns
from tfr_smooth.serving.servable import RankerInputs

NO_DATE = np.iinfo(np.int64).min
PADDING, INVALID = np.float32(models.PADDING_SCORE), np.float32(serving.INVALID_SCORE)
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


def tensors(names=tuple(column.name for column in COLUMNS)):
    """Returns the columns [3, 3], padded with the first document of the list."""
    found = {}
    for place, column in enumerate(COLUMNS):
        values = [[row[place] for row in (rows + [rows[0]] * 2)[:3]] for rows in LISTS]
        found[column.name] = tf.constant(values, column.dtype)
    return {name: found[name] for name in names}


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
def test_every_signature_returns_the_scores_of_the_model(model, tmp_path, protos):
    (example, example_list), query_columns = protos, ("brand", "day")
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
    documents = [[proto_values(row, of_documents) for row in rows] for rows in LISTS]
    contexts = [proto_values(rows[0], query_columns) for rows in LISTS]
    lists = [
        example_list([example(**each) for each in rows], **context)
        for rows, context in zip(documents, contexts, strict=True)
    ]
    for name in ("predict", "tensorflow/serving/predict"):
        np.testing.assert_allclose(signatures[name](inputs=tf.constant(lists))["outputs"], masked, **CLOSE)
    assert wrong_shapes.accepted(str(path)) == []


def matrix_model(matrix):
    tf.keras.utils.set_random_seed(5)
    layer = TableFeatures(infer_columns(dict(zip("abc", matrix.reshape(-1, 3).T, strict=True))), stacked=True)
    scorer = models.FeedForwardScorer(hidden=[6], normalization="log1p")
    return models.TableScorer(layer, scorer)


def test_missing_numbers_of_a_matrix_reach_the_model(tmp_path, protos):
    example, example_list = protos
    features = np.random.RandomState(1).randn(2, 4, 3).astype(np.float32)
    features[[0, 0, 1], [1, 2, 3], [0, 1, 1]] = np.nan
    model, mask = matrix_model(features), np.ones([2, 4], bool)
    model.build()
    if _keras.IS_KERAS_3:  # Keras 2 has no signatures. Here, the model was not called before.
        model.export(str(tmp_path / "keras"), verbose=False)
    path = serving.export_ranker(model, tmp_path / "ranker", num_features=3, missing_values=True)
    loaded, expected = tf.saved_model.load(str(path)), model(features).numpy()
    if _keras.IS_KERAS_3:
        by_keras = tf.saved_model.load(str(tmp_path / "keras"))
        np.testing.assert_allclose(by_keras.serve({"features": features, "mask": mask}), expected, **CLOSE)
    documents = [[None if np.isnan(value) else value for value in row] for row in features[0].tolist()]
    ranking = sorted(serving.load(path).rank(documents=documents), key=lambda document: document.place)
    np.testing.assert_allclose([document.score for document in ranking], expected[0], **CLOSE)
    np.testing.assert_allclose(loaded.rank(features)["scores"], expected, **CLOSE)
    np.testing.assert_allclose(loaded.scores({"features": features})["scores"], expected, **CLOSE)
    rows = [[{"features": row} for row in rows] for rows in features.tolist()]
    serialized = tf.constant([example_list([example(**values) for values in each]) for each in rows])
    np.testing.assert_allclose(loaded.predict(serialized)["outputs"], expected, **CLOSE)


def test_a_number_that_a_proto_lacks_is_missing(protos):
    inputs = RankerInputs.dense(2, ["a", "b"], missing_values=True)
    example, example_list = protos
    features, _ = inputs.parse_lists(tf.constant([example_list([example(a=[1.5])])]))
    np.testing.assert_array_equal(features["features"], [[[1.5, np.nan]]])


@pytest.fixture(scope="module")
def by_price(model, tmp_path_factory):
    """A model with the price of the list, and its export."""
    model = models.TableScorer(model.table_features, model.scorer, query_columns=["price"])
    folder = tmp_path_factory.mktemp("by_price")
    return model, serving.export_ranker(model, folder, warmup=False, **model.export_arguments)


def test_an_infinite_number_of_the_list_invalidates_its_documents(by_price):
    model, path = by_price
    inputs = {**tensors(), "price": tf.constant([np.inf, np.nan, 1.0])}
    scores = tf.saved_model.load(str(path)).signatures["serving_default"](**inputs)["scores"].numpy()
    assert (scores[0] == INVALID).all()
    np.testing.assert_allclose(scores[1:], model(inputs).numpy()[1:], **CLOSE)


def test_columns_keep_any_names(tmp_path, protos):
    example, example_list = protos
    of_documents, of_queries = ["price (USD)", "größe", "class", "Z", "a/b"], ["z", "7", "input_0"]
    names = [*of_documents, *of_queries]
    layer = TableFeatures([Number(name=name, has_missing=True) for name in names])
    tf.keras.utils.set_random_seed(5)
    model = models.TableScorer(layer, models.FeedForwardScorer(hidden=[6]), query_columns=of_queries)
    path = serving.export_ranker(model, tmp_path, **model.export_arguments)
    random = np.random.RandomState(3)
    inputs = {
        name: tf.constant(random.randn(2, 3)[:, 0 if name in of_queries else slice(3)], tf.float32) for name in names
    }
    expected, mask = model(inputs).numpy(), tf.constant([[True] * 3] * 2)
    assert np.unique(expected).size == 6
    loaded = tf.saved_model.load(str(path))
    signatures = loaded.signatures
    np.testing.assert_allclose(signatures["serving_default"](**inputs)["scores"], expected, **CLOSE)
    np.testing.assert_allclose(signatures["rank"](**inputs, mask=mask)["scores"], expected, **CLOSE)
    np.testing.assert_allclose(loaded.rank({**inputs, "mask": mask})["scores"], expected, **CLOSE)
    lists = [
        example_list(
            [example(**{name: [float(inputs[name][row, place])] for name in of_documents}) for place in range(3)],
            **{name: [float(inputs[name][row])] for name in of_queries},
        )
        for row in range(2)
    ]
    np.testing.assert_allclose(signatures["predict"](inputs=tf.constant(lists))["outputs"], expected, **CLOSE)
    definition = SavedModel.FromString((path / "saved_model.pb").read_bytes()).meta_graphs[0].signature_def
    assert set(definition["rank"].inputs) == {*names, "mask"} and set(definition["predict"].inputs) == {"inputs"}
    card = json.loads((path / "assets.extra" / "model_card.json").read_text())
    assert set(card["signatures"]["rank"]["inputs"]) == {*names, "mask"}


def test_columns_by_whose_names_python_cannot_call_are_read_from_protos_only(tmp_path):
    layer = TableFeatures([Number(name=name) for name in ("a b", "a_b")])
    model = models.TableScorer(layer, models.FeedForwardScorer(hidden=[2]))
    model.build()
    path = serving.export_ranker(model, tmp_path, **model.export_arguments)
    signatures = tf.saved_model.load(str(path)).signatures
    assert "rank" not in signatures and set(signatures["serving_default"].structured_outputs) == {"outputs"}


def test_the_model_card_lists_the_columns_in_order(by_price):
    card = json.loads((by_price[1] / "assets.extra" / "model_card.json").read_text())
    features = card["features"]
    assert [each["name"] for each in features] == ["brand", "price", "day", "new"]
    assert [each["of"] for each in features] == ["document", "list", "document", "document"]
    assert [each["type"] for each in features] == ["string", "float32", "int64", "float32"]
    assert [each["kind"] for each in features] == ["category", "number", "date", "boolean"]
    assert [each["values"] for each in features if each["name"] != "price"] == [
        "'acme', 'ä'; others are unseen; '' is missing",
        f"seconds since 1970-01-01 UTC; {NO_DATE} is missing",
        "0, 1; nan is missing",
    ]


@pytest.mark.slow
def test_tf_servings_loader_answers_by_the_names_of_the_columns(tmp_path, run_in_cpp):
    columns = [
        Number(name="price (USD)", fill=2.0, has_missing=True),
        Category(name="class", categories=("a", "ä")),
        Date(name="day", fill=19000.0),
    ]
    model = models.TableScorer(TableFeatures(columns), models.FeedForwardScorer(hidden=[4]))
    inputs = {
        "price (USD)": np.array([[1.0, np.nan, 3.0]], np.float32),
        "class": np.array([["a", "", "ä"]], object),
        "day": np.array([[19001 * 86400, NO_DATE, 0]]),
    }
    expected = model(inputs).numpy()
    path = serving.export_ranker(model, tmp_path / "ranker", **model.export_arguments)
    mask = np.ones([1, 3], bool)
    answers = run_in_cpp(path, [("serving_default", inputs), ("rank", {**inputs, "mask": mask})])
    for answer in answers:
        np.testing.assert_allclose(answer["scores"], expected, **CLOSE)
