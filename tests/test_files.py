"""Files and folders are written atomically."""

import contextlib
import errno
import os
import socket
import subprocess

import pytest

from tfr_smooth import _files


def write_folder(path, name, **kwargs):
    with _files.replacing(path, **kwargs) as unfinished:
        unfinished.mkdir()
        (unfinished / name).write_text(name)


@pytest.mark.parametrize("previous_text", [None, "file"])
def test_a_file_is_written_or_replaced(tmp_path, previous_text):
    path = tmp_path / "a.keras"
    if previous_text:
        path.write_text(previous_text)
    with _files.replacing(path) as unfinished:
        assert unfinished.suffix == ".keras" and unfinished.name.startswith(".unfinished-")
        unfinished.write_text("new")
        assert path.exists() == (previous_text is not None)
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_folder_is_replaced_only_if_asked(tmp_path, overwrite):
    path = tmp_path / "a"
    write_folder(path, "one", overwrite=overwrite)
    with contextlib.nullcontext() if overwrite else pytest.raises(OSError):
        write_folder(path, "two", overwrite=overwrite)
    assert [child.name for child in path.iterdir()] == ["two" if overwrite else "one"]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("folder", [False, True])
def test_a_failure_keeps_the_previous_file_and_leaves_no_temporary_files(tmp_path, folder):
    path = tmp_path / "a"
    _files.write_text(path, ["old"])

    def chunks():
        yield "half"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        if folder:
            with _files.replacing(path) as unfinished:
                unfinished.mkdir()
                (unfinished / "half").write_text("half")
                raise KeyboardInterrupt
        else:
            _files.write_text(path, chunks())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_names_the_file(tmp_path):
    def chunks():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        yield b""

    with pytest.raises(OSError, match=rf"\[Errno {errno.ENOSPC}\] .*: '{tmp_path}/a'"):
        _files.write_bytes(tmp_path / "a", chunks())


def test_the_space_of_a_sparse_file_is_reserved(tmp_path):
    with open(tmp_path / "a", "wb") as file:
        file.truncate(1 << 20)
    _files.reserve(tmp_path / "a")
    assert (tmp_path / "a").stat().st_blocks * 512 >= 1 << 20


def test_a_link_and_the_mode_of_a_file_are_kept(tmp_path):
    (file := tmp_path / "a").touch(mode=0o600)
    (link := tmp_path / "b").symlink_to("a")
    _files.write_text(link, ["new"])
    assert link.is_symlink() and file.read_text() == "new" and file.stat().st_mode & 0o777 == 0o600


def test_what_a_killed_process_of_this_machine_left_is_removed(tmp_path):
    path, host = tmp_path / "a.keras", socket.gethostname()
    ended = subprocess.Popen(["true"])
    ended.wait()
    own = os.getpid()
    names = {f"{host}-{ended.pid}-1-1.a.keras": False, f"{host}-{ended.pid}-1-1.b.keras": True}
    names |= {f"{host}-{own}-{_files._started(own)}-1.a.keras": True, "other-1-1-1.a.keras": True}
    if os.path.exists(f"/proc/{own}/stat"):  # another process had the number of this one
        names[f"{host}-{own}-1-1.a.keras"] = False
    for name in names:
        (tmp_path / f".unfinished-{name}").mkdir()
    _files.write_text(path, ["new"])
    assert {name: (tmp_path / f".unfinished-{name}").exists() for name in names} == names
