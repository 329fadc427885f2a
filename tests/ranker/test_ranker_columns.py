"""Columns that trees cannot use: ids, sets, texts, vectors and matches of two columns."""

import warnings

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tfr_smooth
from tests.helpers import exports
from tfr_smooth.columns import codes, column_arrays

QUICK = {"loss": "softmax", "members": 1, "hidden": [16], "epochs": 12, "learning_rate": 0.01, "verbose": False}
QUICK["dropout"] = 0.0
ROLES = {"label": "label", "query": "query"}
WORDS = np.array([f"word{number}" for number in range(12)])


def table(kind, queries=150, documents=8, seed=0):
    """Returns a table whose labels depend on a column of one kind, and what `Ranker` has to know about it."""
    random = np.random.default_rng(seed)
    rows = queries * documents
    frame = pd.DataFrame({"query": np.repeat(np.arange(queries), documents), "noise": random.normal(size=rows)})
    options = {}
    if kind == "id":
        frame["item"] = random.integers(10**12, 10**12 + 30, rows)  # float32 would not keep them apart
        relevance = np.random.default_rng(1).normal(size=30)[frame["item"] - 10**12]
        options = {"kinds": {"item": "id"}}
    elif kind == "set":
        frame["tags"] = [list(random.choice(WORDS, random.integers(0, 4), replace=False)) for _ in range(rows)]
        relevance = np.array([("word3" in tags) - 1.0 * ("word5" in tags) for tags in frame["tags"]])
    elif kind == "text":
        frame["title"] = [" ".join(random.choice(WORDS, 4)).capitalize() + "!" for _ in range(rows)]
        relevance = frame["title"].str.lower().str.contains("word3").to_numpy(float)
    elif kind == "vector":
        vectors = random.normal(size=(rows, 4))
        frame["image"], relevance = list(vectors), vectors @ [1.0, -1.0, 0.5, 0.0]
    elif kind == "match of vectors":
        one, other = np.repeat(random.normal(size=(queries, 6)), documents, axis=0), random.normal(size=(rows, 6))
        frame["one"], frame["other"] = list(one), list(other)
        relevance, options = (one * other).sum(axis=1), {"matches": [("one", "other")]}
    elif kind == "match of texts":
        # The words are new in the test set: only what they have in common can be learned.
        words = np.array([f"w{seed}x{number}" for number in range(500)])
        searched, common = random.choice(words, (queries, 3)), random.integers(0, 4, rows)
        frame["search"] = [" ".join(searched[query]) for query in frame["query"]]
        parts = zip(searched[frame["query"]], random.choice(words, (rows, 4)), common, strict=True)
        frame["title"] = [" ".join([*own[:count], *others[count:]]) for own, others, count in parts]
        relevance = common.astype(float)
    else:
        assert kind == "match of an id and a set"
        items = random.integers(0, 10**6, (queries, 5)).astype(str)
        frame["seen"] = ["|".join(items[query]) for query in frame["query"]]
        is_seen = random.random(rows) < 0.3
        frame["item"] = np.where(is_seen, items[frame["query"], random.integers(0, 5, rows)], "other")
        relevance = is_seen.astype(float)
        options = {"matches": [("item", "seen")], "kinds": {"seen": "set:|", "item": "id"}}
    cut = min(np.quantile(relevance, 0.7, method="lower"), np.unique(relevance)[-2])
    frame["label"] = (relevance > cut).astype(int)
    has_relevant = frame.groupby("query")["label"].transform("max") > 0
    return frame[has_relevant].reset_index(drop=True), options


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["id", "set", "text", "vector", "match of vectors", "match of texts", "match of an id and a set"]
)
def test_a_column_of_each_kind_ranks_new_queries(kind, tmp_path):
    frame, options = table(kind)
    new, _ = table(kind, queries=60, seed=2)
    ranker = tfr_smooth.Ranker(**QUICK, **options).fit(frame, **ROLES)
    assert ranker.evaluate(new)["ndcg"].mean > 0.9
    ranker.save(tmp_path / "ranker.keras")
    np.testing.assert_array_equal(tfr_smooth.Ranker.load(tmp_path / "ranker.keras").predict(new), ranker.predict(new))


