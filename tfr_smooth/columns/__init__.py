"""The columns of tables: their kinds, what is learned of them, and the layer that prepares them for models.

A kind of column is one class; importing its module here registers it.
"""

from tfr_smooth.columns.category import Category
from tfr_smooth.columns.date import Date
from tfr_smooth.columns.features import TableFeatures
from tfr_smooth.columns.kinds import Column, Columns
from tfr_smooth.columns.learning import column_arrays, infer_columns
from tfr_smooth.columns.number import Boolean, Number
from tfr_smooth.columns.set import Id, Set
from tfr_smooth.columns.statistics import Statistic
from tfr_smooth.columns.text import Text
from tfr_smooth.columns.trees import Trees
from tfr_smooth.columns.vector import Encoded, Vector

__all__ = [
    "Boolean",
    "Category",
    "Column",
    "Columns",
    "Date",
    "Encoded",
    "Id",
    "Number",
    "Set",
    "Statistic",
    "TableFeatures",
    "Text",
    "Trees",
    "Vector",
    "column_arrays",
    "infer_columns",
]
