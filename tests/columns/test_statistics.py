"""Statistics of ids: their values by brute force, which are selected, and that they leak no label."""

import itertools

import numpy as np
import pandas as pd
import pytest

import tfr_smooth
from tests import helpers
from tests.helpers import exports
from tfr_smooth import data
from tfr_smooth.columns import Id, Statistic, TableFeatures, column_arrays, statistics
from tfr_smooth.columns.learning import learn_features

KINDS = {"host": "id", "tags": "set:|"}
CROSSES = [("host", "tags"), ("tags", "color")]


def table(queries=60, documents=6, effect=1.0, seed=0):
    """Returns a table whose labels depend on hosts, with missing ids, empty sets and queries in several places."""
    random = np.random.default_rng(seed)
    rows = queries * documents
    frame = pd.DataFrame({"query": np.tile(np.arange(queries), documents)})
    frame["host"] = random.choice([None, *(f"h{number}" for number in range(25))], rows)
    tags = ["", "a", "b|c", " a |c", "b|a|a", "c"]
    frame["tags"], frame["color"] = random.choice(tags, rows), random.choice(["red", "blue", "black", ""], rows)
    hosts = {
        host: np.random.default_rng(len(str(host)) + ord(str(host)[-1])).normal() for host in frame["host"].unique()
    }
    utility = effect * frame["host"].map(hosts) + frame["tags"].str.contains("a") + random.normal(size=rows)
    frame["label"] = np.digitize(utility, [0.5, 1.5])
    return frame


def learn(frame, queries=None, **options):
    """Returns the layer, and the statistics that the training documents have."""
    options = {"kinds": KINDS, "crosses": CROSSES, **options}
    layer, raw = learn_features(data.from_table(frame, query="query", label="label"), queries, **options)
    name = tfr_smooth.data.roles.STATISTICS
    return layer, raw.column(name)(np.arange(len(frame))) if name in raw.source.column_names else None


def looked_up(layer, frame):
    """Returns the statistics that other documents have."""
    names = layer.feature_columns
    count = 2 * len(layer.statistics)
    return layer(column_arrays(frame, layer.columns)).numpy()[:, len(names) - count :]


@pytest.fixture
def keep_all(monkeypatch):
    monkeypatch.setattr(statistics, "_LEAST_ERRORS", -np.inf)
    monkeypatch.setattr(statistics, "_LEAST_FRACTION", -np.inf)
    monkeypatch.setattr(statistics, "_STRENGTHS", (3.0,))


def values_of(row, names):
    """Returns the values of a row, or its pairs of values."""
    parts = [[part.strip() for part in ("" if pd.isna(row[name]) else row[name]).split("|")] for name in names]
    return [pair for pair in itertools.product(*parts) if all(pair)]


