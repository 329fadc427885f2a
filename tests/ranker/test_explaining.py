"""`explain`, `evaluate(by=)` and scikit-learn's inspection of a `Ranker` agree with its scores of changed tables."""

import collections

import numpy as np
import pandas as pd
import pytest
from sklearn import inspection

import tfr_smooth
from tests import helpers
from tfr_smooth import data

pytestmark = pytest.mark.slow

QUICK = {"loss": "softmax", "members": 2, "hidden": [8], "epochs": 12, "learning_rate": 0.02, "verbose": False}
QUICK["batch_size"] = 16


def table(queries=80, seed=0):
    random = np.random.default_rng(seed)
    sizes = random.integers(3, 9, queries)
    frame = pd.DataFrame({"query": np.repeat(np.arange(queries), sizes)})
    level = np.exp(random.normal(0.0, 2.0, queries))[frame["query"]]
    frame["price"] = np.where(random.random(len(frame)) < 0.1, np.nan, level * (1.0 + random.random(len(frame))))
    frame["color"] = random.choice(["red", "blue", "green", None], len(frame), p=[0.5, 0.25, 0.15, 0.1])
    frame["is_new"] = random.random(len(frame)) > 0.5
    frame["listed"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 500, len(frame)), unit="D")
    frame["age"] = np.repeat(random.integers(20, 60, queries), sizes).astype(float)
    frame["title"] = [" ".join(random.choice(["red", "lamp", "desk", "old"], 4)) for _ in range(len(frame))]
    frame["words"] = np.repeat(random.choice(["lamp", "desk"], queries), sizes)
    cheap = frame.groupby("query")["price"].rank(pct=True).fillna(1.0) < 0.5
    frame["label"] = (cheap & ((frame["color"] == "red") | (frame["age"] > 40))).astype(int)
    frame["device"] = np.repeat(random.choice(["phone", "desktop", None], queries), sizes)
    return frame.drop(columns="device"), frame


(FRAME, _), (NEW, WITH_DEVICE) = table(), table(15, seed=1)
NEW = NEW.sample(frac=1.0, random_state=0)
ROLES = {"label": "label", "query": "query"}


@pytest.fixture(scope="module")
def ranker():
    matches = [("words", "title")]
    return tfr_smooth.Ranker(**QUICK, matches=matches, kinds={"words": "text"}).fit(
        FRAME, **ROLES, query_features=["words"]
    )


def test_contributions_sum_to_the_score_minus_the_mean_of_the_list(ranker):
    assert "price" in ranker.features_.list_ranks
    explained = ranker.explain(NEW, samples=8)
    scores = ranker.predict(NEW)[explained.rows]
    means = pd.Series(scores).groupby(NEW["query"].to_numpy()[explained.rows]).transform("mean")
    np.testing.assert_allclose(explained.scores, scores, atol=1e-5)
    np.testing.assert_allclose(explained.background_scores, means, atol=1e-5)
    np.testing.assert_allclose(explained.contributions.sum(axis=1), scores - means, atol=1e-5)
    names = list(explained.columns)
    assert set(names) == {*ranker.types_, "words ~ title"}
    for name in ("age", "words"):  # the same in the list
        assert (explained.contributions[:, names.index(name)] == 0.0).all()
    assert np.abs(explained.contributions).mean(axis=0).argmax() == names.index("price")
    assert pd.Series(explained.values["color"]).equals(NEW["color"].iloc[explained.rows].reset_index(drop=True))


def test_some_rows_are_explained_against_another_table(ranker):
    explained = ranker.explain(NEW, rows=[5, 2], background=FRAME[:50], samples=60)
    scores, others = ranker.predict(NEW)[explained.rows], ranker.predict(FRAME[:50])
    assert sorted(explained.rows) == [2, 5]
    np.testing.assert_allclose(explained.background_scores, others.mean(), atol=1e-5)
    np.testing.assert_allclose(explained.contributions.sum(axis=1), scores - others.mean(), atol=1e-5)
    assert (explained.contributions[:, list(explained.columns).index("age")] != 0.0).any()
    of_few = ranker.explain(NEW, rows=[5], background=FRAME[:50], samples=1)
    np.testing.assert_allclose(of_few.background_scores, np.median(others), atol=0.1 * np.ptp(others))


def test_rows_are_numbers_slices_or_masks(ranker):
    red = NEW["color"] == "red"
    for rows, expected in [(red, np.flatnonzero(red)), (slice(2, 5), [2, 3, 4]), (np.int64(3), [3])]:
        assert sorted(ranker.explain(NEW, rows=rows, samples=1).rows) == list(expected)


