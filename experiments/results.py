"""The results of a study as tables: one row per query, and one row per job."""

from __future__ import annotations

import gzip
import json
import os
import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from experiments.files import write
from experiments.folds import load_fold
from experiments.jobs import MEASURES, Job, is_done, measures_by_query, read_result
from experiments.study import Study

_FILES = {"queries": "per_query.csv.gz", "jobs": "jobs.csv.gz"}
_SETTINGS = "study.json"
ENSEMBLE = " (ensemble)"
_NO_NUMBERS = ("selected", "settings", "best_epoch", "curves")
_PLACE = ("dataset", "fold", "ranker", "seed", "query")


class Results(NamedTuple):
    """The results of a study, from which tables and plots are computed.

    Attributes:
      queries: The test metrics per query with the selected hyperparameters: the columns dataset, fold, ranker (the
        label of an entry), seed, query and one column per measure.
      jobs: One row per job: dataset, fold, ranker, seed, settings (JSON), selected (whether these settings were
        selected), valid_MEASURE (the mean over validation queries), best_epoch, fit_seconds (processor time) and curves
        (JSON).
      settings: JSON values: the labels of the "entries", "select_by", and what else the results depend on; and the
        "rankers", the "grid" and the "settings" of the latest study, by which `read_config` repeats it.
    """

    queries: pd.DataFrame
    jobs: pd.DataFrame
    settings: dict[str, Any]

    @property
    def measures(self) -> list[str]:
        """The names of the measures, in the order of the columns."""
        return [name for name in self.queries.columns if name not in _PLACE]

    @property
    def labels(self) -> list[str]:
        """The labels with results of the entries, each followed by its ensemble."""
        known = [each for label in self.settings["entries"] for each in (label, label + ENSEMBLE)]
        there = set(self.queries["ranker"])
        return [label for label in known if label in there]


def collect(study: Study, *, ensemble: bool = False) -> Results:
    """Collects the results of a study, without jobs that have no result.

    With `ensemble`, the scores averaged over seeds are an additional ranker named "LABEL (ensemble)" for each ranker
    with several seeds.

    Raises:
      ValueError: If no job has a result.
    """
    queries: list[pd.DataFrame] = []
    jobs: list[dict[str, Any]] = []
    for dataset, fold, entry in study.places():
        place = {"dataset": dataset.name, "fold": fold, "ranker": entry.label}
        selected = [job for job in study.selected(dataset, fold, entry) if is_done(job, study.folder)]
        others = {job.file: job for job in study.search(dataset, fold, entry) if is_done(job, study.folder)}
        chosen = {job.file: job for job in selected}
        for file, job in {**chosen, **others}.items():
            result = read_result(job, study.folder)
            jobs.append({**place, "selected": file in chosen, **_job_row(job, *result)})
            if file in chosen:
                frame = pd.DataFrame(result.arrays["test_metrics"], columns=list(MEASURES))
                queries.append(frame.assign(**place, seed=job.seed, query=result.arrays["test_queries"]))
        if ensemble and len(selected) > 1:
            metrics = _ensemble(selected, study.folder)
            frame = pd.DataFrame.from_dict(metrics, orient="index", columns=list(MEASURES)).reset_index(names="query")
            queries.append(frame.assign(**{**place, "ranker": entry.label + ENSEMBLE}, seed=0))
    if not queries:
        raise ValueError(f"`study` must have at least one result, got none in {study.folder}.")
    settings = {
        "rankers": {entry.label: {"ranker": entry.ranker, **entry.settings} for entry in study.entries},
        "grid": dict(study.grid),
        "settings": dict(study.settings),
        "entries": [entry.label for entry in study.entries],
        "select_by": study.select_by,
        "relevance_level": study.relevance_level,
        "files": {dataset.name: {fold: dataset.digests(fold) for fold in dataset.folds} for dataset in study.datasets},
    }
    table = pd.concat(queries, ignore_index=True)
    return Results(table[[*_PLACE, *MEASURES]], pd.DataFrame(jobs), json.loads(json.dumps(settings)))


