"""The entries of a study, their hyperparameter search, and the selection on validation queries."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfr_smooth import _arguments, registry
from tfr_smooth.study.folds import Dataset
from tfr_smooth.study.jobs import MEASURES, Job, is_done, read_description
from tfr_smooth.study.rankers import RANKERS
from tfr_smooth.study.workers import Failure, run_jobs


@dataclasses.dataclass(frozen=True)
class Entry:
    """A ranker with fixed settings, one row of the tables; its other settings are selected on validation queries.

    Args:
      ranker: Name of a ranker in `RANKERS`.
      settings: The fixed settings, by name. For a neural ranker these are arguments of `tfr_smooth.Ranker`,
        hyperparameters of the loss, and `recipe`: the name of a set of settings, "paper" (default) or "default".

    Raises:
      ValueError: If no ranker has this name, or the ranker does not have these settings.

    Example:
      >>> from tfr_smooth import study
      >>> entry = study.Entry.parse("smoothi_ndcg:topn=10:hidden=B64")
      >>> entry.settings
      {'topn': 10, 'hidden': 'B64'}
    """

    ranker: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Checks the arguments."""
        registry.check_name("ranker", self.ranker, RANKERS)
        RANKERS[self.ranker].check(RANKERS[self.ranker].expanded(self.settings))

    @classmethod
    def parse(cls, text: str) -> Entry:
        """Creates an entry from its label.

        Args:
          text: `RANKER` or `RANKER:NAME=VALUE:..`. Values are JSON; a value that is not valid JSON is a string.

        Returns:
          The entry.

        Raises:
          ValueError: If the label is malformed, no ranker has this name, or the ranker does not have these settings.
        """
        return cls(*parse_label(text))

    @property
    def label(self) -> str:
        """The entry's name in the tables, which `parse` accepts."""
        values = (
            f"{name}={value if isinstance(value, str) else json.dumps(value, separators=(',', ':'))}"
            for name, value in self.settings.items()
        )
        return ":".join([self.ranker, *values])

    def candidates(
        self, grid: Mapping[str, Sequence[Any]] | None = None, common: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Returns the candidate settings of the hyperparameter search.

        Args:
          grid: Values to search instead of the ranker's own, by setting. Rankers without the setting ignore it. None
            searches the ranker's own values.
          common: Settings for all neural rankers, which the entry's own settings override; None for none.

        Returns:
          Settings by name, one dict per candidate: the Cartesian product of the searched values.
        """
        ranker = RANKERS[self.ranker]
        recipe = {**(common or {} if ranker.is_neural else {}), **ranker.expanded(self.settings)}
        given = {name: tuple(values) for name, values in (grid or {}).items() if name in ranker.defaults}
        searched = {name: values for name, values in {**ranker.grid(), **given}.items() if name not in recipe}
        products = itertools.product(*searched.values())
        return [{**recipe, **dict(zip(searched, values, strict=True))} for values in products]


def parse_label(text: str) -> tuple[str, dict[str, Any]]:
    """Returns the name and the settings of a label, `NAME` or `NAME:SETTING=VALUE:..`.

    Args:
      text: The label. Values are JSON; a value that is not valid JSON is a string.

    Returns:
      The name, and the settings by name.

    Raises:
      ValueError: If the label is malformed.

    Example:
      >>> from tfr_smooth import study
      >>> study.parse_label("smoothi_ndcg:topn=10:gain=linear")
      ('smoothi_ndcg', {'topn': 10, 'gain': 'linear'})
    """
    name, *settings = split_label(text)
    return name, dict(map(_setting, settings))


def split_label(text: str) -> list[str]:
    """Splits at the colons outside of JSON values."""
    pieces: list[str] = []
    for piece in text.split(":"):
        is_open = pieces and any(pieces[-1].count(left) > pieces[-1].count(right) for left, right in ("[]", "{}"))
        if is_open:
            pieces[-1] += f":{piece}"
        else:
            pieces.append(piece)
    return pieces


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"`settings` must be NAME=VALUE, got {text!r}.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def parse_settings(text: str) -> dict[str, Any]:
    """Returns the settings in a text, `NAME=VALUE NAME=VALUE ..`.

    Example:
      >>> from tfr_smooth.study import selection
      >>> selection.parse_settings("epochs=20 hidden=B64 alpha=[0.1,1]")
      {'epochs': 20, 'hidden': 'B64', 'alpha': [0.1, 1]}
    """
    return dict(map(_setting, text.split()))


@dataclasses.dataclass(frozen=True)
class Study:
    """A comparison of rankers: searches hyperparameters on validation queries, then tests with several seeds.

    Args:
      datasets: The data sets, with different names.
      entries: The entries to compare, with different labels.
      folder: The folder of the results (`results/`) and of binary copies of the data (`cache/`).
      seeds: Random seeds. The search uses the first seed; the selected settings then run with all seeds.
      grid: Values to search instead of the rankers' own, by setting, as in `Entry.candidates`.
      recipe: Settings for all neural rankers, which the settings of an entry override.
      select_by: The measure of `MEASURES` that selects hyperparameters by its mean over validation queries.
      sweeps: Additional entries, by the name of the plot that shows them; see `sweep`.

    Raises:
      ValueError: If `select_by` is not a measure, or `datasets`, `entries` or `seeds` are empty or not unique.

    Example:
      >>> import tempfile
      >>> from tfr_smooth import data, study
      >>> folder = tempfile.mkdtemp()
      >>> files = data.write_synthetic_letor(folder, num_queries=(20, 10, 10))
      >>> dataset = study.one_split(files["train"], files["valid"], files["test"])
      >>> entries = [study.Entry("ridge"), study.Entry("random")]
      >>> plan = study.Study([dataset], entries, folder, seeds=(0, 1), grid={"strength": (0.1, 1.0)})
      >>> plan.run(workers=0)  # Returns the jobs that failed.
      []
      >>> study.collect(plan).queries.groupby("ranker")["query"].count().to_dict()
      {'random': 20, 'ridge': 10}
    """

    datasets: Sequence[Dataset]
    entries: Sequence[Entry]
    folder: str | os.PathLike[str]
    seeds: Sequence[int] = (0,)
    grid: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    recipe: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    select_by: str = "ndcg"
    sweeps: Mapping[str, Sequence[Entry]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Checks the arguments."""
        _arguments.choice("select_by", self.select_by, MEASURES)
        if not self.seeds:
            raise ValueError("`seeds` must contain at least one seed, got none.")
        for name, given in (
            ("datasets", [d.name for d in self.datasets]),
            ("entries", [e.label for e in self.entries]),
        ):
            if not given or len(set(given)) < len(given):
                raise ValueError(f"`{name}` must contain at least one element, all different, got {given}.")

    def places(self) -> list[tuple[Dataset, str, Entry]]:
        """Returns all combinations of data set, fold and entry.

        Returns:
          Tuples (data set, name of the fold, entry), including the entries of sweeps.
        """
        entries = {entry.label: entry for entry in itertools.chain(self.entries, *self.sweeps.values())}
        return [
            (dataset, fold, entry) for dataset in self.datasets for entry in entries.values() for fold in dataset.folds
        ]

    def settings(self) -> dict[str, Any]:
        """Returns the settings of the study for its report.

        Returns:
          JSON values by name: the labels of the entries and sweeps, and the other arguments.
        """
        return {
            "entries": [entry.label for entry in self.entries],
            "sweeps": {name: [entry.label for entry in entries] for name, entries in self.sweeps.items()},
            "select_by": self.select_by,
            "seeds": list(self.seeds),
            "recipe": dict(self.recipe),
            "grid": {name: list(values) for name, values in self.grid.items()},
        }

    def search(self, dataset: Dataset, fold: str, entry: Entry) -> list[Job]:
        """Returns the jobs of the hyperparameter search.

        Args:
          dataset: The data set.
          fold: Name of one of its folds.
          entry: The entry.

        Returns:
          One job per candidate, all with the first seed.
        """
        candidates = entry.candidates(self.grid, self.recipe)
        return [Job(dataset, fold, entry.ranker, settings, self.seeds[0]) for settings in candidates]

    def selected(self, dataset: Dataset, fold: str, entry: Entry) -> list[Job]:
        """Returns the jobs with the selected hyperparameters.

        The candidate with the best validation measure is selected; of equal candidates the first. Test metrics are not
        used.

        Args:
          dataset: The data set.
          fold: Name of one of its folds.
          entry: The entry.

        Returns:
          One job per seed (a single job for rankers without randomness). Empty if no search job has a result.
        """
        jobs = [job for job in self.search(dataset, fold, entry) if is_done(job, self.folder)]
        if not jobs:
            return []
        best = max(jobs, key=lambda job: read_description(job, self.folder)["valid"][self.select_by])
        seeds = self.seeds if RANKERS[entry.ranker].randomized else self.seeds[:1]
        return [dataclasses.replace(best, seed=seed) for seed in seeds]

    def run(self, *, workers: int = 1, progress: Callable[[str, int], Any] | None = None) -> list[Failure]:
        """Runs the jobs that have no result yet: first the search, then the selected settings with all seeds.

        Args:
          workers: Number of worker processes, >= 0, each with one thread; 0 runs all jobs in this process.
          progress: Creates a progress bar, a context manager with a method `update`, from a title and the number of
            jobs; None shows no progress.

        Returns:
          The jobs that failed.
        """
        failures: list[Failure] = []
        for title, jobs_of in (("search", self.search), ("seeds", self.selected)):
            jobs = {job.file: job for place in self.places() for job in jobs_of(*place)}
            todo = [job for job in jobs.values() if not is_done(job, self.folder)]
            if progress is None or not todo:
                failures += run_jobs(todo, self.folder, workers=workers)
                continue
            with progress(title, len(todo)) as bar:
                failures += run_jobs(todo, self.folder, workers=workers, progress=lambda job: bar.update())  # noqa: B023
        return failures
