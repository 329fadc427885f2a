"""MeasureLoss: any metric with any ranking, including custom ones."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth import losses, measures, metrics, rankings


@tf.keras.utils.register_keras_serializable(package="tests")
@dataclasses.dataclass(frozen=True)
class Tempered(rankings.Ranking):
    """A custom ranking, whose ranks are the same softmax over the documents: a dataclass registered with Keras."""

    temperature: float = 1.0

    def indicators(self, scores, mask, topn=None):
        weights = tf.nn.softmax(tf.where(mask, scores / self.temperature, -1e9))
        ranks = min(topn or scores.shape[1], scores.shape[1])
        return tf.repeat(weights[:, tf.newaxis], ranks, axis=1)

    def get_config(self):
        return {"temperature": self.temperature}


@dataclasses.dataclass(frozen=True)
class Success(measures.Measure):
    """A custom metric: whether the first document is relevant."""

    def compute(self, labels, scores, mask, ranking):
        return ranking.rank_relevance(scores, labels, mask, 1)[:, 0]


@pytest.mark.parametrize("package", ["losses", "metrics"])
def test_the_config_restores_ranking_and_metric(package):
    labels, scores = np.array([[2, 0, 1, 0]]), np.array([[0.3, 0.1, 0.5, 0.2]], np.float32)
    err, ndcg = measures.ExpectedReciprocalRank(3, 2), measures.NDCG(discount=rankings.ShallowDiscount(0.5))
    for ranking, measure in (
        (rankings.FastSort(2.0, "kl"), err),
        (rankings.SoftRank(0.5), ndcg),
        (Tempered(3.0), ndcg),
    ):
        if package == "losses":
            whole = losses.MeasureLoss(ranking, measure)
        else:
            whole = metrics.MeasureMetric(measure, ranking=ranking)
        of_keras = getattr(tf.keras, package)
        again = of_keras.deserialize(json.loads(json.dumps(of_keras.serialize(whole))))
        assert type(again) is type(whole) and again.get_config() == whole.get_config()
        np.testing.assert_array_equal(again(labels, scores), whole(labels, scores))


def test_an_unregistered_metric_in_a_config_raises():
    config = losses.MeasureLoss(rankings.SmoothI(), Success()).get_config()
    assert config["measure"]["class_name"] == "Success"
    with pytest.raises(ValueError, match="a class of tfr_smooth, or one registered with .*, got 'Success'"):
        losses.MeasureLoss.from_config(config)


@pytest.mark.slow
def test_a_custom_metric_works_with_every_ranking():
    labels, scores = np.array([[1, 0, 1], [0, 1, 0]]), np.array([[3.0, 2.0, 1.0]] * 2, np.float32)
    for name in rankings.RANKINGS:
        ranking = losses.get(f"{name}_ndcg").ranking
        value = losses.MeasureLoss(ranking, Success(), reduction="none")(labels, scores).numpy()
        assert 0.0 < value[0] < value[1] < 1.0, name


class WrongIndicators(rankings.Ranking):
    """Forgets the dimension of the documents."""

    def indicators(self, scores, mask, topn=None):
        return tf.cast(mask, scores.dtype)[:, :topn]


class WrongPositions(rankings.PositionRanking):
    """Compares all documents, but does not add up."""

    beta = 1.0

    def positions(self, scores, mask):
        return tf.sigmoid(scores[:, :, tf.newaxis] - scores[:, tf.newaxis])


def test_a_custom_ranking_of_a_wrong_shape_raises():
    labels, scores = np.eye(3), np.arange(9.0).reshape(3, 3)
    for ranking, message in (
        (WrongIndicators(), r"`WrongIndicators.indicators` must return .* \[batch, K, list\] .* got \(3, [23]\)"),
        (WrongPositions(), r"`WrongPositions.positions` must return the shape \[batch, list\] .* got \(3, 3, 3\)"),
    ):
        for measure in (measures.NDCG(), measures.NDCG(topn=2), measures.ReciprocalRank()):
            with pytest.raises(ValueError, match=message):
                losses.MeasureLoss(ranking, measure)(labels, scores)


def test_a_measure_of_which_lower_is_better_raises():
    measure = measures.AverageRelevancePosition()
    for make in (losses.PLRankLoss, lambda measure: losses.MeasureLoss(rankings.SmoothI(), measure)):
        with pytest.raises(ValueError, match="`measure` must be one of which higher is better, got AverageRelevancePo"):
            make(measure)
