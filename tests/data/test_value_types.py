"""How values are written in files: types, words for missing values, delimiters, decimal points and encodings."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tfr_smooth.data import read_files
from tfr_smooth.data.reading import files
from tfr_smooth.data.reading.checks import Where
from tfr_smooth.data.reading.value_types import as_type

ROLES = {"query": "q", "label": "label"}


def read(path, content, **options):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_files(path, **ROLES, cache_dir=path.parent / "cache", **options)


TYPED = {  # the type, cells of a CSV file, and their values
    "number": (["1e3", "+1", ".5", "NA", "", "-2.50"], [1000, 1, 0.5, np.nan, np.nan, -2.5]),
    "boolean": (["true", "False", "1", "0", "", "TRUE"], [1, 0, 1, 0, np.nan, 1]),
    "text": (["1e3", "NA", "True", "007", "", "0x10"], [b"1e3", b"NA", b"True", b"007", b"", b"0x10"]),
    "id": (["1", "2", "3", "4", "5", "7.0"], [b"1", b"2", b"3", b"4", b"5", b"7.0"]),
    "date": (["1970-01-02", "1970-01-01 00:00:01", "1970-01-01T01:00:00+01:00", "NA", "", "1970-01-01"], None),
    "date:%d.%m.%Y": (["02.01.1970", "1.1.1970", "01.01.1970", "NA", "", "01.01.1970"], None),
}
SECONDS = {"date": [86400, 1, 0, -(2**63), -(2**63), 0], "date:%d.%m.%Y": [86400, 0, 0, -(2**63), -(2**63), 0]}


@pytest.mark.parametrize("rows", [2, 1 << 17])
@pytest.mark.parametrize("kind", TYPED)
def test_cells_of_csv_files_are_read_by_their_type(kind, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_ROWS_AT_ONCE", rows)
    cells, values = TYPED[kind]
    content = "q,label,x\n" + "".join(f"a,0,{cell}\n" for cell in cells)
    lists = read(tmp_path / "a.csv", content, types={"x": kind})
    np.testing.assert_array_equal(lists.values("x"), SECONDS.get(kind, values))


@pytest.mark.parametrize("kind, cell, expected", [
    ("number", "1,5", "numbers, got '1,5' in row 1"),
    ("number", "0x10", "numbers, got '0x10' in row 1"),
    ("boolean", "yes", "booleans: true and false, or 1 and 0, got 'yes' in row 1"),
    ("date", "24.12.2024", "dates as in ISO 8601, such as 2026-11-27, got '24.12.2024' in row 1"),
    ("date:%d.%m.%Y", "2024-12-24", "dates as '%d.%m.%Y', got '2024-12-24' in row 1"),
])  # fmt: skip
def test_cells_without_a_value_of_the_type_are_refused_by_row(kind, cell, expected, tmp_path):
    with pytest.raises(ValueError) as error:
        read(tmp_path / "a.csv", f'q,label,x\na,0,\na,0,"{cell}"\n', types={"x": kind})
    assert str(error.value) == f"{tmp_path}/a.csv: column 'x' must be {expected}."


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_types_of_files_are_converted_exactly_or_refused(ending, tmp_path):
    path = tmp_path / f"a.{ending}"
    if ending == "parquet":
        columns = {"q": ["a", "a"], "label": [0, 1], "zip": [7.0, None], "size": [1.5, 2.0], "day": ["2024-01-02", ""]}
        parquet.write_table(pa.table(columns), path)
    else:
        path.write_text(
            '{"q": "a", "label": 0, "zip": 7.0, "size": 1.5, "day": "2024-01-02"}\n'
            '{"q": "a", "label": 1, "size": 2, "day": ""}\n'
        )
    options = {**ROLES, "cache_dir": tmp_path / "cache"}
    lists = read_files(path, **options, types={"zip": "text", "day": "date"})
    assert lists.values("zip").tolist() == [b"7", b""] and lists.values("day").tolist() == [1704153600, -(2**63)]
    with pytest.raises(ValueError, match=r"column 'size' must be text or whole numbers, got 1.5 in row 0"):
        read_files(path, **options, types={"size": "text"})


def test_words_are_missing_in_texts_and_numbers(tmp_path):
    content = "q,label,x,word\na,0,1.5,?\na,0,?,b\na,0,-999,\n"
    lists = read(tmp_path / "a.csv", content, nulls=["?", "-999"])
    np.testing.assert_array_equal(lists.values("x"), [1.5, np.nan, np.nan])
    assert lists.values("word").tolist() == [b"", b"b", b""]
    lists = read(
        tmp_path / "a.jsonl", '{"q": "a", "label": 0, "word": "?"}\n{"q": "a", "label": 0, "word": "b"}\n', nulls=["?"]
    )
    assert lists.values("word").tolist() == [b"", b"b"]


@pytest.mark.parametrize("types", [None, {"x": "number"}])
def test_numbers_have_the_given_decimal_point(types, tmp_path):
    lists = read(tmp_path / "a.csv", "q;label;x\na;0;1,5\na;0;2\n", delimiter=";", decimal=",", types=types)
    assert lists.values("x").tolist() == [1.5, 2.0]
    with pytest.raises(ValueError, match=r"column 'x' must be numbers, got '1\.234' in row 0"):  # a thousand
        read(tmp_path / "a.csv", "q;label;x\na;0;1.234\n", delimiter=";", decimal=",", types={"x": "number"})


HINTS = {
    "semicolons": (b"q;label;x\na;0;1\n", r"a.csv: 1 column, 3 in the header by ';': pass delimiter=';'"),
    "tabs": (b"q\tlabel\tx\na\t0\t1\n", r"a.csv: 1 column, 3 in the header by '\\t': pass delimiter='\\t'"),
    "utf-16": ("q,label,x\na,0,1\n".encode("utf-16"), r"a.csv:1: bytes that are not UTF-8: .* such as 'utf-16'"),
    "a name in cp1252": ("q,label,größe\na,0,1\n".encode("cp1252"), r"a.csv:1: bytes .* such as 'cp1252'"),
    "a cell in cp1252": ("q,label,x\na,0,b\na,0,größe\n".encode("cp1252"), r"a.csv:3: bytes .* such as 'cp1252'"),
}  # fmt: skip


@pytest.mark.parametrize("name", HINTS)
def test_csv_files_that_are_written_otherwise_say_what_to_pass(name, tmp_path):
    content, message = HINTS[name]
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "a.csv", content)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-8-sig", "latin-1"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_files_of_any_encoding_have_their_texts(ending, encoding, tmp_path):
    content = "q,label,größe\na,0,zwölf\n" if ending == "csv" else '{"q": "a", "label": 0, "größe": "zwölf"}\n'
    lists = read(tmp_path / f"a.{ending}", content.encode(encoding), encoding=encoding)
    assert lists.values("größe").tolist() == ["zwölf".encode()]


JSON = {
    "an array": ('{"q": "a", "label": 0}\n[1]\n', r"a.jsonl:2: .*expected an object, got an array"),
    "deep brackets": ('{"q": "a", "label": 0}\n' + "[" * 10_000 + "\n", r"a.jsonl:2: .* more than 500 nested brackets"),
    "cp1252": ('{"q": "a", "label": 0}\n{"q": "ä", "label": 0}\n'.encode("cp1252"), r"a.jsonl:2: bytes that are not"),
    "utf-16": ('{"q": "a", "label": 0}\n'.encode("utf-16"), r"a.jsonl:1: bytes .* such as 'utf-16'"),
}


@pytest.mark.parametrize("name", JSON)
def test_lines_that_are_no_objects_are_refused_by_line(name, tmp_path):
    content, message = JSON[name]
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "a.jsonl", content)


def test_brackets_in_texts_of_many_lines_are_no_nesting(tmp_path):
    content = "".join(f'{{"q": "{row}", "label": 0, "x": "[[[:("}}\n' for row in range(1000))
    assert read(tmp_path / "a.jsonl", content).documents == 1000


@pytest.mark.parametrize("options, message", [
    ({"types": {"x": "float"}}, r"`types\['x'\]` must be 'number', .* got 'float'"),
    ({"types": {"x": "number:%d"}}, r"`types\['x'\]` must be 'number'"),
    ({"types": {"y": "text"}}, "`types` must be one of 'q', 'label', 'x', got 'y'"),
    ({"types": {"x": "date:%Z"}}, r"`types\['x'\]` must be"),
    ({"types": ["x"]}, "`types` must be an instance of"),
    ({"nulls": "NA"}, "`nulls` must be a list of words, got 'NA'"),
    ({"delimiter": "::"}, "`delimiter` must be one character, got '::'"),
    ({"decimal": ";"}, "`decimal` must be one of '.', ',', got ';'"),
    ({"encoding": "utf9"}, "`encoding` must be one of Python's, such as 'cp1252', got 'utf9'"),
])  # fmt: skip
def test_bad_arguments_are_refused(options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "a.csv", "q,label,x\na,0,1\n", **options)


@pytest.mark.parametrize("values", [[12345678901234567890123], [10**70, 3], [2**63, -1], [10**39, None]])
def test_large_integers_stay_apart_in_every_file(values, tmp_path):
    numbers = [value for value in values if value is not None]
    csv = "q,label,x\n" + "".join(f"a,0,{'' if value is None else value}\n" for value in values)
    rows = "".join(f'{{"q": "a", "label": 0, "x": {"null" if value is None else value}}}\n' for value in values)
    for name, content in (("a.csv", csv), ("a.jsonl", rows)):
        found = read(tmp_path / name, content).values("x")
        assert [text for text in found.tolist() if text] == [str(value).encode() for value in numbers]


def test_values_of_other_types_are_left_to_the_kind():
    where = Where("column 'x'")
    sets, nothing = pa.array([[1], [2, 3]]), pa.nulls(2)
    assert as_type(where, sets, "number") is sets and as_type(where, nothing, "date") is nothing
