"""Trains on one device and on two, and writes the scores; test_text_reranking.py runs it in a new process."""

import json
import pathlib
import sys

import tensorflow as tf

from tests.text.conftest import made_up_table, write_checkpoint
from tfr_smooth import text


def main(folder):
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    table, sizes = made_up_table(), {"query_length": 5, "length": 9, "frozen_layers": 1}
    training = {"epochs": 2, "batch_size": 4, "micro_batches": 2, "learning_rate": 1e-3, "validation_fraction": 0.3}
    checkpoint = write_checkpoint(folder / "bert", dropout=0.0)
    for name, strategy in (("one", None), ("two", tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]))):
        ranker = text.TextRanker(
            encoder=checkpoint, architecture="late", loss="smoothi_ndcg", verbose=False, **sizes, **training
        )
        ranker.fit(table, query_id="query_id", strategy=strategy, checkpoint_dir=folder / name)
        (folder / f"{name}.json").write_text(json.dumps(ranker.predict(table).tolist()))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
