"""Partitions have the scores and recommendations of the whole table, in any order and form."""

import pickle
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.ranker.test_ranker import NEW
from tfr_smooth import models, serving

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("model", ["ranker", "path"])
def test_parts_have_the_scores_of_the_table(model, ranker, path):
    expected = pd.Series(ranker.predict(NEW), NEW.index)
    given = serving.PartitionScorer(
        {"ranker": ranker, "path": path.parent}[model], query="query", columns=["query"], name="s"
    )
    scorer = pickle.loads(pickle.dumps(given))
    shuffled = NEW.sample(frac=1.0, random_state=0)
    is_even = shuffled["query"].str[-1].isin(list("02468"))
    whole, streamed = shuffled[~is_even], shuffled[is_even]
    stream = scorer(iter(pa.Table.from_pandas(streamed).to_batches(7)))
    for part, found in ((whole, scorer(whole)), (streamed, pa.Table.from_batches(stream).to_pandas())):
        assert [*found.columns] == ["query", "s"] and found["s"].dtype == np.float32
        np.testing.assert_array_equal(found["query"], part["query"])
        np.testing.assert_allclose(found["s"], expected[part.index], rtol=1e-6, atol=1e-6)


def test_an_export_that_is_written_again_is_loaded_again(tmp_path):
    part = pd.DataFrame({"query": [1, 1], "price": [2.0, 3.5]})
    for _ in range(2):
        shutil.rmtree(tmp_path / "export", ignore_errors=True)
        model = models.FeedForwardScorer(hidden=[4])
        serving.export_ranker(model, tmp_path / "export", feature_names=["price"], warmup=False)
        scores = serving.PartitionScorer(tmp_path / "export", query="query")(part)["score"]
        np.testing.assert_allclose([scores], model(np.float32([[[2.0], [3.5]]])), rtol=1e-6, atol=1e-6)


def test_wrong_arguments_and_values_are_named(ranker, path):
    for changed, message in (
        ({"model": 3}, "`model` must be the directory of an export, what `load` returns for it, .*got int"),
        ({"query": "session"}, "`query` must be one of .*, got 'session'"),
        ({"name": "query"}, "`name` must be another name than those of `columns`, got 'query'"),
        ({"model": ranker, "query": "age"}, "`query` must be None or 'query', that of the training, got 'age'"),
    ):
        with pytest.raises(ValueError, match=message):
            serving.PartitionScorer(**{"model": path, "query": "query", **changed})(NEW)
    scorer = serving.PartitionScorer(path, query="query")
    with pytest.raises(ValueError, match="column 'price' must .*numbers.*got 'cheap'"):
        scorer(NEW.assign(price="cheap"))
    with pytest.raises(ValueError, match="`frame` must be a `DataFrame` of Spark or Dask, .* got DataFrame of pandas"):
        serving.map_partitions(NEW, scorer)


def test_parts_have_the_recommendations_of_the_users(recommender):
    fitted, path = recommender
    users = pd.DataFrame({"customer": [*range(103, 109), 103]})
    lists = [fitted.interactions_.item_ids[:place].tolist() for place in range(7)]
    users["visited"] = pd.Series([None, *lists[1:]], dtype=object)  # a missing list is an empty one
    for histories, asked in ((None, {"users": users["customer"]}), ("visited", {"histories": lists})):
        given = serving.PartitionRecommender(path, users="customer", histories=histories, topn=4)
        found, expected = pickle.loads(pickle.dumps(given))(users), fitted.recommend(**asked, topn=4)
        assert found["customer"].tolist() == np.repeat(users["customer"], 4).tolist()
        np.testing.assert_array_equal(found["item"], expected.items.ravel())
        np.testing.assert_allclose(found["score"], expected.scores.ravel(), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(found["rank"], np.tile([1, 2, 3, 4], 7))
