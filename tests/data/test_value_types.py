"""How values are written in files: types, words for missing values, delimiters, decimal points and encodings."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.data.readers import assert_refused
from tfr_smooth.data import read_files
from tfr_smooth.data.reading import file_formats, files
from tfr_smooth.data.reading.checks import Where
from tfr_smooth.data.reading.value_types import Reading, as_type

ROLES = {"query": "q", "label": "label"}


def read(path, content, **options):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_files(path, **ROLES, cache_dir=path.parent / "cache", **options)


NONE = -(2**63)
TYPED = {  # the type, cells of a CSV file, and their values
    "number": (["1e3", "+1", ".5", "NA", "", "-2.50"], [1000, 1, 0.5, np.nan, np.nan, -2.5]),
    "boolean": (["true", "False", "1", "0", "", "TRUE"], [1, 0, 1, 0, np.nan, 1]),
    "text": (["1e3", "NA", "True", "007", "", "0x10"], [b"1e3", b"NA", b"True", b"007", b"", b"0x10"]),
    "id": (["1", "2", "3", "4", "5", "7.0"], [b"1", b"2", b"3", b"4", b"5", b"7.0"]),
    "date": (["1970-01-02", "1970-01-01 00:00:01", "1970-01-01T01:00:00+01:00", "NA", ""], [86400, 1, 0, NONE, NONE]),
    "date:%d.%m.%Y": (["02.01.1970", "1.1.1970", "01.01.1970", "NA", ""], [86400, 0, 0, NONE, NONE]),
    "date:%d.%m.%Y %H:%M%z": (["01.01.1970 01:00+0100", "01.01.1970 00:00+0000", ""], [0, 0, NONE]),
}


@pytest.mark.parametrize("kind", TYPED)
def test_cells_of_csv_files_are_read_by_their_type(kind, tmp_path, monkeypatch):
    cells, values = TYPED[kind]
    content = "q,label,x\n" + "".join(f"a,0,{cell}\n" for cell in cells)
    for rows in (2, 1 << 17):
        monkeypatch.setattr(files, "_ROWS_AT_ONCE", rows)
        lists = read(tmp_path / f"{rows}.csv", content, types={"x": kind})
        np.testing.assert_array_equal(lists.values("x"), values)


def test_cells_without_a_value_of_the_type_are_refused_by_row(tmp_path):
    for kind, cell, expected in (
        ("number", "0x10", "numbers"),
        ("boolean", "yes", "booleans: true and false, or 1 and 0"),
        ("date", "24.12.2024", "dates as in ISO 8601, such as 2026-11-27"),
        ("date:%d.%m.%Y", "2024-12-24", "dates as '%d.%m.%Y'"),
    ):
        message = f"{tmp_path}/a.csv: column 'x' must be {expected}, got {cell!r} in row 1."
        content = f'q,label,x\na,0,\na,0,"{cell}"\n'
        assert_refused(message, read, tmp_path / "a.csv", content, types={"x": kind})


def test_types_of_files_are_converted_exactly_or_refused(tmp_path):
    columns = {"q": ["a", "a"], "label": [0, 1], "zip": [7.0, None], "size": [1.5, 2.0], "day": ["2024-01-02", ""]}
    pd.DataFrame(columns).to_parquet(tmp_path / "a.parquet")
    pd.DataFrame(columns).to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    options = {**ROLES, "cache_dir": tmp_path / "cache"}
    for path in (tmp_path / "a.parquet", tmp_path / "a.jsonl"):
        lists = read_files(path, **options, types={"zip": "text", "day": "date"})
        assert lists.values("zip").tolist() == [b"7", b""] and lists.values("day").tolist() == [1704153600, NONE]
        with pytest.raises(ValueError, match=r"column 'size' must be text or whole numbers, got 1.5 in row 0"):
            read_files(path, **options, types={"size": "text"})


def test_words_are_missing_in_texts_and_numbers(tmp_path):
    content = "q,label,x,word\na,0,1.5,?\na,0,?,b\na,0,-999,\n"
    lists = read(tmp_path / "a.csv", content, nulls=["?", "-999"])
    np.testing.assert_array_equal(lists.values("x"), [1.5, np.nan, np.nan])
    assert lists.values("word").tolist() == [b"", b"b", b""]
    content = '{"q": "a", "label": 0, "word": "?"}\n{"q": "a", "label": 0, "word": "b"}\n'
    lists = read(tmp_path / "a.jsonl", content, nulls=["?"])
    assert lists.values("word").tolist() == [b"", b"b"]


@pytest.mark.parametrize("block", [1, 1 << 20])
def test_json_values_of_several_types_have_the_given_one(block, tmp_path, monkeypatch):
    monkeypatch.setattr(file_formats, "_BLOCK_BYTES", block)
    content = '{"q": 1, "label": 0, "x": 1, "shop": 7}\n{"q": 1, "label": 1, "x": "2.5", "shop": "a"}\n'
    lists = read(tmp_path / "a.jsonl", content, types={"x": "number", "shop": "text"})
    assert lists.values("x").tolist() == [1.0, 2.5] and lists.values("shop").tolist() == [b"7", b"a"]
    table = files.raw_table(tmp_path / "a.jsonl", Reading(types={"x": "number", "shop": "text"}))  # of the command line
    assert table["q"].to_pylist() == [1, 1] and table["x"].to_pylist() == ["1", "2.5"]


@pytest.mark.parametrize("types", [None, {"x": "number"}])
def test_numbers_have_the_given_decimal_point(types, tmp_path):
    lists = read(tmp_path / "a.csv", "q;label;x\na;0;1,5\na;0;2\n", delimiter=";", decimal=",", types=types)
    assert lists.values("x").tolist() == [1.5, 2.0]
    with pytest.raises(ValueError, match=r"column 'x' must be numbers, got '1\.234' in row 0"):  # a thousand
        read(tmp_path / "a.csv", "q;label;x\na;0;1.234\n", delimiter=";", decimal=",", types={"x": "number"})


HINTS = {  # content of a CSV or JSON file, and its error
    "a.csv": (
        (b"q;label;x\na;0;1\n", r"a.csv: 1 column, 3 in the header by ';': pass delimiter=';'"),
        ("q,label,x\na,0,1\n".encode("utf-16"), r"a.csv:1: bytes that are not UTF-8: .* such as 'utf-16'"),
        ("q,label,x\na,0,b\na,0,größe\n".encode("cp1252"), r"a.csv:3: bytes .* such as 'cp1252'"),
    ),
    "a.jsonl": (
        (b'{"q": "a"}\n[1]\n', r"a.jsonl:2: .*expected an object, got an array"),
        (b'{"q": "a"}\n' + b"[" * 10_000, r"a.jsonl:2: .* more than 500 nested brackets"),
        ('{"q": "a"}\n{"q": "ä"}\n'.encode("cp1252"), r"a.jsonl:2: bytes that are not"),
    ),
}


@pytest.mark.parametrize("name", HINTS)
def test_files_that_are_written_otherwise_say_where_and_what_to_pass(name, tmp_path):
    for content, message in HINTS[name]:
        with pytest.raises(ValueError, match=message):
            read(tmp_path / name, content)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-8-sig"])
def test_files_of_any_encoding_have_their_texts(encoding, tmp_path):
    csv, json = "q,label,größe\na,0,zwölf\n", '{"q": "a", "label": 0, "größe": "zwölf"}\n'
    for name, content in (("a.csv", csv), ("a.jsonl", json)):
        lists = read(tmp_path / name, content.encode(encoding), encoding=encoding)
        assert lists.values("größe").tolist() == ["zwölf".encode()]


def test_brackets_in_texts_of_many_lines_are_no_nesting(tmp_path):
    content = "".join(f'{{"q": "{row}", "label": 0, "x": "[[[:("}}\n' for row in range(1000))
    assert read(tmp_path / "a.jsonl", content).documents == 1000


def test_bad_arguments_are_refused(tmp_path):
    for options, message in (
        ({"types": {"x": "float"}}, r"`types\['x'\]` must be 'number', .* got 'float'"),
        ({"types": {"y": "text"}}, "`types` must be one of 'q', 'label', 'x', got 'y'"),
        ({"types": {"x": "date:%Z"}}, r"`types\['x'\]` must be"),
        ({"nulls": "NA"}, "`nulls` must be a list of words, got 'NA'"),
        ({"delimiter": "::"}, "`delimiter` must be one character, got '::'"),
        ({"decimal": ";"}, "`decimal` must be one of '.', ',', got ';'"),
        ({"encoding": "utf9"}, "`encoding` must be one of Python's, such as 'cp1252', got 'utf9'"),
    ):
        with pytest.raises(ValueError, match=message):
            read(tmp_path / "a.csv", "q,label,x\na,0,1\n", **options)


def test_large_integers_stay_apart_in_every_file(tmp_path):
    for values in ([f"{10**70}", "3"], ["9223372036854775808", "-1"]):
        csv = "q,label,x\n" + "".join(f"a,0,{value}\n" for value in values)
        rows = "".join(f'{{"q": "a", "label": 0, "x": {value}}}\n' for value in values)
        for name, content in (("a.csv", csv), ("a.jsonl", rows)):
            assert read(tmp_path / name, content).values("x").tolist() == [value.encode() for value in values]


def test_values_of_other_types_are_left_to_the_kind():
    where = Where("column 'x'")
    sets, nothing = pa.array([[1], [2, 3]]), pa.nulls(2)
    assert as_type(where, sets, "number") is sets and as_type(where, nothing, "date") is nothing
