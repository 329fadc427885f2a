"""The plan of a training: what selects the epoch, what identifies a training, and when the loss changes."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tfr_smooth
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


@pytest.fixture(scope="module")
def fitted():
    return tfr_smooth.Ranker(**QUICK).fit(FRAME, **ROLES)


class Falling(tf.keras.metrics.Metric):
    """A metric that is best in the first epoch."""

    def __init__(self):
        super().__init__(name="falling")
        self.epoch = tf.Variable(0.0, trainable=False)

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Does nothing."""

    def reset_state(self):
        self.epoch.assign_sub(1.0)

    def result(self):
        return tf.convert_to_tensor(self.epoch)


@pytest.mark.slow
def test_further_metrics_do_not_select_the_epoch():
    ranker = tfr_smooth.Ranker(**{**QUICK, "loss": "smoothi_ndcg"})
    ranker.fit(FRAME, **ROLES, validation=FRAME, further_metrics=[Falling()])
    falling = ranker.history_["val_falling"]
    assert falling == sorted(falling, reverse=True)
    assert ranker.best_epoch_ == int(np.argmax(ranker.history_["val_smoothi_ndcg"])) + 1 > 1


@pytest.mark.parametrize(
    ("loss", "select_by", "name"),
    [("softmax", "smooth", "ndcg"), ("smoothi_ndcg", "map", "map")],
)
def test_select_by_names_the_metric_that_selects_the_epoch(loss, select_by, name, capsys):
    ranker = tfr_smooth.Ranker(**{**QUICK, "loss": loss, "epochs": 1, "verbose": True}, select_by=select_by)
    ranker.fit(FRAME, **ROLES, validation=FRAME, further_metrics=[Falling()])
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


@pytest.mark.slow
def test_a_table_needs_no_column_of_numbers_and_names_may_be_those_of_roles():
    frame = pd.concat([table(40)] * 2, ignore_index=True)
    sets = [["good", "cheap"] if price > 0 else ["bad"] for price in frame["price"]]
    frame = frame.assign(features=sets).drop(columns="price")
    assert tfr_smooth.Ranker(**{**QUICK, "epochs": 10}, learning_rate=0.03).fit(frame, **ROLES).score(frame) > 0.9


@pytest.mark.parametrize(("loss", "has_bias", "members"), [("softmax", False, 1), ("mean_squared", True, 2)])
def test_the_output_has_a_bias_only_if_the_loss_depends_on_it(loss, has_bias, members):
    ranker = tfr_smooth.Ranker(**{**QUICK, "members": members, "loss": loss}, normalization=None, weight_decay=0.0)
    scorer = ranker.fit(FRAME, **ROLES).model_.scorer
    bias = scorer.tower[-1].bias
    assert (bias is not None and bool(np.any(bias.numpy() != 0.0))) == has_bias


@pytest.mark.slow
def test_names_of_columns_may_be_of_any_type(fitted):
    name = lambda place, name: place if name == "query" else ("table", name)  # noqa: E731
    names = {column: name(place, column) for place, column in enumerate(FRAME)}
    other = FRAME.copy()
    other.columns = pd.Index([names[column] for column in FRAME], tupleize_cols=False)
    options = {"kinds": {names["price"]: "number"}}
    ranker = tfr_smooth.Ranker(**QUICK, **options).fit(other, label=names["label"], query=names["query"])
    np.testing.assert_array_equal(ranker.predict(other), fitted.predict(FRAME))
    assert ranker.score(other) == fitted.score(FRAME)


def test_messages_about_a_query_have_its_id(fitted):
    frame = FRAME.assign(label=np.where(FRAME["query"] == "search 3", 0.5, FRAME["label"]))
    with pytest.raises(ValueError, match="`labels` of query 'search 3' must be whole numbers"):
        fitted.evaluate(frame)
