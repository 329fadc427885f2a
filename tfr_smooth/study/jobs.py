"""Jobs of a study: their definition, their execution, and the files of their results."""

from __future__ import annotations

import abc
import dataclasses
import functools
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfr_smooth import _files, evaluation
from tfr_smooth._version import __version__
from tfr_smooth.study.folds import Dataset, Fold, load_fold, scored_queries
from tfr_smooth.study.rankers import RANKERS

MEASURES = ("P_1", "P_5", "P_10", "ndcg_cut_1", "ndcg_cut_5", "ndcg_cut_10", "ndcg", "map")
_FORMAT = 1
_NAME = 80  # the most characters of the settings in a file name; operating systems limit its length


class StoredJob(abc.ABC):
    """A computation whose result is stored in a file, so that it runs only once."""

    @property
    @abc.abstractmethod
    def description(self) -> dict[str, Any]:
        """The values that identify this job, as JSON values; among them `dataset`, `fold` and `seed`."""

    @property
    @abc.abstractmethod
    def readable(self) -> str:
        """The start of the file name."""

    @property
    def affinity(self) -> str:
        """A key: jobs with the same key run fastest one after another in the same process."""
        return ""

    @abc.abstractmethod
    def compute(self, cache: Path, unfinished: Path) -> Result:
        """Computes the result; its description contains only what `description` lacks.

        Args:
          cache: Folder for files that jobs share.
          unfinished: Folder for the state of this job, with which it can resume; removed when the result is stored.
        """

    @functools.cached_property
    def file(self) -> str:
        """The file name of the result: readable settings, then a hash of the description."""
        values = self.description
        readable = re.sub(r"[^\w=.+-]+", "", self.readable)[:_NAME]
        digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]
        return f"{values['dataset']}/{values['fold']}/{readable}_seed={values['seed']}_{digest}.npz"


@dataclasses.dataclass(frozen=True)
class Job(StoredJob):
    """One run of a ranker on one fold.

    Args:
      dataset: The data set.
      fold: Name of one of its folds.
      ranker: Name of a ranker in `RANKERS`.
      settings: The settings that differ from the ranker's defaults, as JSON values by name.
      seed: Random seed, an integer >= 0.

    Example:
      >>> import tempfile
      >>> from tfr_smooth import data, study
      >>> files = data.write_synthetic_letor(tempfile.mkdtemp(), num_queries=(4, 2, 2))
      >>> dataset = study.one_split(files["train"], files["valid"], files["test"])
      >>> study.Job(dataset, "Fold1", "ridge", {"strength": 0.1}).description["settings"]
      {'strength': 0.1}
    """

    dataset: Dataset
    fold: str
    ranker: str
    settings: Mapping[str, Any]
    seed: int = 0

    @functools.cached_property
    def description(self) -> dict[str, Any]:
        """The values that identify this job, as JSON values."""
        return {
            "format": _FORMAT,
            "dataset": self.dataset.name,
            "fold": self.fold,
            "sizes": self.dataset.sizes(self.fold),
            "ranker": self.ranker,
            "settings": RANKERS[self.ranker].canonical(self.settings),
            "seed": self.seed,
        }

    @property
    def readable(self) -> str:
        """Ranker and settings."""
        settings = sorted(self.description["settings"].items())
        return f"{self.ranker}_" + "_".join(f"{name}={value}" for name, value in settings)

    @property
    def affinity(self) -> str:
        """A key: jobs with the same key run fastest one after another in the same process."""
        parts = [self.dataset.name, self.ranker, RANKERS[self.ranker].affinity(self.settings)]
        return json.dumps(parts, sort_keys=True)

    def compute(self, cache: Path, unfinished: Path) -> Result:
        """Fits the ranker and computes the metrics of its scores."""
        fold = _fold(json.dumps(self.dataset.folds[self.fold]), str(cache))
        loaded = time.process_time()
        ranker = RANKERS[self.ranker]
        ranker.check(self.settings)
        fitted = ranker.fit(fold, self.settings, self.seed)
        arrays: dict[str, Any] = {f"curve_{name}": np.asarray(each, np.float64) for name, each in fitted.curves.items()}
        for part, scores in (("valid", fitted.valid), ("test", fitted.test)):
            scores = np.nan_to_num(np.asarray(scores, np.float32))
            by_query = evaluation.trec_eval_by_query(scored_queries(fold.parts[part], scores), MEASURES)
            arrays |= {
                f"{part}_scores": scores,
                f"{part}_metrics": np.array([[each[name] for name in MEASURES] for each in by_query.values()]),
                f"{part}_queries": np.array(list(by_query)),
            }
        description = {
            "measures": MEASURES,
            "valid": dict(zip(MEASURES, arrays["valid_metrics"].mean(axis=0).tolist(), strict=True)),
            "details": dict(fitted.details),
            "fit_processor_seconds": time.process_time() - loaded,
        }
        return Result(description, arrays)


