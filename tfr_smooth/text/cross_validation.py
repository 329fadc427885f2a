"""Cross-validation of losses for rerankers over the queries of a collection."""

from __future__ import annotations

import dataclasses
import functools
import gzip
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _extras, _files, evaluation, losses, study
from tfr_smooth.evaluation.trec import Qrels, Run
from tfr_smooth.study import selection
from tfr_smooth.text.collection import Collection
from tfr_smooth.text.rerankers import Reranker
from tfr_smooth.text.reranking import MEASURES, Recipe, best_mix, mix, train
from tfr_smooth.text.token_inputs import Inputs, Progress, no_progress, rank

BM25 = "bm25"
ZERO_SHOT = "zero_shot"
MIXED = " + bm25"


def fold_queries(collection: Collection, *, folds: int = 5, seed: int = 0) -> list[list[str]]:
    """Divides the queries into folds of similar size.

    Queries with a common source document are in the same fold.

    Args:
      collection: The collection.
      folds: Number of folds, >= 3, since a split needs training, validation and test queries.
      seed: Seed of the assignment, >= 0.

    Returns:
      The query ids of each fold.

    Raises:
      ValueError: If the collection has too few queries, or an argument is out of its range.

    Example:
      >>> from tfr_smooth import text
      >>> sources = {"q1": frozenset({"d1"}), "q3": frozenset({"d1"})}
      >>> collection = text.Collection({}, {"q1": "a", "q2": "b", "q3": "c", "q4": "d"}, {}, sources)
      >>> sorted(text.fold_queries(collection, folds=3), key=len)[-1]
      ['q1', 'q3']
    """
    folds = _arguments.integer("folds", folds, least=3)
    groups: list[tuple[set[str], list[str]]] = []  # sources and queries
    for query_id in collection.queries:
        sources, queries = set(collection.sources.get(query_id, ())), [query_id]
        for group in [group for group in groups if group[0] & sources]:
            groups.remove(group)
            sources, queries = sources | group[0], group[1] + queries
        groups.append((sources, queries))
    if len(groups) < folds:
        raise ValueError(f"`collection` must have at least {folds} queries without a common source, got {len(groups)}.")
    np.random.RandomState(_arguments.integer("seed", seed, least=0)).shuffle(groups)  # type: ignore[arg-type]
    dealt: list[list[str]] = [[] for _ in range(folds)]
    for _, queries in groups:
        min(dealt, key=len).extend(queries)
    return dealt


