"""Missing values that training had none of: in validation, in a continued training, in what is ranked."""

import numpy as np
import pytest

import tfr_smooth

RANDOM = np.random.default_rng(0)
FEATURES = RANDOM.normal(size=(40, 2)).astype(np.float32)
LABELS, QUERY = (FEATURES[:, 0] > 0).astype(np.float32), np.arange(40) // 4
MISSING = np.where(np.arange(80).reshape(40, 2) % 7 == 3, np.nan, FEATURES).astype(np.float32)
FILLED = np.where(np.isnan(MISSING), FEATURES.mean(axis=0, dtype=np.float64).astype(np.float32), MISSING)
SMALL = {"hidden": [4], "members": 1, "epochs": 2, "loss": "softmax", "verbose": False, "list_context": False}


@pytest.mark.parametrize("trees", [False, {"num_leaves": 2, "min_data_in_leaf": 1}])
@pytest.mark.slow
def test_missing_values_after_a_training_without_any_are_their_column_s_mean(trees):
    def fitted(X, **options):
        ranker = tfr_smooth.Ranker(**SMALL, select_by="ndcg", trees=trees)
        return ranker.fit(X, LABELS, qid=QUERY, **options)

    rankers = {}
    for name, valid in (("missing", MISSING), ("filled", FILLED)):
        rankers[name] = fitted(FEATURES, validation=(valid, LABELS, QUERY))
        continued = fitted(valid, init_model=rankers[name])
        rankers[f"continued with {name}"] = continued
        assert all(np.isfinite(values).all() for values in continued.history_.values())
    for start in ("", "continued with "):
        missing, filled = rankers[f"{start}missing"], rankers[f"{start}filled"]
        assert missing.history_ == filled.history_
        np.testing.assert_array_equal(missing.predict(MISSING), filled.predict(FILLED))


def test_a_loss_that_becomes_nan_ends_the_training():
    ranker = tfr_smooth.Ranker(**{**SMALL, "learning_rate": 1e38, "trees": False})
    with pytest.raises(ValueError, match="The loss is NaN since step .* The features are finite: try a lower"):
        ranker.fit(FEATURES, LABELS, qid=QUERY)
