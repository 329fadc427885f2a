"""Jobs: computations whose results are stored in files, so that each runs only once."""

from __future__ import annotations

import abc
import dataclasses
import functools
import hashlib
import io
import json
import os
import re
import shutil
import time
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

import tfr_smooth
from experiments.files import write
from experiments.folds import Dataset, Fold, Queries, load_fold
from experiments.rankers import RANKERS
from tfr_smooth import evaluation

MEASURES = ("P_1", "P_5", "P_10", "ndcg_cut_1", "ndcg_cut_5", "ndcg_cut_10", "ndcg", "map")
_NAME = 80  # the most characters of the settings in a file name; operating systems limit its length


class Result(NamedTuple):
    """The stored result of a job: JSON values, and arrays."""

    description: dict[str, Any]
    arrays: Mapping[str, Any]


class StoredJob(abc.ABC):
    """A computation whose result is stored in a file."""

    @property
    @abc.abstractmethod
    def description(self) -> dict[str, Any]:
        """The values that identify this job, as JSON values; among them `dataset`, `fold` and `seed`."""

    @property
    @abc.abstractmethod
    def readable(self) -> str:
        """The start of the file name."""

    @abc.abstractmethod
    def compute(self, cache: Path, unfinished: Path) -> Result:
        """Computes the result; its description contains only what `description` lacks.

        Args:
          cache: Folder for files that jobs share.
          unfinished: Folder for the state of this job, with which it can resume; removed when the result is stored.
        """

    @functools.cached_property
    def file(self) -> str:
        """The path of the result below the folder of results: readable settings, then a hash of the description."""
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
      relevance_level: The least label of relevant documents in binary measures, >= 1.
    """

    dataset: Dataset
    fold: str
    ranker: str
    settings: Mapping[str, Any]
    seed: int = 0
    relevance_level: int = 1

    @functools.cached_property
    def description(self) -> dict[str, Any]:
        """The values that identify this job: also the contents of the files, and the default settings."""
        return {
            "dataset": self.dataset.name,
            "fold": self.fold,
            "files": self.dataset.digests(self.fold),
            "ranker": self.ranker,
            "settings": json.loads(json.dumps({**RANKERS[self.ranker].defaults, **self.settings})),
            "seed": self.seed,
            "relevance_level": self.relevance_level,
        }

    @property
    def readable(self) -> str:
        """The ranker, and its settings other than the defaults."""
        defaults = json.loads(json.dumps(dict(RANKERS[self.ranker].defaults)))
        changed = {name: value for name, value in self.description["settings"].items() if value != defaults[name]}
        return "_".join([self.ranker, *(f"{name}={value}" for name, value in sorted(changed.items()))])

    def compute(self, cache: Path, unfinished: Path) -> Result:
        """Fits the ranker and computes the metrics of its scores."""
        fold = _fold(json.dumps([self.dataset.folds[self.fold], self.description["files"]]), str(cache))
        started = time.process_time()
        ranker = RANKERS[self.ranker]
        ranker.check(self.settings)
        fitted = ranker.fit(fold, self.settings, self.seed)
        seconds = time.process_time() - started
        arrays: dict[str, Any] = {f"curve_{name}": np.asarray(each, np.float64) for name, each in fitted.curves.items()}
        for split, queries, scores in (("valid", fold.valid, fitted.valid), ("test", fold.test, fitted.test)):
            scores = np.nan_to_num(np.asarray(scores, np.float32))
            by_query = measures_by_query(queries, scores, self.relevance_level)
            arrays |= {
                f"{split}_scores": scores,
                f"{split}_metrics": np.array([[each[name] for name in MEASURES] for each in by_query.values()]),
                f"{split}_queries": np.array(list(by_query)),
            }
        description = {
            "valid": dict(zip(MEASURES, arrays["valid_metrics"].mean(axis=0).tolist(), strict=True)),
            "details": dict(fitted.details),
            "fit_processor_seconds": seconds,
        }
        return Result(description, arrays)


def measures_by_query(queries: Queries, scores: np.ndarray, relevance_level: int) -> dict[str, dict[str, float]]:
    """Returns `MEASURES` by query id, as trec_eval with `-l RELEVANCE_LEVEL` computes them."""
    found = evaluation.trec_eval_by_query(queries.scored(scores), MEASURES)
    if relevance_level > 1:
        names = [name for name in MEASURES if not name.startswith("ndcg")]  # NDCG has graded labels
        binary = evaluation.trec_eval_by_query(queries.scored(scores, relevance_level=relevance_level), names)
        found = {query_id: {**values, **binary[query_id]} for query_id, values in found.items()}
    return found


@functools.lru_cache(maxsize=5)
def _fold(files: str, cache_dir: str) -> Fold:
    return load_fold(json.loads(files)[0], cache_dir)


def run_job(job: StoredJob, folder: str | os.PathLike[str]) -> None:
    """Runs a job and stores its result, below `results/` in the folder of the study; `cache/` is for shared files."""
    start, cpu_start = time.perf_counter(), time.process_time()
    path = result_path(job, folder)
    unfinished = path.with_suffix("")
    details, arrays = job.compute(Path(folder) / "cache", unfinished)
    description = {
        **job.description,
        **details,
        "seconds": time.perf_counter() - start,
        "processor_seconds": time.process_time() - cpu_start,
        "versions": {"tfr_smooth": tfr_smooth.__version__, "tensorflow": tf.__version__, "numpy": np.__version__},
    }
    content = io.BytesIO()
    np.savez_compressed(content, description=np.array(json.dumps(description)), **arrays)
    write(path, content.getvalue())
    shutil.rmtree(unfinished, ignore_errors=True)


def result_path(job: StoredJob, folder: str | os.PathLike[str]) -> Path:
    """Returns the path of the result of a job."""
    return Path(folder) / "results" / job.file


def is_done(job: StoredJob, folder: str | os.PathLike[str]) -> bool:
    """Returns whether a job has a result. Warns of a damaged file, whose job then runs again."""
    path = result_path(job, folder)
    return path.is_file() and _is_whole(path, path.stat().st_mtime_ns)


@functools.cache
def _is_whole(path: Path, modified: int) -> bool:
    try:
        with zipfile.ZipFile(path) as file:  # reads all of it
            count = int.from_bytes(path.read_bytes()[-12:-10], "little")  # of its entries, which zipfile does not check
            if file.testzip() is None and "description.npy" in file.namelist() and len({*file.namelist()}) == count:
                return True
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, NotImplementedError, RuntimeError):
        pass
    warnings.warn(f"The result {path} is damaged: its job runs again.", stacklevel=3)
    return False


def read_result(job: StoredJob, folder: str | os.PathLike[str]) -> Result:
    """Reads the result of a job, or raises a `FileNotFoundError`."""
    with np.load(result_path(job, folder)) as file:
        arrays = dict(file.items())
    return Result(json.loads(str(arrays.pop("description"))), arrays)
