"""Evaluation: trec_eval's metrics, TREC files and a significance test."""

from tfr_smooth.evaluation.segments import BySegment
from tfr_smooth.evaluation.statistics import Comparison, randomization_test
from tfr_smooth.evaluation.trec import (
    Estimate,
    ScoredQuery,
    document_names,
    evaluate_rows,
    trec_eval,
    trec_eval_by_query,
)
from tfr_smooth.evaluation.trec_files import read_qrels, read_run, write_qrels, write_run

__all__ = [
    "BySegment",
    "Comparison",
    "Estimate",
    "ScoredQuery",
    "document_names",
    "evaluate_rows",
    "randomization_test",
    "read_qrels",
    "read_run",
    "trec_eval",
    "trec_eval_by_query",
    "write_qrels",
    "write_run",
]
