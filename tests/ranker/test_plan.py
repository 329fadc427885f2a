"""The plan of a training: what selects the epoch, what identifies a training, and when the loss changes."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tfr_smooth
from tfr_smooth import metrics
from tfr_smooth.ranker.plan import TrainingPlan

QUICK = {"loss": "softmax", "members": 1, "hidden": [4], "epochs": 3, "verbose": False}


def table(queries=12, seed=0):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"query": np.repeat(np.arange(queries), 4), "price": random.normal(size=4 * queries)})
    return frame.assign(
        label=(frame["price"] > 0.0).astype(int), query=[f"search {number}" for number in frame["query"]]
    )


FRAME = table()
ROLES = {"label": "label", "query": "query"}


@pytest.mark.parametrize(("loss", "select_by", "name"), [("softmax", "smooth", "ndcg"), ("smoothi_ndcg", "map", "map")])
@pytest.mark.slow
def test_select_by_names_the_metric_that_selects_the_epoch(loss, select_by, name, capsys):
    ranker = tfr_smooth.Ranker(**{**QUICK, "loss": loss, "epochs": 1, "verbose": True}, select_by=select_by)
    ranker.fit(FRAME, **ROLES, validation=FRAME, further_metrics=[metrics.MRRMetric()])
    assert f"Epoch 1 is used: {name} {ranker.history_['val_' + name][0]:.4f}" in capsys.readouterr().out


class Lengths(tf.keras.layers.Layer):
    """An encoder of texts by a trained weight."""

    width = 1

    def __init__(self, value):
        super().__init__()
        self.value = self.add_weight(name="value", shape=(1,), initializer=tf.keras.initializers.Constant(value))


def test_the_weights_of_an_encoder_and_the_epochs_of_a_decay_identify_a_training():
    plans = []
    for value in (1.0, 1.0, 2.0):
        params = tfr_smooth.Ranker(kinds={"title": Lengths(value)}).get_params()
        plans.append(TrainingPlan(params, ()).identity())
    assert plans[0] == plans[1] != plans[2]
    for options, is_same in (({}, False), ({"schedule": "constant", "softmax_epochs": 0}, True)):
        given = [tfr_smooth.Ranker(epochs=epochs, **options).get_params() for epochs in (2, 3)]
        one, other = (TrainingPlan(params, ()).identity() for params in given)
        assert (one == other) is is_same


def scores(**options):
    return tfr_smooth.Ranker(**{**QUICK, **options}).fit(FRAME, **ROLES).predict(FRAME)


def test_later_trainings_with_the_same_step_trace_none_and_are_as_in_a_new_process(monkeypatch):
    kept = {}
    monkeypatch.setattr("tfr_smooth.ranker.plan._KEPT", kept)
    first = scores(loss="soft_ndcg", dropout=0.3)
    ((model, _),) = kept.values()
    monkeypatch.setattr(tf.keras.Model, "compile", None)  # not called
    other = scores(loss="soft_ndcg", dropout=0.3, seed=1, epochs=2, learning_rate=1e-3)
    assert not np.array_equal(other, first)
    np.testing.assert_array_equal(scores(loss="soft_ndcg", dropout=0.3), first)
    assert [of_step for of_step, _ in kept.values()] == [model]
    monkeypatch.undo()
    monkeypatch.setattr("tfr_smooth.ranker.plan._KEPT", kept)
    monkeypatch.setattr("tfr_smooth.ranker.plan._MOST_KEPT", 1)
    # Other steps, and losses that draw numbers or have variables.
    for sigma in (0.7, tf.Variable(0.5, trainable=False)):
        given = {"loss": "soft_ndcg", "dropout": 0.3, "sigma": sigma}
        np.testing.assert_array_equal(scores(**given), scores(**given))
    scores(loss="pl_rank_ndcg")
    (settings,) = kept
    assert '"sigma": 0.7' in settings


def test_validation_queries_that_cannot_select_an_epoch_are_refused():
    equal = "`{}` must have a query with documents of different labels, got"
    for valid, message in [
        (FRAME.assign(label=1), equal.format("validation")),
        (FRAME.groupby("query").head(1), equal.format("validation")),
        (FRAME.iloc[:0], "`validation` must have at least one row, got none."),
    ]:
        with pytest.raises(ValueError) as error:
            tfr_smooth.Ranker(**QUICK).fit(FRAME, **ROLES, validation=valid)
        assert str(error.value).startswith(message)
    last = tfr_smooth.Ranker(**{**QUICK, "epochs": 1}, select_by="last")
    assert last.fit(FRAME, **ROLES, validation=FRAME.assign(label=1)).best_epoch_ == 1
    one = FRAME.assign(label=np.where(FRAME["query"] == "search 0", FRAME["label"], 0))
    with pytest.raises(ValueError, match=equal.format("validation_fraction")):
        tfr_smooth.Ranker(**QUICK, validation_fraction=0.2, seed=1).fit(one, **ROLES)


@pytest.mark.parametrize(("loss", "has_bias", "members"), [("softmax", False, 1), ("mean_squared", True, 2)])
def test_the_output_has_a_bias_only_if_the_loss_depends_on_it(loss, has_bias, members):
    ranker = tfr_smooth.Ranker(**{**QUICK, "members": members, "loss": loss}, normalization=None, weight_decay=0.0)
    scorer = ranker.fit(FRAME, **ROLES).model_.scorer
    bias = scorer.tower[-1].bias
    assert (bias is not None and bool(np.any(bias.numpy() != 0.0))) == has_bias