@dataclasses.dataclass(frozen=True)
class CrossValidation:
    """Cross-validation: trains and tests a reranker for each loss, fold and seed.

    Split k tests on the queries of fold k, validates on those of the next fold and trains on all others. When
    restarted, it skips the jobs with a result and resumes an interrupted training.

    Args:
      name: Name of the collection in the results.
      collection: The collection.
      run: For each query id, the candidates with BM25's scores, as `bm25` returns them.
      inputs: The inputs of the models.
      make: Function that creates the initial model.
      losses: What to compare: labels of losses (see `loss_of`), such as "smoothi_ndcg:alpha=10.0", and `ZERO_SHOT` for
        the initial model without training.
      folder: The folder of results and checkpoints.
      folds: Number of folds, as in `fold_queries`.
      seeds: Number of seeds per loss, >= 1.
      recipe: Training settings.
      settings: Further settings that identify this study, such as the size of the model, as JSON values by name.
      strategy: Distribution strategy for training; None trains on one device.
      verbose: The argument `verbose` of `tf.keras.Model.fit`.

    Raises:
      ValueError: If an argument is out of its range, or a label is invalid.

    Example:
      >>> import pathlib, tempfile
      >>> from tfr_smooth import text
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> _ = (folder / "vocab.txt").write_text("[PAD] [UNK] [CLS] [SEP] lift heat drag".replace(" ", chr(10)))
      >>> tokenizer = text.Tokenizer(folder)
      >>> words = ("lift", "heat", "drag")
      >>> collection = text.Collection(
      ...     {f"{word} 1": text.Document("", word) for word in words},
      ...     {word: word for word in words},
      ...     {word: {f"{word} 1": 1} for word in words},
      ...     {},
      ... )
      >>> config = text.BertConfig(
      ...     vocab_size=7, hidden_size=4, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
      ... )
      >>> validation = text.CrossValidation(
      ...     name="mine",
      ...     collection=collection,
      ...     run=text.bm25(collection),
      ...     inputs=text.LateInputs(collection, tokenizer, query_length=4, document_length=4),
      ...     make=lambda: text.LateInteraction(text.BertEncoder(config, sep_id=tokenizer.special.sep)),
      ...     losses=[text.ZERO_SHOT],
      ...     folder=folder,
      ...     folds=3,
      ... )
      >>> validation.compute()
      >>> validation.results(["map"]).queries.groupby("ranker")["map"].mean().to_dict()
      {'bm25': 1.0, 'zero_shot': 1.0, 'zero_shot + bm25': 1.0}
    """

    name: str
    collection: Collection
    run: Run
    inputs: Inputs
    make: Callable[[], Reranker]
    losses: Sequence[str]
    folder: str | os.PathLike[str]
    folds: int = 5
    seeds: int = 1
    recipe: Recipe = dataclasses.field(default_factory=Recipe)
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    strategy: tf.distribute.Strategy | None = None
    verbose: int = 0

    def __post_init__(self) -> None:
        """Checks the arguments."""
        _arguments.integer("seeds", self.seeds, least=1)
        for label in self.losses:
            if label != ZERO_SHOT:
                loss_of(label)

    def jobs(self) -> list[tuple[str, int, int]]:
        """Returns the jobs.

        Returns:
          Tuples (label, fold, seed), folds and seeds counted from 0.
        """
        seeds = {label: 1 if label == ZERO_SHOT else self.seeds for label in self.losses}
        return [
            (label, fold, seed)
            for seed in range(self.seeds)
            for label in self.losses
            if seed < seeds[label]
            for fold in range(self.folds)
        ]

    def compute(self, *, progress: Progress = no_progress) -> None:
        """Runs the jobs that have no result yet.

        Args:
          progress: Wraps an iterable to show progress, as `tqdm.tqdm` does; called with the iterable and a title.

        Raises:
          ValueError: If a split has no training query with both a relevant and another document, or the checkpoints of
            a job have other settings.
        """
        for job in progress([job for job in self.jobs() if not self._path(*job).is_file()], self.name):
            self._compute(*job)

    def parts(self, fold: int) -> dict[str, list[str]]:
        """Returns the query ids of a split.

        Args:
          fold: Number of the test fold, from 0 to `folds` - 1.

        Returns:
          The query ids of "train", "valid" and "test".
        """
        folds, valid = self._folds, (fold + 1) % self.folds
        training = [query for number, queries in enumerate(folds) if number not in (fold, valid) for query in queries]
        return {"train": training, "valid": folds[valid], "test": folds[fold]}

    @functools.cached_property
    def _folds(self) -> list[list[str]]:
        return fold_queries(self.collection, folds=self.folds)

    def trained(self, label: str, fold: int, seed: int, folder: str | os.PathLike[str]) -> Reranker:
        """Trains the model of a job, or resumes its training from the checkpoints in a folder.

        Args:
          label: Label of the loss.
          fold: Number of the test fold.
          seed: Random seed.
          folder: The folder of the checkpoints.

        Returns:
          The model of the best epoch.

        Raises:
          ValueError: As in `train`.
        """
        return train(
            self.make,
            loss_of(label),
            self.inputs,
            self.run,
            self.collection.labels,
            self.parts(fold),
            folder,
            recipe=self.recipe,
            seed=seed,
            strategy=self.strategy,
            settings={"fold": fold, **self.settings},
            verbose=self.verbose,
        )

    def _compute(self, label: str, fold: int, seed: int) -> None:
        start = time.perf_counter()
        path, parts = self._path(label, fold, seed), self.parts(fold)
        unfinished = path.with_suffix("").with_suffix("")
        model = self.make() if label == ZERO_SHOT else self.trained(label, fold, seed, unfinished)
        runs = {
            part: rank(model, self.inputs, {query_id: self.run[query_id] for query_id in parts[part]})
            for part in ("valid", "test")
        }
        content = {**self._description(label, fold, seed), "seconds": time.perf_counter() - start, **runs}
        path.parent.mkdir(parents=True, exist_ok=True)
        _files.write_bytes(path, [gzip.compress(json.dumps(content).encode(), mtime=0)])
        shutil.rmtree(unfinished, ignore_errors=True)
        tf.keras.backend.clear_session()

    def _description(self, label: str, fold: int, seed: int) -> dict[str, Any]:
        loss = None if label == ZERO_SHOT else losses.serialize(loss_of(label))
        recipe = {} if label == ZERO_SHOT else dataclasses.asdict(self.recipe)
        return {"loss": loss, "fold": fold, "folds": self.folds, "seed": seed, "recipe": recipe, **self.settings}

    def _path(self, label: str, fold: int, seed: int) -> Path:
        description = json.dumps(self._description(label, fold, seed), sort_keys=True, default=str)
        digest = hashlib.sha256(description.encode()).hexdigest()[:12]
        name = "".join(letter if letter.isalnum() or letter in "_=.-" else "_" for letter in label)
        return Path(self.folder) / "results" / self.name / f"{name}_fold={fold}_seed={seed}_{digest}.json.gz"

    def results(self, measures: Iterable[str] = MEASURES) -> study.Results:
        """Collects the results of BM25 and of each loss, without and with BM25's scores mixed in.

        The weight of the mix is selected per fold and seed by the recipe's measure on the validation queries.

        Args:
          measures: Names of trec_eval measures.

        Returns:
          The results, for `study.write_results`. The table of jobs contains the weights. Jobs without a result are
          skipped.

        Raises:
          ImportError: If the extra `tfr_smooth[study]` is not installed.
        """
        with _extras.needed("pandas", extra="study", by="`results`"):
            import pandas as pd
        measures = list(measures)
        rows: list[dict[str, Any]] = []
        jobs: list[dict[str, Any]] = []
        for fold in range(self.folds):
            test = {query_id: self.run[query_id] for query_id in self.parts(fold)["test"]}
            rows += self._rows(test, fold, BM25, 0, measures)
        for label, fold, seed in self.jobs():
            path = self._path(label, fold, seed)
            if not path.is_file():
                continue
            found = json.loads(gzip.decompress(path.read_bytes()))
            weight = best_mix(found["valid"], self.run, self._labels(found["valid"]), self.recipe.select_by)
            rows += self._rows(found["test"], fold, label, seed, measures)
            rows += self._rows(mix(found["test"], self.run, weight), fold, label + MIXED, seed, measures)
            place = {"dataset": self.name, "fold": fold, "ranker": label, "seed": seed}
            jobs.append({**place, "selected": True, "weight": weight, "fit_seconds": found["seconds"]})
        labels = [label + end for end in ("", MIXED) for label in self.losses]
        settings = {"entries": [BM25, *labels], "sweeps": {}, "select_by": self.recipe.select_by, **self.settings}
        return study.Results(pd.DataFrame(rows), pd.DataFrame(jobs), settings)

    def _labels(self, run: Run) -> Qrels:
        return {query_id: self.collection.labels[query_id] for query_id in run}

    def _rows(self, run: Run, fold: int, label: str, seed: int, measures: list[str]) -> Iterator[dict[str, Any]]:
        for query_id, values in evaluation.trec_eval_by_query(run, measures, qrels=self._labels(run)).items():
            place = {"dataset": self.name, "fold": fold, "ranker": label, "seed": seed, "query": query_id}
            yield {**place, **values}


def loss_of(label: str) -> losses.RankingLoss:
    """Creates the loss of a label.

    Args:
      label: `NAME` or `NAME:ARGUMENT=VALUE:..`, with a name and arguments of `losses.get`. Values are JSON; a value
        that is not valid JSON is a string.

    Returns:
      The loss.

    Raises:
      ValueError: If the label is malformed, no loss has this name, or an argument is invalid.

    Example:
      >>> from tfr_smooth import text
      >>> text.loss_of("smoothi_ndcg:alpha=10.0:topn=5").name
      'smoothi_ndcg_loss'
    """
    name, arguments = selection.parse_label(label)
    return losses.get(name, **arguments)
