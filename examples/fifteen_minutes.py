"""From a log of clicks to scores over HTTP: the first fifteen minutes with your own table.

    pip install '.[evaluation,serve]' absl-py pandas scikit-learn
    python examples/fifteen_minutes.py --output_dir=output/fifteen_minutes

It writes a made-up log of a shop, OUTPUT_DIR/log.csv, in place of yours: one row per shown product, with the text of
the search, the product's title, brand, price, category and date, and the click. Brands and prices have gaps.
Then it trains a ranker on three quarters of the searches, evaluates it on the others, shows what its scores depend on,
starts examples/serve_http.py, and compares the answers with `predict`. OUTPUT_DIR also contains
    ranker.keras  the ranker, which tfr_smooth.load reads
    scores.csv    the rows of the other searches, with the score of `predict` and that of the server
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

import startup

# isort: split
import numpy as np
import pandas as pd
from absl import flags
from sklearn.inspection import permutation_importance

import tfr_smooth
from tfr_smooth import evaluation

_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/fifteen_minutes", "Folder for all output.")
_EPOCHS = flags.DEFINE_integer("epochs", None, "Passes over the searches. Default: that of `tfr_smooth.Ranker`.")

WORDS = [
    "red",
    "blue",
    "green",
    "small",
    "large",
    "light",
    "warm",
    "soft",
    "wool",
    "cotton",
    "summer",
    "winter",
    "city",
]
CATEGORIES = ["shoes", "coat", "shirt", "bag"]


def main(argv: list[str]) -> None:
    output = pathlib.Path(_OUTPUT_DIR.value)
    output.mkdir(parents=True, exist_ok=True)
    write_log(output / "log.csv")

    # 1. Read the log. Brands are ids, which have gaps here, so that pandas makes floats of them.
    log = pd.read_csv(output / "log.csv", parse_dates=["listed"])
    searches = log["query"].unique()
    is_test = log["query"].isin(searches[: len(searches) // 4])
    train, test = log[~is_test], log[is_test]

    # 2. Train. The text of the search is also a feature: its words are compared with those of the title.
    ranker = tfr_smooth.Ranker(kinds={"brand": "id"}, epochs=_EPOCHS.value)
    features = ["query", "title", "brand", "price", "category", "listed"]
    ranker.fit(train, label="click", query="query", features=features, query_features=["query"])
    ranker.save(output / "ranker.keras")

    # 3. Evaluate on searches that are not in the training, also against the obvious order.
    measures = ["ndcg_cut_5", "recip_rank"]
    by_price = evaluation.evaluate_rows(test["click"], -test["price"].fillna(1e6), test["query"], measures)
    print(f"\nCheapest first:\n{by_price}\nRanker:\n{ranker.evaluate(test, measures=measures)}\n")

    # 4. Explain what the scores depend on.
    explain(ranker, test)

    # 5. Serve. The answers must be the scores of `predict`.
    with serving(output / "ranker.keras") as rank:
        answers = [rank(of_search[features]) for _, of_search in test.groupby("query", sort=False)]
    scored = pd.concat([of_search for _, of_search in test.groupby("query", sort=False)])
    scored = scored.assign(predicted=ranker.predict(scored), served=np.concatenate(answers))
    scored.to_csv(output / "scores.csv", index=False)
    difference = (scored["predicted"] - scored["served"]).abs().max()
    print(f"\n{len(answers)} searches over HTTP: scores differ from `predict` by at most {difference:.1g}")


def write_log(path: pathlib.Path) -> None:
    """Writes a made-up log: clicks depend on common words, the brand, the price and the age."""
    random = np.random.default_rng(0)
    appeal, rows = random.normal(size=40), []
    searches = {" ".join(random.choice(WORDS, 3, replace=False)) for _ in range(240)}
    for search in sorted(searches):
        category = random.choice(CATEGORIES)
        for _ in range(10):
            words, brand, price = random.choice(WORDS, 3, replace=False), random.integers(40), random.gamma(4.0, 15.0)
            age = int(random.integers(1000))
            common = len({*words} & {*search.split()})
            chance = 1.5 * common + appeal[brand] - price / 40.0 - age / 500.0 + random.normal(0.0, 0.5)
            day = (np.datetime64("2026-01-01") - age).item().isoformat()
            rows.append(
                [search, " ".join([*words, category]), 1000 + brand, round(price, 2), category, day, chance > 0.5]
            )
    log = pd.DataFrame(rows, columns=["query", "title", "brand", "price", "category", "listed", "click"])
    for name in ("brand", "price"):
        log.loc[random.random(len(log)) < 0.05, name] = None
    log.astype({"click": int}).to_csv(path, index=False)


def explain(ranker: tfr_smooth.Ranker, test: pd.DataFrame) -> None:
    """Prints how much each column matters for the whole table, and for the best offer of the first search."""
    columns, scoring = [*ranker.types_], lambda ranker, X, y: ranker.score(X, y, qid=test["query"])
    drops = permutation_importance(ranker, test[columns], test["click"], scoring=scoring, n_repeats=2).importances_mean
    print(pd.Series(drops, columns, name="drop of NDCG").sort_values(ascending=False))
    first = test[test["query"] == test["query"].iloc[0]]
    best = int(ranker.predict(first).argmax())
    print(f"\nWhy {first['title'].iloc[best]!r} is first for {first['query'].iloc[best]!r}:")
    print(ranker.explain(first, rows=[best]))


@contextlib.contextmanager
def serving(path: pathlib.Path) -> Iterator[Any]:
    """Starts the server of a file, and yields a function from the rows of a search to their scores."""
    script = pathlib.Path(__file__).with_name("serve_http.py")
    command = [sys.executable, str(script), f"--model={path}", "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = server.stdout.readline().removeprefix("Listening on ").strip()  # once it is ready
            if not address:
                raise OSError(f"The server did not start: {' '.join(command)}")
            yield lambda rows: request(f"{address}/rank", rows)
        finally:
            server.terminate()


def request(address: str, rows: pd.DataFrame) -> np.ndarray:
    """Returns the scores of the rows of a search. In JSON, missing values are null and dates text."""
    documents = json.loads(rows.drop(columns="query").to_json(orient="records", date_format="iso"))
    body = json.dumps({"query": {"query": rows["query"].iloc[0]}, "documents": documents}).encode()
    with urllib.request.urlopen(urllib.request.Request(address, body, {"Content-Type": "application/json"})) as answer:
        places = json.load(answer)["ranking"]
    return np.array([place["score"] for place in sorted(places, key=lambda place: place["place"])])


if __name__ == "__main__":
    startup.run(main)
