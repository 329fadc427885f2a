"""`Ranker.fit(propensity=)`: training on clicks, corrected for position bias."""

import numpy as np
import pandas as pd
import pytest

import tfr_smooth
from experiments.click_simulation import User, simulate
from tfr_smooth import data

USER = User(eta=1.0, noise=0.1, max_label=2)
SMALL = {"loss": "softmax", "hidden": [8], "members": 1, "epochs": 3, "verbose": False}


def documents(seed):
    """Labels depend on the column "a" only."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.normal(size=[1000, 3]), columns=list("abc"))
    frame["session"] = np.repeat(np.arange(50), 20)
    frame["click"] = np.clip(np.round(frame["a"] + 0.5), 0, 2)
    return frame


def click_log():
    """Clicks on rankings by the column "b", which is not relevant."""
    frame = documents(0)
    log = simulate(frame["click"], frame["session"], frame["b"], USER, num_sessions=1500)
    shown = frame.iloc[log.rows].reset_index(drop=True)
    shown["session"], shown["click"] = log.sessions, log.clicks.astype(int)
    shown["propensity"] = USER.propensities(10)[log.positions - 1]
    return shown


LOG = click_log()


@pytest.mark.slow
def test_propensities_remove_the_bias_of_what_was_shown(tmp_path):
    test = documents(1)
    biased = tfr_smooth.Ranker(**SMALL).fit(LOG.drop(columns="propensity"), label="click", query="session")
    ranker = tfr_smooth.Ranker(**SMALL).fit(LOG, label="click", query="session", propensity="propensity")
    found = {name: each.evaluate(test)["ndcg"].mean for name, each in {"biased": biased, "ranker": ranker}.items()}
    assert found["ranker"] > 0.97 > 0.93 > found["biased"]
    # The propensity is no feature, and true labels can select the epoch.
    assert [column.name for column in ranker.features_.columns] == ["a", "b", "c"]
    ranker.save(tmp_path / "ranker.keras")
    loaded = tfr_smooth.Ranker.load(tmp_path / "ranker.keras")
    np.testing.assert_allclose(loaded.predict(test), ranker.predict(test.drop(columns="click")), rtol=1e-5)


def test_batches_have_one_list_per_click_with_its_inverse_propensity():
    log = LOG[LOG["session"] < 20].assign(a_weight=np.float32(3.0))
    roles = {"label": "click", "query": "session", "propensity": "propensity", "weight": "a_weight"}
    lists = data.from_table(log, **roles, features=["a", "b", "c"], stack=True)
    ((inputs, labels, weights),) = lists.batches(1000)
    clicked = LOG[(LOG["session"] < 20) & (LOG["click"] == 1)]
    assert 0 < len(clicked) < 200 and labels.shape[0] == len(clicked)
    np.testing.assert_array_equal(np.sum(labels == 1.0, axis=1), 1)
    found = np.column_stack([inputs["features"].numpy()[labels == 1.0], weights])
    expected = clicked.assign(weight=3.0 / clicked["propensity"])[["a", "b", "c", "weight"]]
    np.testing.assert_allclose(np.sort(found, axis=0), np.sort(expected.to_numpy(), axis=0), rtol=1e-6)


@pytest.mark.slow
def test_the_validation_set_has_clicks_with_propensities_or_labels():
    ranker = tfr_smooth.Ranker(**SMALL)
    fit = {"label": "click", "query": "session", "propensity": "propensity"}
    labels = documents(2)
    ranker.fit(LOG, **fit, validation=labels)
    best = ranker.history_["val_ndcg"][ranker.best_epoch_ - 1]
    assert best == pytest.approx(ranker.evaluate(labels)["ndcg"].mean, abs=1e-5)

    held = LOG[LOG["session"] >= 1200]
    ranker.fit(LOG, **fit, validation=held)
    # NDCG of a list with one click is the discount at its rank; the mean is weighted by inverse propensities.
    scored = held.assign(score=ranker.predict(held))
    rank = scored.groupby("session")["score"].rank(ascending=False, method="first")
    clicked = scored["click"] == 1
    expected = np.average(1.0 / np.log2(1.0 + rank[clicked]), weights=1.0 / scored["propensity"][clicked])
    assert ranker.history_["val_ndcg"][ranker.best_epoch_ - 1] == pytest.approx(expected, abs=1e-5)


BAD = {
    "column 'propensity' must be finite float32 numbers > 0, got 0.0 in row 1.": {"propensity": [1.0, 0.0]},
    "`label` must have a click with `propensity`, got none.": {"click": [0, 0]},
    "`label` must be one column of clicks with `propensity`, got ['click', 'a'].": {"a": [0, 1]},
}


def test_bad_clicks_are_reported_in_one_line():
    frame = pd.DataFrame({"x": [0.0, 1.0], "session": [0, 0], "click": [0, 1], "propensity": [1.0, 0.5]})
    for message, change in BAD.items():
        label, bad = {"click": 1.0, "a": 1.0} if "a" in change else "click", frame.assign(**change)
        with pytest.raises(ValueError) as error:
            tfr_smooth.Ranker(**SMALL).fit(bad, label=label, query="session", propensity="propensity")
        assert str(error.value) == message
