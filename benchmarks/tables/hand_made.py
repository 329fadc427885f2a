"""The columns that a user adds by hand for trees: ranks in the list, target means of ids, and matches of columns."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tables.table import Table

_FOLDS = 5
_PRIOR = 10  # rows with the mean label that are added to those of a value


class HandMade:
    """Columns that follow from the kinds of the columns of a table.

    - The rank of each number in its list.
    - The mean label of each category and id, without the queries of the same fifth for training rows.
    - For each pair of `Table.matches`: cosines of the TF-IDF of words and of character trigrams for texts; else the
      number of common values.

    Columns that are equal in each list have neither ranks nor mean labels.

    Args:
      table: The table.
      parts: The parts whose rows are those of the training.
    """

    def __init__(self, table: Table, *parts: str) -> None:
        self._table, self._train = table, table.part(*parts)
        kinds = {name: table.kind(name) for name in table.features}
        most = self._train.groupby("query")[list(kinds)].nunique().max()
        varying = {name: kind for name, kind in kinds.items() if most[name] > 1}
        self._numbers = [name for name, kind in varying.items() if kind in ("number", "date")]
        self._ids = [name for name, kind in varying.items() if kind in ("category", "id")]
        self._vectorizers = {}
        for pair in table.matches:
            if all(kinds[name] == "text" for name in pair):
                from sklearn.feature_extraction.text import TfidfVectorizer

                texts = pd.concat([self._train[name].fillna("").drop_duplicates() for name in pair])
                for analyzer, length in (("word", 1), ("char_wb", 3)):
                    vectorizer = TfidfVectorizer(analyzer=analyzer, ngram_range=(length, length), dtype=np.float32)
                    self._vectorizers[(*pair, analyzer)] = vectorizer.fit(texts)

    def of_training_rows(self) -> pd.DataFrame:
        """Returns the columns of the training rows."""
        queries, _ = pd.factorize(self._train["query"])
        folds = np.random.default_rng(0).permutation(queries.max() + 1)[queries] % _FOLDS
        labels = self._train["label"].to_numpy(float)
        means = {}
        for name in self._ids:
            values = pd.factorize(self._train[name])[0] + 1
            of_fold = values * _FOLDS + folds
            counts, sums = (
                np.bincount(values, weights)[values] - np.bincount(of_fold, weights)[of_fold]
                for weights in (np.ones(len(values)), labels)
            )
            means[f"{name}, mean label"] = (sums + _PRIOR * labels.mean()) / (counts + _PRIOR)
        return self._columns(self._train, means)

    def __call__(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Returns the columns of rows of other queries."""
        mean, means = self._train["label"].mean(), {}
        for name in self._ids:
            of_value = self._train.groupby(name)["label"].agg(["sum", "size"])
            smooth = (of_value["sum"] + _PRIOR * mean) / (of_value["size"] + _PRIOR)
            means[f"{name}, mean label"] = rows[name].map(smooth).astype(float).fillna(mean)
        return self._columns(rows, means)

    def _columns(self, rows: pd.DataFrame, columns: dict) -> pd.DataFrame:
        ranks = rows.groupby("query")[self._numbers].rank(pct=True)
        columns |= {f"{name}, rank": ranks[name] for name in self._numbers}
        for (left, right, analyzer), vectorizer in self._vectorizers.items():
            first, second = (vectorizer.transform(rows[name].fillna("")) for name in (left, right))
            columns[f"{left}, {right}, {analyzer} cosine"] = np.asarray(first.multiply(second).sum(axis=1)).ravel()
        for pair in self._table.matches:
            if not all(self._table.kind(name) == "text" for name in pair):
                sets = [self._sets(rows, name) for name in pair]
                columns[f"{pair[0]}, {pair[1]}, common"] = [
                    len(left & right) for left, right in zip(*sets, strict=True)
                ]
        return pd.DataFrame(columns, index=rows.index).astype(np.float32)

    def _sets(self, rows: pd.DataFrame, name: str) -> list[set[str]]:
        separator = self._table.kind(name).partition("set:")[2]
        values = rows[name].fillna("").astype(str)
        return [set(value.split(separator) if separator else [value]) - {""} for value in values]
