"""Matrix factorization: scores, training by parts, recommendations, files."""

import json
import zipfile

import numpy as np
import pytest
import tensorflow as tf
from scipy import sparse

from tests.helpers import assert_error
from tests.recommendation.groups import GROUPS, likes
from tfr_smooth import _compiled, _keras, losses, recommendation
from tfr_smooth.recommendation import stages
from tfr_smooth.recommendation.batches import expected_candidates

SMALL = {"dim": 8, "softmax_epochs": 16, "softmax_batch_size": 4, "verbose": False}


def interactions(seed=0):
    """Users who like the items of their group, with ids."""
    matrix = likes(seed)
    ids = [f"user {user}" for user in range(len(matrix))], [f"item {item}" for item in range(matrix.shape[1])]
    return recommendation.Interactions(matrix, *ids)


@pytest.fixture(scope="module")
def fitted():
    """A recommender, whose attribute `started` has the numbers of all epochs of its training."""
    recommender = recommendation.Recommender(**SMALL, loss=None)
    recommender.started = []
    started = tf.keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: recommender.started.append(epoch))
    return recommender.fit(interactions(), callbacks=[started])


@pytest.fixture(scope="module")
def without_refit():
    """A recommender of interactions in which user 5 has no items."""
    matrix = likes()
    matrix[5] = False
    options = {**SMALL, "softmax_epochs": 4, "select_by": "recall_5"}
    return recommendation.Recommender(**options, loss=None, refit=False).fit(recommendation.Interactions(matrix))


def test_users_without_items_get_a_vector_of_the_mean_norm():
    model = recommendation.CatalogFactors(num_users=4, num_items=3, dim=2, similarity="dot")
    factors = np.array([[3.0, 0.0], [0.0, 1.0], [5.0, 5.0], [0.0, 2.0]])
    model.set_weights([factors, np.ones([3, 2])])
    model.set_new(recommendation.Interactions(np.array([[1.0] * 3, [1.0] * 3, [0.0] * 3, [1.0] * 3])), {})
    # The mean of the norms is 2, that of the vectors (1, 1).
    np.testing.assert_allclose(model.user_vectors(), [*factors[:2], np.full(2, 2**0.5), factors[3]], rtol=1e-5)


@pytest.mark.parametrize(("similarity", "item_bias"), [("cosine", True), ("dot", False)])
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


