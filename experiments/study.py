"""A comparison of rankers: their hyperparameter search, and the selection on validation queries."""

from __future__ import annotations

import concurrent.futures as cf
import dataclasses
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.execution import Failure, Progress, no_progress, run_jobs
from experiments.folds import Dataset
from experiments.jobs import MEASURES, Job, is_done, read_result
from experiments.rankers import RANKERS


@dataclasses.dataclass(frozen=True)
class Entry:
    """A ranker with fixed settings, one row of the tables; its other settings are selected on validation queries.

    Args:
      ranker: Name of a ranker in `RANKERS`.
      settings: The fixed settings, as JSON values by name. For a neural ranker these are arguments of
        `tfr_smooth.Ranker`, hyperparameters of the loss, and `recipe`: the name of a set of settings, "paper" (default)
        or "default".
      label: Its name in the tables; by default the ranker with the settings, such as "smoothi_ndcg (topn=10)".

    Raises:
      ValueError: If no ranker has this name, or the ranker does not have these settings.
    """

    ranker: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    label: str = ""

    def __post_init__(self) -> None:
        """Checks the arguments."""
        if self.ranker not in RANKERS:
            raise ValueError(f"`ranker` must be one of {', '.join(RANKERS)}, got {self.ranker!r}.")
        RANKERS[self.ranker].check(RANKERS[self.ranker].expanded(self.settings))
        if not self.label:
            shown = ", ".join(f"{name}={value}" for name, value in self.settings.items())
            object.__setattr__(self, "label", f"{self.ranker} ({shown})" if shown else self.ranker)

    def candidates(
        self, grid: Mapping[str, Sequence[Any]] | None = None, common: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Returns the candidate settings of the search: all combinations of the searched values.

        Args:
          grid: Values to search instead of the ranker's own, by setting. Rankers without the setting ignore it.
          common: Settings for all neural rankers, which the entry's own settings override.
        """
        ranker = RANKERS[self.ranker]
        fixed = {**(common or {} if ranker.is_neural else {}), **ranker.expanded(self.settings)}
        given = {name: values for name, values in (grid or {}).items() if name in ranker.defaults}
        searched = {name: values for name, values in {**ranker.searched, **given}.items() if name not in fixed}
        products = itertools.product(*searched.values())
        return [{**fixed, **dict(zip(searched, values, strict=True))} for values in products]


# The keys of `study.json` that are no arguments of a config.
OF_RESULTS = ("entries", "select_by", "relevance_level", "seeds", "files")


def read_config(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads the arguments `entries`, `grid` and `settings` of a `Study` from a JSON file.

    Its key "rankers" has a list of names, or the settings of each ranker by its label, among which "ranker" is its name
    if it differs from the label. The file `study.json` of the results of a study repeats it.

    Raises:
      ValueError: If the file is not valid.
    """
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    if isinstance(config, dict) and "rankers" in config:
        config = {name: values for name, values in config.items() if name not in OF_RESULTS}
    if not isinstance(config, dict) or not set(config) <= {"rankers", "grid", "settings"}:
        raise ValueError(f"{os.fspath(path)} must have an object with the keys rankers, grid, settings.")
    rankers = config.pop("rankers", [])
    rankers = rankers if isinstance(rankers, dict) else {name: {} for name in rankers}
    entries = [
        Entry(settings.get("ranker", label), {name: settings[name] for name in settings if name != "ranker"}, label)
        for label, settings in rankers.items()
    ]
    return {**config, **({"entries": entries} if entries else {})}


@dataclasses.dataclass(frozen=True)
class Study:
    """A comparison of rankers: searches hyperparameters on validation queries, then tests with several seeds.

    Args:
      datasets: The data sets, with different names.
      entries: The entries to compare, with different labels.
      folder: The folder of the results (`results/`) and of binary copies of the data (`cache/`).
      seeds: Random seeds. The search uses the first seed; the selected settings then run with all seeds.
      grid: Values to search instead of the rankers' own, by setting, as in `Entry.candidates`.
      settings: Settings for all neural rankers, which the settings of an entry override.
      select_by: The measure of `MEASURES` that selects hyperparameters by its mean over validation queries.
      relevance_level: The least label of relevant documents in P@k and MAP, >= 1, as trec_eval's `-l`.

    Raises:
      ValueError: If an argument is invalid.
    """

    datasets: Sequence[Dataset]
    entries: Sequence[Entry]
    folder: str | os.PathLike[str]
    seeds: Sequence[int] = (0,)
    grid: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    select_by: str = "ndcg"
    relevance_level: int = 1

    def __post_init__(self) -> None:
        """Checks the arguments."""
        if self.select_by not in MEASURES:
            raise ValueError(f"`select_by` must be one of {', '.join(MEASURES)}, got {self.select_by!r}.")
        if self.relevance_level < 1:
            raise ValueError(f"`relevance_level` must be an integer >= 1, got {self.relevance_level!r}.")
        if not self.seeds:
            raise ValueError("`seeds` must contain at least one seed, got none.")
        for name, given in (
            ("datasets", [dataset.name for dataset in self.datasets]),
            ("entries", [entry.label for entry in self.entries]),
        ):
            if not given or len(set(given)) < len(given):
                raise ValueError(f"`{name}` must contain at least one element, all different, got {given}.")

    def places(self) -> list[tuple[Dataset, str, Entry]]:
        """Returns all combinations of data set, name of a fold, and entry."""
        return [(dataset, fold, entry) for dataset in self.datasets for entry in self.entries for fold in dataset.folds]

    def search(self, dataset: Dataset, fold: str, entry: Entry) -> list[Job]:
        """Returns the jobs of the hyperparameter search, one per candidate, all with the first seed."""
        return [
            Job(dataset, fold, entry.ranker, settings, self.seeds[0], self.relevance_level)
            for settings in entry.candidates(self.grid, self.settings)
        ]

    def selected(self, dataset: Dataset, fold: str, entry: Entry) -> list[Job]:
        """Returns the jobs with the selected hyperparameters, one per seed (one for rankers without randomness).

        The candidate with the best validation measure is selected; of equal candidates the first. Test metrics are not
        used. Without a result of the search, there are none.
        """
        jobs = [job for job in self.search(dataset, fold, entry) if is_done(job, self.folder)]
        if not jobs:
            return []
        best = max(jobs, key=lambda job: read_result(job, self.folder).description["valid"][self.select_by])
        seeds = self.seeds if RANKERS[entry.ranker].randomized else self.seeds[:1]
        return [dataclasses.replace(best, seed=seed) for seed in seeds]

    def run(
        self, *, executor: cf.Executor | None = None, workers: int | None = None, progress: Progress = no_progress
    ) -> list[Failure]:
        """Runs the jobs that have no result yet: first the search, then the selected settings with all seeds.

        The arguments are those of `run_jobs`. Returns the jobs that failed.
        """
        failures: list[Failure] = []
        for title, jobs_of in (("search", self.search), ("seeds", self.selected)):
            jobs = [job for place in self.places() for job in jobs_of(*place)]
            failures += run_jobs(jobs, self.folder, executor=executor, workers=workers, progress=progress, title=title)
        return failures
