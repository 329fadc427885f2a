"""Trains `Ranker` on the Yandex relevance data by the protocol of CatBoost's benchmark of ranking.

    python benchmarks/yandex.py --data=FOLDER

FOLDER has `features.txt.gz` and `featuresTest.txt.gz`. NDCG@10 has the gains 2^l - 1 of labels cut at 0.07, 0.14, 0.41
and 0.61, and is 1 for queries without relevant documents. Published: LightGBM 0.7100, XGBoost 0.7098 and CatBoost
0.7148, all tuned on the test queries. Nothing is tuned here.
"""

from __future__ import annotations

import pathlib
import time

import numpy as np
import pandas as pd
from absl import app, flags

import tfr_smooth

_DATA = flags.DEFINE_string("data", None, "The folder of the data.", required=True)
_SEEDS = flags.DEFINE_integer("seeds", 3, "The number of seeds.", lower_bound=1)


def read(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns features, grades and queries."""
    table = pd.read_csv(pathlib.Path(_DATA.value) / name, sep="\t", header=None, quoting=3)
    grades = np.digitize(table[1], [0.07, 0.14, 0.41, 0.61])
    return table.iloc[:, 3:].to_numpy(np.float32), grades.astype(np.float32), table[0].to_numpy()


def ndcg(grades: np.ndarray, scores: np.ndarray) -> float:
    """Returns NDCG@10 of a query."""
    gains, discounts = 2.0**grades - 1.0, 1.0 / np.log2(np.arange(len(grades)) + 2.0)
    ideal = (np.sort(gains)[::-1] * discounts)[:10].sum()
    return (gains[np.argsort(-scores, kind="stable")] * discounts)[:10].sum() / ideal if ideal > 0.0 else 1.0


def main(_: list[str]) -> None:
    features, grades, queries = read("features.txt.gz")
    test_features, test_grades, test_queries = read("featuresTest.txt.gz")
    rows = [np.flatnonzero(test_queries == query) for query in np.unique(test_queries)]
    for seed in range(_SEEDS.value):
        start = time.process_time()
        ranker = tfr_smooth.Ranker(seed=seed, verbose=False).fit(features, grades, qid=queries)
        seconds = time.process_time() - start
        scores = ranker.predict(test_features)
        mean = np.mean([ndcg(test_grades[own], scores[own]) for own in rows])
        print(f"seed {seed}: NDCG@10 {mean:.4f}, {seconds:.0f} processor seconds of training", flush=True)


if __name__ == "__main__":
    app.run(main)
