"""`Lists` hold the same documents from any source, in memory and on disk, and refuse bad input at the call."""

import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
import tensorflow as tf

from tests import helpers
from tests.data.readers import as_numpy, assert_refused, assert_same_batches
from tfr_smooth.data import column_values, from_arrays, from_table, read_files, read_letor, read_records, write_records
from tfr_smooth.data.reading import conversion, files

QUERIES = np.array(["b", "a", "b", "c", "a", "b", "c", "d", "e"])
LABELS = np.array([0, 1, 2, 0, 0, 1, 3, 1, 2])
FEATURES = np.random.RandomState(0).randn(9, 3).astype(np.float32)
NAMES = [f"d{row}" for row in range(9)]
FRAME = pd.DataFrame(FEATURES, columns=["f1", "f2", "f3"]).assign(name=NAMES)
FRAME.insert(0, "label", LABELS)
FRAME.insert(0, "qid", QUERIES)
ROLES = {"query": "qid", "label": "label", "document_id": "name", "stack": True}
SORTED = np.argsort([list("bacde").index(query) for query in QUERIES], kind="stable")


def from_file(path, frame=FRAME, **options):
    write = {".csv": frame.to_csv, ".feather": frame.to_feather, ".parquet": frame.to_parquet}[path.suffix]
    write(path, **({"index": False} if path.suffix == ".csv" else {}))
    return read_files(path, cache_dir=path.parent / "cache", **{**ROLES, **options})


def from_folder(folder):
    table = pa.Table.from_pandas(FRAME.assign(part=[0, 0, 0, 0, 0, 1, 1, 1, 1]), preserve_index=False)
    options = {"format": "parquet", "partitioning": ["part"], "partitioning_flavor": "hive"}
    pa.dataset.write_dataset(table, folder / "hive", **options)
    return read_files(folder / "hive", features=["f1", "f2", "f3"], cache_dir=folder / "cache", **ROLES)


def from_letor(folder):
    values = [" ".join(f"{i}:{value!r}" for i, value in enumerate(row, 1)) for row in FEATURES.tolist()]
    lines = (f"{LABELS[row]} qid:{QUERIES[row]} {values[row]} #docid = {NAMES[row]}\n" for row in SORTED)
    (folder / "a.txt").write_text("".join(lines))
    return read_letor(folder / "a.txt", cache_dir=folder / "cache")


def chunked(table):
    return pa.concat_tables([table.slice(0, 4), table.slice(4, 0), table.slice(4)])


def from_records(folder, stack):
    """Written to records, with the features as one vector or one by one, and read again."""
    path = write_records(from_table(FRAME, **{**ROLES, "stack": not stack}), folder / "r.gz")
    return read_records(path, cache_dir=folder, **{**ROLES, "stack": stack})


def with_others(folder):
    """Selected among other queries."""
    queries = [*QUERIES, "x", "y", "x"]
    features = np.concatenate([FEATURES, np.ones([3, 3])])
    lists = from_arrays(features, [*LABELS, 1, 1, 1], queries, document_ids=[*NAMES, "1", "2", "3"])
    return lists.take([5, 4, 3, 2, 1, 0]).take([5, 4, 3, 2, 1])


SOURCES = {
    "arrays": lambda folder: from_arrays(FEATURES, LABELS, QUERIES, document_ids=NAMES),
    "objects": lambda folder: from_arrays(
        *(each.astype(object) for each in (FEATURES, LABELS, QUERIES)), document_ids=NAMES
    ),
    "pandas": lambda folder: from_table(FRAME.set_index(np.arange(9) * 7).astype({"qid": "category"}), **ROLES),
    "Polars": lambda folder: from_table(pl.from_pandas(FRAME), **ROLES),
    "PyArrow, chunks": lambda folder: from_table(chunked(pa.Table.from_pandas(FRAME)), **ROLES),
    "dict": lambda folder: from_table(dict(FRAME), **ROLES),
    "Parquet": lambda folder: from_file(folder / "a.parquet"),
    "Parquet, in a folder": from_folder,
    "Feather": lambda folder: from_file(folder / "a.feather"),
    "CSV": lambda folder: from_file(folder / "a.csv"),
    "LETOR": from_letor,
    "records, vectors": lambda folder: from_records(folder, stack=False),
    "records, numbers": lambda folder: from_records(folder, stack=True),
    # Rows of a query are in several chunks of a file.
    "chunks": lambda folder: from_table(chunked(from_file(folder / "a.parquet", stack=False).table), **ROLES),
    "taken": with_others,
}


