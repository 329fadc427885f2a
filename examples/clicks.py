"""Trains on simulated clicks: the effect of position bias, and its correction by inverse propensity weights.

    python examples/clicks.py --seeds=3 --output=clicks.json

Simulated users see the top documents of a ranking by one feature, examine position k with probability 1 / k^eta, and
click examined documents with a probability that depends on the label. Each training method is evaluated on the true
labels. docs/clicks.md explains the methods.
"""

from __future__ import annotations

import json
import tempfile
from typing import Any, NamedTuple

import numpy as np
import startup
import tensorflow as tf
from absl import app, flags

from tfr_smooth import _files, data, losses, metrics, models

_ETA = flags.DEFINE_float("eta", 1.0, "Strength of the position bias; 0 for no bias.", lower_bound=0.0)
_NOISE = flags.DEFINE_float("noise", 0.05, "Probability of a click on an examined document that is not relevant.")
_LOGGED_BY = flags.DEFINE_integer("logged_by", 12, "Number of the feature that sorts the rankings.", lower_bound=1)
_SHOWN = flags.DEFINE_integer("shown", 10, "Documents shown per ranking.", lower_bound=1)
_SESSIONS = flags.DEFINE_integer("sessions", 20_000, "Number of rankings shown.", lower_bound=1)
_RANDOMIZED = flags.DEFINE_integer("randomized", 5_000, "Number of random rankings for estimating propensities.")
_CLIP = flags.DEFINE_float("clip", 20.0, "Maximum weight.", lower_bound=1.0)
_LOSS = flags.DEFINE_enum(
    "loss", "smoothi_ndcg", sorted(losses.NAMES), "Loss of all methods except the position tower."
)
_STEPS = flags.DEFINE_integer("steps", 400, "Training steps, of 64 sessions each.", lower_bound=1)
_SEEDS = flags.DEFINE_integer("seeds", 3, "Repetitions of simulation and training.", lower_bound=1)
_OUTPUT = flags.DEFINE_string("output", None, "JSON file to write the results to.")

NUM_FEATURES = 16


class Documents(NamedTuple):
    """The training set, one row per document."""

    features: np.ndarray
    labels: np.ndarray
    queries: list[np.ndarray]  # the rows of each query


class Log(NamedTuple):
    """The shown documents, one row each; positions count from 1."""

    rows: np.ndarray
    positions: np.ndarray
    clicks: np.ndarray
    sessions: np.ndarray


class PositionTower(tf.keras.Model):
    """Adds a bias for the position, the last feature, to the score of a document; only in training."""

    def __init__(self, scorer: tf.keras.Model) -> None:
        super().__init__()
        self.scorer = scorer
        self.bias = tf.keras.layers.Embedding(_SHOWN.value + 1, 1, embeddings_initializer="zeros")

    def call(self, inputs: dict[str, tf.Tensor], training: bool = False) -> tf.Tensor:
        features, positions = inputs["features"][..., :-1], inputs["features"][..., -1]
        scores = self.scorer({"features": features, "mask": inputs["mask"]}, training=training)
        return scores + self.bias(tf.cast(positions, tf.int32))[..., 0] if training else scores

    def propensities(self) -> np.ndarray:
        bias = self.bias.get_weights()[0][1:, 0]
        return np.exp(bias - bias[0])


def simulate(documents: Documents, sessions: int, random: np.random.Generator, randomized: bool = False) -> Log:
    """Clicks of a position-based model: P(click) = P(examine the position) P(click | label)."""
    attraction = _NOISE.value + (1.0 - _NOISE.value) * (2.0**documents.labels - 1.0) / 15.0
    shown = []
    for session in range(sessions):
        rows = documents.queries[random.integers(len(documents.queries))]
        sorted_by = random.random(len(rows)) if randomized else documents.features[rows, _LOGGED_BY.value - 1]
        rows = rows[np.argsort(-sorted_by, kind="stable")][: _SHOWN.value]
        positions = np.arange(1, len(rows) + 1)
        clicks = random.random(len(rows)) < attraction[rows] / positions**_ETA.value
        shown.append((rows, positions, clicks.astype(np.float32), np.full(len(rows), session)))
    return Log(*(np.concatenate(parts) for parts in zip(*shown, strict=True)))


