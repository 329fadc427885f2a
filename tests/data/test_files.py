"""Files of tables: types of parts that differ, what a CSV file says only as text, and JSON lines."""

import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tfr_smooth.data import from_arrays, from_table, read_files
from tfr_smooth.data.reading import file_formats, files

ROLES = {"query": "q", "label": "label"}
LARGE = [2**60 + number for number in range(4)]
IDS = {
    "decimals": [decimal.Decimal(number) for number in LARGE],
    "decimals with zeros": [decimal.Decimal(f"{number}.00") for number in LARGE],
    "integers of 64 bits and more": [2**64 - 1, 2**64, 7, 8],
    "text": [f"0{number}" for number in LARGE],
}


def a_frame(ids):
    return pd.DataFrame({"q": pd.Series(ids), "label": [1, 0, 2, 0], "x": [0.1, 0.2, 0.3, 0.4]})


def written(frame, path):
    getattr(frame, f"to_{path.suffix[1:]}")(path)
    return read_files(path, cache_dir=path.parent / "cache", **ROLES)


ENTRIES = {
    "arrays": lambda ids, _: from_arrays(np.ones([4, 1]), None, ids),
    "pandas": lambda ids, _: from_table(a_frame(ids), **ROLES),
    "dict": lambda ids, _: from_table({"q": ids, "label": [1, 0, 2, 0], "x": [1] * 4}, **ROLES),
    "Parquet": lambda ids, folder: written(a_frame(ids), folder / "a.parquet"),
    "Feather": lambda ids, folder: written(a_frame(ids), folder / "a.feather"),
    "CSV": lambda ids, folder: written(a_frame(ids), folder / "a.csv"),
}


@pytest.mark.parametrize("kind", IDS)
def test_query_ids_keep_all_their_digits(kind, tmp_path):
    ids = IDS[kind]
    for entry, make in ENTRIES.items():
        if kind == "integers of 64 bits and more" and entry in ("Parquet", "Feather"):
            continue  # pandas does not write them
        lists = make(ids, tmp_path)
        expected = [str(number).removesuffix(".00" if entry != "CSV" else "-") for number in ids]
        assert list(map(str, lists.query_ids.to_pylist())) == expected
        ((inputs, _),) = lists.batches(4, ids=True)
        assert inputs["query_id"].numpy().tolist() == [number.encode() for number in expected]


@pytest.mark.parametrize("ending", ["parquet", "feather", "csv"])
def test_a_column_of_only_some_parts_is_missing_in_the_others(tmp_path, ending):
    parts = tmp_path / "parts"
    parts.mkdir()
    for part, columns in enumerate([{"x": [1.0, 2.0]}, {"x": [3.0, 4.0], "y": [5.0, 6.0]}, {"y": [7.0, 8.0]}]):
        frame = pd.DataFrame({"q": [str(2 * part)] * 2, "label": [0, 1], **columns})
        getattr(frame, f"to_{ending}")(parts / f"{part}.{ending}")
    lists = read_files(parts / f"*.{ending}", cache_dir=tmp_path / "cache", **ROLES)
    np.testing.assert_array_equal(lists.values("x"), [1, 2, 3, 4, np.nan, np.nan])
    np.testing.assert_array_equal(lists.values("y"), [np.nan, np.nan, 5, 6, 7, 8])
    assert read_files(parts, cache_dir=tmp_path / "cache", **ROLES).table == lists.table


def test_parts_of_different_types_have_the_wider_one_or_are_refused(tmp_path):
    def parts(*values):
        for part, column in enumerate(values):
            frame = pd.DataFrame({"q": [part] * 3, "label": [0, 1, 0], "x": column})
            frame.to_parquet(tmp_path / f"{part}.parquet")
        return read_files(tmp_path / "*.parquet", cache_dir=tmp_path / "cache", **ROLES)

    assert parts([1, 2, 3], [1.5, 2.5, None]).values("x")[:5].tolist() == [1, 2, 3, 1.5, 2.5]
    assert parts(np.array([1, 2, 3], "int8"), [1000, 2, 3]).values("x").tolist() == [1, 2, 3, 1000, 2, 3]
    for columns, types in (([True] * 3, [2, 3, 4]), "bool vs int64"), (([1, 2, 3], list("abc")), "int64 vs .*string"):
        with pytest.raises(ValueError, match=rf"1\.parquet: the types must be those of .*0\.parquet: .* x .*{types}"):
            parts(*columns)


