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
from tfr_smooth.text.rerankers import Reranker
from tfr_smooth.text.token_inputs import Inputs
from tfr_smooth.text.training_lists import TrainingLists

MEASURES = (
    *("P_1", "P_5", "P_10", "P_20", "map", "recip_rank"),
    *("ndcg_cut_1", "ndcg_cut_5", "ndcg_cut_10", "ndcg_cut_20", "ndcg"),
)
# Candidate weights of the model's scores in a mix with BM25's.
_MIXES = tuple(number / 10 for number in range(11))


@dataclasses.dataclass(frozen=True)
class RerankerRecipe:
    """Training settings of a reranker. The defaults are the SmoothI paper's, except for `epochs` and `patience`.

    Args:
      epochs: Maximum number of epochs, >= 1.
      patience: Number of epochs without improvement of the validation measure, >= 1, after which training stops.
      batch_size: Lists per step, >= 1.
      learning_rate: Adam's learning rate for the encoder, > 0.
      relevant: Maximum number of relevant documents per list, >= 1.
      others: Maximum number of other documents per list, >= 1.
      select_by: The validation measure that selects the best epoch, one of `MEASURES`.

    Raises:
      ValueError: If an argument is out of its range.

    Example:
      >>> from tfr_smooth import text
      >>> text.RerankerRecipe(epochs=20, patience=5).learning_rate
      2e-05
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
    recipe: RerankerRecipe | None = None,
    seed: int = 0,
    strategy: tf.distribute.Strategy | None = None,
    settings: Mapping[str, Any] | None = None,
    verbose: bool = True,
) -> Reranker:
    """Trains a reranker, or resumes an interrupted training in the same folder.

    Args:
      make: Function that creates the initial model.
      loss: The loss.
      inputs: The inputs of the model.
      run: For each query id, the candidates with their scores, as `bm25` returns them.
      labels: For each query id, the labels of its judged documents, such as `Collection.labels`.
      parts: The query ids of "train" and "valid".
      folder: The folder of the checkpoints and of the model of the best epoch, `best.keras`.
      recipe: Training settings; None for `RerankerRecipe()`.
      seed: Seed of the training lists and of dropout, >= 0.
      strategy: Distribution strategy, as `training.get_strategy` returns it; None trains on one device.
      settings: Further settings that identify this training, as JSON values by name; None for none. Training does not
        resume with other settings.
      verbose: Whether to print the progress.

    Returns:
      The model of the best epoch, for one device.

    Raises:
      ValueError: If no training query has both a relevant and another document, the inputs are longer than the model
        allows, or the checkpoints in the folder have other settings.

    Example:
      >>> import keras_hub, tempfile
      >>> from tfr_smooth import losses, text
      >>> tokenizer = keras_hub.models.BertTokenizer("[PAD] [UNK] [CLS] [SEP] [MASK] lift heat".split())
      >>> documents = {"d1": text.Document("", "lift"), "d2": text.Document("", "heat")}
      >>> labels = {"q1": {"d1": 1}, "q2": {"d2": 1}}
      >>> collection = text.Collection(documents, {"q1": "lift", "q2": "heat"}, labels, {})
      >>> inputs = text.LateInputs(collection, tokenizer, query_length=4, document_length=4)
      >>> def make():
      ...     backbone = keras_hub.models.BertBackbone(
      ...         vocabulary_size=7, num_layers=1, num_heads=2, hidden_dim=4, intermediate_dim=8
      ...     )
      ...     return text.LateInteraction(text.Encoder(backbone, tokenizer))
      >>> model = text.train(
      ...     make,
      ...     losses.get("smoothi_ndcg"),
      ...     inputs,
      ...     {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d2": 2.0, "d1": 1.0}},
      ...     labels,
      ...     {"train": ["q1"], "valid": ["q2"]},
      ...     tempfile.mkdtemp(),
      ...     recipe=text.RerankerRecipe(epochs=1),
      ...     verbose=False,
      ... )
      >>> sorted(inputs.rank(model, {"q2": ["d1", "d2"]})["q2"])
      ['d1', 'd2']
    """
    recipe, strategy = recipe or RerankerRecipe(), strategy or training.get_strategy("none")
    folder = Path(folder)
    tf.keras.utils.set_random_seed(seed)
    lists = TrainingLists(parts["train"], labels, run, relevant=recipe.relevant, others=recipe.others, seed=seed)
    with strategy.scope():
        model = make()
        inputs.check(model.encoder)
        model.compile(optimizer=tf.keras.optimizers.Adam(recipe.learning_rate), loss=loss)

    valid = {query_id: run[query_id] for query_id in parts["valid"]}
    valid_labels = {query_id: labels.get(query_id, {}) for query_id in valid}

    def metrics(current: Reranker) -> dict[str, float]:
        return evaluation.trec_eval(inputs.rank(current, valid), recipe.select_by, qrels=valid_labels)

    validation = training.Validation(
        metrics, monitor=recipe.select_by, path=folder / "best.keras", patience=recipe.patience
    )
    training.train(
        model,
        lambda finished: lists.dataset(inputs, batch_size=recipe.batch_size, epochs=range(finished, recipe.epochs)),
        epochs=recipe.epochs,
        steps_per_epoch=math.ceil(len(lists) / recipe.batch_size),
        validation=validation,
        checkpoint_dir=folder / "checkpoints",
        settings={**dataclasses.asdict(recipe), "loss": losses.serialize(loss), "seed": seed, **(settings or {})},
        callbacks=[training.ProgressLog()] if verbose else [],
    )
    training.wait_for_workers(strategy)
    # Outside of the strategy's scope: ranking runs on one device.
    return tf.keras.models.load_model(folder / "best.keras", compile=False)


def mix(first: Run, second: Run, weight: float) -> dict[str, dict[str, float]]:
    """Mixes two runs by a weighted average of their scores.

    Scores are first standardized over the documents of each query, to mean 0 and variance 1.

    Args:
      first: The first run: for each query id, a dict of doc id to score.
      second: The second run, which must contain all documents of the first run.
      weight: Weight of the first run, in [0, 1]; the weight of the second run is 1 - `weight`.

    Returns:
      The mixed run, with the documents of the first run.

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
    """Returns the weight of `mix` with the best value of a measure.

    Args:
      first: The first run: for each query id, a dict of doc id to score.
      second: The second run, which must contain all documents of the first run.
      labels: For each query id, the labels of its judged documents.
      measure: Name of a trec_eval measure, such as "ndcg_cut_10".

    Returns:
      The best weight of 0, 0.1, .., 1; of equally good weights the middle one.

    Example:
      >>> from tfr_smooth import text
      >>> first, second = {"q": {"a": 1.0, "b": 0.0}}, {"q": {"a": 10.0, "b": 30.0}}
      >>> text.best_mix(first, second, {"q": {"a": 1}}, "map")
      0.8
    """
    values = [evaluation.trec_eval(mix(first, second, weight), measure, qrels=labels)[measure] for weight in _MIXES]
    best = [weight for weight, value in zip(_MIXES, values, strict=True) if value == max(values)]
    return best[len(best) // 2]


def _standardized(values: Iterable[float]) -> np.ndarray:
    array = np.array(list(values), np.float64)
    deviation = array.std() if len(array) else 0.0
    return (array - array.mean()) / deviation if deviation > 0.0 else np.zeros_like(array)
