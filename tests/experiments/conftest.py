"""A small data set."""

import pytest

import experiments
from tests import helpers


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
