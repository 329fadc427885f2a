"""Models of the package implicit as baselines."""

import numpy as np
import pytest
from implicit.cpu.als import AlternatingLeastSquares
from implicit.cpu.bpr import BayesianPersonalizedRanking
from implicit.nearest_neighbours import CosineRecommender

from experiments.implicit_models import Implicit
from tfr_smooth import recommendation

# Users of two groups have items of their group; two items of each are held out.
GROUP = np.repeat([0, 1], 40)
LIKES = np.random.default_rng(0).random((80, 30)) < 0.5
LIKES &= GROUP[:, np.newaxis] == np.repeat([0, 1], 15)
TRAIN, TEST = recommendation.hold_out(recommendation.Interactions(LIKES), items=2)
MODELS = {
    "als": lambda: AlternatingLeastSquares(factors=4, regularization=5.0, alpha=5.0, random_state=0),
    "bpr": lambda: BayesianPersonalizedRanking(factors=4, learning_rate=0.1, random_state=0),
    "knn": lambda: CosineRecommender(K=20),
}


@pytest.mark.parametrize("name", MODELS)
def test_personal_models_find_the_groups_of_users(name):
    model = Implicit(MODELS[name]()).fit(TRAIN)
    scores = model.predict([0, 5])
    assert scores.shape == (2, 30) and scores.dtype == np.float32 and np.isfinite(scores).all()
    np.testing.assert_allclose(model.predict([5])[0], scores[1], rtol=1e-5)

    def recall(scorer):
        return recommendation.evaluate(scorer, TEST, seen=TRAIN, measures="recall_5").means["recall_5"].mean

    assert recall(model) > recall(recommendation.Popularity().fit(TRAIN)) + 0.1


def test_the_scores_of_factors_are_their_products():
    model = AlternatingLeastSquares(factors=4, random_state=0)
    scores = Implicit(model).fit(TRAIN).predict([3])
    np.testing.assert_allclose(scores[0], model.item_factors @ model.user_factors[3], rtol=1e-5, atol=1e-6)
    recommended, values = model.recommend(
        3, TRAIN.matrix[[3]].astype(np.float32), N=5, filter_already_liked_items=False
    )
    np.testing.assert_allclose(scores[0][recommended], values, rtol=1e-5, atol=1e-6)


def test_item_knn_has_the_scores_of_implicit_except_for_seen_items():
    # Its neighbors include the item itself.
    expected = Implicit(CosineRecommender(K=30)).fit(TRAIN).predict(np.arange(80))
    found = recommendation.ItemKNN(neighbors=29).fit(TRAIN).predict(np.arange(80))
    unseen = ~TRAIN.dense(np.arange(80))
    np.testing.assert_allclose(found[unseen], expected[unseen], rtol=1e-5, atol=1e-6)
