"""The rankers that are not neural networks."""

import numpy as np
import pytest

from tfr_smooth import evaluation
from tfr_smooth.data.letor_parser import Query
from tfr_smooth.data.query_cache import QueryCache
from tfr_smooth.study import folds
from tfr_smooth.study.rankers import RANKERS
from tfr_smooth.study.rankers.ridge import fit_ridge


def ndcg(fold, fitted):
    return evaluation.trec_eval(folds.scored_queries(fold.parts["test"], fitted.test), "ndcg")["ndcg"]


def fold_with_one_informative_feature(sign):
    """Returns a fold in which documents with the three highest (sign 1) or lowest values of feature 3 are relevant."""
    random = np.random.RandomState(0)

    def part(queries):
        for query in range(queries):
            features = random.randn(10, 4).astype(np.float32)
            values = sign * features[:, 2]
            labels = (values >= np.sort(values)[-3]).astype(np.float32)
            yield Query(b"%d" % query, features, labels, [b""] * 10)

    return folds.Fold({name: QueryCache.in_memory(4, part(20)) for name in folds.PARTS})


def test_ridge_regression_equals_least_squares_with_additional_rows():
    """Additional rows sqrt(D lambda) I with targets 0 have the squared error D lambda |w|^2."""
    random = np.random.RandomState(0)
    features, labels = random.randn(50, 4), random.randn(50)
    centered = features - features.mean(axis=0)
    rows = np.concatenate([centered, np.sqrt(50 * 0.3) * np.eye(4)])
    targets = np.concatenate([labels - labels.mean(), np.zeros(4)])
    expected = np.linalg.lstsq(rows, targets, rcond=None)[0]
    np.testing.assert_allclose(fit_ridge(features, labels).weights(0.3), expected, rtol=1e-8)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_best_single_feature_is_found(sign):
    fold = fold_with_one_informative_feature(sign)
    fitted = RANKERS["single_feature"].fit(fold, {}, 0)
    assert fitted.details["feature"] == 3 * sign
    assert ndcg(fold, fitted) == pytest.approx(1.0)
    np.testing.assert_array_equal(fitted.test, sign * fold.parts["test"].features[:, 2])


def test_a_given_feature_is_used():
    fold = fold_with_one_informative_feature(1)
    fitted = RANKERS["single_feature"].fit(fold, {"feature": -1}, 0)
    np.testing.assert_array_equal(fitted.valid, -fold.parts["valid"].features[:, 0])


def test_random_scores_depend_only_on_the_seed(fold):
    first, again, other = (RANKERS["random"].fit(fold, {}, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.test, again.test)
    assert not np.array_equal(first.test, other.test)


@pytest.mark.parametrize("name", ["ridge", "lambdamart"])
def test_rankers_are_deterministic_and_learn_the_informative_feature(name):
    fold = fold_with_one_informative_feature(1)
    fitted, again = (RANKERS[name].fit(fold, {}, 0) for _ in range(2))
    np.testing.assert_array_equal(fitted.test, again.test)
    assert ndcg(fold, fitted) > 0.95 > 0.8 > ndcg(fold, RANKERS["random"].fit(fold, {}, 0))


@pytest.mark.parametrize("name", ["ridge", "lambdamart", "single_feature", "random"])
def test_unknown_settings_raise_and_grids_contain_known_settings(name):
    with pytest.raises(ValueError, match="`settings` of .* must be among .*, got 'depth'"):
        RANKERS[name].check({"depth": 3})
    assert set(RANKERS[name].grid()) <= set(RANKERS[name].defaults)
