"""The results of a study as tables: one row per query, and one row per job."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tfr_smooth import _extras, _files, evaluation
from tfr_smooth.study.folds import load_fold, scored_queries
from tfr_smooth.study.jobs import MEASURES, Job, is_done, read_result
from tfr_smooth.study.selection import Study

if TYPE_CHECKING:
    import pandas as pd

_FILES = {"queries": "per_query.csv.gz", "jobs": "jobs.csv.gz"}
_SETTINGS = "study.json"
ENSEMBLE = " (ensemble)"
_NO_NUMBERS = ("selected", "settings", "best_epoch", "curves")
_PLACE = ("dataset", "fold", "ranker", "seed", "query")


class Results(NamedTuple):
    """The results of a study, from which tables and plots are computed.

    Attributes:
      queries: The test metrics per query with the selected hyperparameters: a `pandas.DataFrame` with the columns
        dataset, fold, ranker (the label of an entry), seed, query and one column per measure.
      jobs: One row per job: a `pandas.DataFrame` with the columns dataset, fold, ranker, seed, settings (JSON),
        selected (whether these settings were selected), valid_MEASURE (the mean over validation queries), best_epoch,
        epoch_seconds (median processor time of a training epoch), fit_seconds (processor time) and curves (JSON).
      settings: The labels of the `entries` and of each of the `sweeps`, and `select_by`.

    Example:
      >>> import pandas as pd
      >>> from tfr_smooth import study
      >>> place = {"dataset": "mine", "fold": "Fold1", "ranker": "random", "seed": 0}
      >>> queries = pd.DataFrame([{**place, "query": "q1", "ndcg": 0.5}])
      >>> results = study.Results(queries, pd.DataFrame([place]), {"entries": ["random"], "sweeps": {}})
      >>> results.measures
      ['ndcg']
    """

    queries: pd.DataFrame
    jobs: pd.DataFrame
    settings: dict[str, Any]

    @property
    def measures(self) -> list[str]:
        """The names of the measures, in the order of the columns."""
        return [name for name in self.queries.columns if name not in _PLACE]


def collect(study: Study, *, ensemble: bool = False) -> Results:
    """Collects the results of a study.

    Args:
      study: The study. Jobs without a result are skipped.
      ensemble: Whether to add, for each ranker with several seeds, an ensemble that averages the scores over seeds, as
        an additional ranker named "LABEL (ensemble)".

    Returns:
      The results.

    Raises:
      ValueError: If no job has a result.
      ImportError: If the extra `tfr_smooth[study]` is not installed.

    Example:
      >>> import tempfile
      >>> from tfr_smooth import data, study
      >>> folder = tempfile.mkdtemp()
      >>> files = data.write_synthetic_letor(folder, num_queries=(4, 2, 6))
      >>> dataset = study.one_split(files["train"], files["valid"], files["test"])
      >>> plan = study.Study([dataset], [study.Entry("random")], folder, seeds=(0, 1))
      >>> failures = plan.run(workers=0)
      >>> study.collect(plan, ensemble=True).queries.groupby("ranker").size().to_dict()
      {'random': 12, 'random (ensemble)': 6}
    """
    with _extras.needed("pandas", extra="study", by="`collect`"):
        import pandas as pd
    queries: list[pd.DataFrame] = []
    jobs: list[dict[str, Any]] = []
    for dataset, fold, entry in study.places():
        place = {"dataset": dataset.name, "fold": fold, "ranker": entry.label}
        selected = [job for job in study.selected(dataset, fold, entry) if is_done(job, study.folder)]
        others = {job.file: job for job in study.search(dataset, fold, entry) if is_done(job, study.folder)}
        chosen = {job.file for job in selected}
        for job in [*selected, *(job for file, job in others.items() if file not in chosen)]:
            result = read_result(job, study.folder)
            jobs.append({**place, "selected": job.file in chosen, **_job_row(job, result.description, result.arrays)})
            if job.file in chosen:
                frame = pd.DataFrame(result.arrays["test_metrics"], columns=list(MEASURES))
                queries.append(frame.assign(**place, seed=job.seed, query=result.arrays["test_queries"]))
        if ensemble and len(selected) > 1:
            metrics = _ensemble(selected, study.folder)
            frame = pd.DataFrame.from_dict(metrics, orient="index", columns=list(MEASURES)).reset_index(names="query")
            queries.append(frame.assign(**{**place, "ranker": entry.label + ENSEMBLE}, seed=0))
    if not queries:
        raise ValueError(f"`study` must have at least one result, got none in {study.folder}.")
    table = pd.concat(queries, ignore_index=True)
    return Results(table[[*_PLACE, *MEASURES]], pd.DataFrame(jobs), study.settings())


def _job_row(job: Job, description: dict[str, Any], arrays: Any) -> dict[str, Any]:
    curves = {name.removeprefix("curve_"): values for name, values in arrays.items() if name.startswith("curve_")}
    seconds = curves.pop("train_seconds", [])
    return {
        "seed": job.seed,
        "settings": json.dumps(description["settings"]),
        **{f"valid_{name}": value for name, value in description["valid"].items()},
        "best_epoch": description["details"].get("best_epoch"),
        "epoch_seconds": float(np.median(seconds)) if len(seconds) else None,
        "fit_seconds": description["fit_processor_seconds"],
        "curves": json.dumps({name: [round(value, 6) for value in values] for name, values in curves.items()}),
    }


def _ensemble(jobs: Sequence[Job], folder: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """Returns the test metrics per query of the scores averaged over jobs."""
    job = jobs[0]
    scores = np.mean([read_result(job, folder).arrays["test_scores"] for job in jobs], axis=0)
    fold = load_fold(job.dataset.folds[job.fold], Path(folder) / "cache")
    return evaluation.trec_eval_by_query(scored_queries(fold.parts["test"], scores), MEASURES)


def write_results(results: Results, folder: str | os.PathLike[str]) -> None:
    """Writes results to a folder: `per_query.csv.gz`, `jobs.csv.gz` and `study.json`.

    Args:
      results: The results.
      folder: An existing folder to write to.

    Example:
      >>> import pathlib, tempfile
      >>> import pandas as pd
      >>> from tfr_smooth import study
      >>> place = {"dataset": "mine", "fold": "Fold1", "ranker": "random", "seed": 0}
      >>> queries = pd.DataFrame([{**place, "query": "q1", "ndcg": 0.5}])
      >>> folder = tempfile.mkdtemp()
      >>> study.write_results(study.Results(queries, pd.DataFrame([place]), {"entries": ["random"]}), folder)
      >>> sorted(path.name for path in pathlib.Path(folder).iterdir())
      ['jobs.csv.gz', 'per_query.csv.gz', 'study.json']
    """
    for name, file in _FILES.items():
        with _files.replacing(Path(folder) / file) as unfinished:
            getattr(results, name).to_csv(unfinished, index=False, compression={"method": "gzip", "mtime": 0})
    _files.write_text(Path(folder) / _SETTINGS, [json.dumps(results.settings, indent=2) + "\n"])


def read_results(folder: str | os.PathLike[str]) -> Results:
    """Reads the results that `write_results` wrote.

    Args:
      folder: The folder with `per_query.csv.gz`, `jobs.csv.gz` and `study.json`.

    Returns:
      The results.

    Raises:
      ImportError: If the extra `tfr_smooth[study]` is not installed.

    Example:
      >>> import tempfile
      >>> import pandas as pd
      >>> from tfr_smooth import study
      >>> place = {"dataset": "mine", "fold": "Fold1", "ranker": "random", "seed": 0}
      >>> queries = pd.DataFrame([{**place, "query": "q1", "ndcg": 0.5}])
      >>> folder = tempfile.mkdtemp()
      >>> study.write_results(study.Results(queries, pd.DataFrame([place]), {"entries": ["random"]}), folder)
      >>> study.read_results(folder).queries["ndcg"].tolist()
      [0.5]
    """
    with _extras.needed("pandas", extra="study", by="`read_results`"):
        import pandas as pd

    def read(path: Path) -> pd.DataFrame:
        # The number parser of pandas 2 rounds the last digit.
        numbers = [name for name in pd.read_csv(path, nrows=0).columns if name not in (*_PLACE, *_NO_NUMBERS)]
        converters = dict.fromkeys(numbers, lambda text: float(text or "nan"))
        return pd.read_csv(path, dtype={"query": str, "dataset": str}, converters=converters)

    queries, jobs = (read(Path(folder) / file) for file in _FILES.values())
    return Results(queries, jobs, json.loads((Path(folder) / _SETTINGS).read_text(encoding="utf-8")))


def labels(results: Results, sweep: str | None = None) -> list[str]:
    """Returns the labels with results of the entries, or of a sweep, each followed by its ensemble."""

    def with_ensembles() -> Iterator[str]:
        for label in results.settings["entries"] if sweep is None else results.settings["sweeps"].get(sweep, []):
            yield label
            yield label + ENSEMBLE

    there = set(results.queries["ranker"])
    return [label for label in with_ensembles() if label in there]
