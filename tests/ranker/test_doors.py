"""A value means the same through every door: frames, arrays, files and requests."""

import datetime
import decimal
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import tfr_smooth
from tests.helpers import exports
from tfr_smooth import data
from tfr_smooth.columns.kinds import types_of_kinds
from tfr_smooth.columns.learning import learn_features
from tfr_smooth.data.reading.sources import of_files, read_documents

pytestmark = pytest.mark.slow

QUERIES, LENGTH = 40, 5
ROWS = QUERIES * LENGTH
ODD = ["10.50", "NA", "1e3", "True", "null", "0x10", ".5", "+1", "two words"]
KINDS = {"tags": "set:|", "size": "category", "seller": "id", "german": "date:%d.%m.%Y"}
SMALL = {"loss": "softmax", "members": 1, "hidden": [8], "epochs": 2, "verbose": False, "kinds": KINDS}
ROLES = {"label": "label", "query": "query"}


def made_up():
    """One table of Python values, None if missing, with a column for each kind and what files do to it."""
    random = np.random.default_rng(0)

    def gaps(values, fraction=0.1):
        return [
            None if missing else value for value, missing in zip(values, random.random(ROWS) < fraction, strict=True)
        ]

    day = datetime.datetime(2024, 1, 1, 8, 30)
    days = [day + datetime.timedelta(hours=int(hours)) for hours in random.integers(0, 9000, ROWS)]
    columns = {
        "query": [f"2020-01-{1 + row // LENGTH % 28:02d} {row // LENGTH}" for row in range(ROWS)],
        "price": gaps((random.gamma(2.0, 50.0, ROWS)).tolist()),
        "stock": random.integers(-5, 90, ROWS).tolist(),
        "new": [bool(value) for value in random.integers(0, 2, ROWS)],
        "odd": gaps(random.choice(ODD, ROWS).tolist()),
        "item_id": gaps([100_000_001 + int(value) for value in random.integers(0, 6, ROWS)]),
        "seller": gaps([f"{value:03d}" for value in random.integers(0, 8, ROWS)]),
        "long_id": gaps([10**20 + int(value) for value in random.integers(0, 6, ROWS)]),
        "size": [float(value) / 2 for value in random.integers(0, 5, ROWS)],
        "day": days,
        "german": gaps([value.strftime("%d.%m.%Y") for value in days]),
        "zone": [f"{value:%Y-%m-%d %H:%M:%S}+02:00" for value in days],
        "title": [" ".join(random.choice(["red", "blue", "new", "old", "car", "bike"], 4)) for _ in range(ROWS)],
        "tags": gaps(["|".join(random.choice(["3", "7", "red"], 2)) for _ in range(ROWS)]),
        "likes": [random.integers(0, 5, random.integers(1, 4)).tolist() for _ in range(ROWS)],
        "image": random.normal(size=(ROWS, 3)).tolist(),
    }
    quality = random.normal(size=6) * 2
    effect = [0.0 if value is None else quality[value - 100_000_001] for value in columns["item_id"]]
    effect += np.array([quality[ODD.index(value) % 6] if value else 0.0 for value in columns["odd"]])
    effect += np.array(columns["image"])[:, 0] + np.array([quality[value[0]] for value in columns["likes"]])
    columns["label"] = np.digitize(effect, [0.5, 2.0, 4.0]).tolist()
    return columns


COLUMNS = made_up()
NESTED = ("likes", "image")  # CSV has no lists


def arrow(columns):
    types = {"long_id": pa.decimal128(38, 0), "image": pa.list_(pa.float64(), 3)}
    return pa.table({name: pa.array(values, types.get(name)) for name, values in columns.items()})


def frame(columns):
    return pd.DataFrame({name: list(values) if name in NESTED else values for name, values in columns.items()})


def lines(columns, folder):
    """A file of JSON lines, in which dates are text, and an integer may be written with a fraction."""
    rows = [
        {name: values[row].isoformat() if name == "day" else values[row] for name, values in columns.items()}
        for row in range(ROWS)
    ]
    path = folder / "table.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def comma_separated(columns, folder, suffix=".csv", **options):
    """A file as pandas writes it: integers with gaps have a fraction."""
    table = frame({name: values for name, values in columns.items() if name not in NESTED})
    path = folder / f"table{suffix}"
    table.to_csv(path, index=False, **options)
    return path


def parquet_file(columns, folder):
    path = folder / "table.parquet"
    parquet.write_table(arrow(columns), str(path))
    return path


DOORS = {
    "pandas": lambda columns, folder: frame(columns),
    "polars": lambda columns, folder: pl.from_arrow(arrow(columns)),
    "arrow": lambda columns, folder: arrow(columns),
    "dict": lambda columns, folder: dict(columns),
    "parquet": parquet_file,
    "jsonl": lines,
    "lists": lambda columns, folder: data.from_table(frame(columns), **ROLES),
    "csv": comma_separated,
    "tsv": lambda columns, folder: comma_separated(columns, folder, ".tsv", sep="\t"),
}
FLAT = ("csv", "tsv")


