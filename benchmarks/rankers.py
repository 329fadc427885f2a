"""Compares `Ranker` with LightGBM's LambdaMART and TF-Ranking's DNN: time, memory and test NDCG.

python benchmarks/rankers.py                              # synthetic data of the size of MSLR-WEB10K's fold
python benchmarks/rankers.py --data=MQ2008/Fold1 --tf_ranking_python=.venv/ranking/bin/python

Each ranker runs in a process of its own, one after the other, with its usual settings: LightGBM and TF-Ranking train
with early stopping by validation NDCG, `Ranker` needs no validation queries. Then it scores the test documents. Peak
memory is that of the whole process. --data is a folder with train.txt, vali.txt and test.txt (or .gz).
"""

from __future__ import annotations

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np
from absl import app, flags
from data_files import find

_DATA = flags.DEFINE_string("data", None, "Folder with train.txt, vali.txt and test.txt. Default: synthetic data.")
_QUERIES = flags.DEFINE_integer("queries", 6000, "Training queries of the synthetic data.", lower_bound=2)
_DOCUMENTS = flags.DEFINE_integer("documents", 120, "Documents per query of the synthetic data.", lower_bound=2)
_FEATURES = flags.DEFINE_integer("features", 136, "Features of the synthetic data.", lower_bound=8)
_EPOCHS = flags.DEFINE_integer("epochs", None, "Epochs of TF-Ranking. Default: 30, or 5 for synthetic data.")
_SETTINGS = flags.DEFINE_string("settings", "{}", 'Arguments of `Ranker` as JSON, such as {"members": 4}.')
_RANKERS = flags.DEFINE_list("rankers", ["ranker", "lightgbm", "tf_ranking"], "The rankers to run.")
_TF_RANKING_PYTHON = flags.DEFINE_string("tf_ranking_python", None, "Python with TF-Ranking. Default: skip TF-Ranking.")
_OUTPUT = flags.DEFINE_string("output", None, "JSON file to write the results to.")

PARTS = ("train", "valid", "test")
_CHILD = "TFR_SMOOTH_BENCHMARK_CHILD"


