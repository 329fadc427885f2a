"""Scores of a teacher as labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfr_smooth import _arguments


def labels_from_scores(scores: Any, qid: Any, *, temperature: float = 1.0) -> np.ndarray:
    r"""Returns the scores of a teacher as labels: $(t_j - \min_i t_i) / \tau$ within each query.

    Negative labels mark padding, while scores may have any sign. The shift does not change losses that depend on
    differences or ranks of the labels, such as `losses.ListNetLoss`, `losses.PairwiseMSELoss`,
    `losses.CoupledRankDistilLoss` and `losses.ADRMSELoss`.

    Args:
      scores: Scores of the teacher, [rows].
      qid: The query of each row, [rows], in any order.
      temperature: Tau, the divisor of the scores, > 0: larger values make the teacher's distribution softer.

    Returns:
      float32 [rows], >= 0; the lowest label of each query is 0.

    Raises:
      ValueError: If the shapes differ, a score is not finite or the temperature is out of range.

    Time O(N log N), memory O(N) for N rows.

    Example:
      >>> from tfr_smooth import data
      >>> data.labels_from_scores([-1.0, 0.5, 2.0, 4.0], ["a", "a", "b", "b"], temperature=0.5).tolist()
      [0.0, 3.0, 0.0, 4.0]
    """
    temperature = _arguments.real("temperature", temperature, above=0.0)
    scores, qid = np.asarray(scores, np.float64), np.asarray(qid)
    if scores.ndim != 1 or qid.shape != scores.shape:
        raise ValueError(f"`scores` and `qid` must have the shape [rows], got {scores.shape} and {qid.shape}.")
    if not np.isfinite(scores).all():
        raise ValueError(f"`scores` must be finite, got {scores[~np.isfinite(scores)][0]}.")
    _, queries = np.unique(qid, return_inverse=True)
    lowest = np.full(len(scores), np.inf)
    np.minimum.at(lowest, queries, scores)
    return ((scores - lowest[queries]) / temperature).astype(np.float32)
