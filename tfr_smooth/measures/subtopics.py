"""Base class of the measures of diversity, for labels by subtopic."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tfr_smooth import _arguments, _lists
from tfr_smooth.measures.measure import Measure
from tfr_smooth.rankings import ExactRanking, Ranking


@dataclasses.dataclass(frozen=True)
class SubtopicMeasure(Measure):
    """Base class of measures of diversity: labels are [batch, list, subtopics], and labels >= 1 are relevant.

    A label below 0 marks a subtopic that the list does not have, and a document with only such labels is padding.
    Labels [batch, list] are those of one subtopic. The only ranking is `rankings.ExactRanking()`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures
      >>> labels = tf.constant([[[1.0, 0.0], [0.0, 0.0], [-1.0, -1.0]]])
      >>> print(measures.AlphaDCG().is_relevant(labels).numpy())
      [[ True False False]]
    """

    def clean(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None = None) -> _lists.Batch:
        """Returns clean lists, with labels [batch, list, subtopics]."""
        return _lists.clean_subtopics(labels, scores, mask)

    def is_relevant(self, labels: tf.Tensor) -> tf.Tensor:
        """Returns [batch, list] bool: True for documents that are relevant to a subtopic."""
        return tf.reduce_any(labels >= 1.0, axis=2)

    def list_weights(self, sample_weight: tf.Tensor | float | None, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the weight of each list, [batch], where the label of a document is its highest label."""
        return _lists.list_weights(sample_weight, tf.reduce_max(labels, axis=2), mask)

    def at_ranks(
        self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking, topn: int | None
    ) -> tf.Tensor:
        """Returns the labels of the document at each rank, [batch, K, subtopics]."""
        return _arguments.instance("ranking", ranking, ExactRanking).rank_relevance(scores, labels, mask, topn)
