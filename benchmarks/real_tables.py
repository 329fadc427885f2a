"""Compares `Ranker` with LightGBM on tables with ids, text and sets.

    python benchmarks/real_tables.py --table=eurovision --data=FOLDER --output=eurovision.csv

Both sides get the same columns, LightGBM text as native categories; the same number of trials, the first one with the
defaults, selected on the last part of the training set; and the same seeds. LightGBM stops early. Then they train on
the whole training set. The output has a value of the measure for each test query and side, means over seeds.

The tables, with their sources and splits:

- yandex: `features.txt.gz` and `featuresTest.txt.gz` of CatBoost's benchmark of ranking, with the URL; NDCG@10 with
  gains 2^l - 1 of labels cut at 0.07, 0.14, 0.41 and 0.61, 1 for queries without relevant documents.
- trivago: the events of the RecSys Challenge 2019, `trivago_val_100k.parquet`; clickouts by time, MRR.
- movielens: MovieLens-100K; the last fifth of the ratings of each user, NDCG@10 with gains 2^l - 1.
- eurovision: MIRoVision; countries' votes in the finals since 2015, NDCG@10 with the points as gains.
"""

from __future__ import annotations

import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import lightgbm
import numpy as np
import pandas as pd
from absl import app, flags

import tfr_smooth
from tfr_smooth import evaluation

_TABLE = flags.DEFINE_enum("table", None, ["yandex", "trivago", "movielens", "eurovision"], "The table.", required=True)
_DATA = flags.DEFINE_string("data", None, "The folder of the data.", required=True)
_TRIALS = flags.DEFINE_integer("trials", 4, "Trials of each side.", lower_bound=1)
_SEEDS = flags.DEFINE_integer("seeds", 3, "Seeds of each side.", lower_bound=1)
_OUTPUT = flags.DEFINE_string("output", None, "CSV file of the values by test query.")


class Table(NamedTuple):
    """A table.

    Attributes:
      rows: The documents, with the columns "query", "label" and "part": "train", "valid" (after it) or "test".
      features: The columns of both sides.
      kinds: The kinds of columns that `Ranker` does not infer.
      matches: The pairs of columns that it compares.
      further: Columns that a user would make by hand for LightGBM.
      measure: "recip_rank" or "ndcg_cut_10".
      linear: Whether labels are gains, or else 2^label - 1.
      empty: The value of queries without relevant documents.
    """

    rows: pd.DataFrame
    features: list[str]
    kinds: dict[str, str]
    matches: Sequence[tuple[str, str]] = ()
    further: Sequence[str] = ()
    measure: str = "ndcg_cut_10"
    linear: bool = False
    empty: float = 0.0

    def part(self, *names: str) -> pd.DataFrame:
        return self.rows[self.rows["part"].isin(names)]

    def values(self, rows: pd.DataFrame, scores: np.ndarray) -> pd.Series:
        """Returns the measure of each query."""
        gains = rows["label"] if self.linear else 2 ** rows["label"] - 1
        found = evaluation.evaluate_rows(gains, scores, rows["query"], [self.measure], by_query=True)[self.measure]
        relevant = rows.groupby(rows["query"].astype(str))["label"].max() > 0
        return pd.Series(found).rename(str).where(relevant, self.empty)


def folder() -> pathlib.Path:
    return pathlib.Path(_DATA.value)


def yandex() -> Table:
    def read(name: str) -> pd.DataFrame:
        table = pd.read_csv(folder() / name, sep="\t", header=None, quoting=3)
        columns = {"query": table[0], "label": np.digitize(table[1], [0.07, 0.14, 0.41, 0.61])}
        columns |= {"url": table[2].str.replace(r"[/.:?=&_-]+", " ", regex=True), "group": table[3].astype(str)}
        return pd.DataFrame(columns | {f"number_{place}": table[place] for place in range(4, 54)})

    rows = pd.concat([read("features.txt.gz").assign(part="train"), read("featuresTest.txt.gz").assign(part="test")])
    queries = rows.loc[rows["part"] == "train", "query"].unique()
    is_late = rows["query"].isin(np.random.default_rng(0).permutation(queries)[: len(queries) // 5])
    rows["part"] = rows["part"].mask(is_late & (rows["part"] == "train"), "valid")
    return Table(rows, [*rows.columns[2:-1]], {"url": "text"}, empty=1.0)


def trivago() -> Table:
    events = pd.read_parquet(folder() / "trivago_val_100k.parquet")
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
                        "in_session": [float(item in seen) for item in items],
                        "is_last": [float(item == seen[-1]) if seen else 0.0 for item in items],
                    }
                )
            reference = event.reference
            if isinstance(reference, str) and reference.isdigit() and event.action_type != "search for poi":
                seen.append(reference)
    found = pd.DataFrame(clickouts).sort_values("time", kind="stable")
    place = np.arange(len(found)) / len(found)
    found["part"] = np.select([place < 0.6, place < 0.75], ["train", "valid"], "test")
    rows = found.explode(["item", "price", "in_session", "is_last"], ignore_index=True)
    rows = rows.astype({"price": float, "in_session": float, "is_last": float})
    rows["position"] = rows.groupby("query").cumcount() + 1
    rows["price_rank"] = rows.groupby("query")["price"].rank()
    rows["label"] = (rows["item"] == rows["clicked"]).astype(int)
    numbers, ids = ["price", "position", "price_rank"], ["item", "last_item", "city"]
    features = [*numbers, *ids, "device", "platform", "filters", "session_items"]
    kinds = {**dict.fromkeys(ids, "id"), "filters": "set:|", "session_items": "set:|"}
    matches = [("item", "session_items"), ("item", "last_item")]
    return Table(rows, features, kinds, matches, ["in_session", "is_last"], measure="recip_rank")


