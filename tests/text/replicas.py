"""Trains on one or two devices, and writes the scores; test_text_reranking.py runs it in a new process for each."""

import json
import pathlib
import sys

import tensorflow as tf

from tests.text.conftest import made_up_table, write_checkpoint
from tfr_smooth import text


def main(replicas, folder):
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * replicas)
    devices = [f"/cpu:{number}" for number in range(replicas)]
    strategy = tf.distribute.MirroredStrategy(devices) if replicas > 1 else None
    table, sizes = made_up_table(), {"query_length": 5, "length": 9, "frozen_layers": 1}
    training = {"epochs": 2, "batch_size": 4, "micro_batches": 2, "learning_rate": 1e-3, "validation_fraction": 0.3}
    checkpoint = write_checkpoint(folder / "bert", dropout=0.0)
    ranker = text.TextRanker(
        encoder=checkpoint, architecture="late", loss="smoothi_ndcg", verbose=False, **sizes, **training
    )
    ranker.fit(table, query_id="query_id", strategy=strategy, checkpoint_dir=folder / str(replicas))
    (folder / f"{replicas}.json").write_text(json.dumps(ranker.predict(table).tolist()))


if __name__ == "__main__":
    main(int(sys.argv[1]), pathlib.Path(sys.argv[2]))
