"""Measures of a ranking, exact or smooth: pure functions, one value per list. Their modules register them."""

from tfr_smooth.measures.correlations import KendallTau as KendallTau
from tfr_smooth.measures.correlations import OrderedPairAccuracy as OrderedPairAccuracy
from tfr_smooth.measures.correlations import SpearmanCorrelation as SpearmanCorrelation
from tfr_smooth.measures.cumulative_gain import DCG as DCG
from tfr_smooth.measures.cumulative_gain import NDCG as NDCG
from tfr_smooth.measures.cumulative_gain import AlphaDCG as AlphaDCG
from tfr_smooth.measures.cumulative_gain import AverageRelevancePosition as AverageRelevancePosition
from tfr_smooth.measures.cumulative_gain import PrecisionIA as PrecisionIA
from tfr_smooth.measures.cumulative_gain import SubtopicMeasure, ideal_dcg
from tfr_smooth.measures.first_ranks import AveragePrecision as AveragePrecision
from tfr_smooth.measures.first_ranks import ExpectedReciprocalRank as ExpectedReciprocalRank
from tfr_smooth.measures.first_ranks import Hits as Hits
from tfr_smooth.measures.first_ranks import Precision as Precision
from tfr_smooth.measures.first_ranks import Recall as Recall
from tfr_smooth.measures.first_ranks import ReciprocalRank as ReciprocalRank
from tfr_smooth.measures.measure import EXACT_ONLY, MEASURES, BinaryMeasure, Measure

__all__ = ["EXACT_ONLY", "MEASURES", "BinaryMeasure", "Measure", "SubtopicMeasure", "ideal_dcg"]
__all__ += [measure.__name__ for measure in (*MEASURES.values(), *EXACT_ONLY.values())]
