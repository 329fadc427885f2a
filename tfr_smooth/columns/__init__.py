"""The columns of tables: what is learned of them, and the layer that prepares them for models."""

from tfr_smooth.columns.columns import Column, column_arrays, infer_columns
from tfr_smooth.columns.features import TableFeatures

__all__ = ["Column", "TableFeatures", "column_arrays", "infer_columns"]