def test_rare_and_unseen_values_share_an_embedding_and_missing_ones_have_another(untrained):
    frame, options = table("id")
    frame.loc[:1, "item"] = 7
    options |= {**QUICK, "epochs": 1, "list_context": False}
    ranker = tfr_smooth.Ranker(**options).fit(frame, **ROLES)
    (column,) = (column for column in ranker.features_.columns if column.name == "item")
    assert "7" not in column.categories and set(column.categories) <= set(frame["item"].astype(str))
    others = pd.DataFrame({"query": 0, "noise": 0.0, "item": pd.array([7, 8, None], "Int64")})
    place = ranker.features_.feature_columns.index("item")
    codes = ranker.features_(column_arrays(others, ranker.features_.columns)).numpy()[:, place]
    assert codes.tolist() == [1.0, 1.0, 0.0]
    scores = ranker.predict(others)
    assert scores[1] != scores[2]
    np.testing.assert_array_equal(ranker.predict(others.assign(item=["7", "8", None])), scores)


def test_columns_with_very_many_values_are_hashed(untrained, monkeypatch):
    monkeypatch.setattr(codes, "_MOST_VALUES", 20)
    frame, options = table("id")
    ranker = tfr_smooth.Ranker(**QUICK, **options).fit(frame, **ROLES)
    (column,) = (column for column in ranker.features_.columns if column.name == "item")
    assert (column.categories, column.buckets) == ((), 32)


def test_the_kinds_of_columns_are_inferred_and_printed(untrained, capsys):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"query": np.repeat(np.arange(30), 5), "label": np.tile([1, 0, 0, 0, 0], 30)})
    frame["few"] = random.choice(["a", "b"], 150)
    frame["many"] = [f"value{number % 140}" for number in range(150)]
    frame["words"] = [f"some words of {number % 140}" for number in range(150)]
    frame["several"] = [["a"], ["b", "c"], []] * 50
    frame["vector"] = list(random.normal(size=(150, 3)))
    tfr_smooth.Ranker(**{**QUICK, "verbose": True, "epochs": 1}).fit(frame, **ROLES)
    assert capsys.readouterr().out.splitlines()[:6] == [
        "column   kind      values  missing  reason",
        "few      category       2       0%  2 different texts",
        "many     id           140       0%  many texts of few words; no embedding, since each value is rare",
        "words    text         140       0%  many texts of several words",
        "several  set                   33%  lists or text",
        "vector   vector                 0%  vectors",
    ]


def product_log(queries=60):
    """Returns a table as a shop has it, whose purchases follow from the clicks."""
    random, rows = np.random.default_rng(0), 10 * queries
    frame = pd.DataFrame({"query": np.repeat(np.arange(queries), 10)})
    frame["brand_id"] = np.where(random.random(rows) < 0.1, np.nan, random.integers(100_000, 100_010, rows))
    frame["productId"], frame["rating"] = random.integers(1, 50, rows), random.integers(1, 6, rows)
    frame["day"] = (pd.Timestamp("2025-01-01") + pd.to_timedelta(random.integers(0, 600, rows), "D")).astype(str)
    frame["shop"] = 7
    frame["click"] = (random.random(rows) < 0.3).astype(int)
    frame["purchase"] = frame["click"] * (random.random(rows) < 0.5)
    return frame


