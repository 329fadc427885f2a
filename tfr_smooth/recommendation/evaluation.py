"""Evaluation of recommenders: all unseen items of the catalog are ranked."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from tfr_smooth import _arguments
from tfr_smooth.data.reading.ids import named_pair
from tfr_smooth.evaluation.trec import ByMeasure, Estimate, checked_measures, estimate, parted
from tfr_smooth.recommendation.catalog_order import CatalogOrder, CatalogScorer, check_ids_of, highest
from tfr_smooth.recommendation.interactions import Interactions, counted

DEFAULT_MEASURES = ("recall_20", "ndcg_cut_10", "ndcg_cut_20", "ndcg_cut_100", "success_20", "map")


@dataclasses.dataclass(frozen=True, eq=False)
class CatalogEvaluation:
    """The result of `evaluate`.

    Args:
      user_ids: The ids of the evaluated users, [users].
      values: For each measure, float64 [users], each in [0, 1].

    Example:
      >>> from tfr_smooth import recommendation
      >>> test = recommendation.Interactions([[1, 0, 0], [0, 1, 0]], user_ids=["ann", "bob"])
      >>> result = recommendation.evaluate(lambda users: [[3, 2, 1]] * len(users), test, measures=["P_1", "map"])
      >>> print(result)
      P_1  0.5000 ± 0.5000
      map  0.7500 ± 0.2500
      >>> result.by_user("P_1")
      {'ann': 1.0, 'bob': 0.0}
    """

    user_ids: np.ndarray
    values: dict[str, np.ndarray]

    @property
    def means(self) -> ByMeasure[Estimate]:
        """The mean over users and its standard error, by measure."""
        return ByMeasure({name: estimate(values) for name, values in self.values.items()})

    def by_user(self, measure: str) -> dict[int | str, float]:
        """Returns the values of a measure by user, as `evaluation.randomization_test` takes them.

        Args:
          measure: A measure of `values`.

        Returns:
          User id to value.

        Raises:
          ValueError: If the measure was not computed.
        """
        values = self.values[_arguments.choice("measure", measure, self.values)]
        return dict(zip(self.user_ids.tolist(), values.tolist(), strict=True))

    def __str__(self) -> str:
        """Returns one line per measure."""
        return str(self.means)


def evaluate(
    scorer: CatalogScorer,
    test: Interactions,
    *,
    seen: Interactions | None = None,
    measures: str | Iterable[str] = DEFAULT_MEASURES,
) -> CatalogEvaluation:
    r"""Ranks all unseen items for each user with test items, and computes trec_eval's measures.

    With the ranks $r_1 < r_2 < \dots < r_R$ of a user's R test items among all items that are not in `seen`:

    $$
    \begin{aligned}
    \mathrm{recall}_k &= |\{j : r_j \le k\}| / R &
    \mathrm{ndcg\_cut}_k &= \sum_{r_j \le k} \tfrac{1}{\log_2(1 + r_j)} \Big/
      \sum_{i=1}^{\min(k, R)} \tfrac{1}{\log_2(1 + i)} \\
    P_k &= |\{j : r_j \le k\}| / k &
    \mathrm{map} &= \tfrac{1}{R} \sum_j j / r_j \\
    \mathrm{success}_k &= [r_1 \le k] &
    \mathrm{recip\_rank}_k &= [r_1 \le k] / r_1
    \end{aligned}
    $$

    `success_k` is also known as hit rate (HR@k), and `recip_rank_k` as MRR@k. The values are those of trec_eval for
    runs with all unseen items, named by their ids: scores are rounded to float32, and ties are in decreasing order of
    the ids as text.

    Args:
      scorer: An object with a method `predict`, or such a function: indices of users [batch] to finite scores
        [batch, items].
      test: The test items of users. Users without test items are not evaluated.
      seen: Interactions whose items are not ranked, with the users and items of `test`: those of the training, and of
        the validation for a model that was trained on them too. None ranks all items.
      measures: Names among those of `evaluation.trec_eval`; or one such name.

    Returns:
      The values of each user, and their means.

    Raises:
      ValueError: If an argument is invalid, the scorer was trained with other ids, `seen` has a test item of the same
        user, no user has test items, or scores are not finite or have another shape.

    Time is that of scoring, and O(users * items) if all measures have a cutoff, else O(users * items * log(items)).
    Users are scored in blocks, so memory does not grow with their number, except for the result.

    Example:
      >>> from tfr_smooth import recommendation
      >>> train = recommendation.Interactions([[1, 0, 0, 0], [0, 1, 0, 0]])
      >>> test = recommendation.Interactions([[0, 0, 1, 0], [1, 0, 0, 1]])
      >>> popularity = recommendation.Popularity().fit(train)
      >>> result = recommendation.evaluate(popularity, test, seen=train, measures=["recall_1", "map"])
      >>> {name: round(each.mean, 4) for name, each in result.means.items()}
      {'recall_1': 0.25, 'map': 0.6667}
    """
    names = checked_measures(measures)
    check_ids_of(scorer, "test", test)
    if seen is not None:
        _check_disjoint(test, seen)
    users = np.flatnonzero(test.items_per_user)
    if len(users) == 0:
        raise ValueError("`test` must have a user with items, got none.")

    order = CatalogOrder(test.item_ids)
    depth = max(min(parted(name)[1] or test.num_items, test.num_items) for name in names)
    counts = test.items_per_user[users]
    ranks: list[np.ndarray] = []
    hidden = None if seen is None else lambda block: seen.dense(users[block])
    for block, _, keys in order.blocks(scorer, users, hidden):
        relevant = test.matrix[users[block]]
        ascending = highest(keys, depth)
        for row, (start, end) in enumerate(zip(relevant.indptr[:-1], relevant.indptr[1:], strict=True)):
            own = keys[row, relevant.indices[start:end]]
            # Below the highest keys, any rank that no measure counts.
            places = np.where(own < ascending[row, 0], test.num_items, depth - np.searchsorted(ascending[row], own))
            ranks.append(np.sort(places))
    return CatalogEvaluation(
        test.user_ids[users], {name: _values(name, np.concatenate(ranks), counts) for name in names}
    )


def _check_disjoint(test: Interactions, seen: Interactions) -> None:
    test.check_same_ids("seen", seen, "test")
    both = test.matrix.multiply(seen.matrix).tocoo()
    if both.nnz:
        pair = named_pair(test.user_ids, test.item_ids, both.row[0], both.col[0])
        raise ValueError(f"`test` must have no pairs of `seen`, got {counted(both.nnz, 'pair')}, such as {pair}.")


def _values(name: str, ranks: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Returns a measure for each user, given the ascending ranks of the test items of each user, and their numbers."""
    starts = np.cumsum(counts) - counts
    measure, cutoff = parted(name)
    k = cutoff or 2**31
    if measure == "recip_rank":
        return np.where(ranks[starts] <= k, 1.0 / ranks[starts], 0.0)
    within = ranks <= (np.repeat(counts, counts) if measure == "Rprec" else k)
    if measure in ("ndcg", "ndcg_cut"):
        discounts = 1.0 / np.log2(1.0 + np.arange(1, counts.max() + 1))
        ideal = np.cumsum(discounts)[np.minimum(counts, k) - 1]
        return np.add.reduceat(within / np.log2(1.0 + ranks), starts) / ideal
    if measure in ("map", "map_cut"):
        position = np.arange(1, len(ranks) + 1) - np.repeat(starts, counts)
        return np.add.reduceat(within * position / ranks, starts) / counts
    found = np.add.reduceat(within.astype(np.float64), starts)
    if measure == "success":
        return np.minimum(found, 1.0)
    return found / (k if measure == "P" else counts)
