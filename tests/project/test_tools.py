"""The tools behind `make test-all` and `make test-changed`: the order of tests, the time limit, and the last line."""

import time

import pytest

import conftest
from tests.helpers.documents import ROOT
from tools import changed_tests, report_tests

SUITE = """<testsuites><testsuite time="{time}">
<testcase classname="tests.losses.test_a" name="a"/>
<testcase classname="tests.losses.test_a" name="b"><skipped type="pytest.skip" message="needs Java"/></testcase>
<testcase classname="tests.losses.test_a" name="c"><skipped type="pytest.xfail" message="a kink"/></testcase>
<testcase classname="tests.text.test_b" name="d"><skipped type="pytest.skip" message="not run: late"/></testcase>
{more}</testsuite></testsuites>"""


def test_the_last_line_counts_tests_skips_late_tests_and_minutes(tmp_path):
    (tmp_path / "latest-1.xml").write_text(SUITE.format(time=60, more=""))
    failed = '<testcase classname="tests.text.test_b" name="e"><failure message="no"/></testcase>'
    (tmp_path / "latest-2.xml").write_text(SUITE.format(time=30, more=failed))
    assert report_tests.report(tmp_path) == (
        "7 tests: 2 passed, 2 skipped, 2 failed as expected, 1 failed. Skipped: needs Java (2). "
        "Not run in time: tests/text (2). Minutes: latest 1.5"
    )


TESTS = {
    "tfr_smooth/losses/base.py": ["tests/losses", "tfr_smooth/losses"],
    "tfr_smooth/_files.py": ["tests/test_files.py", "tfr_smooth/_files.py"],
    "tests/text/conftest.py": ["tests/text"],
    "examples/tune.py": ["tests/examples"],
    "docs/ranker.md": ["tests/project"],
    "tests/helpers/facts.py": ["tests", "tfr_smooth"],
}


def test_the_tests_of_a_changed_file_mirror_it():
    assert {path: changed_tests.tests_of(path) for path in TESTS} == TESTS
    assert all((ROOT / test).exists() for tests in TESTS.values() for test in tests)


def test_no_test_starts_after_the_time_for_all_tests(monkeypatch):
    monkeypatch.setenv("TESTS_UNTIL", str(time.time() + 60))
    conftest.pytest_runtest_setup()
    monkeypatch.setenv("TESTS_UNTIL", str(time.time() - 1))
    with pytest.raises(pytest.skip.Exception, match=report_tests.TOO_LATE):
        conftest.pytest_runtest_setup()
