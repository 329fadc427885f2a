"""Trees of LightGBM in TensorFlow, and their score as a feature."""

import lightgbm
import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth import columns, data
from tfr_smooth.columns import Trees
from tfr_smooth.columns.tree_learning import learn_trees, slope

ROWS = 1500
OF_MISSING = {"NaN": {}, "zero": {"zero_as_missing": True}, "none": {"use_missing": False}}


def values(seed):
    """Returns a category and numbers, with missing, zero and infinite ones."""
    random = np.random.default_rng(seed)
    x = random.normal(size=[ROWS, 6]).astype(np.float32)
    for value in (0.0, np.nan, np.inf, -np.inf, 1e-35, -1e-36, 3e38):
        x[random.random(x.shape) < 0.03] = value
    x[:, 0] = random.integers(0, 70, ROWS)
    return x


def unseen(x, seed):
    """Returns the same numbers with categories that training did not have."""
    random = np.random.default_rng(seed)
    return np.concatenate(
        [random.choice([-2.0, -0.5, 0.5, 3.0, 64.5, 99.0, 1e9, np.nan], [len(x), 1]), x[:, 1:]], axis=1
    )


def train(x, **parameters):
    y = np.nan_to_num(x[:, 1:], posinf=3, neginf=-3).clip(-3, 3).sum(axis=1) + np.sin(x[:, 0]) * 3 + np.isnan(x[:, 1])
    parameters = {"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5, "max_cat_to_onehot": 3, **parameters}
    return lightgbm.train(parameters, lightgbm.Dataset(x, y, categorical_feature=[0]), num_boost_round=8)


@pytest.mark.parametrize(("missing", "leaves"), [("NaN", 63), ("NaN", 2), ("zero", 31), ("none", 31)])
def test_trees_score_as_lightgbm_does(missing, leaves):
    x = values(0)
    booster = train(x, num_leaves=leaves, **OF_MISSING[missing])
    trees = Trees(models=[booster.model_to_string()])
    for rows in (x, values(1), unseen(x, 2).astype(np.float32)):
        np.testing.assert_allclose(trees(rows), booster.predict(rows), rtol=1e-6, atol=1e-6)


DAMAGES = [
    ("left_child", 0, "9999"), ("left_child", 0, "-99"), ("right_child", 1, "0"), ("left_child", 1, str(2**63)),
    ("left_child", 0, ""), ("threshold", 1, ""), ("decision_type", 1, ""), ("split_feature", 0, "-1"),
    ("leaf_value", 0, ""), ("cat_boundaries", 1, "1000000"), ("cat_boundaries", 1, "0"), ("cat_threshold", 0, ""),
]  # fmt: skip


@pytest.mark.parametrize(("field", "place", "value"), DAMAGES)
def test_damaged_trees_are_refused(field, place, value):
    head, found, rest = train(values(0), num_leaves=6).model_to_string().partition(f"\n{field}=")
    line, end, rest = rest.partition("\n")
    numbers = line.split()
    numbers[place] = value
    with pytest.raises(ValueError, match="`models` must"):
        Trees(models=[head + found + " ".join(numbers) + end + rest])


def test_the_score_is_the_weighted_mean_of_the_models():
    x = values(0)
    boosters = [train(x, seed=seed, num_leaves=leaves) for seed, leaves in enumerate([4, 20])]
    trees = Trees(models=[booster.model_to_string() for booster in boosters], weight=0.5, bias=2.0)
    expected = 2.0 + 0.5 * np.mean([booster.predict(x) for booster in boosters], axis=0)
    np.testing.assert_allclose(trees(x.reshape(30, -1, 6)).numpy().reshape(-1), expected, rtol=1e-6, atol=1e-6)
    again = Trees.from_config(trees.get_config())
    np.testing.assert_array_equal(again(x), trees(x))


def test_trees_are_the_same_in_a_function_and_without_splits_their_constant():
    x = values(0)
    trees = Trees(models=[train(x).model_to_string()])
    for options in ({}, {"jit_compile": True}):
        np.testing.assert_array_equal(tf.function(trees, **options)(x), trees(x))
    booster = train(x, min_data_in_leaf=ROWS)
    trees = Trees(models=[booster.model_to_string()])
    assert trees.features == []
    np.testing.assert_allclose(trees(x), booster.predict(x), rtol=1e-6)


def test_other_models_are_refused():
    for models, got in [
        ([], "others"),
        ({"num_leaves": 80}, "80"),
        ({"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}, "random forest"),
        ({"num_class": 9, "objective": lambda scores, _: (scores, np.ones_like(scores))}, "several classes"),
    ]:
        if isinstance(models, dict):
            models = [train(np.nan_to_num(values(0)).clip(-9, 9), **models).model_to_string()]
        with pytest.raises(ValueError, match=f"`models` must .*{got}"):
            Trees(models=models)


@pytest.mark.parametrize("factor", [0.3, 4.0])
def test_the_slope_has_the_lowest_softmax_loss(factor):
    random = np.random.default_rng(0)
    scores = random.normal(size=[400, 6])
    chosen = (factor * scores + random.gumbel(size=scores.shape)).argmax(axis=1)
    labels = np.eye(6)[chosen].ravel()
    lengths = np.full(400, 6)

    def loss(slope):
        logits = tf.constant(slope * scores)
        return float(tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(chosen, logits)))

    found = slope(scores.ravel(), labels, lengths)
    assert loss(found) <= min(loss(found * 0.99), loss(found * 1.01))
    assert slope(-scores.ravel(), labels, lengths) == 0.0  # no weight for a score that ranks the wrong way


def test_trees_take_numbers_and_one_code_for_each_category():
    category = columns.Category(name="brand", categories=("a", "b", "c"), has_missing=True)
    kinds = [columns.Number(name="x", has_missing=True), category, columns.Id(name="shop", categories=("s",))]
    layer = columns.TableFeatures([*kinds, columns.Number(name="y")], list_ranks=["y"])
    inputs = {"x": [[1.0, np.nan]], "y": [[5.0, 6.0]], "shop": [["s", "t"]]}
    for texts, codes in ((["a", "c"], [1.0, 3.0]), (["", "unseen"], [4.0, 0.0])):
        features = layer({name: tf.constant(of) for name, of in {**inputs, "brand": [texts]}.items()})
        expected = [[[1.0, 0.0, 5.0, -1.0, codes[0]], [0.0, 1.0, 6.0, 1.0, codes[1]]]]
        np.testing.assert_array_equal(layer.tree_inputs(features), expected)

    layer = columns.TableFeatures([columns.Number(name="trees"), columns.Number(name="x")])
    np.testing.assert_array_equal(layer.tree_inputs(tf.constant([[1.0, 2.0]])), [[1.0, 2.0]])


def learn(layer, x, lengths, labels=None, weights=None, before=None, **given):
    """Returns what `learn_trees` does, by default for labels that follow from the first number."""
    labels = np.digitize(x[:, 0], [-1.0, 0.0, 1.0]) if labels is None else labels
    lists = data.from_arrays(x, labels, np.repeat(np.arange(len(lengths)), lengths), weights=weights)
    lists.is_prepared = lists.num_features == layer.num_features
    options = {"gain": "exponential", "seed": 0, "before": before}
    options["given"] = {"num_iterations": 3, "early_stopping_round": 0, "min_data_in_leaf": 2, **given}
    return learn_trees(layer, lists, np.arange(len(lengths)), **options)


NUMBERS = columns.TableFeatures([columns.Number(name="1"), columns.Number(name="2")], stacked=True)


def test_features_that_are_no_numbers_have_no_trees():
    layer = columns.TableFeatures([columns.Vector(name="v", length=2)])
    assert learn(layer, np.random.default_rng(0).normal(size=[60, 2]).astype(np.float32), [6] * 10)[0].trees is None


@pytest.mark.parametrize("others", [0, 10])
def test_lists_that_are_too_long_for_lightgbm_only_get_scores(others):
    x = np.random.default_rng(0).normal(size=[10_001 + 6 * others, 2]).astype(np.float32)
    learned, scored = learn(NUMBERS, x, [10_001, *[6] * others])
    assert (learned.trees is None) == (others == 0)
    if others:
        scores = scored.values("features")[:10_001, -1]
        np.testing.assert_allclose(scores, learned.trees(x[:10_001]), rtol=1e-6)


def test_one_long_list_does_not_pad_the_others(monkeypatch):
    sizes, features = [], columns.TableFeatures.features

    def watched(self, lists, rows, lengths):
        sizes.append(len(lengths) * max(lengths))
        return features(self, lists, rows, lengths)

    monkeypatch.setattr(columns.TableFeatures, "features", watched)
    x = np.random.default_rng(0).normal(size=[9000 + 2 * 4000, 2]).astype(np.float32)
    learn(NUMBERS.replace(list_ranks=["1"]), x, [9000, *[2] * 4000])
    assert max(sizes) == 9000  # not 4001 times as many


def test_the_score_of_a_large_matrix_is_a_column_of_its_own(monkeypatch):
    x = np.random.default_rng(0).normal(size=[120, 2]).astype(np.float32)
    layer, expected = learn(NUMBERS, x, [6] * 20)
    monkeypatch.setattr("tfr_smooth.columns.tree_learning._MOST_BYTES", 4 * 120 * 2 - 1)
    monkeypatch.setattr("tfr_smooth.columns.tree_learning.math.ceil", lambda _: 1)  # all queries
    again, found = learn(NUMBERS, x, [6] * 20)
    assert again.trees == layer.trees and expected.is_dense and not found.is_dense
    found, expected = (next(iter(layer.batches(lists, 20)))[0]["features"] for lists in (found, expected))
    np.testing.assert_array_equal(found, expected)


def test_neither_the_scale_of_weights_nor_documents_of_weight_0_change_a_tree():
    random = np.random.default_rng(0)
    x, weights = random.normal(size=[120, 2]).astype(np.float32), random.random(120).astype(np.float32)
    weights[::5], labels = 0.0, (x[:, 0] > 0).astype(int)
    first = learn(NUMBERS, x, [6] * 20, labels, weights)[0].trees
    assert first is not None
    assert first == learn(NUMBERS, x, [6] * 20, labels, weights * np.float32(2.0**-60))[0].trees
    labels[::5], x[::5] = 3, 9.0
    assert first == learn(NUMBERS, x, [6] * 20, labels, weights)[0].trees


def test_a_training_on_more_queries_keeps_the_number_of_trees_and_the_weak_features_if_its_features_are_the_same():
    x = np.random.default_rng(0).normal(size=[1200, 2]).astype(np.float32)
    labels, lengths = np.digitize(x[:, 0], [-1.0, 0.0, 1.0]), [6] * 200
    others = columns.TableFeatures([columns.Number(name="a"), columns.Number(name="b")], stacked=True)
    assert learn(NUMBERS, x, lengths)[0].trees.weak == (1,)
    for layer, weak in ((others, (1,)), (NUMBERS, (0,))):
        before = learn(layer, x[:, ::-1].copy(), lengths, labels)[0]  # the labels follow from the second number
        again = learn(NUMBERS, x, lengths, before=before, num_iterations=9, early_stopping_round=1)[0].trees
        assert before.trees.weak == (0,) and again.weak == weak
        assert [model.count("\nTree=") for model in again.models] == [3] * 5
