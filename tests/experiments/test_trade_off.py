"""The trade-off between two labels: resuming, the Pareto front and its plot."""

import itertools

import numpy as np
import pandas as pd
import pytest

import experiments
from tfr_smooth.evaluation.trec import Estimate

FOLDS = [(f"train{fold}", f"valid{fold}", f"test{fold}") for fold in (1, 2)]


class FakeRanker:
    """A ranker whose measures follow from the weight, the fold and the seed."""

    fitted: list = []

    def __init__(self, **params):
        self.params = params

    def get_params(self):
        return self.params

    def fit(self, train, *, label, query, validation, features=None):
        assert query == "q" and features == ["f"] and validation == train.replace("train", "valid")
        self.weights = label
        self.fitted.append((train, label["margin"], self.params["seed"]))
        return self

    def evaluate(self, test, measures):
        assert measures == ["ndcg"]
        shift = 0.1 * int(test[-1]) + 0.01 * self.params["seed"]
        return {f"{label}/ndcg": Estimate(weight + shift, 0.0) for label, weight in self.weights.items()}


def sweep(path, weights, **options):
    FakeRanker.fitted = []
    rankers = {"sum": FakeRanker(seed=9), "other": FakeRanker(seed=9)}
    options |= {"labels": ("relevance", "margin"), "query": "q", "features": ["f"]}
    return experiments.trade_off(rankers, FOLDS, path=path, weights=weights, **options)


def test_every_combination_is_trained_once_and_the_front_has_means_over_folds(tmp_path):
    path = tmp_path / "results.csv"
    assert len(sweep(path, [0.25])) == len(FakeRanker.fitted) == 4
    results = sweep(path, [0.25, 1.0], seeds=(0, 1))
    assert len(FakeRanker.fitted) == 12 and len(set(FakeRanker.fitted)) == 6
    expected = set(itertools.product(["sum", "other"], [0.25, 1.0], [1, 2], [0, 1]))
    assert set(results[["ranker", "weight", "fold", "seed"]].itertuples(index=False, name=None)) == expected
    again = sweep(path, [0.25, 1.0], seeds=(0, 1))
    assert FakeRanker.fitted == []
    pd.testing.assert_frame_equal(again, results)
    front = experiments.pareto_front(results)
    assert front["ranker"].tolist() == ["other"] * 2 + ["sum"] * 2 and front["weight"].tolist() == [0.25, 1.0] * 2
    # Folds 1 and 2 add 0.1 and 0.2, the seeds 0 and 0.01.
    np.testing.assert_allclose(front["relevance"], [0.905, 0.155] * 2)
    np.testing.assert_allclose(front["margin"], [0.405, 1.155] * 2)
    np.testing.assert_allclose(front["margin_error"], 0.05)  # |0.2 - 0.1| / 2
    with pytest.raises(ValueError, match=r"`weights` must be numbers in \[0, 1\], got 1.5"):
        sweep(path, [1.5])


def test_optimal_points_are_not_dominated():
    rows = [("x", 0.0, 0.5, 0.1), ("x", 0.5, 0.4, 0.4), ("y", 0.0, 0.5, 0.2), ("y", 1.0, 0.3, 0.4)]
    points = pd.DataFrame(rows, columns=["ranker", "weight", "a", "b"]).assign(fold=1, seed=0)
    assert experiments.pareto_front(points)["optimal"].tolist() == [False, True, True, False]
