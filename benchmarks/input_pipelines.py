"""Measures how many queries per second `Lists` yield, alone and through `tf.data`'s service, and convert from records.

python benchmarks/input_pipelines.py --letor='MQ2008/Fold1/train.txt' --output=input_pipelines.json
"""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import harness
import tensorflow as tf
from absl import app, flags
from tensorflow.data.experimental import service

from tfr_smooth import data

_LETOR = flags.DEFINE_string("letor", None, "LETOR files: a path or a glob pattern. Default: synthetic data.")
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 32, "Queries per batch.", lower_bound=1)
_EPOCHS = flags.DEFINE_integer("epochs", 10, "Passes over the data per timed run.", lower_bound=1)
_WORKERS = flags.DEFINE_integer("workers", 2, "Worker processes of tf.data's service; 0 for none.", lower_bound=0)

WORKER = """
import sys
from tensorflow.data.experimental.service import WorkerConfig, WorkerServer
WorkerServer(WorkerConfig(dispatcher_address=sys.argv[1], port=0)).join()
"""


def through(dataset: tf.data.Dataset, queries: int) -> Callable[[], None]:
    """Returns a function that reads all batches and checks the number of queries."""

    def run() -> None:
        seen = sum(int(tf.shape(labels)[0]) for _, labels in dataset)
        assert seen == queries, (seen, queries)

    return run


def start_service(workers: int) -> tuple[Any, list[subprocess.Popen[bytes]]]:
    """Starts a dispatcher in this process, and workers in other processes."""
    dispatcher = service.DispatchServer(service.DispatcherConfig(port=0))
    command = [sys.executable, "-c", WORKER, dispatcher.target.partition("://")[2]]
    processes = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(workers)]
    while dispatcher._num_workers() < workers:
        time.sleep(0.1)
    return dispatcher, processes


def main(_: list[str]) -> None:
    if _WORKERS.value and _EPOCHS.value % _WORKERS.value:
        raise app.UsageError(f"--epochs must be a multiple of --workers, got {_EPOCHS.value} and {_WORKERS.value}.")
    harness.use_threads()
    processes = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        files = _LETOR.value or data.write_synthetic_letor(folder, num_queries=(200, 2, 2))["train"]
        lists = data.read_letor(files, cache_dir=folder / "cache")
        shared: dict[str, Any] = {"batch_size": _BATCH_SIZE.value, "num_epochs": _EPOCHS.value}
        megabytes = {"text": sum(pathlib.Path(path).stat().st_size for path in data.expand_paths(files))}
        seconds = {}
        for name, target in {"records": "r", "records, packed": "p.gz"}.items():
            started = time.perf_counter()
            path = data.write_records(lists, folder / target)
            written = time.perf_counter()
            roles = {"query": lists.roles.query, "label": "label", "document_id": "document_id"}
            data.read_records(path, cache_dir=folder / "of records", **roles)
            seconds[name] = {"written": written - started, "read": time.perf_counter() - written}
            megabytes[name] = path.stat().st_size
        lists.batches(_BATCH_SIZE.value).save(str(folder / "batches"))
        saved = tf.data.Dataset.load(str(folder / "batches"))  # runs without Python
        sides = {"lists": lists.batches(**shared), "lists, saved": saved.repeat(_EPOCHS.value)}
        megabytes["lists"] = sum(path.stat().st_size for path in (folder / "cache").glob("*/*"))
        if _WORKERS.value:
            dispatcher, processes = start_service(_WORKERS.value)
            # Each worker reads all lists.
            served = service.distribute(service.ShardingPolicy.OFF, dispatcher.target)
            sides["lists, service"] = saved.repeat(_EPOCHS.value // _WORKERS.value).apply(served)
        try:
            queries, documents = (n * _EPOCHS.value for n in (len(lists), lists.documents))
            result = harness.race(
                {name: through(dataset, queries) for name, dataset in sides.items()},
                queries=queries,
                documents=documents,
            )
        finally:
            for process in processes:
                process.kill()
                process.wait()
        taken = {name: milliseconds / 1e3 for name, milliseconds in result["milliseconds"].items()}
        result["queries_a_second"] = {name: queries / each for name, each in taken.items()}
        result["documents_a_second"] = {name: documents / each for name, each in taken.items()}
        result["megabytes"] = {name: size / 1e6 for name, size in megabytes.items()}
        result["seconds_to_convert"] = seconds
        for name, rate in result["queries_a_second"].items():
            documents_a_second = result["documents_a_second"][name]
            print(f"{name}: {rate:,.0f} queries/s, {documents_a_second:,.0f} documents/s")
        print(f"megabytes: {result['megabytes']}, seconds to convert: {seconds}")
        harness.report([result], batch_size=_BATCH_SIZE.value, workers=_WORKERS.value)


if __name__ == "__main__":
    app.run(main)
