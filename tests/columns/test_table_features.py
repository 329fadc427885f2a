"""TableFeatures and TableScorer: features from raw table columns inside a model."""

import itertools
import re
import unicodedata

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import models
from tfr_smooth.columns import Boolean, Category, Date, Number, TableFeatures, column_arrays, infer_columns

NO_DATE = np.iinfo(np.int64).min
PRICE = Number(name="price", fill=2.5, has_missing=True)
NEW = Boolean(name="new", fill=0.25)
BRAND = Category(name="brand (short)", has_missing=True, categories=("b", "ä", "a"))
DAY = Date(name="day", fill=19000.5, has_missing=True)
COLUMNS = [BRAND, PRICE, DAY, NEW]
NAMES = ["brand (short)"] * 4 + ["price"] * 2 + ["day"] * 2 + ["new"]
# Brand, price, day, new -> features.
ROWS = [
    (("ä", 7.0, 19001 * 86400, 1.0), [0, 1, 0, 0, 7.0, 0, 0.5, 0, 1.0]),
    (("other", np.nan, 19000 * 86400 + 21600, np.nan), [0, 0, 0, 0, 2.5, 1, -0.25, 0, 0.25]),
    (("", np.inf, NO_DATE, 0.0), [0, 0, 0, 1, np.inf, 0, 0.0, 1, 0.0]),
    (("a", -1e30, 0, 1.0), [0, 0, 1, 0, np.float32(-1e30), 0, -19000.5, 0, 1.0]),
]
FEATURES = np.array([features for _, features in ROWS], np.float32)


def raw(shape=(4,)):
    """Returns the raw columns of `ROWS` as tensors of this shape."""
    values = zip(*[row for row, _ in ROWS], strict=True)
    return {
        column.name: tf.reshape(tf.constant(each, column.dtype), shape)
        for column, each in zip(COLUMNS, values, strict=True)
    }


@pytest.mark.parametrize("shape", [(4,), (2, 2)])
def test_features_are_those_of_the_definition(shape):
    layer = TableFeatures(COLUMNS)
    found = layer(raw(shape))
    assert found.dtype == tf.float32 and layer.feature_columns == tuple(NAMES) and layer.num_features == 9
    np.testing.assert_array_equal(found, FEATURES.reshape(*shape, 9))
    unknown = {name: tf.TensorSpec([None] * len(shape), values.dtype) for name, values in raw().items()}
    np.testing.assert_array_equal(tf.function(layer, input_signature=[unknown])(raw(shape)), found)
    symbolic = {name: tf.keras.Input(shape[1:], dtype=values.dtype, name=name) for name, values in raw(shape).items()}
    assert tuple(layer(symbolic).shape)[1:] == found.shape[1:]


def test_a_date_is_exact_to_the_second_a_century_from_now():
    column = Date(name="day", fill=50000.0)
    seconds = 50000 * 86400 + np.arange(-3, 4, dtype=np.int64)
    found = TableFeatures([column])({"day": seconds}).numpy()[:, 0]
    np.testing.assert_allclose(found * 86400, np.arange(-3, 4), rtol=1e-4)


def random_table(seed, rows=60):
    random = np.random.RandomState(seed)
    frame = {}
    for place in range(random.randint(1, 9)):
        values = [
            pd.Series(random.randn(rows)),
            pd.Series(random.randint(-5, 5, rows)),
            pd.Series(random.rand(rows) < 0.5, dtype="boolean"),
            pd.Series(random.choice(list("abcdef"), rows), dtype=object),
            pd.Series(pd.to_datetime(random.randint(0, 2 * 10**9, rows), unit="s")),
            pd.Series([list(random.choice(list("abcdef"), random.randint(1, 4))) for _ in range(rows)]),
            pd.Series([" ".join(random.choice(["Red", "blue,", "(42)", "Éclair"], 4)) for _ in range(rows)]),
            pd.Series(list(random.randn(rows, 3))),
        ][random.randint(8)]
        frame[f"column {place}"] = values.mask(random.rand(rows) < random.choice([0.0, 0.3]))
    return pd.DataFrame(frame)


