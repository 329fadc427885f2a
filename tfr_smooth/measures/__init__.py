"""Measures of a ranking, exact or smooth: pure functions, one value per list. One file per measure.

To add a measure, import its class here and add it to `MEASURES`.
"""

from tfr_smooth.measures.average_precision import AveragePrecision as AveragePrecision
from tfr_smooth.measures.expected_reciprocal_rank import ExpectedReciprocalRank as ExpectedReciprocalRank
from tfr_smooth.measures.measure import BinaryMeasure, Measure
from tfr_smooth.measures.ndcg import NDCG as NDCG
from tfr_smooth.measures.ndcg import ideal_dcg
from tfr_smooth.measures.precision import Precision as Precision
from tfr_smooth.measures.recall import Recall as Recall
from tfr_smooth.measures.reciprocal_rank import ReciprocalRank as ReciprocalRank

# The measures, in the order of the tables.
MEASURES: tuple[type[Measure], ...] = (
    NDCG,
    Precision,
    Recall,
    AveragePrecision,
    ReciprocalRank,
    ExpectedReciprocalRank,
)

__all__ = ["MEASURES", "BinaryMeasure", "Measure", "ideal_dcg"]
__all__ += [measure.__name__ for measure in MEASURES]
