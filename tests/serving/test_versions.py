"""Version folders are published atomically."""

import pathlib

import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import models, serving
from tfr_smooth.serving import versions


def write_a_file(folder, number):
    (folder / "saved_model.pb").write_text(str(number))


def names(path):
    return sorted(child.name for child in path.iterdir())


def test_versions_start_at_1_and_follow_the_highest(tmp_path):
    path = tmp_path / "new" / "ranker"
    first, second = (versions.publish(path, None, write_a_file) for _ in range(2))
    assert (first.name, second.name) == ("1", "2")
    assert (second / "saved_model.pb").read_text() == "2"
    versions.publish(path, 20, write_a_file)
    (path / "notes").mkdir()
    (path / "30b").mkdir()
    assert versions.publish(path, None, write_a_file).name == "21"
    assert names(path) == ["1", "2", "20", "21", "30b", "notes"]


def test_a_version_is_never_replaced(tmp_path):
    versions.publish(tmp_path, 3, write_a_file)
    with pytest.raises(ValueError, match="`version` must be a new version, got 3: .*/3 exists"):
        versions.publish(tmp_path, 3, lambda folder, number: (folder / "other").touch())
    assert names(tmp_path / "3") == ["saved_model.pb"]


def lose(path):
    """Returns a function that writes a version while another process publishes version 1."""

    def write(folder, number):
        (folder / "loser").write_text(str(number))
        if number == 1:
            versions.publish(path, number, write_a_file)

    return write


def test_the_loser_of_a_race_does_not_change_the_version_of_the_winner(tmp_path):
    with pytest.raises(ValueError, match="`version` must be a new version, got 1: .* exists"):
        versions.publish(tmp_path, 1, lose(tmp_path))
    assert names(tmp_path) == ["1"] and names(tmp_path / "1") == ["saved_model.pb"]


def test_the_loser_of_a_race_for_the_next_version_publishes_the_one_after_it(tmp_path):
    assert versions.publish(tmp_path, None, lose(tmp_path)).name == "2"
    assert names(tmp_path) == ["1", "2"] and names(tmp_path / "1") == ["saved_model.pb"]
    assert (tmp_path / "2" / "loser").read_text() == "2"


def test_other_users_may_read_a_version(tmp_path):
    assert versions.publish(tmp_path, None, write_a_file).stat().st_mode & 0o777 == 0o755


def test_remote_folders_are_refused():
    with pytest.raises(ValueError, match="`path` must be a local directory .* got 'gs://bucket/ranker'"):
        versions.publish("gs://bucket/ranker", None, write_a_file)


def test_a_failed_export_leaves_nothing(tmp_path, monkeypatch):
    def fail(obj, folder, **kwargs):
        pathlib.Path(folder, "half").touch()
        raise OSError("disk full")

    monkeypatch.setattr(tf.saved_model, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        serving.export_ranker(models.FeedForwardScorer(hidden=[4]), tmp_path, num_features=3)
    assert names(tmp_path) == []


@pytest.mark.slow
def test_a_killed_export_leaves_no_version_and_does_not_use_up_a_number(tmp_path):
    program = """
import sys, time
import tensorflow as tf
from tfr_smooth import models, serving
save = tf.saved_model.save
def save_and_wait(*args, **kwargs):
    save(*args, **kwargs)
    time.sleep(600)
tf.saved_model.save = save_and_wait
serving.export_ranker(models.FeedForwardScorer(hidden=[4]), sys.argv[1], num_features=3)
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
