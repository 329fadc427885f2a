"""The model card describes the export, and includes the given information."""

import json
import re

import numpy as np
import tensorflow as tf

import tfr_smooth
from tfr_smooth import losses
from tfr_smooth.serving import model_card


def test_the_json_card_has_all_information(exported):
    text = (exported.path / "assets.extra" / "model_card.json").read_text()
    card = json.loads(text, parse_constant=lambda name: 1 / 0)  # strict: no NaN, no Infinity
    assert card["model"]["class"] == "FeedForwardScorer" and card["model"]["version"] == 1
    assert card["model"]["parameters"] == exported.model.count_params()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", card["model"]["exported"])
    assert card["features"] == [{"name": "features", "of": "document", "type": "float32", "shape": [3]}]
    assert card["data"] == {"train": "synthetic | made up", "queries": 4}
    assert card["loss"]["class"] == "SmoothINDCGLoss" and card["loss"]["config"]["topn"] == 5
    assert card["metrics"] == {"valid": {"ndcg": 0.5, "map": "nan"}, "test": {"ndcg": 0.25, "map": 0.125}}
    assert card["software"]["tensorflow"] == tf.__version__
    # Only the Keras package that created the model, of those that may be installed.
    keras = tf.keras.Model.__module__.partition(".")[0].replace("_", "-")
    assert {"keras", "tf-keras"} & set(card["software"]) == {keras}
    assert card["software"]["tfr_smooth"] == tfr_smooth.__version__
    assert card["software"]["numpy"] == np.__version__
    assert card["special_scores"] == {"padding": -1e30, "invalid": -1e29}
    assert card["signatures"]["rank"]["inputs"] == {"features": "float32 [None, None, 3]", "mask": "bool [None, None]"}


def test_missing_information_is_null():
    content = model_card.complete({"loss": losses.SmoothIMAPLoss()}, model={"name": "x"})
    assert content["data"] is None and content["loss"]["class"] == "SmoothIMAPLoss"
