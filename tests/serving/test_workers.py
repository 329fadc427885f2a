"""Partitions have the scores and recommendations of the whole table, in any order, form and process."""

import pickle
import shutil
import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tfr_smooth
from tests.ranker.test_ranker import NEW
from tfr_smooth import models, serving
from tfr_smooth.serving import loading

pytestmark = pytest.mark.slow

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


@pytest.mark.parametrize("model", ["ranker", "path", "loaded"])
def test_parts_have_the_scores_of_the_table(model, ranker, path):
    expected = pd.Series(ranker.predict(NEW), NEW.index)
    given = {"ranker": ranker, "path": path.parent, "loaded": serving.load(path)}[model]
    scorer = pickle.loads(pickle.dumps(serving.PartitionScorer(given, query="query", columns=["query"], name="s")))
    for (to_part, to_frame), part in zip(FORMS.values(), parts_of(NEW, 4, seed=1), strict=True):
        found = to_frame(scorer(to_part(part)))
        assert [*found.columns] == ["query", "s"] and found["s"].dtype == np.float32
        np.testing.assert_array_equal(found["query"], part["query"])
        np.testing.assert_allclose(found["s"], expected[part.index], **CLOSE)


def test_an_empty_part_has_the_columns_of_the_others_and_needs_no_model(path, monkeypatch):
    scorer = serving.PartitionScorer(path, query="query")
    monkeypatch.setattr(loading, "load", None)
    empty = scorer(NEW[:0])
    assert [*empty.columns] == [*NEW.columns, "score"] and empty["score"].dtype == np.float32 and not len(empty)
    schema = pa.schema([("query", pa.int64()), ("x", pa.list_(pa.string()))])
    assert scorer(schema.empty_table()).schema == schema.append(pa.field("score", pa.float32()))


def test_a_process_loads_an_export_once(path, monkeypatch):
    calls, load = [], loading.load
    monkeypatch.setattr(loading, "load", lambda path: calls.append(path) or load(path))
    monkeypatch.setattr(loading, "_objects", {})
    content, found = pickle.dumps(serving.PartitionScorer(path, query="query")), []
    threads = [threading.Thread(target=lambda: found.append(pickle.loads(content)(NEW)["score"])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1 and len(found) == 4
    for scores in found:
        np.testing.assert_allclose(scores, found[0], **CLOSE)


def test_wrong_arguments_and_values_of_a_scorer_are_named(ranker, path):
    for changed, message in (
        ({"model": 3}, "`model` must be the directory of an export, what `load` returns for it, .*got int"),
        ({"query": "session"}, "`query` must be one of .*, got 'session'"),
        ({"query": None}, "`query` must be a column of queries for an export, got None"),
        ({"columns": ["query", "shop"]}, "`columns` must be one of .*, got 'shop'"),
        ({"name": "query"}, "`name` must be another name than those of `columns`, got 'query'"),
        ({"model": ranker, "query": "age"}, "`query` must be None or 'query', that of the training, got 'age'"),
        ({"model": tfr_smooth.Ranker()}, "`fit` must be called first"),
    ):
        with pytest.raises(ValueError, match=message):
            serving.PartitionScorer(**{"model": path, "query": "query", **changed})(NEW)
    scorer = serving.PartitionScorer(path, query="query")
    with pytest.raises(ValueError, match="column 'price' must .*numbers.*got 'cheap'"):
        scorer(NEW.assign(price="cheap"))
    with pytest.raises(ValueError, match="`frame` must be a `DataFrame` of Spark or Dask, .* got DataFrame of pandas"):
        serving.map_partitions(NEW, scorer)


def test_an_export_that_is_written_again_is_loaded_again(tmp_path):
    part = pd.DataFrame({"query": [1, 1], "price": [2.0, 3.5]})
    for _ in range(2):
        shutil.rmtree(tmp_path / "export", ignore_errors=True)
        model = models.FeedForwardScorer(hidden=[4])
        serving.export_ranker(model, tmp_path / "export", feature_names=["price"], warmup=False)
        scores = serving.PartitionScorer(tmp_path / "export", query="query")(part)["score"]
        np.testing.assert_allclose([scores], model(np.float32([[[2.0], [3.5]]])), **CLOSE)


@pytest.mark.parametrize("form", ["pandas", "stream"])
def test_parts_have_the_recommendations_of_the_users(form, recommender):
    fitted, path = recommender
    to_part, to_frame = FORMS[form]
    users = pd.DataFrame({"customer": [*range(103, 109), 103], "country": "fr"})
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


def test_wrong_arguments_of_a_recommender_are_named(recommender, path):
    fitted, export = recommender
    for model, others, message in (
        (fitted, {}, "`model` must be the directory of an export of a `Recommender`.*got Recommender"),
        (path, {}, "`model` must be an export of a `Recommender`, got another in"),
        (export, {"users": "item"}, "`users` must be another name than 'item', 'score', 'rank', got 'item'"),
        (export, {"histories": "past"}, "`histories` must be one of 'customer', got 'past'"),
    ):
        with pytest.raises(ValueError, match=message):
            serving.PartitionRecommender(model, **{"users": "customer", **others})(pd.DataFrame({"customer": [1]}))
