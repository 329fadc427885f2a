"""Permutation importance of features: the computation, the table and the plot."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _compiled, _plotting, metrics
from tfr_smooth._printable import printable
from tfr_smooth.evaluation.trec import Estimate
from tfr_smooth.training.scoring import for_inference

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclasses.dataclass(frozen=True)
class FeatureImportance:
    """The permutation importance of each feature, as returned by `permutation_importance`. Print it for a table.

    Args:
      metric: The name of the metric.
      baseline: The metric without shuffling.
      drops: By feature, the baseline minus the metric with the feature shuffled, float64 [repeats]. Stored in the order
        of decreasing means.

    Raises:
      ValueError: If `drops` has no feature, or the features do not have the same number of values, at least one.

    Example:
      >>> from tfr_smooth import training
      >>> importance = training.FeatureImportance("ndcg", baseline=0.8, drops={"bm25": np.array([0.3, 0.1])})
      >>> print(importance)
      feature  drop in ndcg from 0.8000
      bm25      0.2000 ± 0.1000
    """

    metric: str
    baseline: float
    drops: Mapping[str, np.ndarray]

    def __post_init__(self) -> None:
        """Checks and sorts the drops."""
        drops = {name: np.asarray(values, np.float64) for name, values in self.drops.items()}
        shapes = {name: values.shape for name, values in drops.items()}
        if len(set(shapes.values())) != 1 or not all(len(shape) == 1 and shape[0] for shape in shapes.values()):
            raise ValueError(
                f"`drops` must have the same number of values for each feature, at least one, got shapes {shapes}."
            )
        falling = sorted(drops, key=lambda name: -drops[name].mean())
        object.__setattr__(self, "drops", {name: drops[name] for name in falling})

    @property
    def means(self) -> dict[str, float]:
        """By feature, the mean drop. Negative if the metric increases: by chance, or for a harmful feature."""
        return {name: float(drops.mean()) for name, drops in self.drops.items()}

    @property
    def standard_errors(self) -> dict[str, float]:
        """By feature, the standard error of the mean drop over the repeats; NaN for one repeat."""
        return {
            name: float(drops.std(ddof=1) / np.sqrt(len(drops))) if len(drops) > 1 else np.nan
            for name, drops in self.drops.items()
        }

    def __str__(self) -> str:
        """Returns a table of the mean drops and, for several repeats, their standard errors."""
        errors = self.standard_errors
        estimates = {name: Estimate(mean, errors[name]) for name, mean in self.means.items()}
        shown = {name: printable(name) for name in self.drops}
        width = max(len("feature"), *map(len, shown.values()))
        lines = [f"{'feature':<{width}}  drop in {self.metric} from {self.baseline:.4f}"]
        lines += [f"{shown[name]:<{width}}  {' ' * (drop.mean >= 0)}{drop}" for name, drop in estimates.items()]
        return "\n".join(lines)

    def plot(self, path: str | os.PathLike[str], *, top: int = 20) -> None:
        """Plots the mean drops as bars, with their standard errors if there is more than one repeat.

        Args:
          path: The PNG file to write, in an existing directory. An existing file is replaced atomically.
          top: The number of features, >= 1; those with the highest mean drops are shown.

        Raises:
          ValueError: If `top` is invalid.
          ImportError: If matplotlib is not installed; the extra `tfr_smooth[evaluation]` includes it.

        Example:
          >>> import os, tempfile
          >>> from tfr_smooth import training
          >>> drops = {"bm25": [0.10, 0.12], "length": [0.01, 0.03]}
          >>> with tempfile.TemporaryDirectory() as folder:
          ...     path = os.path.join(folder, "importance.png")
          ...     training.FeatureImportance("ndcg", baseline=0.8, drops=drops).plot(path)
          ...     os.path.getsize(path) > 0
          True
        """
        top = _arguments.integer("top", top, least=1)
        _plotting.write_png(path, lambda: draw(self, top), by="`FeatureImportance.plot`")


def draw(importance: FeatureImportance, top: int) -> Figure:
    """Returns the figure of `FeatureImportance.plot` in the current theme."""
    repeats, errors = len(next(iter(importance.drops.values()))), importance.standard_errors.values()
    over = f"mean and standard error of {repeats} repeats" if repeats > 1 else "one repeat"
    title, label = f"Feature importance, {over}", f"drop in {importance.metric} when the feature is shuffled"
    return _plotting.bars(importance.means, top, title=title, label=label, errors=[*errors] if repeats > 1 else ())


def permutation_importance(
    model: Callable[[Any], tf.Tensor],
    dataset: Iterable[Any],
    metric: tf.keras.metrics.Metric | None = None,
    *,
    names: Sequence[str] | None = None,
    repeats: int = 5,
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> FeatureImportance:
    """Measures how much a metric of a trained ranker drops when each feature is shuffled.

    A feature's values are permuted over all documents of the dataset, across lists (Breiman 2001). The drop shows how
    much this model depends on the feature on this dataset; features that are copies of each other may each show a small
    drop.

    Args:
      model: The model, or any function from a batch's inputs to scores [batch, list].
      dataset: A finite dataset of (inputs, labels), such as the validation or test set. Inputs are a dict with
        `features` [batch, list, num_features], or the features only; labels [batch, list], or [batch, list, objectives]
        as the metric takes them, are negative for padding.
      metric: A metric for which higher is better, which is reset. None uses `metrics.NDCGMetric()`.
      names: The name of each feature; features with the same name are shuffled together, such as those of one column.
        None uses "1", "2" and so on, as in LETOR.
      repeats: Permutations per feature, >= 1.
      seed: Seed of the permutations, >= 0.
      progress: Called with (finished features, total features). None reports no progress.

    Returns:
      The drops, sorted by decreasing mean. The drop of a feature that the model does not use is exactly 0.

    Raises:
      ValueError: If an argument is invalid.

    Time: 1 + repeats * num_features forward passes. Memory: the dataset.

    Example:
      >>> import tensorflow as tf
      >>> import tfr_smooth
      >>> features = tf.random.stateless_uniform([50, 4, 2], (1, 2))
      >>> dataset = [(features, tf.cast(features[:, :, 1] > 0.5, tf.float32))]
      >>> scorer = lambda features: features[:, :, 1]
      >>> importance = tfr_smooth.training.permutation_importance(scorer, dataset, names=["price", "clicks"])
      >>> list(importance.drops), importance.drops["price"].tolist()
      (['clicks', 'price'], [0.0, 0.0, 0.0, 0.0, 0.0])
    """
    repeats = _arguments.integer("repeats", repeats, least=1)
    seed = _arguments.integer("seed", seed, least=0)
    evaluation = _Evaluation(model, dataset, metrics.NDCGMetric() if metric is None else metric)
    names = _checked_names(names, evaluation.num_features)
    baseline = evaluation.evaluate()
    drops = {}
    by_name = places_by_name(names)
    for number, (name, features) in enumerate(by_name.items()):
        # A separate random stream: the drops of a feature do not depend on other features.
        random = np.random.default_rng([seed, number])
        drops[name] = np.array([baseline - evaluation.evaluate(features, random) for _ in range(repeats)])
        if progress is not None:
            progress(number + 1, len(by_name))
    return FeatureImportance(evaluation.metric.name, baseline, drops)


def places_by_name(names: Sequence[str]) -> dict[str, list[int]]:
    """Returns the places of the features of each name: those of one column change together."""
    return {name: [place for place, other in enumerate(names) if other == name] for name in dict.fromkeys(names)}


class _Evaluation:
    """Evaluates a model on a dataset in memory, optionally with a shuffled feature."""

    def __init__(
        self, model: Callable[[Any], tf.Tensor], dataset: Iterable[Any], metric: tf.keras.metrics.Metric
    ) -> None:
        self.metric = metric
        self._batches = []
        for inputs, labels, *_ in dataset:
            others = dict(inputs) if isinstance(inputs, dict) else None
            features = inputs if others is None else others.pop("features", None)
            if features is None or len(features.shape) != 3:
                shape = "no `features`" if features is None else f"shape {tuple(features.shape)}"
                raise ValueError(f"`dataset` must have features [batch, list, num_features], got {shape}.")
            # Labels may have an axis of objectives.
            real = (np.asarray(labels) >= 0.0).reshape([*features.shape[:2], -1]).any(axis=2)
            self._batches.append((np.array(features), others, labels, real))  # a copy, which is modified
        if not self._batches:
            raise ValueError("`dataset` must contain at least one batch, got none.")
        self.num_features = self._batches[0][0].shape[2]
        score = for_inference(model)

        def update(features: tf.Tensor, others: Any, labels: tf.Tensor) -> None:
            scores = score(features if others is None else {"features": features, **others})
            metric.update_state(labels, scores)

        self._update = _compiled.traced(update, reduce_retracing=True)

    def evaluate(self, shuffled: Sequence[int] = (), random: np.random.Generator | None = None) -> float:
        """Returns the metric, with the values of the given features in the same random order."""
        self.metric.reset_state()
        values = np.concatenate([features[real][:, list(shuffled)] for features, _, _, real in self._batches])
        ends = np.cumsum([real.sum() for *_, real in self._batches])[:-1]
        parts = np.split(values if random is None else random.permutation(values), ends)
        for (features, others, labels, real), part in zip(self._batches, parts, strict=True):
            kept = features[real]
            changed = kept.copy()
            changed[:, list(shuffled)] = part
            features[real] = changed
            self._update(tf.constant(features), others, labels)
            features[real] = kept
        return float(self.metric.result())


def _checked_names(names: Sequence[str] | None, num_features: int) -> list[str]:
    """Returns the checked feature names, or their defaults."""
    if names is None:
        return [str(index) for index in range(1, num_features + 1)]
    if isinstance(names, str) or len(names) != num_features:
        raise ValueError(f"`names` must be {num_features} names, got {names!r}.")
    return [str(name) for name in names]
