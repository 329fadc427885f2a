"""Spark, Dask and Ray score a table as one process does, also with a worker that is killed.

This needs all three, and Java.
"""

import contextlib
import os
import signal

import numpy as np
import pandas as pd
import pytest

from tests.ranker.test_ranker import NEW
from tests.serving import engines
from tfr_smooth import serving

TABLE = NEW.assign(place=np.arange(len(NEW)))  # `place` names the rows, as engines have no order


@pytest.fixture(scope="module", params=[engines.Spark, engines.Dask, engines.Ray])
def engine(request):
    return engines.started(request.param, request.config)


class Killed:
    """A ranker that kills the first process in which it scores."""

    def __init__(self, ranker, marker):
        self.ranker, self.marker, self.query_column = ranker, os.fspath(marker), ranker.query_column

    def predict(self, table):
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
            os.kill(os.getpid(), signal.SIGKILL)
        return self.ranker.predict(table)


def check(engine, scored, ranker):
    found = engine.rows(scored).sort_values("place")
    assert [*found.columns] == [*TABLE.columns, "score"] and str(found["score"].dtype).startswith("float")
    np.testing.assert_allclose(found["score"].to_numpy(np.float32), ranker.predict(NEW), rtol=1e-6, atol=1e-6)


def test_scores_are_those_of_one_process_also_if_one_is_killed(engine, ranker, tmp_path):
    """Also with partitions without rows: there are 12 queries."""
    killed = Killed(ranker, tmp_path / "killed")
    check(engine, serving.score_partitions(engine.grouped(TABLE, "query", 15), killed), ranker)
    assert (tmp_path / "killed").exists()


def test_queries_in_several_partitions_are_found(engine, ranker):
    with pytest.raises(ValueError, match="`frame` must have all rows of a query in one partition.*got .* in several"):
        serving.score_partitions(engine.table(TABLE, 4), ranker)
    unchecked = serving.score_partitions(engine.grouped(TABLE, "query", 3), ranker, check=False)
    check(engine, unchecked, ranker)


def test_users_get_the_recommendations_of_one_process(engine, recommender):
    lists = [recommender.interactions_.item_ids[:place].tolist() for place in range(1, 7)]
    users = pd.DataFrame({"customer": range(103, 109), "visited": pd.Series(lists, dtype=object)})
    for column, asked in (("customer", {"users": users["customer"]}), ("visited", {"histories": lists})):
        scored = serving.score_partitions(engine.table(users, 2), recommender, users=column, topn=4)
        found, expected = engine.rows(scored).sort_values(["customer", "rank"]), recommender.recommend(**asked, topn=4)
        assert found["customer"].tolist() == np.repeat(users["customer"], 4).tolist()
        assert found["item"].tolist() == expected.items.ravel().tolist()
        np.testing.assert_allclose(found["score"], expected.scores.ravel(), rtol=1e-5, atol=1e-5)
        assert found["rank"].tolist() == [1, 2, 3, 4] * 6


def test_times_of_spark_in_other_zones_are_refused(ranker, request):
    session = engines.started(engines.Spark, request.config).session
    frame = session.createDataFrame(TABLE[["query", "listed"]])
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        with pytest.raises(ValueError, match="times without a zone.* got a timestamp in 'listed' and 'Am"):
            serving.score_partitions(frame, ranker)
    finally:
        session.conf.set("spark.sql.session.timeZone", "UTC")


def test_wrong_arguments_and_values_are_named(ranker, recommender):
    import dask.dataframe

    frame = dask.dataframe.from_pandas(TABLE, npartitions=1)
    for given, options, message in (
        (NEW, {}, "`frame` must be a `DataFrame` of Spark or Dask, .* got DataFrame of pandas"),
        (frame.drop(columns="query"), {}, "`the column of queries` must be one of .*, got 'query'"),
        (frame.assign(score=1.0), {}, "`frame` must not have the column 'score'"),
        (
            frame,
            {"users": "query"},
            "`estimator` must be a `Recommender` for `users`, .*, got Ranker.* and users='query'",
        ),
        (frame, {"estimator": recommender}, "`users` must be one of .*, got None"),
    ):
        with pytest.raises(ValueError, match=message):
            serving.score_partitions(given, **{"estimator": ranker, **options})
    with pytest.raises(ValueError, match="column 'price' must .*numbers.*got 'cheap'"):
        wrong = serving.score_partitions(frame.assign(price="cheap"), ranker, check=False)
        wrong.compute(scheduler="synchronous")
