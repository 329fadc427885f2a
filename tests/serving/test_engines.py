"""Spark, Dask and Ray score a table as one process does, also with a worker that is killed.

This needs all three, and Java.
"""

import contextlib
import os
import signal

import numpy as np
import pytest

from tests.ranker.test_ranker import NEW
from tests.serving import engines
from tfr_smooth import serving

TABLE = NEW.assign(place=np.arange(len(NEW)), score="old")  # `place` names the rows, as engines have no order


@pytest.fixture(scope="module", params=[engines.Spark, engines.Dask, engines.Ray])
def engine(request):
    return engines.started(request.param, request.config)


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


def check(engine, scored, ranker):
    scores = engine.rows(scored).sort_values("place")["score"].to_numpy(np.float32)
    np.testing.assert_allclose(scores, ranker.predict(NEW), rtol=1e-6, atol=1e-6)


def test_scores_are_those_of_one_process_also_if_one_is_killed(engine, ranker, path, tmp_path):
    """Also with partitions without rows: there are 12 queries."""
    scorer = Killed(path, query="query", columns=["place"], marker=os.fspath(tmp_path / "killed"))
    check(engine, serving.map_partitions(engine.table(TABLE, 4), scorer, partitions=15), ranker)
    assert (tmp_path / "killed").exists()


def test_queries_in_several_partitions_are_found(engine, ranker, path):
    scorer = serving.PartitionScorer(path, query="query", columns=["place"])
    check(engine, serving.map_partitions(engine.grouped(TABLE, "query"), scorer, shuffle=False), ranker)
    with pytest.raises(ValueError, match="`frame` must have all rows of a query in one partition.*got the query"):
        serving.map_partitions(engine.table(TABLE, 4), scorer, shuffle=False)
    other = serving.PartitionScorer(path, query="session")
    with pytest.raises(ValueError, match="`query` must be one of .*, got 'session'"):
        serving.map_partitions(engine.table(TABLE, 4), other)
