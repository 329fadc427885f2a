"""Cross-validation: folds, resuming, results and the mix with BM25."""

import dataclasses

import pytest

import experiments
from experiments.cross_validation import MEASURES, CrossValidation, best_mix, mix
from tests.text.conftest import made_up_table, write_checkpoint
from tfr_smooth import evaluation, losses, text


def test_queries_of_a_common_source_are_in_one_fold(plan):
    sources = {"q0": {"d1"}, "q5": {"d1", "d2"}, "q9": {"d2"}, "q3": {"d4"}}
    plan = dataclasses.replace(plan, sources=sources, folds=4)
    folds = [plan.queries(fold)["test"] for fold in range(4)]
    assert max(map(len, folds)) - min(map(len, folds)) <= 2
    assert sum({"q0", "q5", "q9"} <= set(fold) for fold in folds) == 1
    with pytest.raises(ValueError, match="`table` must have at least 5 queries without a common source, got 3"):
        dataclasses.replace(plan, table=made_up_table(queries=3), folds=5).queries(0)
    with pytest.raises(ValueError, match="`split` must have 'train', 'valid' and a test set, got .'train', 'valid'."):
        dataclasses.replace(plan, split={"valid": ["q0"], "train": ["q1"]})


def test_mix_averages_standardized_scores_and_the_best_has_the_best_metric():
    first, second = {"q": {"a": 3.0, "b": 1.0, "c": 2.0}}, {"q": {"c": 0.5, "a": 0.5, "b": 0.5}}
    mixed = mix(first, second, 0.5)["q"]  # The second run is constant.
    assert mixed == pytest.approx({"a": 1.5**0.5 / 2, "b": -(1.5**0.5) / 2, "c": 0.0})
    assert mix({"q": {}}, {"q": {}}, 0.3) == {"q": {}}
    labels = {"q": {"a": 1, "b": 0}}
    good, bad = {"q": {"a": 2.0, "b": 0.0}}, {"q": {"a": 0.0, "b": 2.0}}
    assert best_mix(good, bad, labels, "P_1") == 0.8  # 0.6 to 1.0 are equally good
    assert best_mix(bad, good, labels, "P_1") == 0.2


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    checkpoint, table = write_checkpoint(tmp_path_factory.mktemp("bert")), made_up_table()
    options = {"query_length": 5, "length": 9, "epochs": 1, "batch_size": 4, "learning_rate": 1e-2, "verbose": False}
    ranker = text.TextRanker(encoder=checkpoint, architecture="late", **options)
    compared = {"zero_shot": None, "smoothi_ndcg (alpha=2.0)": losses.get("smoothi_ndcg", alpha=2.0)}
    return CrossValidation("made up", table, ranker, compared, tmp_path_factory.mktemp("study"), folds=3)


def test_the_queries_of_a_fold_are_disjoint_and_changed_labels_change_the_results(plan):
    changed = dataclasses.replace(plan, table=plan.table.assign(label=1))
    assert {job.file for job in plan.jobs()}.isdisjoint(job.file for job in changed.jobs())
    for fold in range(3):
        queries = plan.queries(fold)
        assert sorted(sum(queries.values(), [])) == sorted(plan.table["query_id"].unique())
        assert queries["valid"] == plan.queries((fold + 1) % 3)["test"]


@pytest.mark.slow
def test_a_killed_study_is_resumed_and_its_results_are_read_back(plan, eagerly, monkeypatch, tmp_path):
    folders, fit = [], text.TextRanker.fit

    def counted(ranker, *args, **kwargs):
        if ranker.get_params()["epochs"]:
            folders.append(kwargs["checkpoint_dir"])
            if len(folders) == 2:
                raise KeyboardInterrupt
        return fit(ranker, *args, **kwargs)

    monkeypatch.setattr(text.TextRanker, "fit", counted)
    with pytest.raises(KeyboardInterrupt):
        plan.compute()
    plan.compute()
    plan.compute()
    # Each fold was trained once, and the killed job resumes in its folder.
    assert len(folders) == 4 and folders[1] == folders[2] and len(set(folders)) == 3
    assert plan.results().measures == list(MEASURES)
    results = plan.results(["P_5", "ndcg"])
    counts = results.queries.groupby("ranker")["query"].nunique().to_dict()
    names = ["bm25", "zero_shot", "zero_shot + bm25", "smoothi_ndcg (alpha=2.0)", "smoothi_ndcg (alpha=2.0) + bm25"]
    assert counts == dict.fromkeys(names, plan.table["query_id"].nunique())
    experiments.write_results(results, tmp_path)
    read = experiments.read_results(tmp_path)
    assert read.measures == results.measures == ["P_5", "ndcg"] and read.settings["entries"][0] == "bm25"
    assert read.queries["ndcg"].tolist() == results.queries["ndcg"].tolist()
    queries = plan.table["query_id"].unique()
    ndcg = evaluation.trec_eval_by_query(plan.values("score", queries), "ndcg", qrels=plan.values("label", queries))
    bm25 = results.queries[results.queries["ranker"] == "bm25"].set_index("query")["ndcg"]
    assert bm25.to_dict() == {query: pytest.approx(values["ndcg"]) for query, values in ndcg.items()}
    files = [path for path in plan.folder.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".npz"} and len(files) == len(plan.jobs())  # Only results are left.
