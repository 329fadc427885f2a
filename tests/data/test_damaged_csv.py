"""A damaged CSV file is refused in one line that names the file and, where there is one, the line; no row is lost."""

import os

import pytest

from tfr_smooth import data
from tfr_smooth.command_line import main
from tfr_smooth.data.reading import file_formats
from tfr_smooth.data.reading.files import read_table
from tfr_smooth.data.reading.value_types import Reading

ROWS = ["q,x,note", "1,0.5,a", "1,0.25,b", "2,0.1,c", "2,0.3,d", "3,0.4,e"]


@pytest.mark.parametrize(
    ("line", "found", "message"),
    [
        (3, '2,0.1,"c', ":4: expected a quote that is closed, got one up to the end of the file"),
        (5, '3,0.4,"e', ":6: expected a quote that is closed, got one up to the end of the file"),
        (3, '2,0.1,5" "c', None),  # not at the start of a value
        (3, '2,0.1,"say ""c"", d"', None),
        (3, '2,0.1,"c\nd"', None),
        (3, "2,0.1,c\0", ":4: expected text, got a NUL byte"),
        (5, "3,0.", ":6: Expected 3 columns, got 2"),
        (1, "1,0.5,a,b", ":2: Expected 3 columns, got 4"),
        (0, "q,x,x", ":1: column 'x' must have a name of its own, got it twice"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_rows_are_read_whole_or_the_line_is_named(line, found, message, encoding, tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("\n".join([*ROWS[:line], found, *ROWS[line + 1 :]]), encoding=encoding)
    readers = (
        lambda: data.read_files(path, query="q", label=None, cache_dir=tmp_path, encoding=encoding).documents,
        lambda: len(read_table(path, Reading(encoding=encoding))),
    )
    for read in readers:
        if message is None:
            assert read() == 5
        else:
            with pytest.raises(ValueError) as raised:
                read()
            assert f"in.csv{message}" in str(raised.value) and "\n" not in str(raised.value)


def test_an_empty_file_is_refused_also_by_the_command_line(tmp_path, capsys):
    path = tmp_path / "in.csv"
    path.touch()
    with pytest.raises(ValueError, match="in.csv: expected the names of the columns, got an empty file"):
        data.read_files(path, query="q", label=None)
    assert main(["train", str(path), f"--model={tmp_path}/out.keras", "--label=y", "--query=q"]) != 0
    assert "in.csv: expected the names of the columns, got an empty file" in capsys.readouterr().err


def test_a_file_that_is_cut_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "in.csv"
    path.write_text("\n".join(ROWS))
    monkeypatch.setattr(file_formats, "check_csv_bytes", lambda *_: os.truncate(path, 20))
    with pytest.raises(
        ValueError, match=f"{path}: has become shorter while it was read: 20 bytes of {path.stat().st_size}"
    ):
        read_table(path, Reading())
