"""The columns that the benchmark of tables makes by hand for trees."""

import numpy as np
import pandas as pd

from tests.helpers.documents import ROOT


def test_columns_follow_from_kinds_and_mean_labels_leave_out_the_queries_of_the_row(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from tables.hand_made import HandMade
    from tables.table import Table

    random = np.random.default_rng(0)
    rows = pd.DataFrame({"query": np.repeat(np.arange(50), 4), "label": random.integers(0, 3, 200)})
    rows["part"] = np.where(rows["query"] < 40, "train", "test")
    rows["shop"] = [f"shop {random.integers(3)}" if query % 2 else f"only {query}" for query in rows["query"]]
    rows["price"], rows["age"] = random.random(200), rows["query"] / 50
    rows["item"], rows["seen"] = random.choice(["a", "b"], 200), np.where(rows["query"] % 2, "b|c", "")
    rows["search"], rows["title"] = "red lamp", random.choice(["lamp, red", "chair", None], 200)
    kinds = {"shop": "id", "item": "id", "seen": "set:|", "search": "text", "title": "text"}
    features = ["shop", "price", "age", "item", "seen", "search", "title"]
    table = Table(rows, features, kinds, [("title", "search"), ("item", "seen")])
    columns, train, test = HandMade(table, "train"), table.part("train"), table.part("test")
    is_of_one_query = train["shop"].str.startswith("only")
    means = columns.of_training_rows()["shop, mean label"]
    np.testing.assert_allclose(means[is_of_one_query], train["label"].mean(), rtol=1e-6)
    assert means[~is_of_one_query].std() > 0
    values = columns(test)
    unseen = values["shop, mean label"][test["shop"].str.startswith("only")]
    np.testing.assert_allclose(unseen, train["label"].mean(), rtol=1e-6)
    assert list(values) == list(columns.of_training_rows())
    assert "age, rank" not in values and "seen, mean label" not in values  # equal in each list
    np.testing.assert_allclose(values["price, rank"], test.groupby("query")["price"].rank() / 4, rtol=1e-6)
    np.testing.assert_allclose(values["title, search, word cosine"], test["title"] == "lamp, red", atol=1e-6)
    np.testing.assert_allclose(values["item, seen, common"], (test["item"] == "b") & (test["seen"] != ""))
