"""The export in TF Serving's loader, compiled here against TensorFlow's C++ library."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from tfr_smooth import models, serving

pytestmark = pytest.mark.slow

PADDING, INVALID = np.float32(models.PADDING_SCORE), np.float32(serving.INVALID_SCORE)


def test_every_signature_returns_the_scores_of_keras(exported, protos, run_in_cpp):
    example, example_list = protos
    features, mask = exported.features, exported.mask
    lists = [
        [example(features=document) for document, real in zip(rows.tolist(), row_mask, strict=True) if real]
        for rows, row_mask in zip(features, mask, strict=True)
    ]
    serialized = np.array([example_list(documents) for documents in lists], object)
    answers = run_in_cpp(
        exported.path,
        [
            ("serving_default", {"features": features}),
            ("rank", {"features": features}),
            ("rank", {"features": features, "mask": mask}),
            ("predict", {"inputs": serialized}),
            ("tensorflow/serving/predict", {"inputs": serialized}),
        ],
    )
    whole, masked = exported.scores(), exported.scores(mask=mask)
    close = {"rtol": 1e-6, "atol": 1e-6}
    np.testing.assert_allclose(answers[0]["scores"], whole, **close)
    np.testing.assert_allclose(answers[1]["scores"], whole, **close)
    np.testing.assert_allclose(answers[2]["scores"], masked, **close)
    np.testing.assert_array_equal(answers[2]["valid"], mask)
    for answer in answers[3:]:
        np.testing.assert_allclose(answer["outputs"], masked, **close)
        assert (answer["outputs"][~mask] == PADDING).all()


def test_bad_requests_return_a_specific_error(exported, protos, run_in_cpp):
    example, example_list = protos
    short = np.array([example_list([example(features=[1.0, 2.0])])], object)
    widths = [np.ones([1, 2, width], np.float32) for width in (1, 2, 4, 6)]
    answers = run_in_cpp(
        exported.path,
        [
            *[(signature, {"features": wrong}) for signature in ("serving_default", "rank") for wrong in widths],
            ("serving_default", {"features": np.ones([2, 3], np.float32)}),
            ("serving_default", {"features": np.ones([1, 1, 2, 3], np.float32)}),
            ("rank", {"features": np.ones([2, 3, 3], np.float32), "mask": np.ones([1, 3], bool)}),
            ("rank", {"features": np.ones([2, 3, 3], np.float32), "mask": np.ones([2, 2], bool)}),
            ("rank", {"mask": np.ones([2, 2], bool)}),
            ("predict", {"inputs": short}),
            ("predict", {"inputs": np.array([b"\x0a\x02\xff\xff"], object)}),
            ("predict", {"inputs": np.array([], object)}),
        ],
    )
    expected = [
        *(["is not compatible with expected shape [?,?,3]"] * 10),
        *(["the mask must be [batch, list] like the features"] * 2),
        "features",
        "Key: features, Index: 0.  Number of float values != expected.  Values size: 2 but output shape: [3]",
        "Could not parse example input",
        "must contain at least one value",
    ]
    assert len(answers) == len(expected)
    for answer, message in zip(answers, expected, strict=True):
        assert isinstance(answer, str) and message in answer, (message, answer)


def test_empty_lists_and_invalid_documents_get_special_scores(exported, protos, run_in_cpp):
    example, example_list = protos
    features = exported.features[:1, :3].copy()
    expected = exported.scores(features[:, [0, 2]])
    features[0, 1, 2] = np.nan
    infinite = [example(features=row) for row in np.where(np.isnan(features), np.inf, features)[0].tolist()]
    answers = run_in_cpp(
        exported.path,
        [
            ("serving_default", {"features": np.ones([2, 0, 3], np.float32)}),
            ("rank", {"features": np.ones([2, 0, 3], np.float32)}),
            ("rank", {"features": np.ones([2, 3, 3], np.float32), "mask": np.zeros([2, 3], bool)}),
            ("predict", {"inputs": np.array([example_list([]), b""], object)}),
            ("rank", {"features": features}),
            ("predict", {"inputs": np.array([example_list(infinite)], object)}),
        ],
    )
    assert answers[0]["scores"].shape == (2, 0)
    assert answers[1]["scores"].shape == (2, 0)
    assert (answers[2]["scores"] == PADDING).all() and not answers[2]["valid"].any()
    assert (answers[2]["order"] == -1).all()
    assert answers[3]["outputs"].tolist() == [[PADDING], [PADDING]]
    for scores in (answers[4]["scores"], answers[5]["outputs"]):
        np.testing.assert_allclose(scores[:, [0, 2]], expected, rtol=1e-6, atol=1e-6)
        assert scores[0, 1] == INVALID
    assert answers[4]["valid"].tolist() == [[True, False, True]]
    assert answers[4]["order"][0, 2] == 1  # ranked last


def test_the_warm_up_requests_return_scores(exported, run_in_cpp):
    """TF Serving runs them before it serves a model, and does not serve it if one fails."""
    file = exported.path / "assets.extra" / "tf_serving_warmup_requests"
    logs = [PredictionLog.FromString(record.numpy()) for record in tf.data.TFRecordDataset(str(file))]
    requests = []
    for log in logs:
        assert log.WhichOneof("log_type") == "predict_log"
        request = log.predict_log.request
        arrays = {name: tf.make_ndarray(proto) for name, proto in request.inputs.items()}
        requests.append((request.model_spec.signature_name, arrays))
    assert {name for name, _ in requests} == set(tf.saved_model.load(str(exported.path)).signatures)
    answers = run_in_cpp(exported.path, requests)
    for (name, _), outputs in zip(requests, answers, strict=True):
        assert not isinstance(outputs, str), (name, outputs)
        scores = outputs["scores" if "scores" in outputs else "outputs"]
        assert scores.size == 100 and (scores > INVALID).all(), name
