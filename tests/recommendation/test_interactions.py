"""Interactions, splits of each user's items, and batches of users."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy import sparse

from tests.helpers import assert_error
from tfr_smooth import recommendation


def random_interactions(seed=0, users=30, items=20, density=0.3):
    """Returns random interactions with times; the first user has no items and the second one item."""
    random = np.random.default_rng(seed)
    dense = random.random((users, items)) < density
    dense[:2] = False
    dense[1, 3] = True
    return recommendation.Interactions(sparse.csr_array(dense), times=random.integers(0, 5, dense.sum()))


# The matrix and the ids.


def test_any_matrix_becomes_ones():
    for form in (np.array, sparse.csr_matrix, sparse.coo_array, sparse.csc_array):
        found = recommendation.Interactions(form([[0, 2.5, 0], [-1, 0, 3]]))
        assert found.matrix.format == "csr" and found.matrix.dtype == np.float32
        assert found.matrix.toarray().tolist() == [[0, 1, 0], [1, 0, 1]]
        assert found.items_per_user.tolist() == [1, 2] and found.users_per_item.tolist() == [1, 1, 1]
        assert found.user_ids.tolist() == [0, 1] and found.item_ids.tolist() == [0, 1, 2]
    parts = np.array([2.0, 1.0, 1.0, 0.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])
    given = sparse.csr_array(parts, shape=(2, 3))  # with a repeated entry and a zero, not in order
    found = recommendation.Interactions(given)
    assert found.matrix.indices.tolist() == [0, 2] and found.matrix.data.tolist() == [1, 1]
    assert given.indices.tolist() == [2, 0, 2, 1] and given.data.tolist() == [2, 1, 1, 0]


def test_dense_and_padded_items_of_users():
    found = random_interactions()
    users = np.array([5, 0, 1, 5])
    dense, (padded, _) = found.matrix.toarray()[users] > 0, found.padded(users)
    np.testing.assert_array_equal(found.dense(users), dense)
    assert padded.dtype == np.int32 and padded.shape == (4, found.items_per_user[5])
    for row, items in zip(padded, map(np.flatnonzero, dense), strict=True):
        assert row.tolist() == items.tolist() + [-1] * (padded.shape[1] - len(items))
    assert found.padded([0])[0].shape == (1, 0) and found.dense([]).shape == (0, 20)


def test_ids_are_found_in_any_order():
    found = recommendation.Interactions(np.eye(3), user_ids=["b", "a", "c"], item_ids=np.array([7, 5, 6]))
    assert found.user_indices(["c", "b"]).tolist() == [2, 0] and found.item_indices(np.array([5, 5])).tolist() == [1, 1]
    assert_error("`users` must be known ids, got 'd'.", found.user_indices, ["a", "d"])
    assert found.item_indices(["5", 6.0]).tolist() == [1, 2]


def test_bad_matrices_ids_times_and_weights_are_refused():
    make = recommendation.Interactions
    assert_error("`matrix` must have finite numbers, got nan.", make, [[1.0, np.nan]])
    masked = np.ma.masked_less([[1.0, 0.0]], 0.5)
    assert_error("`matrix` must have no mask: pass `matrix.filled(0)`.", make, masked)
    for options, message in (
        ({"weights": [1.0, 0.0, 2.0]}, "`weights` must be 3 finite numbers > 0, one per interaction, got 0 at place 1"),
        ({"user_ids": ["a"]}, "`user_ids` must have one id for each of 2, got 1."),
        ({"item_ids": [1, 2, 1]}, "`item_ids` must be unique, got 1 twice."),
        ({"times": [1.0, 2.0]}, "`times` must be 3 finite numbers, one per interaction, got the shape (2,)"),
        ({"item_ids": [1, -1, 2]}, "`item_ids` must not contain -1, which pads lists of items: give this item another"),
    ):
        assert_error(message, make, [[1, 0, 1], [0, 0, 1]], **options)
    matrix = sparse.csr_array((np.ones(2), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    assert_error("`matrix` must be in CSR format with ascending indices and no zeros", make, matrix, times=[1.0, 2.0])
    for users, message in (
        ([0, -1], "`users` must be indices below 30, got -1."),
        ([0.0], "`users` must be indices of users, [batch], got float64 of shape (1,)."),
    ):
        assert_error(message, random_interactions().dense, users)
        assert_error(message, random_interactions().padded, users)


# Weights and times.


def test_weights_are_summed_over_events_and_are_labels_of_batches():
    frame = {"user": [1, 1, 1, 2], "item": [5, 6, 5, 5], "weight": [0.25, 1.0, 3.0, 4.0], "time": [0, 10, 20, 10]}
    columns = {name: name for name in frame}
    found = recommendation.from_dataframe(pd.DataFrame(frame), **columns)
    assert found.weights.tolist() == [3.25, 1.0, 4.0]
    compiled = tf.function(recommendation.dense_labels, jit_compile=True)
    for users, items, weights in recommendation.user_batches(found, batch_size=2):
        assert compiled(items, 2, weights).numpy()[np.argsort(users)].tolist() == [[3.25, 1.0], [4.0, 0.0]]
        assert compiled(items, 2).numpy()[np.argsort(users)].tolist() == [[1.0, 1.0], [1.0, 0.0]]
    ((inputs, labels),) = recommendation.candidate_batches(found, negatives=1, batch_size=2)
    order = np.argsort(inputs["users"])
    np.testing.assert_array_equal(labels.numpy()[order, :2], [[3.25, 1.0], [4.0, 0.0]])
    for each in recommendation.hold_out(found, items=1, by="time"):
        assert each.weights.tolist() == each.matrix.multiply(found.weighted).tocsr().data.tolist()


# Events: equal times are in the order of the rows, and items are repeated.


def event_log(seed=0, count=300):
    """Returns a table of events; most users have repeated items and equal times."""
    random = np.random.default_rng(seed)
    columns = {name: random.integers(0, high, count) for name, high in (("user", 8), ("item", 10), ("time", 12))}
    return pd.DataFrame({**columns, "weight": random.integers(1, 9, count) / 4.0})


def read_events(table, names, **options):
    """Returns the interactions of a table, with numbers for 8 users and 10 items."""
    columns = {name: name for name in ("user", "item", *names)}
    found = recommendation.from_dataframe(table, **columns)
    return found.renumbered(options.get("users", range(8)), options.get("items", range(10)))


def test_sequences_have_all_events_in_order():
    table = event_log()
    found = read_events(table, ["time", "weight"])
    items, weights, starts = found.sequences()
    assert (items.dtype, weights.dtype, starts.dtype) == (np.int32, np.float32, np.int64)
    assert len(items) == 300 and found.duplicates == 300 - found.num_interactions > 200
    latest, latest_weights = found.latest(np.arange(8), 5)
    for user, rows in table.sort_values("time", kind="stable").groupby("user"):
        own = slice(starts[user], starts[user + 1])
        assert items[own].tolist() == rows["item"].tolist() and weights[own].tolist() == rows["weight"].tolist()
        assert latest[user].tolist() == rows["item"].tolist()[-5:]
        assert latest_weights[user].tolist() == rows["weight"].tolist()[-5:]


def changed(read, table):
    """Yields the interactions of a table after each change, and those of the changed table."""
    whole = read(table)
    yield whole.keeping(whole.matrix.indices % 2 == 0), read(table[table["item"] % 2 == 0])
    yield read(table[:100]).union(read(table[100:])), whole
    yield recommendation.Interactions.from_arrays(whole.arrays()), whole
    ids = {"users": [9, *range(7, -1, -1)], "items": [3, 12, 5, 4, 1, 2, 0, 9, 8, 7, 6]}
    yield whole.renumbered(*map(np.array, ids.values())), read(table, **ids)
    ordered = table.sort_values("time", kind="stable").reset_index(drop=True)
    last = ordered.reset_index().groupby(["user", "item"])["index"].transform("max")
    is_test = last.groupby(ordered["user"]).rank(method="dense", ascending=False) <= 2
    for by, chosen in (("time", is_test), ("event", ordered.groupby("user").cumcount(ascending=False) < 2)):
        train, test = recommendation.hold_out(whole, items=2, by=by)
        yield from ((train, read(ordered[~chosen])), (test, read(ordered[chosen])))


@pytest.mark.parametrize("names", [["time"], ["time", "weight"]])
def test_events_are_those_of_the_rows_after(names):
    for found, expected in changed(lambda rows, **ids: read_events(rows, names, **ids), event_log()):
        arrays, others = found.arrays(), expected.arrays()
        assert arrays.keys() == others.keys() and arrays["ordered"] and "times" in arrays
        for name in arrays:
            np.testing.assert_array_equal(arrays[name], others[name], err_msg=name)


def test_long_and_special_ids_are_saved_as_they_are():
    ids = [*map(str, range(2000)), "x" * 5000, "é", "nul\0", "\ud800"]
    found = recommendation.Interactions(np.eye(1, len(ids)), user_ids=[""], item_ids=ids)
    arrays = found.arrays()
    assert sum(array.nbytes for array in arrays.values()) < 40_000
    again = recommendation.Interactions.from_arrays(arrays)
    assert again.item_ids.tolist() == ids and again.user_ids.tolist() == [""]
    with pytest.raises(ValueError):
        recommendation.Interactions.from_arrays({**arrays, "item_ids": arrays["item_ids"][:-1]})


# Splits.


@pytest.mark.parametrize("by", ["random", "time"])
def test_a_split_divides_the_items_of_each_user_and_leaves_one(by):
    whole = random_interactions()
    for items in (0.1, 0.5, 1, 3, 100):
        train, held = recommendation.hold_out(whole, items=items, by=by)
        np.testing.assert_array_equal((train.matrix + held.matrix).toarray(), whole.matrix.toarray())
        counts = whole.items_per_user
        expected = np.floor(items * counts + 0.5) if items < 1 else np.full(len(counts), items)
        np.testing.assert_array_equal(held.items_per_user, np.minimum(expected, np.maximum(counts - 1, 0)))
        again, other = (recommendation.hold_out(whole, items=items, by=by, seed=seed)[1] for seed in (0, 1))
        assert (held.matrix != again.matrix).nnz == 0
        assert ((held.matrix != other.matrix).nnz > 0) == (by == "random")


def test_bad_splits_and_options_of_batches_are_refused():
    whole, split = recommendation.Interactions(np.eye(3)), recommendation.hold_out
    assert_error("`items` must be a number in (0, 1), got 1.0.", split, whole, items=1.0)
    assert_error("`by` must be one of 'random', 'time', 'event', got 'user'.", split, whole, by="user")
    assert_error('`interactions` must have an order for `by="time"`, got none: read it with', split, whole, by="time")
    empty = recommendation.Interactions(np.zeros([2, 2]))
    message = "`interactions` must have a user with items, got none."
    assert_error(message, recommendation.user_batches, empty, batch_size=1)
    of_candidates = {"negatives": 0, "batch_size": 2}
    assert_error(
        "`negatives` must be an integer >= 1, got 0.", recommendation.candidate_batches, whole, **of_candidates
    )


# Batches.


def epochs(interactions, **options):
    """Returns the users of all batches."""
    return [users.numpy().tolist() for users, *_ in recommendation.user_batches(interactions, **options)]


def test_batches_have_each_user_with_items_once_per_epoch():
    whole = random_interactions(density=0.5)
    assert np.flatnonzero(whole.items_per_user == 0).tolist() == [0]
    shuffled = epochs(whole, batch_size=8, num_epochs=2, seed=1)
    assert list(map(len, shuffled[:4])) == [8, 8, 8, 5]
    first, second = sum(shuffled[:4], []), sum(shuffled[4:], [])
    assert sorted(first) == sorted(second) == list(range(1, 30)) and first != second
    assert epochs(whole, batch_size=8, num_epochs=1, first_epoch=1, seed=1) == shuffled[4:]
    assert epochs(whole, batch_size=8, seed=2) != shuffled[:4]


# Batches with sampled items.


def test_candidates_are_the_items_of_the_batch_and_a_sample_of_the_others():
    whole = random_interactions(items=40)
    for inputs, labels in recommendation.candidate_batches(whole, negatives=5, batch_size=4, num_epochs=3):
        users, items = inputs["users"].numpy(), inputs["items"].numpy()
        assert (items == items[0]).all() and inputs["items"].shape == labels.shape == inputs["offsets"].shape
        real = labels.numpy()[0] >= 0.0
        assert ((labels.numpy() >= 0.0) == real).all() and len(labels[0]) == 512 + real[512:].sum()
        found = items[0][real]
        assert len(set(found)) == len(found)
        dense = whole.dense(users)
        np.testing.assert_array_equal(labels.numpy()[:, real], dense[:, found])
        others = (~dense.any(axis=0)).sum()
        assert len(found) == (40 - others) + min(5, others) and set(np.flatnonzero(dense.any(axis=0))) <= set(found)


def test_offsets_make_the_sampled_partition_function_unbiased():
    whole = random_interactions(items=200, density=0.02)
    exponentials = np.exp(np.random.default_rng(1).normal(size=200))
    sums = []
    for inputs, labels in recommendation.candidate_batches(whole, negatives=50, batch_size=8, num_epochs=300):
        weights = np.exp(inputs["offsets"].numpy()[0]) * (labels.numpy()[0] >= 0.0)
        sums.append((weights * exponentials[inputs["items"].numpy()[0]]).sum())
    assert abs(np.mean(sums) - exponentials.sum()) < 4.0 * np.std(sums) / np.sqrt(len(sums))
    assert np.std(sums) > 0.0
