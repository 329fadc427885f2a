"""Trains on one or two devices, and writes the scores; test_text_reranking.py runs it in a new process for each."""

import json
import pathlib
import sys

import tensorflow as tf

from tests.text.conftest import made_up, write_checkpoint
from tfr_smooth import losses, text


def main(replicas, folder):
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * replicas)
    devices = [f"/cpu:{number}" for number in range(replicas)]
    strategy = tf.distribute.MirroredStrategy(devices) if replicas > 1 else tf.distribute.get_strategy()
    checkpoint = write_checkpoint(folder / "bert", dropout=0.0)
    collection = made_up()
    run = text.bm25(collection, depth=15)
    queries = list(collection.queries)
    inputs = text.LateInputs(collection, text.load_encoder(checkpoint)[1], query_length=5, document_length=9)
    model = text.train(
        lambda: text.LateInteraction(text.load_encoder(checkpoint, frozen_layers=1)[0], micro_batches=2),
        losses.SmoothINDCGLoss(),
        inputs,
        run,
        collection.labels,
        {"train": queries[:12], "valid": queries[12:]},
        folder / str(replicas),
        recipe=text.RerankerRecipe(epochs=2, batch_size=4, learning_rate=1e-3),
        strategy=strategy,
        verbose=False,
    )
    (folder / f"{replicas}.json").write_text(json.dumps(inputs.rank(model, run)))


if __name__ == "__main__":
    main(int(sys.argv[1]), pathlib.Path(sys.argv[2]))
