"""Version folders are published atomically, and their cards describe the export."""

import json
import re

import numpy as np
import pytest
import tensorflow as tf

import tfr_smooth
from tests import helpers
from tfr_smooth.serving import versions


def write_a_file(folder, number):
    (folder / "saved_model.pb").write_text(str(number))


def names(path):
    return sorted(child.name for child in path.iterdir())


def test_versions_start_at_1_follow_the_highest_and_are_never_replaced(tmp_path):
    path = tmp_path / "new" / "ranker"
    first, second = (versions.publish(path, None, write_a_file) for _ in range(2))
    assert (first.name, second.name) == ("1", "2")
    assert (second / "saved_model.pb").read_text() == "2" and second.stat().st_mode & 0o777 == 0o755
    versions.publish(path, 20, write_a_file)
    (path / "30b").mkdir()
    assert versions.publish(path, None, write_a_file).name == "21"
    assert names(path) == ["1", "2", "20", "21", "30b"]
    with pytest.raises(ValueError, match="`version` must be a new version, got 2: .*/2 exists"):
        versions.publish(path, 2, lambda folder, number: (folder / "other").touch())
    assert names(path / "2") == ["saved_model.pb"]
    with pytest.raises(ValueError, match="`path` must be a local directory .* got 'gs://bucket/ranker'"):
        versions.publish("gs://bucket/ranker", None, write_a_file)


def test_the_loser_of_a_race_does_not_change_the_version_of_the_winner(tmp_path):
    def write(folder, number):
        (folder / "loser").touch()
        versions.publish(tmp_path, number, write_a_file)  # another process

    with pytest.raises(ValueError, match="`version` must be a new version, got 1: .* exists"):
        versions.publish(tmp_path, None, write)
    assert names(tmp_path) == ["1"] and names(tmp_path / "1") == ["saved_model.pb"]


@pytest.mark.parametrize(
    "error", [OSError("disk full"), tf.errors.ResourceExhaustedError(None, None, "disk full\n...")]
)
def test_a_failed_export_leaves_nothing(error, tmp_path):
    def fail(folder, number):
        (folder / "half").touch()
        raise error

    with pytest.raises(OSError, match="(disk full|No space left on device: '.*/1')$"):
        versions.publish(tmp_path, None, fail)
    assert names(tmp_path) == []


@pytest.mark.slow
def test_a_killed_export_leaves_no_version_and_does_not_use_up_a_number(tmp_path):
    program = """
import sys, time
from tfr_smooth.serving import versions
def write_and_wait(folder, number):
    (folder / "saved_model.pb").touch()
    time.sleep(600)
versions.publish(sys.argv[1], None, write_and_wait)
"""
    process = helpers.start_python("-c", program, tmp_path)
    try:
        helpers.wait_until(lambda: list(tmp_path.glob("*/saved_model.pb")), process)
    finally:
        process.kill()
        process.communicate()
    (left,) = names(tmp_path)
    assert left.startswith(".unfinished-")
    assert versions.publish(tmp_path, None, write_a_file).name == "1"


def test_the_json_card_has_all_information(exported):
    text = (exported.path / "assets.extra" / "model_card.json").read_text()
    card = json.loads(text, parse_constant=lambda name: 1 / 0)  # strict: no NaN, no Infinity
    assert card["model"]["class"] == "FeedForwardScorer" and card["model"]["version"] == 1
    assert card["model"]["parameters"] == exported.model.count_params()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", card["model"]["exported"])
    assert card["features"] == [{"name": "features", "of": "document", "type": "float32", "shape": [3]}]
    assert card["data"] == {"train": "synthetic | made up", "queries": 4}
    assert card["loss"]["class"] == "SmoothINDCGLoss" and card["loss"]["config"]["topn"] == 5
    assert card["metrics"] == {"valid": {"ndcg": 0.5, "map": "NaN"}, "test": {"ndcg": 0.25, "map": 0.125}}
    assert card["software"]["tensorflow"] == tf.__version__
    # Only the Keras package that created the model, of those that may be installed.
    keras = tf.keras.Model.__module__.partition(".")[0].replace("_", "-")
    assert {"keras", "tf-keras"} & set(card["software"]) == {keras}
    assert card["software"]["tfr_smooth"] == tfr_smooth.__version__
    assert card["software"]["numpy"] == np.__version__
    assert card["training"] is None  # as what else was not given
    assert card["special_scores"] == {"padding": -1e30, "invalid": -1e29}
    assert card["signatures"]["rank"]["inputs"] == {"features": "float32 [None, None, 3]", "mask": "bool [None, None]"}
