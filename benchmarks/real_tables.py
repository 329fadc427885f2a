"""Compares `Ranker` with LightGBM, CatBoost and XGBoost on tables: public ones, made-up ones, or your own.

    python benchmarks/real_tables.py --table=eurovision --data=FOLDER --output=results/eurovision
    python benchmarks/real_tables.py --table=zeros --sides=ranker,lightgbm --validate_only --trials=1
    python benchmarks/real_tables.py --table=my.parquet --label=relevance --query=session --time=day

`tables/real.py` describes the public tables, `tables/made_up.py` the others. All sides get the same columns; a name
with "+", such as "lightgbm+", also those of `tables/hand_made.py`. Each side has the same number of trials, the first
one with the defaults, selected by the validation queries, which also stop the training of trees. Then it trains on the
training and validation queries, with each seed.

Each side runs in a process of its own with one thread. With --output, a folder, what is finished is not repeated by the
same call. A package that is not installed is skipped.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import json
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from absl import app, flags
from tables import made_up, own, peers, real
from tables.table import Table

REAL = {
    make.__name__: make
    for make in (real.yandex, real.trivago, real.movielens, real.eurovision, real.crowdflower, real.cars, real.letor)
}
SIDES = ("ranker", *peers.SIDES)

_TABLE = flags.DEFINE_string("table", None, f"{', '.join([*REAL, *made_up.TABLES])}, or a file.", required=True)
_DATA = flags.DEFINE_string("data", None, "The folder of the files of a public table; docs/data_sets.md lists them.")
_LABEL = flags.DEFINE_string("label", None, "The column of labels of your own table.")
_QUERY = flags.DEFINE_string("query", None, "The column of queries of your own table.")
_TIME = flags.DEFINE_string("time", None, "The column by which your own table is split. Default: queries at random.")
_KINDS = flags.DEFINE_string("kinds", "{}", 'Kinds of columns of your own table as JSON, such as {"shop": "id"}.')
_MATCHES = flags.DEFINE_list("matches", [], "Pairs of columns of your own table, such as title:search.")
_SIDES = flags.DEFINE_list("sides", list(SIDES), "The sides, without spaces.")
_SETTINGS = flags.DEFINE_string("settings", "{}", 'Arguments of `Ranker` as JSON, such as {"members": 2}.')
_INFER = flags.DEFINE_bool("infer", False, "Whether `Ranker` gets neither `kinds` nor `matches`.")
_TRIALS = flags.DEFINE_integer("trials", 4, "Trials of each side.", lower_bound=1)
_SEEDS = flags.DEFINE_integer("seeds", 3, "Seeds of each side.", lower_bound=1)
_VALIDATE_ONLY = flags.DEFINE_bool(
    "validate_only", False, "Whether to leave out the test queries: trials have the mean of all seeds."
)
_QUERIES = flags.DEFINE_integer("queries", None, "The most queries of each part, at random.", lower_bound=2)
_TREES = flags.DEFINE_integer("trees", None, "The most trees. Default: 500.", lower_bound=1)
_OUTPUT = flags.DEFINE_string("output", None, "Folder of a JSON file for each side and of values.csv, by query.")


def load() -> Table:
    name = _TABLE.value
    if name in made_up.TABLES:
        table = made_up.TABLES[name](np.random.default_rng(0))
    elif name in REAL:
        if not _DATA.value:
            raise app.UsageError(f"--table={name} needs --data.")
        try:
            table = REAL[name](pathlib.Path(_DATA.value))
        except FileNotFoundError as error:
            sys.exit(f"--data: {error}")
    else:
        if not (_LABEL.value and _QUERY.value):
            raise app.UsageError(f"{name} is none of {[*REAL, *made_up.TABLES]}; a file needs --label and --query.")
        matches = [tuple(pair.split(":")) for pair in _MATCHES.value]
        options = {"time": _TIME.value, "kinds": json.loads(_KINDS.value), "matches": matches}
        table = own.own(pathlib.Path(name), label=_LABEL.value, query=_QUERY.value, **options)
    # Trees need the rows of a query together.
    parts = ["train", "valid"] if _VALIDATE_ONLY.value else ["train", "valid", "test"]
    rows = table.part(*parts)
    places, _ = pd.factorize(rows["query"])
    table = table._replace(rows=rows.iloc[np.argsort(places, kind="stable")].reset_index(drop=True))
    return table.sample(_QUERIES.value) if _QUERIES.value else table


def draw_ranker(table: Table, random: np.random.Generator | None) -> dict[str, Any]:
    drawn: dict[str, Any] = {}
    if random is not None:
        drawn["learning_rate"] = random.choice([0.001, 0.003, 0.006]).item()
        drawn["dropout"] = random.choice([0.1, 0.2, 0.4]).item()
        drawn["epochs"] = random.choice([10, 20, 30]).item()
        drawn["most_values"] = random.choice(peers.MOST_VALUES).item()
    return {**drawn, **json.loads(_SETTINGS.value)}


def train_ranker(table: Table, settings: dict[str, Any], seed: int, parts: tuple[str, ...]) -> peers.Fitted:
    import tfr_smooth

    options = {**({"gain": "linear"} if table.linear else {}), **settings}
    features = list(peers.kept(table, options.pop("most_values", np.inf)))
    names = ["query", "label", *features]
    if not _INFER.value:
        options["kinds"] = {name: kind for name, kind in table.kinds.items() if name in features}
        options["matches"] = [pair for pair in table.matches if set(pair) <= set(features)]
    ranker = tfr_smooth.Ranker(**{"seed": seed, "verbose": False, **options})
    start = time.process_time()
    ranker.fit(table.part(*parts)[names], label="label", query="query", features=features)
    return peers.Fitted(lambda rows: ranker.predict(rows[names]), time.process_time() - start)


def side_of(name: str) -> peers.Side:
    if name == "ranker":
        return peers.Side("tfr_smooth", draw_ranker, train_ranker)
    return peers.side(name, trees=_TREES.value)


class Record:
    """The results of a side, in a JSON file if there is a folder."""

    def __init__(self, name: str) -> None:
        self.path = pathlib.Path(_OUTPUT.value) / f"{name}.json" if _OUTPUT.value else None
        given = (_TABLE, _DATA, _LABEL, _QUERY, _TIME, _KINDS, _MATCHES, _QUERIES, _TREES)
        flags_given = {flag.name: flag.value for flag in given}
        if name == "ranker":
            flags_given |= {flag.name: flag.value for flag in (_SETTINGS, _INFER)}
        self.content: dict[str, Any] = {"flags": flags_given}
        if self.path is not None and self.path.exists():
            self.content = json.loads(self.path.read_text(encoding="utf-8"))
            if self.content["flags"] != flags_given:
                raise ValueError(f"{self.path} has results of {self.content['flags']}, not of {flags_given}.")

    def get(self, key: str) -> Any:
        return self.content.get(key)

    def set(self, key: str, value: Any) -> None:
        self.content[key] = value
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = self.path.with_suffix(".unfinished")
            unfinished.write_text(json.dumps(self.content, indent=1), encoding="utf-8")
            unfinished.replace(self.path)


def memory(name: str) -> float:
    """Returns a memory size of this process in megabytes, as Linux reports it; NaN elsewhere."""
    if sys.platform != "linux":
        return float("nan")
    lines = pathlib.Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1024


def measured(side: peers.Side, table: Table, settings: dict[str, Any], seed: int, part: str) -> dict[str, Any]:
    """Trains before the part and returns the values of its queries, with time and memory."""
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)  # Else a training would use the memory of the one before.
        pathlib.Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets the peak
    at_rest = memory("VmRSS")
    fitted = side.train(table, settings, seed, ("train",) if part == "valid" else ("train", "valid"))
    megabytes = memory("VmHWM") - at_rest
    rows = table.part(part)
    start = time.process_time()
    scores = fitted.score(rows)
    rate = len(rows) / max(time.process_time() - start, 1e-3)
    values = table.values(rows, scores)
    return {
        "value": round(values.mean(), 5),
        "values": values.round(5).to_dict(),
        "settings": {**settings, **fitted.settings},
        "seconds": round(fitted.seconds, 2),
        "megabytes": float(np.round(megabytes)),
        "rows_per_second": round(rate),
    }


def shown(result: dict[str, Any]) -> str:
    return f"{result['value']:.4f}, {result['seconds']:.1f} s, {result['rows_per_second']:,} rows/s"


def run(name: str, table: Table, results: multiprocessing.connection.Connection) -> None:
    """Runs the missing trials and seeds of a side and sends its results."""
    side, record = side_of(name), Record(name)
    importlib.import_module(side.package)

    def once(key: str, *given: Any) -> dict[str, Any]:
        if record.get(key) is None:
            record.set(key, measured(side, table, *given))
            print(f"{name}, {key}: {shown(record.get(key))}", flush=True)
        return record.get(key)

    trials, random = [], np.random.default_rng(0)
    for place in range(_TRIALS.value):
        settings = side.draw(table, random if place else None)
        print(f"{name}, trial {place}: {settings}", flush=True)
        seeds = range(_SEEDS.value if _VALIDATE_ONLY.value else 1)
        trials.append([once(f"trial {place}, seed {seed}", settings, seed, "valid") for seed in seeds])
    best = max(trials, key=lambda trial: np.mean([result["value"] for result in trial]))
    parts = {"valid": best}
    if not _VALIDATE_ONLY.value:
        parts["test"] = [once(f"test, seed {seed}", best[0]["settings"], seed, "test") for seed in range(_SEEDS.value)]
    results.send({part: summary(of_part) for part, of_part in parts.items()})


def summary(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns the means of values over seeds, and the medians of the rest."""
    values = pd.DataFrame([result["values"] for result in results]).mean()
    costs = ("seconds", "megabytes", "rows_per_second")
    return {"values": values, **{key: np.median([result[key] for result in results]) for key in costs}}


