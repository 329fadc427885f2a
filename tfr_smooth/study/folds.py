"""The data of a study: data sets, their folds, and the arrays of a fold."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tfr_smooth.data.letor import load_queries
from tfr_smooth.data.query_cache import QueryCache
from tfr_smooth.data.text_files import FilePattern, expand_paths
from tfr_smooth.evaluation import ScoredQuery, document_names
from tfr_smooth.models import Standardize, get_normalizer

PARTS = ("train", "valid", "test")
_FILES = {"train": "train.txt", "valid": "vali.txt", "test": "test.txt"}
# LETOR has five parts. Each fold trains on three, validates on the next and tests on the last; the parts rotate.
_LETOR_PARTS = 5


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A data set and its folds.

    `find_folds` and `one_split` create one.

    Args:
      name: Name of the data set in the results.
      folds: For each fold name, the paths of the LETOR files of "train", "valid" and "test".

    Example:
      >>> from tfr_smooth import study
      >>> files = {"train": ("train.txt",), "valid": ("vali.txt",), "test": ("test.txt",)}
      >>> study.Dataset("mine", {"Fold1": files}).folds["Fold1"]["valid"]
      ('vali.txt',)
    """

    name: str
    folds: Mapping[str, Mapping[str, tuple[str, ...]]]

    def sizes(self, fold: str) -> dict[str, list[int]]:
        """Returns the sizes of a fold's files in bytes, which distinguish data sets with the same name.

        Args:
          fold: Name of the fold.

        Returns:
          The sizes of the files, in order, of "train", "valid" and "test".
        """
        return {part: [os.stat(path).st_size for path in paths] for part, paths in self.folds[fold].items()}


def find_folds(folder: str | os.PathLike[str], *, name: str | None = None) -> Dataset:
    """Finds the folds of a data set.

    Args:
      folder: A folder that contains `Fold1` .. `FoldK`, each with `train.txt`, `vali.txt` and `test.txt`, or LETOR's
        five parts `S1.txt` .. `S5.txt`. From the parts, fold 1 trains on S1 to S3, validates on S4 and tests on S5;
        fold 2 trains on S2 to S4, and so on. The files may be compressed (`.gz`).
      name: Name of the data set; None uses the name of the folder.

    Returns:
      The data set.

    Raises:
      ValueError: If the folder contains neither, or a fold lacks a file.

    Example:
      >>> import pathlib, tempfile
      >>> from tfr_smooth import study
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> for part in range(1, 6):
      ...     (folder / f"S{part}.txt").touch()
      >>> [pathlib.Path(path).name for path in study.find_folds(folder).folds["Fold2"]["train"]]
      ['S2.txt', 'S3.txt', 'S4.txt']
    """
    folder = Path(folder)
    name = name or folder.resolve().name
    parts = [_file(folder / f"S{part}.txt") for part in range(1, _LETOR_PARTS + 1)]
    if all(parts):
        turned = {f"Fold{fold + 1}": parts[fold:] + parts[:fold] for fold in range(_LETOR_PARTS)}
        return Dataset(
            name,
            {
                fold: {"train": tuple(map(str, files[:3])), "valid": (str(files[3]),), "test": (str(files[4]),)}
                for fold, files in turned.items()
            },
        )
    folds = {}
    for fold in sorted(folder.glob("Fold*"), key=lambda path: (len(path.name), path.name)):
        files = {part: _file(fold / file) for part, file in _FILES.items()}
        if not all(files.values()):
            missing = ", ".join(_FILES[part] for part, file in files.items() if not file)
            raise ValueError(
                f"`folder` must contain train.txt, vali.txt and test.txt in each fold, got {fold} without {missing}."
            )
        folds[fold.name] = {part: (str(path),) for part, path in files.items()}
    if not folds:
        raise ValueError(f"`folder` must contain Fold1 .. FoldK or S1.txt .. S5.txt, got {folder}.")
    return Dataset(name, folds)


