"""The data of a study: data sets, their folds, and the queries of a fold in memory."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tfr_smooth import data, evaluation

SPLITS = ("train", "valid", "test")
_FILES = {"train": "train.txt", "valid": "vali.txt", "test": "test.txt"}
# LETOR has five files. Each fold trains on three, validates on the next and tests on the last; the files rotate.
_LETOR_FILES = 5


def check_name(argument: str, name: str) -> str:
    """Returns the name of a data set or fold, which is also that of a folder, or raises a `ValueError`."""
    if not isinstance(name, str) or not re.fullmatch(r"\w[\w .+=-]*", name):
        raise ValueError(f"`{argument}` must be letters, digits, spaces and _ . + = -, not first, got {name!r}.")
    return name


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A data set: for each fold name, the paths of the LETOR files of "train", "valid" and "test"."""

    name: str
    folds: Mapping[str, Mapping[str, tuple[str, ...]]]

    def __post_init__(self) -> None:
        """Checks the names."""
        for argument, name in (("name", self.name), *(("folds", fold) for fold in self.folds)):
            check_name(argument, name)

    def digests(self, fold: str) -> dict[str, str]:
        """Returns a hash of the contents of the files of "train", "valid" and "test"."""
        return {split: digest(paths) for split, paths in self.folds[fold].items()}


def digest(paths: Iterable[str]) -> str:
    """Returns a hash of the contents of files. In a process, unchanged files are read once."""
    return _digest(tuple((path, os.stat(path).st_size, os.stat(path).st_mtime_ns) for path in paths))


@functools.lru_cache(maxsize=1024)
def _digest(files: tuple[tuple[str, int, int], ...]) -> str:
    checksum = hashlib.sha256()
    for path, *_ in files:
        with open(path, "rb") as file:
            while chunk := file.read(1 << 20):
                checksum.update(chunk)
        checksum.update(b"end of a file")
    return checksum.hexdigest()[:16]


def find_folds(folder: str | os.PathLike[str], *, name: str | None = None) -> Dataset:
    """Finds the folds of a data set.

    Args:
      folder: A folder that contains `Fold1` .. `FoldK`, each with `train.txt`, `vali.txt` and `test.txt`, or LETOR's
        `S1.txt` .. `S5.txt`. Of these, fold 1 trains on S1 to S3, validates on S4 and tests on S5; fold 2 trains on S2
        to S4, and so on. The files may be compressed (`.gz`).
      name: Name of the data set; None uses the name of the folder.

    Raises:
      ValueError: If the folder contains neither, or lacks a file, which the message names.
    """
    folder = Path(folder)
    name = folder.resolve().name if name is None else name
    numbered = [_file(folder / f"S{number}.txt") for number in range(1, _LETOR_FILES + 1)]
    if all(numbered):
        folds = {}
        for fold in range(_LETOR_FILES):
            first, second, third, valid, test = map(str, numbered[fold:] + numbered[:fold])
            folds[f"Fold{fold + 1}"] = {"train": (first, second, third), "valid": (valid,), "test": (test,)}
        return Dataset(name, folds)
    folds = {}
    for path in sorted(folder.glob("Fold*"), key=lambda path: (len(path.name), path.name)):
        files = {split: _file(path / file) for split, file in _FILES.items()}
        if missing := ", ".join(_FILES[split] for split, file in files.items() if not file):
            raise ValueError(
                f"`folder` must contain train.txt, vali.txt and test.txt in each fold, got {path} without {missing}."
            )
        folds[path.name] = {split: (str(file),) for split, file in files.items()}
    if not folds:
        missing = ", ".join(f"S{number}.txt" for number, path in enumerate(numbered, start=1) if not path)
        got = f"{folder} without {missing}" if any(numbered) else f"{folder}"
        raise ValueError(f"`folder` must contain Fold1 .. FoldK or S1.txt .. S5.txt, got {got}; see docs/data_sets.md.")
    return Dataset(name, folds)


def _file(path: Path) -> Path | None:
    return next((file for file in (path, path.with_name(path.name + ".gz")) if file.is_file()), None)


def one_split(
    train: str | Sequence[str], valid: str | Sequence[str], test: str | Sequence[str], *, name: str = "data"
) -> Dataset:
    """Returns a data set with a single fold, "Fold1", from paths or glob patterns of LETOR files."""
    files = {split: tuple(data.expand_paths(given)) for split, given in zip(SPLITS, (train, valid, test), strict=True)}
    return Dataset(name, {"Fold1": files})


class Queries(NamedTuple):
    """Queries without padding: the documents of each one follow those of the one before."""

    features: np.ndarray  # float32 [documents, num_features]
    labels: np.ndarray  # float32 [documents]
    lengths: np.ndarray  # documents per query, int64 [queries]
    query_ids: list[str]
    doc_ids: np.ndarray  # bytes [documents]

    @property
    def qid(self) -> np.ndarray:
        """The index of each document's query, int64 [documents]."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def scored(self, scores: np.ndarray, *, relevance_level: int = 0) -> Iterator[evaluation.ScoredQuery]:
        """Yields each query with its scores, from [documents]; labels become 0 or 1 with a level > 0."""
        labels = (self.labels >= relevance_level) * 1.0 if relevance_level else self.labels
        ends = np.cumsum(self.lengths)
        for query_id, start, end in zip(self.query_ids, ends - self.lengths, ends, strict=True):
            names = evaluation.document_names(list(self.doc_ids[start:end]))
            yield evaluation.ScoredQuery(query_id, names, labels[start:end], scores[start:end])


class Fold(NamedTuple):
    """The queries of a fold."""

    train: Queries
    valid: Queries
    test: Queries


def load_fold(files: Mapping[str, Sequence[str]], cache_dir: str | os.PathLike[str] | None = None) -> Fold:
    """Reads the files of "train", "valid" and "test"; the training files define the number of features.

    `cache_dir` is that of `data.read_letor`.
    """
    train = _read(files["train"], None, cache_dir)
    valid, test = (_read(files[split], train.features.shape[1], cache_dir) for split in SPLITS[1:])
    return Fold(train, valid, test)


def _read(paths: Sequence[str], num_features: int | None, cache_dir: str | os.PathLike[str] | None) -> Queries:
    lists = data.read_letor(list(paths), num_features=num_features, cache_dir=cache_dir)
    features, labels, doc_ids = (lists.values(name) for name in ("features", "label", "document_id"))
    return Queries(features, labels, lists.lengths, lists.query_ids.to_pylist(), doc_ids)
