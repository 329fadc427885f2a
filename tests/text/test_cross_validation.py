"""Cross-validation: folds, resuming, results and the mix with BM25."""

import dataclasses

import numpy as np
import pytest

import experiments
from experiments import tables
from experiments.cross_validation import CrossValidation
from tests.text.conftest import made_up
from tfr_smooth import evaluation, losses, text


def test_queries_of_a_common_source_are_in_one_fold(plan):
    collection = made_up()
    sources = {"q0": {"d1"}, "q5": {"d1", "d2"}, "q9": {"d2"}, "q3": {"d4"}}
    collection = collection._replace(sources={query: frozenset(names) for query, names in sources.items()})
    plan = dataclasses.replace(plan, collection=collection, folds=4)
    folds = [plan.queries(fold)["test"] for fold in range(4)]
    assert sorted(sum(folds, [])) == sorted(collection.queries)
    assert max(map(len, folds)) - min(map(len, folds)) <= 2
    assert sum({"q0", "q5", "q9"} <= set(fold) for fold in folds) == 1


def test_too_few_queries_for_the_folds_are_refused(plan):
    with pytest.raises(ValueError, match="`collection` must have at least 5 queries without a common source, got 3"):
        dataclasses.replace(plan, collection=made_up(queries=3), folds=5).queries(0)


def test_a_split_has_a_test_set(plan):
    with pytest.raises(ValueError, match="`split` must have 'train', 'valid' and a test set, got .'train', 'valid'."):
        dataclasses.replace(plan, split={"valid": ["q0"], "train": ["q1"]})


def test_mix_averages_standardized_scores():
    first, second = {"q": {"a": 3.0, "b": 1.0, "c": 2.0}}, {"q": {"c": 0.5, "a": 0.5, "b": 0.5}}
    mixed = text.mix(first, second, 0.5)["q"]  # The second run is constant.
    assert mixed == pytest.approx({"a": 1.5**0.5 / 2, "b": -(1.5**0.5) / 2, "c": 0.0})
    assert text.mix({"q": {}}, {"q": {}}, 0.3) == {"q": {}}


def test_the_best_mix_has_the_best_metric():
    labels = {"q": {"a": 1, "b": 0}}
    good, bad = {"q": {"a": 2.0, "b": 0.0}}, {"q": {"a": 0.0, "b": 2.0}}
    assert text.best_mix(good, bad, labels, "P_1") == 0.8  # 0.6 to 1.0 are equally good
    assert text.best_mix(bad, good, labels, "P_1") == 0.2


@pytest.fixture(scope="module")
def plan(tmp_path_factory, checkpoint, collection, run):
    _, tokenizer = text.load_encoder(checkpoint)
    return CrossValidation(
        "made up",
        collection,
        run,
        text.LateInputs(collection, tokenizer, query_length=5, document_length=9),
        lambda: text.LateInteraction(text.load_encoder(checkpoint)[0]),
        {"zero_shot": None, "smoothi_ndcg (alpha=2.0)": losses.get("smoothi_ndcg", alpha=2.0)},
        tmp_path_factory.mktemp("study"),
        folds=3,
        seeds=1,
        recipe=text.RerankerRecipe(epochs=1, batch_size=4, learning_rate=1e-2),
    )


def test_the_queries_of_a_fold_are_disjoint(plan):
    for fold in range(3):
        queries = plan.queries(fold)
        assert sorted(sum(queries.values(), [])) == sorted(plan.collection.queries)
        assert queries["valid"] == plan.queries((fold + 1) % 3)["test"]


@pytest.mark.slow
def test_a_killed_study_is_resumed_and_its_results_are_read_back(plan, monkeypatch, tmp_path):
    done, folders = [], []
    train = text.train

    def counted(*args, **kwargs):
        folders.append(args[6])
        if done == [0]:
            done.append("killed")
            raise KeyboardInterrupt
        done.append(kwargs["settings"]["fold"])
        return train(*args, **kwargs)

    monkeypatch.setattr(text, "train", counted)
    with pytest.raises(KeyboardInterrupt):
        plan.compute()
    plan.compute()
    plan.compute()
    assert done == [0, "killed", 1, 2]  # Each fold was trained once.
    assert folders[1] == folders[2] and len(set(folders)) == 3  # The killed job resumes in its folder.
    assert plan.results().measures == list(text.MEASURES)
    results = plan.results(["P_5", "ndcg"])
    counts = results.queries.groupby("ranker")["query"].nunique().to_dict()
    names = ["bm25", "zero_shot", "zero_shot + bm25", "smoothi_ndcg (alpha=2.0)", "smoothi_ndcg (alpha=2.0) + bm25"]
    assert counts == dict.fromkeys(names, len(plan.collection.queries))
    experiments.write_results(results, tmp_path)
    read = experiments.read_results(tmp_path)
    assert read.measures == results.measures == ["P_5", "ndcg"] and read.settings["entries"][0] == "bm25"
    assert read.queries["ndcg"].tolist() == results.queries["ndcg"].tolist()
    ndcg = evaluation.trec_eval_by_query(plan.run, "ndcg", qrels=plan.collection.labels)
    table = tables.compare(results, "made up", baseline="bm25", samples=50)
    row = table[(table["ranker"] == "bm25") & (table["measure"] == "ndcg")].iloc[0]
    folds = [np.mean([ndcg[query]["ndcg"] for query in plan.queries(fold)["test"]]) for fold in range(3)]
    assert row["mean"] == pytest.approx(np.mean(folds)) and np.isnan(row["t_test_p"])
    files = [path for path in plan.folder.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".npz"} and len(files) == len(plan.jobs())  # Only results are left.


@pytest.mark.slow
def test_training_resumes_where_it_stopped(plan, tmp_path):
    arguments = (plan.make, losses.ListNetLoss(), plan.inputs, plan.run, plan.collection.labels, plan.queries(0))
    recipe = text.RerankerRecipe(epochs=3, batch_size=6, learning_rate=1e-3, patience=9)
    whole = text.train(*arguments, tmp_path / "whole", recipe=recipe, verbose=False)
    validations = []

    rank = plan.inputs.rank

    def killed(*args):
        if len(validations) == 1:
            raise KeyboardInterrupt  # in the second epoch
        validations.append(args)
        return rank(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan.inputs, "rank", killed)
        with pytest.raises(KeyboardInterrupt):
            text.train(*arguments, tmp_path / "parts", recipe=recipe, verbose=False)
    resumed = text.train(*arguments, tmp_path / "parts", recipe=recipe, verbose=False)
    # The lists are those of an uninterrupted run; the dropout masks are not.
    valid = {query_id: plan.run[query_id] for query_id in plan.queries(0)["valid"]}
    for query_id, scores in plan.inputs.rank(whole, valid).items():
        again = plan.inputs.rank(resumed, {query_id: scores})[query_id]
        np.testing.assert_allclose(list(again.values()), list(scores.values()), rtol=0.1)
    with pytest.raises(ValueError, match="`settings` must match the training"):
        text.train(*arguments, tmp_path / "parts", recipe=text.RerankerRecipe(epochs=2), verbose=False)


@pytest.mark.parametrize(
    ("name", "value"), [("epochs", 0), ("learning_rate", 0.0), ("select_by", "ndcg@10"), ("relevant", 0)]
)
def test_bad_arguments_of_a_recipe_are_refused(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        text.RerankerRecipe(**{name: value})


def test_changed_labels_change_the_results(plan):
    changed = dataclasses.replace(plan, collection=plan.collection._replace(labels=made_up(queries=3).labels))
    assert {job.file for job in plan.jobs()}.isdisjoint(job.file for job in changed.jobs())
