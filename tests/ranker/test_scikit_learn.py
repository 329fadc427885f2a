"""`Ranker` keeps scikit-learn's contract: its checks, metadata, pipelines, searches and HTML."""

import pickle

import lightgbm
import numpy as np
import pandas as pd
import pytest
import sklearn
import tensorflow as tf
from sklearn import compose, pipeline, preprocessing
from sklearn.utils import estimator_checks

import tfr_smooth
from tfr_smooth import data

QUICK = {"loss": "softmax", "members": 1, "hidden": [4], "epochs": 2, "trees": False, "verbose": False}


def table(queries=40, seed=0):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"search": np.repeat(np.arange(queries), 5), "price": random.normal(size=5 * queries)})
    frame["brand"] = random.choice(["acme", "umbrella"], len(frame))
    frame["label"] = (frame["price"] + (frame["brand"] == "acme") > 0.5).astype(int)
    return frame


FRAME = table()
X, Y = FRAME.drop(columns="label"), FRAME["label"]
FEATURES, QUERIES = X.drop(columns="search"), FRAME["search"]


@pytest.fixture(scope="module")
def ranker():
    return tfr_smooth.Ranker(**QUICK).fit(FRAME, label="label", query="search")


# scikit-learn's own checks.


class OneQuery(tfr_smooth.Ranker):
    """A ranker whose rows are all of one query: the checks know no queries."""

    def fit(self, X, y=None, sample_weight=None):
        rows = X.shape[0] if hasattr(X, "shape") else len(np.asarray(X))
        return super().fit(X, y, qid=np.zeros(rows, int), sample_weight=sample_weight)

    def score(self, X, y=None):
        return super().score(X, y, qid=np.zeros(len(X), int))


ONE_QUERY = OneQuery(list_context=False, **{**QUICK, "epochs": 1})
CONSTRUCTOR = {"check_do_not_raise_errors_in_init_or_set_params": "the constructor checks its arguments"}
IN_OTHER_WORDS = ["n_features_in_after_fitting", "complex_data", "estimators_empty_data_messages", "fit2d_predict1d"]
EXPECTED = {
    **CONSTRUCTOR,
    **dict.fromkeys([f"check_{name}" for name in IN_OTHER_WORDS], "an error, in other words"),
    "check_supervised_y_2d": "[rows, labels] are several labels, so [rows, 1] is an error and not a warning",
    "check_sample_weight_equivalence_on_dense_data": "a document twice in a list is not one of twice the weight",
    "check_regressors_train": "`score` is NDCG, of whole labels",
    "check_sample_weights_not_an_array": "labels that refuse NumPy's functions",
    "check_regressor_data_not_an_array": "labels that refuse NumPy's functions",
}


def results(estimator, **options):
    """Returns the names of scikit-learn's checks by status."""
    found = estimator_checks.check_estimator(estimator, on_fail=None, on_skip=None, **options)
    kinds = ("passed", "failed", "xfail")
    return {kind: {each["check_name"] for each in found if each["status"] == kind} for kind in kinds}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # The data of the checks are no rankings.
def test_the_checks_of_scikit_learn_pass():
    tf.config.run_functions_eagerly(True)  # The tables are too small for graphs to be worth their time.
    try:
        found = results(ONE_QUERY, expected_failed_checks=EXPECTED)
    finally:
        tf.config.run_functions_eagerly(False)
    assert found["failed"] == set() and found["xfail"] == set(EXPECTED)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_checks_that_lightgbm_passes_pass_but_that_of_a_constructor_without_checks():
    of_lightgbm = results(lightgbm.LGBMRanker(n_estimators=2, verbose=-1))
    assert results(tfr_smooth.Ranker(**QUICK))["failed"] & of_lightgbm["passed"] == set(CONSTRUCTOR)


# Attributes and metadata.


def test_the_columns_of_fit_are_attributes(untrained, ranker):
    assert ranker.feature_names_in_.tolist() == ["price", "brand"] and ranker.n_features_in_ == 2
    of_matrix = tfr_smooth.Ranker(**QUICK).fit(FEATURES[["price"]].to_numpy(), Y, qid=QUERIES)
    assert of_matrix.n_features_in_ == 1 and not hasattr(of_matrix, "feature_names_in_")
    of_lists = tfr_smooth.Ranker(**QUICK).fit(data.from_table(FRAME, label="label", query="search"))
    assert of_lists.feature_names_in_.tolist() == ["price", "brand"]
    assert not hasattr(tfr_smooth.Ranker(), "n_features_in_")
    with pytest.raises(ValueError, match=r"got neither. In scikit-learn, use `set_score_request\(qid=True\)`"):
        of_matrix.score(FEATURES[["price"]].to_numpy(), Y)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        tfr_smooth.Ranker().predict(X)


def test_the_arguments_of_the_constructor_are_attributes():
    ranker = tfr_smooth.Ranker(epochs=3)
    ranker.epochs += 1
    assert ranker.epochs == pickle.loads(pickle.dumps(ranker)).get_params()["epochs"] == 4
    with pytest.raises(ValueError, match="`epochs` must be"):
        ranker.epochs = -1


def test_the_arguments_of_methods_can_be_requested():
    ranker = tfr_smooth.Ranker(**QUICK)
    assert {"qid", "sample_weight", "query"} <= set(ranker.get_metadata_routing().fit.requests)
    assert ranker.set_fit_request(qid=True, sample_weight="weight").set_predict_request(qid=True) is ranker
    for same in (ranker, sklearn.clone(ranker), pickle.loads(pickle.dumps(ranker))):
        requests = same.get_metadata_routing()
        assert requests.fit.requests["qid"] is True and requests.fit.requests["sample_weight"] == "weight"
        assert requests.fit.requests["query"] is None and requests.predict.requests == {"qid": True, "group": None}
    assert tfr_smooth.Ranker().get_metadata_routing().fit.requests["qid"] is None
    with pytest.raises(TypeError, match="`y` must be an argument of `score`, one of"):
        ranker.set_score_request(y=True)


# Pipelines, searches and inspection.


def prepared():
    """Returns a pipeline whose first step keeps the column of queries."""
    scale = (preprocessing.StandardScaler(), ["price"])
    columns = compose.make_column_transformer(scale, remainder="passthrough", verbose_feature_names_out=False)
    return pipeline.make_pipeline(columns.set_output(transform="pandas"), tfr_smooth.Ranker(**QUICK))


@pytest.mark.slow
def test_a_pipeline_keeps_the_column_of_queries():
    steps = prepared().fit(X, Y, ranker__query="search")
    ranker = steps[-1]
    assert ranker.feature_names_in_.tolist() == ["price", "brand"] and ranker.query_column == "search"
    scaled = X.assign(price=preprocessing.StandardScaler().fit_transform(X[["price"]]))
    np.testing.assert_array_equal(steps.predict(X), ranker.predict(scaled))
    assert steps.score(X, Y) == ranker.score(scaled, Y)
    assert "Ranker" in steps._repr_html_()
