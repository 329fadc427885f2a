"""Labels of several objectives in arrays and tables, and stochastic label aggregation."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from tests.helpers import value_and_gradient
from tfr_smooth import data, losses

LABELS = np.array([[2, 0], [0, 1], [1, 0], [0, 3]])
QUERIES = ["a", "b", "a", "a"]
FEATURES = np.arange(4.0)[:, np.newaxis]


def test_arrays_and_tables_have_a_label_per_objective():
    frame = pd.DataFrame({"f": FEATURES[:, 0], "q": QUERIES, "relevance": LABELS[:, 0], "purchase": LABELS[:, 1]})
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    of_arrays = data.Lists.from_arrays(FEATURES, LABELS, QUERIES, weights=weights).batches(2)
    of_frame = data.Lists.from_table(frame, query="q", label=["relevance", "purchase"], stack=True).batches(2)
    for inputs, labels, *given in (next(iter(of_arrays)), next(iter(of_frame))):
        np.testing.assert_array_equal(labels, [[[2, 0], [1, 0], [0, 3]], [[0, 1], [-1, -1], [-1, -1]]])
        np.testing.assert_array_equal(inputs["mask"], [[True] * 3, [True, False, False]])
        np.testing.assert_array_equal(inputs["features"][:, :, 0], [[0, 2, 3], [1, 0, 0]])
        assert [each.numpy().tolist() for each in given] in ([], [[[1, 3, 4], [2, 0, 0]]])
    grouped = data.Lists.from_arrays(FEATURES, LABELS, QUERIES).batches(
        1, list_size=2, shuffle=True, seed=0, group_by_length=True
    )
    assert {labels.shape for _, labels in grouped} == {(1, 2, 2)}


def many(count=20_000):
    """Lists with the same two documents, of which each label prefers another."""
    labels = np.tile([[1.0, 0.0], [0.0, 2.0]], [count, 1])
    return data.Lists.from_arrays(np.zeros([2 * count, 1]), labels, np.repeat(np.arange(count), 2)).batches(count)


def test_expected_loss_and_gradient_are_those_of_the_weighted_sum():
    weights, scores = [0.75, 0.25], np.float32([[0.3, -0.4]])
    ((_, labels),) = data.draw_labels(many(), weights, seed=3)
    (_, both) = next(iter(many()))
    loss = losses.SoftmaxLoss(reduction="none")
    value, gradient = value_and_gradient(loss, labels, np.tile(scores, [len(labels), 1]))
    expected = value_and_gradient(
        losses.MultiObjectiveLoss("softmax", weights=weights, reduction="none"), both[:1], scores
    )
    # Five standard errors of the mean.
    for found, wanted in ((value, expected[0][0]), (gradient, expected[1][0])):
        error = found.std(axis=0) / np.sqrt(len(found))
        assert (np.abs(found.mean(axis=0) - wanted) < 5.0 * error + 1e-6).all()
        assert (error > 1e-4).all()


def test_weights_above_0_are_proportional_to_frequencies_and_0_is_never_drawn():
    labels = np.tile([[1.0, 2.0, 3.0]], [30_000, 1])
    dataset = data.Lists.from_arrays(np.zeros([30_000, 1]), labels, np.arange(30_000)).batches(30_000)
    ((_, drawn),) = data.draw_labels(dataset, [3.0, 0.0, 1.0], seed=0)
    values, counts = np.unique(drawn.numpy(), return_counts=True)
    assert values.tolist() == [1.0, 3.0]
    np.testing.assert_allclose(counts / 30_000, [0.75, 0.25], atol=0.0125)  # five standard deviations


def test_draws_depend_on_seed_and_batch_only_and_resume():
    def drawn(seed=1, start=0, epochs=6):
        options = {"batch_size": 8, "shuffle": True, "seed": 0, "first_epoch": start, "num_epochs": epochs - start}
        labels = np.random.default_rng(0).integers(0, 9, [120, 3])
        dataset = data.Lists.from_arrays(np.zeros([120, 1]), labels, np.repeat(np.arange(40), 3)).batches(**options)
        batches = data.draw_labels(dataset, [1.0, 1.0, 1.0], seed=seed, first_batch=5 * start)
        return [labels.numpy().tolist() for _, labels in batches]

    whole = drawn()
    tf.random.set_seed(7)
    assert drawn() == whole and drawn(start=4) == whole[20:]
    assert drawn(seed=2) != whole and len(whole) == 30


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: data.draw_labels(many(2), [1.0], seed=0), r"`dataset` must have labels \[batch, list, 1\]"),
        (lambda: data.draw_labels(many(2), [1.0, -1.0], seed=0), "`weights` must be .* >= 0, got -1.0"),
        (lambda: data.draw_labels(many(2), [1.0, 1.0], seed=-1), "`seed` must be an integer >= 0, got -1"),
        (lambda: data.draw_labels(many(2), [1, 1], seed=0, first_batch=-1), "`first_batch` must be an integer >= 0"),
        (
            lambda: data.Lists.from_arrays(FEATURES, [[1, 0], [0, -1], [0, 0], [0, 0]], QUERIES).batches(1),
            "`labels` must be finite float32 numbers >= 0, got -1 in row 1",
        ),
        (
            lambda: data.Lists.from_arrays(FEATURES, [[1, 0], [0, 1], [0, np.nan], [0, 0]], QUERIES).batches(1),
            "`labels` must be finite float32 numbers >= 0, got None in row 2",
        ),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_missing_label_column_is_named():
    frame = pd.DataFrame({"f": [0.0], "q": [1], "relevance": [1]})
    with pytest.raises(ValueError, match="`label` must be one of .*, got 'purchase'"):
        data.Lists.from_table(frame, query="q", label=["relevance", "purchase"], stack=True).batches(1)
