"""Measures a training step of matrix factorization for increasing sizes of the catalog.

    python benchmarks/catalog.py --threads=1 --runs=3 --warm_runs=1 --output=catalog.json

The interactions are simulated: 50 random items per user. A step has the scores, the loss, the gradient and the update
of all factors by Adam. Seconds are those of the processors, so that other programs on the machine change them little.
Each row runs in a process of its own; its peak memory includes that of TensorFlow. A method stops after a step of more
than --most_seconds.
"""

from __future__ import annotations

import json
import resource
import statistics
import time
from collections.abc import Iterator

import harness
import numpy as np
import scipy.sparse
import tensorflow as tf
from absl import app, flags

from tfr_smooth import losses, recommendation
from tfr_smooth.recommendation.catalog_losses import BestItemsLoss

_ITEMS = flags.DEFINE_list("items", ["3000", "10000", "41000", "200000", "1000000"], "Sizes of the catalog.")
_TOPNS = flags.DEFINE_list("topns", ["20", "50"], "Cutoffs of SmoothI-NDCG.")
_USERS = flags.DEFINE_integer("users", 64, "Users per batch.", lower_bound=1)
_DIM = flags.DEFINE_integer("dim", 64, "Dimension of the factors.", lower_bound=1)
_MOST_SECONDS = flags.DEFINE_float("most_seconds", 10.0, "Stop after a step that takes longer.", lower_bound=0.0)
_ALONE = flags.DEFINE_string("alone", None, "Only METHOD,ITEMS, in this process; for internal use.")

SAMPLED, CANDIDATES = 1000, 1000


def methods() -> Iterator[str]:
    yield from ("softmax", "sampled softmax")
    for topn in _TOPNS.value:
        yield from (f"SmoothI-NDCG@{topn}", f"SmoothI-NDCG@{topn} of candidates")


def loss_of(method: str) -> losses.RankingLoss:
    if "@" not in method:
        return losses.SoftmaxLoss()
    loss = losses.get("smoothi_ndcg", alpha=3.0, delta=0.01, topn=int(method.split("@")[1].split()[0]))
    return BestItemsLoss(loss, CANDIDATES) if "candidates" in method else loss


def measure(method: str, items: int) -> dict[str, float]:
    """Trains some steps, and returns the seconds of one and the gibibytes of the process."""
    count = _USERS.value * (harness.runs() + harness.warm_runs())
    columns = np.random.default_rng(0).integers(items, size=[count, 50])
    rows = np.repeat(np.arange(count), 50)
    interactions = recommendation.Interactions(
        scipy.sparse.csr_array((np.ones(len(rows)), (rows, columns.ravel())), shape=(count, items))
    )
    if method == "sampled softmax":
        batches = recommendation.candidate_batches(interactions, negatives=SAMPLED, batch_size=_USERS.value)
    else:
        batches = recommendation.user_batches(interactions, batch_size=_USERS.value).map(
            lambda users, relevant, _: (users, recommendation.dense_labels(relevant, items))
        )
    model = recommendation.CatalogFactors(num_users=count, num_items=items, dim=_DIM.value, temperature=0.15)
    model(tf.zeros([1], tf.int32))
    model.compile(tf.keras.optimizers.Adam(0.01), loss_of(method), jit_compile=method == "softmax")
    seconds, wall_seconds = [], []
    started, wall_started = time.process_time(), time.perf_counter()
    for batch in batches:
        model.train_on_batch(*batch)
        seconds.append(time.process_time() - started)
        wall_seconds.append(time.perf_counter() - wall_started)
        started, wall_started = time.process_time(), time.perf_counter()
    warm = harness.warm_runs()
    return {
        "seconds": statistics.median(seconds[warm:]),
        "wall_seconds": statistics.median(wall_seconds[warm:]),
        "gibibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def in_a_process(method: str, items: int) -> dict[str, float]:
    arguments = [f"--alone={method},{items}", f"--users={_USERS.value}", f"--dim={_DIM.value}"]
    return harness.in_a_process([*arguments, f"--runs={harness.runs()}", f"--warm_runs={harness.warm_runs()}"])


def main(argv: list[str]) -> None:
    del argv
    if _ALONE.value:
        harness.use_threads()
        method, items = _ALONE.value.split(",")
        print(json.dumps(measure(method, int(items))))
        return
    sizes = sorted(map(int, _ITEMS.value))
    found: dict[str, dict[int, dict[str, float]]] = {method: {} for method in methods()}
    for size in sizes:
        for method, measured in found.items():
            if all(each["seconds"] <= _MOST_SECONDS.value for each in measured.values()):
                measured[size] = in_a_process(method, size)
                print(size, method, measured[size], flush=True)
    rows = [
        [method, *(f"{each['seconds']:.3f} s, {each['gibibytes']:.1f} GiB" for each in measured.values())]
        for method, measured in found.items()
    ]
    print(
        harness.markdown(
            ["loss", *(f"{size:,}" for size in sizes)], [r + [""] * (1 + len(sizes) - len(r)) for r in rows], 1
        )
    )
    harness.write(
        [{"method": method, "items": size} | each for method, m in found.items() for size, each in m.items()],
        users=_USERS.value,
        dim=_DIM.value,
    )


if __name__ == "__main__":
    app.run(main)
