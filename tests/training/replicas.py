"""Trains on two replicas of one process and on one device, and writes the differences of the results.

test_replicas.py and test_cluster.py run it in new processes: two logical CPUs, or a cluster, must be configured before
TensorFlow starts.
"""

import json
import os
import sys

import numpy as np
import tensorflow as tf

from tests.training import small, test_temperatures
from tfr_smooth import _keras, data, losses, metrics, models

NUM_FEATURES = 4
# The lists of a batch by replica. Lists 4 and 5 have no relevant document, and list 6 has a single document.
SPLITS = {
    "even": [[0, 1, 4], [2, 3, 5]],
    "uneven": [[0, 1, 2, 3, 4], [6]],
    "one list on the first replica": [[0], [1, 2, 3, 4]],
    "one list in total": [[1], []],
    "the first replica empty": [[], [0, 1, 2]],
    "nothing relevant on the first replica": [[4, 5], [0, 1]],
    "nothing relevant on the second replica": [[0, 6, 1], [5]],
    "nothing relevant": [[4], [5]],
}
REDUCTIONS = ("sum", "mean_with_sample_weight")
# Losses by kind of weighting, reductions, and half precision by a policy.
CASES = {
    **{name: (name, {}, "float32") for name in ("approx_ndcg", "mean_squared", "pairwise_logistic", "list_mle")},
    **{f"approx_ndcg, {name}": ("approx_ndcg", {"reduction": name}, "float32") for name in REDUCTIONS},
    "approx_ndcg, mixed_bfloat16": ("approx_ndcg", {}, "mixed_bfloat16"),
}
if not _keras.IS_KERAS_3:
    # The LossScaleOptimizer of Keras 3 fails on several replicas: github.com/keras-team/keras/issues/19246
    CASES = {name: CASES[name] for name in ("approx_ndcg", "mean_squared")}
    CASES["approx_ndcg, mixed_float16"] = ("approx_ndcg", {}, "mixed_float16")


def a_batch(lists):
    """These lists, padded to the longest."""
    length = max((1 if i == 6 else 2 + i for i in lists), default=1)
    features = np.zeros((len(lists), length, NUM_FEATURES), np.float32)
    labels = np.full((len(lists), length), -1.0, np.float32)
    for row, i in enumerate(lists):
        size = 1 if i == 6 else 2 + i
        features[row, :size] = np.random.RandomState(i).randn(size, NUM_FEATURES)
        labels[row, :size] = 0.0 if i in (4, 5) else (np.arange(size) * 7 + i + 2) % 3
        labels[row, 0] = labels[row, 0] if i in (4, 5) else 2.0
    weights = np.array([0.5 + 0.3 * i for i in lists], np.float32)
    return {"features": features, "mask": labels >= 0.0}, labels, weights


def a_dataset(shares):
    """A batch for each item of `shares`, of unknown size."""
    inputs = {"features": tf.TensorSpec([None, None, NUM_FEATURES]), "mask": tf.TensorSpec([None, None], tf.bool)}
    spec = (inputs, tf.TensorSpec([None, None]), tf.TensorSpec([None]))
    return tf.data.Dataset.from_generator(lambda: map(a_batch, shares), output_signature=spec)


class Trainer:
    """Training steps of a model that is reset before each step, and traced once per loss."""

    def __init__(self, strategy):
        self.strategy = strategy
        tf.keras.utils.set_random_seed(1)
        with strategy.scope():
            self.model = models.FeedForwardScorer(hidden=[8], batch_norm=False)
            self.model.build((None, None, NUM_FEATURES))
        self.start = [weight.copy() for weight in self.model.get_weights()]

    def steps(self, name, arguments, shares_by_split, context_to_share):
        with self.strategy.scope():
            optimizer = tf.keras.optimizers.SGD(0.5)
            optimizer.build(self.model.trainable_variables)
            loss = losses.get(name, **arguments)
            self.model.compile(optimizer, loss)
        dataset = self.strategy.distribute_datasets_from_function(
            lambda context: a_dataset(context_to_share(context, shares_by_split))
        )

        @tf.function
        def step(batches):
            self.strategy.run(self.model.train_step, args=(next(batches),))

        found = []
        batches = iter(dataset)
        for _ in SPLITS:
            self.model.set_weights(self.start)
            step(batches)
            found.append(self.model.get_weights())
        return found


class InTheMiddle(tf.keras.callbacks.Callback):
    """Calls a function in the middle of an epoch."""

    def __init__(self, epoch, function):
        super().__init__()
        self._epoch, self._current, self._function = epoch, None, function

    def on_epoch_begin(self, epoch, logs=None):
        self._current = epoch

    def on_train_batch_end(self, batch, logs=None):
        if self._current == self._epoch and batch == 1:
            self._function()


def furthest(some, others):
    """The largest difference, relative to the size of the weights where that is above 1."""
    return max(float(np.abs(a - b).max() / max(1.0, np.abs(a).max())) for a, b in zip(some, others, strict=True))


def differences(alone, together):
    """Returns the differences between the first weights, and after a step, of one device and two, and the step."""
    (start, end), (other_start, other_end) = alone, together
    found = {"start": (start, other_start), "difference": (end, other_end), "step": (start, end)}
    return {name: furthest(*weights) for name, weights in found.items()}


