"""The export in TF Serving's loader, compiled here against TensorFlow's C++ library."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from tests.serving.conftest import example, example_list
from tfr_smooth import models, serving

pytestmark = pytest.mark.slow


def test_every_signature_returns_the_scores_of_keras(exported, run_in_cpp):
    features, mask = exported.features, exported.mask
    lists = [rows[real].tolist() for rows, real in zip(features, mask, strict=True)]
    serialized = np.array([example_list([example(features=each) for each in rows]) for rows in lists], object)
    default, unmasked, ranked, *predicted = run_in_cpp(
        exported.path,
        [
            ("serving_default", {"features": features}),
            ("rank", {"features": features}),
            ("rank", {"features": features, "mask": mask}),
            ("predict", {"inputs": serialized}),
            ("tensorflow/serving/predict", {"inputs": serialized}),
        ],
    )
    masked, close = exported.scores(mask=mask), {"rtol": 1e-6, "atol": 1e-6}
    np.testing.assert_allclose(default["scores"], exported.scores(), **close)
    np.testing.assert_allclose(unmasked["scores"], exported.scores(), **close)
    np.testing.assert_allclose(ranked["scores"], masked, **close)
    np.testing.assert_array_equal(ranked["valid"], mask)
    for answer in predicted:
        np.testing.assert_allclose(answer["outputs"], masked, **close)
        assert (answer["outputs"][~mask] == np.float32(models.PADDING_SCORE)).all()


def test_bad_requests_return_a_specific_error(exported, run_in_cpp):
    short = np.array([example_list([example(features=[1.0, 2.0])])], object)
    ones = lambda *shape: np.ones(shape, np.float32)  # noqa: E731
    shape, mask = "is not compatible with expected shape [?,?,3]", "the mask must be [batch, list] like the features"
    length = "Key: features, Index: 0.  Number of float values != expected.  Values size: 2 but output shape: [3]"
    requests = [
        ("serving_default", {"features": ones(1, 2, 2)}, shape),
        ("rank", {"features": ones(1, 1, 2, 3)}, shape),
        ("rank", {"features": ones(2, 3, 3), "mask": np.ones([1, 3], bool)}, mask),
        ("rank", {"mask": np.ones([2, 2], bool)}, "features"),
        ("predict", {"inputs": short}, length),
        ("predict", {"inputs": np.array([b"\x0a\x02\xff\xff"], object)}, "Could not parse example input"),
        ("predict", {"inputs": np.array([], object)}, "must contain at least one value"),
    ]
    answers = run_in_cpp(exported.path, [request[:2] for request in requests])
    for answer, (*_, message) in zip(answers, requests, strict=True):
        assert isinstance(answer, str) and message in answer, (message, answer)


def test_the_warm_up_requests_return_scores(exported, run_in_cpp):
    """TF Serving runs them before it serves a model, and does not serve it if one fails."""
    file = exported.path / "assets.extra" / "tf_serving_warmup_requests"
    requests = []
    for record in tf.data.TFRecordDataset(str(file)):
        request = PredictionLog.FromString(record.numpy()).predict_log.request
        arrays = {name: tf.make_ndarray(proto) for name, proto in request.inputs.items()}
        requests.append((request.model_spec.signature_name, arrays))
    assert {name for name, _ in requests} == set(tf.saved_model.load(str(exported.path)).signatures)
    answers = run_in_cpp(exported.path, requests)
    for (name, _), outputs in zip(requests, answers, strict=True):
        assert not isinstance(outputs, str), (name, outputs)
        scores = outputs["scores" if "scores" in outputs else "outputs"]
        assert scores.size == 100 and (scores > serving.INVALID_SCORE).all(), name
