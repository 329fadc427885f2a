"""The input pipeline script runs, and reports the rates of each source."""

import pytest

from tests.benchmarks import scripts

pytestmark = pytest.mark.slow


def test_each_source_has_a_rate(tmp_path):
    report, printed = scripts.run("input_pipelines.py", "--workers=1", "--epochs=1", folder=tmp_path)
    (result,) = report["results"]
    assert set(result["queries_a_second"]) == {
        *("text", "binary cache", "binary cache, in memory"),
        *("records", "records, packed", "records, service"),
    }
    assert min(result["queries_a_second"].values()) > 0.0
    for name, rate in result["documents_a_second"].items():
        assert rate > result["queries_a_second"][name]
    assert result["megabytes"]["records, packed"] < result["megabytes"]["records"] < result["megabytes"]["text"]
    assert "records, service: " in printed
