"""Half of the networks do without what ranks no better than chance, and the others keep it."""

import numpy as np
import pandas as pd
import pytest

import tfr_smooth
from tfr_smooth.columns.tree_learning import weak_features

QUICK = {"loss": "softmax", "members": 4, "hidden": [32], "epochs": 15, "learning_rate": 0.01, "verbose": False}


def table(queries):
    """Returns a table of 8 documents per query."""
    random = np.random.default_rng(queries)
    rows = 8 * queries
    frame = pd.DataFrame({"query": np.repeat(np.arange(queries), 8), "number": random.normal(size=rows)})
    frame["side"] = np.repeat(random.choice([-1.0, 1.0], queries), 8)
    frame["type"] = random.choice(list("abcdef"), rows)  # relevant on one side only
    frame["chance"] = random.normal(size=rows)
    utility = frame["number"] + 3.0 * frame["side"] * np.where(frame["type"] < "d", 1.0, -1.0)
    frame["label"] = (utility + random.normal(size=rows) > 2.0).astype(int)
    return frame


@pytest.mark.parametrize("kind, weak", [("category", ["chance"]), ("id", [])])  # trees have no ids
def test_weak_columns_are_those_that_rank_no_better_than_shuffled_ones(kind, weak):
    ranker = tfr_smooth.Ranker(**QUICK, list_context=False, kinds={"type": kind})
    ranker.fit(table(400), label="label", query="query")
    places = ranker.features_.weak
    assert [ranker.features_.feature_columns[place] for place in places] == weak
    assert ranker.model_.scorer.get_config()["weak"] == places
    assert ranker.evaluate(table(150))["ndcg"].mean > 0.85


def test_numbers_of_lists_are_compared_with_those_of_other_lists():
    random = np.random.default_rng(0)
    x = random.normal(size=[600, 10, 6])
    x[:, :, 2:] = x[:, :1, 2:]  # the same for all documents of a list
    labels = (np.where(x[..., 2] > 0.0, x[..., 0], -x[..., 0]) > 0.5).astype(int)
    data = {
        "data": x.reshape(-1, 6),
        "label": labels.ravel(),
        "group": np.full(600, 10),
        "weight": None,
        "categorical_feature": [],
    }
    assert weak_features(data, {"label_gain": [0, 1]}, 30) == [1, 3, 4, 5]
