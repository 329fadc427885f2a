"""Losses with one wrong part each, and one with an odd part that is right: what the checks must tell apart."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import ClassVar

import tensorflow as tf

from tests import checks
from tfr_smooth import functional, losses, ops, registry

# ---- Rankings.


@dataclasses.dataclass(frozen=True)
class Arctan(ops.PositionRanking):
    """Positions by arctangents of score differences; right, but for `off`."""

    alpha: float = 1.0
    beta: float = 10.0
    off: ClassVar[float] = 0.0

    def positions(self, scores, mask):
        ahead = 0.5 + tf.math.atan(self.alpha * (scores[:, :, tf.newaxis] - scores[:, tf.newaxis])) / math.pi
        ahead = tf.where(mask[:, :, tf.newaxis], ahead, tf.zeros_like(ahead))
        return 0.5 + self.off + tf.reduce_sum(ahead, axis=1)


class ArctanHalfARankOff(Arctan):
    off: ClassVar[float] = 0.5


class FirstRankLost(ops.SoftSort):
    def indicators(self, scores, mask, topn=None):
        rows = super().indicators(scores, mask)[:, 1 : topn and topn + 1]
        return tf.pad(rows, [[0, 0], [0, min(topn or scores.shape[1], scores.shape[1]) - rows.shape[1]], [0, 0]])


class IndicatorsHalfARankOff(ops.SoftSort):
    def indicators(self, scores, mask, topn=None):
        rows = super().indicators(scores, mask)
        return (0.5 * (rows + tf.pad(rows[:, :-1], [[0, 0], [1, 0], [0, 0]])))[:, :topn]


class MaskIgnored(ops.SoftSort):
    def indicators(self, scores, mask, topn=None):
        return super().indicators(scores, tf.ones_like(mask), topn)


class TemperatureInverted(ops.NeuralSort):
    def rank_relevance(self, scores, relevance, mask, topn=None):
        return super().rank_relevance(scores * self.temperature**2, relevance, mask, topn)


class GradientDoubled(ops.Approx):
    def positions(self, scores, mask):
        doubled = tf.custom_gradient(lambda x: (tf.identity(x), lambda upstream: 2.0 * upstream))
        return doubled(super().positions(scores, mask))


class GradientStopped(ops.Approx):
    def positions(self, scores, mask):
        return tf.stop_gradient(super().positions(scores, mask))


class TiesByPosition(ops.Approx):
    def positions(self, scores, mask):
        places = tf.range(scores.shape[1])
        is_later_tie = tf.equal(scores[:, :, tf.newaxis], scores[:, tf.newaxis]) & (places[:, tf.newaxis] < places)
        return super().positions(scores, mask) + 0.1 * tf.reduce_sum(tf.cast(is_later_tie, scores.dtype), axis=1)


class StateShared(ops.Approx):
    """The hyperparameters of the first instance are those of all."""

    first: ClassVar[list[float]] = []

    def positions(self, scores, mask):
        self.first.append(self.alpha)
        return ops.Approx(alpha=self.first[0]).positions(scores, mask)


class ScoresSquared(ops.SoftSort):
    def indicators(self, scores, mask, topn=None):
        return super().indicators(tf.square(scores) * tf.sign(scores), mask, topn)


# ---- Metrics.


class GainSwapped(functional.NDCG):
    def compute(self, relevance, scores, mask, ranking):
        other = {"exponential": "linear", "linear": "exponential"}[self.gain]
        return functional.NDCG(self.topn, other, self.discount).compute(relevance, scores, mask, ranking)


class DiscountOffByOne(functional.NDCG):
    def compute(self, relevance, scores, mask, ranking):
        def later(ranks):
            return math.log(2.0) / tf.math.log(3.0 + ranks)

        discount = later if self.discount == "log2" else self.discount
        return functional.NDCG(self.topn, self.gain, discount).compute(relevance, scores, mask, ranking)


class CutOffByOne(functional.Precision):
    def compute(self, relevance, scores, mask, ranking):
        more = None if self.topn is None else self.topn + 1
        return functional.Precision(more).compute(relevance, scores, mask, ranking)


class RanksFromZero(functional.AveragePrecision):
    def compute(self, relevance, scores, mask, ranking):
        steps = ranking.steps(scores, relevance, mask)
        total = tf.reduce_sum(steps.relevance * steps.relevance_before() / steps.ranks, axis=1)
        return tf.math.divide_no_nan(total, tf.reduce_sum(relevance, axis=1))


# ---- Criteria.


class PaddingInTheMean(functional.MeanSquaredCriterion):
    def compute(self, labels, scores, mask):
        return tf.reduce_mean(tf.square(labels - scores), axis=1)


# ---- Losses.


class WeightsIgnored(losses.SoftSortNDCGLoss):
    def __call__(self, y_true, y_pred, sample_weight=None):
        return super().__call__(y_true, y_pred)


class NaNSwallowed(losses.SoftSortNDCGLoss):
    def __call__(self, y_true, y_pred, sample_weight=None):
        return super().__call__(y_true, tf.where(tf.math.is_nan(y_pred), 0.0, y_pred), sample_weight)


class NaNSpread(losses.SoftSortNDCGLoss):
    def __call__(self, y_true, y_pred, sample_weight=None):
        unknown = 0.0 * tf.reduce_sum(tf.where(tf.convert_to_tensor(y_true) >= 0.0, y_pred, 0.0))
        return super().__call__(y_true, y_pred, sample_weight) + unknown


class ListsWithoutRelevantCount(losses.SoftSortNDCGLoss):
    def counts(self, labels, mask):
        return tf.reduce_any(mask, axis=1)


class ReductionIgnored(losses.SoftSortNDCGLoss):
    def _mean(self, total, count):
        return total


class ConfigForgets(losses.SoftSortNDCGLoss):
    def get_config(self):
        return {key: value for key, value in super().get_config().items() if key != "power"}


@dataclasses.dataclass(frozen=True)
class WrongPart:
    """A loss with a wrong part.

    Attributes:
      part: The class that is wrong: a ranking, metric, criterion or loss.
      of: The name of the loss that it is put into.
      rejected_by: The check that must reject it.
    """

    part: type
    of: str
    rejected_by: Callable[[checks.Subject], None]

    def subject(self) -> checks.Subject:
        """The loss with this part, checked as the loss without it."""
        return subject_with(self.part, self.of)


def subject_with(part: type, of: str, **others) -> checks.Subject:
    """The subject of a loss of the registry with another part; `others` are fields that differ."""
    if issubclass(part, losses.RankingLoss):
        return dataclasses.replace(checks.SUBJECTS[of], make=part, **others)
    if issubclass(part, functional.Criterion):

        def make(reduction="sum_over_batch_size", **arguments):
            return losses.CriterionLoss(part(**arguments), reduction=reduction)

        return checks.of_baseline(of, make, **others)
    pair = registry.PAIRS[of]
    field = "ranking" if issubclass(part, ops.Ranking) else "metric"
    pair = dataclasses.replace(pair, **{field: dataclasses.replace(getattr(pair, field), **{field: part})})

    def make(reduction="sum_over_batch_size", **arguments):
        return losses.MetricLoss(*pair.parts({**pair.hyperparameters, **arguments}), reduction=reduction)

    return checks.of_pair(of, pair, make, **others)


def arctan(part: type[Arctan], metric: str) -> checks.Subject:
    """A loss of a relaxation that the registry does not have: no paper has its value, so the other checks must do."""
    return subject_with(
        part,
        f"approx_{metric}",
        reference=None,
        changed={**checks.CHANGED[metric], "alpha": 3.0, "beta": 0.5},
        sharp={"alpha": 1e5, "beta": 1e3},
    )


WRONG_PARTS = [
    WrongPart(IndicatorsHalfARankOff, "softsort_mrr", checks.check_sharp_limit),
    WrongPart(FirstRankLost, "softsort_precision", checks.check_sharp_limit),
    WrongPart(TemperatureInverted, "neuralsort_map", checks.check_sharp_limit),
    WrongPart(GainSwapped, "softsort_ndcg", checks.check_sharp_limit),
    WrongPart(DiscountOffByOne, "approx_ndcg", checks.check_sharp_limit),
    WrongPart(CutOffByOne, "softsort_precision", checks.check_sharp_limit),
    WrongPart(RanksFromZero, "softsort_map", checks.check_sharp_limit),
    WrongPart(MaskIgnored, "softsort_err", checks.check_padding),
    WrongPart(PaddingInTheMean, "mean_squared", checks.check_padding),
    WrongPart(GradientDoubled, "approx_mrr", checks.check_gradient),
    WrongPart(GradientStopped, "approx_mrr", checks.check_gradient),
    WrongPart(TiesByPosition, "approx_map", checks.check_permutation),
    WrongPart(StateShared, "approx_err", checks.check_reference),
    WrongPart(ScoresSquared, "softsort_ndcg", checks.check_shift),
    WrongPart(WeightsIgnored, "softsort_ndcg", checks.check_weights),
    WrongPart(NaNSwallowed, "softsort_ndcg", checks.check_nan),
    WrongPart(NaNSpread, "softsort_ndcg", checks.check_nan),
    WrongPart(ListsWithoutRelevantCount, "softsort_ndcg", checks.check_lists_that_do_not_count),
    WrongPart(ReductionIgnored, "softsort_ndcg", checks.check_reductions),
    WrongPart(ConfigForgets, "softsort_ndcg", checks.check_config),
]
