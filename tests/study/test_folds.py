"""Data sets, folds and normalized features."""

import numpy as np
import pytest

from tfr_smooth import study
from tfr_smooth.models import QueryMinMax
from tfr_smooth.study import folds


def test_folds_are_found_in_numeric_order(tmp_path):
    for number in (1, 2, 10):
        for name in ("train.txt", "vali.txt.gz", "test.txt"):
            (tmp_path / f"Fold{number}").mkdir(exist_ok=True)
            (tmp_path / f"Fold{number}" / name).touch()
    found = study.find_folds(tmp_path)
    assert list(found.folds) == ["Fold1", "Fold2", "Fold10"]
    assert found.folds["Fold2"]["valid"] == (str(tmp_path / "Fold2/vali.txt.gz"),)


def test_five_parts_are_rotated_into_folds_like_in_letor(tmp_path):
    for number in range(1, 6):
        (tmp_path / f"S{number}.txt.gz").touch()
    found = study.find_folds(tmp_path, name="MQ")
    numbers = {
        fold: {part: [int(path[-8]) for path in paths] for part, paths in parts.items()}
        for fold, parts in found.folds.items()
    }
    assert found.name == "MQ"
    assert numbers["Fold1"] == {"train": [1, 2, 3], "valid": [4], "test": [5]}
    assert numbers["Fold4"] == {"train": [4, 5, 1], "valid": [2], "test": [3]}
    for part in ("valid", "test"):
        assert sorted(fold[part][0] for fold in numbers.values()) == [1, 2, 3, 4, 5]


def test_missing_folds_or_files_raise(tmp_path):
    with pytest.raises(ValueError, match="`folder` must contain Fold1 .. FoldK or S1.txt .. S5.txt, got"):
        study.find_folds(tmp_path)
    (tmp_path / "Fold1").mkdir()
    with pytest.raises(ValueError, match="`folder` must contain train.txt, vali.txt and test.txt in each fold, got"):
        study.find_folds(tmp_path)


def test_normalization_equals_that_of_the_layers(fold):
    part = fold.parts["test"]
    first, last = part.starts[3], part.starts[4]
    expected = QueryMinMax()(part.features[np.newaxis, first:last])[0]
    np.testing.assert_array_equal(fold.features("min_max")["test"][first:last], expected)
    train = fold.features("standardize")["train"]
    np.testing.assert_allclose(train.mean(axis=0), 0.0, atol=1e-5)
    varies = np.ptp(fold.parts["train"].features, axis=0) > 0.0
    np.testing.assert_allclose(train.std(axis=0), varies, rtol=1e-4)
    assert fold.features(None)["valid"].tolist() == fold.parts["valid"].features.tolist()


def test_padded_arrays_contain_every_document_once_in_order(fold):
    part = fold.parts["valid"]
    documents, labels = folds.padded(part, int(part.lengths.max()) + 3)
    assert documents.shape == labels.shape == (len(part), part.lengths.max() + 3)
    np.testing.assert_array_equal(documents[documents >= 0], np.arange(len(part.labels)))
    np.testing.assert_array_equal(labels[labels >= 0], part.labels)
    np.testing.assert_array_equal((documents >= 0).sum(axis=1), part.lengths)
    np.testing.assert_array_equal(documents < 0, labels < 0)
