"""Properties of every named loss, as functions that raise an AssertionError if a loss violates one.

`tests/losses/test_properties.py` runs them on every loss.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import a_batch, references, value_and_gradient
from tests.helpers.facts import COMBINATIONS, RELAXATIONS
from tests.helpers.modes import NEED_A_CUTOFF
from tfr_smooth import _serialization, losses

# Non-default values of hyperparameters that do not follow from their defaults or from the values searched.
_CHANGED = {"alpha": 10.0, "beta": 0.5, "delta": 0.2, "epsilon": 0.5, "power": 2.0, "sinkhorn_steps": 3, "seed": 3}
_CHANGED |= {"threshold": 1e-12, "max_iterations": 5000, "topn": 3, "topk": 2, "gain": "linear", "max_grade": 2.0}
_CHANGED |= {"discount": [1.0, 0.7, 0.6, 0.2], "activation": "atan", "virtual_label": 0.3, "metric": "lambda_rank"}
_CHANGED |= {"lambda_weight": losses.NDCGLambdaWeight(topn=3, smooth_fraction=0.25)}


@tf.keras.utils.register_keras_serializable(package="tests")
def inverse_rank(rank):
    return 1.0 / rank


# Of single losses.
_CHANGED_OF = {"list_mle": {"lambda_weight": losses.ListMLELambdaWeight(rank_discount_fn=inverse_rank)}}
_EARLY_STOP_ERROR = 2e-3
# Hyperparameters that give short lists a gradient: P@10 and R@10 of six documents are the same in any order, and sharp
# comparisons of positions are flat.
_SOFT = {"topn": 3, "beta": 1.0}


def changed(hyperparameters: Mapping, searched: Mapping | None = None) -> dict[str, Any]:
    """Returns a non-default value for every hyperparameter; numbers are a little smaller than by default."""

    def other(name: str, default: Any) -> Any:
        if name in _CHANGED:
            return _CHANGED[name] if _CHANGED[name] != default else 0.1 * default
        if isinstance(default, bool):
            return not default
        if isinstance(default, str):
            return next(value for value in searched[name] if value != default)
        return type(default)(default * 0.4)

    return {name: other(name, default) for name, default in hyperparameters.items()}


@dataclasses.dataclass(frozen=True)
class Subject:
    """A loss to check.

    Attributes:
      name: Name of the loss.
      make: Class or function that creates the loss.
      hyperparameters: Default of every hyperparameter.
      changed: Non-default value of every hyperparameter.
      ranking: Name of the ranking; None for a baseline.
      measure: Name of the measure; None for a baseline.
      sharp: Hyperparameters for which the loss is one minus the exact metric.
      converged: Hyperparameters for full precision.
      reference: Function that computes the value of one list in float64; None if there is no reference.
      gradient: Function that computes the gradient of one list; None uses finite differences of the loss.
    """

    name: str
    make: Callable[..., losses.RankingLoss]
    hyperparameters: Mapping[str, Any]
    changed: Mapping[str, Any]
    ranking: str | None = None
    measure: str | None = None
    sharp: Mapping[str, Any] | None = None
    converged: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    reference: Callable[..., float] | None = None
    gradient: Callable[..., np.ndarray] | None = None

    def loss(self, **arguments: Any) -> losses.RankingLoss:
        """Returns the loss, with hyperparameters that give short lists a gradient."""
        soft = {key: value for key, value in _SOFT.items() if key in self.hyperparameters and key in self._softened}
        return self.make(**{**soft, **arguments})

    def each(self, **arguments: Any) -> losses.RankingLoss:
        """Returns the same loss with one value per list."""
        return self.loss(reduction="none", **arguments)

    @functools.cached_property
    def batch(self) -> tuple[np.ndarray, np.ndarray]:
        """Labels and scores in float32."""
        labels, scores = a_batch(length=6)
        if self.name == "bsl":  # which compares relevant documents with others
            labels[:, 1] = 0.0
        return labels, np.round(scores * 64.0) / 64.0  # Shifting these scores is exact in float32.

    @functools.cached_property
    def expected(self) -> tuple[np.ndarray, np.ndarray]:
        """Value and gradient of each list of `batch`."""
        value, gradient = value_and_gradient(self.each(), *self.batch)
        assert value.dtype == gradient.dtype == np.float32
        assert np.isfinite(value).all() and np.isfinite(gradient).all() and np.abs(gradient).max() > 1e-4
        return value, gradient

    @property
    def _softened(self) -> tuple[str, ...]:
        return ("topn", "beta") if self.measure in NEED_A_CUTOFF else ("beta",)


def of_combination(name: str) -> Subject:
    """Returns the subject of a measure of a ranking."""
    ranking, measure = name.split("_")
    relaxation, hyperparameters = RELAXATIONS[ranking], COMBINATIONS[name].hyperparameters

    def reference(*args: Any, **kwargs: Any) -> float:
        return 1.0 - references.smooth_metric(ranking, measure, *args, **kwargs)

    def gradient(*args: Any, **kwargs: Any) -> np.ndarray:
        return -references.smoothi_gradient(measure, *args, **kwargs)

    return Subject(
        name,
        functools.partial(losses.get, name),
        hyperparameters,
        changed(hyperparameters, relaxation.searched),
        *(ranking, measure, relaxation.sharp, relaxation.converged, reference),
        gradient if ranking == "smoothi" else None,
    )


def of_baseline(name: str) -> Subject:
    """Returns the subject of a baseline."""
    defaults = losses.hyperparameters(name)
    others = {**changed(defaults), **_CHANGED_OF.get(name, {})}
    of_references = {"reference": references.BASELINES.get(name), "gradient": _GRADIENTS.get(name)}
    return Subject(name, functools.partial(losses.get, name), defaults, others, **of_references)


def _lambda_gradient(labels: np.ndarray, scores: np.ndarray, sigma: float = 1.0, **arguments: Any) -> np.ndarray:
    weights = references.lambda_weights(labels, scores, **arguments)
    return references.central_differences(lambda s: references.weighted_logistic(weights, s, sigma), scores)


def _gradient_at_k(labels: np.ndarray, scores: np.ndarray, **arguments: Any) -> np.ndarray:
    """The threshold is a constant."""
    loss = functools.partial(references.softmax_at_k, of=scores, **arguments)
    return references.central_differences(lambda s: loss(labels, s), scores)


_GRADIENTS = {
    "lambda_loss": _lambda_gradient,
    "pl_rank_ndcg": references.pl_rank_ndcg_gradient,
    "softmax_at_k": _gradient_at_k,
}
# The threshold of one is a constant, and only the expectation of the other is invariant.
_ONE_SIDED = ("softmax_at_k", "pl_rank_ndcg")

SUBJECTS = {name: of_combination(name) if name in COMBINATIONS else of_baseline(name) for name in losses.NAMES}


# ---- Batches.


def lists_of(lengths, scores_of, width=8, seed=0, dtype=np.float64):
    """Returns padded labels and scores of lists of these lengths.

    Lists of two or more documents have relevant and irrelevant documents.
    """
    random = np.random.RandomState(seed)
    labels, scores = np.full((len(lengths), width), -1.0, dtype), np.full((len(lengths), width), 5.0, dtype)
    for row, length in enumerate(lengths):
        labels[row, :length] = random.randint(0, 4, length)
        labels[row, :length][[0, -1]] = 0.0, 2.0
        scores[row, :length] = scores_of(random, length)
    return labels, scores


def by_list(labels, scores, function):
    """Applies the function to each list without its padding."""
    return np.array([function(row[row >= 0], s[row >= 0]) for row, s in zip(labels, scores, strict=True)])


# ---- Checks.


def check_sharp_limit(subject: Subject) -> None:
    """With sharp hyperparameters, the loss is one minus the exact metric, for any cutoff and list length.

    A single document has no correlation: its list is excluded.
    """
    lengths = (8, 6, 5, 3, 2) if subject.measure in references.CORRELATIONS else (8, 6, 5, 3, 2, 1)
    labels, scores = lists_of(lengths, lambda random, length: random.permutation(length), dtype=np.float32)
    cuts = (None, 1, 3, 10) if "topn" in subject.hyperparameters else ()
    for arguments in [{"topn": topn} for topn in cuts] or [{}]:
        found = 1.0 - subject.make(**subject.sharp, **arguments, reduction="none")(labels, scores).numpy()
        expected = by_list(labels, scores, functools.partial(references.exact_metric, subject.measure, **arguments))
        np.testing.assert_allclose(found, expected, atol=1e-4, err_msg=str(arguments))


def check_reference(subject: Subject) -> None:
    """The value equals the reference, with default and with changed hyperparameters."""
    labels, scores = lists_of((8, 5, 3, 7, 2), lambda random, length: random.randn(length))
    for arguments, error in (({}, 0.0 if not subject.converged else _EARLY_STOP_ERROR), (subject.changed, 0.0)):
        found = subject.make(**arguments, reduction="none")(labels, scores).numpy()
        of_list = functools.partial(subject.reference, **{**subject.hyperparameters, **arguments})
        np.testing.assert_allclose(found, by_list(labels, scores, of_list), rtol=1e-6, atol=1e-8 + error)


def check_gradient(subject: Subject) -> None:
    """The gradient equals finite differences, or the gradient that the paper defines."""
    labels, scores = lists_of((6, 5, 4, 3, 6), lambda random, length: random.randn(length), width=6, seed=1)
    labels[1], scores[1] = np.roll(labels[1], 2), np.roll(scores[1], 2)  # padding between documents
    for arguments in (subject.converged, subject.changed):
        loss = subject.each(**arguments)
        gradient = value_and_gradient(loss, labels, scores)[1]
        if subject.gradient and arguments.get("stop_gradient", True):
            arguments = {**arguments_in(loss.get_config()), **arguments}
            names = [name for name in subject.hyperparameters if name != "stop_gradient"]
            expected = np.zeros_like(scores)
            for row, real in enumerate(labels >= 0.0):
                one = labels[row, real], scores[row, real]
                expected[row, real] = subject.gradient(*one, **{name: arguments[name] for name in names})
        else:
            expected = differences(loss, labels, scores)
        assert np.abs(expected).max() > 1e-4
        # Where a rank has all relevance, the smooth MRR has a kink: a central difference is half of a slope of 2e-8.
        np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=2e-8)


def differences(loss, labels, scores, step=1e-5):
    """Returns central differences of a loss with one value per list, computed in one batch of all perturbed lists."""
    batch, length = scores.shape
    moved = scores[:, None, None] + step * np.eye(length)[:, None] * np.array([1.0, -1.0])[:, None]
    values = loss(tf.repeat(labels, 2 * length, axis=0), tf.constant(moved.reshape(-1, length))).numpy()
    up, down = np.moveaxis(values.reshape(batch, length, 2), 2, 0)
    return (up - down) / (2.0 * step)


def check_raising_the_relevant_document(subject: Subject) -> None:
    """Raising the score of the only relevant document never raises the loss, and lowers it overall."""
    heights = np.linspace(-4.0, 4.0, 21)
    scores = np.repeat(np.random.RandomState(0).randn(3, 1, 6), len(heights), axis=1)
    scores[:, :, 2] = heights
    scores = scores.reshape(-1, 6)
    labels = np.repeat([[0.0, 0.0, 1.0, 0.0, 0.0, 0.0]], len(scores), axis=0)
    for arguments in (subject.converged, subject.changed):
        values = subject.each(**arguments)(labels, scores).numpy().reshape(3, -1)
        assert (values[:, -1] < values[:, 0] - 0.01).all()
        assert np.diff(values).max() < 1e-8


def check_padding(subject: Subject) -> None:
    """Padded documents change neither value nor gradient and have a gradient of 0, at any position and score."""
    labels, scores = subject.batch
    places, junk = [3, 6], [np.nan, 1e30]
    labels, scores = np.insert(labels, places, -1.0, axis=1), np.insert(scores, places, junk, axis=1)
    found = value_and_gradient(subject.each(), labels, scores)
    padding = labels[0] < 0.0
    np.testing.assert_array_equal(found[1][:, padding], 0.0)
    _assert_near((found[0], found[1][:, ~padding]), subject.expected)


def check_permutation(subject: Subject) -> None:
    """Permuting the documents permutes the gradient and keeps the value, also with tied scores."""
    labels, scores = subject.batch
    scores = scores.copy()
    scores[:, 1] = scores[:, 2]
    order = np.random.RandomState(1).permutation(labels.shape[1])
    expected = value_and_gradient(subject.each(), labels, scores)
    found = value_and_gradient(subject.each(), labels[:, order], scores[:, order])
    _assert_near(found, (expected[0], expected[1][:, order]))


def check_shift(subject: Subject) -> None:
    """Shifting all scores changes neither value nor gradient."""
    labels, scores = subject.batch
    assert subject.loss().shift_invariant
    _assert_near(value_and_gradient(subject.each(), labels, scores + 8.0), subject.expected)
    if subject.name not in _ONE_SIDED:
        np.testing.assert_allclose(subject.expected[1].sum(axis=1), 0.0, atol=1e-6)


def check_ties(subject: Subject) -> None:
    """Tied documents with equal labels have equal gradients; the gradient raises the relevant document."""
    labels = np.array([[2.0, 0.0, 0.0, 0.0]] * 8, np.float32)
    gradient = value_and_gradient(subject.each(), labels, np.zeros_like(labels))[1][0]
    assert gradient[0] < -1e-3
    np.testing.assert_allclose(gradient[1:], gradient[1], rtol=1e-5)
    if subject.name not in _ONE_SIDED:
        np.testing.assert_allclose(gradient[1:], -gradient[0] / 3.0, rtol=1e-5)


def check_nan(subject: Subject) -> None:
    """A NaN score, or a NaN or infinite label, makes the value and gradient of its list NaN, and no others."""
    for label in (np.nan, np.inf):
        labels, scores = (array.copy() for array in subject.batch)
        scores[1, 3], labels[2, 4] = np.nan, label
        value, gradient = value_and_gradient(subject.each(), labels, scores)
        np.testing.assert_array_equal(np.isnan(value), [False, True, True, False, False])
        np.testing.assert_array_equal(np.isnan(gradient).any(axis=1), [False, True, True, False, False])
        rest = [0, 3, 4]
        _assert_near((value[rest], gradient[rest]), tuple(array[rest] for array in subject.expected))


def check_skipped_lists(subject: Subject) -> None:
    """Lists without relevant documents or with only padding have value 0, gradient 0 and no share in the mean."""
    labels, scores = subject.batch
    labels = np.concatenate([labels, np.zeros((1, 6), np.float32), np.full((1, 6), -1.0, np.float32)])
    scores = np.concatenate([scores, 3.0 * scores[:1], np.full((1, 6), np.nan, np.float32)])
    weights = np.array([1.0, 1.0, 1.0, 1.0, 1.0, np.inf, np.nan], np.float32)
    for weight in (None, weights):
        value, gradient = value_and_gradient(subject.each(), labels, scores, weight)
        np.testing.assert_array_equal(value[5:], 0.0)
        np.testing.assert_array_equal(gradient[5:], 0.0)
        _assert_near((value[:5], gradient[:5]), subject.expected)
    np.testing.assert_allclose(subject.loss()(labels, scores), subject.expected[0].mean(), rtol=1e-6)
    for shape in ((0, 4), (8, 0)):
        value, gradient = value_and_gradient(subject.loss(), np.ones(shape, np.float32), np.ones(shape, np.float32))
        assert value == 0.0 and gradient.shape == shape


def check_weights(subject: Subject) -> None:
    """Weights multiply the losses of the lists; the mean still divides by the number of lists."""
    labels, scores = subject.batch
    weights = np.array([1.0, 0.0, 2.0, 0.5, 3.0], np.float32)
    expected = weights * subject.expected[0], weights[:, None] * subject.expected[1]
    for given in (weights, weights[:, None], np.repeat(weights[:, None], 6, axis=1)):
        _assert_near(value_and_gradient(subject.each(), labels, scores, given), expected)
        np.testing.assert_allclose(subject.loss()(labels, scores, given), expected[0].mean(), rtol=1e-6)


def check_reductions(subject: Subject) -> None:
    """The reductions return the sum, the mean, or the loss of each list."""
    labels, scores = subject.batch
    each = subject.expected[0]
    for reduction in ("sum_over_batch_size", "mean", "auto"):
        np.testing.assert_allclose(subject.loss(reduction=reduction)(labels, scores), each.mean(), rtol=1e-6)
    np.testing.assert_allclose(subject.loss(reduction="sum")(labels, scores), each.sum(), rtol=1e-6)
    for loss in (subject.loss(reduction="none"), subject.loss(reduction=None), subject.loss().call):
        np.testing.assert_allclose(loss(tf.constant(labels), tf.constant(scores)), each, rtol=1e-6)


def check_config(subject: Subject) -> None:
    """Every constructor argument is keyword-only and part of the config, which restores the loss."""
    options = {"dtype": "float64", "reduction": "sum", "name": "mine", "ragged": True}
    arguments = {**subject.changed, **options}
    loss = subject.make(**arguments)
    if type(loss) is not losses.MeasureLoss:
        parameters = list(inspect.signature(type(loss).__init__).parameters.values())[1:]
        kinds = {parameter.kind for parameter in parameters}
        assert kinds <= {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD}
        named = {parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY}
        assert named | {*options} == {*subject.hyperparameters, *options}
    config = loss.get_config()
    assert arguments_in(config) == {
        name: _serialization.serialize(value) for name, value in {**subject.hyperparameters, **arguments}.items()
    }
    described = json.loads(json.dumps(tf.keras.losses.serialize(loss)))
    for again in (losses.get(described), tf.keras.losses.deserialize(described)):
        assert type(again) is type(loss) and again.get_config() == config
    again = type(loss).from_config(config)
    assert again.get_config() == config and repr(again) == repr(loss)
    check_repr(loss, arguments)


def check_repr(made: Any, arguments: Mapping[str, Any]) -> None:
    """The representation contains the arguments, lists maybe as tuples."""
    for name, value in arguments.items():
        values = (value, tuple(value)) if isinstance(value, list) else (value,)
        assert any(f"{name}={each!r}" in repr(made) for each in values)


def arguments_in(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments in the config of a loss or metric, those of its ranking and measure in place of the two."""
    flat = dict(config)
    for part in ("ranking", "measure"):
        flat |= flat.pop(part, {"config": {}})["config"]
    return flat


