"""`TextRanker`: training, ranking, files, export and errors."""

import concurrent.futures
import functools
import gc
import pickle
import random

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from usearch import index as usearch

from tests import helpers
from tests.text.conftest import LENGTHS, inputs_of, served, write_checkpoint
from tfr_smooth import command_line, evaluation, text
from tfr_smooth.text import text_lists

ARCHITECTURES = {"late": "bert", "single": "deberta", "cross": "bert"}
FAST = {"epochs": 1, "batch_size": 6, "learning_rate": 1e-3, "verbose": False}


def make(checkpoint, architecture="late", **options):
    return text.TextRanker(
        encoder=checkpoint, architecture=architecture, **{**FAST, **LENGTHS.get(architecture, {}), **options}
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory, table):
    """Returns the ranker of an architecture and its family of encoders, which is trained once."""

    @functools.cache
    def trained(architecture):
        family = ARCHITECTURES[architecture]
        folder = write_checkpoint(tmp_path_factory.mktemp(family), family)
        validation = table[table["query_id"] < "q14"]  # of 10 queries
        return make(folder, architecture, frozen_layers=1).fit(table, query_id="query_id", validation=validation)

    return trained


@pytest.fixture(scope="module")
def fitted(trained):
    return trained("late")


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_predictions_ranks_and_files_agree(tmp_path, table, trained, architecture):
    ranker = trained(architecture)
    shuffled = table.sample(frac=1.0, random_state=0)
    scores = ranker.predict(shuffled)
    assert scores.dtype == np.float32 and scores.shape == (len(table),)
    ranked = ranker.rank(shuffled)
    assert ranked["score"].to_dict() == dict(zip(shuffled.index, scores, strict=True))
    for _, rows in ranked.groupby("query_id"):
        assert rows["rank"].tolist() == [*range(1, len(rows) + 1)] and rows["score"].is_monotonic_decreasing
    ranker.save(tmp_path / "ranker.keras")
    for same in (text.TextRanker.load(tmp_path / "ranker.keras"), pickle.loads(pickle.dumps(ranker))):
        np.testing.assert_array_equal(same.predict(shuffled), scores)
        assert same.history_ == ranker.history_ and same.get_params().keys() == ranker.get_params().keys()
    assert set(ranker.history_) == {"loss", "val_ndcg_cut_10"} and ranker.best_epoch_ == 1
    np.testing.assert_array_equal(ranker.predict(pa.Table.from_pandas(shuffled[["query", "text"]])), scores)


