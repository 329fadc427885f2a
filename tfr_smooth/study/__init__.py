"""Which loss, and which ranker? Compares them on the folds of a data set, reproducibly."""

from tfr_smooth.study.folds import Dataset, find_folds, one_split
from tfr_smooth.study.jobs import MEASURES, Job, Result, read_result, run_job
from tfr_smooth.study.rankers import RANKERS, Fitted, Ranker
from tfr_smooth.study.recipe import Recipe
from tfr_smooth.study.selection import Entry, Study
from tfr_smooth.study.workers import Failure, run_jobs

__all__ = [
    "MEASURES",
    "RANKERS",
    "Dataset",
    "Entry",
    "Failure",
    "Fitted",
    "Job",
    "Ranker",
    "Recipe",
    "Result",
    "Study",
    "find_folds",
    "one_split",
    "read_result",
    "run_job",
    "run_jobs",
]
