"""Compares `read_letor`, from text and from the binary cache, with scikit-learn's load_svmlight_file plus grouping.

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
import tensorflow as tf
from absl import app, flags

from tfr_smooth import data

_MEGABYTES = flags.DEFINE_integer("megabytes", 520, "Approximate size of the text file.", lower_bound=1)
_FOLDER = flags.DEFINE_string("folder", None, "Folder for the file. Default: a temporary folder.")
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 128, "Queries per batch.", lower_bound=1)
_ALONE = flags.DEFINE_string("alone", None, "Internal, for measuring memory: FILE.")

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


def batches(path: pathlib.Path, **kwargs: Any) -> tf.data.Dataset:
    return data.read_letor(path, batch_size=_BATCH_SIZE.value, **kwargs)


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
    """Checks that all three readers return the same documents."""
    theirs, their_labels = scikit_learn(path)()
    for kwargs in ({"num_features": FEATURES}, {"cache_dir": path.parent / "cache"}):
        query = 0
        for inputs, labels in batches(path, **kwargs):
            for features, label, mask in zip(inputs["features"].numpy(), labels.numpy(), inputs["mask"], strict=True):
                np.testing.assert_array_equal(features[mask], theirs[query])
                np.testing.assert_array_equal(label[mask], their_labels[query])
                query += 1
        assert query == len(theirs)


def main(_: list[str]) -> None:
    harness.use_threads()
    if _ALONE.value:
        return harness.alone(through(batches(pathlib.Path(_ALONE.value), num_features=FEATURES)))
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(_FOLDER.value or temporary)
        path = text_file(folder)
        small = folder / "tenth.txt"
        with open(path, "rb") as source, open(small, "wb") as file:
            file.writelines(source.readlines(path.stat().st_size // 10))
        check(small)
        start = time.perf_counter()
        cached = batches(path, cache_dir=folder / "cache")
        making = time.perf_counter() - start
        grouped = batches(path, cache_dir=folder / "cache", shuffle_buffer=100_000, group_by_length=True)
        sides = {
            "ours, text": through(batches(path, num_features=FEATURES)),
            "scikit-learn": scikit_learn(path),
            "ours, cache": through(cached),
            "ours, cache, grouped": through(grouped),
        }
        megabytes = path.stat().st_size / 1e6
        result = harness.race(sides, megabytes_of_text=round(megabytes))
        result["megabytes_a_second"] = {name: 1e3 * megabytes / ms for name, ms in result["milliseconds"].items()}
        result["making_the_cache"] = {"milliseconds": 1e3 * making}
        result["peak_megabytes"] = {str(p.name): harness.peak_megabytes([f"--alone={p}"], 1) for p in (small, path)}
        for name in ("megabytes_a_second", "making_the_cache", "peak_megabytes"):
            print(f"{name}: {result[name]}")
        harness.report([result], packages=["sklearn"], cores=harness.threads())
    return None


if __name__ == "__main__":
    app.run(main)
