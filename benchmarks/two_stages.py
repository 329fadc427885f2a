"""Compares a recommender with a ranker of its candidates, on MovieLens-100K with its tables of users and items.

python benchmarks/two_stages.py --folder=ml-100k

The items of each user are divided by time: three fifths, a fifth, and a fifth for the test. The ranker learns from the
candidates of a recommender of the first part which of them are in the second part. Then a recommender of the first two
parts gives the candidates of the test, in its own order and in that of the ranker.
"""

from __future__ import annotations

import pathlib
import time
from typing import Any

import numpy as np
import pandas as pd
from absl import app, flags
from data_files import find
from movielens import read_items, read_ratings

from tfr_smooth import evaluation, recommendation
from tfr_smooth.ranker import Ranker

_FOLDER = flags.DEFINE_string("folder", None, "Folder of MovieLens-100K, as published or gzipped.", required=True)
_TOPN = flags.DEFINE_integer("topn", 200, "Candidates per user.", lower_bound=1)
_SEEDS = flags.DEFINE_integer("seeds", 1, "Trainings.", lower_bound=1)


def candidates(
    recommender: recommendation.Recommender,
    known: recommendation.Interactions,
    following: recommendation.Interactions,
    users: pd.DataFrame,
    items: pd.DataFrame,
) -> pd.DataFrame:
    """Returns a row per user and candidate, with columns of both, and the label 1 if the user has it later."""
    ids = known.user_ids[following.items_per_user > 0]
    top = recommender.recommend(ids, topn=_TOPN.value)
    frame = pd.DataFrame({"user": np.repeat(ids, _TOPN.value), "item": top.items.ravel(), "score": top.scores.ravel()})
    pairs = following.pairs()
    later = pd.DataFrame({"user": following.user_ids[pairs["users"]], "item": following.item_ids[pairs["items"]]})
    frame = frame.merge(later.assign(label=1), how="left").fillna({"label": 0})
    popularity = pd.DataFrame({"item": known.item_ids, "popularity": known.users_per_item})
    activity = pd.DataFrame({"user": known.user_ids, "activity": known.items_per_user})
    for table in (popularity, activity, users, items):
        frame = frame.merge(table, how="left")
    return frame


def main(argv: list[str]) -> None:
    del argv
    folder = pathlib.Path(_FOLDER.value)
    ratings, items = read_ratings(folder), read_items(folder)
    users = pd.read_csv(*find(folder, "u.user"), sep="|", names=["user", "age", "gender", "occupation", "zip"])
    users = users.drop(columns="zip")
    whole = recommendation.from_dataframe(ratings, user="user", item="item", time="time")
    before, test = recommendation.hold_out(whole, items=0.2, by="time")
    first, second = recommendation.hold_out(before, items=0.25, by="time")
    print("| seed | recommender NDCG@10, recall@20 | ranker NDCG@10, recall@20 | p of NDCG@10 | seconds |", flush=True)
    print("|---|---|---|---|---|", flush=True)
    for seed in range(_SEEDS.value):
        started = time.process_time()
        options: dict[str, Any] = {"seed": seed, "verbose": False}
        early, late = (recommendation.Recommender(**options).fit(part) for part in (first, before))
        train, tested = candidates(early, first, second, users, items), candidates(late, before, test, users, items)
        columns = train.columns.difference(["label", "item"])
        ranker = Ranker(kinds={"title": "text", "genres": "set:|"}, **options)
        ranker.fit(train[columns], train["label"], query="user")
        scores = np.full([test.num_users, test.num_items], np.finfo(np.float32).min)
        scores[test.user_indices(tested["user"]), test.item_indices(tested["item"])] = ranker.predict(tested[columns])
        seconds = time.process_time() - started
        found = [
            recommendation.evaluate(scorer, test, seen=before, measures=["ndcg_cut_10", "recall_20"])
            for scorer in (late, lambda users, scores=scores: scores[users])
        ]
        cells = [", ".join(f"{each.mean:.4f}" for each in result.means.values()) for result in found]
        p = evaluation.randomization_test(*(result.by_user("ndcg_cut_10") for result in found)).p_value
        print(f"| {seed} | {cells[0]} | {cells[1]} | {p:.4f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    app.run(main)
