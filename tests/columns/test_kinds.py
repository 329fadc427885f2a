"""What each kind of column makes of raw values, in closed form, and tables of unusual shape."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from tfr_smooth.columns import Id, Set, TableFeatures, Vector, column_arrays, infer_columns


def test_a_match_of_vectors_is_their_product_in_their_units_and_their_cosine():
    columns = [Vector(name="a", length=2, scale=2.0), Vector(name="b", length=2, scale=5.0)]
    layer = TableFeatures(columns, matches=[("a", "b")])
    features = layer({"a": tf.constant([[3.0, 4.0]]), "b": tf.constant([[5.0, 12.0]])})
    product = 3.0 * 5.0 + 4.0 * 12.0
    np.testing.assert_allclose(features[0], [1.5, 2.0, 1.0, 2.4, product / 10.0, product / 65.0], rtol=1e-6)


@pytest.mark.parametrize("column", [Id(name="x", buckets=4), Set(name="x", buckets=4, length=1)])
def test_hashed_values_share_no_code_with_missing_and_unseen_ones(column):
    values = tf.constant([f"value{number}" for number in range(100)] + [""])
    codes = column.features(column.prepare(values), column.resource()).numpy().ravel()
    assert set(codes[:-1]) == {2.0, 3.0, 4.0, 5.0} and codes[-1] == 0.0
    assert column.codes == [1, 6]


def test_dates_in_text_are_dates_if_the_kind_says_so():
    days = ["2026-11-27", "", "2026-11-29T12:00:00", None]
    (column,) = infer_columns(pd.DataFrame({"day": days}), kinds={"day": "date"})
    features = TableFeatures([column])(column_arrays(pd.DataFrame({"day": days}), [column]))
    np.testing.assert_allclose(features, [[-1.25, 0.0], [0.0, 1.0], [1.25, 0.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="column 'day' must be dates as in ISO 8601, .*27 Nov"):
        infer_columns(pd.DataFrame({"day": ["27 Nov 2026"]}), kinds={"day": "date"})


def test_kinds_follow_from_values_and_names():
    cases = [(name, [7, 8, 9], "id") for name in ("id", "brand_id", "productId", "itemID", "SKU", "shop.id")]
    cases += [(name, [7, 8, 9], "number") for name in ("paid", "bid", "num_reviews", "idle", "id_count")]
    cases += [("brand_id", [7.0, None], "id"), ("brand_id", [7.5, 8.0], "number"), ("brand_id", [True], "boolean")]
    times = ("2026-11-27", "2026-11-27 08:30", "2026-11-27T08:30:00.123456789+02:00")
    cases += [("x", [time, None], "date") for time in times]
    cases += [("x", [text, "2026-11-27"], "category") for text in ("7", "27 Nov 2026", "2026", "20261127")]
    for name, values, kind in cases:
        assert infer_columns(pd.DataFrame({name: values}))[0].kind == kind, (name, values)


def test_times_of_a_zone_in_text_are_in_utc():
    (column,) = infer_columns(pd.DataFrame({"x": ["1970-01-01T02:00:01+02:00", "1970-01-01T00:00:03Z", "1970-01-01"]}))
    raw = column_arrays(pd.DataFrame({"x": ["1970-01-01T02:00:01+02:00", "1970-01-01T00:00:03Z", ""]}), [column])["x"]
    assert raw.tolist() == [1, 3, column.missing_value]


def test_numbers_are_categories_if_the_kind_says_so():
    frame = pd.DataFrame({"grade": [3.0, 1.0, None]})
    (column,) = infer_columns(frame, kinds={"grade": "category"})
    assert column.categories == ("1", "3")
    assert column_arrays(frame, [column])["grade"].tolist() == [b"3", b"1", b""]
