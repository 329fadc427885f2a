"""Compares an epoch of the paper's scorer with SmoothI-NDCG, the authors' training loop, and mean squared error.

python benchmarks/training_epoch.py --authors_src=SmoothI/src --threads=2 --runs=3 --warm_runs=1 --output=epoch.json

The authors' train.py imports pytrec_eval, tensorboard and tqdm.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Callable
from typing import Any

import harness
import numpy as np
import tensorflow as tf
from absl import app, flags

from tfr_smooth import losses, models

_QUERIES = flags.DEFINE_integer("queries", 6000, "Queries per epoch.", lower_bound=1)
_DOCUMENTS = flags.DEFINE_integer("documents", 120, "Documents per query.", lower_bound=1)
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 128, "Queries per batch.", lower_bound=1)
_AUTHORS_SRC = flags.DEFINE_string(
    "authors_src", None, "The src/ folder of https://github.com/ygcinar/SmoothI. Default: skip the authors' code."
)

FEATURES, HIDDEN, ALPHA, DELTA = 136, 1024, 1.0, 0.1


def a_data_set() -> tuple[np.ndarray, np.ndarray]:
    """Features and labels, float32 [queries, documents, 136] and [queries, documents]."""
    random = np.random.RandomState(0)
    features = random.randn(_QUERIES.value, _DOCUMENTS.value, FEATURES).astype(np.float32)
    relevance = features[:, :, :8].sum(axis=2) / 3.0 + random.randn(_QUERIES.value, _DOCUMENTS.value)
    return features, np.clip(np.round(relevance), 0, 4).astype(np.float32)


def keras_epoch(loss: tf.keras.losses.Loss, features: np.ndarray, labels: np.ndarray) -> Callable[[], Any]:
    tf.keras.utils.set_random_seed(0)
    model = models.FeedForwardScorer(hidden=[HIDDEN])
    model.compile(optimizer=tf.keras.optimizers.Adam(1e-3), loss=loss)
    inputs = {"features": features, "mask": np.ones(labels.shape, bool)}
    dataset = tf.data.Dataset.from_tensor_slices((inputs, labels)).batch(_BATCH_SIZE.value).prefetch(2)
    return lambda: model.fit(dataset, epochs=1, verbose=0)


def authors_epoch(features: np.ndarray, labels: np.ndarray) -> Callable[[], Any]:
    torch = harness.torch()
    train = harness.module_at(pathlib.Path(_AUTHORS_SRC.value) / "train.py", "authors_train")
    params = argparse.Namespace(
        rank_list_length=_DOCUMENTS.value,
        fea_dim=FEATURES,
        hidden_sizes=[HIDDEN],
        activation_fn="relu",
        batch_norm=True,
        masked_comp=True,
        save_summary_steps=1,
        tensortype=torch.float32,
    )
    model = train.MLPRankNet(params)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss = train.ListwiseSmoothINDCGKLoss(ALPHA, DELTA, K=0, rank_list_length=_DOCUMENTS.value)
    tensors = torch.from_numpy(features), torch.from_numpy(labels)
    batches = [
        {"x": x, "y": y, "mask": torch.ones(y.shape, dtype=torch.bool)}
        for x, y in zip(*(t.split(_BATCH_SIZE.value) for t in tensors), strict=True)
    ]
    return lambda: train.train_model(model, optimizer, loss, batches, params, epoch=0)


def main(_: list[str]) -> None:
    harness.use_threads()
    features, labels = a_data_set()
    sides = {
        "SmoothI-NDCG": keras_epoch(losses.SmoothINDCGLoss(alpha=ALPHA, delta=DELTA), features, labels),
        "mean squared error": keras_epoch(losses.MeanSquaredLoss(), features, labels),
    }
    if _AUTHORS_SRC.value:
        sides["authors' PyTorch"] = authors_epoch(features, labels)
    result = harness.race(sides, queries=_QUERIES.value, documents=_DOCUMENTS.value)
    harness.report([result], packages=["torch"] if _AUTHORS_SRC.value else [], hidden=HIDDEN, alpha=ALPHA, delta=DELTA)


if __name__ == "__main__":
    app.run(main)
