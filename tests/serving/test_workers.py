"""Partitions have the scores and recommendations of the whole table, in any order, form and process."""

import pickle
import shutil
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tfr_smooth
from tests.ranker.test_ranker import FRAME, NEW, SMALL
from tests.recommendation.groups import likes
from tfr_smooth import recommendation, serving
from tfr_smooth.serving import loading

CLOSE = {"rtol": 1e-6, "atol": 1e-6}


def parts_of(table, count, seed):
    """Parts of whole queries, their rows in random order."""
    order = np.random.default_rng(seed).permutation(len(table))
    part = pd.factorize(table["query"])[0][order] % count
    return [table.iloc[order[part == number]] for number in range(count)]


FORMS = {
    "pandas": (lambda part: part, lambda result: result),
    "arrow": (pa.Table.from_pandas, lambda result: result.to_pandas()),
    "pandas stream": (lambda part: iter([part[:3], part[3:]]), lambda result: next(result)),
    "stream": (
        lambda part: iter(pa.Table.from_pandas(part).to_batches(max_chunksize=7)),
        lambda result: pa.Table.from_batches(result).to_pandas(),
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", ["ranker", "path", "loaded"])
def test_parts_have_the_scores_of_the_table(model, form, ranker, path):
    expected = pd.Series(ranker.predict(NEW), NEW.index)
    given = {"ranker": ranker, "path": path.parent, "loaded": serving.load(path)}[model]
    scorer = pickle.loads(pickle.dumps(serving.PartitionScorer(given, query="query", columns=["query"], name="s")))
    to_part, to_frame = FORMS[form]
    for part in parts_of(NEW, 3, seed=1):
        found = to_frame(scorer(to_part(part)))
        assert [*found.columns] == ["query", "s"] and found["s"].dtype == np.float32
        np.testing.assert_array_equal(found["query"], part["query"])
        np.testing.assert_allclose(found["s"], expected[part.index], **CLOSE)


def test_an_empty_part_has_the_columns_of_the_others_and_needs_no_model(path, monkeypatch):
    scorer = serving.PartitionScorer(path, query="query")
    monkeypatch.setattr(loading, "load", None)
    empty = scorer(NEW[:0])
    assert [*empty.columns] == [*NEW.columns, "score"] and empty["score"].dtype == np.float32 and not len(empty)
    assert not [*scorer(iter([]))]
    schema = pa.schema([("query", pa.int64()), ("x", pa.list_(pa.string()))])
    assert scorer(schema.empty_table()).schema == schema.append(pa.field("score", pa.float32()))


def test_a_process_loads_an_export_once(path, monkeypatch):
    calls, load = [], loading.load
    monkeypatch.setattr(loading, "load", lambda path: calls.append(path) or load(path))
    monkeypatch.setattr(loading, "_objects", {})
    content = pickle.dumps(serving.PartitionScorer(path, query="query"))
    found = []
    threads = [threading.Thread(target=lambda: found.append(pickle.loads(content)(NEW)["score"])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(serving.load(path)))))
    assert len(calls) == 1 and again.path == path
    for scores in found:
        np.testing.assert_allclose(scores, found[0], **CLOSE)


@pytest.mark.slow
def test_a_new_process_scores_by_the_pickle_alone(ranker, path, tmp_path):
    program = (
        "import pickle, sys, pandas; scorer, part = pickle.load(open(sys.argv[1], 'rb')); print(*scorer(part).score)"
    )
    part = NEW[NEW["query"].isin(NEW["query"].unique()[:2])]
    for number, model in enumerate((ranker, path)):
        file = tmp_path / f"{number}.pickle"
        file.write_bytes(pickle.dumps((serving.PartitionScorer(model, query="query"), part)))
        run = subprocess.run([sys.executable, "-c", program, file], capture_output=True, text=True, check=True)
        np.testing.assert_allclose([*map(float, run.stdout.split())], ranker.predict(part), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model": 3}, "`model` must be the directory of an export, what `load` returns for it, .*got int"),
        ({"query": "session"}, "`query` must be one of .*, got 'session'"),
        ({"query": None}, "`query` must be a column of queries for an export, got None"),
        ({"columns": "query"}, "`columns` must be names of columns, got the text 'query'"),
        ({"columns": ["query", "shop"]}, "`columns` must be one of .*, got 'shop'"),
        ({"name": "query"}, "`name` must be another name than those of `columns`, got 'query'"),
    ],
)
def test_wrong_arguments_of_a_scorer_are_named(changed, message, path):
    arguments = {"model": path, "query": "query", **changed}
    with pytest.raises(ValueError, match=message):
        serving.PartitionScorer(**arguments)(NEW)


def test_a_fitted_ranker_knows_its_columns(ranker):
    np.testing.assert_allclose(serving.PartitionScorer(ranker)(NEW)["score"], ranker.predict(NEW), **CLOSE)
    with pytest.raises(ValueError, match="`query` must be None or 'query', that of the training, got 'age'"):
        serving.PartitionScorer(ranker, query="age")
    of_array = tfr_smooth.Ranker(**SMALL, trees=False).fit(FRAME[["price"]], FRAME["label"], qid=FRAME["query"])
    with pytest.raises(ValueError, match="`model` must be fitted on a table with `query`, or exported"):
        serving.PartitionScorer(of_array)
    with pytest.raises(ValueError, match="`fit` must be called first"):
        serving.PartitionScorer(tfr_smooth.Ranker())


