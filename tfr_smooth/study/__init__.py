"""Reproducible comparisons of losses and rankers on the folds of data sets."""

from tfr_smooth.study.folds import Dataset, find_folds, one_split
from tfr_smooth.study.jobs import MEASURES, Job, Result, read_result
from tfr_smooth.study.rankers import RANKERS, Fitted, Method
from tfr_smooth.study.report import write_report
from tfr_smooth.study.results import Results, collect, read_results, write_results
from tfr_smooth.study.selection import Entry, Study, parse_label
from tfr_smooth.study.sweeps import SWEEPS, sweep
from tfr_smooth.study.trade_off import pareto_front, plot_pareto_front, trade_off
from tfr_smooth.study.workers import Failure, run_jobs

__all__ = [
    "MEASURES",
    "RANKERS",
    "SWEEPS",
    "Dataset",
    "Entry",
    "Failure",
    "Fitted",
    "Job",
    "Method",
    "Result",
    "Results",
    "Study",
    "collect",
    "find_folds",
    "one_split",
    "pareto_front",
    "parse_label",
    "plot_pareto_front",
    "read_result",
    "read_results",
    "run_jobs",
    "sweep",
    "trade_off",
    "write_report",
    "write_results",
]
