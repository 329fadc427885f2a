"""The stubs of the classes generated from the registry are up to date."""

import runpy

import pytest

from tests import documents

write_stubs = runpy.run_path(str(documents.ROOT / "tools" / "write_stubs.py"))["main"]


def test_the_stubs_are_up_to_date():
    assert write_stubs(["--check"]) is None


def test_an_outdated_stub_is_an_error(tmp_path, capsys):
    for package in ("losses", "metrics"):
        (tmp_path / "tfr_smooth" / package).mkdir(parents=True)
    write_stubs([], tmp_path)
    assert write_stubs(["--check"], tmp_path) is None
    path = tmp_path / "tfr_smooth" / "metrics" / "measure_metrics.pyi"
    path.write_text(path.read_text(encoding="utf-8").replace("delta: float = 0.1", "delta: float = 0.2"))
    with pytest.raises(SystemExit, match="tfr_smooth/metrics/measure_metrics.pyi is not up to date: run `make stubs`."):
        write_stubs(["--check"], tmp_path)


def test_an_unknown_argument_is_rejected():
    with pytest.raises(SystemExit, match="Expected no arguments or --check, got --chek"):
        write_stubs(["--chek"])
