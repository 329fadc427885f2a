"""Users as the sequences of their items: order, causality, padding, the paper's network, and trainings."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from tests.helpers import assert_error
from tests.recommendation.groups import in_time
from tfr_smooth import losses, recommendation
from tfr_smooth.recommendation import baseline_scores, catalog_losses, fit_data
from tfr_smooth.recommendation.batches import SequenceBatches
from tfr_smooth.recommendation.sequences import SequenceEncoder

NUM_USERS, NUM_ITEMS, LENGTH = 6, 9, 5
SMALL = {"history_items": "sequence", "history_length": 6, "dim": 8, "loss": None, "verbose": False}


def model(seed=0, blocks=2, **options):
    """A model of sequences with random weights, also of norms and biases."""
    encoder = SequenceEncoder(size=4, num_features=LENGTH, blocks=blocks, dropout=0.5)
    sizes = {"num_users": NUM_USERS, "num_items": NUM_ITEMS}
    found = recommendation.CatalogSequences(**sizes, user_encoder=encoder, item_bias=True, **options)
    random = np.random.default_rng(seed)
    found.set_weights([random.normal(size=each.shape) for each in found.get_weights()])
    return found, encoder


def normalized(values, norm):
    gamma, beta = (np.asarray(each, np.float64) for each in norm.get_weights())
    centered = values - values.mean(axis=-1, keepdims=True)
    return gamma * centered / np.sqrt((centered**2).mean(axis=-1, keepdims=True) + 1e-6) + beta


def reference(encoder, vectors, items):
    """The equations of the docstring for a start and the items of one user, in float64."""
    size = vectors.shape[1]
    hidden = np.sqrt(size) * np.concatenate([np.asarray(encoder.start), vectors[items]])
    distance = np.maximum(np.arange(len(hidden))[:, None] - np.arange(len(hidden)), 0)
    dense = [[np.asarray(each, np.float64) for each in layer.get_weights()] for layer in encoder.dense]
    for block, distances in enumerate(encoder.distances):
        ((project,), (mix,), expand, contract), norms = dense[4 * block :][:4], encoder.norms[2 * block :]
        queries, keys, values = np.split(normalized(hidden, norms[0]) @ project, 3, axis=1)
        powers = np.tril(np.exp(queries @ keys.T / np.sqrt(size) + np.asarray(distances, np.float64)[distance]))
        hidden = hidden + powers / powers.sum(axis=1, keepdims=True) @ values @ mix
        rectified = np.maximum(normalized(hidden, norms[1]) @ expand[0] + expand[1], 0.0)
        hidden = hidden + rectified @ contract[0] + contract[1]
    return normalized(hidden, encoder.norms[-1])


def packed(*sequences, length=LENGTH):
    """A row of sequences, each after its start, and their segments."""
    items = [each for sequence in sequences for each in [-1, *sequence]]
    segments = [number for number, sequence in enumerate(sequences) for _ in range(len(sequence) + 1)]
    padding = [-1] * (length - len(items))
    return tf.constant([items + padding]), tf.constant([segments + padding])


@pytest.mark.parametrize("items", [[], [3], [1, 2, 1, 5]])
def test_outputs_equal_the_paper(items):
    factors, encoder = model(similarity="dot")
    vectors = factors.item_vectors().numpy()[:, :-1].astype(np.float64)
    expected = reference(encoder, vectors, items)
    np.testing.assert_allclose(encoder.outputs(*packed(items))[0, : len(items) + 1], expected, rtol=1e-4, atol=1e-4)
    (vector,) = factors.history_vectors(tf.constant([[*items, -1]]))
    np.testing.assert_allclose(vector[:-1], expected[-1], rtol=1e-4, atol=1e-4)
    scores = factors.vector_scores(vector[tf.newaxis])[0] * factors.get_config()["temperature"]
    bias = factors.item_vectors().numpy()[:, -1]
    np.testing.assert_allclose(scores, vectors @ expected[-1] + bias, rtol=1e-4, atol=1e-3)


def test_sequences_of_a_row_do_not_see_each_other():
    _, encoder = model()
    outputs = encoder.outputs(*packed([4], [7], []), step=None).numpy()[0]
    for first, items in ((0, [4]), (2, [7]), (4, [])):
        alone = encoder.outputs(*packed(items)).numpy()[0, : len(items) + 1]
        np.testing.assert_allclose(outputs[first : first + len(alone)], alone, rtol=1e-4, atol=1e-5)


def test_a_later_item_changes_no_earlier_output():
    _, encoder = model()
    items, segments = (each.numpy() for each in packed([4, 2, 7, 1]))
    outputs = encoder.outputs(tf.constant(items), tf.constant(segments)).numpy()[0]
    for place in range(1, LENGTH):
        other = items.copy()
        other[0, place] = 8
        changed = np.abs(encoder.outputs(tf.constant(other), tf.constant(segments)).numpy()[0] - outputs).max(axis=1)
        assert (changed[:place] == 0.0).all() and (changed[place:] > 1e-3).all()


@pytest.mark.slow
def test_order_and_repeated_items_matter_and_padding_does_not():
    factors, _ = model()
    vectors = lambda items: factors.history_vectors(tf.constant(items)).numpy()  # noqa: E731
    (plain,) = vectors([[4, 2, 7]])
    for other in ([7, 2, 4], [4, 2, 2, 7], [2, 7]):
        assert np.abs(vectors([other])[0] - plain).max() > 0.001
    for same in ([4, 2, 7, -1], [-1, -1, 4, 2, 7], [4, -1, 2, -1, -1, -1, -1, 7]):
        np.testing.assert_allclose(vectors([same])[0], plain, rtol=1e-4)
    np.testing.assert_allclose(vectors([[1, 3, 4, 2, 7, 0, 5]]), vectors([[4, 2, 7, 0, 5]]), rtol=1e-4)  # the last ones
    batch = vectors([[4, 2, 7, -1], [-1] * 4, [0, 1, 2, 3]])
    np.testing.assert_allclose(batch[:2], [plain, vectors([[-1]])[0]], rtol=1e-4, atol=1e-6)


def test_users_have_the_vectors_of_their_latest_items():
    random = np.random.default_rng(1)
    interactions = in_time([random.permutation(NUM_ITEMS)[:count] for count in (0, 1, 3, 5, 7, 9)], NUM_ITEMS)
    factors, _ = model()
    factors.set_sequences(interactions)
    histories, _ = interactions.latest(np.arange(NUM_USERS), NUM_ITEMS)
    expected = factors.history_vectors(tf.constant(histories))
    np.testing.assert_allclose(factors.user_vectors(tf.constant([5, 0])), expected.numpy()[[5, 0]], rtol=1e-5)
    np.testing.assert_allclose(factors(tf.constant([2, 4])), factors.vector_scores(expected).numpy()[[2, 4]], rtol=1e-4)


def test_dropout_depends_on_the_step_only():
    _, encoder = model()
    row = packed([0, 1, 2, 3])
    first, again, second, without = (encoder.outputs(*row, step).numpy() for step in (3, 3, 4, None))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - second).max() > 0.01 and np.abs(first - without).max() > 0.01


HISTORIES = [[3, 1, 4, 1, 5], [], [2], [7, 6], [0, 1, 2, 3, 4, 5, 6, 7, 8], [8, 8]]


def histories(weights=None):
    """The interactions of `HISTORIES`, with repeated items."""
    rows = [(user, item, place) for user, items in enumerate(HISTORIES) for place, item in enumerate(items)]
    frame = pd.DataFrame(rows, columns=["user", "item", "time"]).assign(weight=weights)
    weight = None if weights is None else "weight"
    found = recommendation.from_dataframe(frame, user="user", item="item", time="time", weight=weight)
    return found.renumbered(range(NUM_USERS), range(NUM_ITEMS))


@pytest.mark.parametrize(("length", "negatives"), [(1, 3), (2, None), (4, 3), (20, None)])
def test_each_item_is_predicted_once_per_epoch_from_the_items_before(length, negatives):
    batches = SequenceBatches(histories(), length=length, batch_size=2, negatives=negatives, seed=3)
    orders = []
    for epoch in range(2):
        found = []
        numbered = list(batches.dataset(1, epoch).as_numpy_iterator())
        assert len(numbered) == batches.steps
        for inputs, following in numbered:
            candidates = inputs["candidates"][0] if negatives else np.arange(NUM_ITEMS)
            assert following.shape[1] == length and ((following < 0) == (inputs["segments"] < 0)).all()
            np.testing.assert_array_equal(inputs["weights"], following >= 0)
            for row in range(len(following)):
                for segment in range(inputs["segments"][row].max() + 1):
                    (places,) = np.nonzero(inputs["segments"][row] == segment)
                    assert (np.diff(places) == 1).all()
                    before = inputs["items"][row, places].tolist()
                    after = candidates[following[row, places]].tolist()
                    assert before[1:] == after[:-1]  # the item that was predicted comes next
                    found.append((before[0], after))
        orders.append(found)
        windows = []
        for items in HISTORIES:
            for end in range(len(items), 0, -length):
                first = max(end - length, 0)
                windows.append((items[first - 1] if first else -1, items[first:end]))
        assert sorted(found) == sorted(windows)
    assert sum(len(after) for _, after in orders[0]) == sum(map(len, HISTORIES))
    assert length == 20 or orders[0] != orders[1]


def test_rows_are_nearly_full():
    random = np.random.default_rng(0)
    interactions = in_time([random.permutation(60)[: random.integers(1, 40)] for _ in range(300)], 60)
    batches = SequenceBatches(interactions, length=25, batch_size=1000, negatives=None, seed=0)
    ((inputs, _),) = batches.dataset(1, 0).as_numpy_iterator()
    assert (inputs["segments"] >= 0).mean() > 0.98


def test_weights_are_those_of_the_predicted_items():
    weights = np.arange(1.0, 20.0)
    interactions = histories(weights)
    batches = SequenceBatches(interactions, length=9, batch_size=20, negatives=None, seed=0)
    ((inputs, following),) = batches.dataset(1, 0).as_numpy_iterator()
    items, expected, _ = interactions.sequences()
    found = sorted(zip(following[following >= 0].tolist(), inputs["weights"][following >= 0].tolist(), strict=True))
    assert found == sorted(zip(items.tolist(), expected.tolist(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["softmax", "smoothi_ndcg", "pairwise_logistic"])
def test_a_loss_in_parts_is_the_loss(name, monkeypatch):
    monkeypatch.setattr(catalog_losses, "_PART", 1 if name == "pairwise_logistic" else 60)
    random, loss = np.random.default_rng(0), losses.get(name)
    users, items = (tf.constant(random.normal(size=[count, 3]), tf.float32) for count in (17, 12))
    relevant = np.where(random.random(17) < 0.2, -1, random.integers(10, size=17)).astype(np.int32)
    weights = tf.constant(random.uniform(1.0, 2.0, size=17), tf.float32)
    offsets = tf.constant([*random.normal(size=10), -np.inf, -np.inf], tf.float32)
    labels = weights[:, tf.newaxis] * tf.one_hot(relevant, 12) + tf.constant([0.0] * 10 + [-1.0] * 2)
    found = []
    for compute in (
        lambda: loss(labels, tf.matmul(users, items, transpose_b=True) + tf.maximum(offsets, -9.0)),
        lambda: catalog_losses.catalog_loss(loss, users, items, tf.constant(relevant), weights, offsets),
        tf.function(lambda: catalog_losses.catalog_loss(loss, users, items, tf.constant(relevant), weights, offsets)),
    ):
        with tf.GradientTape() as tape:
            tape.watch([users, items])
            value = compute()
        found.append([value, *tape.gradient(value, [users, items])])
    for whole, eager, graph in zip(*found, strict=True):
        np.testing.assert_allclose(eager, whole, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(graph, whole, rtol=1e-5, atol=1e-6)


def walks(count, seed=0):
    """Users who visit random parts of a circle of 20 items, each in its order."""
    random = np.random.default_rng(seed)
    return in_time([(random.integers(20) + np.arange(random.integers(4, 9))) % 20 for _ in range(count)], 20)


OWN = {**SMALL, "softmax_epochs": 12, "softmax_batch_size": 8, "dropout": 0.1, "temperature": 0.2, "refit": False}


@pytest.fixture(scope="module")
def split():
    return recommendation.hold_out(walks(80), items=1, by="time")


@pytest.fixture(scope="module")
def fitted(split):
    # Trained to the end: held-out items do not tell epochs apart after the sixth one.
    return recommendation.Recommender(**OWN, validation_fraction=0.0).fit(split[0])


@pytest.mark.slow
def test_the_next_item_follows_from_the_last_one(fitted, split):
    assert fitted.evaluate(split[1], measures="P_1").means["P_1"].mean > 0.9
    assert fitted.recommend(histories=[[3, 4, 5], [3]], topn=1, exclude_seen=False).items.tolist() == [[6], [4]]
    forward, backward = fitted.recommend(histories=[[3, 4, 5], [5, 4, 3]], topn=20, exclude_seen=False).items
    assert forward.tolist() != backward.tolist()
    assert fitted.model_.baselines.settings == baseline_scores.DEFAULTS  # no items were held out


@pytest.mark.slow
@pytest.mark.parametrize(("length", "baselines"), [(1, True), (3, False)])
def test_short_histories_have_the_scores_of_longer_ones(length, baselines):
    options = {**SMALL, "softmax_epochs": 1, "refit": False, "history_length": length, "baselines": baselines}
    orders = np.random.default_rng(0).permuted(np.tile(np.arange(20), [40, 1]), axis=1)
    fitted = recommendation.Recommender(**options).fit(in_time([row[: 5 + row[0] % 10] for row in orders], 20))
    assert not baselines or fitted.model_.baselines.settings != baseline_scores.DEFAULTS
    latest = fitted.interactions_.latest(np.arange(40), 20)[0]
    histories = [[item for item in row.tolist() if item >= 0] for row in latest]
    expected, found = fitted.recommend(histories=histories), fitted.recommend(range(40))
    np.testing.assert_array_equal(found.items, expected.items)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)
    best = fitted.recommend(range(40), exclude_seen=False).scores[:, 0]
    np.testing.assert_allclose(fitted.predict(range(40)).max(axis=1), best, atol=1e-5)


def test_the_dimension_is_that_of_the_encoder():
    encoder, sizes = SequenceEncoder(size=4, num_features=LENGTH), {"num_users": 2, "num_items": 3}
    message = "`user_encoder` must return vectors of the size 5, `dim`, got 4."
    assert_error(message, recommendation.CatalogSequences, **sizes, dim=5, user_encoder=encoder)


def test_the_latest_items_are_held_out():
    everything = walks(80)
    recommender = recommendation.Recommender(**SMALL)
    by = recommender._training().held_out_by
    found = fit_data.FitData(recommender.get_params(), by, everything, None, None)
    found.hold_out()
    train, held = recommendation.hold_out(everything, items=0.1, by="time")
    assert (found.train.matrix != train.matrix).nnz == (found.validation.matrix != held.matrix).nnz == 0


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"negatives": 4}, {"loss": "smoothi_ndcg", "epochs": 2, "similarity": "dot"}])
def test_samples_losses_and_similarities_learn_the_order(options, split):
    recommender = recommendation.Recommender(**{**OWN, "baselines": False, **options})
    recommender.fit(split[0], validation=split[1])
    assert max(recommender.history_["val_ndcg_cut_20"]) > 0.9


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


def test_errors_name_the_argument_an_order_is_needed_and_tables_of_users_are_refused():
    for options, message in (
        ({"history_items": "bag"}, "`history_items` must be one of 'sequence', got 'bag'"),
        ({"baselines": 1}, "`baselines` must be True or False, got 1."),
        ({"dropout": 1.0}, "`dropout` must be a number in [0, 1), got 1.0"),
    ):
        assert_error(message, recommendation.Recommender, **{**SMALL, **options})
    recommender, plain = recommendation.Recommender(**SMALL), recommendation.Interactions(np.eye(80, 20))
    for given, name in (((plain, None), "interactions"), ((walks(80), plain), "validation")):
        message = f'`{name}` must have an order for `history_items="sequence"`, got none: read'
        assert_error(message, recommender.fit, given[0], validation=given[1])
    users = {"user": [0, 1, 2], "age": [1, 2, 3]}
    assert_error("`users` must be None with `history_items`, got a table.", recommender.fit, walks(3), users=users)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"dim": 1}, {"history_items": "sequence"}])
def test_a_catalog_of_one_item_has_finite_scores(options):
    options = {"loss": None, "dim": 4, "softmax_epochs": 1, "validation_fraction": 0.0, "verbose": False, **options}
    recommender = recommendation.Recommender(**options).fit(in_time([[0]] * 4, 1))
    for histories in ([[0]], [[]], [[0], []]):
        top = recommender.recommend(histories=histories, exclude_seen=False)
        assert np.isfinite(top.scores[:, 0]).all() and (top.items[:, 0] == 0).all()
    new = pd.DataFrame({"user": [50, 51], "item": [0, 0], "time": [7, 8]})
    recommender.update(recommendation.from_dataframe(new, user="user", item="item", time="time"))
    assert np.isfinite(recommender.predict(range(6))).all()