def one_split(train: FilePattern, valid: FilePattern, test: FilePattern, *, name: str = "data") -> Dataset:
    """Returns a data set with a single split, as the fold "Fold1".

    Args:
      train: Training files in the LETOR format: a path, a glob pattern or a list of these.
      valid: Validation files, in the same form.
      test: Test files, in the same form.
      name: Name of the data set.

    Returns:
      The data set.

    Raises:
      ValueError: If a pattern matches no file.

    Example:
      >>> import tempfile
      >>> from tfr_smooth import data, study
      >>> files = data.write_synthetic_letor(tempfile.mkdtemp(), num_queries=(4, 2, 2))
      >>> list(study.one_split(files["train"], files["valid"], files["test"]).folds)
      ['Fold1']
    """
    patterns = dict(zip(PARTS, (train, valid, test), strict=True))
    return Dataset(name, {"Fold1": {part: tuple(expand_paths(pattern)) for part, pattern in patterns.items()}})


def _file(path: Path) -> Path | None:
    return next((file for file in (path, path.with_name(path.name + ".gz")) if file.is_file()), None)


class Fold:
    """The queries of a fold, in memory.

    Args:
      parts: The queries of "train", "valid" and "test".

    Attributes:
      parts: The queries of each part, with `features` [documents, num_features], `labels` [documents], `lengths`
        [queries] and `starts` [queries + 1].
    """

    def __init__(self, parts: Mapping[str, QueryCache]) -> None:
        self.parts = dict(parts)
        self._features: dict[str | None, dict[str, np.ndarray]] = {}

    def features(self, normalization: str | None) -> dict[str, np.ndarray]:
        """Returns the normalized features of each part, float32 [documents, num_features]."""
        if normalization not in self._features:
            self._features[normalization] = dict(self._normalized(normalization))
        return self._features[normalization]

    def _normalized(self, normalization: str | None) -> Iterator[tuple[str, np.ndarray]]:
        train = self.parts["train"].features
        normalize: Callable[[np.ndarray], np.ndarray]
        if normalization is None:
            normalize = np.asarray
        else:
            layer = get_normalizer(normalization)
            assert layer is not None
            if isinstance(layer, Standardize):
                layer.adapt([{"features": train[np.newaxis]}])

            def normalize(features: np.ndarray) -> np.ndarray:
                return layer(features[np.newaxis]).numpy()[0]

        for name, part in self.parts.items():
            # Query by query, as "min_max" requires.
            lists = [normalize(part.features[start:end]) for start, end in zip(part.starts, part.starts[1:])]  # noqa: B905
            yield name, np.concatenate(lists).astype(np.float32)


def load_fold(files: Mapping[str, Sequence[str]], cache_dir: str | os.PathLike[str] | None = None) -> Fold:
    """Reads a fold; the training files define the number of features.

    Args:
      files: The files of "train", "valid" and "test".
      cache_dir: Folder for binary copies of the files, as in `data.read_letor`; None parses the files each time.
    """
    train = load_queries(cache_dir, list(files["train"]), None)
    others = {part: load_queries(cache_dir, list(files[part]), train.num_features) for part in PARTS[1:]}
    return Fold({"train": train, **others})


def scored_queries(part: QueryCache, scores: np.ndarray) -> Iterator[ScoredQuery]:
    """Yields the queries with their scores, from scores [documents], for `evaluation.trec_eval`."""
    for query, (start, end) in enumerate(zip(part.starts, part.starts[1:])):  # noqa: B905
        names = document_names(list(part.doc_ids[start:end]))
        yield ScoredQuery(part.query_ids[query].decode(), names, part.labels[start:end], scores[start:end])


def padded(part: QueryCache, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the indices of each query's documents and their labels, [queries, length]; both are -1 for padding."""
    places = np.arange(length)
    real = places < part.lengths[:, np.newaxis]
    documents = np.where(real, part.starts[:-1, np.newaxis] + places, -1).astype(np.int32)
    labels = np.where(real, part.labels[documents], -1.0).astype(np.float32)
    return documents, labels