def compare(strategy, cases):
    """The difference between the steps of two replicas and one device, and the size of the step, by case and split."""
    per_worker = 2 // (2 if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy) else 1)

    def own_shares(context, shares_by_split):
        first = per_worker * context.input_pipeline_id
        return [share for shares in shares_by_split for share in shares[first : first + per_worker]]

    results = {}
    trainers = {}
    for case in cases:
        name, arguments, policy = CASES[case]
        if policy not in trainers:
            tf.keras.mixed_precision.set_global_policy(policy)
            trainers[policy] = Trainer(tf.distribute.get_strategy()), Trainer(strategy)
        one, two = trainers[policy]
        together = two.steps(name, arguments, list(SPLITS.values()), own_shares)
        alone = one.steps(name, arguments, [[sum(shares, [])] for shares in SPLITS.values()], lambda _, s: sum(s, []))
        results[case] = {
            split: differences((one.start, a), (two.start, t))
            for split, a, t in zip(SPLITS, alone, together, strict=True)
        }
    return results


def check(result, case):
    """Checks that the steps of a case are the same."""
    # Half precision rounds sums over documents, so that their order matters: 2.4e-4 is a step of float16 at .25.
    tolerance = {"mixed_float16": 3e-4, "mixed_bfloat16": 1e-3}.get(CASES[case][2], 1e-6)
    assert list(result) == list(SPLITS)
    for split, found in result.items():
        assert found["start"] == 0.0, split
        assert found["difference"] < tolerance, split
    assert max(found["step"] for found in result.values()) > 5e-3


# Case of `fit` and `evaluate` -> number of queries, batch size, and the queries without relevant documents.
FITS = {
    "uneven: 3 + 2 lists": (5, 5, []),
    "a replica without relevant documents": (5, 5, [0, 1, 2]),
    "one list: an empty replica": (1, 5, []),
    "the last batch is one list": (5, 4, []),
}
WITH_EMPTY_REPLICA = ("one list: an empty replica", "the last batch is one list")


def lists_of(queries, irrelevant):
    random = np.random.RandomState(queries)
    of_rows = np.repeat(np.arange(queries), [1 + (query * 3 + 4) % 7 for query in range(queries)])
    labels = np.where(np.isin(of_rows, irrelevant), 0, np.take([2, 0, 1], np.arange(len(of_rows)) % 3))
    return data.from_arrays(1 + 2 * random.randn(len(of_rows), 4), labels, of_rows)


def fits(two):
    """The weights, and loss and NDCG of `fit` and `evaluate`, by case: on one device, and how far replicas are off."""
    found = {}
    for strategy in (tf.distribute.get_strategy(), two):
        tf.keras.utils.set_random_seed(1)
        with strategy.scope():
            model = models.FeedForwardScorer(hidden=[8], members=2)
            model.build({"features": (None, None, 4)})
            model.compile(tf.keras.optimizers.SGD(0.1), losses.ApproxNDCGLoss(), metrics=[metrics.NDCGMetric()])
        start = [weight.copy() for weight in model.get_weights()]
        for name, (queries, batch_size, irrelevant) in FITS.items():
            model.set_weights(start)  # tracing a new model takes seconds
            dataset = lists_of(queries, irrelevant).batches(batch_size, ids=True)
            shown = model.fit(dataset, verbose=0).history
            evaluated = model.evaluate(dataset, verbose=0, return_dict=True)
            values = [shown["loss"][0], shown["ndcg"][0], evaluated["loss"], evaluated["ndcg"]]
            found.setdefault(name, []).append(((start, model.get_weights()), values))
    return {
        name: {**differences(alone, together), "shown": [values, others]}
        for name, ((alone, values), (together, others)) in found.items()
    }


def check_temperatures(two):
    """Checks that replicas share a temperature that changes between epochs, made in their scope or outside of it."""
    from experiments.smoothness import SmoothnessMonitor  # needs matplotlib, which the stack of the engines lacks

    outside, trained = test_temperatures.variable(), []
    for strategy, in_scope in ((tf.distribute.get_strategy(), True), (two, True), (two, False)):
        with strategy.scope():
            alpha = test_temperatures.variable() if in_scope else outside
            model = small.make_model(losses.ApproxNDCGLoss(alpha=alpha))
        callbacks = [test_temperatures.annealing(alpha)]
        callbacks.append(SmoothnessMonitor(small.make_dataset(8, 4)[0], model.loss))
        gaps = test_temperatures.fit(model, epochs=3, callbacks=callbacks)["smooth_gap"]
        assert model.loss.get_config()["alpha"] == test_temperatures.VALUES[-1]
        trained.append((model, gaps))
    for model, gaps in trained[1:]:
        test_temperatures.assert_same_weights(model, trained[0][0])
        np.testing.assert_allclose(gaps, trained[0][1], rtol=1e-3)


def main(path):
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    assert strategy.num_replicas_in_sync == 2
    check_temperatures(strategy)
    results = {"fits": fits(strategy), "steps": compare(strategy, CASES)}
    with open(path, "w") as file:
        json.dump(results, file)


if __name__ == "__main__":
    main(sys.argv[1])
    # Immediately: tf.data tunes the iterators of replicas, and closing one may wait minutes for its thread.
    os._exit(0)
