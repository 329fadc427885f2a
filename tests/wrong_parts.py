"""Losses with one deliberate error each, which the checks must reject, and an unusual correct relaxation to accept."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable
from typing import ClassVar

import tensorflow as tf

from tests import checks
from tests.facts import COMBINATIONS
from tfr_smooth import losses, measures, rankings

# ---- Rankings.


@dataclasses.dataclass(frozen=True)
class Arctan(rankings.PositionRanking):
    """Positions from arctangents of score differences; correct if `off` is 0."""

    alpha: float = 1.0
    beta: float = 10.0
    off: ClassVar[float] = 0.0

    def positions(self, scores, mask):
        ahead = 0.5 + tf.math.atan(self.alpha * (scores[:, :, tf.newaxis] - scores[:, tf.newaxis])) / math.pi
        ahead = tf.where(mask[:, :, tf.newaxis], ahead, tf.zeros_like(ahead))
        return 0.5 + self.off + tf.reduce_sum(ahead, axis=1)


class ArctanHalfARankOff(Arctan):
    off: ClassVar[float] = 0.5


class FirstRankDropped(rankings.SoftSort):
    def indicators(self, scores, mask, topn=None):
        rows = super().indicators(scores, mask)[:, 1 : topn and topn + 1]
        return tf.pad(rows, [[0, 0], [0, min(topn or scores.shape[1], scores.shape[1]) - rows.shape[1]], [0, 0]])


class IndicatorsHalfARankOff(rankings.SoftSort):
    def indicators(self, scores, mask, topn=None):
        rows = super().indicators(scores, mask)
        return (0.5 * (rows + tf.pad(rows[:, :-1], [[0, 0], [1, 0], [0, 0]])))[:, :topn]


class MaskIgnored(rankings.SoftSort):
    def indicators(self, scores, mask, topn=None):
        return super().indicators(scores, tf.ones_like(mask), topn)


class TemperatureInverted(rankings.NeuralSort):
    def rank_relevance(self, scores, relevance, mask, topn=None):
        return super().rank_relevance(scores * self.temperature**2, relevance, mask, topn)


class GradientDoubled(rankings.Approx):
    def positions(self, scores, mask):
        doubled = tf.custom_gradient(lambda x: (tf.identity(x), lambda upstream: 2.0 * upstream))
        return doubled(super().positions(scores, mask))


class GradientStopped(rankings.Approx):
    def positions(self, scores, mask):
        return tf.stop_gradient(super().positions(scores, mask))


class TiesBrokenByPosition(rankings.Approx):
    def positions(self, scores, mask):
        places = tf.range(scores.shape[1])
        is_later_tie = tf.equal(scores[:, :, tf.newaxis], scores[:, tf.newaxis]) & (places[:, tf.newaxis] < places)
        return super().positions(scores, mask) + 0.1 * tf.reduce_sum(tf.cast(is_later_tie, scores.dtype), axis=1)


class ScoresScaledByPosition(rankings.Approx):
    def positions(self, scores, mask):
        return super().positions(scores * (1.0 + 0.01 * tf.range(scores.shape[1], dtype=scores.dtype)), mask)


class OrderReversed(rankings.Approx):
    def positions(self, scores, mask):
        return super().positions(-scores, mask)


class ScoresOverflow(rankings.SoftSort):
    def indicators(self, scores, mask, topn=None):
        return super().indicators(tf.math.log(tf.exp(scores)), mask, topn)


class StateSharedByInstances(rankings.Approx):
    """All instances use the hyperparameters of the first one."""

    first: ClassVar[list[float]] = []

    def positions(self, scores, mask):
        self.first.append(self.alpha)
        return rankings.Approx(alpha=self.first[0]).positions(scores, mask)


class ScoresSquared(rankings.SoftSort):
    def indicators(self, scores, mask, topn=None):
        return super().indicators(tf.square(scores) * tf.sign(scores), mask, topn)


# ---- Metrics.


class GainsSwapped(measures.NDCG):
    def compute(self, labels, scores, mask, ranking):
        other = {"exponential": "linear", "linear": "exponential"}[self.gain]
        return measures.NDCG(self.topn, other, self.discount).compute(labels, scores, mask, ranking)


class DiscountOffByOne(measures.NDCG):
    def compute(self, labels, scores, mask, ranking):
        def later(ranks):
            return math.log(2.0) / tf.math.log(3.0 + ranks)

        discount = later if self.discount == "log2" else self.discount
        return measures.NDCG(self.topn, self.gain, discount).compute(labels, scores, mask, ranking)


class CutoffOffByOne(measures.Precision):
    def compute(self, labels, scores, mask, ranking):
        more = None if self.topn is None else self.topn + 1
        return measures.Precision(more).compute(labels, scores, mask, ranking)


class RanksFromZero(measures.AveragePrecision):
    def compute(self, labels, scores, mask, ranking):
        relevance = self.relevance(labels)
        steps = ranking.steps(scores, relevance, mask)
        total = tf.reduce_sum(steps.relevance * steps.relevance_before() / steps.ranks, axis=1)
        return tf.math.divide_no_nan(total, tf.reduce_sum(relevance, axis=1))


class PaddingInTheMean(losses.MeanSquaredLoss):
    def compute(self, labels, scores, mask):
        return tf.reduce_mean(tf.square(labels - scores), axis=1)


# ---- Losses.


class WeightsIgnored(losses.ApproxNDCGLoss):
    def __call__(self, y_true, y_pred, sample_weight=None):
        return super().__call__(y_true, y_pred)


class NaNReplacedByZero(losses.ApproxNDCGLoss):
    def __call__(self, y_true, y_pred, sample_weight=None):
        return super().__call__(y_true, tf.where(tf.math.is_nan(y_pred), 0.0, y_pred), sample_weight)


class NaNSpreadToAllLists(losses.ApproxNDCGLoss):
    def __call__(self, y_true, y_pred, sample_weight=None):
        unknown = 0.0 * tf.reduce_sum(tf.where(tf.convert_to_tensor(y_true) >= 0.0, y_pred, 0.0))
        return super().__call__(y_true, y_pred, sample_weight) + unknown


class ListsWithoutRelevantDocumentsCount(losses.ApproxNDCGLoss):
    def counts(self, labels, mask):
        return tf.reduce_any(mask, axis=1)


class ReductionIgnored(losses.ApproxNDCGLoss):
    def _mean(self, total, count):
        return total


class ConfigIncomplete(losses.ApproxNDCGLoss):
    def get_config(self):
        return {key: value for key, value in super().get_config().items() if key != "beta"}


class UnknownArgumentsIgnored(losses.ApproxNDCGLoss):
    def __init__(self, **arguments):
        known = inspect.signature(losses.ApproxNDCGLoss).parameters
        super().__init__(**{name: value for name, value in arguments.items() if name in known})


class WrongInGraphs(losses.ApproxNDCGLoss):
    def __call__(self, y_true, y_pred, sample_weight=None):
        factor = 1.0 if tf.executing_eagerly() else 1.001
        return factor * super().__call__(y_true, y_pred, sample_weight)


@dataclasses.dataclass(frozen=True)
class WrongPart:
    """A loss with a wrong part.

    Attributes:
      part: The wrong class: a ranking, measure or loss.
      of: Name of the loss in which it replaces the correct part.
      rejected_by: The check that must reject the loss.
    """

    part: type
    of: str
    rejected_by: Callable[[checks.Subject], None]

    def subject(self) -> checks.Subject:
        """Returns the loss with this part, with the expectations of the correct loss."""
        return subject_with(self.part, self.of)


def subject_with(part: type, of: str, **overrides) -> checks.Subject:
    """Returns the subject of a named loss with one part replaced; `overrides` replace its fields."""
    if issubclass(part, losses.RankingLoss):
        return dataclasses.replace(checks.SUBJECTS[of], make=part, **overrides)
    combination = COMBINATIONS[of]._replace(**{"ranking" if issubclass(part, rankings.Ranking) else "measure": part})

    def make(**arguments):
        ranking, measure, options = combination.make(arguments)
        return losses.MeasureLoss(ranking, measure, **options)

    return checks.of_combination(of, combination, make, **overrides)


def arctan(part: type[Arctan], metric: str) -> checks.Subject:
    """Returns the subject of a loss with an arctangent relaxation, which has no reference in a paper."""
    return subject_with(
        part,
        f"approx_{metric}",
        reference=None,
        sharp={"alpha": 1e5, "beta": 1e3},
    )


check_unknown_shapes = functools.partial(checks.check_mode, mode="unknown shapes")

WRONG_PARTS = [
    WrongPart(IndicatorsHalfARankOff, "softsort_mrr", checks.check_sharp_limit),
    WrongPart(FirstRankDropped, "softsort_precision", checks.check_sharp_limit),
    WrongPart(TemperatureInverted, "neuralsort_map", checks.check_sharp_limit),
    WrongPart(GainsSwapped, "softsort_ndcg", checks.check_sharp_limit),
    WrongPart(DiscountOffByOne, "approx_ndcg", checks.check_sharp_limit),
    WrongPart(CutoffOffByOne, "softsort_precision", checks.check_sharp_limit),
    WrongPart(RanksFromZero, "softsort_map", checks.check_sharp_limit),
    WrongPart(MaskIgnored, "softsort_err", checks.check_padding),
    WrongPart(PaddingInTheMean, "mean_squared", checks.check_padding),
    WrongPart(GradientDoubled, "approx_mrr", checks.check_gradient),
    WrongPart(GradientStopped, "approx_mrr", checks.check_gradient),
    WrongPart(TiesBrokenByPosition, "approx_map", checks.check_permutation),
    WrongPart(ScoresScaledByPosition, "approx_ndcg", checks.check_ties),
    WrongPart(OrderReversed, "approx_ndcg", checks.check_raising_the_relevant_document),
    WrongPart(ScoresOverflow, "softsort_ndcg", checks.check_extremes),
    WrongPart(StateSharedByInstances, "approx_err", checks.check_reference),
    WrongPart(ScoresSquared, "softsort_ndcg", checks.check_shift),
    WrongPart(WeightsIgnored, "approx_ndcg", checks.check_weights),
    WrongPart(NaNReplacedByZero, "approx_ndcg", checks.check_nan),
    WrongPart(NaNSpreadToAllLists, "approx_ndcg", checks.check_nan),
    WrongPart(ListsWithoutRelevantDocumentsCount, "approx_ndcg", checks.check_skipped_lists),
    WrongPart(ReductionIgnored, "approx_ndcg", checks.check_reductions),
    WrongPart(ConfigIncomplete, "approx_ndcg", checks.check_config),
    WrongPart(UnknownArgumentsIgnored, "approx_ndcg", checks.check_invalid_arguments),
    WrongPart(WrongInGraphs, "approx_ndcg", check_unknown_shapes),
]
