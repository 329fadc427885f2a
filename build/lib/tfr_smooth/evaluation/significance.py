"""Is one ranker better than another, or only luckier on these queries?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tfr_smooth import _arguments

_MAX_SEED = 2**32 - 1  # the limit of RandomState
_CHUNK = 2**21  # signs drawn at once, for a bound on memory


class Comparison(NamedTuple):
    """What `randomization_test` found.

    Attributes:
      mean_difference: Mean over the queries of the first ranker's figure less the second's.
      p_value: In (0, 1]: how often chance alone makes a mean as far from 0.
      queries: Number of queries.
    """

    mean_difference: float
    p_value: float
    queries: int


def randomization_test(
    a: Mapping[str, float], b: Mapping[str, float], *, samples: int = 10_000, seed: int = 0
) -> Comparison:
    """Tests whether two rankers differ by more than chance: Fisher's paired randomization test.

    If they do not differ, the difference `d_q = a_q - b_q` of each query could as well have the
    other sign. With signs `s_q` drawn from {-1, 1} in each sample (Smucker, Allan and Carterette,
    CIKM 2007), the two-sided p-value is

        p = (1 + number of samples with |sum_q s_q d_q| >= |sum_q d_q|) / (1 + samples)

    Nothing is assumed of the distribution of `d_q`, unlike in the paired t-test, with which it
    agrees closely for many queries. When several comparisons are made, multiply each p by their
    number (Bonferroni).

    Args:
      a: Query id to the first ranker's figure: finite numbers, at least one.
      b: The second ranker's figures for the same queries, in any order.
      samples: How many samples, at least 1; the smallest p is `1 / (1 + samples)`.
      seed: Integer in [0, 2^32 - 1]. A seed gives the same result with every NumPy.

    Returns:
      A `Comparison` with the mean of `d_q`, p and the number of queries. With `a` and `b` swapped,
      only the sign of the mean differs.

    Raises:
      ValueError: An argument is not as above.

    Time grows with samples times queries: about a second for 10000 times 6000.

    Example:
      >>> a = {f"q{i}": 0.50 + 0.01 * i for i in range(20)}
      >>> b = {f"q{i}": 0.48 + 0.01 * i for i in range(20)}
      >>> comparison = randomization_test(a, b)
      >>> round(comparison.mean_difference, 4), comparison.p_value < 0.001, comparison.queries
      (0.02, True, 20)
    """
    samples = _arguments.integer("samples", samples, least=1)
    seed = _arguments.integer("seed", seed, least=0)
    if seed > _MAX_SEED:
        raise ValueError(f"`seed` must be an integer <= {_MAX_SEED}, got {seed!r}.")
    if len(a) == 0:
        raise ValueError("`a` must hold at least one query, got none.")
    for name, figures, other in (("b", b, a), ("a", a, b)):
        missing = next((query_id for query_id in other if query_id not in figures), None)
        if missing is not None:
            raise ValueError(f"`{name}` must hold the same queries as the other, got none named {missing!r}.")
        for query_id, value in figures.items():
            _arguments.real(f"{name}[{query_id!r}]", value)

    # Sorted, so that the result does not depend on the order of the dicts.
    differences = np.array([float(a[query_id]) - float(b[query_id]) for query_id in sorted(a)])
    total = math.fsum(differences)
    # Sums that are equal but for rounding count as equal.
    bound = abs(total) - 1e-12 * math.fsum(abs(differences))
    random = np.random.RandomState(seed)
    rows = max(1, _CHUNK // len(differences))
    reached = 0
    for start in range(0, samples, rows):
        flipped = random.random_sample((min(rows, samples - start), len(differences))) < 0.5
        reached += int(np.count_nonzero(np.abs(total - 2.0 * (flipped @ differences)) >= bound))
    return Comparison(total / len(differences), (1 + reached) / (1 + samples), len(differences))
