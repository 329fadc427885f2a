"""Users as the sequences of their items: order, causality, padding, the paper's network, and trainings."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy import sparse

from tests.recommendation.groups import in_time
from tfr_smooth import recommendation
from tfr_smooth.recommendation.sequences import SequenceEncoder

NUM_USERS, NUM_ITEMS, LENGTH = 6, 9, 5
SMALL = {"history_items": "sequence", "history_length": 6, "dim": 8, "loss": None, "verbose": False}


def model(seed=0, blocks=2, **options):
    """A model of sequences with random weights, also of norms and biases."""
    encoder = SequenceEncoder(size=4, num_features=LENGTH, blocks=blocks, dropout=0.5)
    sizes = {"num_users": NUM_USERS, "num_items": NUM_ITEMS, "dim": 4}
    found = recommendation.CatalogFactors(**sizes, user_encoder=encoder, item_bias=True, **options)
    random = np.random.default_rng(seed)
    found.set_weights([random.normal(size=each.shape) for each in found.get_weights()])
    return found, encoder


def normalized(values, norm):
    gamma, beta = (np.asarray(each, np.float64) for each in norm.get_weights())
    centered = values - values.mean(axis=-1, keepdims=True)
    return gamma * centered / np.sqrt((centered**2).mean(axis=-1, keepdims=True) + 1e-6) + beta


def reference(encoder, vectors, items):
    """The equations of the docstring for the items of one user without padding, in float64."""
    size = vectors.shape[1]
    hidden = np.sqrt(size) * vectors[items] + np.asarray(encoder.positions)[-len(items) :].astype(np.float64)
    dense = [[np.asarray(each, np.float64) for each in layer.get_weights()] for layer in encoder.dense]
    for block in range(len(dense) // 4):
        ((project,), (mix,), expand, contract), norms = dense[4 * block :][:4], encoder.norms[2 * block :]
        queries, keys, values = np.split(normalized(hidden, norms[0]) @ project, 3, axis=1)
        powers = np.tril(np.exp(queries @ keys.T / np.sqrt(size)))
        hidden = hidden + powers / powers.sum(axis=1, keepdims=True) @ values @ mix
        rectified = np.maximum(normalized(hidden, norms[1]) @ expand[0] + expand[1], 0.0)
        hidden = hidden + rectified @ contract[0] + contract[1]
    return normalized(hidden, encoder.norms[-1])


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("items", [[3], [8, 0, 2], [1, 2, 3, 4, 5]])
def test_outputs_equal_the_paper(blocks, items):
    factors, encoder = model(blocks=blocks, similarity="dot")
    vectors = factors.item_vectors().numpy()[:, :-1].astype(np.float64)
    padded = tf.constant([[-1] * (LENGTH - len(items)) + items])
    expected = reference(encoder, vectors, items)
    np.testing.assert_allclose(encoder.outputs(padded)[0, -len(items) :], expected, rtol=1e-4, atol=1e-4)
    (vector,) = factors.history_vectors(tf.constant([items]))
    np.testing.assert_allclose(vector[:-1], expected[-1], rtol=1e-4, atol=1e-4)
    scores = factors(padded)[0, -1] * factors.get_config()["temperature"]
    bias = factors.item_vectors().numpy()[:, -1]
    np.testing.assert_allclose(scores, vectors @ expected[-1] + bias, rtol=1e-4, atol=1e-3)


def test_a_later_item_changes_no_earlier_output():
    _, encoder = model()
    items = np.array([[-1, 4, 2, 7, 1]])
    outputs = encoder.outputs(tf.constant(items)).numpy()[0]
    for place in range(1, LENGTH):
        other = items.copy()
        other[0, place] = 8
        changed = np.abs(encoder.outputs(tf.constant(other)).numpy()[0] - outputs).max(axis=1)
        assert (changed[:place] == 0.0).all() and (changed[place:] > 1e-3).all()


def test_order_matters_and_padding_and_repeated_items_do_not():
    factors, encoder = model()
    vectors = lambda items: factors.history_vectors(tf.constant(items)).numpy()  # noqa: E731
    (plain,) = vectors([[4, 2, 7]])
    assert np.abs(vectors([[7, 2, 4]])[0] - plain).max() > 0.01
    for same in ([4, 2, 7, -1], [-1, -1, 4, 2, 7], [4, -1, 2, -1, -1, -1, -1, 7], [2, 7, 4, 2, 7]):
        np.testing.assert_allclose(vectors([same])[0], plain, rtol=1e-5)
    np.testing.assert_allclose(vectors([[1, 3, 4, 2, 7, 0, 5]]), vectors([[4, 2, 7, 0, 5]]), rtol=1e-5)  # the last ones
    batch = vectors([[4, 2, 7, -1], [-1] * 4, [0, 1, 2, 3]])
    np.testing.assert_allclose(batch[:2], [plain, vectors([[-1]])[0]], rtol=1e-5)
    # All positions before the first item, which predict it, are an empty history.
    empty = encoder.outputs(tf.constant([[-1, -1, -1, 4, 2]])).numpy()[0, :3]
    np.testing.assert_allclose(empty, np.tile(encoder.outputs(tf.constant([[-1] * LENGTH]))[0, -1], [3, 1]), rtol=1e-5)


def test_users_have_the_vectors_of_their_latest_items():
    random = np.random.default_rng(1)
    interactions = in_time([random.permutation(NUM_ITEMS)[:count] for count in (0, 1, 3, 5, 7, 9)], NUM_ITEMS)
    factors, _ = model()
    items, _ = interactions.latest(np.arange(NUM_USERS), LENGTH)
    factors.set_features(interactions, users=items)
    histories, _ = interactions.latest(np.arange(NUM_USERS), NUM_ITEMS)
    expected = factors.history_vectors(tf.constant(histories))
    np.testing.assert_allclose(factors.user_vectors(tf.constant([5, 0])), expected.numpy()[[5, 0]], rtol=1e-5)
    np.testing.assert_allclose(factors(tf.constant([2, 4])), factors(tf.constant(items[[2, 4]]))[:, -1], rtol=1e-5)


def test_dropout_depends_on_the_step_only():
    _, encoder = model()
    items = tf.constant([[0, 1, 2, 3, 4]])
    first, again, second, without = (encoder.outputs(items, step).numpy() for step in (3, 3, 4, None))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - second).max() > 0.01 and np.abs(first - without).max() > 0.01


def test_the_latest_items_are_in_order_of_time_and_ties_in_order_of_indices():
    matrix = sparse.csr_array([[1, 1, 1, 0], [0, 0, 0, 0], [0, 1, 0, 1]])
    found = recommendation.Interactions(matrix, times=[5, 3, 5, 2, 2], weights=[1, 2, 3, 4, 5])
    items, weights = found.latest([2, 0, 1, 0], 2)
    assert items.tolist() == [[1, 3], [0, 2], [-1, -1], [0, 2]] and items.dtype == np.int32
    assert weights.tolist() == [[4, 5], [1, 3], [0, 0], [1, 3]]
    assert found.latest([0], 4)[0].tolist() == [[-1, 1, 0, 2]] and found.latest([], 3)[0].shape == (0, 3)
    batches = recommendation.user_batches(found, batch_size=2, shuffle=False, latest=2)
    users, items, weights = next(iter(batches))
    assert (users.numpy().tolist(), items.numpy().tolist()) == ([0, 2], [[0, 2], [1, 3]])
    with pytest.raises(ValueError, match="`times` must be given for `latest`, got None."):
        recommendation.Interactions(matrix).latest([0], 2)
    with pytest.raises(ValueError, match="`count` must be an integer >= 1, got 0."):
        found.latest([0], 0)


def walks(count, seed=0):
    """Users who visit random parts of a circle of 20 items, each in its order."""
    random = np.random.default_rng(seed)
    return in_time([(random.integers(20) + np.arange(random.integers(4, 9))) % 20 for _ in range(count)], 20)


@pytest.fixture(scope="module")
def fitted():
    options = {"softmax_epochs": 12, "softmax_batch_size": 8, "dropout": 0.1}
    return recommendation.Recommender(**SMALL, **options).fit(walks(80))


def test_the_next_item_follows_from_the_last_one(fitted):
    train, test = recommendation.hold_out(walks(80), items=1, by="time")
    plain = {"dim": 8, "loss": None, "verbose": False, "softmax_batch_size": 8}
    fields = {"seen": train, "measures": "P_1"}
    found = [
        recommendation.evaluate(recommendation.Recommender(**options).fit(train), test, **fields).means["P_1"].mean
        for options in (plain, {**fitted.get_params(), "softmax_epochs": 12})
    ]
    assert found[1] > 0.9 > 0.6 > found[0]
    assert fitted.recommend(histories=[[3, 4, 5], [3]], topn=1, exclude_seen=False).items.tolist() == [[6], [4]]
    forward, backward = fitted.recommend(histories=[[3, 4, 5], [5, 4, 3]], topn=20, exclude_seen=False).items
    assert forward.tolist() != backward.tolist()


def test_a_user_gets_what_the_own_items_in_order_get(fitted, tmp_path):
    train = fitted.interactions_
    histories = [[train.item_ids[each] for each in row if each >= 0] for row in train.latest([3, 7], 20)[0]]
    expected = fitted.recommend([3, 7], topn=5)
    found = fitted.recommend(histories=histories, topn=5)
    np.testing.assert_array_equal(found.items, expected.items)
    served = tf.saved_model.load(str(fitted.export(tmp_path))).signatures
    padded = tf.constant([[*row, *[-1] * (10 - len(row))] for row in histories], tf.int64)
    np.testing.assert_array_equal(served["histories"](histories=padded)["items"][:, :5], expected.items)
    np.testing.assert_array_equal(served["users"](users=tf.constant([3, 7], tf.int64))["items"][:, :5], expected.items)


def test_the_latest_items_are_held_out(fitted):
    everything = walks(80)
    recommender = recommendation.Recommender(**{**SMALL, "softmax_epochs": 1}, refit=False).fit(everything)
    before, _ = recommendation.hold_out(everything, items=0.1, by="time")
    assert (recommender.interactions_.matrix != before.matrix).nnz == 0
    assert (fitted.interactions_.matrix != everything.matrix).nnz == 0


@pytest.mark.slow
def test_an_update_adds_users_and_items_and_continues_the_encoder(fitted):
    old = fitted.recommend(histories=[[3, 4, 5]], topn=1).items
    frame = pd.DataFrame({"user": [0, 99, 99, 99], "item": [50, 3, 4, 5], "time": [20, 21, 22, 23]})
    new = recommendation.from_dataframe(frame, user="user", item="item", time="time")
    other = recommendation.Recommender(**{**fitted.get_params(), "softmax_epochs": 1})
    other.fit(new, init_model=fitted)
    assert other.interactions_.num_items == 21 and other.interactions_.num_users == 81
    assert other.recommend([99], topn=1).items == old == 6
    assert other.interactions_.latest([0], 1)[0] == [[20]]


@pytest.mark.slow
def test_items_may_have_tables():
    place = 2.0 * np.pi * np.arange(20) / 20.0
    table = {"item": list(range(20)), "x": list(np.sin(place)), "y": list(np.cos(place))}
    options = {**SMALL, "softmax_epochs": 2}
    recommender = recommendation.Recommender(**options).fit(walks(40), items=table)
    forward, backward = recommender.recommend(histories=[[3, 4, 5], [5, 4, 3]], topn=20, exclude_seen=False).scores
    assert np.abs(forward - backward).max() > 1e-3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"history_items": "bag"}, "`history_items` must be one of 'sequence', got 'bag'"),
        ({"history_length": 0}, "`history_length` must be an integer >= 1, got 0"),
        ({"dropout": 1.0}, r"`dropout` must be a number in \[0, 1\), got 1.0"),
        ({"negatives": 5}, "`negatives` must be None with `history_items`, got 5."),
        ({"propagation_layers": 2}, "`propagation_layers` must be 0 with `history_items`, got 2."),
    ],
)
def test_errors_name_the_argument(options, message):
    with pytest.raises(ValueError, match=message):
        recommendation.Recommender(**{**SMALL, **options})


def test_times_are_needed_and_tables_of_users_are_refused():
    recommender, plain = recommendation.Recommender(**SMALL), recommendation.Interactions(np.eye(80, 20))
    for given, name in (((plain, None), "interactions"), ((walks(80), plain), "validation")):
        with pytest.raises(ValueError, match=f'`{name}` must have times for `history_items="sequence"`, got none.'):
            recommender.fit(given[0], validation=given[1])
    with pytest.raises(ValueError, match="`users` must be None with `history_items`, got a table."):
        recommender.fit(walks(3), users={"user": [0, 1, 2], "age": [1, 2, 3]})
