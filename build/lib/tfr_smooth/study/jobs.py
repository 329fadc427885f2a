"""Jobs: what is run, under which name its result is kept, and what the result holds."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import re
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
_NAME = 80  # characters of the settings in a file's name, which operating systems limit


@dataclasses.dataclass(frozen=True)
class Job:
    """One ranker on one fold.

    Args:
      dataset: The data set.
      fold: Name of its fold.
      ranker: Name of the ranker.
      settings: The ranker's settings that differ from its defaults, as JSON values.
      seed: Seed of all that is random.
    """

    dataset: Dataset
    fold: str
    ranker: str
    settings: Mapping[str, Any]
    seed: int = 0

    @functools.cached_property
    def description(self) -> dict[str, Any]:
        """What tells this job from others, as JSON values."""
        return {
            "format": _FORMAT,
            "dataset": self.dataset.name,
            "fold": self.fold,
            "sizes": self.dataset.sizes(self.fold),
            "ranker": self.ranker,
            "settings": RANKERS[self.ranker].canonical(self.settings),
            "seed": self.seed,
        }

    @functools.cached_property
    def file(self) -> str:
        """The name of the result's file: readable, and ending in a hash of the description."""
        description = self.description
        settings = "_".join(f"{name}={value}" for name, value in sorted(description["settings"].items()))
        readable = re.sub(r"[^\w=.+-]+", "", f"{self.ranker}_{settings}")[:_NAME]
        text = json.dumps(description, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return f"{self.dataset.name}/{self.fold}/{readable}_seed={self.seed}_{digest}.npz"

    @property
    def affinity(self) -> str:
        """Jobs with the same one run fastest one after another in the same process."""
        parts = [self.dataset.name, self.ranker, RANKERS[self.ranker].affinity(self.settings)]
        return json.dumps(parts, sort_keys=True)


class Result(NamedTuple):
    """What is kept of a job.

    Attributes:
      description: Settings, best epoch, mean validation figures, seconds and versions, as JSON values.
      arrays: `valid_scores`, `test_scores` [documents]; `valid_metrics`, `test_metrics` [queries, measures], in the
        order of `MEASURES`; `valid_queries`, `test_queries` [queries]; `curve_NAME` [epochs].
    """

    description: dict[str, Any]
    arrays: Mapping[str, np.ndarray]


def run_job(job: Job, folder: str | os.PathLike[str]) -> None:
    """Runs a job and writes its result, atomically.

    Args:
      job: The job.
      folder: The folder of the study.
    """
    start, cpu_start = time.perf_counter(), time.process_time()
    fold = _fold(json.dumps(job.dataset.folds[job.fold]), str(Path(folder) / "cache"))
    loaded = time.process_time()
    ranker = RANKERS[job.ranker]
    ranker.check(job.settings)
    fitted = ranker.fit(fold, job.settings, job.seed)
    arrays: dict[str, Any] = {f"curve_{name}": np.asarray(values, np.float64) for name, values in fitted.curves.items()}
    means: dict[str, float] = {}
    for part, scores in (("valid", fitted.valid), ("test", fitted.test)):
        scores = np.nan_to_num(np.asarray(scores, np.float32))
        by_query = evaluation.trec_eval_by_query(scored_queries(fold.parts[part], scores), MEASURES)
        figures = np.array([[figures[name] for name in MEASURES] for figures in by_query.values()])
        arrays |= {
            f"{part}_scores": scores,
            f"{part}_metrics": figures,
            f"{part}_queries": np.array(list(by_query)),
        }
        if part == "valid":
            means = dict(zip(MEASURES, figures.mean(axis=0).tolist(), strict=True))
    description = {
        **job.description,
        "measures": MEASURES,
        "valid": means,
        "details": dict(fitted.details),
        "seconds": time.perf_counter() - start,
        "fit_processor_seconds": time.process_time() - loaded,
        "processor_seconds": time.process_time() - cpu_start,
        "versions": {"tfr_smooth": __version__, "tensorflow": tf.__version__, "numpy": np.__version__},
    }
    path = result_path(job, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    with _files.replacing(path) as unfinished, open(unfinished, "wb") as file:
        np.savez_compressed(file, description=np.array(json.dumps(description)), **arrays)


def result_path(job: Job, folder: str | os.PathLike[str]) -> Path:
    """Returns the path of a job's result."""
    return Path(folder) / "results" / job.file


def is_done(job: Job, folder: str | os.PathLike[str]) -> bool:
    """Tells whether a job has a result."""
    return result_path(job, folder).is_file()


def read_description(job: Job, folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads the description of a job's result alone."""
    with np.load(result_path(job, folder)) as file:
        return json.loads(str(file["description"]))


def read_result(job: Job, folder: str | os.PathLike[str]) -> Result:
    """Reads the result of a job."""
    with np.load(result_path(job, folder)) as file:
        arrays = dict(file.items())
    return Result(json.loads(str(arrays.pop("description"))), arrays)


@functools.lru_cache(maxsize=5)
def _fold(files: str, cache_dir: str) -> Fold:
    return load_fold(json.loads(files), cache_dir)
