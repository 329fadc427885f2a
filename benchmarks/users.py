"""Measures an epoch of factors for increasing numbers of users.

    python benchmarks/users.py --threads=1

The interactions are made up: random items for each user. An epoch has the batches, the softmax loss of the whole
catalog or of sampled items, the gradient and the update. Seconds are those of the processors in the last of two epochs,
so that other programs on the machine change them little. Each row runs in a process of its own; its peak memory
includes that of TensorFlow.
"""

from __future__ import annotations

import json
import resource
import time
from typing import Any

import harness
import numpy as np
import scipy.sparse
import tensorflow as tf
from absl import app, flags

from tfr_smooth import recommendation

_USERS = flags.DEFINE_list("users", ["20000", "80000", "320000"], "Numbers of users.")
_ITEMS = flags.DEFINE_integer("items", 10000, "Size of the catalog.", lower_bound=1)
_EVENTS = flags.DEFINE_integer("events", 20, "Items of a user.", lower_bound=1)
_DIM = flags.DEFINE_integer("dim", 64, "Dimension of the factors.", lower_bound=1)
_NEGATIVES = flags.DEFINE_list("negatives", ["0", "2000"], "Sampled items of a batch; 0 for the whole catalog.")
_ALONE = flags.DEFINE_string("alone", None, "Only USERS,NEGATIVES, in this process; for internal use.")


class Clock(tf.keras.callbacks.Callback):
    """Takes the seconds of the processors in the last epoch."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.start = time.process_time()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.seconds = time.process_time() - self.start


def measure(users: int, negatives: int) -> dict[str, float]:
    """Trains two epochs, and returns the seconds of the last and the gibibytes of the process."""
    items = np.random.default_rng(0).integers(_ITEMS.value, size=users * _EVENTS.value)
    rows = np.repeat(np.arange(users), _EVENTS.value)
    matrix = scipy.sparse.csr_array((np.ones(len(rows)), (rows, items)), shape=(users, _ITEMS.value))
    options: dict[str, Any] = {"negatives": negatives or None, "validation_fraction": 0, "dim": _DIM.value}
    clock = Clock()
    recommender = recommendation.Recommender(loss=None, softmax_epochs=2, baselines=False, verbose=False, **options)
    recommender.fit(recommendation.Interactions(matrix), callbacks=[clock])
    return {"seconds": clock.seconds, "gibibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def in_a_process(users: str, negatives: str) -> dict[str, float]:
    arguments = [f"--{flag.name}={flag.value}" for flag in (_ITEMS, _EVENTS, _DIM)]
    return harness.in_a_process([f"--alone={users},{negatives}", *arguments])


def main(argv: list[str]) -> None:
    del argv
    if _ALONE.value:
        harness.use_threads()
        print(json.dumps(measure(*map(int, _ALONE.value.split(",")))))
        return
    rows = []
    for negatives in _NEGATIVES.value:
        rows.append([f"{int(negatives):,} negatives" if int(negatives) else "whole catalog"])
        for users in _USERS.value:
            found = in_a_process(users, negatives)
            rows[-1].append(f"{found['seconds']:.1f} s, {found['gibibytes']:.1f} GiB")
            print(users, rows[-1], flush=True)
    print(harness.markdown(["items in a step", *(f"{int(users):,} users" for users in _USERS.value)], rows, 1))


if __name__ == "__main__":
    app.run(main)
