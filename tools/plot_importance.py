"""Draws the feature importance on docs/evaluation.md, in docs/images.

python tools/plot_importance.py  # draws the stored values again
python tools/plot_importance.py --model=output/letor/best.keras --test=MQ2008/Fold1/test.txt  # also computes them
"""

from __future__ import annotations

import math
import pathlib

import pandas as pd
import tensorflow as tf
from absl import app, flags
from figures import save_both

from tfr_smooth import _files, data, metrics, training
from tfr_smooth.training import feature_importance

IMAGES = pathlib.Path(__file__).absolute().parents[1] / "docs/images"
VALUES = IMAGES / "feature_importance.csv"

_MODEL = flags.DEFINE_string("model", None, "Keras model whose features are shuffled.")
_TEST = flags.DEFINE_string("test", None, "LETOR file on which the metric is computed.")
_REPEATS = flags.DEFINE_integer("repeats", 10, "Permutations per feature.", lower_bound=1)


def measure() -> pd.DataFrame:
    """The drops of NDCG@10, one column per feature, in the order of decreasing mean."""
    model = tf.keras.models.load_model(_MODEL.value)
    dataset = data.read_letor(_TEST.value, num_features=model.num_features).batches(128)
    ndcg = metrics.NDCGMetric(topn=10)
    return pd.DataFrame(training.permutation_importance(model, dataset, ndcg, repeats=_REPEATS.value).drops)


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    if _MODEL.value:
        _files.write_text(VALUES, [measure().to_csv(index=False, float_format="%.6g")])
    # The plot does not show the baseline.
    importance = training.FeatureImportance("NDCG@10", math.nan, dict(pd.read_csv(VALUES)))
    for path in save_both(IMAGES / "feature_importance.png", lambda: feature_importance.draw(importance, top=20)):
        print(path)


if __name__ == "__main__":
    app.run(main)
