"""The request bodies in docs/serving.md are valid for an export of three features."""

import base64
import json
import re

import numpy as np
import tensorflow as tf

from tests.helpers.documents import read
from tfr_smooth import models

BODIES = [json.loads(body) for body in re.findall(r"^```json\n(.*?)^```", read("docs/serving.md"), re.M | re.S)]
DOCUMENTS = np.array([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]], np.float32)


def tensors(body, names):
    """The inputs that TF Serving creates from a body for the Predict API."""
    if "inputs" in body:
        columns = body["inputs"]
    elif len(names) == 1 and not (isinstance(body["instances"][0], dict) and set(body["instances"][0]) == set(names)):
        columns = {names[0]: body["instances"]}
    else:
        assert all(set(row) == set(names) for row in body["instances"])  # each instance has every input
        columns = {name: [row[name] for row in body["instances"]] for name in names}
    assert set(columns) == set(names)
    return {name: tf.constant([from_base64(value) for value in column]) for name, column in columns.items()}


def from_base64(value):
    return base64.b64decode(value["b64"], validate=True) if isinstance(value, dict) else value


def test_a_body_for_each_signature_scores_the_documents_it_shows(exported, loaded):
    names = [body.get("signature_name", "serving_default") for body in BODIES]
    assert len(names) == 4 and set(names) == {"serving_default", "rank", "predict"}
    expected = exported.scores(DOCUMENTS[np.newaxis])[0]
    for name, body in zip(names, BODIES, strict=True):
        signature = loaded.signatures[name]
        outputs = signature(**tensors(body, list(signature.structured_input_signature[1])))
        scores = outputs["outputs" if name == "predict" else "scores"].numpy()
        np.testing.assert_allclose(scores[0], expected[: scores.shape[1]], rtol=1e-6, atol=1e-6)
        if name == "rank":
            np.testing.assert_allclose(scores[1], [expected[0], models.PADDING_SCORE], rtol=1e-6, atol=1e-6)
