"""Tables: means, standard errors and tests equal hand-computed values and SciPy."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import experiments
from experiments import tables


def results_of(values):
    """Returns results whose measures all equal the given values: {ranker: {fold: {query: [value per seed]}}}."""
    rows = [
        {"dataset": "D", "fold": fold, "ranker": ranker, "seed": seed, "query": query}
        | dict.fromkeys(experiments.MEASURES, value)
        for ranker, folds in values.items()
        for fold, queries in folds.items()
        for query, seeds in queries.items()
        for seed, value in enumerate(seeds)
    ]
    return experiments.Results(pd.DataFrame(rows), pd.DataFrame(), {"entries": list(values), "select_by": "ndcg"})


def row(comparison, ranker):
    return comparison.set_index(["ranker", "measure"]).loc[(ranker, "ndcg")]


RANDOM = np.random.RandomState(0)
QUERIES = [f"q{i}" for i in range(40)]
BASE = {fold: {query: RANDOM.rand(2) for query in QUERIES} for fold in ("Fold1", "Fold2", "Fold3")}


def shifted(by, noise=0.1):
    """Returns the values of `BASE`, lower by exactly `by` on average."""
    return {
        fold: {query: seeds - by + noise * (-1) ** place for place, (query, seeds) in enumerate(queries.items())}
        for fold, queries in BASE.items()
    }


def test_means_are_over_seeds_then_queries_then_folds():
    folds = {"Fold1": {"a": [0.0, 1.0], "b": [0.1, 0.1]}, "Fold2": {"c": [0.9, 0.9]}}
    found = row(tables.compare(results_of({"ridge": folds, "random": folds}), "D"), "ridge")
    assert found["mean"] == pytest.approx(0.6) and found["stderr"] == pytest.approx(0.3)  # the folds: 0.3 and 0.9


def test_p_values_equal_the_paired_t_test_with_bonferroni_correction():
    rankers = {"ridge": BASE, "random": shifted(0.02), "single_feature": BASE}
    comparison = tables.compare(results_of(rankers), "D")
    first, second = (
        [np.mean(rankers[ranker][fold][query]) for fold in BASE for query in QUERIES] for ranker in ("ridge", "random")
    )
    found = row(comparison, "random")
    assert row(comparison, "ridge")["is_best"] and np.isnan(row(comparison, "ridge")["t_test_p"])
    p_value = 2 * stats.ttest_rel(first, second).pvalue
    assert 0.01 < p_value < 1.0 and found["t_test_p"] == pytest.approx(p_value)
    # For this many queries, the two tests agree.
    assert found["randomization_p"] == pytest.approx(found["t_test_p"], abs=0.03)
    chosen = tables.compare(results_of(rankers), "D", baseline="random")
    assert row(chosen, "ridge")["t_test_p"] == pytest.approx(found["t_test_p"]) and row(chosen, "ridge")["is_best"]
    assert np.isnan(row(chosen, "random")["t_test_p"])


def test_only_significantly_worse_rankers_have_a_dagger():
    rankers = {"ridge": BASE, "random": shifted(0.2), "lambdamart": shifted(0.0001)}
    comparison = tables.compare(results_of(rankers), "D")
    text = tables.format_table(comparison, "markdown").splitlines()
    cells = {line.split("|")[1].strip(): line.split("|")[8].strip() for line in text[2:]}
    assert cells["Ridge regression"].startswith("**0.") and "†" not in cells["Ridge regression"]
    assert cells["Random order"].endswith("†")
    assert "†" not in cells["LambdaMART"] and "**" not in cells["LambdaMART"]
    # In the other styles.
    comparison = tables.compare(results_of({"smoothi_ndcg (batch_size=8)": BASE, "random": shifted(0.3)}), "D")
    latex = tables.format_table(comparison, "latex")
    assert r"SmoothI-NDCG (batch\_size=8)" in latex and r"\textbf{0." in latex
    assert "NDCG@10" in tables.format_table(comparison) and "baseline" in tables.format_p_values(comparison)
