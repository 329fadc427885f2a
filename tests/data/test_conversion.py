"""The cache folder: files are converted once, and again when they change or the result is damaged."""

import os
import warnings
from unittest import mock

import numpy as np
import pytest

from tests.data.readers import letor_file, order
from tfr_smooth import _files
from tfr_smooth.data import LetorFormat, read_letor
from tfr_smooth.data.reading import conversion, letor


@pytest.fixture
def path(tmp_path):
    return letor_file(tmp_path / "a.txt", [1 + i % 5 for i in range(23)])


@pytest.fixture
def parses(monkeypatch):
    """Counts how often files are parsed."""
    counting = mock.Mock(wraps=letor.read_blocks)
    monkeypatch.setattr(letor, "read_blocks", counting)
    return counting


def test_files_are_converted_once_and_again_when_they_or_the_format_change(path, tmp_path, parses, monkeypatch):
    cache = tmp_path / "cache"
    for _ in range(3):
        assert len(order(read_letor(path, cache_dir=cache).batches(4))) == 6
    assert parses.call_count == 1
    letor_file(path, [2, 2])
    assert order(read_letor(path, cache_dir=cache).batches(4)) == [[0, 1]]
    assert parses.call_count == 2
    # The size is the same; only the modification time differs.
    letor_file(path, [2, 2])
    os.utime(path, ns=(1, 1))
    read_letor(path, cache_dir=cache)
    assert parses.call_count == 3
    (entry,) = cache.iterdir()
    assert sorted(file.name for file in entry.iterdir()) == ["documents.arrow", "lists.json", "queries.arrow"]
    read_letor(path, cache_dir=cache, num_features=5)  # has its own entry
    read_letor(path, cache_dir=cache)
    assert parses.call_count == 4
    monkeypatch.setattr(conversion, "_FORMAT", conversion._FORMAT + 1)
    read_letor(path, cache_dir=cache)
    assert parses.call_count == 5


def test_the_default_is_the_cache_folder_of_the_user(path, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    read_letor(path)
    assert len(list((tmp_path / "user" / "tfr_smooth" / "lists").iterdir())) == 1
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert _files.user_cache("lists") == tmp_path / ".cache" / "tfr_smooth" / "lists"


@pytest.mark.parametrize("name", ["documents.arrow", "queries.arrow", "lists.json"])
def test_damaged_files_are_written_again(path, tmp_path, name):
    expected = read_letor(path, cache_dir=tmp_path / "expected")
    read_letor(path, cache_dir=tmp_path)
    (file,) = tmp_path.glob(f"a.txt-*/{name}")
    content = file.read_bytes()
    places = np.linspace(0, len(content) - 1, 7).astype(int)
    flipped = [content[:place] + bytes([content[place] ^ 1 << (place % 8)]) + content[place + 1 :] for place in places]
    for number, damaged in enumerate((b"", content[:-40], b"nonsense" * 9, None, *flipped)):
        if damaged is None:
            file.unlink()
        else:
            file.write_bytes(damaged)
            os.utime(file, ns=(number, number))  # Two writes within a tick of the clock have the same time.
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = read_letor(path, cache_dir=tmp_path)
        assert name == "lists.json" or "the files are damaged" in str(caught[0].message)
        assert found.table == expected.table and found.lengths.tolist() == expected.lengths.tolist()
        assert found.query_ids == expected.query_ids and found.roles == expected.roles
        assert name == "lists.json" or file.read_bytes() == content


def test_bad_input_and_an_interruption_leave_no_files(path, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    bad = tmp_path / "bad.txt"
    bad.write_text("1 qid:a 1:1\n1 qid:b 1:NULL\n")
    with pytest.raises(ValueError, match=f"{bad}:2: value of feature 1: 'NULL' is not a finite float32 number;"):
        read_letor(bad, cache_dir=cache)

    def interrupted(*_, **__):
        yield next(read_blocks([path], LetorFormat()))
        raise KeyboardInterrupt

    read_blocks = letor.read_blocks
    monkeypatch.setattr(letor, "read_blocks", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read_letor(path, cache_dir=cache)
    assert list(cache.iterdir()) == []


def test_released_columns_are_read_again(path, tmp_path, monkeypatch):
    monkeypatch.setattr("tfr_smooth.data.batches._RELEASED", 100)
    lists = read_letor(path, cache_dir=tmp_path)
    assert order(lists.batches(3)) == order(read_letor(path, cache_dir=tmp_path).batches(3))
    before = lists.table.to_pydict()
    lists.release()
    assert lists.table.to_pydict() == before


def test_processes_that_convert_at_once_write_the_same_files(path, tmp_path):
    written = []
    for name in ("one", "another"):
        read_letor(path, cache_dir=tmp_path / name)
        (entry,) = (tmp_path / name).iterdir()
        times = [(entry / file).stat().st_mtime_ns for file in ("documents.arrow", "queries.arrow")]
        written.append((times, *((file.name, file.read_bytes()) for file in sorted(entry.iterdir()))))
    assert written[0] == written[1]
