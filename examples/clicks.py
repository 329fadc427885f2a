"""Trains on simulated clicks: NDCG on the true labels by the number of sessions, with and without corrections.

    python examples/clicks.py --train=MQ2008/Fold1/train.txt --test=MQ2008/Fold1/test.txt --max_label=2

A weak ranker, trained on a few labeled queries, ranks the documents of the training queries. Simulated users see its
first ten documents, examine position k with probability 1 / k^eta, and click depending on the label, with noise. Each
method trains on the same sessions and is evaluated on the true labels of the test queries. docs/clicks.md explains the
methods. Without files, the queries are synthetic.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import startup
import tensorflow as tf
from absl import app, flags
from command_line import write_json

from experiments.click_simulation import ClickLog, User, simulate
from tfr_smooth import data, losses, metrics, models

_TRAIN = flags.DEFINE_string("train", None, "LETOR file with the training queries. None for synthetic queries.")
_TEST = flags.DEFINE_string("test", None, "LETOR file with the test queries.")
_MAX_LABEL = flags.DEFINE_integer("max_label", 4, "The highest label.", lower_bound=1)
_LABELED = flags.DEFINE_float("labeled", 0.01, "Fraction of the queries that train the ranker that is shown.")
_ETA = flags.DEFINE_float("eta", 1.0, "Strength of the position bias; 0 for no bias.", lower_bound=0.0)
_NOISE = flags.DEFINE_float("noise", 0.1, "Probability of a click on an examined document that is not relevant.")
_SESSIONS = flags.DEFINE_list("sessions", ["1000", "5000", "20000", "80000"], "Numbers of sessions.")
_CLIP = flags.DEFINE_float("clip", 20.0, "Maximum weight.", lower_bound=1.0)
_LOSS = flags.DEFINE_enum(
    "loss", "softmax", sorted(losses.NAMES), "Loss of labels and of clicks, without EM and dual learning."
)
_STEPS = flags.DEFINE_integer("steps", 400, "Training steps, of 64 sessions each.", lower_bound=1)
_SEEDS = flags.DEFINE_integer("seeds", 3, "Repetitions of simulation and training.", lower_bound=1)
_OUTPUT = flags.DEFINE_string("output", None, "JSON file to write the results to.")

SHOWN = 10


class Documents(NamedTuple):
    """Queries with labels, one row per document."""

    features: np.ndarray
    labels: np.ndarray
    queries: np.ndarray


class Trainer:
    """Trains a scorer from the same initial weights on each dataset."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def batches(self, features: np.ndarray, labels: np.ndarray, queries: np.ndarray, **columns: Any) -> tf.data.Dataset:
        lists = data.from_arrays(features, labels, queries, **columns)
        return lists.batches(64, shuffle=True, seed=self.seed, num_epochs=None)

    def fit(self, dataset: tf.data.Dataset, loss: Any = None, **bias: Any) -> Any:
        """Returns the model: a scorer, or a `PositionBias` with these arguments."""
        tf.keras.utils.set_random_seed(self.seed)
        model = models.FeedForwardScorer(hidden=[32], normalization="log1p", dropout=0.2)
        if bias:
            model = models.PositionBias(model, num_positions=SHOWN, **bias)
        model.compile(tf.keras.optimizers.Adam(0.005), loss or losses.get(_LOSS.value))
        model.fit(dataset, steps_per_epoch=_STEPS.value, verbose=0, shuffle=False)
        return model


def read(path: str) -> Documents:
    lists = data.read_letor(path)
    queries = np.repeat(np.arange(len(lists)), lists.lengths)
    return Documents(lists.values("features"), lists.values("label"), queries)


def ndcg(model: tf.keras.Model, documents: Documents) -> float:
    metric = metrics.NDCGMetric(topn=10)
    for inputs, labels in data.from_arrays(*documents).batches(256):
        metric.update_state(labels, model(inputs, training=False))
    return float(metric.result())


def weak_ranker(documents: Documents, trainer: Trainer) -> tf.keras.Model:
    """Returns a ranker trained on a few queries that have a relevant document."""
    relevant = np.unique(documents.queries[documents.labels > 0])
    count = max(round(_LABELED.value * (documents.queries[-1] + 1)), 1)
    chosen = np.isin(documents.queries, np.random.default_rng(trainer.seed).choice(relevant, count, replace=False))
    return trainer.fit(trainer.batches(*(column[chosen] for column in documents)))


