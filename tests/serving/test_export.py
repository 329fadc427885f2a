"""The exported SavedModel: same scores, raw tensors, TensorFlow alone."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth import models, serving


def make_model(normalization=None):
    tf.keras.utils.set_random_seed(3)
    model = models.FeedForwardScorer(hidden=[8], normalization=normalization)
    features = np.random.RandomState(0).randn(4, 5, 3).astype(np.float32)
    mask = np.random.RandomState(1).rand(4, 5) < 0.7
    model({"features": features, "mask": mask}, training=True)  # so that the batch statistics are not trivial
    return model, features, mask


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    model, features, mask = make_model()
    path = tmp_path_factory.mktemp("serving") / "export"
    serving.export_ranker(model, path, num_features=3)
    return model, features, mask, str(path)


def test_signature(exported):
    signature = tf.saved_model.load(exported[-1]).signatures["serving_default"]
    assert signature.structured_input_signature == (
        (),
        {
            "features": tf.TensorSpec([None, None, 3], tf.float32, name="features"),
            "mask": tf.TensorSpec([None, None], tf.bool, name="mask"),
        },
    )
    assert list(signature.structured_outputs) == ["scores"]
    assert signature.structured_outputs["scores"].dtype == tf.float32


def test_scores_are_those_of_the_model(exported):
    model, features, mask, path = exported
    loaded = tf.saved_model.load(path)
    expected = model({"features": features, "mask": mask}, training=False).numpy()
    signature = loaded.signatures["serving_default"]
    found = signature(features=tf.constant(features), mask=tf.constant(mask))["scores"].numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert (found[~mask] == models.PADDING_SCORE).all()
    without = loaded.rank(tf.constant(features))["scores"].numpy()
    np.testing.assert_allclose(without, model(features, training=False).numpy(), rtol=1e-6)


def test_the_mask_may_be_left_out_where_a_server_runs_the_signature(exported):
    """As TF Serving does: a session, the signature's tensor names, only the inputs that came."""
    model, features, mask, path = exported
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        signature = tf.compat.v1.saved_model.load(session, ["serve"], path).signature_def["serving_default"]
        assert signature.defaults["mask"].bool_val == [True]
        fetch = signature.outputs["scores"].name
        feed = {signature.inputs["features"].name: features}
        without = session.run(fetch, feed)
        masked = session.run(fetch, {**feed, signature.inputs["mask"].name: mask})
    np.testing.assert_allclose(without, model(features, training=False).numpy(), rtol=1e-6)
    expected = model({"features": features, "mask": mask}, training=False).numpy()
    np.testing.assert_allclose(masked, expected, rtol=1e-6)


def test_loads_with_tensorflow_alone(exported, tmp_path):
    model, features, _, path = exported
    np.save(tmp_path / "features.npy", features)
    program = """
import json, sys
import numpy, tensorflow as tf
loaded = tf.saved_model.load(sys.argv[1])
scores = loaded.signatures["serving_default"](
    features=tf.constant(numpy.load(sys.argv[2])), mask=tf.constant([[True]]))["scores"]
ours = [name for name in sys.modules if name.startswith("tfr_smooth")]
print(json.dumps({"scores": scores.numpy().tolist(), "ours": ours}))
"""
    arguments = [sys.executable, "-c", program, path, str(tmp_path / "features.npy")]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["ours"] == []
    np.testing.assert_allclose(answer["scores"], model(features, training=False).numpy(), rtol=1e-6)


@pytest.mark.parametrize("normalization", ["min_max", "standardize", "log1p"])
def test_normalisation_is_inside(normalization, tmp_path):
    model, features, mask = make_model(normalization)
    model.adapt([({"features": features, "mask": mask}, None)])
    serving.export_ranker(model, tmp_path / "export", num_features=3)
    loaded = tf.saved_model.load(str(tmp_path / "export"))
    expected = model({"features": features, "mask": mask}, training=False).numpy()
    np.testing.assert_allclose(loaded.rank(features, mask)["scores"].numpy(), expected, rtol=1e-6)


def test_replaces_the_export_before_and_leaves_nothing_else(tmp_path):
    model, features, _ = make_model()
    path = tmp_path / "export"
    serving.export_ranker(model, path, num_features=3)
    (path / "old").touch()
    serving.export_ranker(model, path, num_features=3)
    assert os.listdir(tmp_path) == ["export"]
    assert not (path / "old").exists()


def test_a_failed_export_leaves_the_one_before(tmp_path, monkeypatch):
    model, features, _ = make_model()
    path = tmp_path / "export"
    serving.export_ranker(model, path, num_features=3)

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(tf.saved_model, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        serving.export_ranker(model, path, num_features=3)
    loaded = tf.saved_model.load(str(path))
    assert loaded.rank(features)["scores"].shape == (4, 5)


def test_bad_arguments_are_named(tmp_path):
    with pytest.raises(ValueError, match="`num_features` must be an integer >= 1, got 0"):
        serving.export_ranker(make_model()[0], tmp_path / "export", num_features=0)
