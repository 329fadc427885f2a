"""The pipeline example, run from the command line."""

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import data

helpers.tf_ranking(module=True)

pytestmark = pytest.mark.slow


def test_the_model_trained_on_records_serves_them(tmp_path):
    text = data.write_synthetic_letor(tmp_path, num_queries=(24, 8, 2), num_features=16)
    for part in ("train", "valid"):
        lists = data.read_letor(text[part], num_features=16, cache_dir=tmp_path)
        for shard in range(2):
            data.write_records(lists.shard(shard, 2), tmp_path / f"{part}.tfrecord-{shard}")
    files = [f"--{part}={tmp_path / part}.tfrecord-*" for part in ("train", "valid")]
    settings = ["--hidden=4", "--metrics=ndcg@5", "--best=ndcg_5", "--epochs=2", "--num_features=16", "--batch_size=8"]
    loss = ["--loss=smoothi_ndcg", '--loss_kwargs={"alpha": 3}']
    folder = f"--model_dir={tmp_path / 'model'}"
    printed = helpers.check_run("examples/tf_ranking_pipeline.py", folder, *settings, *files, *loss)
    assert "Epoch 2/2" in printed and "3/3" in printed and "val_metric/ndcg_5" in printed
    serialized = list(tf.data.TFRecordDataset(tf.io.gfile.glob(f"{tmp_path}/valid.tfrecord-*")).as_numpy_iterator())
    served = tf.saved_model.load(str(tmp_path / "model" / "export" / "best_model_by_metric"))
    scores = served.signatures[tf.saved_model.PREDICT_METHOD_NAME](tf.constant(serialized))["outputs"]
    assert scores.shape[0] == 8 and np.isfinite(scores).all()
