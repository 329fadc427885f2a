"""Trains a `Ranker` on the workers of Ray or Spark, and saves it as OUTPUT_DIR/ranker.keras.

Each worker runs the same call of `fit`; the engine starts them, tells them each other's addresses, and starts all of
them again if one fails, which resumes from the last finished epoch. The files, such as Parquet, and the output folder
must be on a file system that all workers share.

  python examples/train_on_workers.py --engine=ray --workers=2 --train=train.parquet --output_dir=/shared/run
"""

import json
import os
import socket
from collections.abc import Callable

from absl import app, flags

_MOST_FAILURES = 3
_ENGINE = flags.DEFINE_enum("engine", "ray", ["ray", "spark"], "What starts the workers.")
_WORKERS = flags.DEFINE_integer("workers", 2, "Number of workers.", lower_bound=1)
_TRAIN = flags.DEFINE_list("train", None, "Files with a row per document.", required=True)
_QUERY = flags.DEFINE_string("query", "query", "The column of queries.")
_LABEL = flags.DEFINE_string("label", "label", "The column of labels.")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "Folder of the checkpoints and the ranker.", required=True)
_OPTIONS = flags.DEFINE_string("options", "{}", "Arguments of the Ranker, as JSON.")


def train(config: dict) -> None:
    """Trains and saves a ranker; all workers run this."""
    os.environ.pop("TF_USE_LEGACY_KERAS", None)  # Ray sets it.
    # In the workers only, after the variable is set, and without a fork.
    import tfr_smooth
    from tfr_smooth import training

    strategy = training.get_strategy("multi_worker")  # before anything else
    names = {"query": config["query"], "label": config["label"]}
    checkpoints = os.path.join(config["output_dir"], "checkpoints")
    ranker = tfr_smooth.Ranker(**config["options"])
    ranker.fit(config["train"], **names, strategy=strategy, checkpoint_dir=checkpoints)
    if training.is_chief(strategy):
        ranker.save(os.path.join(config["output_dir"], "ranker.keras"))


def run_on_ray(train: Callable[[dict], object], config: dict, workers: int) -> None:
    """Runs a function on workers of Ray Train, which sets TF_CONFIG."""
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.tensorflow import TensorflowTrainer

    run = RunConfig(
        storage_path=os.path.join(config["output_dir"], "ray"),
        failure_config=FailureConfig(max_failures=_MOST_FAILURES),
    )
    scaling = ScalingConfig(num_workers=workers)
    TensorflowTrainer(train, train_loop_config=config, scaling_config=scaling, run_config=run).fit()


def run_on_spark(train: Callable[[dict], object], config: dict, workers: int) -> None:
    """Runs a function on workers of Spark in barrier mode, which starts all at once, and ends all if one fails."""
    from py4j.protocol import Py4JJavaError
    from pyspark import BarrierTaskContext
    from pyspark.sql import SparkSession

    def task(_):
        context = BarrierTaskContext.get()
        host = context.getTaskInfos()[context.partitionId()].address.partition(":")[0]
        with socket.socket() as free:
            free.bind(("", 0))
            addresses = context.allGather(f"{host}:{free.getsockname()[1]}")
        cluster = {"worker": addresses}
        os.environ["TF_CONFIG"] = json.dumps(
            {"cluster": cluster, "task": {"type": "worker", "index": context.partitionId()}}
        )
        train(config)
        return []

    context = SparkSession.builder.getOrCreate().sparkContext
    for failures in range(_MOST_FAILURES + 1):
        try:
            context.parallelize(range(workers), workers).barrier().mapPartitions(task).collect()
            return
        except Py4JJavaError:  # Spark does not repeat such a stage.
            if failures == _MOST_FAILURES:
                raise


def main(_):
    config = {"train": _TRAIN.value, "query": _QUERY.value, "label": _LABEL.value, "output_dir": _OUTPUT_DIR.value}
    config["options"] = json.loads(_OPTIONS.value)
    run = {"ray": run_on_ray, "spark": run_on_spark}[_ENGINE.value]
    run(train, config, _WORKERS.value)


if __name__ == "__main__":
    app.run(main)
