"""Scores --rows rows on Spark, Dask and Ray with two processes, beside one process and LightGBM in the same harness.

    python benchmarks/workers.py --engine=spark --rows=1000000

The table has queries of 20 documents with 12 numbers, 3 categories and an id of 10,000 values. `Ranker` and LightGBM
are trained on its first 2,000 queries. The faster of two runs counts: the first one starts processes and loads models.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from absl import app, flags

_ENGINE = flags.DEFINE_enum("engine", "spark", ["spark", "dask", "ray"], "The engine.")
_ROWS = flags.DEFINE_integer("rows", 1_000_000, "Rows of the table.", lower_bound=40_000)
_PARTITIONS = flags.DEFINE_integer("partitions", 8, "Partitions.", lower_bound=1)

NUMBERS = [f"number{i}" for i in range(12)]
CATEGORIES = [f"category{i}" for i in range(3)]


def table(rows: int) -> pd.DataFrame:
    """Returns queries of 20 documents, with labels of a nonlinear function of the columns and noise."""
    random = np.random.default_rng(0)
    values = random.standard_normal((rows, 12), np.float32)
    frame = pd.DataFrame({"query": np.arange(rows) // 20, **dict(zip(NUMBERS, values.T, strict=True))})
    codes = random.integers(10, size=[rows, 3])
    for name, code in zip(CATEGORIES, codes.T, strict=True):
        frame[name] = np.array([f"c{number}" for number in range(10)], object)[code]
    frame["item_id"] = random.integers(10_000, size=rows)
    relevance = values[:, :3].sum(axis=1) + values[:, 3] * values[:, 4] + 0.3 * codes[:, 0]
    frame["row"] = np.arange(rows)
    frame["label"] = np.searchsorted([1.5, 3.0, 4.5], relevance + random.normal(size=rows)).astype(np.int8)
    return frame


class LightGBM:
    """LightGBM, in the form of an estimator."""

    query_column = "query"

    def __init__(self, booster: Any) -> None:
        self._booster = booster

    def predict(self, table: Any) -> np.ndarray:
        frame = table if isinstance(table, pd.DataFrame) else table.to_pandas()
        return self._booster.predict(features_of(frame), num_threads=1)


def features_of(frame: pd.DataFrame) -> pd.DataFrame:
    codes = {name: frame[name].str[1:].astype(np.float32) for name in CATEGORIES}
    return frame[[*NUMBERS, "item_id"]].assign(**codes).astype(np.float64)


def start(engine: str) -> Callable[[str], Any]:
    """Starts two processes of an engine, and returns what reads the table there."""
    if engine == "spark":
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False).getOrCreate()
        return session.read.parquet
    if engine == "dask":
        import dask.dataframe
        import distributed

        distributed.Client(distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None))
        return dask.dataframe.read_parquet
    import ray

    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)  # a shuffle needs some itself
    return ray.data.read_parquet


def whole_queries(frame: Any) -> Any:
    """Returns a table of an engine with the rows of each query in one partition."""
    if _ENGINE.value == "spark":
        return frame.repartition(_PARTITIONS.value, "query")
    if _ENGINE.value == "dask":
        return frame.shuffle("query", npartitions=_PARTITIONS.value)
    return frame.repartition(_PARTITIONS.value, keys=["query"])


def run(read: Callable[[str], Any], path: str, model: Any, expected: np.ndarray) -> float:
    """Returns the seconds in which the engine scores the table and writes the scores, which must be the expected."""
    from tfr_smooth import serving

    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        found = serving.score_partitions(whole_queries(read(path)), model, check=False)
        target, kept = f"{folder}/scores", ["row", "score"]
        if _ENGINE.value == "spark":
            found.select(*kept).write.parquet(target)
        elif _ENGINE.value == "dask":
            found[kept].to_parquet(target)
        else:
            found.select_columns(kept).write_parquet(target)
        seconds = time.perf_counter() - begin
        parts = [pd.read_parquet(file) for file in pathlib.Path(target).rglob("*.parquet")]
    scores = pd.concat(parts).sort_values("row")["score"]
    np.testing.assert_allclose(scores.to_numpy(np.float32), expected, rtol=1e-6, atol=1e-6)
    return seconds


def main(_: list[str]) -> None:
    import lightgbm

    import tfr_smooth

    folder, frame = tempfile.mkdtemp(), table(_ROWS.value)
    frame.to_parquet(f"{folder}/table.parquet", row_group_size=100_000)
    known = frame[frame["query"] < 2000]
    features = [*NUMBERS, *CATEGORIES, "item_id"]
    ranker = tfr_smooth.Ranker(epochs=2, verbose=False).fit(known, label="label", query="query", features=features)
    dataset = lightgbm.Dataset(features_of(known), known["label"], group=[20] * 2000)
    booster = lightgbm.train({"objective": "lambdarank", "verbosity": -1, "num_threads": 2}, dataset)
    models = {"Ranker": ranker, "LightGBM": LightGBM(booster)}
    found, expected = {}, {}
    for name, model in models.items():  # one process
        for _ in range(2):
            begin = time.process_time()
            expected[name] = model.predict(frame)
            seconds = time.process_time() - begin
        found[f"{name}, one process"] = round(_ROWS.value / seconds)
    read = start(_ENGINE.value)
    for name, model in models.items():
        seconds = min(run(read, f"{folder}/table.parquet", model, expected[name]) for _ in range(2))
        found[f"{name}, {_ENGINE.value}"] = round(_ROWS.value / seconds / 2)
    print("Rows per second and core:", json.dumps(found))


if __name__ == "__main__":
    app.run(main)
