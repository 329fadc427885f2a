"""Ranks and shares within the list in `Ranker`: training, predictions in any order, importance, files and exports."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tfr_smooth
from tests.helpers import exports

QUICK = {"loss": "softmax", "members": 1, "hidden": [32], "epochs": 25, "learning_rate": 0.03, "verbose": False}
QUICK["batch_size"] = 16


def table(queries=120, seed=0):
    """Offers whose label is whether their price is in the middle of their query, whatever the prices."""
    random = np.random.default_rng(seed)
    sizes = random.integers(4, 12, queries)
    frame = pd.DataFrame({"query": np.repeat(np.arange(queries), sizes)})
    level = np.exp(random.normal(0.0, 3.0, queries))[frame["query"]]
    frame["price"] = level * (1.0 + 0.1 * random.integers(0, 30, len(frame)))
    frame.loc[random.random(len(frame)) < 0.1, "price"] = np.nan
    frame["label"] = frame.groupby("query")["price"].rank(pct=True).between(0.35, 0.65).astype(int)
    frame["brand"] = random.choice(["acme", "umbrella"], len(frame))
    frame["listed"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 500, len(frame)), unit="D")
    return frame


FRAME, NEW = table(), table(40, seed=1)
ROLES = {"label": "label", "query": "query"}


def matrix(frame):
    days = (frame["listed"] - pd.Timestamp("2024-01-01")).dt.days
    return np.stack([frame["price"], days], axis=1).astype(np.float64)


@pytest.fixture(scope="module", params=["table", pytest.param("matrix", marks=pytest.mark.slow)])
def fitted(request):
    """A ranker, the new documents, and its argument of the queries."""
    if request.param == "table":
        return tfr_smooth.Ranker(**QUICK).fit(FRAME, **ROLES), NEW, {}
    ranker = tfr_smooth.Ranker(**QUICK).fit(matrix(FRAME), FRAME["label"], qid=FRAME["query"])
    return ranker, matrix(NEW), {"y": NEW["label"], "qid": NEW["query"]}


@pytest.mark.slow
def test_ranks_learn_what_the_value_does_not_say_and_documents_are_scored_alone_without_them(fitted):
    ranker, new, given = fitted
    if not given:
        alone = tfr_smooth.Ranker(**QUICK, list_context=False).fit(FRAME, **ROLES)
        assert alone.score(NEW) < 0.8
        plain = NEW.drop(columns=["query", "label"])
        np.testing.assert_allclose(alone.predict(plain[5:6]), alone.predict(plain)[5:6], rtol=1e-5, atol=1e-6)
    assert ranker.score(new, **given) > 0.9


@pytest.mark.slow
def test_ranks_need_the_queries_also_of_one_document(fitted):
    ranker, new, _ = fitted
    one = new[:1]
    assert np.isfinite(ranker.predict(one, qid=["a"])).all()
    with pytest.raises(ValueError, match="define the queries, got none of them: .* unless `list_context=False`"):
        ranker.predict(one.drop(columns="query") if isinstance(new, pd.DataFrame) else one)


@pytest.mark.slow
def test_files_models_and_exports_have_the_ranks_and_shares(fitted, tmp_path):
    ranker, new, given = fitted
    assert given or ranker.features_.list_shares == ("brand",)
    qid = NEW["query"].to_numpy()
    scores = ranker.predict(new, qid=qid)
    ranker.save(tmp_path / "ranker.keras")
    again = tfr_smooth.Ranker.load(tmp_path / "ranker.keras")
    np.testing.assert_array_equal(again.predict(new, qid=qid), scores)
    served = again.export(tmp_path / "export", warmup=False)
    if not given:
        np.testing.assert_allclose(exports.scores_of(served, ranker, new, qid), scores, rtol=1e-4, atol=1e-5)
        return
    rows = tf.RaggedTensor.from_value_rowids(tf.constant(new, tf.float32), qid)
    inputs = {"features": rows.to_tensor(), "mask": tf.sequence_mask(np.bincount(qid))}
    for found in (again.model_(inputs), tf.saved_model.load(served).signatures["rank"](**inputs)["scores"]):
        np.testing.assert_allclose(tf.boolean_mask(found, inputs["mask"]), scores, rtol=1e-4, atol=1e-5)


def test_the_columns_with_ranks_are_printed_and_continued(untrained, capsys):
    options = {**QUICK, "verbose": True}
    first = tfr_smooth.Ranker(**options).fit(FRAME, **ROLES)
    assert "List ranks: ['price', 'listed']\nList shares: ['brand']\n" in capsys.readouterr().out
    second = tfr_smooth.Ranker(**options).fit(NEW, **ROLES, init_model=first)
    assert second.features_.list_ranks == ("price", "listed")
    with pytest.raises(ValueError, match="`list_context` must be True for an `init_model` with ranks"):
        tfr_smooth.Ranker(**options, list_context=False).fit(NEW, **ROLES, init_model=first)