def test_a_product_log_needs_no_kinds(untrained, tmp_path):
    frame = product_log()
    ranker = tfr_smooth.Ranker(**{**QUICK, "epochs": 1})
    with pytest.warns(UserWarning) as warned:
        ranker.fit(frame, label="click", query="query")
    messages = [str(warning.message) for warning in warned]
    assert any(message.startswith("The columns ['shop'] have the same value") for message in messages)
    assert any(message.startswith("The columns ['purchase'] nearly are the label") for message in messages)
    kinds = {column.name: column.kind for column in ranker.columns_}
    numbers = dict.fromkeys(["rating", "shop", "purchase"], "number")
    assert kinds == {"brand_id": "id", "productId": "id", "day": "date", **numbers}
    ranker.save(tmp_path / "ranker.keras")
    assert str(tfr_smooth.Ranker.load(tmp_path / "ranker.keras").columns_) == str(ranker.columns_)
    texts = frame.assign(brand_id=[None if value != value else str(value) for value in frame["brand_id"]])
    np.testing.assert_array_equal(ranker.predict(texts), ranker.predict(frame))  # "100001.0"
    served = ranker.model_.table_features.columns[0]
    codes = served.features(served.prepare(tf.constant(["100001.0", "100001"])), served.resource()).numpy()
    assert codes[0] == codes[1] > 1.0


def consequences(frame):
    """Returns columns that follow from the clicks, and such that do not."""
    random, click = np.random.default_rng(1), frame["click"] > 0
    some = click & (random.random(len(frame)) < 0.3)
    told = {
        "text": np.where(click, "yes", "no"),
        "number": np.where(click, random.normal(size=len(frame)), np.nan),
        "missing": np.where(click, None, "left"),
        "day": pd.to_datetime(pd.Series(np.where(some, "2025-01-05", None))),
        "flag": pd.array(np.where(click, True, None), "boolean"),
        "id": [f"order {number}" if one else None for number, one in enumerate(some)],
        "actions": [["view", "click"] if one else ["view"] for one in click],
        "vector": [[1.0, 2.0] if one else None for one in some],
    }
    rare = random.random(len(frame)) < 0.1
    other = {
        "any": random.choice(["yes", "no", ""], len(frame)),
        "broken": np.where(rare & ~click, np.nan, random.normal(size=len(frame))),
        "many": [f"item {number}" for number in range(len(frame))],
    }
    return told, other


def test_columns_that_follow_from_the_label_are_all_in_one_warning(untrained):
    frame = product_log(queries=200)[["query", "click"]]
    told, other = consequences(frame)
    ranker = tfr_smooth.Ranker(**{**QUICK, "epochs": None})  # trains again on all queries
    with pytest.warns(UserWarning, match="nearly are the label") as warned:
        ranker.fit(frame.assign(**told, **other), label="click", query="query")
    messages = [str(each.message) for each in warned if "the label" in str(each.message)]
    assert len(untrained) == 3 and len(messages) == 1
    assert messages[0].startswith(f"The columns {[*told]} nearly are the label")


def test_documents_of_weight_0_tell_no_column(untrained):
    frame = product_log().drop(columns=["purchase", "shop"]).assign(weight=1.0, marked=0)
    frame.loc[::3, ["weight", "marked", "click"]] = 0.0, 1, 2
    ranker, roles = tfr_smooth.Ranker(**{**QUICK, "epochs": 1}), {"label": "click", "query": "query"}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", UserWarning)
        ranker.fit(frame, **roles, weight="weight")
    assert not [str(each.message) for each in warned if issubclass(each.category, UserWarning)]
    with pytest.warns(UserWarning, match=r"The columns \['marked'\] nearly are the label"):
        ranker.fit(frame.drop(columns="weight"), **roles)


