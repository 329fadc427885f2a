"""Text files by name or pattern, compressed or not, on disk and on other file systems."""

import bz2
import gzip

import pyarrow as pa
import pytest

from tests.data.readers import assert_refused
from tfr_smooth.data import read_letor
from tfr_smooth.data.reading import text_files
from tfr_smooth.data.reading.text_files import expand_paths, numbered_lines

TEXT = "".join(f"{i % 3} qid:{i // 4} 1:{i} 2:0.{i}\n" for i in range(800)).encode()


def zstd(content):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as file:
        file.write(content)
    return sink.getvalue().to_pybytes()


PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstd}


def lines(path):
    return [line for _, line in numbered_lines(str(path))]


@pytest.mark.parametrize(("ending", "pack"), PACKERS.items(), ids=PACKERS)
def test_compressed_files_contain_the_original_lines_or_are_refused(tmp_path, ending, pack):
    path, packed, cut = tmp_path / f"a.txt{ending}", pack(TEXT), pack(TEXT[:500])
    for content in (packed, pack(TEXT[:60]) + pack(TEXT[60:])):  # also two compressed files joined with `cat`
        path.write_bytes(content)
        assert lines(path) == TEXT.splitlines(keepends=True)
    for length in range(1, len(cut), 3):
        path.write_bytes(cut[:length])
        with pytest.raises(ValueError, match=rf"a\.txt\{ending}:\d+: truncated or damaged \w+ data: "):
            lines(path)
    checksum, middle = bytearray(packed), bytearray(packed)
    checksum[-6] ^= 0xFF
    middle[len(packed) // 2] ^= 0xFF
    for damaged in (TEXT, checksum, middle):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=rf"a\.txt\{ending}:\d+: "):
            read_letor(path)


def test_a_byte_order_mark_and_windows_line_ends_change_nothing(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf1 qid:a 1:0.5 # docid = d1\r\n0 qid:b 1:2\r\n"))
    ((inputs, labels),) = read_letor(path).batches(2, ids=True)
    assert labels.numpy().tolist() == [[1], [0]] and inputs["features"].numpy().ravel().tolist() == [0.5, 2]
    assert inputs["query_id"].numpy().tolist() == [b"a", b"b"]
    assert inputs["doc_id"].numpy().ravel().tolist() == [b"d1", b""]


def test_files_of_other_file_systems_are_read_by_uri_and_pattern(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files.fs, "LocalFileSystem", str)  # As on any other, patterns are those of pyarrow.
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(f"1 qid:{name} 1:7\n")
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(b"1 qid:c 1:9\n"))
    uri = f"file://{tmp_path}"
    assert expand_paths(f"{uri}/*.txt") == [f"{uri}/a.txt", f"{uri}/b.txt"]
    assert expand_paths([f"{uri}/c.txt.gz", f"{uri}/a.txt"]) == [f"{uri}/c.txt.gz", f"{uri}/a.txt"]
    ((inputs, _),) = read_letor(f"{uri}/*", cache_dir=tmp_path / "cache").batches(3)
    assert inputs["features"].numpy().ravel().tolist() == [7, 7, 9]


def test_uris_of_files_with_blanks_and_names_with_colons_are_read(tmp_path, monkeypatch):
    for name in ("a b.txt", "a:1.txt"):
        (tmp_path / name).write_text("1 qid:a 1:7\n")
    for path in (f"file://{tmp_path}/a%20b.txt", f"file://{tmp_path}/a%20*", f"file://{tmp_path}/*b.txt"):
        assert read_letor(path, cache_dir=tmp_path / "cache").documents == 1
    monkeypatch.chdir(tmp_path)
    assert read_letor("a:1.txt", cache_dir=tmp_path / "cache").documents == 1


def test_patterns_expand_sorted_and_lists_keep_their_order(tmp_path):
    for name in ("b.txt", "a.txt", "c.gz", "odd[1].txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder.txt").mkdir()
    at = lambda *names: [str(tmp_path / name) for name in names]  # noqa: E731
    assert expand_paths(str(tmp_path / "?.txt")) == at("a.txt", "b.txt")
    assert expand_paths(tmp_path / "*.txt") == at("a.txt", "b.txt", "odd[1].txt")
    assert expand_paths(at("c.gz", "?.txt")) == at("c.gz", "a.txt", "b.txt")
    assert expand_paths(at("odd[1].txt")) == at("odd[1].txt")


def test_bad_file_patterns_are_refused(tmp_path, monkeypatch):
    (tmp_path / "a.txt").touch()
    monkeypatch.chdir(tmp_path)
    for pattern, message in (
        (f"file://{tmp_path}/no*", f"match files, got 'file://{tmp_path}/no*', which matches none."),
        (f"file://{tmp_path}", f"match files, got 'file://{tmp_path}', a folder."),
        ("no*.txt", "match files, got 'no*.txt', which matches none."),
        (["a.txt", "no"], "match files, got 'no', which matches none."),
        (".", "match files, got '.', a folder."),
        (["*.txt", "a.txt"], "match each file once, got 'a.txt' twice."),
        *((bad, f"be a path, a pattern or a list of these, got {bad!r}.") for bad in ([], [3], None)),
    ):
        assert_refused(f"`file_pattern` must {message}", expand_paths, pattern)