def reference(frame, columns):
    """Computes the features of a table, one value at a time."""
    rows = []
    for _, row in frame.iterrows():
        features = []
        for column in columns:
            value, missing = row[column.name], bool(np.all(pd.isna(row[column.name])))
            if column.kind in ("id", "set", "text"):
                parts = [] if missing else [value] if column.kind == "id" else value
                if column.kind == "text" and not missing:
                    text = unicodedata.normalize("NFKD", value.lower())
                    words = re.findall(r"[\w\u0301]+", text)
                    parts = words + [f"{first} {second}" for first, second in itertools.pairwise(words)]
                places = {text: place for place, text in enumerate(column.categories, start=2)}
                codes = [places.get(part, 1) for part in parts]
                features += (codes + [0] * column.length)[: column.width]
                continue
            if column.kind == "vector":
                features += [0.0] * column.length if missing else [number / column.scale for number in value]
            elif column.kind == "category":
                features += [float(not missing and value == category) for category in column.categories]
            elif column.kind == "date":
                features.append(0.0 if missing else (value - pd.Timestamp(0)).total_seconds() / 86400 - column.fill)
            else:
                features.append(column.fill if missing else float(value))
            features += [float(missing)] * column.has_missing
        rows.append(features)
    return np.array(rows, np.float32)


@pytest.mark.parametrize("seed", range(2))
def test_random_tables_have_the_features_of_the_reference(seed):
    frame = random_table(seed)
    columns = infer_columns(frame, max_categories=4)
    layer = TableFeatures(columns)
    # Other rows than those in training have other missing values and categories.
    for rows in (frame, pd.DataFrame(random_table(seed).sample(frac=0.3, random_state=1)).reset_index(drop=True)):
        found = layer(column_arrays(rows, columns)).numpy()
        np.testing.assert_allclose(found, reference(rows, columns), rtol=1e-6, atol=1e-6)
    assert [layer.feature_columns.count(column.name) for column in columns] == [c.width for c in columns]


def test_a_matrix_has_the_features_of_its_columns():
    shape = (2, 3, 5)
    matrix = np.random.RandomState(0).randn(6, 5).astype(np.float32)
    matrix[[0, 3, 4], [1, 1, 4]] = np.nan
    columns = infer_columns(pd.DataFrame(matrix, columns=list("12345")))
    stacked = TableFeatures(columns, stacked=True)
    found = stacked(matrix.reshape(shape))
    named = TableFeatures(columns)({column.name: matrix[:, i] for i, column in enumerate(columns)})
    np.testing.assert_array_equal(found, np.reshape(named, [*shape[:-1], 7]))
    assert stacked.feature_columns == ("1", "2", "2", "3", "4", "5", "5")
    assert tuple(stacked(tf.keras.Input(shape[1:])).shape)[1:] == found.shape[1:]
    full = TableFeatures(infer_columns(pd.DataFrame(matrix[:, [0, 2, 3]])), stacked=True)
    np.testing.assert_array_equal(full(matrix[:, [0, 2, 3]]), matrix[:, [0, 2, 3]])


MASK = tf.constant([[True, True], [True, False]])


def table_scorer(columns=COLUMNS, stacked=False, **kwargs):
    tf.keras.utils.set_random_seed(2)
    layer = TableFeatures(columns, stacked=stacked)
    return models.TableScorer(layer, models.FeedForwardScorer(hidden=[4], normalization="log1p"), **kwargs)


def finite_raw(shape=(2, 2)):
    return {**raw(shape), "price": tf.reshape(tf.constant([7.0, np.nan, 3.0, -1.0]), shape)}


