"""Half of the networks do without what ranks no better than chance, and the others keep it."""

import numpy as np
import pandas as pd

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
    frame["noise"] = "n" + pd.Series(random.integers(0, 60, rows).astype(str))
    utility = frame["number"] + 3.0 * frame["side"] * np.where(frame["type"] < "d", 1.0, -1.0)
    frame["label"] = (utility + random.normal(size=rows) > 2.0).astype(int)
    return frame


def test_weak_columns_are_those_that_rank_no_better_than_shuffled_ones():
    ranker = tfr_smooth.Ranker(**QUICK, list_context=False, kinds={"type": "id", "noise": "id"})
    ranker.fit(table(400), label="label", query="query")
    names = ranker.features_.feature_columns  # Trees have no ids, so "side" tells them nothing.
    assert [names[place] for place in ranker.features_.weak] == ["side", "chance", "type", "noise"]
    assert "2 rank no better than shuffled ones" in str(ranker.features_.trees)
    assert ranker.model_.scorer.get_config()["weak"] == ranker.features_.weak
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
