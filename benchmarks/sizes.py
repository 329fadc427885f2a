"""Measures time and memory of many batch sizes, and of many losses, as compiled programs accumulate.

    python benchmarks/sizes.py --names=smoothi_ndcg,approx_ndcg,soft_ndcg --threads=1

First, each loss computes value and gradient in one `tf.function` on batches of random sizes. Then many losses, which
differ in a hyperparameter, do the same in one `tf.function` each, on a single size. A new size may require compilation,
so the total time increases and then levels off: the output shows time and memory growth for each tenth of the runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import harness
import numpy as np
import tensorflow as tf
from absl import app, flags

from tfr_smooth import losses

_NAMES = flags.DEFINE_list("names", ["smoothi_ndcg", "approx_ndcg", "soft_ndcg"], "Names of the losses.")
_SIZES = flags.DEFINE_integer("sizes", 500, "Number of batches of random sizes.", lower_bound=10)
_LISTS = flags.DEFINE_integer("lists", 64, "Maximum lists per batch.", lower_bound=1)
_DOCUMENTS = flags.DEFINE_integer("documents", 1000, "Maximum documents per list.", lower_bound=1)
_LOSSES = flags.DEFINE_integer("losses", 200, "Number of losses that differ in a hyperparameter.", lower_bound=10)


def step(loss: losses.RankingLoss) -> Callable[..., Any]:
    @tf.function(input_signature=[tf.TensorSpec([None, None])] * 2)
    def value_and_gradient(labels: tf.Tensor, scores: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(scores)
            value = loss(labels, scores)
        return value, tape.gradient(value, scores)

    return value_and_gradient


def of_sizes(name: str) -> Iterable[Callable[[], Any]]:
    random = np.random.RandomState(0)
    function = step(losses.get(name))
    for _ in range(_SIZES.value):
        shape = random.randint(1, _LISTS.value + 1), random.randint(1, _DOCUMENTS.value + 1)
        batch = list(map(tf.constant, harness.a_batch(*shape)))
        yield lambda batch=batch: function(*batch)


def of_losses(name: str) -> Iterable[Callable[[], Any]]:
    batch = list(map(tf.constant, harness.a_batch(16, 100)))
    first = next(hyperparameter for hyperparameter in losses.hyperparameters(name))
    for number in range(_LOSSES.value):
        function = step(losses.get(name, **{first: 1.0 + number / 100.0}))
        yield lambda function=function: function(*batch)


def measure(name: str, what: str, runs: Iterable[Callable[[], Any]]) -> dict[str, Any]:
    """The processor time in seconds and the added memory in megabytes of each tenth of the runs."""
    seconds, megabytes = [], [harness.resident_megabytes()]
    for run in runs:
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
        megabytes.append(harness.resident_megabytes())
    tenths = [float(sum(part)) for part in np.array_split(seconds, 10)]
    ends = [0, *np.cumsum([len(part) for part in np.array_split(seconds, 10)])]
    result = {"loss": name, "what": what, "seconds": tenths, "megabytes": np.diff(np.array(megabytes)[ends]).tolist()}
    cells = [" ".join(f"{number:.1f}" for number in result[key]) for key in ("seconds", "megabytes")]
    print(
        f"{name}, {what}: {sum(tenths):.1f} s ({cells[0]}), {sum(result['megabytes']):.0f} MB ({cells[1]})", flush=True
    )
    return result


def main(argv: list[str]) -> None:
    harness.use_threads()
    results = []
    for name in _NAMES.value:
        results.append(measure(name, f"{_SIZES.value} sizes", of_sizes(name)))
        results.append(measure(name, f"{_LOSSES.value} losses", of_losses(name)))
    harness.write(results)


if __name__ == "__main__":
    app.run(main)