def test_a_column_takes_its_rank_in_the_actual_list_with_it():
    """Two documents differ only in the price: its contributions are all there is."""
    frame = FRAME[["query", "price", "label"]].assign(price=FRAME["price"].fillna(1.0))
    of_price = tfr_smooth.Ranker(**{**QUICK, "epochs": 4}).fit(frame, **ROLES)
    assert of_price.features_.list_ranks == ("price",)
    pair = pd.DataFrame({"query": [0, 0], "price": [1.0, 1.2]})
    scores = of_price.predict(pair)
    explained = of_price.explain(pair)
    assert abs(scores[0] - scores[1]) > 0.1
    np.testing.assert_allclose(explained.contributions[:, 0], scores - scores.mean(), atol=1e-6)


def test_matrices_lists_and_calibrated_rankers_are_explained():
    matrix = FRAME[["price", "age", "is_new"]].fillna(0.0).to_numpy(float)
    of_matrix = tfr_smooth.Ranker(**{**QUICK, "epochs": 1}).fit(matrix, FRAME["label"], qid=FRAME["query"])
    of_matrix.calibrate(matrix, FRAME["label"], qid=FRAME["query"])
    lists = data.from_arrays(matrix[:60], None, FRAME["query"][:60])
    for explained in (of_matrix.explain(matrix[:60], qid=FRAME["query"][:60], samples=5), of_matrix.explain(lists)):
        scores = of_matrix.predict(matrix[:60], qid=FRAME["query"][:60])[explained.rows]
        np.testing.assert_allclose(explained.contributions.sum(axis=1), scores - explained.background_scores, atol=1e-5)
        assert explained.columns == ("1", "2", "3") and explained.values["2"] == matrix[explained.rows, 1].tolist()


def test_scikit_learn_shuffles_columns_and_computes_the_dependence_of_those_without_ranks(ranker):
    found = inspection.permutation_importance(ranker, NEW.assign(color="red"), None, n_repeats=3, random_state=0)
    importances = dict(zip(NEW, found.importances, strict=True))
    assert importances["color"].tolist() == [0.0] * 3 and importances["price"].min() > 0.1 > importances["title"].max()
    found = inspection.partial_dependence(ranker, NEW, ["age"], grid_resolution=3)
    (values,) = found["grid_values"]
    expected = [ranker.predict(NEW.assign(age=value)).mean() for value in values]
    np.testing.assert_allclose(found["average"][0], expected, rtol=1e-6)


def test_measures_by_a_column_are_the_means_of_its_queries(ranker):
    measures = ["ndcg", "P_1"]
    segments = ranker.evaluate(WITH_DEVICE, measures=measures, by="device")
    devices = WITH_DEVICE["device"].astype(object)
    devices[devices.isna()] = None
    assert segments.queries == collections.Counter(devices[~WITH_DEVICE["query"].duplicated()])
    for name, by_measure in segments.items():
        part = WITH_DEVICE[devices.isna() if name is None else devices == name]
        alone = ranker.evaluate(part, measures=measures)
        np.testing.assert_allclose([*by_measure.values()], [*alone.values()])
    lists = data.from_table(WITH_DEVICE, **ROLES)
    assert str(ranker.evaluate(lists, measures=measures, by="device")) == str(segments)


def test_bad_arguments_are_refused(ranker):
    bad = ([0, 999], [], -1, [True, False], [1.0], "red")
    cases = [
        (lambda: ranker.explain(NEW, samples=0), "`samples` must be an integer >= 1, got 0."),
        *((lambda rows=rows: ranker.explain(NEW, rows=rows), "`rows` must be rows of `X` from 0") for rows in bad),
        (lambda: ranker.explain(NEW.drop(columns="query")), "`qid`, `group` or `query` must"),
        (lambda: ranker.evaluate(WITH_DEVICE, by="devise"), "`by` must be one of "),
        (lambda: ranker.evaluate(NEW, by="color"), "`by` must be the same in all rows of a query, got 'color'"),
        (lambda: ranker.evaluate(NEW, by="age", by_query=True), "`by` must be None with `by_query=True`, got 'age'."),
    ]
    helpers.assert_refused(cases)


def test_rankers_that_score_whole_lists_cannot_be_explained(untrained):
    few = FRAME[["query", "price", "label"]][:60]
    settings = {**QUICK, "epochs": 1, "normalization": "min_max", "members": 1}
    with pytest.raises(ValueError, match="`network` must be None and `normalization` not 'min_max'"):
        tfr_smooth.Ranker(**settings).fit(few, **ROLES).explain(few)