def _job_row(job: Job, description: dict[str, Any], arrays: Any) -> dict[str, Any]:
    curves = {name.removeprefix("curve_"): values for name, values in arrays.items() if name.startswith("curve_")}
    return {
        "seed": job.seed,
        "settings": json.dumps(dict(job.settings)),
        **{f"valid_{name}": value for name, value in description["valid"].items()},
        "best_epoch": description["details"].get("best_epoch"),
        "fit_seconds": description["fit_processor_seconds"],
        "curves": json.dumps({name: [round(value, 6) for value in values] for name, values in curves.items()}),
    }


def _ensemble(jobs: Sequence[Job], folder: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """Returns the test metrics per query of the scores averaged over jobs."""
    job = jobs[0]
    scores = np.mean([read_result(job, folder).arrays["test_scores"] for job in jobs], axis=0)
    test = load_fold(job.dataset.folds[job.fold], Path(folder) / "cache").test
    return measures_by_query(test, scores, job.relevance_level)


def write_results(results: Results, folder: str | os.PathLike[str]) -> Results:
    """Writes results to a folder, together with those of other rankers and data sets that it has.

    Earlier results are kept only if they have the same settings, except for the entries, and the same data.

    Returns:
      All results: those of `per_query.csv.gz`, `jobs.csv.gz` and `study.json`.
    """
    folder = Path(folder)
    results = results._replace(settings=json.loads(json.dumps(results.settings)))
    if (folder / _SETTINGS).exists():
        results = _joined(read_results(folder), results, folder)
    (folder / _SETTINGS).unlink(missing_ok=True)  # Tables of two studies, after an interruption, are not read.
    for name, file in _FILES.items():
        text = getattr(results, name).to_csv(index=False)
        write(folder / file, gzip.compress(text.encode(), mtime=0))
    write(folder / _SETTINGS, json.dumps(results.settings, indent=2) + "\n")
    return results


def _joined(old: Results, new: Results, folder: Path) -> Results:
    """Returns the new results and those of other entries and data sets among the old ones."""
    files = {**old.settings.get("files", {}), **new.settings.get("files", {})}
    settings = {**new.settings, "entries": list(dict.fromkeys([*old.settings["entries"], *new.settings["entries"]]))}
    settings |= {"files": files} if files else {}
    rankers = {**old.settings.get("rankers", {}), **new.settings.get("rankers", {})}
    settings |= {"rankers": rankers} if rankers else {}
    # What each ranker was run with may differ: the table of jobs has it.
    free = dict.fromkeys(("entries", "files", "rankers", "grid", "settings"))
    before, now = ({**each.settings, **free} for each in (old, new))
    changed = [name for name in now if before.get(name) != now[name]]
    changed += [name for name, each in old.settings.get("files", {}).items() if files[name] != each]
    changed += ["measures"] if old.measures != new.measures else []
    if changed:
        reason = f"{', '.join(changed)} changed"
        warnings.warn(f"The tables in {folder} have no results of earlier commands: {reason}.", stacklevel=3)
        return new
    replaced = set(zip(new.queries["dataset"], new.queries["ranker"].str.removesuffix(ENSEMBLE), strict=True))

    def joined(name: str) -> pd.DataFrame:
        earlier, later = getattr(old, name), getattr(new, name)
        keys = zip(earlier["dataset"], earlier["ranker"].str.removesuffix(ENSEMBLE), strict=True)
        return pd.concat([earlier[[key not in replaced for key in keys]], later], ignore_index=True)

    return Results(joined("queries"), joined("jobs"), settings)


def read_results(folder: str | os.PathLike[str]) -> Results:
    """Reads the results that `write_results` wrote, or raises a `ValueError` that names a damaged file."""

    def read(path: Path) -> Any:
        if path.name == _SETTINGS:
            return json.loads(path.read_text(encoding="utf-8"))
        # The number parser of pandas 2 rounds the last digit.
        numbers = [name for name in pd.read_csv(path, nrows=0).columns if name not in (*_PLACE, *_NO_NUMBERS)]
        converters = dict.fromkeys(numbers, lambda text: float(text or "nan"))
        return pd.read_csv(path, dtype={"query": str, "dataset": str}, converters=converters)

    found = []
    for name in (*_FILES.values(), _SETTINGS):
        try:
            found.append(read(Path(folder) / name))
        except (ValueError, EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{Path(folder) / name} is damaged: {' '.join(str(error).split())}") from error
    return Results(*found)
