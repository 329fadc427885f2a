"""Weighted training on clicks recovers the ranking that unweighted training on the same clicks does not."""

import json

import numpy as np
import pytest

from tests import helpers

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The results of each of three seeds."""
    output = tmp_path_factory.mktemp("clicks") / "clicks.json"
    printed = helpers.check_run("examples/clicks.py", "--seeds=3", f"--output={output}")
    assert "NDCG@10 on the true labels, mean of 3 seeds:" in printed
    return json.loads(output.read_text())


def test_debiasing_recovers_most_of_the_ndcg_that_training_on_clicks_loses(results):
    for found in results:
        lost = found["true labels"] - found["clicks"]
        assert lost > 0.06
        for way in ("one list per click", "position tower"):
            assert found[way] - found["clicks"] > 0.5 * lost, way


def test_one_list_per_click_is_better_than_document_weights(results):
    means = {way: np.mean([found[way] for found in results]) for way in ("one list per click", "weights of documents")}
    assert means["one list per click"] > means["weights of documents"] + 0.005
    assert all(found["weights of documents"] > found["clicks"] + 0.02 for found in results)


TRUE = 1.0 / np.arange(1, 11)


def test_randomized_sessions_estimate_the_propensities(results):
    estimates = np.array([found["propensities"] for found in results])
    assert np.abs(estimates - TRUE).max() < 0.15
    assert np.abs(estimates.mean(axis=0) - TRUE).max() < 0.1


def test_the_position_tower_estimates_the_propensities_roughly(results):
    """Its estimates are too high, as the displayed ranking is a function of a feature of the model."""
    estimates = np.array([found["propensities of the tower"] for found in results])
    assert np.abs(estimates - TRUE).max() < 0.25
    assert all(np.corrcoef(estimate, TRUE)[0, 1] > 0.95 for estimate in estimates)