@pytest.fixture
def expected():
    return from_arrays(FEATURES[SORTED], LABELS[SORTED], QUERIES[SORTED], document_ids=np.array(NAMES)[SORTED])


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_yields_the_same_lists(source, tmp_path, expected):
    lists = SOURCES[source](tmp_path)
    assert len(lists) == 5 and lists.documents == 9 and lists.num_features == 3
    assert lists.query_ids.to_pylist() == list("bacde") and lists.starts.tolist() == [0, 3, 5, 7, 8, 9]
    np.testing.assert_array_equal(lists.values("features"), FEATURES[SORTED])
    np.testing.assert_array_equal(lists.values(lists.roles.labels[0]), LABELS[SORTED])
    assert lists.values(lists.roles.document_id).tolist() == [NAMES[row].encode() for row in SORTED]
    assert lists.summary() == (5, 9, 3, 3, 3.0, True, {0.0: 3, 1.0: 3, 2.0: 2, 3.0: 1}, {})
    if source in ("arrays", "Parquet", "chunks", "taken"):  # in order or not, in memory or on disk
        options = {"ids": True, "shuffle": True, "seed": 1, "num_epochs": 2}
        assert_same_batches(lists.batches(2, **options), expected.batches(2, **options))
    frame = lists.to_pandas()
    np.testing.assert_array_equal(frame[["1", "2", "3"]], FEATURES[SORTED])
    assert frame[lists.roles.query].tolist() == QUERIES[SORTED].tolist()


def test_saved_batches_are_the_same_without_python(expected, tmp_path):
    batches = expected.batches(2, ids=True)
    batches.save(str(tmp_path / "batches"))
    saved = tf.data.Dataset.load(str(tmp_path / "batches"))
    assert_same_batches(saved, batches)
    assert b"PyFunc" not in saved._as_serialized_graph(allow_stateful=True).numpy()


def test_weights_and_positions_stay_with_their_documents():
    lists, found = from_arrays(FEATURES, LABELS, QUERIES, weights=np.arange(9.0), positions=np.arange(1, 10)), []
    for inputs, labels, weights in as_numpy(lists.batches(2, ids=True, shuffle=True)):
        mask, features, positions = inputs["mask"], inputs["features"], inputs["position"]
        rows = inputs["doc_id"][mask].astype(int)
        assert positions.dtype == np.int32 and weights[mask].tolist() == rows.tolist()
        assert (positions[mask] == rows + 1).all() and (labels[mask] == LABELS[rows]).all()
        np.testing.assert_array_equal(features[mask], FEATURES[rows])
        assert not any(array[~mask].any() for array in (positions, weights, features))
        found += rows.tolist()
    assert sorted(found) == list(range(9))


def test_padding_has_label_minus_1_also_without_labels():
    inputs, labels = as_numpy(from_arrays(FEATURES, None, QUERIES).batches(5))[0]
    np.testing.assert_array_equal(labels, np.where(inputs["mask"], 0.0, -1.0))


def test_clicks_with_propensities_become_one_list_each():
    clicks, options = [1, 0, 1, 0, 0, 0, 1, 0, 0], {"propensities": np.arange(1, 10) / 10, "weights": np.full(9, 2.0)}
    lists = from_arrays(FEATURES, clicks, QUERIES, **options)
    ((inputs, labels, found),) = as_numpy(lists.batches(9))
    np.testing.assert_array_equal(np.sum(labels == 1.0, axis=1), [1, 1, 1])
    np.testing.assert_allclose(found, [2 / 0.1, 2 / 0.3, 2 / 0.7], rtol=1e-6)
    assert len(inputs["features"]) == 3


def test_several_labels_are_stacked():
    frame = FRAME.assign(sale=LABELS[::-1])
    by_name = from_table(frame.drop(columns="name"), query="qid", label={"label": 1, "sale": 0.5}, stack=True)
    assert by_name.roles.labels == ("label", "sale") and by_name.roles.label_weights == (1.0, 0.5)
    arrays = from_arrays(FEATURES, np.stack([LABELS, LABELS[::-1]], axis=1), QUERIES)
    assert_same_batches(by_name.batches(2), arrays.batches(2))
    assert arrays.batches(2).element_spec[1].shape.as_list() == [None, None, 2]