def movielens() -> Table:
    ratings = pd.read_csv(folder() / "u.data.gz", sep="\t", names=["query", "item", "rating", "time"])
    movies = pd.read_csv(folder() / "u.item.gz", sep="|", encoding="latin-1", header=None)
    names = [line.split("|")[0] for line in (folder() / "u.genre").read_text().splitlines() if "|" in line]
    genres = ["|".join(np.array(names)[has]) for has in movies.iloc[:, 5:].to_numpy(bool)]
    movies = pd.DataFrame(
        {"item": movies[0], "title": movies[1], "released": pd.to_datetime(movies[2]), "genres": genres}
    )
    users = pd.read_csv(folder() / "u.user", sep="|", names=["query", "age", "sex", "job", "zip"]).drop(columns="zip")
    rows = ratings.merge(movies, on="item").merge(users, on="query").sort_values(["query", "time"], kind="stable")
    place = rows.groupby("query").cumcount() / rows.groupby("query")["item"].transform("size")
    rows["part"] = np.select([place < 0.64, place < 0.8], ["train", "valid"], "test")
    rows["user"], rows["label"] = rows["query"], rows["rating"] - 1
    rows["age_of_movie"] = (rows["released"] - pd.Timestamp("1998-01-01")).dt.days.astype(float)
    features = ["item", "user", "title", "genres", "age_of_movie", "age", "sex", "job"]
    return Table(rows, features, {"item": "id", "user": "id", "title": "text", "genres": "set:|"})


def eurovision() -> Table:
    options: dict[str, Any] = {"keep_default_na": False, "na_values": ["NA"]}
    votes = pd.read_csv(folder() / "votes.csv.gz", **options)
    songs = pd.read_csv(folder() / "contestants.csv.gz", **options).rename(columns={"country": "to_country"})
    regions = pd.read_csv(folder() / "countries.csv.gz", **options).set_index("country")["region"]
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


class Fitted(NamedTuple):
    """A trained model: its function of rows to scores, and the processor seconds of its training."""

    score: Callable[[pd.DataFrame], np.ndarray]
    seconds: float


# The most values of a column of text or ids that a trial keeps.
_MOST_VALUES = (100, 2000, np.inf)


def _chosen(table: Table, columns: Sequence[str], most: float) -> dict[str, pd.Index | None]:
    """Returns the columns without those of more values, with the values of text and ids."""
    rows, found = table.part("train", "valid"), {}
    for name in columns:
        is_text = name in table.kinds or not pd.api.types.is_numeric_dtype(rows[name])
        values = pd.Categorical(rows[name]).categories if is_text else None
        if values is None or len(values) <= most:
            found[name] = values
    return found


def train_ranker(table: Table, settings: dict[str, Any], seed: int, *parts: str) -> Fitted:
    options = {**settings, **({"gain": "linear"} if table.linear else {})}
    features = list(_chosen(table, table.features, options.pop("most_values", np.inf)))
    names, kinds = ["query", "label", *features], {name: table.kinds[name] for name in features if name in table.kinds}
    matches = [pair for pair in table.matches if set(pair) <= set(features)]
    ranker = tfr_smooth.Ranker(kinds=kinds, matches=matches, seed=seed, verbose=False, **options)
    start = time.process_time()
    ranker.fit(table.part(*parts)[names], label="label", query="query", features=features)
    return Fitted(lambda rows: ranker.predict(rows[names]), time.process_time() - start)


def ranker_trial(table: Table, random: np.random.Generator, first: bool) -> tuple[float, dict[str, Any]]:
    """Returns the validation value and the settings of a trial."""
    settings: dict[str, Any] = {}
    if not first:
        settings["learning_rate"] = float(random.choice([0.001, 0.003, 0.006]))
        settings["dropout"] = float(random.choice([0.1, 0.2, 0.4]))
        settings["epochs"] = int(random.choice([10, 20, 30]))
        settings["most_values"] = float(random.choice(_MOST_VALUES))
    valid = table.part("valid")
    scores = train_ranker(table, settings, 0, "train").score(valid)
    return table.values(valid, scores).mean(), settings


