"""Ranking data: `Lists` from arrays, tables, files and TF-Ranking's records, as batches of a dataset."""

from tfr_smooth.data.labels import draw_labels, labels_from_scores, one_list_per_click
from tfr_smooth.data.lists import Lists, Summary
from tfr_smooth.data.reading.letor import read_letor, read_split
from tfr_smooth.data.reading.letor_parser import LetorFormat
from tfr_smooth.data.reading.synthetic import write_synthetic_letor
from tfr_smooth.data.reading.text_files import digest, expand_paths
from tfr_smooth.data.roles import Roles

__all__ = [
    "LetorFormat",
    "Lists",
    "Roles",
    "Summary",
    "digest",
    "draw_labels",
    "expand_paths",
    "labels_from_scores",
    "one_list_per_click",
    "read_letor",
    "read_split",
    "write_synthetic_letor",
]
