"""The synthetic data set has the documented properties."""

import hashlib
from typing import NamedTuple

import numpy as np
import pytest

from tfr_smooth.data import read_letor
from tfr_smooth.data.reading.synthetic import write_synthetic_letor

SMALL = {"num_queries": (6, 3, 2), "num_features": 17, "max_documents": 9}


class Data(NamedTuple):
    features: np.ndarray
    labels: np.ndarray
    queries: np.ndarray  # 0, 0, ..., 1, ...: ascending
    lengths: np.ndarray


def parse(path):
    lists = read_letor(path, cache_dir=path.parent / "cache")
    queries = np.repeat(np.arange(len(lists)), lists.lengths)
    return Data(lists.values("features"), lists.values("label").astype(int), queries, lists.lengths)


@pytest.fixture(scope="module")
def default(tmp_path_factory):
    paths = write_synthetic_letor(tmp_path_factory.mktemp("default"))
    return {name: parse(path) for name, path in paths.items()}


def digest(paths):
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths.values())).hexdigest()


def centered(values, data):
    """Values minus their mean over the query."""
    return values - (np.bincount(data.queries, values) / data.lengths)[data.queries]


def correlation(x, y):
    return np.corrcoef(x, y)[0, 1]


def ndcg(scores, data):
    """Mean NDCG with linear gain over all queries; 0 for those without a relevant document."""
    total = 0.0
    for query in range(len(data.lengths)):
        labels = data.labels[data.queries == query]
        discounts = 1.0 / np.log2(np.arange(len(labels)) + 2.0)
        best = np.sort(labels)[::-1] @ discounts
        order = np.argsort(-scores[data.queries == query], kind="stable")
        total += labels[order] @ discounts / best if best else 0.0
    return total / len(data.lengths)


def test_the_seed_determines_the_bytes(tmp_path):
    paths = write_synthetic_letor(tmp_path / "a", seed=3, **SMALL)
    assert digest(paths) == "811e6675e20dec4ec17d9c4fc20fb07b5be938a45645cbb059fdf84ef31b1581"
    assert digest(write_synthetic_letor(tmp_path / "b", seed=3, **SMALL)) == digest(paths)
    assert digest(write_synthetic_letor(tmp_path / "b", seed=4, **SMALL)) != digest(paths)


def test_the_size_of_one_file_does_not_change_another_file(tmp_path):
    few = write_synthetic_letor(tmp_path / "few", num_queries=(2, 3, 4))
    many = write_synthetic_letor(tmp_path / "many", num_queries=(9, 3, 4))
    assert np.array_equal(parse(few["test"]).features, parse(many["test"]).features)


@pytest.mark.parametrize("name", ["train", "test"])
def test_lists_are_skewed_labels_mostly_0_and_some_features_misleading(default, name):
    data = default[name]
    assert len(data.lengths) == {"train": 800, "test": 300}[name] and data.features.shape[1] == 32
    assert data.lengths.min() == 1 and data.lengths.max() == 200
    assert 25 < data.lengths.mean() < 40 and np.median(data.lengths) < 0.85 * data.lengths.mean()
    shares = np.bincount(data.labels) / len(data.labels)
    assert len(shares) == 5 and 0.6 < shares[0] < 0.8 and shares[1:].min() > 0.04
    relevant = np.bincount(data.queries, data.labels) > 0
    assert 0.1 < 1.0 - relevant.mean() < 0.3
    assert (~relevant & (data.lengths > 5)).any()  # not only because the list is short
    for column in data.features[:, [7, 12, 20, 28]].T:  # rise with labels overall, and fall within queries
        assert correlation(column, data.labels) > 0.2
        assert correlation(centered(column, data), centered(data.labels, data)) < -0.05


def test_only_non_linear_scorers_rank_well(default):
    train, test = default["train"], default["test"]
    x = test.features
    formula = 3.0 / (1.0 + 6.0 * (x[:, 0] - 0.7) ** 2) + x[:, 1] * x[:, 2] + x[:, 5] * x[:, 3]

    center, spread = train.features.mean(axis=0), train.features.std(axis=0) + 1e-9
    design = (train.features - center) / spread
    weights = np.linalg.lstsq(design, train.labels - train.labels.mean(), rcond=None)[0]
    linear = ndcg((x - center) / spread @ weights, test)

    # The mean over several random orders, since a single one may be lucky.
    random = np.random.RandomState(0)
    chance = np.mean([ndcg(random.random_sample(len(x)), test) for _ in range(5)])
    assert linear > chance + 0.02
    assert ndcg(formula, test) > linear + 0.15
    assert ndcg(test.labels, test) > ndcg(formula, test) + 0.02  # noise keeps the formula from being perfect


def test_the_smallest_data_set_has_lists_of_1_and_2_documents(tmp_path):
    paths = write_synthetic_letor(tmp_path, num_queries=(2, 2, 2), num_features=16, max_documents=2)
    for data in map(parse, paths.values()):
        assert data.features.shape == (3, 16) and data.lengths.tolist() == [1, 2]


def test_bad_arguments_are_refused_before_anything_is_written(tmp_path):
    for arguments, message in (
        ({"seed": 2**32}, "`seed` must be an integer <= 4294967295, got 4294967296"),
        ({"num_queries": (5, 5)}, r"`num_queries` must be three integers .*, got \(5, 5\)"),
        ({"num_queries": (5, 1, 5)}, "`num_queries` must be an integer >= 2, got 1"),
        ({"num_features": 15}, "`num_features` must be an integer >= 16, got 15"),
    ):
        with pytest.raises(ValueError, match=message):
            write_synthetic_letor(tmp_path / "data", **arguments)
    assert not (tmp_path / "data").exists()
