r"""FastSort: soft ranks by projecting the scores onto the permutahedron.

Blondel, Teboul, Berthet, Djolonga: "Fast Differentiable Sorting and Ranking", ICML 2020 (arXiv:2002.08871). The
permutahedron is the convex hull of all permutations of 1..n. The exact ranks are its vertex farthest along the negated
scores. With a regularization of strength epsilon the ranks are a point inside of it: the projection of $-s/\epsilon$,
Euclidean ("l2") or by the Kullback-Leibler divergence from $e^{-s/\epsilon}$ ("kl").

The paper reduces the projection to an isotonic optimization in sorted order (Section 5, Proposition 3). Its solution
partitions the list into blocks of neighbors. With $z = -s/\epsilon$, the position of document i in block B is

$$\pi_i = z_i - \mathrm{mean}_B(z) + \mathrm{mean}_B(r) \quad \text{(l2)}, \qquad
  \pi_i = e^{z_i} \, \frac{\sum_B r}{\sum_B e^{z}} \quad \text{(kl)}$$

where r are the exact ranks. The gradient is the gradient of this formula with fixed blocks (Proposition 4).

The blocks are computed by pooling all adjacent violators at once. If this takes many rounds, they are computed by
splitting all blocks of the list at once instead. Both take a few rounds of vector operations, while the well-known
algorithm takes one step per document, and run in graphs of any shape, under XLA and on any device.
(`tf.nn.isotonic_regression` only supports l2, only runs on CPUs and not under XLA, and its gradient fails if the batch
size is unknown.)
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import tensorflow as tf

from tfr_smooth import _arguments, _compiled, _padded
from tfr_smooth.rankings import exact
from tfr_smooth.rankings.ranking import RANKINGS, PositionRanking

REGULARIZATIONS = ("l2", "kl")
Solve = Callable[[tf.Tensor, "_Blocks"], tuple[tf.Tensor, tf.Tensor]]
# If pooling needs more rounds than this, the lists are split instead. Not tuned: random lists need fewer, and a list of
# 2,000 that pools one document per round took 350 ms instead of 10.
_FEW_ROUNDS = 20
# A shortfall up to this value times the squared length is rounding.
_ROUNDING = 1e-12


@RANKINGS.register("fastsort")
@dataclasses.dataclass(frozen=True)
class FastSort(PositionRanking):
    r"""The FastSort ranking: positions by projection onto the permutahedron (arXiv:2002.08871, Section 5).

    Invariant to padding, to the order of the documents and to a shift of the scores. Scaling the scores and the
    strength by the same factor leaves the positions unchanged. If the strength is at most the smallest gap between two
    scores ("kl": this gap divided by log 2), the positions are the exact ranks and their gradient is 0.

    Args:
      regularization_strength: Epsilon, > 0. The SmoothI paper searches {0.01, 0.1, 1, 10}. A number or a non-trainable
        `tf.Variable`.
      regularization: "l2" or "kl".
      beta: Inverse temperature of the comparisons of positions, > 0 (see `PositionRanking`).

    Raises:
      ValueError: If an argument is out of range.

    Time O(N log N + T N) per list, where T is the number of rounds of pooling and splitting: a handful for most lists,
    and about 20 + 2 log2(N) for the hardest lists tested with "l2". Memory O(N). Computed in float64.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import rankings
      >>> scores = tf.constant([[1.0, 1.5, 4.0]])
      >>> print(rankings.FastSort(regularization_strength=1.0).positions(scores, scores > 0.0).numpy().round(3))
      [[2.75 2.25 1.  ]]
    """

    regularization_strength: float | tf.Variable = 1.0
    regularization: str = "l2"
    beta: float = 10.0

    def __post_init__(self) -> None:
        """Checks the arguments."""
        object.__setattr__(self, "beta", _arguments.scale("beta", self.beta))
        strength = _arguments.temperature("regularization_strength", self.regularization_strength)
        object.__setattr__(self, "regularization_strength", strength)
        _arguments.choice("regularization", self.regularization, REGULARIZATIONS)

    def positions(self, scores: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the soft ranks.

        Args:
          scores: [batch, list], float32 or float64, without NaN.
          mask: [batch, list] bool, False for padding.

        Returns:
          [batch, list], in [1, n] with the sum n (n + 1) / 2 for n real documents; 0 at padding.
        """
        order = exact.descending_order(scores, mask)
        places = tf.gather(mask, order, batch_dims=1)
        falling = tf.gather(tf.cast(scores, tf.float64), order, batch_dims=1)

        # z = -s / epsilon, minus its minimum. No block spans a gap of z above n / 2 (l2; kl: log n), and within the
        # blocks only differences of z matter. So clipping wider gaps changes nothing, and scores of 1e30 lose no
        # precision.
        strength = _compiled.scalar(self.regularization_strength, falling.dtype)
        widest = strength * tf.cast(tf.shape(falling)[1], falling.dtype)
        gaps = tf.minimum(falling[:, :-1] - falling[:, 1:], widest) / strength
        rising = tf.pad(tf.cumsum(_padded.fill(gaps, places[:, 1:], 0.0), axis=1), [[0, 0], [1, 0]])

        solve = _SOLVERS[self.regularization]
        # `tf.vectorized_map` cannot convert loops of another graph.
        blocks = _BLOCKS[self.regularization] if tf.executing_eagerly() else functools.partial(_blocks, solve)
        starts = blocks(tf.stop_gradient(rising), places)
        positions, _ = solve(rising, _Blocks(starts))
        return tf.cast(exact.unsort(_padded.fill(positions, places, 0.0), order), scores.dtype)


