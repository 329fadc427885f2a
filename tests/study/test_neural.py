"""Neural rankers are `tfr_smooth.Ranker` with settings, and their results depend only on settings and seed."""

import numpy as np
import pytest

import tfr_smooth
from tfr_smooth import training
from tfr_smooth.data.letor_parser import Query
from tfr_smooth.data.query_cache import QueryCache
from tfr_smooth.study import folds
from tfr_smooth.study.rankers import RANKERS
from tfr_smooth.study.rankers.ridge import fit_ridge

SETTINGS = {"hidden": [8], "epochs": 4, "batch_size": 16, "learning_rate": 0.01, "alpha": 10.0}
RANKER = RANKERS["smoothi_ndcg"]


def fit(fold, seed=0, **changes):
    return RANKER.fit(fold, {**SETTINGS, **changes}, seed)


@pytest.fixture(scope="module")
def plain(fold):
    return fit(fold)


NOISE = {"dropout": 0.3, "input_noise": 0.3, "weight_decay": 0.5, "linear_path": 0.1, "members": 2}


@pytest.mark.slow
@pytest.mark.parametrize("changes", [NOISE, *({name: value} for name, value in NOISE.items())], ids=str)
def test_results_depend_only_on_settings_and_seed(fold, plain, changes):
    first = fit(fold, **changes)
    other = fit(fold, seed=1, **{**changes, "learning_rate": 0.02})
    again = fit(fold, **changes)
    np.testing.assert_array_equal(first.test, again.test)
    np.testing.assert_array_equal(first.curves["loss"], again.curves["loss"])
    assert np.abs(first.test - other.test).max() > 1e-3
    assert np.abs(first.test - plain.test).max() > 1e-4


@pytest.mark.slow
def test_a_neural_ranker_is_the_ranker_of_the_same_arguments(fold):
    train, valid, test = (fold.parts[part] for part in ("train", "valid", "test"))
    settings = {name: value for name, value in SETTINGS.items() if name != "alpha"}
    settings |= {"dropout": 0.5, "select_by": "ndcg"}
    ranker = tfr_smooth.Ranker(loss="list_net", seed=3, verbose=False, **{**training.RECIPES["paper"], **settings})
    queries = np.repeat(np.arange(len(valid.lengths)), valid.lengths)
    ranker.fit(train.features, train.labels, group=train.lengths, eval_set=(valid.features, valid.labels, queries))
    fitted = RANKERS["list_net"].fit(fold, settings, 3)
    np.testing.assert_array_equal(fitted.test, ranker.predict(test.features))
    assert fitted.details["best_epoch"] == ranker.best_epoch_


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dropout", "input_noise"])
def test_each_step_draws_new_noise(fold, name):
    """With one training query and a learning rate of almost 0, only noise changes the loss between epochs."""
    lists = fold.parts["train"]
    query = int(np.argmax(lists.lengths))
    documents = slice(lists.starts[query], lists.starts[query + 1])
    alone = Query(b"q", lists.features[documents], lists.labels[documents], [b""] * lists.lengths[query])
    single = folds.Fold({**fold.parts, "train": QueryCache.in_memory(16, [alone])})
    still = {"learning_rate": 1e-30, "epochs": 3}
    assert np.ptp(fit(single, **still).curves["loss"]) < 1e-6
    assert len(set(np.round(fit(single, **still, **{name: 0.5}).curves["loss"], 4))) == 3


@pytest.mark.slow
def test_a_linear_path_is_initialized_with_ridge_regression(fold):
    fitted = fit(fold, linear_path=0.1, learning_rate=1e-30, epochs=1)
    features, labels = fold.parts["train"].features, fold.parts["train"].labels
    weights = fit_ridge(features, labels).weights(0.1)
    expected = fold.parts["test"].features @ weights / np.std(features @ weights)
    np.testing.assert_allclose(fitted.test, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_patience_stops_training(fold):
    fitted = fit(fold, epochs=40, patience=2, learning_rate=0.1)
    assert len(fitted.curves["loss"]) == fitted.details["best_epoch"] + 3 < 40


@pytest.mark.slow
def test_a_loss_without_a_metric_selects_epochs_by_ndcg(fold):
    settings = {name: value for name, value in SETTINGS.items() if name != "alpha"}
    fitted = RANKERS["list_net"].fit(fold, settings, 0)
    assert "valid_smooth" not in fitted.curves
    assert fitted.details["best_epoch"] == int(np.argmax(fitted.curves["valid_ndcg"]))


def test_unknown_and_invalid_settings_raise():
    with pytest.raises(ValueError, match="`settings` of Neural must be among .*hidden, .*, got 'sigma'"):
        RANKER.check({"sigma": 1.0})
    with pytest.raises(ValueError, match="`alpha` must be"):
        RANKER.check({"alpha": -1.0})
    RANKERS["soft_ndcg"].check({"discount": {"alpha": 0.5}})


def test_jobs_of_equal_graphs_have_equal_affinity():
    shared = RANKER.affinity({"alpha": 1.0})
    assert RANKER.affinity({"alpha": 1.0, "learning_rate": 0.5, "epochs": 3, "batch_size": 4}) == shared
    assert RANKER.affinity({"alpha": 2.0}) != shared != RANKER.affinity({"alpha": 1.0, "dropout": 0.5})


def test_the_setting_recipe_stands_for_the_defaults_of_the_ranker():
    expanded = {**RANKER.defaults, **RANKER.expanded({"recipe": "default"})}
    default = tfr_smooth.Ranker(**expanded)
    assert default.get_params() == {**tfr_smooth.Ranker().get_params(), **default.get_params()}
    for name, value in tfr_smooth.Ranker().get_params().items():
        assert default.get_params()[name] == value, name
    assert RANKER.expanded({"recipe": "paper"}) == {}