def report(results: dict[str, dict[str, Any]], table: Table) -> None:
    """Prints a Markdown table, with p values of the paired randomization test against the first side."""
    from tfr_smooth import evaluation

    part = "valid" if _VALIDATE_ONLY.value else "test"
    values = pd.DataFrame({name: parts[part]["values"] for name, parts in results.items()})
    first = next(iter(values))
    titles = ["side", "validation", "test", f"p ({first})", "seconds", "MB", "rows/s"]
    print(f"\n{_TABLE.value}, {table.measure}\n\n| {' | '.join(titles)} |\n|---|{'---:|' * (len(titles) - 1)}")
    for name, parts in results.items():
        means = [f"{parts[key]['values'].mean():.4f}" if key in parts else "" for key in ("valid", "test")]
        pair = values[first].to_dict(), values[name].to_dict()
        p_value = "" if name == first else f"{evaluation.randomization_test(*pair).p_value:.2g}"
        last = parts[part]
        costs = [f"{last['seconds']:.1f}", f"{last['megabytes']:,.0f}", f"{last['rows_per_second']:,.0f}"]
        print(f"| {' | '.join([name, *means, p_value, *costs])} |")
    if _OUTPUT.value:
        values.round(5).rename_axis("query").to_csv(pathlib.Path(_OUTPUT.value) / "values.csv")


def main(_: list[str]) -> None:
    unknown = {*_SIDES.value} - {*SIDES}
    if unknown:
        raise app.UsageError(f"--sides must be of {', '.join(SIDES)}, got {', '.join(sorted(unknown))}.")
    for name in ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    table = load()
    print(table.rows.groupby("part").agg(rows=("query", "size"), queries=("query", "nunique")).to_string(), flush=True)
    # Once for all sides; the memory of a side is without it.
    importlib.import_module("tfr_smooth")
    context, results = multiprocessing.get_context("fork"), {}
    for name in _SIDES.value:
        if importlib.util.find_spec(name.removesuffix("+").replace("ranker", "tfr_smooth")) is None:
            print(f"{name} is skipped: pip install {name.removesuffix('+')}", flush=True)
            continue
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=run, args=(name, table, sender))
        process.start()
        sender.close()
        try:
            results[name] = receiver.recv()
        except EOFError:
            print(f"{name} failed.", flush=True)
        process.join()
    if results:
        report(results, table)


if __name__ == "__main__":
    app.run(main)
