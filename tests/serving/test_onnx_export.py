"""ONNX files take raw columns and return the scores of the model; what they cannot contain is refused by name."""

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import tensorflow as tf

import tfr_smooth
from tfr_smooth import _keras, models, serving
from tfr_smooth.columns import Category, Id, Number, Statistic, TableFeatures, Text, Vector, column_arrays

QUERIES, LENGTH = 40, 6


def table(seed):
    """Columns of every kind that ONNX has, with missing values; half of the variance of the labels is that of hosts."""
    random = np.random.default_rng(seed)
    rows = QUERIES * LENGTH
    frame = pd.DataFrame({"query": np.repeat(np.arange(QUERIES), LENGTH)})
    frame["price (USD)"] = np.where(random.random(rows) < 0.2, np.nan, random.normal(size=rows))
    frame["price"] = random.normal(size=rows)
    frame["new"] = pd.Series(random.random(rows) < 0.5, dtype=object).mask(random.random(rows) < 0.1)
    frame["day"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(random.integers(0, 400, rows), unit="D")
    frame["brand"] = random.choice(["acme", "é", "Acme", None], rows)
    frame["host"] = random.choice([None, *map("host {}".format, range(8))], rows, p=[0.04, *[0.12] * 8])
    frame["image"] = list(random.normal(size=(rows, 3)).astype(np.float32))
    frame["user"] = np.repeat(random.choice(["101", "102", "103"], QUERIES), LENGTH)
    frame["taste"] = list(random.normal(size=(rows, 3)).astype(np.float32))
    frame["label"] = (frame["host"].isin(["host 1", "host 2"]) + random.random(rows) > 0.8).astype(int)
    return frame


def onnx_scores(path, inputs):
    return onnxruntime.InferenceSession(path).run(["scores"], inputs)[0]


@pytest.mark.slow
def test_scores_of_raw_columns_are_those_of_predict(tmp_path):
    options = {"kinds": {"host": "id"}, "matches": [("image", "taste")], "members": 2, "hidden": [8], "epochs": 2}
    ranker = tfr_smooth.Ranker(loss="softmax", verbose=False, **options)
    ranker.fit(table(0), label="label", query="query", query_features=["user"])
    assert ranker.features_.statistics and len(ranker.features_.list_ranks) > 2 and ranker.features_.embeddings
    assert ranker.features_.list_shares == ("brand", "host")
    new = table(2).astype({"new": object})
    new.loc[:40, "brand"], new.loc[20:60, "host"], new.loc[30:70, "day"] = "unseen", "unseen", pd.NaT
    new.loc[30:50:2, "brand"] = "also unseen"
    new.loc[:11, "user"] = "new"
    inputs = {}
    for name, values in column_arrays(new, ranker.features_.columns).items():
        values = np.array([text.decode() for text in values]) if values.dtype == object else values
        inputs[name] = values.reshape(QUERIES, LENGTH, *values.shape[1:])
    inputs["user"] = np.char.add(inputs["user"][:, 0], np.where(np.arange(QUERIES) % 2 > 0, ".0", ""))  # as floats
    mask = np.arange(LENGTH) < (np.arange(QUERIES) % LENGTH + 1)[:, np.newaxis]
    for rtol in (1e-5, 1e-3):
        path = ranker.export(tmp_path / f"{rtol}.onnx", format="onnx")
        expected = ranker.predict(new).reshape(QUERIES, LENGTH)
        found = onnx_scores(path, {**inputs, "mask": np.array([[True]])})
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-6)
        assert expected.std() > 0.01
        shorter = np.full(mask.shape, models.PADDING_SCORE, np.float32)
        shorter[mask] = ranker.predict(new[mask.reshape(-1)])
        np.testing.assert_allclose(onnx_scores(path, {**inputs, "mask": mask}), shorter, rtol=rtol, atol=1e-6)
        ranker.calibrate(table(1), method="isotonic")


