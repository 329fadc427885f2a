"""Trains `Ranker` for an epoch on a Parquet file of --rows rows and 30 columns, and LightGBM beside it.

    python benchmarks/parquet.py --rows=20000000

Each runs in a process of its own. `Ranker` converts the file to the cache folder first. LightGBM reads it twice, in
batches (`lightgbm.Sequence`), as its two-round loading does with text files, and trains 100 trees.
"""

from __future__ import annotations

import functools
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from absl import app, flags

_ROWS = flags.DEFINE_integer("rows", 20_000_000, "Rows of the file.", lower_bound=100_000)
_ALONE = flags.DEFINE_list("alone", None, "Internal: the ranker and the folder of a process.")

FEATURES = [f"number{i}" for i in range(28)]
DOCUMENTS = 20  # per query
ROWS_OF_GROUP = 100_000


def write(path: pathlib.Path) -> None:
    """Writes queries of 20 documents, with labels of a nonlinear function of the features and noise."""
    random = np.random.default_rng(0)
    writer = None
    for start in range(0, _ROWS.value, ROWS_OF_GROUP):
        values = random.standard_normal((ROWS_OF_GROUP, len(FEATURES)), np.float32)
        relevance = values[:, :3].sum(axis=1) + values[:, 3] * values[:, 4] + random.normal(0.0, 1.0, ROWS_OF_GROUP)
        columns: dict[str, Any] = {"query": (start + np.arange(ROWS_OF_GROUP)) // DOCUMENTS}
        columns["label"] = np.searchsorted([1.0, 2.5, 4.0], relevance).astype(np.int8)
        table = pa.table({**columns, **dict(zip(FEATURES, values.T, strict=True))})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def train_ranker(path: pathlib.Path) -> dict[str, float]:
    import tfr_smooth

    start = time.perf_counter()
    lists = tfr_smooth.data.read_files(path, query="query", label="label", cache_dir=path.parent / "cache")
    converted = time.perf_counter()
    tfr_smooth.Ranker(epochs=1, softmax_epochs=0, batch_size=256, verbose=False).fit(lists)
    return {"loading": converted - start, "training": time.perf_counter() - converted}


def train_lightgbm(path: pathlib.Path) -> dict[str, float]:
    import lightgbm

    class Rows(lightgbm.Sequence):
        """The features of a row group."""

        batch_size = ROWS_OF_GROUP

        def __init__(self, group: int) -> None:
            self._group = group

        def __len__(self) -> int:
            return ROWS_OF_GROUP

        def __getitem__(self, index: Any) -> np.ndarray:
            return rows_of(self._group)[index]

    @functools.lru_cache(maxsize=1)  # LightGBM samples single rows
    def rows_of(group: int) -> np.ndarray:
        table = pq.ParquetFile(path).read_row_group(group, columns=FEATURES)
        return np.stack([table[name].to_numpy() for name in FEATURES], axis=1).astype(np.float64)

    start = time.perf_counter()
    labels = pq.read_table(path, columns=["label"])["label"].to_numpy()
    groups = np.full(len(labels) // DOCUMENTS, DOCUMENTS)
    parts = [Rows(group) for group in range(len(labels) // ROWS_OF_GROUP)]
    dataset = lightgbm.Dataset(parts, labels, group=groups, params={"bin_construct_sample_cnt": 20_000}).construct()
    loaded = time.perf_counter()
    lightgbm.train({"objective": "lambdarank", "verbosity": -1}, dataset, num_boost_round=100)
    return {"loading": loaded - start, "training": time.perf_counter() - loaded}


TRAINERS = {"ranker": train_ranker, "lightgbm": train_lightgbm}


def main(_: list[str]) -> None:
    if _ALONE.value:
        name, path = _ALONE.value
        found = TRAINERS[name](pathlib.Path(path))
        found["peak_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps(found))
        return
    with tempfile.TemporaryDirectory() as temporary:
        path = pathlib.Path(temporary) / "rows.parquet"
        write(path)
        print("ranker    seconds to load  to train  rows/s of training  peak GiB")
        for name in TRAINERS:
            command = [sys.executable, *sys.argv, f"--alone={name},{path}"]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            loading, training, peak = json.loads(done.stdout.splitlines()[-1]).values()
            print(
                f"{name:9} {loading:15.1f}  {training:8.1f}  {_ROWS.value / training:18,.0f}  {peak:8.2f}", flush=True
            )


if __name__ == "__main__":
    app.run(main)