@pytest.mark.keras_2
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
    np.testing.assert_allclose(fitted.predict([0, 5]), fitted.model_(tf.constant([0, 5])), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_the_second_part_continues_with_the_loss():
    train, held_out = recommendation.hold_out(interactions(), items=2)
    loss = losses.ListNetLoss(temperature=0.5)
    options = {**SMALL, "softmax_epochs": 8, "loss": loss, "epochs": 2, "learning_rate": 0.05, "refit": False}
    recommender = recommendation.Recommender(**options, baselines=False).fit(train, validation=held_out)
    history = recommender.history_
    assert list(history) == ["loss", "val_ndcg_cut_20"] and len(history["loss"]) == 10
    assert recommender.best_epoch_ in (9, 10)
    found = recommendation.evaluate(recommender, held_out, seen=train, measures="ndcg_cut_20").means["ndcg_cut_20"].mean
    assert found == pytest.approx(history["val_ndcg_cut_20"][recommender.best_epoch_ - 1], abs=1e-6)


@pytest.fixture
def few_users_are_many(monkeypatch):
    monkeypatch.setattr(stages, "_SPARSE_USERS", 1)


@pytest.mark.skipif(not _keras.IS_KERAS_3, reason="Keras 2 has Adam's step")
@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"loss": "list_net", "negatives": 3}])
def test_a_step_changes_only_the_users_of_its_batch(few_users_are_many, options):
    """So its time does not grow with the number of users."""
    before, changed = [None], []

    def compare(model):
        now = model.get_weights()[0]
        changed.extend([] if before[0] is None else [np.flatnonzero((now != before[0]).any(axis=1))])
        before[0] = now

    step = tf.keras.callbacks.LambdaCallback()
    step.on_train_begin = lambda logs=None: compare(step.model)
    step.on_train_batch_end = lambda batch, logs=None: compare(step.model)
    few = {"softmax_epochs": 1, "epochs": 1, "batch_size": 4, "loss": None, "validation_fraction": 0.0}
    options = {**SMALL, **few, **options}
    recommendation.Recommender(**options).fit(interactions(), callbacks=[step])
    assert max(map(len, changed)) == SMALL["softmax_batch_size"]
    epoch = np.concatenate(changed[: len(likes()) // SMALL["softmax_batch_size"]])
    assert sorted(epoch) == list(range(len(likes())))


@pytest.mark.slow
def test_compiled_steps_train_like_eager_ones(few_users_are_many, monkeypatch):
    options = {**SMALL, "softmax_epochs": 2, "loss": None, "validation_fraction": 0.0, "softmax_batch_size": 5}
    compiled = recommendation.Recommender(**options).fit(interactions())
    monkeypatch.setattr(_compiled, "has_xla", lambda: False)
    tf.config.run_functions_eagerly(True)
    try:
        eager = recommendation.Recommender(**options).fit(interactions())
    finally:
        tf.config.run_functions_eagerly(False)
    np.testing.assert_allclose(compiled.predict([0, 9]), eager.predict([0, 9]), rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_all_items_as_candidates_train_like_the_whole_catalog():
    """Only the order of the items differs."""
    # A batch has about 4 users * 5 items, padded to 512.
    few = recommendation.Interactions(sparse.csr_array(likes(), shape=(len(likes()), 10_000)))
    assert expected_candidates(few, 2, 4) == 514.0 and expected_candidates(few, 20, 4) == 532.0
    train, held_out = recommendation.hold_out(interactions(), items=2)
    options = {**SMALL, "softmax_epochs": 1, "softmax_learning_rate": 0.05, "softmax_batch_size": 16, "loss": None}
    whole, sampled = (
        recommendation.Recommender(**options, refit=False, negatives=negatives).fit(train, validation=held_out)
        for negatives in (None, train.num_items)
    )
    # Adam divides small gradients by their size, so rounding is magnified.
    np.testing.assert_allclose(sampled.predict([0, 9]), whole.predict([0, 9]), rtol=0.02, atol=0.02)


def test_all_items_are_trained_for_the_selected_number_of_epochs(fitted):
    trained = len(fitted.history_["loss"])
    assert fitted.started == [*range(trained), *range(fitted.best_epoch_)]
    assert (fitted.interactions_.matrix != interactions().matrix).nnz == 0


@pytest.mark.slow
def test_held_out_items_are_items_that_users_have_and_users_without_items_have_an_empty_history(without_refit):
    assert list(without_refit.history_) == ["loss", "val_recall_5"]
    everything = without_refit.interactions_
    assert everything.num_interactions == likes().sum() - likes()[5].sum()
    top = without_refit.recommend(np.arange(24), topn=9).items
    assert not np.take_along_axis(everything.dense(np.arange(24)), top, axis=1).any()
    found, expected = without_refit.recommend([5], topn=5), without_refit.recommend(histories=[[]], topn=5)
    np.testing.assert_array_equal(found.items, expected.items)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-5)


class Interruption(tf.keras.callbacks.Callback):
    """Interrupts the epoch with a number, counted over all parts."""

    def __init__(self, number):
        super().__init__()
        self.left = number

    def on_epoch_begin(self, epoch, logs=None):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


@pytest.mark.slow
def test_training_resumes_bit_for_bit(eagerly, tmp_path):
    """From each part, one after another: that of softmax, that of the loss, and that with all items."""
    options = {**SMALL, "loss": "list_net", "softmax_epochs": 3, "epochs": 2, "batch_size": 16}
    expected = recommendation.Recommender(**options).fit(interactions())
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            interrupted = recommendation.Recommender(**options)
            interrupted.fit(interactions(), checkpoint_dir=tmp_path, callbacks=[Interruption(2)])
    resumed = recommendation.Recommender(**options).fit(interactions(), checkpoint_dir=tmp_path)
    assert resumed.history_ == expected.history_ and resumed.best_epoch_ == expected.best_epoch_
    np.testing.assert_array_equal(resumed.predict(np.arange(24)), expected.predict(np.arange(24)))


def test_damaged_files_are_refused(fitted, tmp_path):
    fitted.save(tmp_path / "recommender.keras")
    with zipfile.ZipFile(tmp_path / "recommender.keras") as file:
        entries = {name: file.read(name) for name in file.namelist()}
    config = json.loads(entries["config.json"])
    config["config"]["num_items"] = 25
    with zipfile.ZipFile(tmp_path / "damaged.keras", "w") as file:
        for name, content in {**entries, "config.json": json.dumps(config)}.items():
            file.writestr(name, content)
    message = "num_items is 25, but there are 24 ids"
    assert_error(message, recommendation.Recommender.load, tmp_path / "damaged.keras")


def test_items_can_be_excluded_and_chosen(fitted):
    names = [f"item {item}" for item in range(24)]
    users = ["user 0", "user 9", "user 20"]
    plain = fitted.recommend(users, topn=24)
    for options in ({"exclude": names[3:9]}, {"only": names[9:20]}, {"exclude": names[2:5], "only": names[4:15]}):
        allowed = [each for each in options.get("only", names) if each not in options.get("exclude", [])]
        for per_user in (False, True):
            given = {name: [items] * 3 if per_user else items for name, items in options.items()}
            found = fitted.recommend(users, topn=24, **given)
            for ours, all_items in zip(found.items.tolist(), plain.items.tolist(), strict=True):
                expected = [each for each in all_items if each in allowed]
                assert ours == expected + [""] * (24 - len(expected))
    mixed = fitted.recommend(users, topn=2, only=[[names[1]], [], names[6:8]], exclude_seen=False)
    assert mixed.items[:2].tolist() == [[names[1], ""], ["", ""]] and set(mixed.items[2]) == set(names[6:8])


def test_similar_items_are_of_the_same_group(fitted):
    found = fitted.similar_items(["item 2", "item 20"], topn=3)
    assert "item 2" not in found.items[0] and (found.scores <= 1.0).all()
    groups = GROUPS[1][interactions().item_indices(found.items.ravel())].reshape(2, 3)
    assert groups.tolist() == [[0] * 3, [3] * 3]


@pytest.mark.slow
def test_an_update_starts_new_users_from_their_items_and_trains_few_others(fitted, monkeypatch):
    ids = fitted.interactions_.item_ids[:4]
    new = recommendation.Interactions([[1, 1, 0, 1], [0, 1, 1, 0]], user_ids=[50, 51], item_ids=ids)
    seen, batches, factors = [], [], recommendation.CatalogFactors
    start, read = factors.start_new, recommendation.user_batches
    note = lambda model, *given: (start(model, *given), seen.append(model.user_vectors().numpy()))  # noqa: E731
    monkeypatch.setattr(factors, "start_new", note)
    monkeypatch.setattr(stages, "user_batches", lambda train, **each: batches.append(train) or read(train, **each))
    options = {**fitted.get_params(), "softmax_epochs": 1, "refit": False}
    updated = recommendation.Recommender(**options).fit(new, init_model=fitted)
    found = seen[0][updated.interactions_.user_indices([50, 51])]
    expected = fitted.user_vectors(histories=[ids[[0, 1, 3]], ids[1:3]])
    cosines = np.einsum("ui,ui->u", *(each / np.linalg.norm(each, axis=1, keepdims=True) for each in (found, expected)))
    assert (cosines > 0.99).all()
    learned_from = updated.interactions_.user_ids[batches[0].items_per_user > 0]
    assert len(learned_from) == 2 + max(2, updated.interactions_.num_users // 10)
    assert {"50", "51"} <= set(learned_from.tolist())


@pytest.mark.slow
def test_an_update_learns_new_users_and_items_and_keeps_the_others():
    matrix = likes()
    old = recommendation.Interactions(matrix[:20, :23])
    recommender = recommendation.Recommender(**{**SMALL, "softmax_epochs": 10}, loss=None, refit=False).fit(old)
    before = recommender.recommend(np.arange(6), topn=1, exclude_seen=False).items
    new = matrix.copy()
    new[:20, :23] = False
    recommender.update(recommendation.Interactions(new))
    assert (recommender.interactions_.matrix != recommendation.Interactions(matrix).matrix).nnz == 0
    top = recommender.recommend(np.arange(24), topn=4, exclude_seen=False).items
    assert (GROUPS[1][top] == GROUPS[0][:, None]).mean() > 0.9 and (GROUPS[1][before] == 0).all()
    recommender.update(recommendation.Interactions(new))  # again: there are no new pairs
    assert (recommender.interactions_.matrix != recommendation.Interactions(matrix).matrix).nnz == 0


@pytest.mark.slow
def test_weights_are_labels_of_the_loss():
    """Items with a large weight win over others of the same users."""
    matrix = np.tile(np.eye(2, dtype=bool).repeat(6, axis=1), [12, 1])
    weights = np.where(np.arange(144) % 6 < 3, 1.0, 0.01)
    train = recommendation.Interactions(sparse.csr_array(matrix), weights=weights)
    options = {**SMALL, "softmax_epochs": 8, "loss": None, "validation_fraction": 0.0}
    whole, other = (recommendation.Recommender(**options, negatives=each).fit(train) for each in (None, 6))
    top = whole.recommend([0, 1], topn=3, exclude_seen=False).items
    assert np.sort(top).tolist() == [[0, 1, 2], [6, 7, 8]]
    # Where candidates would be much of the catalog, it is taken whole.
    np.testing.assert_array_equal(other.predict([0, 1]), whole.predict([0, 1]))
    message = "`interactions` must have weights >= 1 for the loss 'smoothi_precision_loss'"
    assert_error(message, recommendation.Recommender(loss="smoothi_precision").fit, train)


def test_errors_of_arguments_name_them():
    for arguments, message in (
        ({"select_by": "recall"}, "`select_by` must be .*, got 'recall'"),
        ({"similarity": "l2"}, "`similarity` must be one of 'cosine', 'dot'"),
        ({"softmax_epochs": 0, "loss": None}, "`softmax_epochs` must be an integer >= 1 without a loss, got 0."),
        ({"negatives": 0}, "`negatives` must be an integer >= 1"),
        ({"hard_negatives": 0}, "`hard_negatives` must be an integer >= 1"),
        ({"baselines": 0}, "`baselines` must be True or False, got 0"),
        ({"learning_rate": 0.0}, "`learning_rate` must be a finite number > 0"),
        ({"alfa": 1.0}, "`alfa` must be an argument of Recommender or a hyperparameter of smoothi_ndcg, such as"),
        ({"loss": 3}, "`loss` must be an instance of .*RankingLoss or None, got 3"),
    ):
        with pytest.raises(ValueError, match=message):
            recommendation.Recommender(**arguments)


def test_errors_of_calls_name_the_argument(fitted):
    for asked, message in (
        ({"users": [None]}, "`users` must be text, as the ids of the training are, got None in row"),
        ({"users": [], "exclude": [True]}, "`exclude` must be text, .* are, got True."),
        ({"users": ["user 1"], "only": [[], []]}, "or one list for each of the 1 users, got 2 lists"),
        ({"users": ["user 0"], "histories": [[]]}, "One of `users` and `histories` .* got both"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted.recommend(**asked)
    assert_error("known ids, got 'item 99'", fitted.similar_items, ["item 99"])
    message = "`init_model` must have the same arguments of the vectors, such as `dim`."
    assert_error(message, recommendation.Recommender(dim=4, loss=None).fit, interactions(1), init_model=fitted)
    other = recommendation.Interactions(likes())
    message = "`validation` must have the same `user_ids` as `interactions`"
    assert_error(message, fitted.fit, interactions(), validation=other)
