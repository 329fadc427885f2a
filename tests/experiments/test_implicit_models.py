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


def test_factors_find_the_groups_of_users():
    model = Implicit(AlternatingLeastSquares(factors=4, regularization=5.0, alpha=5.0, random_state=0)).fit(TRAIN)
    assert recall(model) > recall(recommendation.Popularity().fit(TRAIN)) + 0.1


def test_item_knn_has_the_scores_of_implicit_except_for_seen_items():
    # Its neighbors include the item itself.
    expected = Implicit(CosineRecommender(K=30)).fit(TRAIN).predict(np.arange(80))
    found = recommendation.ItemKNN(neighbors=29).fit(TRAIN).predict(np.arange(80))
    unseen = ~TRAIN.dense(np.arange(80))
    np.testing.assert_allclose(found[unseen], expected[unseen], rtol=1e-5, atol=1e-6)