def test_columns_that_do_not_fit_are_refused_by_name():
    for values, options, message in [
        ([[1.5], [2.5, 3.5]], {}, "column 'x' must be vectors of one length, or lists of text or integers, got [2.5, "),
        ([["c", "d"], ["a|b"]], {}, "column 'x' must be lists of known values without '|', got 'a|b' in row 1."),
        ([[1, 2], 3], {}, "column 'x' must have values of one type: "),
        (["a", "b"], {"kinds": {"x": "number"}}, "column 'x' must have numbers for the kind 'number', got the type "),
        ([1, 2], {"kinds": ["x"]}, "`kinds` must be an instance of collections.abc.Mapping or None, got ['x']."),
        (["a", "b"], {"matches": [("x", "y")]}, "`matches` must be pairs of names of feature columns of text, or of "),
        ([1, 2], {"kinds": {"x": "text"}}, "column 'x' must have text for the kind 'text', got the type int64, which "),
        (
            [1, 2],
            {"kinds": {"y": "id"}},
            "`kinds` must be of features, ['query', 'label', 'x'], got 'y', which is none.",
        ),
        ([1, 2], {"kinds": {"x": "image"}}, "`kinds['x']` must be one of 'boolean', 'category', 'date', "),
    ]:
        frame = pd.DataFrame({"query": [1, 1], "label": [0, 1], "x": values})
        with pytest.raises(ValueError) as error:
            tfr_smooth.Ranker(**QUICK, **options).fit(frame, y=[0, 1], qid=[1, 1])
        assert str(error.value).startswith(message)


def test_texts_are_matched_without_being_told(untrained, capsys):
    frame, _ = table("match of texts")
    for options, is_matched in (({}, True), ({"matches": ()}, False)):
        ranker = tfr_smooth.Ranker(**{**QUICK, "verbose": True}, **options).fit(frame, **ROLES)
        assert ("Matches: ['search ~ title" in capsys.readouterr().out) == bool(ranker.features_.matches) == is_matched


@pytest.mark.slow
def test_queries_that_are_texts_are_compared_if_they_are_a_feature(untrained, capsys, tmp_path):
    frame, _ = table("match of texts", queries=30)
    frame = frame[["search", "title", "label"]]
    ranker = tfr_smooth.Ranker(**{**QUICK, "verbose": True, "epochs": 1})
    ranker.fit(frame, label="label", query="search")
    hint = "The queries have words of 'title': `features` with 'search' compares them.\n"
    assert hint in capsys.readouterr().out and ranker.features_.matches == ()
    ranker.fit(frame, label="label", query="search", features=["search", "title"], query_features=["search"])
    assert hint not in capsys.readouterr().out and ranker.features_.matches[0].name == "search ~ title"
    rows = frame[frame["search"] == frame["search"][0]]
    served = tf.saved_model.load(ranker.export(tmp_path / "served", warmup=False)).signatures["serving_default"]
    titles = tf.constant([list(rows["title"])])
    scores = served(search=tf.constant(rows["search"][:1]), title=titles)["scores"]
    np.testing.assert_allclose(scores[0], ranker.predict(rows), rtol=1e-5, atol=1e-6)


