"""Columns of text with few values."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from tfr_smooth.columns import date, kinds
from tfr_smooth.columns.codes import DistinctValues, SplitColumn, checked_categories, lookup_table, most_frequent


@dataclasses.dataclass(frozen=True, kw_only=True)
class Category(SplitColumn):
    """A column of text with few values: one feature for each, 1 for the value of a row and 0 for the others.

    Args:
      name: The name in the table, not empty.
      has_missing: Whether values were missing in training. If so, a last feature indicates this.
      categories: The known values, at least one. Of others, all features are 0.

    Raises:
      ValueError: If an argument is invalid.

    Example:
      >>> from tfr_smooth.columns import Category
      >>> column = Category(name="brand", has_missing=True, categories=("acme", "umbrella"))
      >>> column.dtype, column.width
      (tf.string, 3)
    """

    categories: tuple[str, ...] = ()

    kind = "category"
    one_hot = True
    contains = "text, numbers or booleans"
    default_for = ("text",)
    accepts = ("text", "number", "boolean")

    def __post_init__(self) -> None:
        """Checks the arguments."""
        super().__post_init__()
        texts = checked_categories(self.categories, "unique strings that are not empty", least=1)
        object.__setattr__(self, "categories", texts)

    @classmethod
    def reason_for(cls, values: kinds.TrainingValues) -> str:
        """Returns how few texts there are; "" for many."""
        count = len(values.counts[0])
        return f"{count} different texts" if values.is_category else ""

    @classmethod
    def learn(cls, values: kinds.TrainingValues) -> Category:
        """Returns the column of training values: with the most frequent ones, if there are too many."""
        categories = most_frequent(*values.counts, values.max_categories)
        return cls(name=values.name, has_missing=values.has_missing, categories=categories)

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.categories) + self.has_missing

    def resource(self) -> Any:
        """Returns the lookup table."""
        return lookup_table(self.categories)

    def features(self, values: DistinctValues, resource: Any) -> tf.Tensor:
        """Returns the features of texts."""
        texts = values.parts.values
        features = tf.one_hot(resource.lookup(texts), len(self.categories))  # all 0 for -1
        features = date.with_flag(features, tf.equal(texts, "")) if self.has_missing else features
        return tf.gather(features, values.places)

    @property
    def description(self) -> str:
        """The raw values, for a model card."""
        return f"{kinds.listed(self.categories)}; others are unseen; '' is missing"
