"""Data sets, folds and their queries."""

import numpy as np
import pytest

import experiments


def test_folds_are_found_in_numeric_order_and_missing_folds_or_files_raise(tmp_path):
    with pytest.raises(ValueError, match="`folder` must contain Fold1 .. FoldK or S1.txt .. S5.txt, got"):
        experiments.find_folds(tmp_path)
    for number in (1, 2, 10):
        for name in ("train.txt", "vali.txt.gz", "test.txt"):
            (tmp_path / f"Fold{number}").mkdir(exist_ok=True)
            (tmp_path / f"Fold{number}" / name).touch()
    found = experiments.find_folds(tmp_path)
    assert list(found.folds) == ["Fold1", "Fold2", "Fold10"]
    assert found.folds["Fold2"]["valid"] == (str(tmp_path / "Fold2/vali.txt.gz"),)
    (tmp_path / "Fold3").mkdir()
    with pytest.raises(ValueError, match="`folder` must contain train.txt, vali.txt and test.txt in each fold, got"):
        experiments.find_folds(tmp_path)


def test_five_parts_are_rotated_into_folds_like_in_letor(tmp_path):
    for number in range(1, 6):
        if number == 5:
            with pytest.raises(ValueError, match="S1.txt .. S5.txt, got .* without S5.txt; see"):
                experiments.find_folds(tmp_path)
        (tmp_path / f"S{number}.txt.gz").touch()
    found = experiments.find_folds(tmp_path, name="MQ")
    numbers = [[[int(path[-8]) for path in paths] for paths in parts.values()] for parts in found.folds.values()]
    assert found.name == "MQ" and [*found.folds["Fold1"]] == ["train", "valid", "test"]
    assert numbers[0] == [[1, 2, 3], [4], [5]] and numbers[3] == [[4, 5, 1], [2], [3]]


def test_names_that_are_no_folder_are_refused():
    for name in ("", "../evil", "a\\b", ".hidden", "a\nb", "<script>"):
        with pytest.raises(ValueError, match="must be letters, digits, spaces and"):
            experiments.Dataset("good", {name: {}})


def test_queries_have_every_document_once_in_order(fold, dataset):
    (path,) = dataset.folds["Fold1"]["test"]
    with open(path) as file:
        lines = [line.split() for line in file]
    queries = fold.test
    assert queries.labels.tolist() == [float(line[0]) for line in lines]
    assert [queries.query_ids[number] for number in queries.qid] == [line[1].removeprefix("qid:") for line in lines]
    for row, line in zip(queries.features, lines, strict=True):
        values = dict(item.split(":") for item in line[2:18])
        np.testing.assert_allclose(row, [float(values.get(str(index), 0)) for index in range(1, 17)], rtol=1e-6)
    scored = list(queries.scored(np.arange(len(lines)), relevance_level=2))
    assert np.concatenate([each.scores for each in scored]).tolist() == list(range(len(lines)))
    assert np.concatenate([each.labels for each in scored]).tolist() == [float(line[0] >= "2") for line in lines]
