"""The padding script runs, and grouping by length reduces padding on lists with MSLR's lengths."""

import pytest

from tests.benchmarks import scripts

pytestmark = pytest.mark.slow


def test_grouping_by_length_reduces_padding_and_keeps_batches_random(tmp_path):
    arguments = ["--queries=800", "--batch_sizes=4,8", "--epochs=3"]
    report, printed = scripts.run("padding.py", *arguments, folder=tmp_path)
    lengths = report["lengths"]
    assert 110 < lengths["mean"] < 130 and 65 < lengths["deviation"] < 90
    assert 5 < lengths["hundredth"] < 25 and lengths["longest"] == 1251
    results = report["results"]
    assert [(r["batch_size"], r["group_by_length"]) for r in results] == [
        *((4, False), (4, True)),
        *((8, False), (8, True)),
    ]
    for result in results:
        assert result["batches"] == 800 / result["batch_size"]
        assert abs(result["correlation_of_length_and_place"]) < 5.0 * result["its_deviation_by_chance"]
        assert result["padding"] <= result["most_padding_of_an_epoch"] < result["padding"] + 0.05
        if result["group_by_length"]:
            assert result["padding"] < 0.2
            assert result["together_again"] < 0.2
        else:
            assert result["padding"] > 0.3
            assert result["together_again"] < 0.04
    assert "| 8 | yes | 100 |" in printed