def test_names_of_columns_that_are_no_text_and_other_tables(ranker, path):
    scorer = serving.PartitionScorer(path, query="query")
    found = scorer(NEW.assign(**{"0": 1}).rename(columns={"0": 0}))
    np.testing.assert_allclose(found["score"], ranker.predict(NEW), **CLOSE)
    found = scorer({name: pa.array(NEW[name], from_pandas=True) for name in NEW})
    np.testing.assert_allclose(found["score"], ranker.predict(NEW), **CLOSE)


def test_an_export_that_is_written_again_is_loaded_again(ranker, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    part, scores = NEW[NEW["query"].isin(NEW["query"].unique()[:2])], []
    other = tfr_smooth.Ranker(**{**SMALL, "seed": 5}, trees=False).fit(FRAME, label="label", query="query")
    for model in (ranker, other):
        shutil.rmtree("export", ignore_errors=True)
        model.export("export", warmup=False)
        scores.append(serving.PartitionScorer("export", query="query")(part)["score"])
        np.testing.assert_allclose(scores[-1], model.predict(part), **CLOSE)
    loaded = serving.load("export")
    monkeypatch.chdir("/")
    np.testing.assert_allclose(pickle.loads(pickle.dumps(loaded)).score(part, qid=part["query"]), scores[1], **CLOSE)


def test_a_wrong_value_of_a_part_names_the_column(path):
    with pytest.raises(ValueError, match="column 'price' must .*numbers.*got 'cheap'"):
        serving.PartitionScorer(path, query="query")(NEW.assign(price="cheap"))


@pytest.fixture(scope="module", params=[pytest.param(True, marks=pytest.mark.slow), False])
def recommender(request, tmp_path_factory):
    """A recommender of ids that are text or numbers, its users, and its export."""
    user_ids, item_ids = [*range(100, 124)], [*range(300, 324)]
    if request.param:
        user_ids, item_ids = ([f"item {number}" for number in ids] for ids in (user_ids, item_ids))
    options = {"dim": 8, "softmax_epochs": 2, "softmax_batch_size": 4, "loss": None, "refit": False}
    fitted = recommendation.Recommender(**options, verbose=False)
    fitted.fit(recommendation.Interactions(likes(), user_ids, item_ids))
    return fitted, user_ids, fitted.export(tmp_path_factory.mktemp("recommender"))


@pytest.mark.parametrize("form", FORMS)
def test_parts_have_the_recommendations_of_the_users(form, recommender):
    fitted, user_ids, path = recommender
    to_part, to_frame = FORMS[form]
    users = pd.DataFrame({"customer": [*user_ids[3:9], user_ids[3]], "country": "fr"})
    lists = [fitted.interactions_.item_ids[:place].tolist() for place in range(7)]
    users["visited"] = pd.Series([None, *lists[1:]], dtype=object)  # a missing list is an empty one
    for histories in (None, "visited"):
        given = serving.PartitionRecommender(path, users="customer", histories=histories, topn=4)
        found = to_frame(pickle.loads(pickle.dumps(given))(to_part(users)))
        asked = {"users": users["customer"]} if histories is None else {"histories": lists}
        expected = fitted.recommend(**asked, topn=4)
        assert [*found.columns] == ["customer", "item", "score", "rank"]
        assert found["customer"].tolist() == np.repeat(users["customer"], 4).tolist()
        np.testing.assert_array_equal(found["item"], expected.items.ravel())
        np.testing.assert_allclose(found["score"], expected.scores.ravel(), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(found["rank"], np.tile([1, 2, 3, 4], 7))
    empty = given(pa.Table.from_pandas(users[:0], preserve_index=False))
    assert empty.schema.types == [pa.Table.from_pandas(users)["customer"].type, given._type, pa.float32(), pa.int32()]


def test_wrong_arguments_of_a_recommender_are_named(recommender, path):
    export = recommender[2]
    for model, others, message in (
        (recommender[0], {}, "`model` must be the directory of an export of a `Recommender`.*got Recommender"),
        (path, {}, "`model` must be an export of a `Recommender`, got another in"),
        (export, {"topn": 0}, "`topn` must be an integer >= 1, got 0"),
        (export, {"users": "item"}, "`users` must be another name than 'item', 'score', 'rank', got 'item'"),
        (export, {"users": "who"}, "`users` must be one of 'customer', got 'who'"),
        (export, {"histories": "past"}, "`histories` must be one of 'customer', got 'past'"),
    ):
        with pytest.raises(ValueError, match=message):
            serving.PartitionRecommender(model, **{"users": "customer", **others})(pd.DataFrame({"customer": [1]}))


def test_other_tables_have_no_partitions(path):
    with pytest.raises(ValueError, match="`frame` must be a `DataFrame` of Spark or Dask, .* got DataFrame of pandas"):
        serving.map_partitions(NEW, serving.PartitionScorer(path, query="query"))
