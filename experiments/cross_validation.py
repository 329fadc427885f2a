"""Comparison of losses for rerankers, by cross-validation or on a fixed split of the queries."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
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
from tfr_smooth.losses import RankingLoss

Run = Mapping[str, Mapping[str, float]]
MEASURES = (
    *("P_1", "P_5", "P_10", "P_20", "map", "recip_rank"),
    *("ndcg_cut_1", "ndcg_cut_5", "ndcg_cut_10", "ndcg_cut_20", "ndcg"),
)
_FIT = ("train", "valid")
# Candidate weights of the model's scores in a mix with those of the first stage.
_MIXES = tuple(number / 10 for number in range(11))


@dataclasses.dataclass(frozen=True)
class CrossValidation:
    """Trains and tests a reranker for each loss, fold and seed.

    The queries are divided into groups, one per fold, with queries of a common source document in the same group. Fold
    k tests on group k, validates on the next one and trains on all others. With `split`, there is one fold, which is
    given. When restarted, it skips the jobs with a result and resumes an interrupted training.

    Args:
      name: Name of the collection in the results.
      table: A table as of `text_collections.read_collection`: the candidates, with the scores of the first stage, and
        the relevant documents that are no candidates, without a score.
      ranker: The reranker, with its arguments; not trained.
      losses: The losses to compare by their label in the results. None stands for the initial model without training.
      folder: The folder of results and checkpoints.
      sources: For query ids, the documents from which the query was written.
      folds: Number of folds of similar size, >= 3. No effect with `split`.
      split: The query ids of "train", "valid" and of one or more test sets, by their names in the results. None
        cross-validates.
      first_stage: The label of the first stage in the results.
      seeds: Number of seeds per loss, >= 1.
      init_model: A trained ranker to continue from.
      settings: Further settings that identify this study, such as the content of the encoder, as JSON values by name.
      strategy: Distribution strategy for training; None trains on one device.

    Raises:
      ValueError: If an argument is out of its range.
    """

    name: str
    table: pd.DataFrame
    ranker: text.TextRanker
    losses: Mapping[str, RankingLoss | None]
    folder: str | os.PathLike[str]
    sources: Mapping[str, Iterable[str]] = dataclasses.field(default_factory=dict)
    folds: int = 5
    split: Mapping[str, Sequence[str]] | None = None
    first_stage: str = "bm25"
    seeds: int = 1
    init_model: text.TextRanker | None = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    strategy: tf.distribute.Strategy | None = None

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
        return _grouped(self.table["query_id"].unique().tolist(), self.sources, self.folds)

    @functools.cached_property
    def content(self) -> str:
        """A hash of the table and the split."""
        found = hashlib.sha256(self.table.to_csv(index=False).encode())
        found.update(json.dumps(self.split, sort_keys=True).encode())
        return found.hexdigest()[:16]

    def rows(self, queries: Iterable[str], *, ranked: bool = True) -> pd.DataFrame:
        """Returns the rows of queries, without those that are no candidates if `ranked`."""
        found = self.table[self.table["query_id"].isin([*queries])]
        return found[found["score"].notna()] if ranked else found

    def values(self, column: str, queries: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Returns the labels, or the run of the scores of the first stage, of queries."""
        rows = self.rows(queries, ranked=column == "score")
        return run_of(queries, rows, rows[column])

    def results(self, measures: Iterable[str] = MEASURES) -> Results:
        """Collects the results of the first stage and of each loss, without and with its scores mixed in.

        The weight of the mix is selected per fold and seed by the ranker's measure on the validation queries.

        The settings of the jobs are these weights. Jobs without a result are skipped.
        """
        rows: list[dict[str, Any]] = []
        jobs: list[dict[str, Any]] = []
        names, select_by = list(measures), self.ranker.get_params()["select_by"]

        def add(run: Run, test: str, fold: int, label: str, seed: int) -> dict[str, Any]:
            place = {"dataset": test, "fold": fold, "ranker": label, "seed": seed}
            by_query = evaluation.trec_eval_by_query(run, names, qrels=self.values("label", run))
            rows.extend({**place, "query": query_id, **values} for query_id, values in by_query.items())
            return place

        mixed = f" + {self.first_stage}"
        for fold in range(self._fold_count):
            queries = self.queries(fold)
            for name, test in self.tests.items():
                add(self.values("score", queries[name]), test, fold, self.first_stage, 0)
        for job in self.jobs():
            if is_done(job, self.folder):
                found = read_result(job, self.folder).description
                valid = found["valid"]
                weight = best_mix(valid, self.values("score", valid), self.values("label", valid), select_by)
                for name, test in self.tests.items():
                    run = found[name]
                    place = add(run, test, job.fold, job.label, job.seed)
                    add(mix(run, self.values("score", run), weight), test, job.fold, job.label + mixed, job.seed)
                    chosen = {"settings": json.dumps({"weight": weight}), "selected": True}
                    jobs.append({**place, **chosen, "fit_seconds": found["seconds"], "curves": "{}"})
        entries = [self.first_stage, *self.losses, *(label + mixed for label in self.losses)]
        settings = {"entries": entries, "select_by": select_by, "content": self.content, **self.settings}
        return Results(pd.DataFrame(rows), pd.DataFrame(jobs), settings)


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
        plan, loss = self.plan, None if self.loss is None else tf.keras.losses.serialize(self.loss)
        training = {**self.ranker.get_params(), "loss": loss}
        del training["encoder"], training["verbose"]
        place = {"dataset": plan.name, "fold": self.fold, "folds": plan._fold_count, "seed": self.seed}
        return {**place, "content": plan.content, "training": training, "settings": dict(plan.settings)}

    @property
    def ranker(self) -> text.TextRanker:
        """The ranker with the arguments of this job."""
        params = {**self.plan.ranker.get_params(), "seed": self.seed}
        return text.TextRanker(**{**params, **({"epochs": 0} if self.loss is None else {"loss": self.loss})})

    @property
    def readable(self) -> str:
        """The label of the loss."""
        return self.label

    def trained(self, folder: str | os.PathLike[str]) -> text.TextRanker:
        """Returns the trained ranker; resumes its training from the checkpoints in a folder."""
        plan, parts = self.plan, self.plan.queries(self.fold)
        return self.ranker.fit(
            plan.rows(parts["train"], ranked=False),
            query_id="query_id",
            validation=plan.rows(parts["valid"]),
            init_model=plan.init_model,
            strategy=plan.strategy,
            checkpoint_dir=folder,
            cache_dir=Path(plan.folder) / "cache",
        )

    def compute(self, cache: Path, unfinished: Path) -> Result:
        """Ranks the validation and test queries with the model."""
        plan, ranker, parts, runs = self.plan, self.trained(unfinished), self.plan.queries(self.fold), {}
        for part in ("valid", *plan.tests):
            rows = plan.rows(parts[part])
            runs[part] = run_of(parts[part], rows, ranker.predict(rows))
        tf.keras.backend.clear_session()
        return Result(runs, {})


