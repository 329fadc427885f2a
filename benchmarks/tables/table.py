"""A table whose rows are split into training, validation and test queries, and the measure of its scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd


class Table(NamedTuple):
    """A table.

    Attributes:
      rows: The documents, with the columns "query", "label" and "part": "train", "valid" (after it) or "test".
      features: The columns of all sides.
      kinds: The kinds of columns that `Ranker` does not infer.
      matches: The pairs of columns that it compares, the document's first.
      measure: "recip_rank" or "ndcg_cut_10".
      linear: Whether labels are gains, or else 2^label - 1.
      empty: The value of queries without relevant documents.
      trees: What LightGBM's first trial has instead of the defaults.
    """

    rows: pd.DataFrame
    features: Sequence[str]
    kinds: Mapping[str, str] = {}
    matches: Sequence[tuple[str, str]] = ()
    measure: str = "ndcg_cut_10"
    linear: bool = False
    empty: float = 0.0
    trees: Mapping[str, Any] = {}

    def part(self, *names: str) -> pd.DataFrame:
        return self.rows[self.rows["part"].isin(names)]

    def kind(self, name: str) -> str:
        """Returns the kind of a column for the peers: "number", "date", "category", "id", "text" or "set:SEPARATOR"."""
        values = self.rows[name]
        if name in self.kinds:
            return self.kinds[name]
        if any(name in pair for pair in self.matches) and not pd.api.types.is_numeric_dtype(values):
            return "text"
        if pd.api.types.is_datetime64_any_dtype(values):
            return "date"
        return "number" if pd.api.types.is_numeric_dtype(values) else "category"

    def values(self, rows: pd.DataFrame, scores: np.ndarray) -> pd.Series:
        """Returns the measure of each query."""
        from tfr_smooth import evaluation  # imports TensorFlow

        gains = rows["label"] if self.linear else 2 ** rows["label"] - 1
        values = evaluation.evaluate_rows(gains, scores, rows["query"], [self.measure], by_query=True)[self.measure]
        relevant = rows.groupby(rows["query"].astype(str))["label"].max() > 0
        return pd.Series(values).rename(str).where(relevant, self.empty)

    def sample(self, queries: int) -> Table:
        """Returns the table with random queries, at most this number in each part."""
        random, kept = np.random.default_rng(0), []
        for _, rows in self.rows.groupby("part"):
            kept.extend(random.permutation(rows["query"].unique())[:queries])
        return self._replace(rows=self.rows[self.rows["query"].isin(kept)].reset_index(drop=True))


def split(queries: pd.Series, valid: float = 0.6, test: float = 0.75) -> np.ndarray:
    """Returns the part of each row: by the first place of its query, the fractions where validation and test begin."""
    places, names = pd.factorize(queries)
    fractions = places / len(names)
    return np.select([fractions < valid, fractions < test], ["train", "valid"], "test")