def without_lists(columns):
    return {name: values for name, values in columns.items() if name not in NESTED}


@pytest.fixture(scope="module")
def fitted():
    return tfr_smooth.Ranker(**SMALL).fit(frame(COLUMNS), **ROLES)


@pytest.fixture(scope="module")
def fitted_flat():
    return tfr_smooth.Ranker(**SMALL).fit(frame(without_lists(COLUMNS)), **ROLES)


def learned(X):
    """The columns, statistics and matches, which define the features; the seed defines the rest."""
    roles = {} if isinstance(X, data.Lists) else ROLES
    lists = read_documents(of_files(X, types_of_kinds(KINDS), ["query"]), {}, **roles)
    layer, raw = learn_features(lists, kinds=KINDS, list_context=True)
    config = layer.get_config()
    for column in config["columns"]:
        for told in ("type", "reason"):  # files have dates as text, and the reason says so
            column["config"].pop(told)
    return {name: config[name] for name in ("columns", "matches", "statistics", "list_ranks")}, layer.transform(raw)


@pytest.mark.parametrize("door", DOORS)
def test_what_is_learned_and_scored_is_the_same_from_any_door(door, fitted, fitted_flat, tmp_path):
    ranker = fitted_flat if door in FLAT else fitted
    expected = ranker.predict(frame(COLUMNS))
    assert np.std(expected) > 0.05
    np.testing.assert_array_equal(ranker.predict(DOORS[door](COLUMNS, tmp_path)), expected)
    columns = without_lists(COLUMNS) if door in FLAT else COLUMNS
    expected, features = learned(frame(columns))
    found, others = learned(DOORS[door](columns, tmp_path))
    assert json.dumps(found, default=str) == json.dumps(expected, default=str)
    np.testing.assert_array_equal(others.values("features"), features.values("features"))


def test_lists_in_csv_files_are_refused_by_name(fitted, tmp_path):
    """Python's text of a list is no value of a set, and no vector."""
    path = tmp_path / "table.csv"
    frame(COLUMNS).to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"column 'likes' must be values separated by '\|', not a list in text"):
        fitted.predict(path)


def test_requests_with_plain_values_are_scored_like_tables(fitted, tmp_path):
    expected = fitted.predict(frame(COLUMNS))
    rows = [{"place": row, **{name: values[row] for name, values in COLUMNS.items()}} for row in range(ROWS)]
    for given in (rows, json.loads(json.dumps(rows, default=str))):  # dates are text in JSON
        np.testing.assert_array_equal(fitted.predict(given), expected)
        without = [{name: value for name, value in row.items() if name != "query"} for row in given]
        np.testing.assert_array_equal(fitted.predict(without, group=[LENGTH] * QUERIES), expected)
    ranked, expected_rows = fitted.rank(rows), fitted.rank(frame(COLUMNS))
    assert [row["place"] for row in ranked] == expected_rows.index.tolist()
    assert [[row["score"], row["rank"]] for row in ranked] == expected_rows[["score", "rank"]].to_numpy().tolist()
    served = exports.scores_of(
        fitted.export(tmp_path / "export", warmup=False), fitted, frame(COLUMNS), COLUMNS["query"]
    )
    np.testing.assert_allclose(served, expected, rtol=1e-6, atol=1e-6)


def test_values_of_several_types_in_rows_are_read_one_by_one(fitted):
    """Those of a column in turn as in the training and in another type that has the same values."""
    rows = [{name: values[row] for name, values in COLUMNS.items()} for row in range(ROWS)]
    expected = fitted.predict(rows)
    for name, functions in SAME.items():
        for function in functions:
            known = [place for place, value in enumerate(COLUMNS[name]) if value is not None]
            mixed = {place: {**rows[place], name: function(rows[place][name])} for place in known[::2]}
            mixed = [mixed.get(place, row) for place, row in enumerate(rows)]
            np.testing.assert_allclose(fitted.predict(mixed), expected, rtol=1e-6, atol=1e-6, err_msg=name)


