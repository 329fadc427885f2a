"""One process of a cluster, as test_cluster.py starts it: `python cluster_task.py FOLDER apart|kill|together`.

TF_CONFIG identifies the process.
"""

import json
import os
import pathlib
import signal
import sys

import tensorflow as tf

from tests.training import replicas
from tfr_smooth import data, losses, metrics, models, training

EPOCHS, BATCH_SIZE, NUM_FEATURES = 3, 8, 16


def read(path, **kwargs):
    return data.read_letor(str(path), num_features=NUM_FEATURES).batches(BATCH_SIZE, **kwargs)


def a_model(strategy, **kwargs):
    tf.keras.utils.set_random_seed(3)
    with strategy.scope():
        model = models.FeedForwardScorer(hidden=[8], **kwargs)
        model.compile(optimizer=tf.keras.optimizers.Adam(0.01, epsilon=1e-3), loss=losses.ApproxNDCGLoss())
        model.build((None, None, NUM_FEATURES))
    return model


def shares(strategy, folder):
    """The queries that this worker reads in each step, for several ways to read the training set."""
    found = {}
    for name, kwargs in {"in order": {}, "shuffled": {"num_epochs": 2, "shuffle": True, "seed": 4}}.items():
        dataset = read(folder / "train.txt", ids=True, **kwargs)
        own = [queries(strategy, inputs) for inputs, _ in strategy.experimental_distribute_dataset(dataset)]
        everything = [queries(strategy, inputs) for inputs, _ in dataset]
        found[name] = {"own": own, "everything": everything}
    return found


def queries(strategy, inputs):
    (share,) = strategy.experimental_local_results(inputs["query_id"])
    return [query.decode() for query in share.numpy()]


def validation_metrics(strategy, folder):
    """The validation metrics with and without the strategy, for the same weights."""

    def metrics_of(model):
        dataset = read(folder / "vali.txt")
        chosen = [metrics.NDCGMetric(topn=5), metrics.MeanAveragePrecisionMetric(), metrics.get("approx_ndcg")]
        validation = training.ExactValidation(dataset, chosen)
        validation.set_model(model)
        return validation.evaluate()

    model = a_model(strategy)
    together = {**metrics_of(model), **model.evaluate(read(folder / "vali.txt"), verbose=0, return_dict=True)}
    alone = a_model(tf.distribute.get_strategy())
    alone.set_weights(model.get_weights())
    return together, {**metrics_of(alone), **alone.evaluate(read(folder / "vali.txt"), verbose=0, return_dict=True)}


def compared(strategy, folder):
    """Returns the results of this worker without checkpoints."""
    together, alone = validation_metrics(strategy, folder)
    return {
        "replicas": strategy.num_replicas_in_sync,
        "chief": training.is_chief(strategy),
        "steps": replicas.compare(strategy, ["approx_ndcg"]),  # test_replicas.py has the others
        "shares": shares(strategy, folder),
        "metrics": {"together": together, "alone": alone},
    }


def kill():
    """Kills this process, as an operator or the kernel would."""
    os.kill(os.getpid(), signal.SIGKILL)


def train(strategy, folder, how):
    """Trains to the end, or kills worker 1 in the second epoch if `how` is "kill".

    If `how` is "apart", each worker has its own output folder; otherwise all share one.
    """
    index = task()["index"]
    output = folder / (f"output{index}" if how == "apart" else "output0")
    tf.config.experimental.enable_op_determinism()
    model = a_model(strategy)
    validation = training.ExactValidation(read(folder / "vali.txt"), [metrics.NDCGMetric()], path=output / "best.keras")
    resumable = training.ResumableTraining(output / "checkpoints", validation=validation)
    start = resumable.restore(model)
    order = {"shuffle": True, "seed": 5, "first_epoch": start, "num_epochs": EPOCHS - start}
    model.fit(
        read(folder / "train.txt", **order),
        initial_epoch=start,
        epochs=EPOCHS,
        steps_per_epoch=4,
        shuffle=False,
        verbose=0,
        callbacks=[validation, resumable, *([replicas.InTheMiddle(1, kill)] if how == "kill" and index == 1 else [])],
    )
    weights = [weight.tolist() for weight in model.get_weights()]
    return {"start": start, "weights": weights, "validation": validation.get_state()}


def refused(train):
    """Returns the error of a training."""
    try:
        train()
    except ValueError as error:
        return str(error)


def task():
    return json.loads(os.environ["TF_CONFIG"])["task"]


def main(folder, how):
    signal.alarm(300)  # ends this process even if the parent process cannot
    strategy, folder = training.get_strategy("multi_worker"), pathlib.Path(folder)
    found = compared(strategy, folder) if how == "apart" else {}
    found |= train(strategy, folder, how)
    if how == "apart":  # now, only the chief sees checkpoints
        found["refused"] = refused(lambda: train(strategy, folder, how))
    (folder / f"{task()['index']}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