def synthetic(folder: pathlib.Path) -> None:
    """Graded labels of a nonlinear function of the features with noise, as padded-free arrays."""
    random = np.random.default_rng(0)
    for part, queries in zip(PARTS, (_QUERIES.value, _QUERIES.value // 3, _QUERIES.value // 3), strict=True):
        rows = queries * _DOCUMENTS.value
        features = random.standard_normal((rows, _FEATURES.value), np.float32)
        relevance = features[:, :4].sum(axis=1) + features[:, 4] * features[:, 5] + np.abs(features[:, 6])
        relevance += random.normal(0.0, 2.0, rows)
        labels = np.searchsorted([0.8, 2.2, 3.6, 5.0], relevance).astype(np.float32)
        np.savez(folder / part, features=features, labels=labels, groups=np.full(queries, _DOCUMENTS.value))


def letor(source: pathlib.Path, folder: pathlib.Path) -> None:
    sys.path.append(str(pathlib.Path(__file__).absolute().parents[1]))
    import experiments

    train, valid, test = find(source, "train.txt", "vali.txt", "test.txt")
    files = {"train": [str(train)], "valid": [str(valid)], "test": [str(test)]}
    for part, queries in experiments.load_fold(files)._asdict().items():
        np.savez(folder / part, features=queries.features, labels=queries.labels, groups=queries.lengths)


def train_ranker(train: Any, valid: Any, epochs: int) -> Any:
    import tfr_smooth

    ranker = tfr_smooth.Ranker(verbose=False, **json.loads(_SETTINGS.value))
    ranker.fit(train["features"], train["labels"], group=train["groups"])
    return lambda part: ranker.predict(part["features"], group=part["groups"])


def train_lightgbm(train: Any, valid: Any, epochs: int) -> Any:
    import lightgbm

    model = lightgbm.LGBMRanker(n_estimators=1000, verbosity=-1)
    model.fit(
        train["features"],
        train["labels"].astype(int),
        group=train["groups"],
        eval_set=[(valid["features"], valid["labels"].astype(int))],
        eval_group=[valid["groups"]],
        callbacks=[lightgbm.early_stopping(50, verbose=False)],
    )
    return lambda part: model.predict(part["features"])


def train_tf_ranking(train: Any, valid: Any, epochs: int) -> Any:
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    import tensorflow as tf

    import tfr_smooth.tf_ranking  # noqa: F401 - lets TF-Ranking be imported beside a newer TensorFlow

    import tensorflow_ranking as tfr  # isort: skip

    def batches(part: Any, shuffle: bool) -> tf.data.Dataset:
        features = tf.RaggedTensor.from_row_lengths(part["features"], part["groups"])
        labels = tf.RaggedTensor.from_row_lengths(part["labels"], part["groups"])
        lists = tf.data.Dataset.from_tensor_slices((features, labels))
        lists = lists.shuffle(len(part["groups"]), seed=0) if shuffle else lists
        padded = lists.ragged_batch(32).map(lambda x, y: (x.to_tensor(0.0), y.to_tensor(-1.0)))
        return padded.prefetch(2)

    width = train["features"].shape[1]
    tower = tfr.keras.layers.create_tower(
        [256, 128, 64], 1, activation=tf.nn.relu, input_batch_norm=True, use_batch_norm=True, dropout=0.3
    )
    inputs = tf.keras.Input([None, width])
    model = tf.keras.Model(inputs, tf.squeeze(tower(inputs), axis=2))
    model.compile("adam", tfr.keras.losses.ApproxNDCGLoss(), metrics=[tfr.keras.metrics.NDCGMetric(name="ndcg")])
    best = tf.keras.callbacks.EarlyStopping("val_ndcg", mode="max", patience=epochs, restore_best_weights=True)
    model.fit(batches(train, True), validation_data=batches(valid, False), epochs=epochs, verbose=0, callbacks=[best])

    def score(part: Any) -> np.ndarray:
        chunks = np.array_split(part["features"], len(part["features"]) // 8192 + 1)
        return np.concatenate([model(chunk[np.newaxis], training=False).numpy()[0] for chunk in chunks])

    return score


TRAINERS = {"ranker": train_ranker, "lightgbm": train_lightgbm, "tf_ranking": train_tf_ranking}


def run(name: str, folder: pathlib.Path, epochs: int) -> None:
    """Trains and scores in this process; writes the scores and the times."""
    train, valid, test = (dict(np.load(folder / f"{part}.npz")) for part in PARTS)
    start, cpu = time.perf_counter(), time.process_time()
    score = TRAINERS[name](train, valid, epochs)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    scores = score(test)  # the first call may compile
    start = time.perf_counter()
    score(test)
    per_second = len(scores) / (time.perf_counter() - start)
    np.save(folder / f"{name}.npy", np.asarray(scores, np.float32))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    found = {"train_seconds": seconds, "train_processor_seconds": cpu, "documents_per_second": per_second}
    (folder / f"{name}.json").write_text(json.dumps({**found, "peak_gib": peak}))


def main(_: list[str]) -> None:
    if _CHILD in os.environ:
        name, folder, epochs = json.loads(os.environ[_CHILD])
        return run(name, pathlib.Path(folder), epochs)
    from tfr_smooth import evaluation

    results = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        synthetic(folder) if _DATA.value is None else letor(pathlib.Path(_DATA.value), folder)
        epochs = _EPOCHS.value or (5 if _DATA.value is None else 30)
        test = np.load(folder / "test.npz")
        queries = np.repeat(np.arange(len(test["groups"])), test["groups"])
        print("ranker      seconds  processor seconds  documents/s  peak GiB  test NDCG@10       test NDCG")
        for name in _RANKERS.value:
            python = _TF_RANKING_PYTHON.value if name == "tf_ranking" else sys.executable
            if python is None:
                print("tf_ranking  skipped: set --tf_ranking_python")
                continue
            child = {**os.environ, _CHILD: json.dumps([name, temporary, epochs]), "TF_CPP_MIN_LOG_LEVEL": "3"}
            subprocess.run([python, *sys.argv], env=child, check=True)
            found = json.loads((folder / f"{name}.json").read_text())
            scores = np.nan_to_num(np.load(folder / f"{name}.npy"))
            measured = evaluation.evaluate_rows(test["labels"], scores, queries, ["ndcg_cut_10", "ndcg"])
            results[name] = {**found, **{measure: list(estimate) for measure, estimate in measured.items()}}
            seconds, processor, speed, peak = found.values()
            print(f"{name:11} {seconds:7.1f}  {processor:17.1f}  {speed:11,.0f}  {peak:8.2f}  ", end="")
            print("  ".join(map(str, measured.values())), flush=True)
    if _OUTPUT.value:
        pathlib.Path(_OUTPUT.value).write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    app.run(main)
