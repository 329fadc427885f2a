"""The script of the limits runs, and counts what it says that it counts."""

import pytest

from tests.benchmarks import scripts

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limits")
    sizes = ["--smoothi_shapes=2x400", "--softndcg_shapes=2x10", "--training_shapes=2x5", "--megabytes=1"]
    return scripts.run("limits.py", *sizes, "--steps=2", folder=folder)


def test_every_part_has_its_time_its_limits_and_their_ratio(measured):
    report, printed = measured
    expected = ["SmoothI-NDCG", "SoftNDCG", "training step", "reading text", "reading the cache"]
    assert [result["what"] for result in report["results"]] == expected
    for result in report["results"]:
        assert result["at_least_milliseconds"]
        for name, limit in result["at_least_milliseconds"].items():
            assert limit > 0.0
            assert result["ratio"][name] == pytest.approx(result["milliseconds"] / limit)
            assert f"| {result['what']} | {result['shape']} | {name} |" in printed


def test_what_is_counted(measured):
    smooth, soft, training, *_ = measured[0]["results"]
    # log(0.002 / 6) / log(0.9), the scores being spread over about 6.
    assert smooth["ranks"] == pytest.approx(76, abs=4)
    assert smooth["exponentials"] == 2 * 400 * smooth["ranks"]
    for name, nanoseconds in smooth["nanoseconds"].items():
        limit = smooth["at_least_milliseconds"][f"exponentials, {name}"]
        assert limit == pytest.approx(1e-6 * smooth["exponentials"] * nanoseconds)
    assert (soft["terms"], soft["multiply_adds"], soft["erfc"]) == (12, 4 * 2 * 12 * 100, 2 * 45)
    assert training["multiply_adds"] == 10 * (2 * 136 * 1024 + 3 * 1024)


def test_the_reader_reads_the_file_that_is_copied(measured):
    text, cache = measured[0]["results"][-2:]
    assert 0.3e6 < text["bytes"] < 3e6
    assert 0.1e6 < cache["bytes"] < text["bytes"]
    assert set(text["at_least_milliseconds"]) == {"copy", "cat"}
