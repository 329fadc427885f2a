"""Compares recommenders on items without interactions: factors and sequences with a table of items, and others.

python benchmarks/new_items.py --data=movielens --folder=ml-100k --seeds=2
python benchmarks/new_items.py --data=toys --folder=toys-and-games --temperature=0.1

A random tenth of the items loses all interactions, which are the test of new items. A random tenth of each user's other
items is the test of known items. Known items are ranked among each other, new items in the whole catalog, and also
among each other. With --search, new items are a tenth of the others, which leaves the test items to the end.
"""

from __future__ import annotations

import gzip
import json
import pathlib
import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from absl import app, flags
from movielens import read_items, read_ratings
from sklearn.feature_extraction.text import TfidfVectorizer

from tfr_smooth import recommendation

_DATA = flags.DEFINE_enum("data", "movielens", ["movielens", "toys"], "MovieLens-100K, or Toys and Games of S3-Rec.")
_FOLDER = flags.DEFINE_string("folder", None, "Folder of the data, as published or gzipped.", required=True)
_METHODS = flags.DEFINE_list("methods", None, "Methods to run. Default: all.")
_SEEDS = flags.DEFINE_integer("seeds", 3, "Number of splits.", lower_bound=1)
_SEARCH = flags.DEFINE_boolean("search", False, "Whether to hold out other items, to choose settings.")
_DIM = flags.DEFINE_integer("dim", 64, "Dimension of the vectors.", lower_bound=1)
_EPOCHS = flags.DEFINE_integer("epochs", 30, "Largest number of epochs.", lower_bound=1)
_TEMPERATURE = flags.DEFINE_float("temperature", 0.2, "Temperature.", lower_bound=0.0)

MEASURES = ("recall_20", "ndcg_cut_20")
TESTS = ("known", "new among all", "new")


class Data(NamedTuple):
    """A data set.

    Attributes:
      whole: All interactions.
      items: A row for each of their items, in their order.
      kinds: The kinds of its columns that are not to be inferred.
      words: The words of each item for its profile, separated by spaces.
    """

    whole: recommendation.Interactions
    items: pd.DataFrame
    kinds: dict[str, str]
    words: list[str]


class Split(NamedTuple):
    """The interactions to train on, the tests, and which items are new."""

    train: recommendation.Interactions
    known: recommendation.Interactions
    new: recommendation.Interactions
    is_new: np.ndarray


Scorer = Callable[[np.ndarray], np.ndarray]


def movielens(folder: pathlib.Path) -> Data:
    """Returns MovieLens-100K: titles, years and genres."""
    whole = recommendation.from_dataframe(read_ratings(folder), user="user", item="item", time="time")
    table = read_items(folder).set_index("item").loc[whole.item_ids].reset_index()
    words = [
        " ".join(
            [*re.findall(r"\w+", title.lower()), *(f"genre:{genre}" for genre in own.split("|")), f"years:{year // 5}"]
        )
        for title, year, own in zip(table["title"], table["year"], table["genres"], strict=True)
    ]
    return Data(whole, table, {"title": "text", "genres": "set:|"}, words)


def toys(folder: pathlib.Path) -> Data:
    """Returns Toys and Games: sets of attributes, which are categories and brands."""
    with gzip.open(folder / "Toys_and_Games.txt.gz", "rt") as lines:
        pairs = [(user, int(item), at) for user, *items in map(str.split, lines) for at, item in enumerate(items)]
    events = pd.DataFrame(pairs, columns=["user", "item", "time"])
    whole = recommendation.from_dataframe(events, user="user", item="item", time="time")
    with gzip.open(folder / "Toys_and_Games_item2attributes.json.gz") as file:
        attributes = json.load(file)
    sets = [[str(attribute) for attribute in attributes.get(str(item), [])] for item in whole.item_ids]
    table = pd.DataFrame({"item": whole.item_ids, "attributes": ["|".join(own) for own in sets]})
    return Data(whole, table, {"attributes": "set:|"}, [" ".join(own) for own in sets])


