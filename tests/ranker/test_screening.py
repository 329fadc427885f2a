"""Ids that only add noise lose their embeddings, and ids that matter only together with another column keep them."""

import numpy as np
import pandas as pd
import pytest

import tfr_smooth

QUICK = {
    **{"loss": "softmax", "members": 1, "hidden": [32], "epochs": 15, "learning_rate": 0.01, "dropout": 0.0},
    "verbose": False,
}


def table(queries):
    """Returns a table of 8 documents per query."""
    random = np.random.default_rng(queries)
    rows = 8 * queries
    frame = pd.DataFrame({"query": np.repeat(np.arange(queries), 8), "number": random.normal(size=rows)})
    frame["side"] = np.repeat(random.choice([-1.0, 1.0], queries), 8)
    frame["type"] = random.choice(list("abcdef"), rows)  # relevant on one side only
    frame["noise"] = "n" + pd.Series(random.integers(0, 60, rows).astype(str))
    utility = frame["number"] + 3.0 * frame["side"] * np.where(frame["type"] < "d", 1.0, -1.0)
    frame["label"] = (utility + random.normal(size=rows) > 2.0).astype(int)
    return frame


@pytest.fixture(scope="module")
def ranker():
    kinds = {"type": "id", "noise": "id"}
    return tfr_smooth.Ranker(**QUICK, kinds=kinds).fit(table(400), label="label", query="query")


def test_only_ids_that_help_to_rank_held_out_queries_have_embeddings(ranker):
    assert ["no embedding" in column.reason for column in ranker.columns_] == [False, False, False, True]
    assert ranker.evaluate(table(150))["ndcg"].mean > 0.85


def test_an_id_without_an_embedding_changes_no_score_unless_it_is_missing(ranker):
    new = table(20)
    scores = ranker.predict(new)
    np.testing.assert_array_equal(ranker.predict(new.assign(noise="unseen")), scores)
    assert (ranker.predict(new.assign(noise=None)) != scores).any()


@pytest.mark.slow
def test_the_choice_takes_all_labels_and_weights(ranker):
    frame = table(400).assign(weight=2.0)
    frame["other"] = frame["label"]
    options = {"label": {"label": 1.0, "other": 3.0}, "query": "query", "weight": "weight"}
    again = tfr_smooth.Ranker(**{**ranker.get_params(), "epochs": 12}).fit(frame, **options)
    assert again.columns_ == ranker.columns_