def test_vectors_and_sets_may_be_features_of_the_query(untrained):
    frame = pd.DataFrame({"search": np.arange(60) // 5, "x": np.arange(60) % 7.0, "label": np.arange(60) % 2})
    values = {"profile": np.eye(3).tolist(), "tags": [["a"], [], ["b", "c"]]}
    for name, of_query in values.items():
        frame[name] = [of_query[search % 3] for search in frame["search"]]
    fit = tfr_smooth.Ranker(**{**QUICK, "epochs": 1}).fit
    roles = {"label": "label", "query": "search", "query_features": [*values]}
    assert np.isfinite(fit(frame, **roles).predict(frame)).all()
    for name, of_query in values.items():
        frame[name] = frame[name].where(frame.index != 7, pd.Series([of_query[0]] * 60))
        with pytest.raises(ValueError, match=f"must be the same .* got '{name}', which varies .* row 7."):
            fit(frame, **{**roles, "query_features": [name]})


def test_fit_warns_once_of_texts_that_look_like_other_values(untrained):
    numbers = np.random.default_rng(0).integers(1, 100, 300)
    frame = pd.DataFrame({"query": np.arange(300) // 6, "label": numbers % 3, "price": [f"${n}" for n in numbers]})
    frame["day"] = [f"{1 + n % 28}.12.2024" for n in numbers]
    with pytest.warns(UserWarning, match="may mean something else: 'price' .*; 'day' looks") as warned:
        tfr_smooth.Ranker(**QUICK).fit(frame, **ROLES)
    assert len([w for w in warned if "something else" in str(w.message)]) == 1


@pytest.mark.slow
def test_a_training_continues_with_new_data():
    frame, options = table("id")
    first = tfr_smooth.Ranker(**QUICK, **options).fit(frame, **ROLES)
    still = tfr_smooth.Ranker(**{**QUICK, "learning_rate": 1e-12}, **options)
    still.fit(frame, **ROLES, init_model=first)
    np.testing.assert_allclose(still.predict(frame), first.predict(frame), rtol=1e-4, atol=1e-5)
    turned = frame.assign(label=1 - frame["label"])
    second = tfr_smooth.Ranker(**QUICK, **options).fit(turned, **ROLES, init_model=first)
    assert second.evaluate(turned)["ndcg"].mean > first.evaluate(turned)["ndcg"].mean + 0.02
    assert second.features_.columns == first.features_.columns
    with pytest.raises(ValueError, match="^`init_model` must have the same arguments of the network, such as `hidden`"):
        tfr_smooth.Ranker(**{**QUICK, "hidden": [3]}).fit(frame, **ROLES, init_model=first)


@tf.keras.utils.register_keras_serializable(package="tests")
class AboveTheList(tf.keras.layers.Layer):
    """Scores a document by its features and their mean over the list."""

    def __init__(self, units=8, **kwargs):
        super().__init__(**kwargs)
        self.units, self.hidden = units, tf.keras.layers.Dense(units, activation="relu")
        self.last = tf.keras.layers.Dense(1)

    def build(self, input_shape):
        self.hidden.build([None, None, 2 * input_shape[-1]])
        self.last.build([None, None, self.units])
        self.built = True

    def call(self, documents, mask=None):
        counts = tf.reduce_sum(tf.cast(mask, tf.float32), axis=1, keepdims=True)[:, :, tf.newaxis]
        mean = tf.reduce_sum(documents, axis=1, keepdims=True) / tf.maximum(counts, 1.0)
        return self.last(self.hidden(tf.concat([documents, tf.zeros_like(documents) + mean], axis=-1)))

    def get_config(self):
        return {**super().get_config(), "units": self.units}


@pytest.mark.slow
def test_a_network_of_ones_own_scores_whole_lists_of_encoded_documents(tmp_path):
    frame, options = table("id")
    frame["noise"] += np.random.default_rng(0).normal(0.0, 3.0, 1000)[frame["query"]]
    frame["label"] = (frame["noise"] > frame.groupby("query")["noise"].transform("mean")).astype(int)
    ranker = tfr_smooth.Ranker(network=AboveTheList(), normalization="standardize", **QUICK, **options)
    ranker.fit(frame, **ROLES)
    assert ranker.evaluate(frame)["ndcg"].mean > 0.9
    scores = ranker.predict(frame)
    mixed = frame.sample(frac=1.0, random_state=0)
    np.testing.assert_allclose(ranker.predict(mixed), scores[mixed.index], rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="`qid`, `group` or `query` must define the queries"):
        ranker.predict(frame.drop(columns="query"))
    ranker.save(tmp_path / "ranker.keras")
    np.testing.assert_array_equal(tfr_smooth.Ranker.load(tmp_path / "ranker.keras").predict(frame), scores)
    served = exports.scores_of(ranker.export(tmp_path / "export", warmup=False), ranker, frame, frame["query"])
    np.testing.assert_allclose(served, scores, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="`network` must return scores .batch, list. or .batch, list, 1., got"):
        tfr_smooth.Ranker(network=tf.keras.layers.Identity(), **QUICK, **options).fit(frame, **ROLES)
