"""Models of the package implicit as baselines."""

import numpy as np
from implicit.cpu.als import AlternatingLeastSquares
from implicit.nearest_neighbours import CosineRecommender

from experiments.implicit_models import Implicit
from tfr_smooth import recommendation

# Users of two groups have items of their group; two items of each are held out.
LIKES = np.random.default_rng(0).random((80, 30)) < 0.5
LIKES &= np.repeat([0, 1], 40)[:, np.newaxis] == np.repeat([0, 1], 15)
TRAIN, TEST = recommendation.hold_out(recommendation.Interactions(LIKES), items=2)


def recall(scorer):
    return recommendation.evaluate(scorer, TEST, seen=TRAIN, measures="recall_5").means["recall_5"].mean


def test_models_find_the_groups_of_users():
    factors = AlternatingLeastSquares(factors=4, regularization=5.0, alpha=5.0, random_state=0)
    for model in (factors, CosineRecommender(K=30)):
        assert recall(Implicit(model).fit(TRAIN)) > recall(recommendation.Popularity().fit(TRAIN)) + 0.1