@pytest.mark.slow
def test_the_command_line_trains_and_scores_texts(checkpoint, table, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files = [str(tmp_path / name) for name in ("ranker.keras", "table.csv", "scored.parquet")]
    table.to_csv(files[1], index=False)
    flags = [f"--encoder={checkpoint}", "--architecture=single", "--length=12", "--query_length=6"]
    flags += ["--epochs=1", "--verbose=false"]
    flags += ["--estimator=text", f"--model={files[0]}", "--query_id=query_id"]
    assert command_line.main(["train", files[1], *flags]) == 0, capsys.readouterr().err
    assert command_line.main(["score", *files, "--names=y,place"]) == 0, capsys.readouterr().err
    scored = pd.read_parquet(files[2])
    expected = text.TextRanker.load(files[0]).rank(table, names=("y", "place"))
    found = scored.sort_values(["query_id", "place"])["text"].tolist()
    assert found == expected.sort_values(["query_id", "place"])["text"].tolist()
    assert command_line.main(["evaluate", *files[:2], "--measures=ndcg"]) == 0
    assert "\nndcg  " in capsys.readouterr().out


@pytest.mark.slow
def test_trainings_leave_nothing_behind(checkpoint, table):
    def alive():
        gc.collect()
        return sum(isinstance(value, text.Encoder) for value in gc.get_objects())

    states, before = (random.getstate(), np.random.get_state()[1].tolist()), alive()
    make(checkpoint, "single", loss="approx_ndcg", softmax_epochs=1, epochs=2).fit(table[table["query_id"] < "q11"])
    assert alive() == before and (random.getstate(), np.random.get_state()[1].tolist()) == states


@pytest.mark.slow
def test_trainings_in_threads_do_not_disturb_each_other(checkpoint, table):
    some = table[table["query_id"] < "q11"]
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        one, other = threads.map(lambda _: make(checkpoint, "single").fit(some), range(2))
    helpers.assert_same(one.model_.get_weights(), other.model_.get_weights())


@pytest.mark.slow
def test_an_empty_table_has_no_scores(fitted, table):
    for empty in (table.iloc[:0], {"query": [], "text": []}):
        scores = fitted.predict(empty)
        assert scores.shape == (0,) and scores.dtype == np.float32


BLANKS = ["", *" \t\n\v\f\r\x1c\x1f\x85\u00a0\u1680\u2003\u2028\u202f\u3000"]


@pytest.mark.parametrize("architecture", ["late", pytest.param("cross", marks=pytest.mark.slow)])
def test_blanks_before_and_after_a_text_do_not_count(trained, architecture):
    ranker = trained(architecture)
    asked = [f"{blank}lift{blank}" for blank in BLANKS]
    scores = ranker.predict({"query": asked, "text": [f" \t{blank}wing heat {blank}\n" for blank in BLANKS]})
    np.testing.assert_array_equal(scores, ranker.predict({"query": ["lift"], "text": ["wing heat"]}).repeat(len(asked)))


FORMS = {
    "blanks": lambda table: table.assign(query=" \t" + table["query"], text=table["text"] + "\u3000\n"),
    "Polars": lambda table: pl.from_pandas(table).with_columns(pl.col("query", "text").cast(pl.Categorical)),
    "lists": lambda table: table.to_dict("list"),
    "floats": lambda table: table.assign(query_id=pd.factorize(table["query_id"])[0] + 0.0, label=table["label"] + 0.0),
    "dates": lambda table: table.assign(query_id=pd.to_datetime(pd.factorize(table["query_id"])[0], unit="D")),
}


def test_every_form_of_a_table_has_the_same_lists(table):
    for query_id in ("query_id", None):
        columns = {"query": "query", "text": "text", "label": "label", "query_id": query_id}
        expected = text_lists.lists_of(table, columns, labeled=True)
        for form in FORMS.values():
            found = text_lists.lists_of(form(table), columns, labeled=True)
            assert text_lists.texts_of(found) == text_lists.texts_of(expected)
            assert found.starts.tolist() == expected.starts.tolist()
            assert found.values("label").tolist() == expected.values("label").tolist()


# Vectors.


@pytest.mark.slow
def test_an_exact_search_of_the_vectors_ranks_as_the_ranker(tmp_path, table, trained):
    ranker = trained("single")
    documents = table["text"].drop_duplicates().tolist()
    vectors, query = ranker.encode(documents), ranker.encode(["lift heat"], role="query")
    assert vectors.dtype == np.float32 and vectors.shape == (len(documents), 12)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    index = usearch.Index(ndim=12, metric="ip", dtype="f32")
    index.add(np.arange(len(documents)), vectors)
    nearest = index.search(query, len(documents), exact=True).keys.ravel()
    ranked = ranker.rank(pd.DataFrame({"query": "lift heat", "text": documents})).set_index("text")["score"]
    np.testing.assert_allclose(ranked[[documents[place] for place in nearest]], ranked, atol=1e-5)  # with ties
    assert ranked.iloc[0] > ranked.iloc[-1] + 1e-3
    folder = ranker.export(tmp_path)
    np.testing.assert_allclose(served(folder, documents), vectors, atol=1e-5)
    np.testing.assert_allclose(served(folder, ["lift heat"], "query_tokenizer.json"), query, atol=1e-5)
    assert ranker.encode(pd.Series([], dtype=object)).shape == (0, 12)


def test_what_cannot_be_encoded_is_refused(single):
    for texts, role, message in (
        (["lift"], "text", "`role` must be one of .*, got 'text'"),
        ("lift", "query", "`texts` must be a list of texts, .* got str"),
        (["lift", None], "query", "`texts` must be text without missing values, got None in row 1"),
        (pd.Series([1], dtype="category"), "query", "`texts` must be text, got 1 in row 0"),
    ):
        with pytest.raises(ValueError, match=message):
            single.encode(texts, role=role)


def test_measures_are_those_of_the_scores(fitted, table):
    found = fitted.evaluate(table, measures=["map"])["map"].mean
    expected = evaluation.evaluate_rows(table["label"], fitted.predict(table), table["query_id"], ["map"])["map"].mean
    assert found == expected
    by_query = fitted.evaluate(table, measures=["map"], by_query=True)["map"]
    assert np.mean([*by_query.values()]) == pytest.approx(found) and set(by_query) == set(table["query_id"])


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_training_continues_at_other_rates(checkpoint, table, architecture):
    first = make(checkpoint, architecture, epochs=0).fit(table)
    again = make(checkpoint, architecture, epochs=0, learning_rate=1e-5).fit(table, init_model=first)
    features = inputs_of(architecture, first.model_.encoder, table).batch(np.arange(8)[np.newaxis])
    np.testing.assert_allclose(again.model_(features), first.model_(features), rtol=1e-5, atol=1e-6)


def test_training_continues_from_a_ranker_and_no_epoch_keeps_the_weights(checkpoint, fitted, table):
    again = make(checkpoint, epochs=0, frozen_layers=1).fit(table, init_model=fitted)
    helpers.assert_same(again.model_.get_weights(), fitted.model_.get_weights())
    assert again.best_epoch_ is None and again.history_ == {}


def test_equal_texts_are_one_query_without_ids(checkpoint, table):
    ranker = make(checkpoint, epochs=0).fit(table.rename(columns={"query": "q", "text": "t"}), query="q", text="t")
    frame = pd.DataFrame({"q": ["lift", "heat", "lift"], "t": ["wing", "gas", "wing"]})
    assert ranker.rank(frame)["rank"].tolist() == [1, 2, 1]  # a tie


def test_what_a_ranker_cannot_do_is_refused(checkpoint, fitted, table):
    with pytest.raises(ValueError, match="`architecture` must be 'single' for `encode`, got 'late'"):
        fitted.encode(["lift"])
    with pytest.raises(ValueError, match="`measures` must be .*, got 'ndcg@10'"):
        fitted.evaluate(table, measures=["ndcg@10"])
    with pytest.raises(ValueError, match="`validation` must have a query with documents of different labels"):
        make(checkpoint).fit(table, query_id="query_id", validation=table.assign(label=1))
    for architecture in ("single", "cross"):
        with pytest.raises(ValueError, match="`init_model` must be a .* with the same layers, got another model"):
            make(checkpoint, architecture).fit(table, init_model=fitted)


def test_bad_tables_are_refused(checkpoint, table):
    table = table.reset_index(drop=True)
    for changed, message in (
        (table.drop(columns="text"), "`text` must be one of .*, got 'text'"),
        (table.drop(columns="query_id"), "`query_id` must be one of .*, got 'query_id'"),
        (table.assign(text=[None, *table["text"][1:]]), "column 'text' must be text .*, got None in row 0"),
        ({**table, "text": np.array(["\ud800", *table["text"][1:]])}, "column 'text' .* UTF-8 has, got .* in row 0"),
        (table.assign(text=1.0), "column 'text' must be text, got 1.0 in row 0"),
        (table.assign(label=-1), "column 'label' must be finite float32 numbers >= 0, got -1 in row 0"),
        (table.assign(query=["other", *table["query"][1:]]), "column 'query' must be the same .* in row 1"),
        (table.assign(label=0), "`X` must have a query with a relevant and a non-relevant document, got none"),
        (table["text"].to_numpy(), "`X` must be a table"),
    ):
        with pytest.raises(ValueError, match=message):
            make(checkpoint).fit(changed, query_id="query_id")


def test_bad_arguments_are_refused(checkpoint, table):
    bad = {"architecture": "both", "loss": "softmaxx", "epochs": -1, "softmax_epochs": 1.0, "patience": 0, "length": 41}
    bad |= {"select_by": "ndcg@10", "relevant": 0, "learning_rate": 0.0, "alpha": 2.0}
    for name, value in bad.items():
        with pytest.raises(ValueError, match=f"`{name}` must be"):
            make(checkpoint, **{name: value}).fit(table)
