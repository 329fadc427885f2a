"""The binary cache: its batches equal those from text, and it follows its source; lists grouped by length."""

import itertools
import os

import numpy as np
import pytest

from tests.data.readers import OPTIONS, assert_same_batches, flat, order, write_letor
from tfr_smooth.data import letor, query_cache, read_letor


@pytest.fixture
def path(tmp_path):
    return write_letor(tmp_path / "a.txt", [1 + i % 5 for i in range(23)])


SOURCES = ["memory", "disk", "disk, loaded into memory"]


def cached(source, folder):
    """The arguments of `read_letor` that select this source instead of text."""
    return {"cache": source != "disk", "cache_dir": None if source == "memory" else folder / "cache"}


READS = [*OPTIONS, {"return_ids": True}, {"num_features": 6}]
# One way to read per source is fast.
FAST = [("disk", 1), ("memory", 3), ("disk, loaded into memory", 5)]
COMBINATIONS = [
    pytest.param(source, kwargs, marks=[] if (source, i) in FAST else [pytest.mark.slow])
    for i, kwargs in enumerate(READS)
    for source in SOURCES
]


@pytest.mark.parametrize(("source", "kwargs"), COMBINATIONS)
def test_cached_batches_equal_those_from_text(path, tmp_path, source, kwargs):
    expected = read_letor(path, batch_size=4, **kwargs)
    for _ in range(2):  # writes the cache, then reuses it
        found = read_letor(path, batch_size=4, **cached(source, tmp_path), **kwargs)
        assert found.cardinality() == len(list(expected))
        for _ in range(2):
            assert_same_batches(found, expected)


@pytest.mark.parametrize("source", [None, *SOURCES])
def test_datasets_in_memory_need_no_python_function(path, tmp_path, source):
    """So another process can run the graph, such as a worker of a parameter server."""
    chosen = {} if source is None else cached(source, tmp_path)
    dataset = read_letor(path, batch_size=4, return_ids=True, shuffle_buffer=3, num_epochs=None, **chosen)
    graph = dataset._as_serialized_graph(allow_stateful=True).numpy()
    assert (b"PyFunc" in graph) == (source in (None, "disk"))


def test_a_cache_on_disk_is_not_stored_in_the_graph(tmp_path):
    path = write_letor(tmp_path / "a.txt", [100] * 40, width=50)  # 800 kB of features
    sizes = {}
    for source in ("memory", "disk, loaded into memory"):
        dataset = read_letor(path, batch_size=4, **cached(source, tmp_path))
        sizes[source] = len(dataset._as_serialized_graph().numpy())
    assert sizes["memory"] > 800_000 > 10 * sizes["disk, loaded into memory"]


