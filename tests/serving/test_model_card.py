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


def test_the_markdown_card_has_all_sections_and_valid_tables(exported):
    text = (exported.path / "assets.extra" / "model_card.md").read_text()
    headings = re.findall(r"^## (.*)$", text, re.M)
    assert headings == [
        *("Model", "Features", "Signatures", "Special scores"),
        *("Description", "Data", "Training", "Loss", "Metrics", "Software"),
    ]
    assert "\nFor the tests.\n" in text
    assert "|  | ndcg | map |\n| --- | --- | --- |\n| valid | 0.5 | nan |\n| test | 0.25 | 0.125 |\n" in text
    assert "| train | synthetic \\| made up |\n" in text
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1, table


def test_names_from_data_do_not_change_the_card():
    name = "<script>alert(1)</script> [a](http://b) | c\n## d \x1b[31m"
    card = {
        "data": {name: [name]},
        "metrics": {"test": {name: 1.0}, "valid": {name: 2.0}},
        "description": "Two\nlines of <b>text</b>",
    }
    text = model_card.to_markdown(model_card.complete(card, features=[{"name": name}]))
    assert re.findall(r"<|\]\(|\x1b", text) == []
    headings = "Model card, Features, Description, Data, Training, Loss, Metrics, Software"
    assert re.findall(r"^##? (.*)$", text, re.M) == headings.split(", ")
    assert "\nTwo\nlines of &lt;b&gt;" in text and "alert(1)" in text and r"\n## d \x1b[31m" in text


def test_missing_information_is_marked_as_not_given():
    content = model_card.complete({"loss": losses.SmoothIMAPLoss()}, model={"name": "x"})
    assert content["data"] is None and content["loss"]["class"] == "SmoothIMAPLoss"
    assert "## Metrics\n\nnot given\n" in model_card.to_markdown(content)
