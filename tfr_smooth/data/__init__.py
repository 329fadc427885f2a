"""Ranking data: `Lists` from arrays, tables, files and TF-Ranking's records, as batches of a dataset."""

from tfr_smooth.data.labels import draw_labels, labels_from_scores, one_list_per_click
from tfr_smooth.data.letor import read_letor, read_split
from tfr_smooth.data.letor_parser import LetorFormat
from tfr_smooth.data.list_columns import Roles
from tfr_smooth.data.lists import Lists, Summary
from tfr_smooth.data.synthetic import write_synthetic_letor
from tfr_smooth.data.table_columns import Column, column_arrays, infer_columns
from tfr_smooth.data.text_files import digest, expand_paths

__all__ = [
    "Column",
    "LetorFormat",
    "Lists",
    "Roles",
    "Summary",
    "column_arrays",
    "digest",
    "draw_labels",
    "expand_paths",
    "infer_columns",
    "labels_from_scores",
    "one_list_per_click",
    "read_letor",
    "read_split",
    "write_synthetic_letor",
]
