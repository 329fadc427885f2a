"""`explain`, `partial_dependence` and `evaluate(by=)` of a `Ranker` agree with its scores of changed tables."""

import re

import numpy as np
import pandas as pd
import pytest

import tfr_smooth
from tfr_smooth import data
from tfr_smooth.training import explanation

QUICK = {
    **{"loss": "softmax", "members": 2, "hidden": [8], "epochs": 12, "learning_rate": 0.02, "batch_size": 16},
    "verbose": False,
}


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
    assert set(names) == set(ranker.feature_importance(NEW, repeats=1).drops)
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


NEW_RED = NEW["color"] == "red"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (NEW_RED, np.flatnonzero(NEW_RED)),
        (NEW_RED.to_numpy(), np.flatnonzero(NEW_RED)),
        (NEW_RED.tolist(), np.flatnonzero(NEW_RED)),
        (NEW_RED.astype("boolean"), np.flatnonzero(NEW_RED)),
        (slice(2, 5), [2, 3, 4]),
        (slice(-1, None), [len(NEW) - 1]),
        ({5, 2}, [2, 5]),
        (range(2), [0, 1]),
        (3, [3]),
        (np.int64(3), [3]),
        ((row for row in [4]), [4]),
    ],
)
def test_rows_are_numbers_slices_or_masks(rows, expected, ranker):
    assert sorted(ranker.explain(NEW, rows=rows, samples=1).rows) == list(expected)


def test_a_column_takes_its_rank_in_the_actual_list_with_it():
    """Two documents differ only in the price: its contributions are all there is."""
    frame = FRAME[["query", "price", "label"]].assign(price=FRAME["price"].fillna(1.0))
    of_price = tfr_smooth.Ranker(**QUICK).fit(frame, **ROLES)
    assert of_price.features_.list_ranks == ("price",)
    pair = pd.DataFrame({"query": [0, 0], "price": [1.0, 1.2]})
    scores = of_price.predict(pair)
    explained = of_price.explain(pair)
    assert abs(scores[0] - scores[1]) > 0.1
    np.testing.assert_allclose(explained.contributions[:, 0], scores - scores.mean(), atol=1e-6)


def test_matrices_lists_and_calibrated_rankers_are_explained():
    matrix = FRAME[["price", "age", "is_new"]].fillna(0.0).to_numpy(float)
    of_matrix = tfr_smooth.Ranker(**QUICK).fit(matrix, FRAME["label"], qid=FRAME["query"])
    of_matrix.calibrate(matrix, FRAME["label"], qid=FRAME["query"])
    lists = data.from_arrays(matrix[:60], None, FRAME["query"][:60])
    for explained in (of_matrix.explain(matrix[:60], qid=FRAME["query"][:60], samples=5), of_matrix.explain(lists)):
        scores = of_matrix.predict(matrix[:60], qid=FRAME["query"][:60])[explained.rows]
        np.testing.assert_allclose(explained.contributions.sum(axis=1), scores - explained.background_scores, atol=1e-5)
        assert explained.columns == ("1", "2", "3") and explained.values["2"] == matrix[explained.rows, 1].tolist()
    dependence = of_matrix.partial_dependence(matrix[:60], "2", qid=FRAME["query"][:60], points=3)
    changed = [matrix[:60].copy() for _ in dependence.values]
    for copy, value in zip(changed, dependence.values, strict=True):
        copy[:, 1] = value
    expected = [of_matrix.predict(copy, qid=FRAME["query"][:60]).mean() for copy in changed]
    np.testing.assert_allclose(dependence.scores, expected, atol=1e-5)  # ages have no ranks