def test_wrong_rows_are_refused_by_the_name_of_the_column(fitted):
    rows = [{name: values[row] for name, values in COLUMNS.items()} for row in range(LENGTH)]
    without = {name: value for name, value in rows[1].items() if name != "price"}
    for wrong, message in (
        ({**rows[1], "price": "cheap"}, r"column 'price' must be numbers.*, got 'cheap' in row 1"),
        (without, r"column 'price' must be in each row .numbers.*; None if missing., got .* in row 1"),
        ("text", "column '.*' must be in each row .*, got 'text' in row 1"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted.predict([rows[0], wrong, *rows[2:]])


SAME = {  # values of one column that are equal to those of the training, in other types
    "item_id": [float, str, lambda value: f"{value}.0", decimal.Decimal, np.int64, lambda value: f" +{value:.10e}"],
    "long_id": [str, decimal.Decimal],
    "new": [int, str, float, lambda value: str(float(value))],
    "price": [str, decimal.Decimal, lambda value: f" {value!r} ", lambda value: f"+{value:.17e}"],
    "stock": [str, float, decimal.Decimal],
    "size": [str, decimal.Decimal, lambda value: f"{value:.3f}", lambda value: f"+{value:e}"],
    "day": [str, datetime.datetime.isoformat, lambda value: f"{value:%Y-%m-%dT%H:%M:%S}Z", pd.Timestamp],
    "german": [lambda value: datetime.datetime.strptime(value, "%d.%m.%Y")],
    "tags": [lambda value: value.split("|"), lambda value: value.replace("|", "\u00a0|\u3000"), "||{}".format],
    "likes": [lambda value: "|".join(map(str, value)), lambda value: [str(each) for each in value]],
}


@pytest.mark.parametrize("name", SAME)
def test_a_column_of_another_type_has_equal_values(name, fitted):
    table = frame(COLUMNS)
    expected = fitted.predict(table)
    for convert in SAME[name]:
        changed = [None if value is None else convert(value) for value in COLUMNS[name]]
        if convert is decimal.Decimal:
            changed = [value if value is None else +value for value in changed]
        same = table.assign(**{name: pd.Series(changed, dtype=object)})
        np.testing.assert_allclose(fitted.predict(same), expected, rtol=1e-6, atol=1e-6)


NOT_EQUAL = [  # values that have no equal one in the type of the training
    ("odd", 10.5, "text or whole numbers, got 10.5 in row 0"),
    ("odd", True, "text or whole numbers, got True in row 0"),
    ("price", "cheap", "numbers, got 'cheap' in row 0"),
    ("item_id", "1e999999999", "numbers, got '1e99"),
    ("new", "yes", "booleans: true and false, or 1 and 0"),
    ("german", "31.02.2025", r"dates as '%d.%m.%Y'"),
    ("item_id", 1.5, "integers as ids, got 1.5 in row 0"),
    ("item_id", 1e17, "ids, which double has only up to"),
    ("image", [1.0, 2.0], "vectors of 3 numbers, got 2"),
    ("stock", COLUMNS["day"][0], "numbers, got (datetime|Timestamp)"),
]


def test_values_without_an_equal_one_are_refused(fitted):
    for name, value, expected in NOT_EQUAL:
        with pytest.raises(ValueError, match=f"column '{name}' must be {expected}"):
            fitted.predict(frame({**COLUMNS, name: [value] * ROWS}))


@pytest.mark.parametrize("door", ["csv", "jsonl"])
def test_files_are_read_by_the_training_and_not_by_their_content(door, fitted, fitted_flat, tmp_path):
    """A column of text of which a file only has values that look like numbers, booleans or missing ones."""
    ranker = fitted_flat if door in FLAT else fitted
    for only in ["10.50", "NA", "1e3", "True", "0x10"]:
        columns = {**COLUMNS, "odd": [only] * ROWS}
        path, expected = DOORS[door](columns, tmp_path), ranker.predict(frame(columns))
        np.testing.assert_array_equal(ranker.predict(path), expected)
        lists = data.read_files(path, **ROLES, types=ranker.types_, cache_dir=tmp_path)
        np.testing.assert_array_equal(ranker.predict(lists), expected)


def test_words_for_missing_numbers_are_missing_ids_as_in_training(tmp_path):
    """A CSV file whose ids of whole numbers have gaps: in `fit`, in `predict`, by types and in pandas."""
    columns = {
        **without_lists(COLUMNS),
        "item_id": ["NA" if value is None else str(value) for value in COLUMNS["item_id"]],
    }
    path = comma_separated(columns, tmp_path)
    ranker = tfr_smooth.Ranker(**SMALL).fit(path, **ROLES)
    expected = ranker.predict(frame(without_lists(COLUMNS)))
    lists = data.read_files(path, **ROLES, types=ranker.types_, cache_dir=tmp_path)
    for X in (path, lists, frame(columns), pd.read_csv(path, dtype={"seller": str}, keep_default_na=False)):
        np.testing.assert_array_equal(ranker.predict(X), expected)


def test_an_index_of_another_order_is_refused(fitted_flat):
    table, new = frame(without_lists(COLUMNS)), tfr_smooth.Ranker(**SMALL)
    X, qid = table.drop(columns=["label", "query"]), table["query"]
    y = table["label"].sample(frac=1.0, random_state=0)
    for call in (
        lambda: fitted_flat.evaluate(X, y, qid=qid),
        lambda: new.fit(X, y, qid=qid),
        lambda: tfr_smooth.evaluation.evaluate_rows(y, X["price"].fillna(0), qid),
    ):
        with pytest.raises(ValueError, match="must have the index of .*, got one of another order"):
            call()