def check_invalid_arguments(subject: Subject) -> None:
    """Errors about invalid arguments name the argument, the expected values and the received value."""
    for name in (*subject.hyperparameters, "dtype", "reduction", "ragged"):
        for bad in (object(), -1.0, "bad"):
            if not (name == "discount" and bad != "bad"):
                message = rf"`{name}` must be .*, got {re.escape(repr(bad))}"
                with pytest.raises(ValueError, match=message):
                    subject.make(**{name: bad})
    with pytest.raises(TypeError, match="slope"):
        subject.make(slope=1.0)
    with pytest.raises(TypeError, match="positional"):
        subject.make(1.0)


def _assert_near(found, expected):
    scale = np.abs(expected[1]).max()
    np.testing.assert_allclose(found[0], expected[0], rtol=2e-6, atol=5e-7)  # 1 - metric is rounded.
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-5, atol=5e-6 * scale)


_FAILING = (
    # A document may occupy several ranks.
    (check_raising_the_relevant_document, [f"{name}_{m}" for name, r in RELAXATIONS.items() for m in r.not_monotone]),
    # The distance of two scores has a kink at 0, where its gradient is defined as 0.
    (check_ties, [name for name in COMBINATIONS if name.startswith("softsort_")]),
    # The virtual document has a share of the gradient; a score is compared with its label, not with other scores.
    (check_ties, ["calibrated_softmax", "mean_squared"]),
    # A score is compared with a fixed scale, not with other scores.
    (check_shift, ["calibrated_softmax", "mean_squared", "regression_compatible", "sigmoid_cross_entropy"]),
    # Lists without relevant documents count: their labels of 0 are targets.
    (check_skipped_lists, ["mean_squared", "pairwise_mse", "regression_compatible", "sigmoid_cross_entropy"]),
    # The noise of these tests is equal for equal labels, which are then in any order.
    (check_permutation, ["coupled_rankdistil", "pl_rank_ndcg"]),
    (check_ties, ["coupled_rankdistil", "pl_rank_ndcg"]),
)
# (loss, check) that is expected to fail.
EXPECTED_FAILURES = {(name, check) for check, names in _FAILING for name in names}

METRIC_CHECKS = (check_sharp_limit, check_raising_the_relevant_document)
COMMON_CHECKS = (check_reference, check_gradient, check_padding, check_permutation, check_shift)
COMMON_CHECKS += (check_ties, check_nan, check_skipped_lists)
# Behavior that all losses inherit from `RankingLoss`.
BASE_CLASS_CHECKS = (check_weights, check_reductions)
