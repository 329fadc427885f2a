"""Importing TF-Ranking: with the Keras that it needs, with and without Estimators."""

import importlib.util
import sys

import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import _keras

needs_tf_keras = pytest.mark.skipif(importlib.util.find_spec("tf_keras") is None, reason="tf_keras is not installed")


def run(program):
    """The words that a program prints, and its standard error."""
    done = helpers.run_python("-c", program, TF_USE_LEGACY_KERAS=None)
    return done.stdout.split(), done.stderr


@pytest.mark.skipif(not _keras.IS_KERAS_3, reason="Keras 2 is active")
def test_keras_3_is_refused():
    with pytest.raises(ImportError, match=r"but Keras 3\.\S+ is active.* TF_USE_LEGACY_KERAS=1 before TensorFlow is"):
        importlib.import_module("tfr_smooth.tf_ranking")
    assert "tensorflow.estimator" not in sys.modules


@pytest.mark.slow
@needs_tf_keras
def test_without_the_variable_the_error_names_it_and_a_loss_warns_of_the_other_keras():
    program = """
import tensorflow as tf, tf_keras, tfr_smooth
print(float(tfr_smooth.losses.ListNetLoss()(tf.constant([[1.0, 0.0]]), tf.constant([[1.0, 2.0]]))) > 0)
import tfr_smooth.tf_ranking
"""
    printed, error = run(program)
    assert printed == ["True"] and "tf_keras is imported, but this loss belongs to the package keras" in error
    assert "ImportError: TF-Ranking needs Keras 2, but Keras 3." in error
    install = "pip install --no-deps tensorflow-ranking==0.5.5"
    assert all(part in error for part in ("tf_keras is imported, but", "TF_USE_LEGACY_KERAS=1", install))


@pytest.mark.slow
@needs_tf_keras
def test_the_variable_may_be_set_in_the_program_and_tensorflow_imported_first():
    program = """
import os
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf
import sys, tfr_smooth
print("tensorflow.estimator" in sys.modules)  # Only TF-Ranking needs a stand-in.
from tfr_smooth.tf_ranking import tfr
import tensorflow_ranking
print(tensorflow_ranking is tfr, tf.keras.Model.__module__)
"""
    (replaced, same, keras), _ = run(program)
    assert (replaced, same) == ("False", "True") and keras.startswith("tf_keras.")


@pytest.mark.skipif(_keras.IS_KERAS_3, reason="Keras 3 is refused before")
def test_a_missing_tf_ranking_is_named_and_leaves_no_estimator_stub(monkeypatch):
    helpers.tf_ranking()
    from tfr_smooth.tf_ranking import compatibility

    for name in ("tensorflow_ranking", *compatibility._STAND_INS):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "tensorflow_ranking", None)  # raises ImportError on import
    with pytest.raises(ImportError, match=r"needs TF-Ranking: pip install .*ranking"):
        compatibility.import_tf_ranking()
    assert "tensorflow.compat.v1.estimator" not in sys.modules


@needs_tf_keras
def test_apis_that_need_estimators_raise_an_error():
    tfr = helpers.tf_ranking()
    head = tfr.head.create_ranking_head(lambda labels, logits, features: None)
    with pytest.raises(NotImplementedError, match=r"tf\.estimator\.EstimatorSpec is not available.* has no Estimators"):
        head.create_estimator_spec({}, tfr.feature.tf_estimator.ModeKeys.PREDICT, tf.zeros([2, 3]))
    assert not hasattr(tfr.feature.tf_estimator, "__path__")


def test_serving_receivers_of_tf_ranking_work():
    tfr, spec = helpers.tf_ranking(), {"price": tf.io.FixedLenFeature([1], tf.float32, 0.0)}
    with tf.Graph().as_default():
        receiver = tfr.data.build_ranking_serving_input_receiver_fn(tfr.data.ELWC, {}, spec)()
    assert list(receiver.features) == ["price"] and receiver.receiver_tensors
