"""The order of queries in the batches of `Lists`: epochs, seeds, lists of similar length."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.data.readers import flat, order
from tfr_smooth.data import from_arrays


def lists_of(lengths):
    """Lists of these lengths, whose first feature is the number of the query."""
    queries = np.repeat(np.arange(len(lengths)), lengths)
    return from_arrays(np.stack([queries, np.arange(len(queries))], axis=1), queries % 3, queries)


LISTS = lists_of([1 + i % 5 for i in range(20)])


@pytest.mark.parametrize("list_size", [1, 3, 9])
def test_list_size_truncates_and_pads(list_size):
    queries = 0
    for inputs, labels in LISTS.batches(4, list_size=list_size, ids=True):
        assert labels.shape == (4, list_size)
        for query in range(4):
            kept = min(1 + queries % 5, list_size)
            first = inputs["features"].numpy()[query, 0, 1]
            assert inputs["features"].numpy()[query, :kept, 1].tolist() == [first + i for i in range(kept)]
            assert inputs["mask"].numpy()[query].tolist() == [i < kept for i in range(list_size)]
            assert (labels.numpy()[query, kept:] == -1).all() and not inputs["features"].numpy()[query, kept:].any()
            assert inputs["doc_id"].numpy()[query].tolist()[kept:] == [b""] * (list_size - kept)
            queries += 1
    assert queries == 20


def test_lists_are_padded_to_the_longest_of_the_batch_in_their_order_unless_shuffled():
    assert [labels.shape[1] for _, labels in LISTS.batches(3)] == [3, 5, 4, 5, 5, 3, 5]
    assert flat(LISTS.batches(3, num_epochs=2)) == list(range(20)) * 2


@pytest.mark.parametrize("seed", [None, 2**32 - 1])
def test_each_epoch_contains_every_query_once_in_a_new_order(seed):
    batches = order(LISTS.batches(3, shuffle=True, seed=seed, num_epochs=3))
    assert [len(batch) for batch in batches] == [3, 3, 3, 3, 3, 3, 2] * 3
    queries = list(itertools.chain(*batches))
    epochs = [queries[i : i + 20] for i in (0, 20, 40)]
    assert all(sorted(epoch) == list(range(20)) for epoch in epochs)
    others = [list(range(20)), flat(LISTS.batches(3, shuffle=True, seed=1))]
    assert len({tuple(epoch) for epoch in [*epochs, *others]}) == 5


@pytest.mark.parametrize("group_by_length", [False, True])
def test_a_resumed_run_reads_the_batches_of_an_uninterrupted_one(group_by_length):
    kwargs = {"shuffle": True, "seed": 7, "group_by_length": group_by_length}
    whole = order(LISTS.batches(3, num_epochs=3, **kwargs))
    tf.random.set_seed(99)  # Must have no effect.
    try:
        endless = LISTS.batches(3, num_epochs=None, first_epoch=1, **kwargs)
        tf.random.set_seed(98)
        assert order(LISTS.batches(3, num_epochs=1, first_epoch=2, **kwargs)) == whole[14:]
        assert order(endless.take(14)) == whole[7:]
    finally:
        tf.random.set_seed(None)


def test_passes_over_a_dataset_differ_without_a_seed_and_repeat_with_one():
    fresh = LISTS.batches(3, shuffle=True)
    assert len({tuple(flat(fresh)) for _ in range(4)}) == 4
    seeded = LISTS.batches(3, shuffle=True, seed=1)
    assert len({tuple(flat(seeded)) for _ in range(4)}) == 1


def test_the_number_of_batches_is_known():
    for kwargs in ({}, {"group_by_length": True}):
        for batch_size, drop_remainder, batches in ((3, False, 14), (3, True, 12), (50, True, 0)):
            dataset = LISTS.batches(batch_size, num_epochs=2, drop_remainder=drop_remainder, **kwargs)
            assert int(dataset.cardinality()) == len(list(dataset)) == batches
    dataset = LISTS.batches(20, num_epochs=None, shuffle=True)
    assert int(dataset.cardinality()) == tf.data.INFINITE_CARDINALITY
    assert [sorted(epoch) for epoch in order(dataset.take(5))] == [list(range(20))] * 5


def test_autotuning_is_off_and_workers_shard_by_data():
    chosen = LISTS.batches(4).options()
    assert chosen.autotune.enabled is False
    assert chosen.experimental_distribute.auto_shard_policy == tf.data.experimental.AutoShardPolicy.DATA


# As in MSLR-WEB30K: 1 to 1,251 documents, 120 on average, a long tail.
LENGTHS = np.clip(np.random.RandomState(0).lognormal(4.6, 0.6, 500), 1, 1251).astype(int)
LONG = lists_of(LENGTHS)


def grouped(**kwargs):
    return LONG.batches(16, group_by_length=True, **kwargs)


def padding(dataset):
    masks = [inputs["mask"].numpy() for inputs, _ in dataset]
    return 1.0 - sum(mask.sum() for mask in masks) / sum(mask.size for mask in masks)


def test_grouping_by_length_reduces_padding_and_keeps_every_query_once():
    assert padding(LONG.batches(16)) > 0.4
    for kwargs in ({"shuffle": True}, {}):
        dataset = grouped(**kwargs)
        assert padding(dataset) < 0.2
        batches = order(dataset)
        assert sorted(sum(batches, [])) == list(range(500))
        assert sorted(map(len, batches)) == [500 % 16] + [16] * (500 // 16)


def test_batches_grouped_by_length_come_in_a_random_order_that_the_seed_reproduces():
    dataset = grouped(shuffle=True, seed=1, num_epochs=2)
    batches = order(dataset)
    first, second = batches[:32], batches[32:]
    assert {frozenset(batch) for batch in first} != {frozenset(batch) for batch in second}
    assert order(dataset) == batches
    # The lengths neither rise nor fall over the epoch.
    assert abs(np.corrcoef([LENGTHS[batch].mean() for batch in first], np.arange(32))[0, 1]) < 0.6


def test_queries_are_sorted_within_pools_of_50_batches():
    many = lists_of(np.arange(1, 301) % 7 + 1)
    batches = order(many.batches(2, group_by_length=True))
    for pool in (batches[:50], batches[50:100], batches[100:]):
        lengths = many.lengths[sum(pool, [])]
        assert (np.diff(lengths) >= 0).all()
    assert sorted(sum(batches[:50], [])) == list(range(100))


def test_the_partial_batch_may_be_at_any_place_of_the_order_by_length():
    lists = lists_of([1, 1, 5, 5, 9])
    batches = order(lists.batches(2, group_by_length=True, shuffle=True, seed=1, num_epochs=20))
    assert {int(lists.lengths[batch[0]]) for batch in batches if len(batch) == 1} == {1, 5, 9}


def test_the_dropped_remainder_is_not_only_the_longest_lists():
    batches = order(grouped(shuffle=True, seed=2, drop_remainder=True))
    assert list(map(len, batches)) == [16] * 31
    dropped = sorted(set(range(500)) - set(sum(batches, [])))
    assert len(dropped) == 4 and LENGTHS[dropped].min() < np.median(LENGTHS)
