"""Matrix factorization: scores, training by parts, recommendations, files."""

import numpy as np
import pytest
import tensorflow as tf

from tests.recommendation.groups import GROUPS, likes
from tfr_smooth import losses, recommendation
from tfr_smooth.recommendation import stages

SMALL = {"dim": 8, "warm_start_epochs": 16, "warm_start_batch_size": 4, "verbose": False}


def interactions(seed=0):
    """Users who like the items of their group, with ids."""
    matrix = likes(seed)
    ids = [f"user {user}" for user in range(len(matrix))], [f"item {item}" for item in range(matrix.shape[1])]
    return recommendation.Interactions(matrix, *ids)


@pytest.fixture(scope="module")
def fitted():
    return recommendation.Recommender(**SMALL, loss=None).fit(interactions())


@pytest.fixture(scope="module")
def without_refit():
    return recommendation.Recommender(**SMALL, loss=None, refit=False).fit(interactions())


@pytest.mark.parametrize("item_bias", [False, True])
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_scores_are_similarities_divided_by_the_temperature_and_biases(similarity, item_bias):
    options = {"dim": 3, "similarity": similarity, "temperature": 0.5, "item_bias": item_bias}
    model = recommendation.CatalogFactors(num_users=5, num_items=7, **options)
    bias = np.linspace(-1.0, 2.0, 7)
    if item_bias:
        model.set_weights([*model.get_weights()[:2], bias])
    users, items = (np.asarray(weights, np.float64) for weights in model.get_weights()[:2])
    expected = users @ items.T / 0.5
    if similarity == "cosine":
        expected /= np.linalg.norm(users, axis=1)[:, None] * np.linalg.norm(items, axis=1)
    expected += bias * item_bias
    np.testing.assert_allclose(model(tf.constant([3, 1])), expected[[3, 1]], rtol=1e-5, atol=1e-6)
    products = model.user_vectors() @ tf.transpose(model.item_vectors())
    np.testing.assert_allclose(products / 0.5, expected, rtol=1e-5, atol=1e-6)
    candidates = {"users": [4], "items": [[6, 0, 0]], "offsets": [[0.0, 1.0, 0.0]]}
    found = model({name: tf.constant(value) for name, value in candidates.items()})
    np.testing.assert_allclose(found, expected[[4]][:, [6, 0, 0]] + [[0.0, 1.0, 0.0]], rtol=1e-5, atol=1e-6)
    again = recommendation.CatalogFactors.from_config(model.get_config())
    np.testing.assert_array_equal(again.get_weights()[0], model.get_weights()[0])


