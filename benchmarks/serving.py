"""Latency and rate of one query of 100 documents: `Ranker.rank` of dicts, `predict`, HTTP and LightGBM.

python benchmarks/serving.py --threads=1 --runs=500

The ranker has its default networks and 20 columns: 14 numbers, three categories, an id, a date and a boolean.
LightGBM has 100 trees on the same values as a matrix of codes, which is made before the measurement. Clients of
`examples/serve_http.py`, a process of its own, send JSON; the other sides start from the same Python values, a table
of pandas and the matrix. With --threads=1, all processes share one core. The time of the processor, in the mean,
hardly depends on other load of the machine; for HTTP, it is that of the server.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import harness
import numpy as np
from absl import app, flags

_QUERIES = flags.DEFINE_integer("queries", 200, "Training queries.", lower_bound=2)
_DOCUMENTS = flags.DEFINE_integer("documents", 100, "Documents per query.", lower_bound=1)
_CLIENTS = flags.DEFINE_integer("clients", 4, "HTTP clients at once.", lower_bound=1)

SERVER = pathlib.Path(__file__).absolute().parents[1] / "examples" / "serve_http.py"
NUMBERS = [f"number {place}" for place in range(14)]


def table() -> Any:
    """A table of queries with labels."""
    import pandas as pd

    random = np.random.default_rng(0)
    rows = _QUERIES.value * _DOCUMENTS.value
    frame = pd.DataFrame(random.normal(size=(rows, len(NUMBERS))), columns=NUMBERS)
    for place in range(3):
        frame[f"category {place}"] = random.choice(["red", "green", "blue", "black"], rows)
    frame["item"] = [f"item {number}" for number in random.integers(0, 500, rows)]
    frame["day"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(random.integers(0, 300, rows), unit="D")
    frame["new"] = random.random(rows) < 0.3
    frame["query"] = np.repeat(np.arange(_QUERIES.value), _DOCUMENTS.value)
    frame["label"] = (frame[NUMBERS[:3]].sum(axis=1) + (frame["category 0"] == "red") > 1.5).astype(int)
    return frame


def lightgbm_side(frame: Any) -> Callable[[], Any]:
    import lightgbm

    features = frame.drop(columns=["query", "label"]).copy()
    for name in features.select_dtypes(exclude="number"):
        features[name] = features[name].astype("category").cat.codes
    matrix = features.to_numpy(np.float64)
    options = {"n_estimators": 100, "num_threads": harness.threads(), "verbose": -1}
    ranker = lightgbm.LGBMRanker(**options).fit(matrix, frame["label"], group=[_DOCUMENTS.value] * _QUERIES.value)
    booster, query = ranker.booster_, np.ascontiguousarray(matrix[: _DOCUMENTS.value])
    return lambda: booster.predict(query, num_threads=harness.threads())


@contextlib.contextmanager
def server(path: pathlib.Path) -> Iterator[tuple[int, Callable[[], float]]]:
    """A server in a process of its own: its port, and its time of the processor in seconds. Linux only."""
    command = [sys.executable, str(SERVER), f"--model={path}", "--port=0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline().rpartition(":")[2])
        fields = pathlib.Path(f"/proc/{process.pid}/stat")
        yield port, lambda: sum(map(int, fields.read_text().split()[13:15])) / os.sysconf("SC_CLK_TCK")
    finally:
        process.terminate()
        process.wait()


def post(connection: http.client.HTTPConnection, body: bytes) -> list[float]:
    """The scores of the documents in their order."""
    connection.request("POST", "/rank", body, {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())["ranking"]
    return [document["score"] for document in sorted(answer, key=lambda document: document["place"])]


def measured(
    side: Callable[[], Any], runs: int, clock: Callable[[], float] = time.process_time
) -> tuple[list[float], float]:
    """The milliseconds of each run after the untimed ones, and those of the processor in the mean."""
    for _ in range(harness.warm_runs()):
        side()
    times, start_of_all = [], clock()
    for _ in range(runs):
        start = time.perf_counter()
        side()
        times.append(1e3 * (time.perf_counter() - start))
    return times, 1e3 * (clock() - start_of_all) / runs


def result(what: str, times: list[float], processor: float | None = None, rate: float | None = None) -> dict[str, Any]:
    p50, p99 = np.percentile(times, [50, 99]).tolist()
    return {
        "what": what,
        "per second": rate or 1e3 * len(times) / sum(times),
        **{"p50": p50, "p99": p99, "processor": processor},
    }


def at_once(port: int, body: bytes) -> tuple[list[float], float]:
    """The milliseconds of all requests of several clients, and the requests per second."""
    times: list[float] = []

    def client() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        times.extend(measured(lambda: post(connection, body), harness.runs() // _CLIENTS.value + 1)[0])

    threads = [threading.Thread(target=client) for _ in range(_CLIENTS.value)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    requests = len(times) + harness.warm_runs() * _CLIENTS.value
    return times, requests / (time.perf_counter() - start)


def main(argv: list[str]) -> None:
    if harness.threads() == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    harness.use_threads()
    import tfr_smooth

    frame = table()
    names = {"label": "label", "query": "query"}
    ranker = tfr_smooth.Ranker(epochs=1, verbose=False).fit(frame, **names)
    query = frame[: _DOCUMENTS.value].drop(columns="label")
    documents = json.loads(query.drop(columns="query").to_json(orient="records", date_format="iso"))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "ranker.keras"
        ranker.save(path)
        loaded, start = tfr_smooth.load(path), time.perf_counter()
        loaded.rank(documents, group=[len(documents)])
        first, scores = 1e3 * (time.perf_counter() - start), ranker.predict(query)
        np.testing.assert_allclose(loaded.predict(documents, group=[len(documents)]), scores, rtol=1e-4, atol=1e-5)
        runs = harness.runs()
        results = [
            result("LightGBM's predict, of a matrix", *measured(lightgbm_side(frame), runs)),
            result("`Ranker.predict`, of a DataFrame", *measured(lambda: ranker.predict(query), runs)),
            result("`Ranker.rank`, of dicts", *measured(lambda: loaded.rank(documents, group=[len(documents)]), runs)),
        ]
        with server(path) as (port, clock):
            body = json.dumps({"documents": documents}).encode()
            connection = http.client.HTTPConnection("127.0.0.1", port)
            np.testing.assert_allclose(post(connection, body), scores, rtol=1e-4, atol=1e-5)
            results.append(result("HTTP, one client", *measured(lambda: post(connection, body), runs, clock)))
            times, rate = at_once(port, body)
            results.append(result(f"HTTP, {_CLIENTS.value} clients", times, rate=rate))
    columns = ("per second", "p50", "p99", "processor")
    rows = [[row["what"], *("" if row[name] is None else f"{row[name]:.3g}" for name in columns)] for row in results]
    print(f"The first call after `load` took {first:.3g} ms.\n")
    print(harness.markdown(["side", "queries per second", "p50 (ms)", "p99 (ms)", "processor (ms)"], rows, left=1))
    harness.write(results, packages=["lightgbm"], first_call=first)


if __name__ == "__main__":
    app.run(main)