def estimated_propensities(log: Log) -> np.ndarray:
    """Click-through rates by position in random rankings, relative to the first position."""
    rates = np.bincount(log.positions, log.clicks)[1:] / np.bincount(log.positions)[1:]
    return rates / rates[0]


def with_sharp_targets(inputs: Any, labels: tf.Tensor) -> tuple[Any, tf.Tensor]:
    """Raises positive labels, so that ListNet's targets, softmax(labels), are 1 for the clicked document."""
    return inputs, tf.where(labels > 0.0, 50.0, labels)


def read_documents(path: str) -> Documents:
    features, labels, queries = [], [], []
    for inputs, batch_labels in data.read_letor(path, batch_size=1, num_features=NUM_FEATURES):
        queries.append(sum(map(len, labels)) + np.arange(batch_labels.shape[1]))
        features.append(inputs["features"].numpy()[0])
        labels.append(batch_labels.numpy()[0])
    return Documents(np.concatenate(features), np.concatenate(labels), queries)


def compare(documents: Documents, test: tf.data.Dataset, seed: int) -> dict[str, Any]:
    """The exact NDCG@10 of each training method, and the estimated propensities."""
    random = np.random.default_rng(seed)
    propensities = estimated_propensities(simulate(documents, _RANDOMIZED.value, random, randomized=True))
    log = simulate(documents, _SESSIONS.value, random)
    weights = np.minimum(1.0 / propensities[log.positions - 1], _CLIP.value)
    features = documents.features[log.rows]

    def batches(features: np.ndarray, labels: np.ndarray, queries: np.ndarray, **kwargs: Any) -> tf.data.Dataset:
        order = {"batch_size": 64, "shuffle_buffer": _SESSIONS.value, "seed": seed, "num_epochs": None}
        return data.from_arrays(features, labels, queries, **order, **kwargs)

    def ndcg(dataset: tf.data.Dataset, loss: losses.RankingLoss, tower: bool = False) -> float:
        tf.keras.utils.set_random_seed(seed)
        scorer = models.FeedForwardScorer(hidden=[32], normalization="log1p")
        model = PositionTower(scorer) if tower else scorer
        model.compile(tf.keras.optimizers.Adam(0.01), loss)
        model.fit(dataset, steps_per_epoch=_STEPS.value, verbose=0, shuffle=False)
        metric = metrics.NDCGMetric(topn=10)
        for inputs, labels in test:
            metric.update_state(labels, scorer(inputs, training=False))
        if tower:
            found["propensities of the tower"] = model.propensities().tolist()
        return float(metric.result())

    found: dict[str, Any] = {"propensities": propensities.tolist()}
    loss = losses.get(_LOSS.value)
    queries = np.repeat(np.arange(len(documents.queries)), [len(rows) for rows in documents.queries])
    clicks = batches(features, log.clicks, log.sessions)
    weighted = batches(features, log.clicks, log.sessions, weights=weights)
    with_positions = batches(np.column_stack([features, log.positions]), log.clicks, log.sessions)
    found["true labels"] = ndcg(batches(documents.features, documents.labels, queries), loss)
    found["clicks"] = ndcg(clicks, loss)
    found["weights of documents"] = ndcg(weighted, loss)
    found["one list per click"] = ndcg(weighted.map(data.one_list_per_click), loss)
    per_click = with_positions.map(data.one_list_per_click).map(with_sharp_targets)
    found["position tower"] = ndcg(per_click, losses.ListNetLoss(), tower=True)
    return found


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    results = []
    with tempfile.TemporaryDirectory() as folder:
        files = data.write_synthetic_letor(
            folder, num_queries=(300, 2, 200), num_features=NUM_FEATURES, max_documents=40
        )
        documents = read_documents(str(files["train"]))
        test = data.read_letor(files["test"], batch_size=64, num_features=NUM_FEATURES, cache=True)
        for seed in range(_SEEDS.value):
            results.append(compare(documents, test, seed))
            print(
                {name: round(value, 3) for name, value in results[-1].items() if isinstance(value, float)}, flush=True
            )
    print(f"\nNDCG@10 on the true labels, mean of {_SEEDS.value} seeds:")
    for name in [name for name, value in results[0].items() if isinstance(value, float)]:
        print(f"{name:<22}{np.mean([result[name] for result in results]):.3f}")
    if _OUTPUT.value:
        _files.write_text(_OUTPUT.value, [json.dumps(results, indent=2) + "\n"])


if __name__ == "__main__":
    startup.run(main)
