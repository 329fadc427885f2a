"""Comparison of losses for rerankers, by cross-validation or on a fixed split of the queries."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _extras, evaluation, study
from tfr_smooth.evaluation.trec import Qrels, Run
from tfr_smooth.losses import RankingLoss, serialize
from tfr_smooth.study.jobs import StoredJob, is_done, read_description, run_job
from tfr_smooth.text.collection import Collection, fold_queries
from tfr_smooth.text.rerankers import Reranker
from tfr_smooth.text.reranking import MEASURES, Recipe, best_mix, mix, train
from tfr_smooth.text.token_inputs import Inputs, Progress, no_progress

_FIT = ("train", "valid")


@dataclasses.dataclass(frozen=True)
class CrossValidation:
    """Trains and tests a reranker for each loss, fold and seed.

    Fold k tests on the queries of part k, validates on those of the next part and trains on all others. Queries with a
    common source document are in the same part. With `split`, there is one fold, and its parts are given. When
    restarted, it skips the jobs with a result and resumes an interrupted training.

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

    Example:
      >>> import keras_hub, tempfile
      >>> from tfr_smooth import text
      >>> tokenizer = keras_hub.models.BertTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] lift heat drag".split())
      >>> words = ("lift", "heat", "drag")
      >>> documents = {word: text.Document("", word) for word in words}
      >>> labels = {word: {word: 1} for word in words}
      >>> collection = text.Collection(documents, {word: word for word in words}, labels, {})
      >>> inputs = text.LateInputs(collection, tokenizer, query_length=4, document_length=4)
      >>> def make():
      ...     backbone = keras_hub.models.BertBackbone(
      ...         vocabulary_size=8, num_layers=1, num_heads=2, hidden_dim=4, intermediate_dim=8
      ...     )
      ...     return text.LateInteraction(text.Encoder(backbone, tokenizer))
      >>> run, folder = text.bm25(collection), tempfile.mkdtemp()
      >>> validation = text.CrossValidation("mine", collection, run, inputs, make, {"zero_shot": None}, folder, folds=3)
      >>> validation.compute()
      >>> validation.results(["map"]).queries.groupby("ranker")["map"].mean().to_dict()
      {'bm25': 1.0, 'zero_shot': 1.0, 'zero_shot + bm25': 1.0}
    """

    name: str
    collection: Collection
    run: Run
    inputs: Inputs
    make: Callable[[], Reranker]
    losses: Mapping[str, RankingLoss | None]
    folder: str | os.PathLike[str]
    folds: int = 5
    split: Mapping[str, Sequence[str]] | None = None
    first_stage: str = "bm25"
    seeds: int = 1
    recipe: Recipe = dataclasses.field(default_factory=Recipe)
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    strategy: tf.distribute.Strategy | None = None
    verbose: bool = False

    def __post_init__(self) -> None:
        """Checks the arguments."""
        _arguments.integer("folds", self.folds, least=3)
        _arguments.integer("seeds", self.seeds, least=1)
        if self.split is not None and not {*_FIT} < {*self.split}:
            raise ValueError(f"`split` must have 'train', 'valid' and a test set, got {sorted(self.split)}.")

    def jobs(self) -> list[RerankerJob]:
        """Returns the jobs.

        Returns:
          Jobs for `study.run_jobs`, with the attributes `label`, `loss`, `fold` and `seed`, counted from 0. Their
          method `model` trains the model in a given folder, or resumes the training there, and returns it.
        """
        return [
            RerankerJob(self, label, loss, fold, seed)
            for seed in range(self.seeds)
            for label, loss in self.losses.items()
            if loss is not None or seed == 0
            for fold in range(self._fold_count)
        ]

    def compute(self, *, progress: Progress = no_progress) -> None:
        """Runs the jobs that have no result yet.

        Args:
          progress: Wraps an iterable to show progress, as `tqdm.tqdm` does; called with the iterable and a title.

        Raises:
          ValueError: If a split has no training query with both a relevant and another document, or the checkpoints of
            a job have other settings.
        """
        for job in progress([job for job in self.jobs() if not is_done(job, self.folder)], self.name):
            run_job(job, self.folder)

    def parts(self, fold: int) -> dict[str, list[str]]:
        """Returns the query ids of the parts of a fold.

        Args:
          fold: Number of the fold, from 0 to `folds` - 1, or 0 with `split`.

        Returns:
          The query ids of "train", "valid" and "test", or those of `split`.

        Raises:
          ValueError: If the collection has too few queries.
        """
        if self.split is not None:
            return {part: list(queries) for part, queries in self.split.items()}
        folds, valid = self._folds, (fold + 1) % self.folds
        training = [query for number, queries in enumerate(folds) if number not in (fold, valid) for query in queries]
        return {"train": training, "valid": folds[valid], "test": folds[fold]}

    @property
    def tests(self) -> dict[str, str]:
        """The names of the test sets in the results, by part: `name`, or those of `split`."""
        return {"test": self.name} if self.split is None else {part: part for part in self.split if part not in _FIT}

    @property
    def _fold_count(self) -> int:
        return self.folds if self.split is None else 1

    @functools.cached_property
    def _folds(self) -> list[list[str]]:
        return fold_queries(self.collection, self.folds)

    def results(self, measures: Iterable[str] = MEASURES) -> study.Results:
        """Collects the results of the first stage and of each loss, without and with its scores mixed in.

        The weight of the mix is selected per fold and seed by the recipe's measure on the validation queries.

        Args:
          measures: Names of trec_eval measures.

        Returns:
          The results, for `study.write_results` and `study.write_report`. The settings of the jobs are the weights.
          Jobs without a result are skipped.

        Raises:
          ImportError: If the extra `tfr_smooth[study]` is not installed.
        """
        with _extras.needed("pandas", extra="study", by="`results`"):
            import pandas as pd
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
            parts = self.parts(fold)
            for part, test in self.tests.items():
                add({query_id: self.run[query_id] for query_id in parts[part]}, test, fold, self.first_stage, 0)
        for job in self.jobs():
            if is_done(job, self.folder):
                found = read_description(job, self.folder)
                valid = found["valid"]
                weight = best_mix(valid, self.run, self._labels(valid), self.recipe.select_by)
                for part, test in self.tests.items():
                    run = found[part]
                    place = add(run, test, job.fold, job.label, job.seed)
                    add(mix(run, self.run, weight), test, job.fold, job.label + mixed, job.seed)
                    chosen = {"settings": json.dumps({"weight": weight}), "selected": True}
                    seconds = {"fit_seconds": found["seconds"], "epoch_seconds": math.nan}
                    jobs.append({**place, **chosen, **seconds, "curves": "{}"})
        entries = [self.first_stage, *self.losses, *(label + mixed for label in self.losses)]
        settings = {"entries": entries, "sweeps": {}, "select_by": self.recipe.select_by, **self.settings}
        return study.Results(pd.DataFrame(rows), pd.DataFrame(jobs), settings)

    def _labels(self, run: Run) -> Qrels:
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
        if plan.split is not None:
            place["tests"] = list(plan.tests)
        return {**place, "training": training, "settings": dict(plan.settings)}

    @property
    def readable(self) -> str:
        """The label of the loss."""
        return self.label

    def model(self, folder: str | os.PathLike[str]) -> Reranker:
        """Returns the model of the best epoch; trains it, or resumes its training from the checkpoints in a folder."""
        plan = self.plan
        if self.loss is None:
            return plan.make()
        return train(
            plan.make,
            self.loss,
            plan.inputs,
            plan.run,
            plan.collection.labels,
            plan.parts(self.fold),
            folder,
            recipe=plan.recipe,
            seed=self.seed,
            strategy=plan.strategy,
            settings={"fold": self.fold, **plan.settings},
            verbose=plan.verbose,
        )

    def compute(self, cache: Path, unfinished: Path) -> study.Result:
        """Ranks the validation and test queries with the model."""
        plan, model, parts, runs = self.plan, self.model(unfinished), self.plan.parts(self.fold), {}
        for part in ("valid", *plan.tests):
            runs[part] = plan.inputs.rank(model, {query: plan.run[query] for query in parts[part]})
        tf.keras.backend.clear_session()
        return study.Result(runs, {})
