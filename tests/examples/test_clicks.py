"""The example trains with each correction and reports NDCG on the true labels."""

import json

import pytest

from tests import helpers

pytestmark = pytest.mark.slow

METHODS = ("clicks", "inverse propensities", "two towers", "dual learning", "regression EM")


def test_the_example_compares_all_methods_on_the_true_labels(tmp_path):
    output = tmp_path / "clicks.json"
    flags = ("--seeds=1", "--sessions=200,3000", "--steps=100", f"--output={output}")
    printed = helpers.check_run("examples/clicks.py", *flags)
    assert "NDCG@10 on the true labels, mean of 1 seeds:" in printed
    (found,) = json.loads(output.read_text())
    assert 0.0 < found["shown ranking"] < found["true labels"] <= 1.0
    for method in METHODS:
        assert set(found[method]) == {"200", "3000"}
        assert all(0.0 < value < found["true labels"] for value in found[method].values()), method
    for method in METHODS[2:]:
        for estimate in found[f"propensities of {method}"].values():
            assert estimate[0] == 1.0 > estimate[-1] and len(estimate) == 10
