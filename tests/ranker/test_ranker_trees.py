"""Trees in `Ranker`: what training documents know, and the doors through which the model goes."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tfr_smooth
from tests.helpers import exports
from tfr_smooth import columns, data
from tfr_smooth.columns.statistics import parts_of_queries
from tfr_smooth.columns.tree_learning import learn_trees, weak_features

QUICK = {"loss": "softmax", "members": 2, "hidden": [4], "epochs": 1, "verbose": False}
ROLES = {"label": "label", "query": "query"}


def table(queries=120, length=8, seed=0):
    """Steps of numbers and a category decide, and there is a missing value."""
    random = np.random.default_rng(seed)
    rows = queries * length
    frame = pd.DataFrame(random.normal(size=[rows, 3]), columns=["size", "age", "price"])
    frame["color"] = random.choice(["red", "green", "blue", "black"], rows)
    score = (frame["size"] > 0.5) * 2.0 + frame["color"].isin(["red", "black"]) - (frame["age"] < -0.3)
    frame["label"] = np.digitize(score + 0.1 * random.normal(size=rows), [0.5, 1.5, 2.5])
    frame["query"] = np.repeat(np.arange(queries), length)
    frame.loc[random.random(rows) < 0.1, "price"] = np.nan
    return frame


FRAME, NEW = table(), table(10, seed=1)


@pytest.fixture(scope="module")
def ranker():
    return tfr_smooth.Ranker(**QUICK).fit(FRAME, **ROLES)


@pytest.mark.slow
def test_trees_find_steps_before_the_network_does(ranker):
    alone = tfr_smooth.Ranker(**QUICK, trees=False).fit(FRAME, **ROLES)
    assert ranker.features_.trees is not None and alone.features_.trees is None
    assert ranker.evaluate(NEW)["ndcg"].mean > 0.95 > 0.9 > alone.evaluate(NEW)["ndcg"].mean


@pytest.mark.parametrize(("prepared", "order"), [(True, None), (False, np.random.default_rng(1).permutation(400))])
def test_a_training_document_has_a_score_that_does_not_know_its_label(prepared, order, monkeypatch):
    random = np.random.default_rng(0)
    x, labels = random.normal(size=[4000, 5]), random.integers(0, 2, 4000)
    x[:, 0] += np.repeat(random.normal(size=400), 10)
    lists = data.from_arrays(x.astype(np.float32), labels, np.repeat(np.arange(400), 10))
    layer = columns.TableFeatures([columns.Number(name=str(place)) for place in range(1, 6)], stacked=True)
    if not prepared:
        monkeypatch.setattr("tfr_smooth.columns.features._MOST_BYTES", 0)
        layer = layer.replace(list_ranks=["1"])
    given = {"early_stopping_round": 0, "num_iterations": 30, "min_data_in_leaf": 2}
    monkeypatch.setattr("tfr_smooth.columns.tree_learning.slope", lambda *_: 1.0)  # labels of chance have no slope
    options = {"gain": "exponential", "given": given, "seed": 0, "order": order}
    learned, scored = learn_trees(layer, layer.transform(lists), np.arange(300), **options)
    batch = next(iter(learned.batches(scored, 400)))[0]["features"]
    scores = tf.reshape(batch[..., -1], [-1]).numpy()
    within = np.corrcoef(scores[:3000], labels[:3000])[0, 1]
    assert abs(within) < 0.06  # the standard error is 0.02; of a score that knows the labels, it is 0.9
    known = learned.trees(learned.tree_inputs(batch)).numpy().ravel()
    assert np.corrcoef(known[:3000], labels[:3000])[0, 1] > 0.3
    np.testing.assert_allclose(scores[3000:], known[3000:], rtol=1e-5, atol=1e-5)  # other documents: the mean
    part = np.repeat(parts_of_queries(np.arange(300) if order is None else order[:300], 5), 10)
    for place, model in enumerate(learned.trees.models):  # and those of a part the model of the others
        alone = columns.Trees(models=[model], weight=1.0, bias=0.0)
        values = alone(learned.tree_inputs(batch)).numpy().ravel()[:3000][part == place]
        np.testing.assert_allclose(scores[:3000][part == place], values - values.mean(), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_files_and_exports_have_the_trees(ranker, tmp_path):
    expected = ranker.predict(NEW)
    ranker.save(tmp_path / "ranker.keras")
    np.testing.assert_array_equal(tfr_smooth.Ranker.load(tmp_path / "ranker.keras").predict(NEW), expected)
    served = exports.scores_of(ranker.export(tmp_path / "export"), ranker, NEW, NEW["query"])
    np.testing.assert_allclose(served, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_an_onnx_file_has_the_trees(ranker, tmp_path):
    session = pytest.importorskip("onnxruntime").InferenceSession(ranker.export(tmp_path / "r.onnx", format="onnx"))
    rows = NEW[NEW["query"] == 0]
    inputs = {name: rows[name].to_numpy(np.float32)[np.newaxis] for name in ("size", "age", "price")}
    inputs |= {"color": rows["color"].to_numpy()[np.newaxis], "mask": np.ones([1, len(rows)], bool)}
    np.testing.assert_allclose(
        session.run(["scores"], inputs)[0][0], ranker.predict(NEW)[: len(rows)], rtol=1e-5, atol=1e-5
    )


def test_contributions_with_trees_sum_to_the_score(ranker):
    explained = ranker.explain(NEW[NEW["query"] < 2], samples=4)
    assert set(explained.columns) == {"size", "age", "price", "color"}
    totals = explained.contributions.sum(axis=1) + explained.background_scores
    np.testing.assert_allclose(totals, explained.scores, rtol=1e-5, atol=1e-5)
    shares = dict(zip(explained.columns, np.abs(explained.contributions).mean(axis=0), strict=True))
    assert min(shares["size"], shares["color"]) > 5 * shares["price"]


def test_parameters_of_lightgbm(untrained, ranker):
    given = {"num_leaves": 4, "num_iterations": 3, "early_stopping_round": 0}
    small = tfr_smooth.Ranker(**QUICK, trees=given).fit(FRAME, **ROLES).features_.trees
    assert [model.count("num_leaves=4\n") for model in small.models] == [3] * 5
    assert tfr_smooth.Ranker(**QUICK, trees={}).fit(FRAME, **ROLES).features_.trees == ranker.features_.trees


def test_other_parameters_are_refused():
    for trees in ("lightgbm", None, {"num_leafs": 15}, {"n_estimators": 5}, {1: 2}, {"objective": print}):
        with pytest.raises(ValueError, match="`trees` must be"):
            tfr_smooth.Ranker(trees=trees)
    for trees in ({"num_leaves": "x"}, {"metric": "None"}, {"linear_tree": True}):  # LightGBM refuses them
        with pytest.raises(ValueError, match=f"`trees` must be .*{next(iter(trees))}"):
            tfr_smooth.Ranker(**QUICK, trees=trees).fit(FRAME, **ROLES)


def test_losses_that_compare_scores_with_labels_do_not_start_from_the_trees(untrained):
    for loss in ("mean_squared", "smoothi_ndcg"):
        ranker = tfr_smooth.Ranker(**{**QUICK, "loss": loss}).fit(FRAME, **ROLES)
        assert (ranker._scorer.get_config()["offset"] is None) == (loss == "mean_squared")
    few = tfr_smooth.Ranker(**QUICK).fit(FRAME[FRAME["query"] < 5], **ROLES)
    assert few.features_.trees is None


@pytest.mark.parametrize("kind", ["several labels", "clicks", "floats"])
def test_all_labels_have_trees(untrained, kind):
    frame, roles = FRAME.copy(), dict(ROLES)
    if kind == "several labels":
        frame["other"], roles["label"] = frame["label"] > 1, {"label": 1.0, "other": 0.5}
    elif kind == "clicks":
        frame["label"], roles["propensity"] = (frame["label"] > 2).astype(int), "probability"
        frame["probability"] = 0.5 + 0.01 * (np.arange(len(frame)) % 8)
    else:
        frame["label"] *= 7.4  # neither whole nor up to 31
    ranker = tfr_smooth.Ranker(**{**QUICK, "loss": "approx_ndcg"}, gain="linear").fit(frame, **roles)
    assert ranker.features_.trees is not None


# Weak features.


def of_sides(queries):
    """Returns a table of 8 documents per query."""
    random = np.random.default_rng(queries)
    rows = 8 * queries
    frame = pd.DataFrame({"query": np.repeat(np.arange(queries), 8), "number": random.normal(size=rows)})
    frame["side"] = np.repeat(random.choice([-1.0, 1.0], queries), 8)
    frame["type"] = random.choice(list("abcdef"), rows)  # relevant on one side only
    frame["chance"] = random.normal(size=rows)
    utility = frame["number"] + 3.0 * frame["side"] * np.where(frame["type"] < "d", 1.0, -1.0)
    frame["label"] = (utility + random.normal(size=rows) > 2.0).astype(int)
    return frame


@pytest.mark.slow
@pytest.mark.parametrize("kind, weak", [("category", ["chance"]), ("id", [])])  # trees have no ids
def test_weak_columns_are_those_that_rank_no_better_than_shuffled_ones(kind, weak):
    """Half of the networks do without them."""
    options = {**QUICK, "loss": "softmax", "members": 4, "hidden": [32], "epochs": 15, "learning_rate": 0.01}
    ranker = tfr_smooth.Ranker(**options, list_context=False, kinds={"type": kind})
    ranker.fit(of_sides(400), **ROLES)
    places = ranker.features_.weak
    assert [ranker.features_.feature_columns[place] for place in places] == weak
    assert ranker.model_.scorer.get_config()["weak"] == places
    assert ranker.evaluate(of_sides(150))["ndcg"].mean > 0.85


def test_numbers_of_lists_are_compared_with_those_of_other_lists():
    random = np.random.default_rng(0)
    x = random.normal(size=[600, 10, 6])
    x[:, :, 2:] = x[:, :1, 2:]  # the same for all documents of a list
    labels = (np.where(x[..., 2] > 0.0, x[..., 0], -x[..., 0]) > 0.5).astype(int)
    given = {"data": x.reshape(-1, 6), "label": labels.ravel(), "group": np.full(600, 10)}
    given |= {"weight": np.ones(6000), "categorical_feature": []}
    assert weak_features(given, {"label_gain": [0, 1]}, 30) == [1, 3, 4, 5]
