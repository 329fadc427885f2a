"""Compares `Lists`, from text and from the cache folder, with scikit-learn's load_svmlight_file plus grouping.

Also the time and memory of a table of --rows rows and 30 columns, 5 of them text with up to 50,000 values, to its first
batch.

python benchmarks/reader.py --megabytes=520 --output=reader.json
"""

from __future__ import annotations

import pathlib
import shutil
import tempfile
import time
from collections.abc import Callable
from typing import Any

import harness
import numpy as np
import pyarrow as pa
import tensorflow as tf
from absl import app, flags

from tfr_smooth import data

_MEGABYTES = flags.DEFINE_integer("megabytes", 520, "Approximate size of the text file.", lower_bound=1)
_FOLDER = flags.DEFINE_string("folder", None, "Folder for the file. Default: a temporary folder.")
_ROWS = flags.DEFINE_integer("rows", 2_000_000, "Rows of the table; 0 for none.", lower_bound=0)
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 128, "Queries per batch.", lower_bound=1)
_ALONE = flags.DEFINE_string("alone", None, "Internal, for measuring memory: FILE, or ROWS of a table.")

FEATURES = 136


def text_file(folder: pathlib.Path) -> pathlib.Path:
    """Writes synthetic data, with integers as query ids, which scikit-learn requires."""
    path = folder / f"{_MEGABYTES.value}.txt"
    if not path.exists():
        queries = max(2, _MEGABYTES.value * 6)  # on average 120 documents per query, 1.45 kB each
        made = data.write_synthetic_letor(
            folder / "made", num_queries=(queries, 2, 2), num_features=FEATURES, max_documents=790
        )
        with open(made["train"], "rb") as source, open(path, "wb") as file:
            file.writelines(line.replace(b"qid:q", b"qid:", 1) for line in source)
        shutil.rmtree(folder / "made")
    return path


def lists_of(path: pathlib.Path) -> data.Lists:
    return data.read_letor(path, num_features=FEATURES, cache_dir=path.parent / "cache")


def converted(path: pathlib.Path) -> Callable[[], Any]:
    """Returns a function that converts the file anew and opens the result."""

    def run() -> Any:
        shutil.rmtree(path.parent / "cache", ignore_errors=True)
        return lists_of(path)

    return run


def table(rows: int) -> pa.Table:
    """Returns a table of lists of 20 documents, with 25 columns of numbers and 5 of text."""
    random = np.random.default_rng(0)
    columns: dict[str, Any] = {"query": pa.array(np.arange(rows) // 20), "label": pa.array(random.integers(0, 5, rows))}
    columns |= {f"number{i}": pa.array(random.random(rows)) for i in range(25)}
    for i, values in enumerate((100, 1_000, 5_000, 50_000, 50_000)):
        texts = pa.array([f"text number {value}" for value in range(values)])
        columns[f"text{i}"] = texts.take(pa.array(random.integers(0, values, rows)))
    return pa.table(columns)


def first_batch(source: pa.Table) -> Any:
    return next(iter(data.from_table(source, query="query", label="label").batches(_BATCH_SIZE.value)))


def through(dataset: tf.data.Dataset) -> Callable[[], Any]:
    """Returns a function that reads all batches and returns the last one."""

    def run() -> Any:
        last = None
        for last in dataset:  # noqa: B007 (used after the loop)
            pass
        return last

    return run


def scikit_learn(path: pathlib.Path) -> Callable[[], Any]:
    from sklearn.datasets import load_svmlight_file

    def run() -> Any:
        features, labels, queries = load_svmlight_file(str(path), dtype=np.float32, query_id=True)
        starts = np.flatnonzero(np.diff(queries)) + 1
        return np.split(features.toarray(), starts), np.split(labels, starts)

    return run


def check(path: pathlib.Path) -> None:
    """Checks that both readers return the same documents."""
    theirs, their_labels = scikit_learn(path)()
    query = 0
    for inputs, labels in lists_of(path).batches(_BATCH_SIZE.value):
        for features, label, mask in zip(inputs["features"].numpy(), labels.numpy(), inputs["mask"], strict=True):
            np.testing.assert_array_equal(features[mask], theirs[query])
            np.testing.assert_array_equal(label[mask], their_labels[query])
            query += 1
    assert query == len(theirs)


def main(_: list[str]) -> None:
    harness.use_threads()
    if _ALONE.value:
        if not _ALONE.value.isdigit():
            return harness.alone(converted(pathlib.Path(_ALONE.value)))
        source = table(int(_ALONE.value))
        return harness.alone(lambda: first_batch(source))
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(_FOLDER.value or temporary)
        path = text_file(folder)
        small = folder / "tenth.txt"
        with open(path, "rb") as source, open(small, "wb") as file:
            file.writelines(source.readlines(path.stat().st_size // 10))
        check(small)
        lists = lists_of(path)
        sides = {
            "ours, text": converted(path),
            "scikit-learn": scikit_learn(path),
            "ours, opening": lambda: lists_of(path),
            "ours, an epoch": through(lists.batches(_BATCH_SIZE.value)),
            "ours, shuffled": through(lists.batches(_BATCH_SIZE.value, shuffle=True)),
            "ours, grouped": through(lists.batches(_BATCH_SIZE.value, shuffle=True, group_by_length=True)),
        }
        megabytes = path.stat().st_size / 1e6
        result = harness.race(sides, megabytes_of_text=round(megabytes))
        result["megabytes_a_second"] = {name: 1e3 * megabytes / ms for name, ms in result["milliseconds"].items()}
        result["peak_megabytes"] = {str(p.name): harness.peak_megabytes([f"--alone={p}"], 1) for p in (small, path)}
        if _ROWS.value:
            source = table(_ROWS.value)
            start = time.perf_counter()
            first_batch(source)
            result["table"] = {"seconds_to_first_batch": time.perf_counter() - start, "megabytes": source.nbytes / 1e6}
            arguments = [f"--alone={_ROWS.value}", f"--batch_size={_BATCH_SIZE.value}"]
            result["table"]["peak_megabytes_beside_it"] = harness.peak_megabytes(arguments, 1)
        for name in ("megabytes_a_second", "peak_megabytes", *(["table"] if _ROWS.value else [])):
            print(f"{name}: {result[name]}")
        harness.report([result], packages=["sklearn"], cores=harness.threads())
    return None


if __name__ == "__main__":
    app.run(main)
