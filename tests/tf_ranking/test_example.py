"""The pipeline example, run from the command line."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import data

helpers.tf_ranking(module=True)

# Each run of the program starts Python and imports TensorFlow.
pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).absolute().parents[2]


def run(*arguments):
    program = [sys.executable, str(ROOT / "examples" / "tf_ranking_pipeline.py"), "--hidden=4", "--metrics=ndcg@5"]
    return subprocess.run(
        [*program, "--best=ndcg_5", "--batch_size=8", *arguments], capture_output=True, text=True, cwd=ROOT
    )


def test_training_on_letor_text_and_on_records(tmp_path):
    """Trains on LETOR text, resumes, and serves records; then trains on the records with a loss of TF-Ranking."""
    text = data.write_synthetic_letor(tmp_path, num_queries=(24, 8, 2), num_features=16)
    arguments = [f"--train={text['train']}", f"--valid={text['valid']}", f"--model_dir={tmp_path / 'text'}"]
    arguments += ["--loss=smoothi_ndcg", '--loss_kwargs={"alpha": 3}']
    done = run(*arguments, "--epochs=1")
    assert done.returncode == 0, done.stderr
    done = run(*arguments, "--epochs=2")
    assert done.returncode == 0, done.stderr
    assert "Epoch 2/2" in done.stdout and "Epoch 1/2" not in done.stdout and "val_metric/ndcg_5" in done.stdout

    (path,) = data.letor_to_tfrecord(text["valid"], tmp_path / "r", num_features=16)
    records = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    served = tf.saved_model.load(str(tmp_path / "text" / "export" / "best_model_by_metric"))
    scores = served.signatures["serving_default"](tf.constant(records))["outputs"]
    assert scores.shape[0] == 8 and np.isfinite(scores).all()

    for part in ("train", "valid"):
        data.letor_to_tfrecord(text[part], tmp_path / f"{part}.tfrecord", num_features=16, num_shards=2)
    arguments = [f"--{part}={tmp_path / part}.tfrecord-*" for part in ("train", "valid")]
    arguments += ["--format=elwc", "--num_features=16", f"--model_dir={tmp_path / 'records'}", "--epochs=1"]
    done = run(*arguments, "--loss=approx_ndcg_loss")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--train=a"], "--train and --valid must be given together"),
        (["--format=elwc"], "--format=elwc requires --train and --valid"),
        (["--loss=ndcg"], "value should be one of <smoothi_ndcg|"),
    ],
)
def test_bad_flags_are_explained(arguments, problem, tmp_path):
    done = run(f"--model_dir={tmp_path}", *arguments)
    assert done.returncode != 0
    assert problem in done.stderr + done.stdout