def train_trees(table: Table, settings: dict[str, Any], seed: int, *parts: str) -> tuple[Fitted, Any]:
    """Trains LightGBM; without "valid" among the parts, it stops early by these rows."""
    options = dict(settings)
    columns = [*table.features, *(table.further if options.pop("further") else ())]
    chosen = _chosen(table, columns, options.pop("most_values", np.inf))

    def encoded(rows: pd.DataFrame) -> pd.DataFrame:
        given = rows[list(chosen)].copy()
        for name, known in chosen.items():
            if known is not None:
                given[name] = pd.Categorical(given[name].where(given[name].isin(known)), categories=known)
        return given

    if table.linear:
        options["label_gain"] = list(range(int(table.rows["label"].max()) + 1))
    model = lightgbm.LGBMRanker(random_state=seed, n_jobs=1, verbose=-1, **options)
    train, valid, stopping = table.part(*parts), table.part("valid"), {}
    train, valid = (rows.sort_values("query", kind="stable") for rows in (train, valid))
    given = encoded(train)
    if "valid" not in parts:
        stopping = {
            "eval_X": (encoded(valid),),
            "eval_y": (valid["label"],),
            "eval_group": [valid.groupby("query").size()],
            "eval_at": [10],
            "callbacks": [lightgbm.early_stopping(50, verbose=False)],
        }
    start = time.process_time()
    model.fit(given, train["label"], group=train.groupby("query").size(), **stopping)
    seconds = time.process_time() - start
    return Fitted(lambda rows: model.predict(encoded(rows)), seconds), model


def trees_trial(table: Table, random: np.random.Generator, first: bool, further: bool) -> tuple[float, dict[str, Any]]:
    settings: dict[str, Any] = {"n_estimators": 500, "further": further}
    if not first:
        settings["learning_rate"] = float(random.choice([0.03, 0.06, 0.1]))
        settings["num_leaves"] = int(random.choice([15, 31, 63]))
        settings["min_child_samples"] = int(random.choice([10, 20, 50]))
        settings["colsample_bytree"] = float(random.choice([0.6, 0.8, 1.0]))
        settings["most_values"] = float(random.choice(_MOST_VALUES))
    fitted, model = train_trees(table, settings, 0, "train")
    valid = table.part("valid")
    value = table.values(valid, fitted.score(valid)).mean()
    return value, {**settings, "n_estimators": max(1, model.best_iteration_)}


def main(_: list[str]) -> None:
    table = {"yandex": yandex, "trivago": trivago, "movielens": movielens, "eurovision": eurovision}[_TABLE.value]()
    test, means = table.part("test"), {}
    print(table.rows.groupby("part").agg(rows=("query", "size"), queries=("query", "nunique")).to_string(), flush=True)
    sides: dict[str, tuple[Callable[..., Any], Callable[..., Fitted]]] = {"Ranker": (ranker_trial, train_ranker)}
    for name, further in (("LightGBM", False), ("LightGBM with further columns", True)):
        if not further or table.further:
            trial = lambda *given, further=further: trees_trial(*given, further)  # noqa: E731
            sides[name] = (trial, lambda *given: train_trees(*given)[0])
    for name, (trial, train) in sides.items():
        random = np.random.default_rng(0)
        trials = []
        for place in range(_TRIALS.value):
            value, settings = trial(table, random, place == 0)
            trials.append((value, settings))
            print(f"{name}: validation {value:.4f}, {settings}", flush=True)
        best, found = max(trials, key=lambda each: each[0])[1], []
        for seed in range(_SEEDS.value):
            fitted = train(table, best, seed, "train", "valid")
            start = time.process_time()
            scores = fitted.score(test)
            rate = len(test) / (time.process_time() - start)
            found.append(table.values(test, scores))
            print(
                f"{name}: seed {seed}, {table.measure} {found[-1].mean():.4f}, {fitted.seconds:.0f} processor seconds "
                f"of training, {rate:,.0f} rows per processor second",
                flush=True,
            )
        means[name] = sum(found) / len(found)
    values = pd.DataFrame(means)
    for name in list(values)[1:]:
        p_value = evaluation.randomization_test(values["Ranker"].to_dict(), values[name].to_dict())
        print(f"Ranker {values['Ranker'].mean():.4f}, {name} {values[name].mean():.4f}, {p_value}")
    if _OUTPUT.value:
        values.round(5).rename_axis("query").to_csv(_OUTPUT.value)


if __name__ == "__main__":
    app.run(main)
