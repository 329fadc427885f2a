"""A small data set, and a completed study of it."""

import os

import pytest

from tfr_smooth import data, study
from tfr_smooth.study import jobs

RECIPE = {"hidden": [4], "epochs": 2, "batch_size": 16}
# Of one temperature, so that one graph is traced.
GRID = {"alpha": (1.0,), "learning_rate": (0.01, 0.1), "strength": (0.01, 1.0)}


def write_fold(folder, seed):
    files = data.write_synthetic_letor(folder, num_queries=(30, 12, 12), num_features=16, max_documents=12, seed=seed)
    # LETOR names the file of validation queries vali.txt.
    assert files["valid"].name == "vali.txt"


@pytest.fixture(scope="session")
def letor(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study") / "Small"
    for number in (1, 2):
        write_fold(folder / f"Fold{number}", seed=number)
    return folder


@pytest.fixture(scope="session")
def dataset(letor):
    return study.find_folds(letor)


@pytest.fixture(scope="session")
def fold(dataset):
    return jobs.load_fold(dataset.folds["Fold1"])


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory):
    """A folder that all workers of pytest-xdist share in this run."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def plan(dataset, shared_folder):
    entries = [study.Entry.parse(label) for label in ("smoothi_ndcg", "list_net", "ridge", "random")]
    plan = study.Study(
        [dataset],
        entries,
        shared_folder / "results_of_studies",  # finished jobs do not run again
        seeds=(0, 1),
        grid=GRID,
        recipe=RECIPE,
        sweeps={"alpha": study.sweep("alpha")[1:3]},
    )
    assert plan.run(workers=0) == []
    return plan


@pytest.fixture(scope="session")
def results(plan):
    return study.collect(plan, ensemble=True)
