"""Reads tables of --rows rows and 20 columns from files, beside pandas, and one row of 1,000 columns.

    python benchmarks/reading.py --rows=1000000

Processor seconds are the least of --runs runs, each side in turn in one process; the ratio is that of pandas to ours.
`read_files` also checks each value and writes the cache, which later calls map into memory.
"""

from __future__ import annotations

import json
import pathlib
import resource
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from absl import app, flags
from pyarrow import csv, parquet

from tfr_smooth import columns, data
from tfr_smooth.data.reading import files

_ROWS = flags.DEFINE_integer("rows", 1_000_000, "Rows of the files; JSON lines have a fifth.", lower_bound=100)
_RUNS = flags.DEFINE_integer("runs", 3, "Timed runs.", lower_bound=1)
_OUTPUT = flags.DEFINE_string("output", None, "JSON file to write the results to.")
_WIDE = 1000


def write(folder: pathlib.Path) -> None:
    """Writes the files: floats, integers, texts and ids."""
    random, rows = np.random.default_rng(0), _ROWS.value
    made: dict[str, Any] = {
        "query": np.repeat(np.arange(-(-rows // 20)), 20)[:rows],
        "label": random.integers(0, 3, rows),
    }
    made |= {f"float{number}": random.normal(size=rows).round(6) for number in range(10)}
    made |= {f"integer{number}": random.integers(0, 1000, rows) for number in range(4)}
    made |= {f"text{number}": random.choice(["red", "green", "blue", "10.50"], rows) for number in range(3)}
    table = pa.table({**made, "item_id": random.integers(10**8, 10**8 + 5000, rows)})
    parquet.write_table(table, folder / "table.parquet")
    csv.write_csv(table, folder / "table.csv")
    table.slice(0, rows // 5).to_pandas().to_json(folder / "table.jsonl", orient="records", lines=True)


def least(function: Callable[[], Any]) -> float:
    """The processor seconds of the fastest run."""
    seconds = []
    for _ in range(_RUNS.value):
        before = resource.getrusage(resource.RUSAGE_SELF)
        function()
        after = resource.getrusage(resource.RUSAGE_SELF)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(seconds)


def read(path: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        data.read_files(path, query="query", label="label", cache_dir=folder)


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    results: dict[str, dict[str, float]] = {}
    by_pandas: dict[str, Callable[[pathlib.Path], Any]] = {
        "csv": pd.read_csv,
        "parquet": pd.read_parquet,
        "jsonl": lambda path: pd.read_json(path, lines=True),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write(folder)
        for ending, peer in by_pandas.items():
            path = folder / f"table.{ending}"
            values = 18 * (_ROWS.value // (5 if ending == "jsonl" else 1))
            seconds = {"read_files": least(lambda: read(path)), "read_table": least(lambda: files.read_table(path))}  # noqa: B023
            seconds["pandas"] = least(lambda: peer(path))  # noqa: B023
            results[ending] = {**seconds, "values": values}
            shown = ", ".join(f"{side} {values / each / 1e6:.1f}" for side, each in seconds.items())
            print(f"{ending}: million values a second: {shown}; ratio {seconds['pandas'] / seconds['read_table']:.2f}")
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(50, _WIDE)), columns=list(map(str, range(_WIDE))))
    known = columns.infer_columns(wide)
    seconds = {"row": least(lambda: columns.column_arrays(wide[:1], known))}
    results["one row"] = {**seconds, "values": _WIDE}
    print(f"one row of {_WIDE:,} columns: {1e3 * seconds['row']:.0f} ms")
    if _OUTPUT.value:
        pathlib.Path(_OUTPUT.value).write_text(json.dumps({"results": results}))


if __name__ == "__main__":
    app.run(main)