@pytest.mark.parametrize("column", ["price", "color", "is_new", "listed"])
def test_the_dependence_is_the_mean_score_with_one_changed_document(column, ranker):
    dependence = ranker.partial_dependence(NEW, column, points=4)
    known = NEW[column].dropna()
    if column == "color":
        assert dependence.values.tolist() == known.value_counts().index.tolist()
    else:
        assert set(dependence.values) <= set(
            known.astype(np.float32) if column != "listed" else known.astype("M8[s]").to_numpy()
        )
        assert len(dependence.values) == (2 if column == "is_new" else 4)
    for value, mean in zip(dependence.values, dependence.scores, strict=True):
        copies = []
        for row in range(len(NEW)):
            copy = NEW[NEW["query"] == NEW["query"].iloc[row]].copy()
            copy[column] = copy[column].where(
                copy.index != NEW.index[row], bool(value) if column == "is_new" else value
            )
            copies.append(copy.assign(query=row, changed=copy.index == NEW.index[row]))
        copies = pd.concat(copies, ignore_index=True)
        assert ranker.predict(copies)[copies["changed"]].mean() == pytest.approx(mean, abs=1e-5)


def test_the_dependence_of_a_large_table_is_that_of_a_sample(ranker, monkeypatch):
    whole = ranker.partial_dependence(FRAME, "color")
    monkeypatch.setattr(explanation, "_SCORED", 300)
    sample = ranker.partial_dependence(FRAME, "color")
    assert len(sample.known) < 100 < len(whole.known)
    scores = dict(zip(whole.values, whole.scores, strict=True))
    differences = [scores[value] - mean for value, mean in zip(sample.values, sample.scores, strict=True)]
    assert 0.0 < np.abs(differences).max() < np.ptp(whole.scores)


def test_measures_by_a_column_are_the_means_of_its_queries(ranker, tmp_path):
    measures = ["ndcg", "P_1"]
    segments = ranker.evaluate(WITH_DEVICE, measures=measures, by="device")
    counts = WITH_DEVICE.drop_duplicates("query")["device"].fillna("missing").value_counts()
    assert segments.queries == counts.to_dict() and list(segments)[0] == counts.index[0]
    for name, by_measure in segments.items():
        part = WITH_DEVICE[WITH_DEVICE["device"].fillna("missing") == name]
        alone = ranker.evaluate(part, measures=measures)
        np.testing.assert_allclose([*by_measure.values()], [*alone.values()])
    segments.plot(tmp_path / "plot.png", measure="P_1")
    lists = data.from_table(WITH_DEVICE, **ROLES)
    assert str(ranker.evaluate(lists, measures=measures, by="device")) == str(segments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.explain(NEW, samples=0), "`samples` must be an integer >= 1, got 0."),
        *(
            (lambda r, rows=rows: r.explain(NEW, rows=rows), f"`rows` must be rows of `X` from 0 to {len(NEW) - 1}, ")
            for rows in ([0, 999], [], -1, slice(0, 0), [True, False], [False] * len(NEW), [1.0], "red", {"row": 1})
        ),
        (lambda r: r.explain(NEW, rows=[0, 999]), "at least one, got [0, 999]."),
        (lambda r: r.explain(NEW.drop(columns="query")), "`qid`, `group` or `query` must"),
        (lambda r: r.partial_dependence(NEW, "title"), "`column` must be one of 'price', "),
        (lambda r: r.partial_dependence(NEW, "prise"), "Did you mean 'price'"),
        (lambda r: r.partial_dependence(NEW, "price", points=0), "`points` must be an integer >= 1, got 0."),
        (lambda r: r.partial_dependence(NEW.assign(price=np.nan), "price"), "`column` must have known values"),
        (lambda r: r.evaluate(WITH_DEVICE, by="devise"), "`by` must be one of "),
        (lambda r: r.evaluate(NEW, by="color"), "`by` must be the same in all rows of a query, got 'color'"),
        (lambda r: r.evaluate(NEW, by="age", by_query=True), "`by` must be None with `by_query=True`, got 'age'."),
    ],
)
def test_bad_arguments_are_refused(call, message, ranker):
    with pytest.raises(ValueError, match=re.escape(message)):
        call(ranker)


def test_rankers_that_score_whole_lists_cannot_be_explained():
    settings = {**QUICK, "epochs": 1, "normalization": "min_max"}
    with pytest.raises(ValueError, match="`network` must be None and `normalization` not 'min_max'"):
        tfr_smooth.Ranker(**settings).fit(FRAME, **ROLES).explain(NEW)
