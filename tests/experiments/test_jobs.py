"""Jobs, the names of their result files, and the contents of results."""

import dataclasses

import numpy as np
import pytest

import experiments
from experiments import jobs
from tfr_smooth import data, evaluation


@pytest.fixture
def tiny(tmp_path):
    """Returns a data set of a few queries, which the test may change."""
    files = data.write_synthetic_letor(tmp_path / "tiny", num_queries=(4, 3, 3), num_features=16, max_documents=6)
    return experiments.one_split(*(str(files[split]) for split in ("train", "valid", "test")), name="tiny")


def test_only_changes_of_the_result_change_the_name(tiny):
    tiny = experiments.Dataset("tiny", {**tiny.folds, "Fold2": tiny.folds["Fold1"]})
    job = experiments.Job(tiny, "Fold1", "smoothi_ndcg", {"alpha": 2.5, "hidden": [8]}, 2)
    changes = [{"seed": 1}, {"ranker": "smoothi_map"}, {"fold": "Fold2"}, {"relevance_level": 2}]
    changes += [{"settings": {"alpha": 2.0}}, {"settings": {"alpha": 1.0, "epochs": 51}}]
    assert len({job.file, *(dataclasses.replace(job, **change).file for change in changes)}) == 1 + len(changes)
    assert job.file.startswith("tiny/Fold1/smoothi_ndcg_alpha=2.5_hidden=8_seed=2_")
    # 50 is the default value.
    assert dataclasses.replace(job, settings={"epochs": 50, **job.settings}).file == job.file


def test_changed_labels_are_read_again_although_the_size_of_the_file_is_the_same(tiny, tmp_path):
    job = experiments.Job(tiny, "Fold1", "ridge", {})
    jobs.run_job(job, tmp_path)
    (path,) = tiny.folds["Fold1"]["test"]
    with open(path) as file:
        lines = file.readlines()
    with open(path, "w") as file:  # The relevant documents become the others.
        file.writelines(("0" if line[0] > "0" else "1") + line[1:] for line in lines)
    again = dataclasses.replace(job)
    assert again.file != job.file and not jobs.is_done(again, tmp_path)
    jobs.run_job(again, tmp_path)
    before, after = (experiments.read_result(each, tmp_path).arrays for each in (job, again))
    np.testing.assert_array_equal(before["test_scores"], after["test_scores"])
    assert (before["test_metrics"] != after["test_metrics"]).any()


def with_one_name_twice(content):
    return b"test_queries".join(content.rsplit(b"test_metrics", 1))  # in the directory of the archive


@pytest.mark.parametrize("damage", [lambda content: content[:-9], lambda content: b"x" * 200, with_one_name_twice])
def test_a_damaged_result_is_named_and_its_job_runs_again(tiny, tmp_path, damage):
    job, other = (experiments.Job(tiny, "Fold1", name, {}) for name in ("ridge", "random"))
    assert experiments.run_jobs([job, other], tmp_path, workers=0) == []
    path, scores = jobs.result_path(job, tmp_path), experiments.read_result(job, tmp_path).arrays["test_scores"]
    path.write_bytes(damage(path.read_bytes()))
    study = experiments.Study([tiny], [experiments.Entry("ridge", {"strength": 0.01})], tmp_path)
    with pytest.warns(UserWarning, match=f"The result .*{path.name} is damaged: its job runs again."):
        assert study.run(workers=0) == []
    np.testing.assert_array_equal(experiments.read_result(job, tmp_path).arrays["test_scores"], scores)


def test_a_result_contains_scores_and_their_metrics(dataset, fold, tmp_path):
    job = experiments.Job(dataset, "Fold1", "ridge", {"strength": 0.1})
    assert not jobs.is_done(job, tmp_path)
    jobs.run_job(job, tmp_path)
    assert jobs.is_done(job, tmp_path)
    result = experiments.read_result(job, tmp_path)
    for split in ("valid", "test"):
        scores = result.arrays[f"{split}_scores"]
        by_query = evaluation.trec_eval_by_query(getattr(fold, split).scored(scores), experiments.MEASURES)
        assert result.arrays[f"{split}_queries"].tolist() == list(by_query)
        expected = [[values[name] for name in experiments.MEASURES] for values in by_query.values()]
        np.testing.assert_array_equal(result.arrays[f"{split}_metrics"], expected)
        if split == "valid":
            assert list(result.description["valid"].values()) == pytest.approx(np.mean(expected, axis=0).tolist())
    assert result.description["settings"] == {"strength": 0.1}
    assert "test" not in result.description  # Selection reads the description, so it must not contain test metrics.
    (folder,) = {path.parent for path in (tmp_path / "results").rglob("*.npz")}
    assert [path.name for path in folder.iterdir()] == [jobs.result_path(job, tmp_path).name]