def csv(folder, *columns, name="a.csv", query=None):
    """The lists of a CSV file with these columns x, y, ..., of text as it stands in the file."""
    queries = query or [str(row // 2) for row in range(len(columns[0]))]
    rows = [("q", "label", *"xyz"[: len(columns)]), *zip(queries, "0" * len(queries), *columns, strict=True)]
    (folder / name).write_text("".join(",".join(row) + "\n" for row in rows))
    return read_files(folder / name, cache_dir=folder / "cache", **ROLES)


NAN = np.nan
CSV_COLUMNS = {
    "integers": (["1", " 2", "", "NA"], [1, 2, NAN, NAN]),
    "floats": (["1", "2.5", "1e3", "nan"], [1, 2.5, 1000, NAN]),
    "booleans": (["true", "false", "", "true"], [1, 0, NAN, 1]),
    "leading zeros": (["01234", "1234", "", "00"], [b"01234", b"1234", b"", b"00"]),
    "20 digits": ([f"1000000000000000000{n}" for n in range(4)], [b"1000000000000000000%d" % n for n in range(4)]),
    "digits, then text": (["7", "8", "9", "A77"], [b"7", b"8", b"9", b"A77"]),
    "nothing, then numbers": (["", "NA", "", "7"], [NAN, NAN, NAN, 7]),
    "integers, then floats": (["1", "2", "3", "4.5"], [1, 2, 3, 4.5]),
    "dates, then times": (["1970-01-02", "1970-01-01", "", "1970-01-01 00:00:01"], [86400, 0, -(2**63), 1]),
    "text": (['"a,b"', "NA", "3", ""], [b"a,b", b"NA", b"3", b""]),
}


@pytest.mark.parametrize("kind", CSV_COLUMNS)
def test_columns_of_csv_files_have_the_first_type_that_holds_all_values(kind, tmp_path, monkeypatch):
    texts, expected = CSV_COLUMNS[kind]
    for name, part in (("a.csv", texts[:2]), ("b.csv", texts[2:])):
        lines = [f"{name}{row},0,{text}" for row, text in enumerate(part)]
        (tmp_path / name).write_text("\n".join(["q,label,x", *lines]) + "\n")
    for rows in (1, 1 << 17):
        monkeypatch.setattr(files, "_ROWS_AT_ONCE", rows)
        lists = read_files(tmp_path / "*.csv", cache_dir=tmp_path / f"{rows}", **ROLES)
        np.testing.assert_array_equal(lists.values("x"), expected)


def test_decimal_commas_are_refused_with_their_column(tmp_path):
    with pytest.raises(ValueError, match=r"column 'y' must be numbers with decimal points .* got '2,5' in row 1"):
        csv(tmp_path, ["1", "2"], ["3", '"2,5"'])
    assert csv(tmp_path, ["1", "2"], ["b", '"2,5"']).values("y").tolist() == [b"b", b"2,5"]


def test_ids_of_csv_files_are_text(tmp_path):
    lists = csv(tmp_path, list("abcd"), query=["01", " 01 ", "1", "001"])
    assert lists.query_ids.to_pylist() == ["01", "1", "001"]
    with pytest.raises(ValueError, match="column 'q' must be query ids without missing values, got None in row 1."):
        csv(tmp_path, ["a", "b"], query=["1", ""])


def test_texts_of_csv_files_may_have_several_lines(tmp_path):
    path = tmp_path / "train.tsv"
    frame = pd.DataFrame({"qid": np.repeat(np.arange(3000), 5), "label": 1.0})
    frame["title"] = [f'line {number}\n"quoted", and\tmore\n' * 4 for number in range(len(frame))]
    frame.to_csv(path, sep="\t", index=False)  # two blocks of Arrow
    lists = read_files(path, query="qid", label="label", cache_dir=tmp_path)
    assert [title.decode() for title in lists.values("title")] == frame["title"].tolist()


def test_csv_and_tsv_files_may_be_compressed(tmp_path):
    for name, codec, separator in (("a.tsv", None, "\t"), ("a.csv.gz", "gzip", ","), ("a.tsv.lz4", "lz4", "\t")):
        with pa.output_stream(str(tmp_path / name), compression=codec) as file:
            file.write("q,label,x\n1,0,2\n1,1,3\n".replace(",", separator).encode())
        lists = read_files(tmp_path / name, cache_dir=tmp_path / "cache", **ROLES)
        assert lists.values("x").tolist() == [2.0, 3.0]


def test_the_ending_says_the_format(tmp_path):
    assert len(csv(tmp_path, ["1", "2"], name="a.csv")) == 1
    (tmp_path / "a.txt").write_text("q,label,x\n1,0,1\n")
    with pytest.raises(ValueError, match=r"`format` must be one of .* for .*a.txt, got None"):
        read_files(tmp_path / "a.txt", **ROLES)
    assert len(read_files(tmp_path / "a.txt", format="csv", cache_dir=tmp_path, **ROLES)) == 1


BLOCKS = (1, 1 << 23)
# Per row and block, a value in JSON; the values that are read.
JSON_COLUMNS = {
    "integers, then floats": (["1", "2", "null", "4.5"], [1, 2, np.nan, 4.5]),
    "nothing, then text": (["null", "null", '"a"', '""'], [b"", b"", b"a", b""]),
    "dates, then text": (['"1970-01-02"', '"1970-01-01"', '"x"', "null"], [b"1970-01-02", b"1970-01-01", b"x", b""]),
    "integers of 64 bits and more": (
        [f"{2**63 + row}" for row in range(-2, 2)],
        [b"%d" % (2**63 + row) for row in range(-2, 2)],
    ),
    "booleans": (["true", "false", "null", "true"], [1, 0, np.nan, 1]),
    "vectors": (["[1, 2]", "[3, 4]", "[5, 6.5]", "[7, 8]"], [[1, 2], [3, 4], [5, 6.5], [7, 8]]),
    "sets": (["[]", '["a"]', '["b", "c"]', "[]"], [[b"", b""], [b"a", b""], [b"b", b"c"], [b"", b""]]),
}


@pytest.mark.parametrize("kind", JSON_COLUMNS)
def test_json_lines_have_the_type_that_holds_all_values(kind, tmp_path, monkeypatch):
    texts, expected = JSON_COLUMNS[kind]
    for name, part in (("a.jsonl", texts[:2]), ("b.jsonl", texts[2:])):
        rows = [f'{{"q": "{name}", "label": {row}, "x": {text}}}' for row, text in enumerate(part)]
        (tmp_path / name).write_text("\n\n".join(rows))
    for block in BLOCKS:
        monkeypatch.setattr(file_formats, "_BLOCK_BYTES", block)
        lists = read_files(tmp_path / "*.jsonl", cache_dir=tmp_path / f"{block}", **ROLES)
        np.testing.assert_array_equal(lists.values("x"), expected)
        assert lists.values("label").tolist() == [0, 1, 0, 1] and lists.query_ids.to_pylist() == ["a.jsonl", "b.jsonl"]
    assert files.read_table(tmp_path / "*.jsonl")["q"].to_pylist() == ["a.jsonl"] * 2 + ["b.jsonl"] * 2


@pytest.mark.parametrize("ending", ["json", "jsonl.gz", "csv", "parquet"])
def test_a_table_has_all_columns_of_a_file_as_they_are(ending, tmp_path):
    frame = pd.DataFrame({"user": [7, 8, 7], "time": [1.5e9 + 1, 1.5e9 + 2, 1.5e9 + 3], "name": ["a", None, "c"]})
    write = {"csv": frame.to_csv, "parquet": frame.to_parquet}.get(ending)
    options = {"index": False} if write else {"orient": "records", "lines": True}
    (write or frame.to_json)(tmp_path / f"a.{ending}", **options)
    table = files.read_table(tmp_path / f"a.{ending}").to_pandas()
    assert table["user"].tolist() == [7, 8, 7] and table["time"].tolist() == frame["time"].tolist()
    assert table["name"].fillna("").tolist() == ["a", "", "c"]


ROW = '{"q": 1, "label": 0, "x": 1}'
TEXT = ROW.replace("0", '"no"')
BAD_FILES = {
    "jsonl: cut off": (f'{ROW}\n\n{{"q": 1,\n', r":3: JSON parse error: "),
    "jsonl: another type": (f"{ROW}\n\n{TEXT}\n", r":3: .*(changed from number to|type).* string"),
    "csv: too many fields": ("q,label,x\n1,0,2\n1,1,2,5\n", r":3: Expected 3 columns, got 4"),
    "csv: text as a label": ("q,label,x\n1,yes,2\n", r": column 'label' must be numbers or booleans, got text "),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_errors_name_the_file_and_the_line(kind, tmp_path, monkeypatch):
    content, message = BAD_FILES[kind]
    path = tmp_path / f"bad.{kind.partition(':')[0]}"
    path.write_text(content)
    for block in BLOCKS:
        monkeypatch.setattr(file_formats, "_BLOCK_BYTES", block)
        with pytest.raises(ValueError, match=f"^{path}{message}"):
            read_files(path, cache_dir=tmp_path / "cache", **ROLES)


def test_the_line_of_an_error_is_known_after_the_first_block(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("q,label,x\n" + "1,0,2\n" * 300_000 + "1\n")
    with pytest.raises(ValueError, match=f"^{path}:300002: Expected 3 columns, got 1"):
        read_files(path, cache_dir=tmp_path / "cache", **ROLES)
