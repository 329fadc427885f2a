"""The scaling script runs, and writes its measurements."""

import pytest

from tests.benchmarks import scripts

pytestmark = pytest.mark.slow


def test_each_number_of_replicas_is_measured(tmp_path):
    sizes = ["--batch_size=4", "--list_size=5", "--num_features=3", "--hidden=4", "--steps=2", "--epochs=1"]
    report, printed = scripts.run("scaling.py", *sizes, folder=tmp_path / "new", quick=())
    assert [result["replicas"] for result in report["results"]] == [1, 2]
    for result in report["results"]:
        slowest, fastest = result["slowest_and_fastest"]
        assert 0.0 < slowest <= result["queries_per_second"] <= fastest
        assert result["device"].startswith("logical CPUs")
    assert "| 1 |" in printed and "| 2 |" in printed
