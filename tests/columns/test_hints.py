"""Texts that look like numbers, dates or sets are named with the argument that helps."""

import numpy as np
import pandas as pd
import pyarrow as pa

from tfr_smooth.columns.hints import hints
from tfr_smooth.columns.learning import checked_table, learn_columns

RANDOM = np.random.default_rng(0)
NUMBERS = RANDOM.integers(1, 100, 300)
LOOKS = {
    "thousands": ([f"{n},234.50" for n in NUMBERS], "has numbers as text ('{}'): convert them"),
    "fractions": ([f"{n}.50" for n in NUMBERS], "has numbers as text ('{}'): convert them"),
    "a word": ([str(n) for n in NUMBERS[1:]] + ["?"], "has numbers and '?': make that missing, such as by nulls=['?']"),
    "a sign": (["1", "2", "?"] * 9, "has numbers and '?': make that missing"),
    "German dates": ([f"{1 + n % 28}.12.2024" for n in NUMBERS], "pass kinds={{'x': 'date:%d.%m.%Y'}}"),
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
