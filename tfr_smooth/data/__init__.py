"""Ranking data: `Lists` from arrays, tables, files and TF-Ranking's records, as batches of a dataset."""

from tfr_smooth.data.batches import draw_labels, one_list_per_click
from tfr_smooth.data.lists import Lists, Summary
from tfr_smooth.data.reading.files import read_files
from tfr_smooth.data.reading.letor import LetorFormat, read_letor, read_split
from tfr_smooth.data.reading.records import read_records, write_records
from tfr_smooth.data.reading.sources import from_arrays, from_table
from tfr_smooth.data.reading.synthetic import write_synthetic_letor
from tfr_smooth.data.reading.text_files import expand_paths
from tfr_smooth.data.roles import Roles

__all__ = [
    "LetorFormat",
    "Lists",
    "Roles",
    "Summary",
    "draw_labels",
    "expand_paths",
    "from_arrays",
    "from_table",
    "one_list_per_click",
    "read_files",
    "read_letor",
    "read_records",
    "read_split",
    "write_records",
    "write_synthetic_letor",
]
