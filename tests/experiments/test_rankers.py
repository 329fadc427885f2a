"""The rankers that are not neural networks."""

import numpy as np
import pytest

import experiments
from experiments import RANKERS
from tfr_smooth import evaluation


def ndcg(fold, fitted):
    return evaluation.trec_eval(fold.test.scored(fitted.test), "ndcg")["ndcg"]


def fold_with_one_informative_feature(sign):
    """Returns a fold in which documents with the three highest (sign 1) or lowest values of feature 3 are relevant."""
    random = np.random.RandomState(0)

    def queries():
        features = random.randn(20, 10, 4).astype(np.float32)
        values = sign * features[:, :, 2]
        labels = (values >= np.sort(values)[:, -3:-2]).astype(np.float32)
        ids, doc_ids = [*map(str, range(20))], np.full(200, b"", np.bytes_)
        return experiments.Queries(features.reshape(-1, 4), labels.ravel(), np.full(20, 10), ids, doc_ids)

    return experiments.Fold(queries(), queries(), queries())


def test_ridge_regression_equals_least_squares_with_additional_rows(fold):
    """Additional rows sqrt(D strength) I with targets 0 have the squared error D strength |w|^2."""
    features = fold.train.features.astype(np.float64)
    features = (features - features.mean(0)) / np.maximum(features.std(0), 1e-9)
    count, width = features.shape
    rows = np.concatenate([features, np.sqrt(count * 0.3) * np.eye(width)])
    targets = np.concatenate([fold.train.labels - fold.train.labels.mean(), np.zeros(width)])
    expected = np.linalg.lstsq(rows, targets, rcond=None)[0]
    fitted = RANKERS["ridge"].fit(fold, {"strength": 0.3}, 0)
    np.testing.assert_allclose(fitted.details["weights"], expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_best_single_feature_is_found(sign):
    fold = fold_with_one_informative_feature(sign)
    fitted = RANKERS["single_feature"].fit(fold, {}, 0)
    assert fitted.details["feature"] == 3 * sign
    assert ndcg(fold, fitted) == pytest.approx(1.0)
    np.testing.assert_array_equal(fitted.test, sign * fold.test.features[:, 2])


@pytest.mark.parametrize("name", ["ridge", "lambdamart"])
def test_rankers_are_deterministic_and_learn_the_informative_feature(name):
    fold = fold_with_one_informative_feature(1)
    fitted, again = (RANKERS[name].fit(fold, {}, 0) for _ in range(2))
    np.testing.assert_array_equal(fitted.test, again.test)
    assert ndcg(fold, fitted) > 0.95 > 0.8 > ndcg(fold, RANKERS["random"].fit(fold, {}, 0))
