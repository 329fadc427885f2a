"""Jobs, the names of their result files, and the contents of results."""

import dataclasses

import numpy as np
import pytest

from tfr_smooth import evaluation, study
from tfr_smooth.study import folds, jobs


@pytest.fixture
def tiny(tmp_path):
    """Returns a data set of files of which only the sizes matter."""
    files = {}
    for part, size in (("train", 3), ("valid", 2), ("test", 1)):
        (tmp_path / part).write_bytes(b"x" * size)
        files[part] = (str(tmp_path / part),)
    return study.Dataset("tiny", {"Fold1": files})


def test_names_of_result_files_are_stable(tiny):
    """With other file names, all results of earlier versions would be computed again."""
    job = study.Job(tiny, "Fold1", "smoothi_ndcg", {"alpha": 1.0, "hidden": [8]}, 2)
    assert job.file == "tiny/Fold1/smoothi_ndcg_alpha=1.0_hidden=8_seed=2_eb8ca902c60f9090.npz"


CHANGES = [{"seed": 1}, {"ranker": "smoothi_map"}, {"fold": "Fold2"}]
CHANGES += [{"settings": {"alpha": 2.0}}, {"settings": {"alpha": 1.0, "epochs": 51}}]


def test_only_changes_of_the_result_or_the_data_change_the_name(tiny, tmp_path):
    tiny = study.Dataset("tiny", {**tiny.folds, "Fold2": tiny.folds["Fold1"]})
    job = study.Job(tiny, "Fold1", "smoothi_ndcg", {"alpha": 1.0})
    other = [dataclasses.replace(job, **change).file for change in CHANGES]
    assert len({job.file, *other}) == 1 + len(CHANGES)
    # 50 is the default value of the recipe.
    assert dataclasses.replace(job, settings={"epochs": 50, "alpha": 1.0}).file == job.file
    (tmp_path / "valid").write_bytes(b"xxx")
    assert dataclasses.replace(job).file != job.file


@pytest.mark.slow
def test_diverging_training_has_finite_scores(dataset, tmp_path):
    job = study.Job(dataset, "Fold1", "mean_squared", {"hidden": [8], "epochs": 2, "learning_rate": 1e38})
    jobs.run_job(job, tmp_path)
    assert np.isfinite(study.read_result(job, tmp_path).arrays["test_scores"]).all()


def test_a_result_contains_scores_and_their_metrics(dataset, fold, tmp_path):
    job = study.Job(dataset, "Fold1", "ridge", {"strength": 0.1})
    assert not jobs.is_done(job, tmp_path)
    jobs.run_job(job, tmp_path)
    assert jobs.is_done(job, tmp_path)
    result = study.read_result(job, tmp_path)
    for part in ("valid", "test"):
        scores = result.arrays[f"{part}_scores"]
        by_query = evaluation.trec_eval_by_query(folds.scored_queries(fold.parts[part], scores), study.MEASURES)
        assert result.arrays[f"{part}_queries"].tolist() == list(by_query)
        expected = [[values[name] for name in study.MEASURES] for values in by_query.values()]
        np.testing.assert_array_equal(result.arrays[f"{part}_metrics"], expected)
        if part == "valid":
            assert list(result.description["valid"].values()) == pytest.approx(np.mean(expected, axis=0).tolist())
    assert result.description["settings"] == {"strength": 0.1}
    assert "test" not in result.description  # Selection reads the description, so it must not contain test metrics.
    assert jobs.read_description(job, tmp_path) == result.description
    (folder,) = {path.parent for path in (tmp_path / "results").rglob("*.npz")}
    assert [path.name for path in folder.iterdir()] == [jobs.result_path(job, tmp_path).name]