class Result(NamedTuple):
    """The stored result of a job, as `read_result` returns it.

    Attributes:
      description: Settings, best epoch, mean validation metrics, times in seconds and package versions, as JSON values.
      arrays: `valid_scores` and `test_scores`, [documents]; `valid_metrics` and `test_metrics`, [queries, measures] in
        the order of `MEASURES`; `valid_queries` and `test_queries`, the query ids, [queries]; and `curve_NAME`,
        [epochs].

    Example:
      >>> import numpy as np
      >>> from tfr_smooth import study
      >>> result = study.Result({"seed": 0}, {"test_metrics": np.zeros([10, len(study.MEASURES)])})
      >>> dict(zip(study.MEASURES, result.arrays["test_metrics"].mean(axis=0).tolist()))["map"]
      0.0
    """

    description: dict[str, Any]
    arrays: Mapping[str, Any]


def run_job(job: StoredJob, folder: str | os.PathLike[str]) -> None:
    """Runs a job and writes its result atomically, below `results/` in the folder; `cache/` is for shared files."""
    start, cpu_start = time.perf_counter(), time.process_time()
    path = result_path(job, folder)
    unfinished = path.with_suffix("")
    details, arrays = job.compute(Path(folder) / "cache", unfinished)
    description = {
        **job.description,
        **details,
        "seconds": time.perf_counter() - start,
        "processor_seconds": time.process_time() - cpu_start,
        "versions": {"tfr_smooth": __version__, "tensorflow": tf.__version__, "numpy": np.__version__},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with _files.replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, description=np.array(json.dumps(description)), **arrays)
    shutil.rmtree(unfinished, ignore_errors=True)


def result_path(job: StoredJob, folder: str | os.PathLike[str]) -> Path:
    """Returns the path of the result of a job."""
    return Path(folder) / "results" / job.file


def is_done(job: StoredJob, folder: str | os.PathLike[str]) -> bool:
    """Returns whether a job has a result."""
    return result_path(job, folder).is_file()


def read_description(job: StoredJob, folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads only the description of a job's result."""
    with np.load(result_path(job, folder)) as file:
        return json.loads(str(file["description"]))


def read_result(job: StoredJob, folder: str | os.PathLike[str]) -> Result:
    """Reads the result of a job.

    Args:
      job: The job.
      folder: The folder of the study.

    Returns:
      The result.

    Raises:
      FileNotFoundError: If the job has no result yet.

    Example:
      >>> import tempfile
      >>> from tfr_smooth import data, study
      >>> folder = tempfile.mkdtemp()
      >>> files = data.write_synthetic_letor(folder, num_queries=(4, 2, 2))
      >>> job = study.Job(study.one_split(files["train"], files["valid"], files["test"]), "Fold1", "random", {})
      >>> failures = study.run_jobs([job], folder, workers=0)
      >>> study.read_result(job, folder).description["ranker"]
      'random'
    """
    with np.load(result_path(job, folder)) as file:
        arrays = dict(file.items())
    return Result(json.loads(str(arrays.pop("description"))), arrays)


@functools.lru_cache(maxsize=5)
def _fold(files: str, cache_dir: str) -> Fold:
    return load_fold(json.loads(files), cache_dir)
