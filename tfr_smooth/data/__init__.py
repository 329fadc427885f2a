"""Ranking data: reading LETOR files and normalizing features."""

from __future__ import annotations

from tfr_smooth.data.letor import read_letor
from tfr_smooth.data.letor_parser import LetorSummary, scan_letor
from tfr_smooth.data.normalization import (
    QueryMinMax,
    Standardize,
    SymmetricLog1p,
    get_normalizer,
)
from tfr_smooth.data.synthetic import write_synthetic_letor

__all__ = [
    "LetorSummary",
    "QueryMinMax",
    "Standardize",
    "SymmetricLog1p",
    "get_normalizer",
    "read_letor",
    "scan_letor",
    "write_synthetic_letor",
]