class _Blocks(_padded.Neighbors):
    """Blocks of neighbors, with the exact ranks."""

    def __init__(self, starts: tf.Tensor):
        super().__init__(starts)
        ranks = tf.cast(tf.range(1, self._shape[1] + 1), tf.float64)[tf.newaxis]
        self.ranks = tf.broadcast_to(ranks, self._shape)


def _euclidean(rising: tf.Tensor, blocks: _Blocks) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the positions for these blocks and the value (of w - z) that decreases over the solution's blocks."""
    level = blocks.mean(blocks.ranks - rising)
    return rising + level, level


def _entropic(rising: tf.Tensor, blocks: _Blocks) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the same as `_euclidean`, with sums of exponentials of z and of w = log(rank) instead of means."""
    highest = blocks.maximum(rising)
    weights = tf.exp(rising - highest)
    ranks, total = blocks.total(blocks.ranks), blocks.total(weights)
    return weights / total * ranks, tf.math.log(ranks / total) - highest


def _blocks(solve: Solve, rising: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
    """Returns [batch, list] bool: True where a block of the solution starts. Each padded document is a separate block.

    Pooling takes few rounds if the blocks of the solution are small, splitting if they are large.
    """
    starts, is_wrong = _pool(tf.ones_like(places), rising, places, solve, _FEW_ROUNDS)
    return tf.cond(is_wrong, lambda: _pool(_split(rising, places, solve), rising, places, solve)[0], lambda: starts)


_SOLVERS = {"l2": _euclidean, "kl": _entropic}
# Graphs: eager loops would copy their conditions from a GPU.
_BLOCKS = {name: _compiled.graph(functools.partial(_blocks, solve)) for name, solve in _SOLVERS.items()}


def _pool(
    starts: tf.Tensor, rising: tf.Tensor, places: tf.Tensor, solve: Solve, rounds: int | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
    """Pools neighboring blocks in the wrong order; returns the block starts and whether any are left to pool."""

    def pool(starts: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        # Neighboring blocks in the wrong order belong to the same block of the solution. So does a whole run of them.
        _, level = solve(rising, _Blocks(starts))
        is_wrong = tf.logical_and(level[:, :-1] < level[:, 1:], places[:, 1:])
        # Only at a start: within a block, a vectorized log may differ in the last bit between neighbors.
        is_wrong = tf.logical_and(starts, tf.pad(is_wrong, [[0, 0], [1, 0]]))
        return tf.logical_and(starts, tf.logical_not(is_wrong)), tf.reduce_any(is_wrong)

    state = (starts, tf.constant(True))
    return tf.while_loop(lambda _, is_wrong: is_wrong, pool, state, maximum_iterations=rounds)


def _split(rising: tf.Tensor, places: tf.Tensor, solve: Solve) -> tf.Tensor:
    """Returns the block starts found by splitting all blocks of each list at once until none needs a split.

    In the permutahedron, the positions of the first k documents sum to at least 1 + .. + k. A block below this bound
    consists of several blocks of the solution and is split at the largest shortfall.
    """
    size = tf.shape(places)[1]

    def split(starts: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        blocks = _Blocks(starts)
        # The sum over each block is 0, so preceding blocks add nothing.
        shortfall = tf.cumsum(blocks.ranks - solve(rising, blocks)[0], axis=1, exclusive=True)
        inside = _padded.fill(shortfall, tf.logical_not(starts), rising.dtype.min)
        # A split too many, due to rounding, is pooled again. A split too few is not repaired.
        least = -_ROUNDING * tf.square(tf.cast(size, rising.dtype))
        is_start = inside >= tf.maximum(blocks.maximum(inside), least)
        return tf.logical_or(starts, is_start), tf.reduce_any(is_start)

    state = (tf.logical_or(tf.range(size) == 0, tf.logical_not(places)), tf.constant(True))
    return tf.while_loop(lambda _, is_split: is_split, split, state)[0]
