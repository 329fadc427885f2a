"""Measures the queries per second of training by the number of replicas.

    python benchmarks/scaling.py --replicas=1,2,4 --output=scaling.json     # the GPUs of this machine, or logical CPUs
    python benchmarks/scaling.py --strategy=multi_worker                    # on each host, with TF_CONFIG

The global batch size is the same for all numbers of replicas, so that training is equivalent. A batch is created once
and read from memory: this measures the training step and the communication between replicas, not the reading of files.
"""

from __future__ import annotations

import datetime
import json
import multiprocessing
import os
import pathlib
import platform
import time
from typing import Any

import numpy as np
import tensorflow as tf
from absl import app, flags

from tfr_smooth import losses, models, training

_REPLICAS = flags.DEFINE_list("replicas", ["1", "2"], "Numbers of replicas, each a GPU or a logical CPU.")
_DEVICE = flags.DEFINE_enum("device", "auto", ["auto", "gpu", "cpu"], "auto: GPUs if there are any, else CPUs.")
_STRATEGY = flags.DEFINE_enum(
    "strategy", "mirrored", ["mirrored", "multi_worker"], "multi_worker: the cluster of TF_CONFIG, without --replicas."
)
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 256, "Queries per global batch.", lower_bound=1)
_LIST_SIZE = flags.DEFINE_integer("list_size", 100, "Documents per query.", lower_bound=1)
_NUM_FEATURES = flags.DEFINE_integer("num_features", 136, "Number of features.", lower_bound=1)
_HIDDEN = flags.DEFINE_string("hidden", "256,128", "Widths of the hidden layers.")
_LOSS = flags.DEFINE_enum("loss", "smoothi_ndcg", sorted(losses.NAMES), "Loss to train with.")
_STEPS = flags.DEFINE_integer("steps", 20, "Steps per timed epoch; a first epoch is not timed.", lower_bound=1)
_EPOCHS = flags.DEFINE_integer("epochs", 3, "Timed epochs; the median counts.", lower_bound=1)
_OUTPUT = flags.DEFINE_string("output", None, "JSON file to write the results to.")


class EpochTimes(tf.keras.callbacks.Callback):
    """Measures the seconds of each epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []
        self._start = 0.0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._start = time.perf_counter()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.seconds.append(time.perf_counter() - self._start)


def mirrored(device: str, replicas: int) -> tuple[tf.distribute.Strategy, str]:
    """Returns a strategy with this number of replicas in this process, and a description of the devices."""
    gpus = tf.config.list_physical_devices("GPU")
    if device == "gpu" or (device == "auto" and gpus):
        if replicas > len(gpus):
            raise app.UsageError(f"--replicas={replicas}, but TensorFlow sees {len(gpus)} GPUs.")
        kind = tf.config.experimental.get_device_details(gpus[0]).get("device_name", "GPU")
        return tf.distribute.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]), kind
    if gpus:
        tf.config.set_visible_devices([], "GPU")
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * replicas)
    kind = f"logical CPUs of one machine ({os.cpu_count()} cores, {platform.machine()})"
    return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)]), kind


def a_dataset(settings: dict[str, Any]) -> tf.data.Dataset:
    """One batch, repeated forever."""
    random = np.random.RandomState(0)
    shape = (settings["batch_size"], settings["list_size"])
    labels = random.choice(5, size=shape, p=[0.5, 0.3, 0.1, 0.06, 0.04]).astype(np.float32)
    features = random.randn(*shape, settings["num_features"]).astype(np.float32)
    batch = ({"features": features, "mask": np.ones(shape, bool)}, labels)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return tf.data.Dataset.from_tensors(batch).cache().repeat().with_options(options)


def measure(settings: dict[str, Any], replicas: int | None) -> dict[str, Any]:
    """Trains with this number of replicas in this process; None for the cluster of TF_CONFIG."""
    if replicas is None:
        strategy = training.get_strategy("multi_worker")
        kind = "workers with " + ("GPUs" if tf.config.list_physical_devices("GPU") else "a CPU each")
    else:
        strategy, kind = mirrored(settings["device"], replicas)
    tf.keras.utils.set_random_seed(0)
    with strategy.scope():
        model = models.FeedForwardScorer(hidden=[int(width) for width in settings["hidden"].split(",")])
        model.compile(optimizer="adam", loss=losses.get(settings["loss"]))
        model.build((None, None, settings["num_features"]))
    times = EpochTimes()
    model.fit(
        a_dataset(settings),
        epochs=1 + settings["epochs"],
        steps_per_epoch=settings["steps"],
        shuffle=False,
        verbose=0,
        callbacks=[times],
    )
    rates = [settings["steps"] * settings["batch_size"] / seconds for seconds in times.seconds[1:]]
    return {
        "replicas": strategy.num_replicas_in_sync,
        "device": kind,
        "chief": training.is_chief(strategy),
        "queries_per_second": float(np.median(rates)),
        "slowest_and_fastest": [min(rates), max(rates)],
    }


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    flags_used = (_DEVICE, _BATCH_SIZE, _LIST_SIZE, _NUM_FEATURES, _HIDDEN, _LOSS, _STEPS, _EPOCHS)
    settings = {flag.name: flag.value for flag in flags_used}
    if _STRATEGY.value == "multi_worker":
        results = [measure(settings, None)]
    else:
        # Each in its own process: TensorFlow's devices must be configured at its start.
        with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            results = [pool.apply(measure, (settings, int(replicas))) for replicas in _REPLICAS.value]
    if not results[0]["chief"]:
        return
    print(f"TensorFlow {tf.__version__}, {results[0]['device']}, {settings}")
    print("\n| replicas | queries per second (slowest to fastest epoch) | times the first |\n| ---: | ---: | ---: |")
    for result in results:
        slowest, fastest = result["slowest_and_fastest"]
        rate, first = result["queries_per_second"], results[0]["queries_per_second"]
        print(f"| {result['replicas']} | {rate:.0f} ({slowest:.0f} to {fastest:.0f}) | {rate / first:.2f} |")
    if _OUTPUT.value:
        about = {"date": datetime.date.today().isoformat(), "tensorflow": tf.__version__, "settings": settings}
        report = {**about, "cores": os.cpu_count(), "results": results}
        pathlib.Path(_OUTPUT.value).absolute().parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(_OUTPUT.value).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    app.run(main)