NO_DATE = [-(2**63), 0]  # and padding
COLUMNS = {
    "number": ([1, None, 3], [[1, 3], [np.nan, 0]]),
    "float": ([1.5, np.nan, 3.5], [[1.5, 3.5], [np.nan, 0]]),
    "boolean": ([True, False, True], [[1, 1], [0, 0]]),
    "decimal": ([decimal.Decimal("1.5"), decimal.Decimal(2), None], [[1.5, np.nan], [2, 0]]),
    "text": (["x", None, ""], [[b"x", b""], [b"", b""]]),
    "date": (pd.to_datetime(["2020-01-01", None, "1969-12-31"]), [[1577836800, -86400], NO_DATE]),
    "vector": ([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[[1, 2], [5, 6]], [[3, 4], [0, 0]]]),
    "set": ([["u"], [], ["v", "w"]], [[[b"u", b""], [b"v", b"w"]], [[b"", b""], [b"", b""]]]),
    "numbers": ([[1.0], [], [2.0, 3.0]], [[[1, np.nan], [2, 3]], [[np.nan, np.nan], [0, 0]]]),
    "category": (pd.Categorical(["u", "v", "u"]), [[b"u", b"u"], [b"v", b""]]),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_named_columns_have_the_values_of_their_rows(kind):
    values, expected = COLUMNS[kind]
    frame = pd.DataFrame({"qid": [7, 8, 7], "label": [1, 0, 2], "x": values})
    lists = from_table(frame, query="qid", label="label")
    ((inputs, labels),) = as_numpy(lists.batches(2))
    assert sorted(inputs) == ["mask", "x"]
    np.testing.assert_array_equal(inputs["x"], expected)
    np.testing.assert_array_equal(labels, [[1, 2], [0, -1]])
    known = pa.array(frame["x"], from_pandas=True).null_count
    assert kind == "vector" or lists.summary().missing == ({"x": known} if known else {})


DATES = ["2020-01-01", "2020-01-02 00:00:01", "2020-01-03 00:00:00.25"]
IN_TOKYO = pd.to_datetime(DATES[:2], format="ISO8601").tz_localize("UTC").tz_convert("Asia/Tokyo")
ONE_TEXT = [
    (DATES[:1], [np.array(DATES[:1], f"datetime64[{unit}]") for unit in ("D", "s", "ms", "us", "ns")]),
    (DATES[:2], [IN_TOKYO, *(np.array(DATES[:2], f"datetime64[{unit}]") for unit in ("s", "ms", "us", "ns"))]),
    (DATES, [np.array(DATES, f"datetime64[{unit}]") for unit in ("ms", "us", "ns")]),
    (["(0, 1]", "(1, 2]"], [pd.arrays.IntervalArray.from_breaks(breaks) for breaks in ([0, 1, 2], [0.0, 1, 2])]),
    (["100012", "-7"], [np.array([100012, -7], kind) for kind in ("int32", "int64", "float32", "float64")]),
    (["1000000000000000001"], [np.array([10**18 + 1]), [decimal.Decimal(10**18 + 1)]]),
    (["1.5", "2"], [[1.5, 2.0], [decimal.Decimal("1.50"), decimal.Decimal("2.00")]]),
]


@pytest.mark.parametrize("case", range(len(ONE_TEXT)))
def test_the_text_of_a_category_or_an_id_depends_on_neither_its_type_nor_its_unit(case):
    expected, columns = ONE_TEXT[case]
    for values in map(pd.Series, columns):
        frame = pd.DataFrame({"q": 1, "category": values.astype("category")})
        if case >= 4:  # numbers
            frame["id"] = values
        lists = from_table(frame, query="q", label=None, document_id="id" if case >= 4 else None)
        for name in frame.columns[1:]:
            assert lists.values(name).tolist() == [text.encode() for text in expected]


def test_sparse_columns_are_read():
    for missing in (0.0, np.nan):
        frame = {"q": [1, 1, 2], "x": pd.arrays.SparseArray([missing, missing, 1.0])}
        for table in (pd.DataFrame(frame), frame):
            found = from_table(table, query="q", label=None).values("x")
            np.testing.assert_array_equal(found, [missing, missing, 1.0])


def test_columns_may_have_names_that_are_not_text():
    for names in ((0, 1, 2), (np.int64(7), 8, "x"), (("id", "q"), ("id", "label"), ("x", "")), ("q", 1.5, True)):
        frame = pd.DataFrame([[7, 1, 0.5], [8, 0, 0.25]], columns=pd.Index(names))
        for options in ({}, {"features": [names[2]]}):
            lists = from_table(frame, query=names[0], label=names[1], **options)
            assert lists.roles.columns == [str(name) for name in names] and lists.query_ids.to_pylist() == [7, 8]


def test_queries_are_split_at_random_and_keep_their_order():
    lists = from_arrays(np.ones([40, 1]), None, np.arange(40) // 2)
    rest, held = lists.split(0.25, seed=3)
    ids = [part.query_ids.to_pylist() for part in (rest, held)]
    assert len(ids[1]) == 5 and sorted(sum(ids, [])) == list(range(20)) and all(each == sorted(each) for each in ids)
    again, other = lists.split(0.25, seed=3)[1], lists.split(0.25, seed=4)[1]
    assert again.query_ids == held.query_ids != other.query_ids
    assert [len(part) for part in lists.split(0.99)] == [1, 19] and len(lists.split(0.01)[1]) == 1


def test_shards_partition_the_queries():
    lists = from_arrays(FEATURES, LABELS, QUERIES)
    shards = [lists.shard(index, 2).query_ids.to_pylist() for index in range(2)]
    assert shards == [["b", "c", "e"], ["a", "d"]]


def test_taken_queries_share_the_columns():
    lists = from_arrays(FEATURES, LABELS, QUERIES)
    taken = lists.take([3, 0])
    assert taken.rows.tolist() == [7, 0, 2, 5] and taken.table.num_rows == 4
    np.testing.assert_array_equal(taken.values("features"), FEATURES[[7, 0, 2, 5]])
    chosen = lists.lengths > 1
    assert lists.take(chosen).query_ids.to_pylist() == list("bac")
    assert taken.summary()[:4] == (2, 4, 3, 3)


def test_samples_keep_the_relevant_documents_and_some_others_in_order():
    random = np.random.RandomState(0)
    labels, qid = random.randint(-1, 2, 600).clip(0).astype(np.float32), random.randint(0, 9, 600)
    lists = from_arrays(np.arange(600.0)[:, None], labels, qid).take([4, 1, 7])
    samples = [lists.sample(10, seed=seed) for seed in (0, 0, 1)]
    assert samples[0].digest() == samples[1].digest() != samples[2].digest()
    for query, kept in enumerate(np.split(samples[0].rows, samples[0].starts[1:-1])):
        all_rows = lists.take([query]).rows
        assert (np.diff(kept) > 0).all() and set(kept) <= set(all_rows)
        assert set(kept[labels[kept] > 0]) == set(all_rows[labels[all_rows] > 0])
        assert (labels[kept] == 0).sum() == 10
    assert lists.sample(10**6).digest() == lists.digest()
    kept = [lists.sample(10, seed=seed).rows for seed in range(300)]
    chosen = np.bincount(np.concatenate(kept), minlength=600)[lists.take([0]).rows]
    others = chosen[labels[lists.take([0]).rows] == 0]
    assert abs(others - 3000 / len(others)).max() < 5 * np.sqrt(3000 / len(others))


def arrays(**changed):
    return lambda: from_arrays(**{"features": [[0.0], [1.0]], "labels": [0, 1], "qid": ["a", "a"], **changed})


def table(frame=None, **changed):
    frame = pd.DataFrame({"q": [1, 1], "label": [0, 1], "x": [1.0, 2.0]}) if frame is None else frame
    return lambda: from_table(frame, **{"query": "q", "label": "label", **changed})


def of(**columns):
    return table(pd.DataFrame({"q": [1, 1], "label": [0, 1], "x": [1.0, 2.0], **columns}))


LISTS = from_arrays(FEATURES, LABELS, QUERIES)
REFUSED = [
    (arrays(features=[[0.0], [np.nan]]), r"`features` must be finite float32 numbers, got nan in row 1, column 0."),
    (arrays(features=np.zeros((0, 1))), "`features` must have at least one row, got none."),
    (arrays(labels=[0.0]), "`labels` must have one value per row, shape (2,), got (1,)."),
    (arrays(labels=[[1, 0], [0, -1]]), "`labels` must be finite float32 numbers >= 0, got -1 in row 1."),
    (arrays(labels=["0", "1"]), "`labels` must be numbers or booleans, got text such as '0', '1'"),
    (arrays(propensities=[0.5, 0]), "`propensities` must be finite float32 numbers > 0, got 0.0 in row 1."),
    (arrays(positions=[1.7, 1]), "`positions` must be whole numbers from 0 to 2147483647, got 1.7 in row 0."),
    (arrays(qid=["a", "\ud800"]), "`qid` must be text that UTF-8 has, got '\\ud800' in row 1."),
    (arrays(qid=[1.0, np.nan]), "`qid` must be query ids without missing values, got None in row 1."),
    (arrays(group=[2]), "Exactly one of `qid` and `group` must be given, got both."),
    (arrays(qid=None, group=[1]), "`group` must add up to the number of rows, 2, got a sum of 1."),
    (arrays(qid=None, group=[2, 0]), "`group` must be integers >= 1, got [2, 0]."),
    (table(query="id"), "`query` must be one of 'q', 'label', 'x', got 'id'."),
    (table(features="x"), "`features` must be unique names of columns, got 'x'."),
    (table(label={"label": -1.0}), "`label['label']` must be a finite number >= 0, got -1.0."),
    (table([1]), "`table` must be a table of pandas, Polars, PyArrow or DuckDB, or have the method "),
    (table(pl.LazyFrame({"q": [1]})), "`table` must be a table, got a lazy one; pass `table.collect()`."),
    (table(pd.DataFrame([[1, 2]], columns=["q", "q"])), "`table` must have each column once, got 'q' 2 times."),
    (of(q=[[1], [2]]), "column 'q' must be query ids as numbers or text, got the type list<item: int64>."),
    (of(x=[1.0, np.inf]), "column 'x' must be finite float32 numbers or missing, got inf in row 1."),
    (of(x=[1, "a"]), "column 'x' must have values of one type: "),
    (of(x=pd.Categorical([(1, 2), (3, 4)])), "column 'x' must have ids or categories as text, numbers or dates, got "),
    (of(x=np.array([1j, 2])), "column 'x' must be numbers, booleans, text, dates, durations, vectors "),
    (of(x=pd.Series(["a", "\ud800"], dtype=object)), "column 'x' must be text that UTF-8 has, got '\\ud800' in row 1."),
    (table({"\ud800": ["a"]}), "`table` must have names of columns that UTF-8 has, got '\\ud800'."),
    (of(mask=[1, 2]), "`features` must not have the name 'mask', which batches have for the mask of the documents; "),
    (of(**{"": [1, 2]}), "`features` must not have the name '', which is empty; rename the column."),
    (table(pd.DataFrame({"q": [1], "p": [1], "position": [1]}), label=None, position="p"),
     "`features` must not have the name 'position', which batches have for the positions; rename the column."),
    (lambda: of(doc_id=[1, 2])().batches(1, ids=True),
     "`ids` must be False, as there are features of these names, got True and ['doc_id']."),
    (lambda: LISTS.split(0.0), "`fraction` must be a number in (0, 1), got 0.0."),
    (lambda: LISTS.take([0]).split(0.5), "`fraction` must have at most one part per query, got 2 for 1."),
    (lambda: LISTS.take([5]), "`queries` must be indices of the 5 queries, got [5]."),
    (lambda: LISTS.shard(2, 2), "`index` must be less than `count`, at most 5, got 2 and 2."),
    (lambda: LISTS.sample(0), "`negatives` must be an integer >= 1, got 0"),
    (lambda: from_arrays([[1.0]], None, [0]).sample(1), "`negatives` requires lists with labels, got none"),
    (lambda: LISTS.values("x"), "`name` must be one of 'query_id', 'label', 'features', got 'x'."),
    (lambda: LISTS.batches(0), "`batch_size` must be an integer >= 1, got 0."),
    (lambda: LISTS.batches(2, shuffle=1), "`shuffle` must be True or False, got 1."),
]  # fmt: skip


def test_bad_input_is_refused_at_the_call():
    helpers.assert_refused(REFUSED)


def test_bad_values_of_files_have_their_path_column_and_row(tmp_path):
    frame = pd.DataFrame({"q": [1, 1, 2], "label": [0, 1, 1], "x": [1.0, 2.0, 3.0]})
    paths = [tmp_path / f"{name}.parquet" for name in "ab"]
    frame.to_parquet(paths[0])
    for changed, options, message in (
        ({"label": [0, 1, -1]}, {}, "column 'label' must be finite float32 numbers >= 0, got -1 in row 2."),
        ({"x": [0, None, 1]}, {"stack": True}, "column 'x' must be finite float32 numbers, got None in row 1."),
    ):
        frame.assign(q=frame["q"] + 5, **changed).to_parquet(paths[1])
        roles = {"query": "q", "label": "label", "cache_dir": tmp_path / "cache", **options}
        assert_refused(f"{paths[1]}: {message}", read_files, tmp_path / "*.parquet", **roles)


def test_files_that_cannot_be_sorted_in_memory_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_free_memory", lambda: 10)
    with pytest.raises(ValueError) as raised:
        from_file(tmp_path / "a.parquet")
    path, message = tmp_path / "a.parquet", str(raised.value)
    assert message.startswith(f"{path}: column 'qid' must have the rows of a query together, which ")
    assert message.endswith(f"COPY (FROM '{path}' ORDER BY \"qid\") TO 'sorted.parquet'") and "of 'b' are" in message


def test_files_are_found_by_patterns_lists_and_uris(tmp_path):
    for part in range(2):
        FRAME.iloc[SORTED[:3] if part == 0 else SORTED[3:]].to_parquet(tmp_path / f"{part}.parquet")
    pattern = f"{tmp_path}/*.parquet"
    for paths in (pattern, [tmp_path / "0.parquet", tmp_path / "1.parquet"], f"file://{pattern}"):
        lists = read_files(paths, cache_dir=tmp_path / "cache", **ROLES)
        np.testing.assert_array_equal(lists.values("features"), FEATURES[SORTED])
    with pytest.raises(ValueError, match="`paths` must match files, got '.*/no\\*', which matches none"):
        read_files(f"file://{tmp_path}/no*", **ROLES)
    (tmp_path / "text.parquet").write_text("nonsense")
    with pytest.raises(ValueError, match="`paths` must be readable as parquet, got "):
        read_files(tmp_path / "text.parquet", **ROLES)


def test_many_small_record_batches_hold_whole_queries(tmp_path, monkeypatch):
    monkeypatch.setattr(conversion, "BATCH_BYTES", 100)
    monkeypatch.setattr(files, "_ROWS_AT_ONCE", 4)
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"q": np.sort(random.integers(0, 30, 200)), "label": random.integers(0, 3, 200)})
    frame["x"], frame["t"] = random.normal(size=200), [f"t{row}" for row in range(200)]
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=7)
    roles = {"query": "q", "label": "label"}
    lists = read_files(tmp_path / "a.parquet", cache_dir=tmp_path, **roles)
    assert lists.table["x"].num_chunks > 10
    options = {"shuffle": True, "seed": 1, "ids": True}
    assert_same_batches(lists.batches(4, **options), from_table(frame, **roles).batches(4, **options))


