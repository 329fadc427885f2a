"""Neural rankers are `tfr_smooth.Ranker` with settings, and their results depend only on settings and seed."""

import numpy as np
import pytest

import tfr_smooth
from experiments import RANKERS
from experiments.rankers import PAPER
from tfr_smooth import losses


@pytest.mark.slow
def test_a_neural_ranker_is_the_ranker_of_the_same_arguments(fold):
    train, valid, test = fold
    settings = {"hidden": [8], "epochs": 4, "batch_size": 16, "learning_rate": 0.01}
    settings |= {"dropout": 0.5, "select_by": "ndcg"}
    ranker = tfr_smooth.Ranker(loss="list_net", seed=3, verbose=False, **{**PAPER, **settings})
    ranker.fit(train.features, train.labels, group=train.lengths, validation=(valid.features, valid.labels, valid.qid))
    fitted = RANKERS["list_net"].fit(fold, settings, 3)
    np.testing.assert_array_equal(fitted.test, ranker.predict(test.features, group=test.lengths))
    assert fitted.details["best_epoch"] == ranker.best_epoch_ - 1


def test_the_searched_values_are_those_of_hyperparameters():
    for name in losses.NAMES:
        searched = RANKERS[name].searched
        assert set(searched) <= set(RANKERS[name].defaults), name
        assert "seed" not in RANKERS[name].defaults, name  # The noise of a loss has the seed of the job.
    assert set(RANKERS["softsort_map"].searched) == {"temperature", "learning_rate"}
    assert set(RANKERS["list_mle"].searched) == {"learning_rate"}
    RANKERS["pl_rank_ndcg"].check({"epochs": 1})