@pytest.mark.parametrize("order", [None, np.random.default_rng(1).permutation(60)])
def test_statistics_are_those_of_the_other_parts_in_training_and_of_all_parts_elsewhere(order, keep_all):
    frame, chosen = table(), np.arange(4, 37)
    layer, found = learn(frame, chosen, order=order)
    in_order = chosen if order is None else sorted(chosen, key=lambda query: order[query])
    part = {query: place * 10 // len(chosen) for place, query in enumerate(in_order)}
    training = frame[frame["query"].isin(chosen)]
    target = training["label"] - training.groupby("query")["label"].transform("mean")
    named = [("host",), ("tags",), ("color",), *CROSSES]
    assert [statistic.columns for statistic in layer.statistics] == named
    assert layer.feature_columns[-4:] == (*["host x tags"] * 2, *["tags x color"] * 2)
    everywhere = looked_up(layer, frame)
    for place, names in enumerate(named):
        occurrences = [
            (value, target[row.Index], part[row.query])
            for row in training.itertuples()
            for value in values_of(row._asdict(), names)
        ]
        for row in frame.sample(25, random_state=0).itertuples():
            for matrix, own in ((found, part.get(row.query)), (everywhere, None)):
                expected = np.zeros(2)
                values = values_of(row._asdict(), names)
                for value in values:
                    others = [label for other, label, its in occurrences if other == value and its != own]
                    expected += np.array([sum(others) / (len(others) + 3.0), np.log1p(len(others))]) / len(values)
                np.testing.assert_allclose(matrix[row.Index, 2 * place : 2 * place + 2], expected, atol=1e-5)


def test_statistics_of_several_labels_are_those_of_their_weighted_mean(keep_all):
    frame = table().assign(other=lambda frame: frame.index % 2)
    lists = data.from_table(frame, query="query", label={"label": 3.0, "other": 1.0})
    layer, raw = learn_features(lists, kinds=KINDS)
    _, expected = learn(frame.assign(label=0.75 * frame["label"] + 0.25 * frame.pop("other")), crosses=())
    np.testing.assert_allclose(raw.column("__statistics__")(np.arange(len(frame))), expected, atol=1e-6)


def test_random_labels_leave_no_statistic_and_training_documents_know_no_label(keep_all, monkeypatch):
    frame = table(400)
    frame["host"] = np.random.default_rng(2).integers(0, 300, len(frame)).astype(str)
    frame["label"] = np.random.default_rng(3).integers(0, 3, len(frame))
    _, found = learn(frame, crosses=())
    target = frame["label"] - frame.groupby("query")["label"].transform("mean")
    assert np.corrcoef(found[:, 0], target)[0, 1] < 0.02
    monkeypatch.undo()
    layer, found = learn(frame)
    assert found is None and not layer.statistics


def test_statistics_that_do_not_last_and_those_of_the_query_are_left_out():
    frame = table(200).sort_values("query", kind="stable", ignore_index=True)
    frame["year"] = frame["query"] // 20
    frame["song"] = "s" + (frame["year"] * 10 + np.random.default_rng(4).integers(0, 4, len(frame))).astype(str)
    frame["user"] = "u" + (frame["query"] % 7).astype(str)  # the same in each list
    frame["label"] += 2 * (frame["song"].str[-1] == "1")  # known only in its year
    layer, _ = learn(frame, kinds={**KINDS, "song": "id", "user": "id"}, crosses=[("user", "host"), ("user", "song")])
    names = [statistic.columns for statistic in layer.statistics]
    assert ("host",) in names and not any("song" in columns or columns == ("user",) for columns in names)


def test_tables_with_nothing_to_learn_have_no_statistics():
    for frame in (table(1), table(2), table().assign(label=1)):
        assert learn(frame[["query", "label", *KINDS]], crosses=())[1] is None


@pytest.mark.slow
def test_ids_with_a_long_tail_rank_new_queries(tmp_path):
    random = np.random.default_rng(0)
    effect, chances = random.normal(size=1500), 1.0 / np.arange(1, 1501)
    frame = pd.DataFrame({"query": np.repeat(np.arange(500), 8), "noise": random.normal(size=4000)})
    hosts = random.choice(1500, 4000, p=chances / chances.sum())
    frame["host"], frame["label"] = "h" + pd.Series(hosts.astype(str)), (effect[hosts] > 0.0).astype(int)
    train, new = frame[frame["query"] < 400], frame[frame["query"] >= 400]
    quick = {"loss": "softmax", "members": 1, "hidden": [16], "epochs": 6, "learning_rate": 0.01, "verbose": False}
    ranker = tfr_smooth.Ranker(**quick, kinds={"host": "id"}).fit(train, label="label", query="query")
    assert ranker.evaluate(new)["ndcg"].mean > 0.85
    scores = ranker.predict(new)
    ranker.save(tmp_path / "ranker.keras")
    np.testing.assert_array_equal(tfr_smooth.Ranker.load(tmp_path / "ranker.keras").predict(new), scores)
    served = exports.scores_of(ranker.export(tmp_path / "served"), ranker, new, new["query"])
    np.testing.assert_allclose(served, scores, rtol=1e-4, atol=1e-5)


def test_arguments_that_do_not_fit_are_refused():
    pairs = "`crosses` must be pairs of names of feature columns of "
    other = Statistic(columns=("y",), values=("a",), means=(0.0,), counts=(1,))
    cases = [
        *((lambda cross=cross: learn(table(), crosses=[cross]), pairs) for cross in (("host", "label"), "host")),
        (lambda: learn(table(), crosses=[("host", "host")]), pairs),
        (
            lambda: Statistic(columns=("x",), values=("a",), means=(0.1,), counts=()),
            "`values`, `means` and `counts` must have the same length, got 1, 1 and 0.",
        ),
        (
            lambda: TableFeatures([Id(name="x")], statistics=[other]),
            "`statistics` must be those of columns of ids or sets, got one of 'y'.",
        ),
    ]
    helpers.assert_refused(cases)


@pytest.mark.parametrize("effect", [1.0, 0.0])
@pytest.mark.parametrize("order", [None, np.random.default_rng(1).permutation(100)])
def test_texts_have_the_numbers_that_predict_labels(effect, order):
    """Questions and digits occur alike, but only questions are labeled, and the same texts are in no other query."""
    random, rows = np.random.default_rng(0), 600
    frame = pd.DataFrame({"query": np.repeat(np.arange(100), 6)})
    is_question, has_digits = (random.random((2, rows)) < 0.4).astype(int)
    words = ["red lamp", "blue lamp of old", "old"]
    frame["title"] = [random.choice(words) + " 7" * has_digits[row] + "?" * is_question[row] for row in range(rows)]
    frame["of_query"] = frame["title"].groupby(frame["query"]).transform("first")
    frame["label"] = (effect * is_question + random.normal(size=rows) > 0.5).astype(int)
    kinds = dict.fromkeys(["title", "of_query"], "text")
    layer, _ = learn_features(data.from_table(frame, query="query", label="label"), kinds=kinds, order=order)
    assert layer.columns[0].numbers == (("punctuation", "questions") if effect else ())
    assert layer.columns[1].numbers == ()
    assert layer.columns[0].reason.endswith("; also punctuation, questions") == bool(effect)
