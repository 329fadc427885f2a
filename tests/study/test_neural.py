"""Neural rankers train like examples/train_letor.py, and their results depend only on settings and seed."""

import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth import data, losses, metrics, models, training
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


def trained_by_keras(dataset, seed, select_by, path):
    """Trains like examples/train_letor.py; returns the validation and test scores, and the validation callback."""
    files = dataset.folds["Fold1"]
    read = lambda part, **kwargs: data.read_letor(list(files[part]), batch_size=16, num_features=16, **kwargs)  # noqa: E731
    tf.keras.utils.set_random_seed(seed)
    model = models.FeedForwardScorer(hidden=[8])
    loss = losses.SmoothINDCGLoss(alpha=10.0)
    model.compile(optimizer=tf.keras.optimizers.Adam(0.01), loss=loss)
    model.build([None, None, 16])
    watched = {
        "ndcg": metrics.NDCGMetric(gain="linear"),
        "smooth": metrics.MeanOverLists(loss.ranking, loss.measure, no_relevant="skip", name="smooth"),
    }
    validation = training.ExactValidation(
        read("valid"), list(watched.values()), monitor=watched[select_by].name, path=path / "best.keras"
    )
    lists = read("train", shuffle_buffer=30, seed=seed, num_epochs=4)
    model.fit(lists, epochs=4, steps_per_epoch=2, verbose=0, callbacks=[validation])
    best = tf.keras.models.load_model(path / "best.keras")
    scores = {
        part: np.concatenate([query.scores for query in training.score_queries(best, read(part, return_ids=True))])
        for part in ("valid", "test")
    }
    return scores, validation


@pytest.mark.parametrize("select_by", ["smooth", pytest.param("ndcg", marks=pytest.mark.slow)])
def test_results_equal_training_with_keras(dataset, fold, select_by, tmp_path):
    scores, validation = trained_by_keras(dataset, 3, select_by, tmp_path)
    fitted = fit(fold, seed=3, select_by=select_by)
    assert fitted.details["best_epoch"] == validation.best_epoch
    for name in ("loss", "valid_ndcg", "valid_smooth"):
        np.testing.assert_allclose(fitted.curves[name], validation.history[name.replace("valid", "val")], rtol=2e-4)
    np.testing.assert_allclose(fitted.valid, scores["valid"], rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(fitted.test, scores["test"], rtol=2e-3, atol=2e-3)


FAST = [{}, {"dropout": 0.3, "input_noise": 0.3, "weight_decay": 0.5, "average_weights": 0.8, "linear_path": 0.1}]
SLOW = [*({name: value} for name, value in FAST[1].items()), {"schedule": "cosine"}, {"normalization": "quantile"}]
SLOW += [{"attention_heads": 2}, {"mixture": {"list_net": 1.0}}]


@pytest.mark.parametrize("changes", FAST + [pytest.param(change, marks=pytest.mark.slow) for change in SLOW], ids=str)
def test_results_depend_only_on_settings_and_seed(fold, plain, changes):
    first = fit(fold, **changes)
    other = fit(fold, seed=1, **{**changes, "learning_rate": 0.02})
    again = fit(fold, **changes)
    np.testing.assert_array_equal(first.test, again.test)
    np.testing.assert_array_equal(first.curves["loss"], again.curves["loss"])
    assert np.abs(first.test - other.test).max() > 1e-3
    if changes:
        assert np.abs(first.test - plain.test).max() > 1e-4


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
def test_weight_averages_with_decay_0_are_the_weights_and_none_changes_training(fold, plain):
    np.testing.assert_allclose(fit(fold, average_weights=0.9).curves["loss"], plain.curves["loss"], rtol=1e-6)
    np.testing.assert_allclose(fit(fold, average_weights=1e-30).test, plain.test, rtol=1e-6)


@pytest.mark.slow
def test_members_are_trained_with_different_seeds_and_averaged(fold):
    together, apart = fit(fold, seed=1, members=2), [fit(fold, seed=seed) for seed in (2, 3)]
    for part in ("valid", "test"):
        mean = np.mean([getattr(member, part) for member in apart], axis=0)
        np.testing.assert_allclose(getattr(together, part), mean, rtol=1e-6)
    assert together.details["members"] == [member.details for member in apart]


@pytest.mark.slow
def test_a_mixture_adds_another_loss(fold):
    still = {"learning_rate": 1e-30, "epochs": 1}
    settings = {name: value for name, value in SETTINGS.items() if name != "alpha"}
    other = RANKERS["list_net"].fit(fold, {**settings, **still}, 0)
    expected = fit(fold, **still).curves["loss"][0] + 0.5 * other.curves["loss"][0]
    assert fit(fold, **still, mixture={"list_net": 0.5}).curves["loss"][0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_patience_stops_training(fold):
    fitted = fit(fold, epochs=40, patience=2, learning_rate=0.1)
    assert len(fitted.curves["loss"]) == fitted.details["best_epoch"] + 3 < 40


@pytest.mark.slow
def test_a_loss_without_a_metric_selects_epochs_by_ndcg(fold):
    settings = {name: value for name, value in SETTINGS.items() if name != "alpha"}
    fitted = RANKERS["list_net"].fit(fold, settings, 0)
    assert fitted.details["monitor"] == "ndcg" and "valid_smooth" not in fitted.curves


@pytest.mark.slow
def test_diverging_training_has_finite_scores(fold):
    fitted = RANKERS["mean_squared"].fit(fold, {"hidden": [8], "epochs": 2, "learning_rate": 1e38}, 0)
    assert np.isfinite(fitted.test).all()


def test_unknown_and_invalid_settings_raise():
    with pytest.raises(ValueError, match="`settings` of Neural must be among hidden, .*, got 'sigma'"):
        RANKER.check({"sigma": 1.0})
    with pytest.raises(ValueError, match="`alpha` must be"):
        RANKER.check({"alpha": -1.0})
    RANKERS["soft_ndcg"].check({"discount": {"alpha": 0.5}})


def test_jobs_with_equal_graphs_have_equal_affinity():
    shared = RANKER.affinity({"alpha": 1.0})
    assert RANKER.affinity({"alpha": 1.0, "learning_rate": 0.5, "epochs": 3, "batch_size": 4}) == shared
    assert RANKER.affinity({"alpha": 2.0}) != shared
    assert RANKER.affinity({"alpha": 1.0, "dropout": 0.5}) != shared


def test_default_grids_contain_the_hyperparameters_of_the_loss():
    assert RANKER.grid() == {"alpha": (0.1, 1.0, 10.0, 100.0), "learning_rate": (0.01, 0.001)}
    assert set(RANKERS["list_net"].grid()) == {"learning_rate"}
    assert set(RANKERS["softsort_ndcg"].grid()) == {"temperature", "learning_rate"}