def test_datasets_have_static_shapes():
    for options, batch, length in (({}, None, None), ({"list_size": 7, "drop_remainder": True}, 2, 7)):
        assert LISTS.batches(2, ids=True, **options).element_spec == (
            {
                "features": tf.TensorSpec([batch, length, 3], tf.float32),
                "query_id": tf.TensorSpec([batch], tf.string),
                "doc_id": tf.TensorSpec([batch, length], tf.string),
                "mask": tf.TensorSpec([batch, length], tf.bool),
            },
            tf.TensorSpec([batch, length], tf.float32),
        )


def test_the_digest_is_that_of_the_content():
    frame = FRAME.assign(f1=FRAME["f1"].mask(FRAME["f1"] > 0.5), tags=[["a"], None, [], *[["b", "c"]] * 6])

    def digest(table):
        return from_table(table, query="qid", label="label").digest()

    table = pa.Table.from_pandas(frame, preserve_index=False)
    same = [frame, frame.copy(), pa.concat_tables([table]), table.slice(0)]
    assert len({digest(each) for each in same}) == 1
    swapped = frame.assign(f2=frame["f2"].to_numpy()[[1, 0, *range(2, 9)]])
    others = [swapped, frame.assign(f1=frame["f1"].fillna(0.0)), frame.assign(label=frame["label"] % 2), frame[:-1]]
    others += [frame.rename(columns={"f1": "f4"}), frame.assign(qid=list("babcabcdd")), frame.iloc[::-1]]
    others.append(frame.assign(tags=[["a"], [], None, *[["b", "c"]] * 6]))
    assert len({digest(each) for each in [frame, *others]}) == 1 + len(others)


def test_a_slice_of_text_keeps_its_values_beside_nulls():
    """Arrow before 24 returned those before the slice."""
    texts = pa.array(["a", "", "b", "c"])
    for column in (texts.slice(1), pa.chunked_array([texts.slice(0, 1), texts.slice(1)]).slice(1)):
        assert column_values.without(column, pa.compute.equal(column, "")).to_pylist() == [None, "b", "c"]
