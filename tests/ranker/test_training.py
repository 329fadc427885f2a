"""The epoch that validation queries select, and the number of epochs that follows from the data."""

import re

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tfr_smooth
from tfr_smooth import _keras, data, losses, metrics
from tfr_smooth.ranker import training
from tfr_smooth.training import validation

QUICK = {"loss": "softmax", "members": 1, "hidden": [8], "verbose": False}
ROLES = {"label": "label", "query": "query"}


def table(queries=200, seed=0):
    """Clicks by price."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"query": np.repeat(np.arange(queries), 5), "price": random.normal(size=5 * queries)})
    return frame.assign(label=(frame["price"] > 0.5).astype(int))


class Reversed(losses.SoftmaxLoss):
    """Is lowest for the worst ranking."""

    def weighted(self, labels, scores, mask, weights):
        return super().weighted(labels, -scores, mask, weights)


def test_a_mean_is_clearly_better_by_more_than_two_standard_errors():
    for better, expected in [
        ([0.1, 0.1, 0.1], True),
        ([0.1], False),  # nothing is known of its error
        ([0.4, 0.0], False),  # the mean 0.2 has a standard error of 0.2
        ([0.5, 0.1, 0.3], True),  # the mean 0.3 has a standard error of 0.2 / sqrt(3) = 0.115
        ([0.5, -0.1, 0.2], False),  # the mean 0.2 has a standard error of 0.3 / sqrt(3) = 0.173
        ([np.nan, 0.1, 0.1], False),
    ]:
        last = np.array([0.3, 0.5, 0.2])[: len(better)]
        for weight in (1.0, 0.25):
            weights = np.full(len(last), weight)
            assert validation.is_clearly_better(last + better, last, weights) is expected
            more = [np.append(values, 0.5) for values in (last + better, last, weights)]
            more[2] = np.append(weights, 0.0)  # no part of the mean
            assert validation.is_clearly_better(*more) is expected
    # The mean is weighted.
    better, last = np.array([0.5, -0.5, -0.5, 0.4]), np.zeros(4)
    assert not validation.is_clearly_better(better, last, np.ones(4))
    assert validation.is_clearly_better(better, last, [1.0, 1e-9, 1e-9, 1.0])


@pytest.mark.parametrize(("queries", "held"), [(100, None), (1000, 200), (10_000, 500)])
def test_a_fifth_of_the_queries_but_at_most_500_are_held_out(queries, held):
    labels = np.tile([0, 1, 0, 0], queries // 2)  # documents of every second query have different labels
    lists = data.from_arrays(np.zeros([2 * queries, 1]), labels, np.arange(2 * queries) // 2)
    order = np.random.default_rng(1).permutation(queries)
    parts = training.hold_out(lists, order)
    if held is None:
        assert parts is None  # about 10 of 20 queries tell good epochs from bad ones
        return
    rest, told = parts
    assert len(rest) == queries - held and not {*rest} & {*told}
    assert 0.3 * held < len(told) < 0.7 * held and not (told % 2).any()
    assert order[rest].max() < order[told].min() and (np.diff(rest) > 0).all()


@pytest.mark.slow
def test_all_epochs_are_used_unless_few_are_clearly_better(capsys, monkeypatch):
    monkeypatch.setattr("tfr_smooth.ranker.plan._MOST_EPOCHS", 6)
    frame, options = table(), {**QUICK, "trees": False}
    chosen = tfr_smooth.Ranker(**options | {"verbose": True}).fit(frame, **ROLES)
    assert chosen.best_epoch_ == 6 and len(chosen.history_["val_ndcg"]) == 6
    printed = capsys.readouterr().out
    assert "Held out to choose between 6 and 2 epochs: 40 of 200 queries" in printed
    assert re.search(r"\n6 epochs are used. Softmax loss of held-out queries: 0\.\d+ after 6 epochs, ", printed)
    assert printed.index("epochs are used") < printed.index("price ")  # those of the returned ranker
    given = tfr_smooth.Ranker(**options, epochs=6).fit(frame, **ROLES)
    np.testing.assert_array_equal(chosen.predict(frame), given.predict(frame))  # all queries are trained on
    assert given.best_epoch_ is None and set(given.history_) == {"loss"}
    tfr_smooth.Ranker(**{**QUICK, "verbose": True}).fit(table(20), **ROLES)
    tfr_smooth.Ranker(**options).fit(frame.assign(p=0.5), **ROLES, propensity="p")  # each click is a list of its own
    assert "Too few queries to choose the number of epochs: 6 are trained" in capsys.readouterr().out


@pytest.mark.slow
def test_few_epochs_of_a_schedule_of_their_own_are_used_if_more_are_worse(capsys):
    frame = table()
    random = np.random.default_rng(1)
    frame["label"] = (frame["price"] + 3 * random.gumbel(size=len(frame)) > 4).astype(int)
    frame = frame.assign(**{f"number_{place}": random.normal(size=len(frame)) for place in range(20)})
    options = {**QUICK, "loss": "smoothi_ndcg", "hidden": [64], "trees": False}
    chosen = tfr_smooth.Ranker(**options | {"verbose": True}).fit(frame, **ROLES)
    assert chosen.best_epoch_ == len(chosen.history_["val_ndcg"]) == 4
    printed = capsys.readouterr().out
    # The metric's loss trains in each of the three trainings.
    assert "4 epochs are used" in printed and printed.count("the loss is smoothi_ndcg_loss") == 3
    four = tfr_smooth.Ranker(**options, epochs=4).fit(frame, **ROLES)
    np.testing.assert_array_equal(chosen.predict(frame), four.predict(frame))


def test_the_softmax_loss_of_lists_equals_its_formula():
    scores, labels = [[0.3, -1.0, 2.0], [5.0, 5.0], [1.0]], [[1.0, 0.0, 3.0], [0.0, 2.0], [0.0]]
    found = training.softmax_losses(*map(np.concatenate, (scores, labels)), np.array([3, 2, 1]))
    first = np.exp(scores[0]) / np.sum(np.exp(scores[0]))
    np.testing.assert_allclose(found, [-(np.log(first[0]) + 3 * np.log(first[2])) / 4, np.log(2), 0.0])


def test_one_training_is_enough_with_a_number_or_validation_queries(untrained, monkeypatch):
    monkeypatch.setattr("tfr_smooth.ranker.training.hold_out", None)  # not called
    for options in ({"epochs": 20}, {"select_by": "last"}, {"validation_fraction": 0.25}):
        tfr_smooth.Ranker(**QUICK, **options).fit(table(20), **ROLES)
    assert untrained == [20, 20, 20]


class Given(validation.SelectedEpoch):
    """Selects by values that are given by epoch and query."""

    given = np.zeros([3, 4])

    def _exact(self, model):
        values = super()._exact(model)
        self.of_last = [[1.0] * 4, self.given[len(self.history.get("loss", ()))].tolist()]
        return {**values, self._of_lists.name: float(np.mean(self.of_last[1]))}


@pytest.mark.parametrize(("by_epoch", "selected"), [([0.5, 0.6, 0.3], 2), ([0.4, 0.4, 0.3], 3)])
def test_the_weights_and_the_file_are_those_of_the_selected_epoch(by_epoch, selected, monkeypatch, tmp_path):
    noise = np.zeros([3, 4])
    noise[0] = [0.1, -0.1, 0.1, -0.1]  # the standard error of a difference to the first epoch is 0.058
    monkeypatch.setattr(Given, "given", np.array(by_epoch)[:, None] + noise)
    monkeypatch.setattr("tfr_smooth.ranker.plan.SelectedEpoch", Given)
    weights = []

    class Keep(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            weights.append(self.model.get_weights())

    frame = table(40)
    fit = {"validation": frame, "checkpoint_dir": tmp_path}
    ranker = tfr_smooth.Ranker(**QUICK, epochs=3).fit(frame, **ROLES, **fit, callbacks=[Keep()])
    assert ranker.best_epoch_ == selected
    best = tf.keras.models.load_model(tmp_path / "best.keras", compile=False)
    again = tfr_smooth.Ranker(**QUICK, epochs=3).fit(frame, **ROLES, **fit)  # no epoch is left to train
    for scorer in (ranker.model_.scorer, best, again.model_.scorer):
        for found, expected in zip(scorer.get_weights(), weights[selected - 1], strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("several", [False, True])
def test_the_metric_by_list_is_that_of_trec_eval(untrained, several):
    frame = table(64).assign(cheap=lambda frame: 1 - frame["label"])
    label = {"label": 1.0, "cheap": 0.5} if several else "label"
    ranker = tfr_smooth.Ranker(**QUICK).fit(frame, query="query", label=label)
    lists = ranker.features_.transform(ranker._lists(frame, needs=["label", "query"]))
    metric = metrics.NDCGMetric(gain="linear")
    metric = metrics.MultiObjectiveMetric(metric, weights=[1.0, 0.5]) if several else metric
    batches = ranker.features_.batches(lists, 30)
    of_lists = validation.SelectedEpoch(batches, [metric], monitor=metric.name)
    alone = validation.ExactValidation(batches, [metric])
    for each in (of_lists, alone):
        each.set_model(ranker._scorer)
    means, (weights, values) = of_lists.evaluate(), of_lists.of_last
    by_query = ranker.evaluate(frame, measures=["ndcg"], by_query=True)
    order = [str(query) for query in range(64)]
    expected = [pd.Series(by_query[name])[order] for name in by_query]
    np.testing.assert_allclose(values, np.average(expected, axis=0, weights=[1.0, 0.5] if several else None), atol=1e-6)
    assert means["ndcg"] == pytest.approx(np.average(values, weights=weights), abs=1e-6)
    assert means == alone.evaluate() and alone.of_last == [[], []]


class Interrupt(tf.keras.callbacks.Callback):
    """Interrupts a training in its second epoch."""

    trainings = 0

    def __init__(self, training):
        super().__init__()
        self.training = training

    def on_train_begin(self, logs=None):
        self.trainings += 1

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1 and self.trainings == self.training:
            raise KeyboardInterrupt


@pytest.mark.slow
def test_both_trainings_resume(tmp_path, monkeypatch):
    monkeypatch.setattr("tfr_smooth.ranker.plan._MOST_EPOCHS", 3)
    options = {**QUICK, "loss": "smoothi_ndcg", "dropout": 0.2 if _keras.IS_KERAS_3 else 0.0}
    fit = lambda folder, callbacks=(): tfr_smooth.Ranker(**options).fit(  # noqa: E731
        table(), **ROLES, checkpoint_dir=folder, callbacks=callbacks
    )
    for number in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            fit(tmp_path / "interrupted", [Interrupt(number)])
    resumed, whole = fit(tmp_path / "interrupted"), fit(tmp_path / "whole")
    assert resumed.history_ == whole.history_ and resumed.best_epoch_ == whole.best_epoch_ == 3
    np.testing.assert_array_equal(resumed.predict(table()), whole.predict(table()))
