"""Ranking data: LETOR files, TF-Ranking's records, arrays and tables as datasets."""

from tfr_smooth.data.arrays import from_arrays, from_dataframe
from tfr_smooth.data.clicks import one_list_per_click
from tfr_smooth.data.column import Column
from tfr_smooth.data.elwc import ElwcSchema, letor_to_tfrecord, tfrecord_to_letor
from tfr_smooth.data.letor import read_letor, scan_letor
from tfr_smooth.data.letor_format import LetorFormat
from tfr_smooth.data.letor_parser import LetorSummary
from tfr_smooth.data.objectives import draw_labels
from tfr_smooth.data.splits import scan_split
from tfr_smooth.data.synthetic import write_synthetic_letor
from tfr_smooth.data.table_columns import column_arrays, extra_columns, from_matrix, infer_columns
from tfr_smooth.data.teacher import labels_from_scores
from tfr_smooth.data.text_files import digest, expand_paths
from tfr_smooth.data.tfrecord import read_tfrecord

__all__ = [
    "Column",
    "ElwcSchema",
    "LetorFormat",
    "LetorSummary",
    "column_arrays",
    "digest",
    "draw_labels",
    "expand_paths",
    "extra_columns",
    "from_arrays",
    "from_dataframe",
    "from_matrix",
    "infer_columns",
    "labels_from_scores",
    "letor_to_tfrecord",
    "one_list_per_click",
    "read_letor",
    "read_tfrecord",
    "scan_letor",
    "scan_split",
    "tfrecord_to_letor",
    "write_synthetic_letor",
]
