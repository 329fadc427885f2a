"""`read_letor(cache_dir=FOLDER, portable=True)`: the parsed queries kept on disk, to be read without Python."""

import os

import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth import data

TEXT = "1 qid:a 1:0.5 2:2 #docid = d7\n0 qid:a 2:1\n0 qid:b 1:0.1\n2 qid:c 1:3 2:4\n0 qid:c 1:1\n1 qid:c 2:7\n"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text(TEXT)
    return path


def read(path, **kwargs):
    return data.read_letor(path, **{"batch_size": 2, "num_features": 2, "return_ids": True, **kwargs})


def assert_same(some, others):
    some, others = list(some), list(others)
    assert len(some) == len(others) > 0
    for one, other in zip(some, others, strict=True):
        tf.nest.map_structure(lambda a, b: np.testing.assert_array_equal(a, b), one, other)


@pytest.mark.parametrize(
    "how",
    [{}, {"num_epochs": 3, "shuffle_buffer": 10, "seed": 1}, {"list_size": 2}, {"return_ids": False, "batch_size": 1}],
)
def test_it_is_the_same_data(path, tmp_path, how):
    for _ in range(2):  # written, then found
        assert_same(read(path, cache_dir=tmp_path / "kept", portable=True, **how), read(path, **how))
    assert len(list((tmp_path / "kept").iterdir())) == 1


def test_the_files_are_parsed_once_while_they_stay_as_they_are(path, tmp_path):
    kept, times = tmp_path / "kept", os.stat(path).st_mtime_ns
    list(read(path, cache_dir=kept, portable=True))
    path.write_text(TEXT.replace("0.5", "0.6"))
    os.utime(path, ns=(times, times))  # looks as it was: a second parse would show
    inputs, _ = next(iter(read(path, cache_dir=kept, portable=True)))
    assert inputs["features"][0, 0, 0] == np.float32(0.5)
    os.utime(path, ns=(times + 1, times + 1))
    inputs, _ = next(iter(read(path, cache_dir=kept, portable=True)))
    assert inputs["features"][0, 0, 0] == np.float32(0.6)
    assert_same(read(path, cache_dir=kept, portable=True, num_features=3), read(path, num_features=3))


def test_bad_input_leaves_nothing_behind(path, tmp_path):
    path.write_text(TEXT + "1 qid:d 1:x\n")
    with pytest.raises(ValueError, match=r"train.txt:7: value of feature 1: 'x' is no finite"):
        read(path, cache_dir=tmp_path / "kept", portable=True)
    assert not (tmp_path / "kept").exists()


def test_it_needs_no_python(path, tmp_path):
    """So the graph can be read in another process, as by the workers of a parameter server."""
    kept = read(path, cache_dir=tmp_path / "kept", portable=True, shuffle_buffer=3, num_epochs=None)
    assert b"PyFunc" not in kept._as_serialized_graph().numpy()
    assert b"PyFunc" in read(path)._as_serialized_graph(allow_stateful=True).numpy()


@pytest.mark.parametrize("arguments", [{}, {"cache_dir": "kept", "group_by_length": True}])
def test_it_needs_a_folder_and_groups_nothing(path, arguments):
    with pytest.raises(ValueError, match="`portable` must be False without a `cache_dir` and with `group_by_length`"):
        read(path, portable=True, **arguments)
