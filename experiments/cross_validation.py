"""Comparison of losses for rerankers, by cross-validation or on a fixed split of the queries."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tensorflow as tf

from experiments.execution import Progress, no_progress, run_jobs
from experiments.folds import check_name
from experiments.jobs import Result, StoredJob, is_done, read_result
from experiments.results import Results
from tfr_smooth import evaluation, text
from tfr_smooth.losses import RankingLoss, serialize

Run = Mapping[str, Mapping[str, float]]
_FIT = ("train", "valid")


@dataclasses.dataclass(frozen=True)
class CrossValidation:
    """Trains and tests a reranker for each loss, fold and seed.

    The queries are divided into groups, one per fold, with queries of a common source document in the same group. Fold
    k tests on group k, validates on the next one and trains on all others. With `split`, there is one fold, which is
    given. When restarted, it skips the jobs with a result and resumes an interrupted training.

    Args:
      name: Name of the collection in the results.
      collection: The collection.
      run: For each query id, the candidates with the scores of the first stage, such as the return value of `bm25`.
      inputs: The inputs of the models.
      make: Function that creates the initial model.
      losses: The losses to compare by their label in the results. None stands for the initial model without training.
      folder: The folder of results and checkpoints.
      folds: Number of folds of similar size, >= 3. No effect with `split`.
      split: The query ids of "train", "valid" and of one or more test sets, by their names in the results. None
        cross-validates.
      first_stage: The label of `run` in the results.
      seeds: Number of seeds per loss, >= 1.
      recipe: Training settings.
      settings: Further settings that identify this study, such as the size of the model, as JSON values by name.
      strategy: Distribution strategy for training; None trains on one device.
      verbose: Whether to print the progress of each training.

    Raises:
      ValueError: If an argument is out of its range.
    """

    name: str
    collection: text.Collection
    run: Run
    inputs: text.Inputs
    make: Callable[[], text.Reranker]
    losses: Mapping[str, RankingLoss | None]
    folder: str | os.PathLike[str]
    folds: int = 5
    split: Mapping[str, Sequence[str]] | None = None
    first_stage: str = "bm25"
    seeds: int = 1
    recipe: text.RerankerRecipe = dataclasses.field(default_factory=text.RerankerRecipe)
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    strategy: tf.distribute.Strategy | None = None
    verbose: bool = False

    def __post_init__(self) -> None:
        """Checks the arguments."""
        for name, value, least in (("folds", self.folds, 3), ("seeds", self.seeds, 1)):
            if value < least:
                raise ValueError(f"`{name}` must be an integer >= {least}, got {value!r}.")
        for name in self.tests.values():
            check_name("name" if self.split is None else "split", name)
        if self.split is not None and not {*_FIT} < {*self.split}:
            raise ValueError(f"`split` must have 'train', 'valid' and a test set, got {sorted(self.split)}.")

    def jobs(self) -> list[RerankerJob]:
        """Returns the jobs for `run_jobs`, with the attributes `label`, `loss`, `fold` and `seed`, from 0 on."""
        return [
            RerankerJob(self, label, loss, fold, seed)
            for seed in range(self.seeds)
            for label, loss in self.losses.items()
            if loss is not None or seed == 0
            for fold in range(self._fold_count)
        ]

    def compute(self, *, progress: Progress = no_progress) -> None:
        """Runs the jobs that have no result yet, in this process.

        Raises:
          RuntimeError: If jobs failed, such as for a fold in which no training query has both a relevant and another
            document; with the last traceback. The others have results.
        """
        failures = run_jobs(self.jobs(), self.folder, workers=0, progress=progress, title=self.name)
        if failures:
            raise RuntimeError(f"{len(failures)} jobs failed:\n{failures[-1].message}")

    def queries(self, fold: int) -> dict[str, list[str]]:
        """Returns the query ids of "train", "valid" and "test", or those of `split`.

        Raises:
          ValueError: If the collection has too few queries.
        """
        if self.split is not None:
            return {name: list(queries) for name, queries in self.split.items()}
        groups, valid = self._groups, (fold + 1) % self.folds
        training = [query for number, group in enumerate(groups) if number not in (fold, valid) for query in group]
        return {"train": training, "valid": groups[valid], "test": groups[fold]}

    @property
    def tests(self) -> dict[str, str]:
        """The names of the test sets in the results, by those of `queries`."""
        return {"test": self.name} if self.split is None else {name: name for name in self.split if name not in _FIT}

    @property
    def _fold_count(self) -> int:
        return self.folds if self.split is None else 1

    @functools.cached_property
    def _groups(self) -> list[list[str]]:
        return _grouped(self.collection, self.folds)

    @functools.cached_property
    def content(self) -> str:
        """A hash of the texts, labels, candidates and split."""
        found = hashlib.sha256()
        for each in (*self.collection[:3], self.run, self.split):
            found.update(json.dumps(each, sort_keys=True, default=float).encode())
        return found.hexdigest()[:16]

    def results(self, measures: Iterable[str] = text.MEASURES) -> Results:
        """Collects the results of the first stage and of each loss, without and with its scores mixed in.

        The weight of the mix is selected per fold and seed by the recipe's measure on the validation queries.

        The settings of the jobs are these weights. Jobs without a result are skipped.
        """
        rows: list[dict[str, Any]] = []
        jobs: list[dict[str, Any]] = []
        names = list(measures)

        def add(run: Run, test: str, fold: int, label: str, seed: int) -> dict[str, Any]:
            place = {"dataset": test, "fold": fold, "ranker": label, "seed": seed}
            by_query = evaluation.trec_eval_by_query(run, names, qrels=self._labels(run))
            rows.extend({**place, "query": query_id, **values} for query_id, values in by_query.items())
            return place

        mixed = f" + {self.first_stage}"
        for fold in range(self._fold_count):
            queries = self.queries(fold)
            for name, test in self.tests.items():
                add({query_id: self.run[query_id] for query_id in queries[name]}, test, fold, self.first_stage, 0)
        for job in self.jobs():
            if is_done(job, self.folder):
                found = read_result(job, self.folder).description
                valid = found["valid"]
                weight = text.best_mix(valid, self.run, self._labels(valid), self.recipe.select_by)
                for name, test in self.tests.items():
                    run = found[name]
                    place = add(run, test, job.fold, job.label, job.seed)
                    add(text.mix(run, self.run, weight), test, job.fold, job.label + mixed, job.seed)
                    chosen = {"settings": json.dumps({"weight": weight}), "selected": True}
                    jobs.append({**place, **chosen, "fit_seconds": found["seconds"], "curves": "{}"})
        entries = [self.first_stage, *self.losses, *(label + mixed for label in self.losses)]
        settings = {"entries": entries, "select_by": self.recipe.select_by, "content": self.content, **self.settings}
        return Results(pd.DataFrame(rows), pd.DataFrame(jobs), settings)

    def _labels(self, run: Run) -> dict[str, Mapping[str, int]]:
        return {query_id: self.collection.labels[query_id] for query_id in run}


@dataclasses.dataclass(frozen=True)
class RerankerJob(StoredJob):
    """The training of a reranker with one loss, fold and seed."""

    plan: CrossValidation
    label: str
    loss: RankingLoss | None
    fold: int
    seed: int

    @property
    def description(self) -> dict[str, Any]:
        """The values that identify this job, as JSON values."""
        plan = self.plan
        training = {} if self.loss is None else {"loss": serialize(self.loss), **dataclasses.asdict(plan.recipe)}
        place = {"dataset": plan.name, "fold": self.fold, "folds": plan._fold_count, "seed": self.seed}
        return {**place, "content": plan.content, "training": training, "settings": dict(plan.settings)}

    @property
    def readable(self) -> str:
        """The label of the loss."""
        return self.label

    def model(self, folder: str | os.PathLike[str]) -> text.Reranker:
        """Returns the model of the best epoch; trains it, or resumes its training from the checkpoints in a folder."""
        plan = self.plan
        if self.loss is None:
            return plan.make()
        return text.train(
            plan.make,
            self.loss,
            plan.inputs,
            plan.run,
            plan.collection.labels,
            plan.queries(self.fold),
            folder,
            recipe=plan.recipe,
            seed=self.seed,
            strategy=plan.strategy,
            settings={"fold": self.fold, **plan.settings},
            verbose=plan.verbose,
        )

    def compute(self, cache: Path, unfinished: Path) -> Result:
        """Ranks the validation and test queries with the model."""
        plan, model, parts, runs = self.plan, self.model(unfinished), self.plan.queries(self.fold), {}
        for part in ("valid", *plan.tests):
            runs[part] = plan.inputs.rank(model, {query: plan.run[query] for query in parts[part]})
        tf.keras.backend.clear_session()
        return Result(runs, {})


def _grouped(collection: text.Collection, count: int) -> list[list[str]]:
    """Divides the queries into groups of similar size; those with a common source document are in the same group."""
    connected: list[tuple[set[str], list[str]]] = []  # sources and queries
    for query_id in collection.queries:
        sources, queries = set(collection.sources.get(query_id, ())), [query_id]
        for each in [each for each in connected if each[0] & sources]:
            connected.remove(each)
            sources, queries = sources | each[0], each[1] + queries
        connected.append((sources, queries))
    if len(connected) < count:
        expected = f"at least {count} queries without a common source"
        raise ValueError(f"`collection` must have {expected}, got {len(connected)}.")
    np.random.RandomState(0).shuffle(connected)  # type: ignore[arg-type]
    groups: list[list[str]] = [[] for _ in range(count)]
    for _, queries in connected:
        min(groups, key=len).extend(queries)
    return groups