@pytest.mark.parametrize("mask", [None, MASK])
def test_scores_are_those_of_the_scorer_of_the_features(mask):
    model = table_scorer()
    inputs = finite_raw() if mask is None else {**finite_raw(), "mask": mask, "query_id": tf.constant(["x", "y"])}
    features = {"features": model.table_features(finite_raw()), **({} if mask is None else {"mask": mask})}
    scores = model(inputs)
    np.testing.assert_array_equal(scores, model.scorer(features))
    assert np.unique(scores).size == 4 and (mask is None or scores[1, 1] == models.PADDING_SCORE)


def test_padding_may_contain_any_values():
    model = table_scorer()
    padded = finite_raw()
    junk = {"price": np.inf, "new": np.nan, "day": NO_DATE, "brand (short)": "junk"}
    for name, value in junk.items():
        padded[name] = tf.tensor_scatter_nd_update(padded[name], [[1, 1]], tf.constant([value], padded[name].dtype))

    scores = [model({**inputs, "mask": MASK}).numpy() for inputs in (finite_raw(), padded)]
    np.testing.assert_array_equal(*scores)
    assert np.isfinite(scores[0]).all()


def test_columns_of_the_list_are_repeated():
    model = table_scorer(query_columns=["brand (short)", "day"])
    inputs = finite_raw()
    per_list = {name: inputs[name][:, 0] for name in ("brand (short)", "day")}
    repeated = {name: tf.repeat(values[:, tf.newaxis], 2, axis=1) for name, values in per_list.items()}
    expected = model({**inputs, **repeated, "mask": MASK})
    np.testing.assert_array_equal(model({**inputs, **per_list, "mask": MASK}), expected)
    specs = {name: tf.TensorSpec([None] * values.shape.rank, values.dtype) for name, values in inputs.items()}
    specs.update({name: tf.TensorSpec([None], values.dtype) for name, values in per_list.items()})
    of_unknown_shapes = tf.function(model, input_signature=[{**specs, "mask": tf.TensorSpec([None, None], tf.bool)}])
    found = of_unknown_shapes({**inputs, **per_list, "mask": MASK})
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.keras_2
def test_a_file_has_the_same_scores(stacked, tmp_path):
    if stacked:
        model = table_scorer([PRICE, Number(name="2")], stacked=True)
        inputs = {"features": tf.constant([[[1.0, 2.0], [np.nan, -4.0]]])}
    else:
        model, inputs = table_scorer(query_columns=["day"]), {**finite_raw(), "mask": MASK}
    expected = model(inputs)
    model.save(tmp_path / "model.keras")
    again = tf.keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(inputs), expected)
    assert again.query_columns == model.query_columns and again.table_features.columns == model.table_features.columns


def test_invalid_arguments_and_inputs_are_refused():
    cases = [
        (lambda: TableFeatures([]), "`columns` must be at least one column, with unique names, got []."),
        (lambda: TableFeatures(COLUMNS, list_ranks=["brand (short)"]), "`list_ranks` must be unique names of colu"),
        (lambda: TableFeatures(COLUMNS, list_shares=["price"]), "`list_shares` must be unique names of columns of i"),
        (lambda: TableFeatures(COLUMNS, list_ranks=["price"]).call(raw()), "`inputs` must be [batch, list] for `list_"),
        (lambda: TableFeatures([NEW], stacked=True), "`stacked` must be False unless all columns are numbers"),
        (lambda: TableFeatures(COLUMNS).call({"new": 1}), "`inputs` must contain the column 'brand (short)', "),
        (lambda: TableFeatures([PRICE], stacked=True).call(tf.ones([3, 2])), "`inputs` must have 1 numbers per"),
        (lambda: table_scorer(query_columns=["x"]), "`query_columns` must be names of some of the columns, not all"),
        (lambda: table_scorer([PRICE], stacked=True, query_columns=["price"]), "`query_columns` must be () for a"),
        (lambda: table_scorer([Number(name="mask")]), "`table_features` must have no column with"),
    ]
    helpers.assert_refused(cases)