def test_users_get_unseen_items_of_their_group(fitted):
    train = interactions()
    top = fitted.recommend(train.user_ids, topn=2)
    seen = train.dense(np.arange(train.num_users))
    items = train.item_indices(top.items.ravel()).reshape(-1, 2)
    assert not np.take_along_axis(seen, items, axis=1).any()
    has_unseen = (~seen & (GROUPS[0][:, None] == GROUPS[1])).any(axis=1)
    assert has_unseen.sum() > 10 and (GROUPS[1][items[has_unseen, 0]] == GROUPS[0][has_unseen]).mean() > 0.9
    assert (np.diff(top.scores, axis=1) <= 0.0).all()
    with_seen = fitted.recommend(["user 0"], topn=4, exclude_seen=False).items[0]
    assert set(GROUPS[1][train.item_indices(with_seen)]) == {GROUPS[0][0]}
    np.testing.assert_allclose(fitted.scores([0, 5]), fitted.model_(tf.constant([0, 5])), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_the_second_part_continues_with_the_loss():
    train, held_out = recommendation.hold_out(interactions(), items=2)
    loss = losses.ListNetLoss(temperature=0.5)
    recommender = recommendation.Recommender(**SMALL, loss=loss, epochs=2, learning_rate=0.05, refit=False)
    recommender.fit(train, validation=held_out)
    assert len(recommender.best_epochs_) == len(recommender.validation_) == 2
    assert 1 <= recommender.best_epochs_[0] <= 16 and 1 <= recommender.best_epochs_[1] <= 2
    found, popular = (
        recommendation.evaluate(each, held_out, seen=train, measures="ndcg_cut_20").means["ndcg_cut_20"].mean
        for each in (recommender, recommendation.Popularity().fit(train))
    )
    assert found == pytest.approx(recommender.validation_[1], abs=1e-6)
    assert recommender.interactions_ is train and recommender.validation_[0] > popular


def test_a_loss_alone_has_one_part():
    options = {**SMALL, "warm_start_epochs": 0, "learning_rate": 0.05, "batch_size": 4, "epochs": 12}
    recommender = recommendation.Recommender(**options, loss="list_net", refit=False).fit(interactions())
    assert len(recommender.best_epochs_) == 1 and recommender.validation_[0] > 0.5


@pytest.mark.slow
def test_negatives_of_the_whole_catalog_are_the_whole_catalog():
    """All items are candidates, so the offsets are zero, and only the order of the items differs."""
    train, held_out = recommendation.hold_out(interactions(), items=2)
    options = {**SMALL, "warm_start_epochs": 6, "epochs": 2, "learning_rate": 0.05, "refit": False, "batch_size": 16}
    whole, candidates = (
        recommendation.Recommender(**options, loss="list_net", negatives=negatives).fit(train, validation=held_out)
        for negatives in (None, train.num_items)
    )
    assert candidates.best_epochs_ == whole.best_epochs_
    # Adam divides small gradients by their size, so rounding is magnified.
    np.testing.assert_allclose(candidates.scores([0, 9]), whole.scores([0, 9]), rtol=0.02, atol=0.02)


def test_the_final_training_has_all_items(fitted, without_refit):
    everything = interactions()
    assert (fitted.interactions_.matrix != everything.matrix).nnz == 0
    assert without_refit.interactions_.num_interactions < everything.num_interactions
    assert without_refit.best_epochs_ == fitted.best_epochs_ and without_refit.validation_ == fitted.validation_


def test_training_repeats_and_resumes(without_refit, tmp_path, monkeypatch):
    steps = {"count": 0}
    evaluate = stages.evaluate

    def interrupted(*args, **options):
        steps["count"] += 1
        if steps["count"] == 4:
            raise KeyboardInterrupt
        return evaluate(*args, **options)

    make = lambda: recommendation.Recommender(**SMALL, loss=None, refit=False)  # noqa: E731
    monkeypatch.setattr(stages, "evaluate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make().fit(interactions(), checkpoint_dir=tmp_path)
    resumed = make().fit(interactions(), checkpoint_dir=tmp_path)
    assert steps["count"] == 4 + 16 - 3  # the interrupted epoch is repeated
    assert resumed.best_epochs_ == without_refit.best_epochs_
    np.testing.assert_allclose(resumed.scores([0, 7]), without_refit.scores([0, 7]), rtol=1e-4, atol=1e-5)


def test_files_keep_recommendations(fitted, tmp_path):
    fitted.save(tmp_path / "recommender.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["recommender.npz"]
    loaded = recommendation.Recommender.load(tmp_path / "recommender.npz")
    for ours, saved in zip(loaded.recommend(["user 3"], topn=5), fitted.recommend(["user 3"], topn=5), strict=True):
        np.testing.assert_array_equal(ours, saved)


def make(**arguments):
    return lambda fitted: recommendation.Recommender(**arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (make(dim=0), "`dim` must be an integer >= 1, got 0"),
        (make(similarity="l2"), "`similarity` must be one of 'cosine', 'dot'"),
        (make(warm_start_epochs=-1), "`warm_start_epochs` must be an integer >= 0, got -1."),
        (make(warm_start_epochs=0, loss=None), "`warm_start_epochs` must be an integer >= 1 without a loss, got 0."),
        (make(negatives=0), "`negatives` must be an integer >= 1"),
        (make(candidates=0), "`candidates` must be an integer >= 1"),
        (make(learning_rate=0.0), "`learning_rate` must be a finite number > 0"),
        (make(loss="ndgc"), "`identifier` must be one of .*, got 'ndgc'"),
        (make(loss=3), "`loss` must be an instance of .*RankingLoss or None, got 3"),
        (lambda fitted: recommendation.Recommender().scores([0]), "`fit` must be called first"),
        (lambda fitted: fitted.recommend(["nobody"]), "nobody"),
        (lambda fitted: fitted.recommend(), "One of `users` and `histories` must be given, got none"),
        (lambda fitted: fitted.recommend(["user 0"], histories=[[]]), "One of `users` and `histories` .* got both"),
        (lambda fitted: fitted.recommend(histories=[["item 99"]]), "'item 99', which is unknown"),
        (lambda fitted: recommendation.Recommender().export("x"), "`fit` must be called first"),
        (
            lambda fitted: fitted.fit(interactions(), validation=recommendation.Interactions(likes())),
            "`validation` must have the same `user_ids` as `interactions`",
        ),
    ],
)
def test_errors_name_the_argument(fitted, call, message):
    with pytest.raises(ValueError, match=message):
        call(fitted)


def test_hyperparameters_without_the_name_of_a_loss_are_refused():
    with pytest.raises(TypeError, match="hyperparameters need the name of a loss"):
        recommendation.Recommender(loss=None, alpha=1.0)