def methods(documents: Documents, log: ClickLog, user: User, trainer: Trainer) -> dict[str, Callable[[], Any]]:
    """Returns functions that train on the click log, by the name of the method."""
    propensities = user.propensities(SHOWN)
    weights = np.minimum(1.0 / propensities[log.positions - 1], _CLIP.value)

    def sessions(**columns: Any) -> tf.data.Dataset:
        return trainer.batches(documents.features[log.rows], log.clicks, log.sessions, **columns)

    positions = {"positions": log.positions}
    per_click = data.one_list_per_click
    return {
        "clicks": lambda: trainer.fit(sessions().map(per_click)),
        "inverse propensities": lambda: trainer.fit(sessions(weights=weights).map(per_click)),
        "two towers": lambda: trainer.fit(sessions(**positions).map(per_click), losses.SoftmaxLoss(), additive=True),
        "dual learning": lambda: trainer.fit(
            sessions(**positions), losses.DualLearningLoss(max_weight=_CLIP.value), additive=False
        ),
        "regression EM": lambda: trainer.fit(sessions(**positions), losses.ClickEMLoss(), additive=False),
    }


def compare(documents: Documents, test: Documents, seed: int) -> dict[str, Any]:
    """The NDCG@10 of each method by the number of sessions, and the propensities of the joint models."""
    trainer = Trainer(seed)
    user = User(eta=_ETA.value, noise=_NOISE.value, max_label=_MAX_LABEL.value)
    shown = weak_ranker(documents, trainer)
    gains = documents._replace(labels=user.attraction(documents.labels) - _NOISE.value)
    found: dict[str, Any] = {"shown ranking": ndcg(shown, test)}
    found["true labels"] = ndcg(trainer.fit(trainer.batches(*gains)), test)
    scores = shown(documents.features[np.newaxis], training=False).numpy()[0]
    for count in map(int, _SESSIONS.value):
        log = simulate(documents.labels, documents.queries, scores, user, num_sessions=count, topn=SHOWN, seed=seed)
        for name, train in methods(documents, log, user, trainer).items():
            model = train()
            found.setdefault(name, {})[count] = ndcg(model, test)
            if isinstance(model, models.PositionBias):
                link = "sigmoid" if isinstance(model.loss, losses.ClickEMLoss) else "exp"
                found.setdefault(f"propensities of {name}", {})[count] = model.propensities(link).tolist()
            print(f"seed {seed}, {count} sessions, {name}: {found[name][count]:.3f}", flush=True)
    return found


def table(results: list[dict[str, Any]]) -> str:
    """Returns the mean NDCG@10 over the seeds as a table of methods and numbers of sessions."""
    lines = [f"{'sessions':<22}" + "".join(f"{count:>9}" for count in _SESSIONS.value)]
    for name in [name for name in results[0] if not name.startswith("propensities")]:
        values = [
            r[name] if isinstance(r[name], dict) else dict.fromkeys(results[0]["clicks"], r[name]) for r in results
        ]
        means = [np.mean([value[count] for value in values]) for count in values[0]]
        lines.append(f"{name:<22}" + "".join(f"{mean:>9.3f}" for mean in means))
    return "\n".join(lines)


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    if (_TRAIN.value is None) != (_TEST.value is None):
        raise app.UsageError("--train and --test must be given together.")
    with tempfile.TemporaryDirectory() as folder:
        files = {"train": _TRAIN.value, "test": _TEST.value}
        if _TRAIN.value is None:
            files = data.write_synthetic_letor(folder, num_queries=(300, 2, 200), num_features=16, max_documents=40)
        documents, test = (read(str(files[name])) for name in ("train", "test"))
    results = []
    for seed in range(_SEEDS.value):
        results.append(compare(documents, test, seed))
        if _OUTPUT.value:
            write_json(_OUTPUT.value, results)
    print(f"\nNDCG@10 on the true labels, mean of {_SEEDS.value} seeds:\n{table(results)}")


if __name__ == "__main__":
    startup.run(main)
