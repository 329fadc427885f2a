"""Spark, Dask and Ray score a table as one process does, also with a worker that is killed.

This needs all three, and Java.
"""

import contextlib
import os
import signal
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.ranker.test_ranker import NEW
from tests.recommendation.groups import likes
from tests.serving.test_workers import CLOSE
from tfr_smooth import recommendation, serving


class Spark:
    """Spark with two processes."""

    @contextlib.contextmanager
    def started(self):
        from pyspark.sql import SparkSession

        os.environ.update(PYSPARK_PYTHON=sys.executable, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
        settings = {"spark.ui.enabled": False, "spark.sql.shuffle.partitions": 3, "spark.task.maxFailures": 4}
        builder = SparkSession.builder.master("local[2, 4]")
        for name, value in settings.items():
            builder = builder.config(name, value)
        self.session = builder.getOrCreate()
        yield
        self.session.stop()

    def table(self, frame, partitions):
        return self.session.createDataFrame(pa.Table.from_pandas(frame, preserve_index=False)).repartition(partitions)

    def grouped(self, frame, key):
        return self.table(frame, 1).repartition(3, key)

    def rows(self, found):
        return found.toPandas()


class Dask:
    """A cluster of two processes of Dask."""

    @contextlib.contextmanager
    def started(self):
        import dask
        import distributed

        with (
            dask.config.set({"dataframe.convert-string": False}),  # lists stay lists
            distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            distributed.Client(cluster),
        ):
            yield

    def table(self, frame, partitions):
        import dask.dataframe

        return dask.dataframe.from_pandas(frame.sample(frac=1.0, random_state=0), npartitions=partitions, sort=False)

    def grouped(self, frame, key):
        return self.table(frame, 2).shuffle(key, npartitions=3)

    def rows(self, found):
        return found.compute()


class Ray:
    """Two processes of Ray."""

    @contextlib.contextmanager
    def started(self):
        import ray

        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, configure_logging=False)
        ray.data.DataContext.get_current().default_hash_shuffle_parallelism = 4  # of 200, for a small table
        yield
        ray.shutdown()

    def table(self, frame, partitions):
        import ray

        table = pa.Table.from_pandas(frame.sample(frac=1.0, random_state=0), preserve_index=False)
        return ray.data.from_arrow(table).repartition(partitions)

    def grouped(self, frame, key):
        return self.table(frame, 2).repartition(3, keys=[key])

    def rows(self, found):
        return found.to_pandas()


@pytest.fixture(scope="module", params=[Spark, Dask, Ray])
def engine(request):
    found = request.param()
    with found.started():
        yield found


TABLE = NEW.assign(place=np.arange(len(NEW)))  # names the rows, as engines have no order


class Killed(serving.PartitionScorer):
    """Kills the first process that scores."""

    def __init__(self, *args, marker, **options):
        super().__init__(*args, **options)
        self.marker = marker

    def _scores(self, table):
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
            os.kill(os.getpid(), signal.SIGKILL)
        return super()._scores(table)


@pytest.mark.parametrize("partitions", [1, 5, 40])
def test_scores_are_those_of_one_process(engine, ranker, path, partitions):
    """Also with partitions without rows: there are 12 queries."""
    scorer = serving.PartitionScorer(path, query="query", columns=["place"])
    found = engine.rows(serving.map_partitions(engine.table(TABLE, 4), scorer, partitions=partitions))
    scores = found.sort_values("place")["score"].to_numpy(np.float32)
    np.testing.assert_allclose(scores, ranker.predict(NEW), **CLOSE)


def test_a_ranker_is_sent_with_its_content(engine, ranker):
    scorer = serving.PartitionScorer(ranker, columns=["place", "query"])
    found = engine.rows(serving.map_partitions(engine.table(TABLE, 4), scorer, partitions=3)).sort_values("place")
    np.testing.assert_allclose(found["score"].to_numpy(np.float32), ranker.predict(NEW), **CLOSE)
    np.testing.assert_array_equal(found["query"], NEW["query"])


def test_a_table_may_have_scores_and_its_columns_are_checked_first(engine, ranker, path):
    table = engine.table(TABLE.assign(score="old").rename(columns={"query": "of query"}), 2)
    scorer = serving.PartitionScorer(path, query="of query", columns=["place"])
    found = engine.rows(serving.map_partitions(table, scorer, partitions=3)).sort_values("place")
    np.testing.assert_allclose(found["score"].to_numpy(np.float32), ranker.predict(NEW), **CLOSE)
    with pytest.raises(ValueError, match="`query` must be one of .*, got 'query'"):
        serving.map_partitions(table, serving.PartitionScorer(path, query="query"), shuffle=False)


def test_a_killed_process_changes_nothing(engine, ranker, path, tmp_path):
    scorer = Killed(path, query="query", columns=["place"], marker=os.fspath(tmp_path / "killed"))
    found = engine.rows(serving.map_partitions(engine.table(TABLE, 4), scorer, partitions=3))
    assert (tmp_path / "killed").exists()
    scores = found.sort_values("place")["score"].to_numpy(np.float32)
    np.testing.assert_allclose(scores, ranker.predict(NEW), **CLOSE)


def test_queries_in_several_partitions_are_found(engine, ranker, path):
    scorer = serving.PartitionScorer(path, query="query", columns=["place"])
    found = engine.rows(serving.map_partitions(engine.grouped(TABLE, "query"), scorer, shuffle=False))
    scores = found.sort_values("place")["score"].to_numpy(np.float32)
    np.testing.assert_allclose(scores, ranker.predict(NEW), **CLOSE)
    with pytest.raises(ValueError, match="`frame` must have all rows of a query in one partition.*got the query"):
        serving.map_partitions(engine.table(TABLE, 4), scorer, shuffle=False)


def test_recommendations_are_those_of_one_process(engine, tmp_path):
    options = {"dim": 8, "softmax_epochs": 2, "softmax_batch_size": 4, "loss": None, "refit": False}
    fitted = recommendation.Recommender(**options, verbose=False)
    fitted.fit(recommendation.Interactions(likes(), [*range(100, 124)], [f"i{number}" for number in range(24)]))
    given = serving.PartitionRecommender(fitted.export(tmp_path), users="user", topn=3)
    table = engine.table(pd.DataFrame({"user": np.arange(100, 124)}), 5)
    found = engine.rows(serving.map_partitions(table, given)).sort_values(["user", "rank"])
    expected = fitted.recommend(topn=3)
    np.testing.assert_array_equal(found["user"], np.repeat(np.arange(100, 124), 3))
    np.testing.assert_array_equal(found["item"], expected.items.ravel())
    np.testing.assert_allclose(found["score"].astype(float), expected.scores.ravel(), rtol=1e-5, atol=1e-5)
