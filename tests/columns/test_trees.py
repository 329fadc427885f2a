"""Trees of LightGBM in TensorFlow, and their score as a feature."""

import lightgbm
import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth import columns
from tfr_smooth.columns import Trees
from tfr_smooth.columns.tree_learning import slope

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


@pytest.mark.parametrize("leaves", [2, 31, 63])
@pytest.mark.parametrize("missing", OF_MISSING)
def test_trees_score_as_lightgbm_does(missing, leaves):
    x = values(0)
    booster = train(x, num_leaves=leaves, **OF_MISSING[missing])
    trees = Trees(models=[booster.model_to_string()])
    for rows in (x, values(1), unseen(x, 2).astype(np.float32)):
        np.testing.assert_allclose(trees(rows), booster.predict(rows), rtol=1e-6, atol=1e-6)


def test_the_score_is_the_weighted_mean_of_the_models():
    x = values(0)
    boosters = [train(x, seed=seed, num_leaves=leaves) for seed, leaves in enumerate([4, 20])]
    trees = Trees(models=[booster.model_to_string() for booster in boosters], weight=0.5, bias=2.0)
    expected = 2.0 + 0.5 * np.mean([booster.predict(x) for booster in boosters], axis=0)
    np.testing.assert_allclose(trees(x.reshape(30, -1, 6)).numpy().reshape(-1), expected, rtol=1e-6, atol=1e-6)
    again = Trees.from_config(trees.get_config())
    np.testing.assert_array_equal(again(x), trees(x))


@pytest.mark.parametrize("options", [{}, {"jit_compile": True}])
def test_trees_are_the_same_in_a_function(options):
    x = values(0)
    trees = Trees(models=[train(x).model_to_string()])
    np.testing.assert_array_equal(tf.function(trees, **options)(x), trees(x))


def test_trees_without_splits_are_their_constant():
    x = values(0)
    booster = train(x, min_data_in_leaf=ROWS)
    trees = Trees(models=[booster.model_to_string()])
    assert trees.features == []
    np.testing.assert_allclose(trees(x), booster.predict(x), rtol=1e-6)


@pytest.mark.parametrize(
    ("models", "got"),
    [([], "others"), (["text"], "others"), ({"num_leaves": 80}, "80"), ({"linear_tree": True}, "linear")],
)
def test_other_models_are_refused(models, got):
    if isinstance(models, dict):
        models = [train(np.nan_to_num(values(0)).clip(-9, 9), **models).model_to_string()]
    with pytest.raises(ValueError, match=f"`models` must .*{got}"):
        Trees(models=models)


@pytest.mark.parametrize("factor", [0.3, 1.0, 4.0])
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
