"""What is common to rankings that give each document a smooth position."""

from __future__ import annotations

import abc
import dataclasses

import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.ops import discounts, lists


@dataclasses.dataclass(frozen=True)
class PositionRanking(abc.ABC):
    r"""A ranking that gives each document a position in [1, n]: subclasses define `positions` and have a field `beta`.

    Whether a position comes before another is a sigmoid too (Qin et al. 2010), placed half a rank behind so that its
    sharp limit is exact: document j is in the first K by $\sigma(\beta (K + \tfrac12 - \pi_j))$, and not behind
    document i by $\sigma(\beta (\pi_i + \tfrac12 - \pi_j))$.
    """

    @property
    @abc.abstractmethod
    def beta(self) -> float:
        """The inverse temperature of comparisons of positions."""

    @abc.abstractmethod
    def positions(self, scores: tf.Tensor, mask: tf.Tensor | None = None) -> tf.Tensor:
        """Returns [batch, list]: the position of each document; 0 at padding."""

    def document_discounts(
        self, scores: tf.Tensor, mask: tf.Tensor, discount: str = "log2", topn: int | None = None
    ) -> tf.Tensor:
        r"""What each document's place is worth: $D(\pi_j) \, \sigma(\beta (K + \tfrac12 - \pi_j))$.

        Args:
          scores: [batch, list], any float type.
          mask: [batch, list] bool, False for padding.
          discount: "log2" for NDCG's $D(\pi) = 1 / \log_2(1 + \pi)$, the only one here.
          topn: The number of ranks K that are worth anything; None: all.

        Returns:
          [batch, list]; 0 at padding.

        Raises:
          ValueError: If there is no such discount.
        """
        _arguments.choice("discount", discount, ("log2",))
        positions = self.positions(scores, mask)
        places = lists.filled(positions, mask, 1.0)
        worth = discounts.log2_discount(places - 1.0)
        if topn is not None:
            worth *= self.within(places, topn)
        return lists.filled(worth, mask, 0.0)

    def within(self, positions: tf.Tensor, topn: int) -> tf.Tensor:
        """Returns [batch, list]: how far each document is within the first `topn`, in [0, 1]."""
        return tf.sigmoid(self.beta * (topn + 0.5 - positions))

    def ahead(self, positions: tf.Tensor) -> tf.Tensor:
        """Returns [batch, j, i]: how far document i is ahead of document j, in [0, 1]; 0 for i = j."""
        ahead = tf.sigmoid(self.beta * (positions[:, :, tf.newaxis] - 0.5 - positions[:, tf.newaxis, :]))
        # Not set_diag, whose gradient XLA takes only where the graph knows the length.
        return ahead * (1.0 - tf.eye(tf.shape(positions)[1], dtype=ahead.dtype))