def split(whole: recommendation.Interactions, seed: int) -> Split:
    """Returns a split; in a search, the items of the test have no interactions at all."""
    tenths = np.random.default_rng(seed).permutation(np.arange(whole.num_items) * 10 // whole.num_items)
    is_new, items = tenths == int(_SEARCH.value), whole.pairs()["items"]
    of_new = is_new[items]
    train, known = recommendation.hold_out(
        whole.keeping(~of_new & ((tenths != 0)[items] | (not _SEARCH.value))), items=0.1, seed=seed
    )
    return Split(train, known, whole.keeping(of_new), is_new)


def profiles(data: Data, parts: Split) -> Scorer:
    """Returns the cosines of items with the sums of the users' items, by the TF-IDF of words."""
    words = TfidfVectorizer(analyzer=str.split, sublinear_tf=True).fit_transform(data.words)
    users = parts.train.matrix.astype(np.float32) @ words
    return lambda rows: (users[rows] @ words.T).toarray().astype(np.float32)


def popularity(data: Data, parts: Split) -> Scorer:
    """Returns the numbers of users of the items."""
    return recommendation.Popularity().fit(parts.train).predict


def factors(data: Data, parts: Split, items: pd.DataFrame | None = None) -> Scorer:
    """Returns the scores of a recommender, with or without a table of items."""
    sizes = {"dim": _DIM.value, "softmax_epochs": _EPOCHS.value, "temperature": _TEMPERATURE.value}
    kinds = None if items is None else data.kinds
    recommender = recommendation.Recommender(loss=None, kinds=kinds, refit=False, verbose=False, **sizes)
    return recommender.fit(parts.train, items=items).predict


def both(data: Data, parts: Split) -> Scorer:
    """Returns the scores of factors with a table of items."""
    return factors(data, parts, data.items)


def sequences(data: Data, parts: Split) -> Scorer:
    """Returns the scores of sequences with a table of items."""
    sizes = {"history_items": "sequence", "softmax_epochs": _EPOCHS.value}
    recommender = recommendation.Recommender(kinds=data.kinds, refit=False, verbose=False, **sizes)
    return recommender.fit(parts.train, items=data.items).predict


METHODS: dict[str, Callable[[Data, Split], Scorer]] = {
    "popularity": popularity,
    "profiles of content": profiles,
    "factors": factors,
    "factors and table": both,
    "sequences and table": sequences,
}


def measured(scorer: Scorer, parts: Split) -> list[float]:
    """Returns the measures of each test."""

    def among(chosen: np.ndarray) -> Scorer:
        return lambda users: np.where(chosen, scorer(users), np.finfo(np.float32).min)

    cases = [(among(~parts.is_new), parts.known), (scorer, parts.new), (among(parts.is_new), parts.new)]
    results = [recommendation.evaluate(how, test, seen=parts.train, measures=MEASURES) for how, test in cases]
    return [result.means[measure].mean for result in results for measure in MEASURES]


def main(_: Any) -> None:
    data = {"movielens": movielens, "toys": toys}[_DATA.value](pathlib.Path(_FOLDER.value))
    columns = [f"{test} {measure}" for test in TESTS for measure in MEASURES]
    print(f"{data.whole}\n\n| method | {' | '.join(columns)} | seconds |")
    print("|---" * (2 + len(columns)) + "|")
    for name in _METHODS.value or METHODS:
        start = time.process_time()
        splits = [split(data.whole, seed) for seed in range(_SEEDS.value)]
        values = [measured(METHODS[name](data, parts), parts) for parts in splits]
        seconds = (time.process_time() - start) / len(splits)
        shown = [f"{mean:.4f} ± {std:.4f}" for mean, std in zip(np.mean(values, 0), np.std(values, 0), strict=True)]
        print(f"| {name} | {' | '.join(shown)} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    app.run(main)
