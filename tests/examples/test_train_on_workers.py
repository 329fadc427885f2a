"""Two workers of Ray and Spark train what one device trains, also if one is killed. This needs both, and Java."""

import numpy as np
import pytest

import tfr_smooth
from tests.examples import workers_task
from tests.ranker.test_ranker import NEW, table
from tests.serving import engines


@pytest.mark.parametrize("engine", [engines.Ray, engines.Spark])
def test_a_ranker_of_two_workers_is_that_of_one_also_if_a_worker_is_killed(engine, tmp_path, request):
    # An odd number of queries, so that the shards of two workers differ.
    found = table(51, seed=3)[["query", "age", "color", "label"]]
    found.assign(score=np.random.default_rng(0).normal(size=len(found))).to_parquet(tmp_path / "train.parquet")
    new = NEW.assign(score=np.random.default_rng(1).normal(size=len(NEW)))
    alone = tfr_smooth.Ranker(**workers_task.OPTIONS).fit([tmp_path / "train.parquet"], **workers_task.NAMES)
    engines.started(engine, request.config).use_new_processes()  # TensorFlow must not have started in them
    config = {**workers_task.NAMES, "options": workers_task.OPTIONS, "output_dir": str(tmp_path)}
    config["train"] = [str(tmp_path / "train.parquet")]
    workers_task.RUN[engine.__name__](workers_task.killed, config, 2)
    assert (tmp_path / "killed").exists()
    scores = tfr_smooth.load(tmp_path / "ranker.keras").predict(new)
    np.testing.assert_allclose(scores, alone.predict(new), rtol=1e-5, atol=1e-5)
