"""Texts that look like numbers, dates or sets are named with the argument that helps."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa

from tfr_smooth import data
from tfr_smooth.columns.hints import hints, warn_of_columns
from tfr_smooth.columns.learning import checked_table, learn_columns, learn_features

RANDOM = np.random.default_rng(0)
NUMBERS = RANDOM.integers(1, 100, 300)
LOOKS = {
    "thousands": ([f"{n},234.50" for n in NUMBERS], "has numbers as text ('{}'): convert them"),
    "fractions": ([f"{n}.50" for n in NUMBERS], "has numbers as text ('{}'): convert them"),
    "a word": ([str(n) for n in NUMBERS[1:]] + ["?"], "has numbers and '?': make that missing, such as by nulls=['?']"),
    "a sign": (["1", "2", "?"] * 9, "has numbers and '?': make that missing"),
    "German dates": ([f"{1 + n % 28}.12.2024" for n in NUMBERS], "pass kinds={{'x': 'date:%d.%m.%Y'}}"),
    "times": ([f"{1 + n % 28}.12.2024 {n % 24}:05" for n in NUMBERS], "pass kinds={{'x': 'date:%d.%m.%Y %H:%M'}}"),
    "commas and a word": ([f"{n},5" for n in NUMBERS] + ["k.A."], "by nulls=['k.A.'] and decimal=',' of the readers"),
    "American dates": ([f"12/{1 + n % 28}/24" for n in NUMBERS], "pass kinds={{'x': 'date:%m/%d/%y'}}"),
    "histories": (["1|0|1|1", "0|0|1", "1|1"] * 100, "looks like histories ('{}'): a set loses the order"),
    "sets": (["sale|new", "sale", "new|old"] * 100, "looks like sets ('{}'): pass kinds={{'x': 'set:|'}}"),
    "sets by commas": (["red,blue", "blue,green", "red"] * 100, "pass kinds={{'x': 'set:,'}}"),
}
FINE = {
    "integers": [str(n) for n in NUMBERS],
    "versions": [f"1.{n}.2" for n in NUMBERS],
    "words": ["red, blue and a car", "one"] * 150,
}


def found(values, **options):
    learned, raw = learn_columns(checked_table(pd.DataFrame({"x": values})), **options)
    return list(hints(learned["columns"], pa.table(raw)))


def test_texts_that_look_like_other_values_are_told_with_what_to_do():
    for values, hint in LOOKS.values():
        (message,) = found(values)
        assert message.startswith("'x' ") and hint.format(values[0]) in message
        assert found(values, kinds={"x": "category"}) == []  # the user said so
    for name, values in FINE.items():
        assert found(values) == [], name


def test_places_where_documents_were_shown_are_told_if_labels_are_clicks():
    frame = pd.DataFrame({"query": np.repeat(np.arange(10), 4), "label": [0, 1, 0, 0] * 10})
    frame = frame.assign(click_position=[1, 2, 3, 4] * 10, franking=RANDOM.normal(size=40), last_rank="a")
    for label, is_told in (("label", True), ("graded", False)):
        table, features = frame.assign(graded=2 * frame["label"]), ["click_position", "franking", "last_rank"]
        layer, raw = learn_features(data.from_table(table, query="query", label=label, features=features))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            warn_of_columns(layer, raw)
        assert any("['click_position'] may tell where" in str(each.message) for each in told) is is_told
