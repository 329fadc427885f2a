"""A small data set, and a completed study of it."""

import os

import pytest

import experiments
from tests import helpers

SMALL = {"hidden": [4], "epochs": 2, "batch_size": 16}
# Of one temperature, so that one graph is traced.
GRID = {"alpha": (1.0,), "learning_rate": (0.01, 0.1), "strength": (0.01, 1.0)}


@pytest.fixture(scope="session")
def letor(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study") / "Small"
    return helpers.write_folds(folder, num_queries=(30, 12, 12), max_documents=12)


@pytest.fixture(scope="session")
def dataset(letor):
    return experiments.find_folds(letor)


@pytest.fixture(scope="session")
def fold(dataset):
    return experiments.load_fold(dataset.folds["Fold1"])


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory):
    """A folder that all workers of pytest-xdist share in this run."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def plan(dataset, shared_folder):
    plan = experiments.Study(
        [dataset],
        [experiments.Entry(name) for name in ("smoothi_ndcg", "list_net", "ridge", "random")],
        shared_folder / "results_of_studies",  # finished jobs do not run again
        seeds=(0, 1),
        grid=GRID,
        settings=SMALL,
    )
    assert plan.run(workers=0) == []
    return plan


@pytest.fixture(scope="session")
def results(plan):
    return experiments.collect(plan, ensemble=True)
