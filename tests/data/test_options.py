"""The options of the library's datasets."""

import time

import pytest
import tensorflow as tf

from tfr_smooth.data import batches, read_letor

BY_DATA = tf.data.experimental.AutoShardPolicy.DATA


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("".join(f"1 qid:{i} 1:{i}\n" for i in range(20)))
    return path


@pytest.mark.parametrize("kwargs", [{}, {"cache": True}, {"shuffle_buffer": 9, "seed": 1}, {"num_epochs": None}])
def test_autotuning_is_off_and_workers_shard_by_data(path, kwargs):
    chosen = read_letor(path, batch_size=4, **kwargs).options()
    assert chosen.autotune.enabled is False
    assert chosen.experimental_distribute.auto_shard_policy == BY_DATA


def test_the_buffer_of_batches_has_a_fixed_size():
    """AUTOTUNE would keep its initial size, since autotuning is off. The source records how many elements were read."""
    read = []

    def source():
        for i in range(100):
            read.append(i)
            yield i

    dataset = batches.prefetched(tf.data.Dataset.from_generator(source, output_signature=tf.TensorSpec([], tf.int32)))
    iterator = iter(dataset)
    next(iterator)
    deadline = time.time() + 30
    while len(read) < 3 and time.time() < deadline:
        time.sleep(0.01)
    time.sleep(0.2)
    assert len(read) == 3  # the requested element and two prefetched ones


def test_share_by_data_changes_no_other_option():
    mine = tf.data.Options()
    mine.autotune.enabled = True
    mine.deterministic = False
    chosen = batches.share_by_data(tf.data.Dataset.range(3).with_options(mine)).options()
    assert chosen.autotune.enabled is True and chosen.deterministic is False
    assert chosen.experimental_distribute.auto_shard_policy == BY_DATA
