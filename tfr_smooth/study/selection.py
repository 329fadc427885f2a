"""What a study compares: its entries, the hyperparameters that are searched for each, and their selection."""

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
from tfr_smooth.study.recipe import expanded
from tfr_smooth.study.workers import Failure, run_jobs


@dataclasses.dataclass(frozen=True)
class Entry:
    """A row of the tables: a ranker with some settings fixed; the others are chosen on the validation queries.

    Args:
      ranker: The name of a ranker in `RANKERS`.
      settings: The fixed settings. For a neural ranker, `recipe` may name one of `recipe.RECIPES`.

    Raises:
      ValueError: If there is no such ranker, or it has no such settings.

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
        RANKERS[self.ranker].check(self._expanded())

    def _expanded(self) -> dict[str, Any]:
        """Returns the settings with those of a named recipe."""
        ranker = RANKERS[self.ranker]
        return expanded(self.settings, ranker.defaults) if ranker.is_neural else dict(self.settings)

    @classmethod
    def parse(cls, text: str) -> Entry:
        """Makes an entry of its label: `RANKER` or `RANKER:NAME=VALUE:..`, values as in JSON, or text."""
        return cls(*parse_label(text))

    @property
    def label(self) -> str:
        """The entry's name in the tables, which `parse` takes."""
        values = (
            f"{name}={value if isinstance(value, str) else json.dumps(value, separators=(',', ':'))}"
            for name, value in self.settings.items()
        )
        return ":".join([self.ranker, *values])

    def candidates(
        self, grid: Mapping[str, Sequence[Any]] | None = None, common: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Returns the settings to choose from.

        Args:
          grid: Values to search instead of the ranker's own, by setting; rankers without that setting ignore it.
          common: Settings of all neural rankers, which the entry's own replace.
        """
        ranker = RANKERS[self.ranker]
        recipe = {**(common or {} if ranker.is_neural else {}), **self._expanded()}
        given = {name: tuple(values) for name, values in (grid or {}).items() if name in ranker.defaults}
        searched = {name: values for name, values in {**ranker.grid(), **given}.items() if name not in recipe}
        products = itertools.product(*searched.values())
        return [{**recipe, **dict(zip(searched, values, strict=True))} for values in products]


def parse_label(text: str) -> tuple[str, dict[str, Any]]:
    """Returns name and settings of a label, `NAME` or `NAME:SETTING=VALUE:..`.

    Example:
      >>> from tfr_smooth.study import selection
      >>> selection.parse_label("smoothi_ndcg:topn=10:gain=linear")
      ('smoothi_ndcg', {'topn': 10, 'gain': 'linear'})
    """
    name, *settings = _split(text)
    return name, dict(map(_setting, settings))


def _split(text: str) -> list[str]:
    """Splits at the colons that are in no JSON value."""
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
    """Returns settings from text, `NAME=VALUE NAME=VALUE ..`.

    Example:
      >>> from tfr_smooth.study import selection
      >>> selection.parse_settings("epochs=20 hidden=B64 alpha=[0.1,1]")
      {'epochs': 20, 'hidden': 'B64', 'alpha': [0.1, 1]}
    """
    return dict(map(_setting, text.split()))


@dataclasses.dataclass(frozen=True)
class Study:
    """The jobs of a study.

    Args:
      datasets: The data sets.
      entries: What is compared.
      folder: Where results are kept: `results/`, and `cache/` with binary copies of the data.
      seeds: Hyperparameters are chosen at the first seed. What was chosen then runs with all of them.
      grid: As for `Entry.candidates`.
      recipe: Settings of all neural rankers.
      select_by: The measure, a mean over validation queries, that chooses hyperparameters.
      sweeps: More entries, by the name of the plot that shows them.

    Raises:
      ValueError: If an argument is not one of these.

    Example:
      >>> import tempfile
      >>> from tfr_smooth import data, study
      >>> folder = tempfile.mkdtemp()
      >>> files = data.write_synthetic_letor(folder, num_queries=(20, 10, 10))
      >>> dataset = study.one_split(files["train"], files["valid"], files["test"])
      >>> entries = [study.Entry("ridge"), study.Entry("random")]
      >>> plan = study.Study([dataset], entries, folder, seeds=(0, 1), grid={"strength": (0.1, 1.0)})
      >>> plan.run(workers=0)  # no failures
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
            raise ValueError("`seeds` must hold at least one seed, got none.")
        for name, given in (
            ("datasets", [d.name for d in self.datasets]),
            ("entries", [e.label for e in self.entries]),
        ):
            if not given or len(set(given)) < len(given):
                raise ValueError(f"`{name}` must hold at least one, all different, got {given}.")

    def places(self) -> list[tuple[Dataset, str, Entry]]:
        """Returns each data set, fold and entry."""
        entries = {entry.label: entry for entry in itertools.chain(self.entries, *self.sweeps.values())}
        return [
            (dataset, fold, entry) for dataset in self.datasets for entry in entries.values() for fold in dataset.folds
        ]

    def settings(self) -> dict[str, Any]:
        """Returns what the report must know, as JSON values."""
        return {
            "entries": [entry.label for entry in self.entries],
            "sweeps": {name: [entry.label for entry in entries] for name, entries in self.sweeps.items()},
            "select_by": self.select_by,
            "seeds": list(self.seeds),
            "recipe": dict(self.recipe),
            "grid": {name: list(values) for name, values in self.grid.items()},
        }

    def search(self, dataset: Dataset, fold: str, entry: Entry) -> list[Job]:
        """Returns the jobs that hyperparameters are chosen from."""
        candidates = entry.candidates(self.grid, self.recipe)
        return [Job(dataset, fold, entry.ranker, settings, self.seeds[0]) for settings in candidates]

    def selected(self, dataset: Dataset, fold: str, entry: Entry) -> list[Job]:
        """Returns the jobs of the chosen hyperparameters, one per seed; none where no search job has a result.

        Test figures have no say: the choice is the first job with the best validation figure.
        """
        jobs = [job for job in self.search(dataset, fold, entry) if is_done(job, self.folder)]
        if not jobs:
            return []
        best = max(jobs, key=lambda job: read_description(job, self.folder)["valid"][self.select_by])
        seeds = self.seeds if RANKERS[entry.ranker].randomized else self.seeds[:1]
        return [dataclasses.replace(best, seed=seed) for seed in seeds]

    def run(self, *, workers: int = 1, progress: Callable[[str, int], Any] | None = None) -> list[Failure]:
        """Runs the jobs that have no result yet.

        Args:
          workers: The number of processes; 0 runs all jobs in this one.
          progress: Makes a progress bar, a context manager with `update`, from a title and the number of jobs.

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