def test_unseeded_epochs_differ_and_contain_each_query_once(path, tmp_path):
    dataset = read_letor(path, batch_size=4, cache_dir=tmp_path, shuffle_buffer=30)
    epochs = [flat(dataset) for _ in range(3)]
    assert all(sorted(epoch) == list(range(23)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]


def test_several_files_have_the_width_of_the_widest_row(tmp_path):
    files = [write_letor(tmp_path / "a.txt", [2, 1]), str(tmp_path / "b.txt")]
    (tmp_path / "b.txt").write_text("1 qid:x 5:1.5\n")
    inputs, labels = next(iter(read_letor(files, batch_size=9, cache_dir=tmp_path / "cache")))
    assert inputs["features"].shape == (3, 2, 5) and float(inputs["features"][2, 0, 4]) == 1.5
    np.testing.assert_array_equal(labels, [[0, 1], [0, -1], [1, -1]])


@pytest.fixture
def parses(monkeypatch):
    """Counts how often files are parsed."""
    calls = []
    read_queries = letor.read_queries

    def counting(*args, **kwargs):
        calls.append(args)
        return read_queries(*args, **kwargs)

    monkeypatch.setattr(letor, "read_queries", counting)
    return calls


def test_the_cache_is_written_once_and_rewritten_when_the_source_changes(path, tmp_path, parses):
    cache = tmp_path / "cache"
    for _ in range(3):
        assert len(order(read_letor(path, batch_size=4, cache_dir=cache))) == 6
    read_letor(path, batch_size=7, list_size=2, cache_dir=cache, shuffle_buffer=5)
    assert len(parses) == 1 and len(list(cache.iterdir())) == 1
    write_letor(path, [2, 2])
    assert order(read_letor(path, batch_size=4, cache_dir=cache)) == [[0, 1]]
    assert len(parses) == 2 and len(list(cache.iterdir())) == 1
    # The size is the same; only the modification time differs.
    write_letor(path, [2, 2])
    os.utime(path, ns=(1, 1))
    read_letor(path, batch_size=4, cache_dir=cache)
    assert len(parses) == 3


def test_a_newer_format_and_another_width_have_their_own_caches(path, tmp_path, parses, monkeypatch):
    read_letor(path, batch_size=4, cache_dir=tmp_path)
    read_letor(path, batch_size=4, cache_dir=tmp_path, num_features=5)
    assert len(parses) == 2
    monkeypatch.setattr(query_cache, "_FORMAT", query_cache._FORMAT + 1)
    read_letor(path, batch_size=4, cache_dir=tmp_path)
    assert len(parses) == 3


@pytest.mark.parametrize("damage", ["empty", "cut", "text"])
def test_a_damaged_cache_is_rewritten(path, tmp_path, damage, parses):
    cache = tmp_path / "cache"
    read_letor(path, batch_size=4, cache_dir=cache)
    (file,) = cache.iterdir()
    content = file.read_bytes()
    file.write_bytes({"empty": b"", "cut": content[:-40], "text": b"nonsense" * 9}[damage])
    assert order(read_letor(path, batch_size=23, cache_dir=cache)) == [list(range(23))]
    assert len(parses) == 2 and file.read_bytes() == content


def test_bad_input_and_an_interruption_leave_no_cache(path, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    bad = tmp_path / "bad.txt"
    bad.write_text("1 qid:a 1:1\n1 qid:b 1:NULL\n")
    with pytest.raises(ValueError) as raised:
        read_letor(bad, batch_size=2, cache_dir=cache)
    assert str(raised.value).startswith(f"{bad}:2: value of feature 1: 'NULL' is not a finite float32 number;")
    with pytest.raises(ValueError, match="feature index 3 exceeds num_features=2"):
        read_letor(path, batch_size=2, cache_dir=cache, num_features=2)

    def interrupted(*_, **__):
        yield from [next(iter(read_queries([path], 3)))]
        raise KeyboardInterrupt

    read_queries = letor.read_queries
    monkeypatch.setattr(letor, "read_queries", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read_letor(path, batch_size=2, cache_dir=cache)
    assert list(cache.iterdir()) == []


def mslr_like(queries):
    """Lengths as in MSLR-WEB30K: 1 to 1,251 documents, 120 on average, a long tail."""
    random = np.random.RandomState(0)
    return np.clip(random.lognormal(4.6, 0.6, queries), 1, 1251).astype(int)


def padding(dataset):
    masks = [inputs["mask"].numpy() for inputs, _ in dataset]
    return 1.0 - sum(mask.sum() for mask in masks) / sum(mask.size for mask in masks)


@pytest.fixture(scope="module")
def long_lists(tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    path = folder / "a.txt"
    with open(path, "w") as file:
        for query, length in enumerate(mslr_like(500)):
            file.write(f"1 qid:{query} 1:{query}\n" * length)
    return str(path), folder / "cache"


def grouped(long_lists, **kwargs):
    path, cache = long_lists
    return read_letor(path, batch_size=16, cache_dir=cache, group_by_length=True, **kwargs)


each_order = pytest.mark.parametrize(
    "kwargs",
    [
        {"shuffle_buffer": 500, "seed": 1},
        *(pytest.param(each, marks=pytest.mark.slow) for each in ({"shuffle_buffer": 500}, {})),
    ],
)


@each_order
def test_grouping_by_length_reduces_padding_and_keeps_every_query_once(long_lists, kwargs):
    path, cache = long_lists
    assert padding(read_letor(path, batch_size=16, cache_dir=cache)) > 0.4
    dataset = grouped(long_lists, **kwargs)
    assert padding(dataset) < 0.2
    batches = order(dataset)
    assert sorted(sum(batches, [])) == list(range(500))
    assert sorted(map(len, batches)) == [500 % 16] + [16] * (500 // 16)


def test_batches_grouped_by_length_come_in_a_random_order_that_the_seed_reproduces(long_lists):
    dataset = grouped(long_lists, shuffle_buffer=500, seed=1, num_epochs=2)
    batches = order(dataset)
    first, second = batches[:32], batches[32:]
    assert {frozenset(batch) for batch in first} != {frozenset(batch) for batch in second}
    assert order(dataset) == batches
    assert order(grouped(long_lists, shuffle_buffer=500, seed=1, first_epoch=1)) == second
    lengths = mslr_like(500)
    of_batches = [lengths[batch].mean() for batch in first]
    # The lengths neither rise nor fall over the epoch.
    assert abs(np.corrcoef(of_batches, np.arange(32))[0, 1]) < 0.6
    unseeded = grouped(long_lists, shuffle_buffer=500)
    assert order(unseeded) != order(unseeded)


def test_most_pairs_of_queries_in_a_batch_change_between_epochs(long_lists):
    batches = order(grouped(long_lists, shuffle_buffer=500, seed=1, num_epochs=2))
    first, second = batches[:32], batches[32:]
    pairs = {pair for batch in first for pair in itertools.combinations(sorted(batch), 2)}
    again = pairs & {pair for batch in second for pair in itertools.combinations(sorted(batch), 2)}
    assert len(again) < 0.5 * len(pairs)


@pytest.mark.slow
def test_the_partial_batch_has_lists_of_similar_length_that_varies_between_epochs(long_lists):
    lengths, spreads, means = mslr_like(500), [], []
    for epoch in range(8):
        batches = order(grouped(long_lists, shuffle_buffer=500, seed=1, first_epoch=epoch))
        (few,) = [lengths[batch] for batch in batches if len(batch) < 16]
        spreads.append(few.max() / few.min())
        means.append(few.mean())
    assert np.median(spreads) < 1.3
    assert min(means) < 0.8 * np.median(lengths) < 1.2 * np.median(lengths) < max(means)


def test_the_dropped_remainder_is_not_only_the_longest_lists(long_lists):
    batches = order(grouped(long_lists, shuffle_buffer=500, seed=2, drop_remainder=True))
    assert list(map(len, batches)) == [16] * 31
    dropped = sorted(set(range(500)) - set(sum(batches, [])))
    lengths = mslr_like(500)
    assert len(dropped) == 4
    assert lengths[dropped].min() < np.median(lengths)


@each_order
def test_fewer_queries_than_a_batch_yield_one_batch_or_none(long_lists, kwargs):
    path, cache = long_lists
    for drop_remainder, expected in ((False, [500]), (True, [])):
        dataset = read_letor(
            path, batch_size=501, cache_dir=cache, group_by_length=True, drop_remainder=drop_remainder, **kwargs
        )
        assert [len(batch) for batch in order(dataset)] == expected