@pytest.mark.slow
def test_other_scorers_take_features_and_rank_like_the_saved_model(tmp_path):
    features = np.random.RandomState(0).randn(3, 4, 2).astype(np.float32)
    features[0, 1, 0] = np.nan
    mask = np.arange(4) < np.array([[4], [2], [3]])
    model = models.FeedForwardScorer(hidden=[4], normalization="min_max")
    model.build((None, None, 2))
    loaded = tf.saved_model.load(serving.export_ranker(model, tmp_path, num_features=2))
    expected = loaded.rank(features, mask)
    session = onnxruntime.InferenceSession(serving.export_onnx(model, tmp_path / "ranker.onnx"))
    assert session.get_outputs()[0].name == "scores"
    for name in ("scores", "valid", "order"):
        (values,) = session.run([name], {"features": features, "mask": mask})
        np.testing.assert_allclose(values, expected[name], rtol=1e-5, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("normalization", ["standardize", "quantiles"])
def test_numbers_of_any_size_are_normalized_as_by_the_model(normalization, tmp_path):
    """Also where the mean of a column is no float32 number, and where the reciprocal of a deviation underflows."""
    random, columns = np.random.default_rng(0), [np.float32([-3e38, 3e38] * 30), np.float32([1e-38, 3e-38] * 30)]
    for size in 10.0 ** np.arange(-30.0, 38.0, 8.0):
        for steps in (1, 1e3, 1e6):  # of float32
            columns.append(
                np.float32(size) + np.spacing(np.float32(size)) * random.integers(0, steps, 60, endpoint=True)
            )
    features = np.stack(columns, axis=-1).astype(np.float32).reshape(10, 6, -1)
    tf.keras.utils.set_random_seed(0)
    model = models.FeedForwardScorer(hidden=[], normalization=normalization)
    model.adapt([({"features": features}, None)])
    inputs = {"features": features, "mask": np.ones([10, 6], bool)}
    expected = model(inputs).numpy()
    found = onnx_scores(serving.export_onnx(model, tmp_path / "ranker.onnx"), inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def table_model(*columns, **options):
    layer = TableFeatures([Number(name="price"), *columns], **options)
    return models.TableScorer(layer, models.FeedForwardScorer(hidden=[4]))


A, B = Category(name="a", categories=("x",)), Category(name="b", categories=("x",))
JOINT = Statistic(columns=("a", "b"), values=("x\x1fx",), means=(0.1,), counts=(1,))


@pytest.mark.keras_2
def test_values_that_only_a_statistic_knows_have_its_mean(tmp_path):
    hosts = Statistic(columns=("a",), values=("x", "y"), means=(0.1, 0.9), counts=(50, 60))
    tf.keras.utils.set_random_seed(1)
    model = table_model(A, statistics=[hosts])
    inputs = {"price": np.ones([1, 3], np.float32), "a": np.array([["x", "y", "new"]]), "mask": np.ones([1, 3], bool)}
    expected = model({name: tf.constant(values) for name, values in inputs.items()}).numpy()
    assert len(np.unique(expected)) == 3
    path = serving.export_onnx(model, tmp_path / "ranker.onnx")
    np.testing.assert_allclose(onnx_scores(path, inputs), expected, rtol=1e-5, atol=1e-6)


def test_columns_that_onnx_cannot_prepare_are_refused_by_name(tmp_path):
    for model, named in (
        (table_model(Text(name="title", categories=("red",))), "column 'title' of the kind 'text'"),
        (table_model(Id(name="ids", buckets=8)), "column 'ids' of the kind 'id'"),
        (table_model(A, B, matches=[("a", "b")]), r"match of \['a', 'b'\]"),
        (table_model(A, B, statistics=[JOINT]), r"cross of \['a', 'b'\]"),
    ):
        with pytest.raises(ValueError, match=f"`model` must have only columns .*{named}.*export a SavedModel"):
            serving.export_onnx(model, tmp_path / "ranker.onnx")
    assert list(tmp_path.iterdir()) == []


class Digamma(models.Scorer):
    num_features = 2

    def call(self, inputs, training=None):
        return tf.math.digamma(inputs["features"][:, :, 0])


def test_operations_that_onnx_lacks_are_refused_by_name(tmp_path, capfd):
    with pytest.raises(ValueError, match=r"`model` must consist of operations that ONNX has, got \['Digamma'\]"):
        serving.export_onnx(Digamma(), tmp_path / "ranker.onnx")
    assert list(tmp_path.iterdir()) == [] and "Traceback" not in capfd.readouterr().err


def test_arguments_are_checked(tmp_path):
    for model, message in (
        (tf.keras.Sequential(), "be .*Scorer"),
        (models.FeedForwardScorer(hidden=[4]), "have weights, got none"),
        (table_model(Number(name="order")), "have no column with the name of an output, got 'order'"),
    ):
        with pytest.raises(ValueError, match=f"`model` must {message}"):
            serving.export_onnx(model, tmp_path / "ranker.onnx")
    ranker = tfr_smooth.Ranker(verbose=False)
    ranker.model_ = table_model()
    with pytest.raises(ValueError, match="`format` must be one of 'saved_model', 'onnx', got 'lite'"):
        ranker.export(tmp_path / "ranker.onnx", format="lite")


def test_formats_of_keras_that_cannot_have_a_column_are_refused_by_name(tmp_path):
    for model, target, named in (
        (table_model(Vector(name="v")), "litert", "'litert' with 'v'"),
        (table_model(list_ranks=["price"]), "litert", "'litert' with 'ranks of price'"),
        (table_model(A), "onnx", "use `serving.export_onnx`"),
    ):
        with pytest.raises(ValueError, match=f"`format` must be 'tf_saved_model'.*{named}"):
            model.export(tmp_path / "ranker", format=target)


@pytest.mark.slow
@pytest.mark.skipif(not _keras.IS_KERAS_3, reason="Keras 2 exports a SavedModel only")
def test_keras_exports_numbers_to_litert(tmp_path):
    path = str(tmp_path / "ranker.tflite")
    model = table_model(Number(name="rating", has_missing=True))
    numbers = {"price": np.float32([[1.0, 2.0]]), "rating": np.float32([[np.nan, 2.0]])}
    inputs = {**numbers, "mask": np.array([[True, True]])}
    expected = model(inputs).numpy()
    model.export(path, format="litert", verbose=False)
    (scores,) = tf.lite.Interpreter(path).get_signature_runner()(**inputs).values()
    np.testing.assert_allclose(scores, expected, rtol=1e-5)
