"""Base class of the measures."""

from __future__ import annotations

import abc
from typing import ClassVar

import tensorflow as tf

from tfr_smooth import _arguments, _padded, _serialization
from tfr_smooth.rankings import ExactRanking, Ranking


class Measure(_serialization.Configurable, abc.ABC):
    """Base class of the measures: pure functions of labels, scores and a ranking.

    The same formula computes the exact measure with `rankings.ExactRanking()` and the differentiable measure with a
    smooth ranking. Exact values are in [0, 1], except those of `DCG`, `AlphaDCG` and `AverageRelevancePosition`, and
    those of the correlations, which are in [-1, 1]. Smooth values may be slightly higher, as a smooth ranking may place
    a document at more than one rank.

    A subclass overrides `compute`, `is_relevant` if not every label above 0 is relevant, and `list_weights` if lists
    differ in weight. To save models with a measure of your own, make it a frozen dataclass and register it with
    `tf.keras.utils.register_keras_serializable`.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures, rankings
      >>> class Success(measures.Measure):  # is the first document relevant?
      ...     def compute(self, labels, scores, mask, ranking):
      ...         return ranking.rank_relevance(scores, tf.minimum(labels, 1.0), mask, topn=1)[:, 0]
      >>> labels, scores = tf.constant([[0, 2, 1]]), tf.constant([[2.0, 1.0, 0.0]])
      >>> exact, smooth = Success()(labels, scores), Success()(labels, scores, ranking=rankings.SmoothI(1.0))
      >>> print(exact.numpy(), smooth.numpy().round(2))
      [0.] [0.33]
    """

    # Base class of the smooth rankings from which it can be computed.
    ranking_class: ClassVar[type[Ranking]] = Ranking
    # Read by Keras 3's callbacks with mode="auto".
    lower_is_better: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Checks the cutoff of measures that have one."""
        if hasattr(self, "topn"):
            object.__setattr__(self, "topn", _arguments.topn(self.topn))

    # AutoGraph has nothing to convert here, and needs seconds to detect that.
    @tf.autograph.experimental.do_not_convert
    def __call__(
        self,
        labels: tf.Tensor,
        scores: tf.Tensor,
        mask: tf.Tensor | None = None,
        *,
        ranking: Ranking | None = None,
    ) -> tf.Tensor:
        """Computes the measure of each list.

        Args:
          labels: [batch, list], float or int, >= 0; negative labels mark padding.
          scores: [batch, list], any float type.
          mask: [batch, list] bool, False for additional padding. None adds no padding.
          ranking: The ranking. None uses `rankings.ExactRanking()`.

        Returns:
          [batch], float64 for float64 scores, else float32; 0 for lists without a relevant document; NaN for lists with
          NaN among their real labels or scores.

        Raises:
          ValueError: If the shapes do not match or the scores are not floats.
        """
        batch = self.clean(labels, scores, mask)
        return batch.validity * self.compute(batch.labels, batch.scores, batch.mask, ranking or ExactRanking())

    def clean(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor | None = None) -> _padded.Batch:
        """Returns clean lists of the inputs of `__call__`."""
        return _padded.clean(labels, scores, mask)

    @abc.abstractmethod
    def compute(self, labels: tf.Tensor, scores: tf.Tensor, mask: tf.Tensor, ranking: Ranking) -> tf.Tensor:
        """Computes the measure of clean lists.

        Args:
          labels: [batch, list], >= 0; 0 at padding.
          scores: [batch, list], finite, in the type of the labels; 0 at padding.
          mask: [batch, list] bool, False for padding.
          ranking: The ranking.

        Returns:
          [batch].
        """

    def is_relevant(self, labels: tf.Tensor) -> tf.Tensor:
        """Returns which documents are relevant; by default, those with a label > 0.

        Args:
          labels: [batch, list] floats, >= 0; 0 at padding.

        Returns:
          [batch, list] bool.
        """
        return labels > 0.0

    def has_relevant(self, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns which lists have a relevant document; the measure is undefined for the others.

        Args:
          labels: [batch, list] floats, >= 0; 0 at padding.
          mask: [batch, list] bool, False for padding.

        Returns:
          [batch] bool.
        """
        return tf.reduce_any(tf.logical_and(self.is_relevant(labels), mask), axis=1)

    def list_weights(self, sample_weight: tf.Tensor | float | None, labels: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the weight of each list in the mean over lists; by default, that of `losses.list_weights`.

        Args:
          sample_weight: A number, one weight per list ([batch] or [batch, 1]) or one per document ([batch, list]). None
            uses 1.
          labels: [batch, list] floats, >= 0; 0 at padding.
          mask: [batch, list] bool, False for padding.

        Returns:
          [batch], in the type of the labels.
        """
        return _padded.list_weights(sample_weight, labels, mask)


class BinaryMeasure(Measure):
    """Base class of measures of binary relevance: documents with a label >= 1 are relevant.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import measures
      >>> measures.Precision(topn=1).relevance(tf.constant([[2.0, 0.5, 0.0]])).numpy()
      array([[1., 0., 0.]], dtype=float32)
    """

    def is_relevant(self, labels: tf.Tensor) -> tf.Tensor:
        """Returns [batch, list] bool: True for labels >= 1."""
        return labels >= 1.0

    def relevance(self, labels: tf.Tensor) -> tf.Tensor:
        """Returns 1 for relevant documents, else 0.

        Args:
          labels: [batch, list] floats, >= 0; 0 at padding.

        Returns:
          [batch, list], in the type of the labels.
        """
        return tf.cast(self.is_relevant(labels), labels.dtype)


# The measures by name, the last word of the names of their losses and the name of their metrics.
MEASURES: _serialization.Registry[Measure] = _serialization.Registry()
# Those that have a metric of the exact ranking, but no losses and smooth metrics.
EXACT_ONLY: _serialization.Registry[Measure] = _serialization.Registry()
