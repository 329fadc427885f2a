"""`tfr_smooth.Ranker`: tables as they are, prediction, evaluation, files, resuming, and scikit-learn's habits."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
import tensorflow as tf

import tfr_smooth
from tfr_smooth import data, evaluation, losses, training
from tfr_smooth._estimator import check_validation
from tfr_smooth.columns import column_arrays
from tfr_smooth.data.reading.sources import read_training

SMALL = {"hidden": [8], "epochs": 2, "batch_size": 16, "learning_rate": 0.01, "members": 1, "loss": "softmax"}
SMALL |= {"validation_fraction": 0.2, "verbose": False, "max_categories": 10}
ROLES = {"label": "label", "query": "query"}


def table(queries=30, seed=0):
    """Columns of every kind, with missing values, and a column that is the same within each query."""
    random = np.random.default_rng(seed)
    sizes = random.integers(3, 8, queries)
    rows = sizes.sum()
    frame = pd.DataFrame({"query": np.repeat([f"q{number}" for number in range(queries)], sizes)})
    frame["price"] = np.where(random.random(rows) < 0.2, np.nan, random.normal(size=rows))
    frame["color"] = random.choice(["red", "blue", None], rows)
    frame["is_new"] = random.random(rows) > 0.5
    frame["listed"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 500, rows), unit="D")
    frame["age"] = np.repeat(random.integers(20, 60, queries), sizes)
    frame["item"] = random.choice([None, *(f"item {number}" for number in range(40))], rows)
    frame["genres"] = pd.Series(list(random.choice(list("abcdef"), count)) for count in random.integers(0, 4, rows))
    frame["title"] = [" ".join(random.choice(["Red", "blue,", "(42)", "Éclair"], 4)) for _ in range(rows)]
    frame["image"] = pd.Series(list(random.normal(size=(rows, 3)).astype(np.float32))).mask(random.random(rows) < 0.1)
    frame["label"] = (frame["price"].fillna(0.5) + (frame["color"] == "red") + random.random(rows) > 1.0).astype(int)
    return frame


FRAME, NEW = table(), table(12, seed=1)
FEW = FRAME[["query", "price", "color", "label"]]  # for trainings whose columns do not matter


@pytest.fixture(scope="module")
def ranker():
    return tfr_smooth.Ranker(**SMALL).fit(FRAME, **ROLES, query_features=["age"])


def numbers(frame=FRAME):
    """The same documents as arrays: features with missing values, labels and queries."""
    features = np.stack([frame["price"], frame["is_new"], frame["age"]], axis=1).astype(np.float64)
    return features, frame["label"].to_numpy(), frame["query"].to_numpy()


@pytest.fixture(scope="module")
def of_arrays():
    features, labels, queries = numbers()
    return tfr_smooth.Ranker(**{**SMALL, "validation_fraction": 0.0}).fit(features, labels, qid=queries)


def raw_inputs(frame, ranker):
    """One list of all rows, as the exported model takes it."""
    arrays = column_arrays(frame, ranker.features_.columns)
    inputs = {name: tf.constant(values)[tf.newaxis] for name, values in arrays.items()}
    return {**inputs, "mask": tf.ones([1, len(frame)], tf.bool)}


@pytest.mark.keras_2
@pytest.mark.slow
def test_the_exported_model_takes_the_columns_as_they_were_and_scores_like_predict(ranker, tmp_path):
    folder = ranker.export(tmp_path / "export", warmup=False, card=None)
    rank = tf.saved_model.load(str(folder)).signatures["rank"]
    unseen = NEW.copy()
    unseen.loc[0, "color"], unseen.loc[1, "price"], unseen.loc[2, "listed"] = "green", np.nan, pd.NaT
    for _, query in unseen.groupby("query", sort=False):
        inputs = raw_inputs(query, ranker)
        inputs["age"] = inputs["age"][:, 0]
        np.testing.assert_allclose(rank(**inputs)["scores"][0], ranker.predict(query), rtol=1e-6, atol=1e-6)
    card = (folder / "assets.extra" / "model_card.json").read_text()
    assert all(f'"{name}"' in card for name in ("price", "color", "is_new", "listed", "age", "learning_rate"))
    for wrong, message in (
        ("Clicks.", "an instance of .*Mapping or None, got 'Clicks.'"),
        ({1: "a"}, "titles that are te"),
    ):
        with pytest.raises(ValueError, match=f"`card` must (be|have) {message}"):
            ranker.export(tmp_path, card=wrong)


def test_scores_do_not_depend_on_the_order_of_rows_and_columns_or_on_other_rows(ranker):
    scores = pd.Series(ranker.predict(NEW), NEW.index)
    shuffled = NEW.sample(frac=1.0, random_state=0)[NEW.columns[::-1]].assign(rating="5")  # is no column of `fit`
    np.testing.assert_allclose(ranker.predict(shuffled), scores[shuffled.index], rtol=1e-5, atol=1e-6)
    some = NEW.drop(columns="label")[NEW["query"] == "q3"]
    np.testing.assert_allclose(ranker.predict(some), scores[some.index], rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_features_prepared_for_each_batch_train_like_those_in_memory(of_arrays, monkeypatch):
    monkeypatch.setattr("tfr_smooth.columns.features._MOST_BYTES", 0)
    features, labels, queries = numbers()
    fitted = tfr_smooth.Ranker(**{**SMALL, "validation_fraction": 0.0}).fit(features, labels, qid=queries)
    assert fitted.history_ == of_arrays.history_
    np.testing.assert_array_equal(fitted.predict(features, qid=queries), of_arrays.predict(features, qid=queries))


@pytest.mark.slow
def test_the_held_out_queries_are_not_weighted_and_a_loss_object_survives_a_pickle():
    weighted = FEW.assign(weight=np.where(FEW["query"].str[-1].isin(list("02468")), 0.1, 9.0))
    loss = losses.ApproxNDCGLoss(alpha=3.0, topn=2)
    fitted = tfr_smooth.Ranker(**{**SMALL, "epochs": 1, "loss": loss}, select_by="ndcg").fit(
        weighted, **ROLES, weight="weight"
    )
    _, held = data.from_table(weighted, **ROLES, weight="weight").split(0.2, seed=0)
    values = fitted.evaluate(held, measures=["ndcg"])["ndcg"].mean
    assert fitted.history_["val_ndcg"] == [pytest.approx(values, abs=1e-6)]
    assert pickle.loads(pickle.dumps(fitted)).loss_.get_config() == loss.get_config()


def test_rank_sorts_each_query_by_score(ranker):
    ranked = ranker.rank(NEW)
    assert list(ranked.columns) == [*NEW.columns, "score", "rank"]
    assert list(ranked["query"].drop_duplicates()) == list(NEW["query"].drop_duplicates())
    for _, query in ranked.groupby("query"):
        assert query["score"].is_monotonic_decreasing
        assert list(query["rank"]) == list(range(1, len(query) + 1))
    pd.testing.assert_frame_equal(ranked[NEW.columns].sort_index(), NEW)


def test_scores_and_ranks_do_not_replace_features(untrained):
    frame = FEW.rename(columns={"price": "score"})
    fitted = tfr_smooth.Ranker(**{**SMALL, "epochs": 1}).fit(frame, **ROLES)
    with pytest.raises(ValueError, match="^`names` must not be names of features, got 'score'.$"):
        fitted.rank(frame)
    ranked = fitted.rank(frame, names=("points", "rank"))
    np.testing.assert_allclose(fitted.predict(ranked), ranked["points"], rtol=1e-5, atol=1e-6)


def test_evaluate_returns_the_means_of_trec_eval_with_standard_errors(ranker):
    scores = ranker.predict(NEW)
    queries = []
    for name, rows in NEW.groupby("query", sort=False).groups.items():
        ids = [f"{number:09d}" for number in range(len(rows))]
        queries.append(evaluation.ScoredQuery(name, ids, NEW["label"][rows].to_numpy(), scores[rows]))
    by_query = evaluation.trec_eval_by_query(queries, ["ndcg", "map"])
    for measure, estimate in ranker.evaluate(NEW, measures=["ndcg", "map"]).items():
        values = [each[measure] for each in by_query.values()]
        assert estimate.mean == pytest.approx(np.mean(values), abs=1e-12)
        assert estimate.standard_error == pytest.approx(np.std(values, ddof=1) / np.sqrt(len(values)), abs=1e-12)
    features = NEW.drop(columns="label")
    assert ranker.score(features, NEW["label"]) == ranker.score(NEW)
    one = ranker.evaluate(NEW[NEW["query"] == "q0"])["ndcg"]
    assert np.isnan(one.standard_error) and str(one) == f"{one.mean:.4f}"
    printed = str(ranker.evaluate(NEW, measures=["ndcg", "ndcg_cut_10"])).splitlines()
    assert [re.fullmatch(r"(\w+) +0\.\d{4} ± 0\.\d{4}", line)[1] for line in printed] == ["ndcg", "ndcg_cut_10"]


def test_group_and_qid_define_the_same_queries(of_arrays):
    features, labels, queries = numbers()
    given = {"group": pd.Series(queries).groupby(queries, sort=False).size().to_numpy()}, {"qid": queries}
    read = [read_training(features, {"y": labels, **each}, losses.get("softmax")) for each in given]
    np.testing.assert_array_equal(read[0].starts, read[1].starts)
    scores = [of_arrays.predict(features, **each) for each in given]
    np.testing.assert_array_equal(*scores)
    by_group, by_id = (of_arrays.evaluate(features, labels, **each) for each in given)
    assert by_group == by_id


@pytest.mark.keras_2
def test_a_file_restores_the_model_of_raw_columns_and_the_ranker(ranker, tmp_path):
    ranker.save(tmp_path / "ranker.keras")
    model = tf.keras.models.load_model(tmp_path / "ranker.keras", compile=False)
    whole = raw_inputs(NEW, ranker)
    whole["age"] = whole["age"][:, 0]
    one_age = NEW.assign(age=NEW["age"][0], query="one")
    np.testing.assert_allclose(model(whole)[0], ranker.predict(one_age), rtol=1e-5, atol=1e-5)
    again = tfr_smooth.Ranker.load(tmp_path / "ranker.keras")
    np.testing.assert_array_equal(again.predict(NEW), ranker.predict(NEW))
    with pytest.raises(ValueError, match="must have the column 'price'"):
        again.predict(NEW.drop(columns="price"))


@pytest.mark.slow
def test_weights_scale_the_loss_of_documents():
    weighted = FRAME.assign(weight=np.where(FRAME["query"].isin(["q0", "q1", "q2"]), 0.0, 1.0))
    still = {**SMALL, "normalization": None, "dropout": 0.0, "validation_fraction": 0.0}
    by_column = tfr_smooth.Ranker(**still).fit(weighted, **ROLES, weight="weight")
    features = FRAME.drop(columns="label")
    by_array = tfr_smooth.Ranker(**still).fit(
        features, FRAME["label"], query="query", sample_weight=weighted["weight"].to_numpy()
    )
    np.testing.assert_array_equal(by_column.predict(FRAME), by_array.predict(features))
    unweighted = tfr_smooth.Ranker(**still).fit(FRAME, **ROLES)
    assert np.abs(unweighted.predict(FRAME) - by_column.predict(FRAME)).max() > 1e-4


@pytest.mark.slow
def test_many_queries_need_fewer_epochs(untrained):
    settings = {**SMALL, "epochs": None, "batch_size": 1, "validation_fraction": 0.0, "select_by": "last"}
    for queries in (2, 101, 250, 2000):
        places = np.arange(2 * queries)
        tfr_smooth.Ranker(**settings).fit(data.from_arrays(np.eye(2)[places % 2], places % 2, places // 2))
    assert untrained == [20, 20, 8, 5]


@pytest.mark.slow
def test_the_loss_and_the_learning_rate_change_between_epochs():
    seen = []

    class Seen(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append((round(float(self.model.optimizer.learning_rate), 6), logs["loss"]))

    settings = {**SMALL, "epochs": 4, "validation_fraction": 0.0, "dropout": 0.0, "learning_rate": 1e-4}
    settings |= {"softmax_epochs": 0.5, "loss": "smoothi_ndcg"}
    fit = lambda **changes: tfr_smooth.Ranker(**{**settings, **changes}).fit(  # noqa: E731
        FEW, **ROLES, callbacks=[Seen()]
    )
    fit(), fit(loss="softmax"), fit(softmax_epochs=0)
    rates, values = (np.reshape(column, [3, 4]) for column in zip(*seen, strict=True))
    np.testing.assert_allclose(rates[0], 1e-4 * 0.5 * (1.0 + np.cos(np.pi * np.arange(4) / 4)), atol=1e-6)
    np.testing.assert_allclose(values[0, :2], values[1, :2], rtol=1e-6)  # softmax
    assert values[0, :2].min() > 1.2 * values[0, 2:].max()
    np.testing.assert_allclose(values[0, 2:], values[2, 2:], atol=0.05)  # SmoothI


@pytest.mark.slow
def test_replicas_train_like_one_device():
    features, labels, queries = numbers()
    settings = {**SMALL, "dropout": 0.0}
    one, other = (
        tfr_smooth.Ranker(**settings).fit(features, labels, qid=queries, strategy=training.get_strategy(name))
        for name in ("none", "mirrored")
    )
    scores = [ranker.predict(features, qid=queries) for ranker in (one, other)]
    np.testing.assert_allclose(*scores, rtol=1e-4, atol=1e-5)


def test_no_hyperparameter_of_a_loss_has_the_name_of_another_argument():
    params = tfr_smooth.Ranker().get_params()
    for name in losses.NAMES:
        # The seed of a loss with noise is an argument of a loss object only.
        assert set(losses.hyperparameters(name)).isdisjoint(set(params) - {"seed"}), name
    assert tfr_smooth.Ranker().loss_.ranking.alpha == 10.0


INVALID = [
    *(("hidden", [0]), ("learning_rate", 0.0), ("epochs", 1.5), ("normalization", "zscore"), ("select_by", "loss")),
    *(("dropout", 1.0), ("schedule", "step"), ("softmax_epochs", 1.0), ("validation_fraction", 1.0), ("seed", -1)),
    *(("verbose", 1), ("loss", 3), ("alpha", -1.0), ("sigma", 1.0)),
]


def test_invalid_arguments_raise():
    for argument, value in INVALID:
        for change in (tfr_smooth.Ranker, tfr_smooth.Ranker().set_params):
            with pytest.raises(ValueError, match=f"^`{argument}` must be .*, got "):
                change(**{argument: value})


def bad_fits():
    """Errors, the table, and the arguments of `fit` besides the roles."""
    frame, none = FRAME, {"label": None, "query": None}
    matrix = np.stack([frame["age"], 1.7e9 + np.arange(len(frame)) % 60], axis=1)
    given = {**none, "y": frame["label"], "qid": frame["query"]}
    yield "`label` must be one of 'query', 'price', ", frame, {"label": "y"}
    yield "`y` or `label` must define the labels", frame, {"label": None}
    yield "`qid`, `group` or `query` must define the queries", frame, {"query": None}
    yield "`X` must be a table or numbers", np.ones(3), {**none, "y": np.ones(3), "qid": np.ones(3)}
    yield "`query_features` must be the same in all rows", frame, {"query_features": ["price"]}
    yield "Only one of `y` and `label` must be given", frame, {"y": frame["label"]}
    yield "column 1 of `X` must be numbers that differ as float32", matrix, given
    for name in ("label", "weight"):
        zero = frame.assign(**{"weight": 1.0, name: 0})
        yield f"`{name}` must be > 0 for at least one document, got only zeros", zero, {"weight": "weight"}
    yield "`validation_fraction` must be 0 for fewer than two queries", frame[frame["query"] == "q0"], {}


def test_bad_tables_are_reported_in_one_line():
    for message, table, options in bad_fits():
        with pytest.raises(ValueError) as error:
            tfr_smooth.Ranker(**SMALL).fit(table, **{**ROLES, **options})
        assert message in str(error.value) and "\n" not in str(error.value)


def test_labels_too_high_for_an_exponential_gain_are_refused():
    many = FEW.assign(label=np.arange(len(FEW)) % 33)
    read = lambda frame, loss: read_training(frame, {}, loss, **ROLES)  # noqa: E731
    names = ("smoothi_ndcg", "unique_softmax", "yeti_logistic")
    for each in (*map(losses.get, names), losses.WeightedSumLoss(["softmax", "smoothi_ndcg"])):
        with pytest.raises(ValueError, match="^`label` must be at most 31 for the gain .*, got 32 in .* gain='linear'"):
            read(many, each)
        assert len(read(many.assign(label=many["label"].clip(upper=31)), each)) == 30


ARRAYS = numbers(NEW)
SIZES = NEW.groupby("query", sort=False).size().tolist()
METHODS = {
    "fit": lambda ranker, *args, **kwargs: tfr_smooth.Ranker(**SMALL).fit(*args, **kwargs),
    "evaluate": lambda ranker, *args, **kwargs: ranker.evaluate(*args, **kwargs),
    "calibrate": lambda ranker, *args, **kwargs: ranker.calibrate(*args, **kwargs),
    "rank": lambda ranker, X, y, **kwargs: ranker.rank(X, **kwargs),
    "predict": lambda ranker, X, y, **kwargs: ranker.predict(X, **kwargs),
}
BAD_QUERIES = [
    ({"group": [*SIZES, 1]}, "`group` must add up to the number of rows"),
    ({"qid": ARRAYS[2][:-3]}, "`qid` must have one value per row"),
    ({"group": SIZES, "qid": ARRAYS[2]}, "Only one of `qid`, `group` and `query` must be given, got `qid` and `group`"),
    ({"qid": NEW["query"].mask(NEW.index == 3).tolist()}, "`qid` must be query ids without missing values, got None"),
    ({"qid": [7, *NEW["query"][1:]]}, "`qid` must have values of one type"),
]


@pytest.mark.parametrize("method", METHODS)
def test_queries_that_do_not_fit_the_rows_are_refused(method, ranker, of_arrays):
    for fitted, features in ((of_arrays, ARRAYS[0]), (ranker, NEW.drop(columns=["label", "query"]))):
        for arguments, message in BAD_QUERIES:
            with pytest.raises(ValueError, match=message):
                METHODS[method](fitted, features, ARRAYS[1], **arguments)


def test_an_empty_table_has_no_scores_and_no_measures(ranker, of_arrays):
    for fitted, empty in ((ranker, NEW.iloc[:0]), (of_arrays, np.ones([0, 3]))):
        scores = fitted.predict(empty, **({} if fitted is ranker else {"qid": []}))
        assert scores.shape == (0,) and scores.dtype == np.float32
    for method in (ranker.fit, ranker.evaluate, ranker.rank):
        with pytest.raises(ValueError, match="`X` must have at least one row, got none"):
            method(NEW.iloc[:0], **(ROLES if method == ranker.fit else {}))


def test_equal_labels_and_queries_of_one_document_are_no_ranking():
    equal = "`label` should differ among the documents of a query, got equal ones in each of 20 quer"
    alone = "`X` should have queries of several documents to rank, got one document in each."
    for loss, labels, documents, messages in [
        ("softmax", [1, 2], 3, [equal]),
        ("mean_squared", [1, 1], 3, [equal]),
        ("mean_squared", [1, 2], 3, []),
        ("softmax", [1, 2], 1, [alone]),
    ]:
        queries = np.repeat(np.arange(20), documents)
        given = {"y": np.take(labels, queries % 2), "qid": queries}
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", UserWarning)
            read_training(np.random.RandomState(0).randn(len(queries), 2), given, losses.get(loss))
        for each, message in zip(warned, messages, strict=True):
            assert str(each.message).startswith(message)


def test_few_validation_queries_choose_by_chance():
    few = FEW[FEW["query"].isin(np.unique(FEW["query"])[:9])]
    lists = data.from_table(few, **ROLES)
    with pytest.warns(UserWarning, match="^`validation` should have at least 10 queries with .*, got 9: which epoch"):
        check_validation(lists, "validation", "ndcg")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        check_validation(lists, "validation", "last")


def test_arrays_must_have_the_features_of_fit(ranker, of_arrays):
    with pytest.raises(ValueError, match="`X` must have 3 features, got 2"):
        of_arrays.predict(np.ones([4, 2]))
    with pytest.raises(ValueError, match="`X` must be an array as in `fit`, got a table"):
        of_arrays.predict(pd.DataFrame(np.ones([4, 3])))
    with pytest.raises(ValueError, match="`X` must be a table as in `fit`, got an array"):
        ranker.predict(NEW[["price"]].to_numpy())
    with pytest.raises(ValueError, match="column 'age' must be the same in all rows of a query"):
        ranker.predict(NEW.assign(age=np.arange(len(NEW))))
    with pytest.raises(ValueError, match="`qid` must not be given with `Lists`"):
        ranker.evaluate(data.from_table(NEW, **ROLES), qid=NEW["query"])


def test_hyperparameters_of_the_loss_are_parameters_of_the_ranker():
    named = tfr_smooth.Ranker(topn=5).set_params(alpha=3.0, learning_rate=0.1)
    assert named.loss_.ranking.alpha == 3.0 and sklearn.clone(named).get_params() == named.get_params()
    assert repr(tfr_smooth.Ranker(epochs=3, topn=5)) == "Ranker(epochs=3, topn=5)"
    with pytest.raises(ValueError, match="`epoch` must be an argument of Ranker or a hyperparameter of smoothi_ndcg"):
        tfr_smooth.Ranker(epoch=3)
