"""Training and evaluation of one reranker."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, evaluation, losses, training
from tfr_smooth.evaluation.trec import Qrels, Run
from tfr_smooth.text.inputs import Inputs, rank
from tfr_smooth.text.rerankers import Reranker
from tfr_smooth.text.training_lists import TrainingLists

MEASURES = (
    *("P_1", "P_5", "P_10", "P_20", "map"),
    *("ndcg_cut_1", "ndcg_cut_5", "ndcg_cut_10", "ndcg_cut_20", "ndcg"),
)
# Weights of the model's score where it is mixed with BM25's.
_MIXES = tuple(number / 10 for number in range(11))


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a reranker is trained. The defaults are the SmoothI paper's, but for epochs and patience.

    Args:
      epochs: The largest number of epochs, >= 1.
      patience: Epochs without a better validation figure before training stops, >= 1.
      batch_size: Lists per step, >= 1.
      learning_rate: Adam's learning rate for the encoder, > 0.
      relevant: Relevant documents per list, >= 1.
      others: Other documents per list, >= 1.
      select_by: The validation measure that tells the best epoch.

    Raises:
      ValueError: If an argument is out of its range.
    """

    epochs: int = 10
    patience: int = 3
    batch_size: int = 8
    learning_rate: float = 2e-5
    relevant: int = 2
    others: int = 2
    select_by: str = "ndcg_cut_10"

    def __post_init__(self) -> None:
        """Checks the arguments."""
        for name in ("epochs", "patience", "batch_size", "relevant", "others"):
            _arguments.integer(name, getattr(self, name), least=1)
        _arguments.real("learning_rate", self.learning_rate, above=0.0)
        _arguments.choice("select_by", self.select_by, MEASURES)


def train(
    make: Callable[[], Reranker],
    loss: losses.RankingLoss,
    inputs: Inputs,
    run: Run,
    labels: Qrels,
    parts: Mapping[str, Sequence[str]],
    folder: str | os.PathLike[str],
    *,
    recipe: Recipe | None = None,
    seed: int = 0,
    strategy: tf.distribute.Strategy | None = None,
    settings: Mapping[str, Any] | None = None,
    verbose: int | str = 2,
) -> Reranker:
    """Trains a reranker, and resumes where an interrupted training with the same folder stopped.

    Args:
      make: Makes the model to start from.
      loss: The loss.
      inputs: The model's inputs.
      run: The candidates.
      labels: The judgments.
      parts: The query ids of "train" and "valid".
      folder: Where checkpoints and the model of the best epoch, `best.keras`, are kept.
      recipe: How to train; None for `Recipe()`.
      seed: Seed of the lists and of dropout.
      strategy: Where to train, as `training.get_strategy` returns it; None for one device.
      settings: What else tells this training from others (JSON values); to resume with others is an error.
      verbose: That of `fit`.

    Returns:
      The model of the best epoch, on one device.

    Raises:
      ValueError: If no training query has both a relevant and another document, or the folder is of a training with
        other settings.
    """
    recipe, strategy = recipe or Recipe(), strategy or training.get_strategy("none")
    folder = Path(folder)
    tf.keras.utils.set_random_seed(seed)
    lists = TrainingLists(parts["train"], labels, run, relevant=recipe.relevant, others=recipe.others, seed=seed)
    with strategy.scope():
        model = make()
        model.compile(optimizer=tf.keras.optimizers.Adam(recipe.learning_rate), loss=loss)

    valid = {query_id: run[query_id] for query_id in parts["valid"]}
    valid_labels = {query_id: labels.get(query_id, {}) for query_id in valid}

    def figures(current: Reranker) -> dict[str, float]:
        return evaluation.trec_eval(rank(current, inputs, valid), recipe.select_by, qrels=valid_labels)

    validation = training.Validation(
        figures, monitor=recipe.select_by, path=folder / "best.keras", patience=recipe.patience
    )
    resumable = training.ResumableTraining(
        folder / "checkpoints",
        validation=validation,
        settings={**dataclasses.asdict(recipe), "loss": losses.serialize(loss), "seed": seed, **(settings or {})},
    )
    finished = resumable.restore(model)
    if finished < recipe.epochs and not validation.stopped:
        model.fit(
            lists.dataset(inputs, batch_size=recipe.batch_size, epochs=range(finished, recipe.epochs)),
            initial_epoch=finished,
            epochs=recipe.epochs,
            steps_per_epoch=math.ceil(len(lists) / recipe.batch_size),
            shuffle=False,
            verbose=verbose,
            callbacks=[validation, resumable],
        )
    training.wait_for_workers(strategy)
    # Outside of the strategy: to rank takes one device.
    return tf.keras.models.load_model(folder / "best.keras", compile=False)


def mix(first: Run, second: Run, weight: float) -> dict[str, dict[str, float]]:
    """Mixes two runs of the same documents.

    Scores are standardized over the documents of each query, to mean 0 and variance 1, and then averaged.

    Args:
      first: The first run.
      second: The second.
      weight: The weight of the first, in [0, 1]; the second has the rest.

    Returns:
      The mixed run.

    Example:
      >>> from tfr_smooth import text
      >>> text.mix({"q": {"a": 2.0, "b": 0.0}}, {"q": {"a": 10.0, "b": 30.0}}, 0.25)
      {'q': {'a': -0.5, 'b': 0.5}}
    """
    mixed = {}
    for query_id, scores in first.items():
        ones = _standardized(scores.values())
        others = _standardized(second[query_id][doc_id] for doc_id in scores)
        mixed[query_id] = dict(zip(scores, (weight * ones + (1.0 - weight) * others).tolist(), strict=True))
    return mixed


def best_mix(first: Run, second: Run, labels: Qrels, measure: str) -> float:
    """Returns the weight in 0, 0.1, .., 1 with which `mix` has the best figure; of equal ones the middle one.

    Args:
      first: The first run.
      second: The second, of the same documents.
      labels: The judgments of these queries.
      measure: Name of trec_eval's measure.
    """
    figures = [evaluation.trec_eval(mix(first, second, weight), measure, qrels=labels)[measure] for weight in _MIXES]
    best = [weight for weight, figure in zip(_MIXES, figures, strict=True) if figure == max(figures)]
    return best[len(best) // 2]


def _standardized(values: Iterable[float]) -> np.ndarray:
    array = np.array(list(values), np.float64)
    deviation = array.std() if len(array) else 0.0
    return (array - array.mean()) / deviation if deviation > 0.0 else np.zeros_like(array)
