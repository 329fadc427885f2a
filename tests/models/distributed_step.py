"""Trains with one and with two replicas, and writes the differences of the results.

test_feed_forward.py runs it as `python distributed_step.py FOLDER`, because logical CPUs can be configured only
before TensorFlow starts.
"""

import json
import os
import sys

import numpy as np
import tensorflow as tf

from tfr_smooth import data, losses, metrics, models

# Case -> number of queries, batch size, and the queries without relevant documents.
CASES = {
    "even: 2 + 2 lists": (4, 5, []),
    "uneven: 3 + 2 lists": (5, 5, []),
    "a replica without relevant documents": (5, 5, [0, 1, 2]),
    "no relevant documents": (4, 4, [0, 1, 2, 3]),
    "one list: an empty replica": (1, 5, []),
    "the last batch is one list": (5, 4, []),
}

EMPTY_REPLICA = ("one list: an empty replica", "the last batch is one list")


def write_letor(path, queries, irrelevant):
    random = np.random.RandomState(queries)
    with open(path, "w") as file:
        for query in range(queries):
            for document in range(1 + (query * 3 + 4) % 7):
                label = 0 if query in irrelevant else (2, 0, 1)[document % 3]
                values = " ".join(f"{i}:{1 + 2 * random.randn():.4f}" for i in range(1, 5))
                file.write(f"{label} qid:{query} {values} #docid = d{document}\n")
    return path


class Trainer:
    """A model that is reset for each dataset, because tracing a new model takes seconds."""

    def __init__(self, strategy):
        tf.keras.utils.set_random_seed(1)
        with strategy.scope():
            self.model = models.FeedForwardScorer(hidden=[8], members=2)
            self.model.build({"features": (None, None, 4)})
            self.model.compile(tf.keras.optimizers.SGD(0.5), losses.SmoothINDCGLoss(), metrics=[metrics.NDCGMetric()])
        self.start = [weight.copy() for weight in self.model.get_weights()]

    def train(self, dataset):
        self.model.set_weights(self.start)
        shown = self.model.fit(dataset, verbose=0).history
        evaluated = self.model.evaluate(dataset, verbose=0, return_dict=True)
        return self.model.get_weights(), [shown["loss"][0], shown["ndcg"][0], evaluated["loss"], evaluated["ndcg"]]


def largest_difference(some, others):
    """Returns the largest difference, relative to the largest weight where that is above 1."""
    return max(float(np.abs(a - b).max() / max(1.0, np.abs(a).max())) for a, b in zip(some, others, strict=True))


def main(folder):
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    assert two.num_replicas_in_sync == 2
    results = {}
    one_trainer = Trainer(tf.distribute.get_strategy())
    two_trainer = Trainer(two)
    for name, (queries, batch_size, irrelevant) in CASES.items():
        path = write_letor(os.path.join(folder, "train.txt"), queries, irrelevant)
        dataset = data.read_letor(path, num_features=4).batches(batch_size, ids=True)
        alone, shown_alone = one_trainer.train(dataset)
        together, shown_together = two_trainer.train(dataset)
        results[name] = {
            "start": largest_difference(one_trainer.start, two_trainer.start),
            "difference": largest_difference(alone, together),
            "step": largest_difference(one_trainer.start, alone),
            "shown": [shown_alone, shown_together],
        }
    with open(os.path.join(folder, "results.json"), "w") as file:
        json.dump(results, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
    # Exits immediately: closing a tf.data iterator can wait minutes for its autotuning thread.
    os._exit(0)