def run_of(queries: Iterable[str], rows: pd.DataFrame, values: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """Returns values of rows by query and document."""
    found: dict[str, dict[str, Any]] = {query_id: {} for query_id in queries}
    for query_id, doc_id, value in zip(rows["query_id"], rows["doc_id"], np.asarray(values).tolist(), strict=True):
        found[query_id][doc_id] = value
    return found


def mix(first: Run, second: Run, weight: float) -> dict[str, dict[str, float]]:
    """Mixes two runs by a weighted average of their scores, standardized over the documents of each query.

    Args:
      first: The first run: for each query id, a dict of doc id to score.
      second: The second run, which must contain all documents of the first run.
      weight: Weight of the first run, in [0, 1]; the weight of the second run is 1 - `weight`.

    Returns:
      The mixed run, with the documents of the first run.
    """
    mixed = {}
    for query_id, scores in first.items():
        pairs = (_standardized(scores.values()), _standardized(second[query_id][doc_id] for doc_id in scores))
        mixed[query_id] = dict(zip(scores, (weight * pairs[0] + (1.0 - weight) * pairs[1]).tolist(), strict=True))
    return mixed


def best_mix(first: Run, second: Run, labels: Mapping[str, Mapping[str, int]], measure: str) -> float:
    """Returns the weight of 0, 0.1, .., 1 of `mix` with the best value of a measure; of equal ones the middle one."""
    values = [evaluation.trec_eval(mix(first, second, weight), measure, qrels=labels)[measure] for weight in _MIXES]
    best = [weight for weight, value in zip(_MIXES, values, strict=True) if value == max(values)]
    return best[len(best) // 2]


def _standardized(values: Iterable[float]) -> np.ndarray:
    array = np.array([*values], np.float64)
    return (array - array.mean()) / array.std() if len(set(array.tolist())) > 1 else np.zeros_like(array)


def _grouped(query_ids: Sequence[str], sources_of: Mapping[str, Iterable[str]], count: int) -> list[list[str]]:
    """Divides the queries into groups of similar size; those with a common source document are in the same group."""
    connected: list[tuple[set[str], list[str]]] = []  # sources and queries
    for query_id in query_ids:
        sources, queries = set(sources_of.get(query_id, ())), [query_id]
        for each in [each for each in connected if each[0] & sources]:
            connected.remove(each)
            sources, queries = sources | each[0], each[1] + queries
        connected.append((sources, queries))
    if len(connected) < count:
        expected = f"at least {count} queries without a common source"
        raise ValueError(f"`table` must have {expected}, got {len(connected)}.")
    np.random.RandomState(0).shuffle(connected)  # type: ignore[arg-type]
    groups: list[list[str]] = [[] for _ in range(count)]
    for _, queries in connected:
        min(groups, key=len).extend(queries)
    return groups
