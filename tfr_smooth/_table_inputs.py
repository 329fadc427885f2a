"""How a table enters a `Ranker`: which columns are features, and their preparation."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfr_smooth import _arguments, data, models
from tfr_smooth.data.table_columns import column_names
from tfr_smooth.data.table_rows import TableRows, as_table, label_weights


@dataclasses.dataclass(frozen=True)
class TableInputs:
    """What `fit` learned about the columns of its table.

    Args:
      layer: The layer that prepares the features.
      roles: By role ("label", "query", "weight", "propensity"), the columns that are not features; for labels of
        several objectives, their weights by name.
      features: The features that the user chose; None for all columns without a role.
      query_features: The features that are the same for all documents of a query.
    """

    layer: models.TableFeatures
    roles: Mapping[str, Any]
    features: Sequence[str] | None
    query_features: Sequence[str]

    @property
    def label_weights(self) -> dict[str, float] | None:
        """The weights of the labels of several objectives, by name; None for one label."""
        return label_weights(self.roles)

    @classmethod
    def learn(
        cls, rows: TableRows, features: Sequence[str] | None, query_features: Sequence[str], max_categories: int
    ) -> TableInputs:
        """Learns the columns of training rows."""
        if rows.is_frame:
            columns = data.infer_columns(rows.table[rows.feature_names(features)], max_categories=max_categories)
        else:
            columns = data.from_matrix(rows.table)
        for name in query_features:
            _arguments.name("query_features", name, [column.name for column in columns])
            rows.check_constant(name)
        layer = models.TableFeatures(columns, stacked=not rows.is_frame)
        return cls(layer, rows.columns, None if features is None else list(features), list(query_features))

    def rows(
        self, X: Any, y: Any = None, qid: Any = None, group: Any = None, *, propensity: str | None = None
    ) -> TableRows:
        """Returns rows like those of `fit`; a frame may lack the columns of labels, queries, weights and propensities.

        Labels are clicks only if the frame has the column of propensities that is given.
        """
        X = as_table(X)
        columns = set(getattr(X, "columns", ()))
        own = {"label": y, "query": qid if group is None else group}
        roles = {role: self.roles[role] for role, given in own.items() if given is None and role in self.roles}
        roles = {role: names for role, names in roles.items() if columns.issuperset(column_names(names))}
        if y is not None and self.label_weights is not None:
            roles["label"] = self.label_weights
        if propensity in columns:
            roles["propensity"] = propensity
        return TableRows.take(X, y, qid=qid, group=group, **roles)

    def prepared(self, rows: TableRows) -> np.ndarray:
        """Returns the prepared features, float32 [rows, num_features]."""
        if not rows.is_frame:
            if not self.layer.stacked:
                raise ValueError(f"`X` must be a DataFrame as in `fit`, got an array of shape {rows.table.shape}.")
            if rows.table.shape[1] != len(self.layer.columns):
                raise ValueError(f"`X` must have {len(self.layer.columns)} features, got {rows.table.shape[1]}.")
            return self.layer(np.asarray(rows.table, np.float32)).numpy()
        if self.layer.stacked:
            raise ValueError(f"`X` must be an array as in `fit`, got a {type(rows.table).__name__}.")
        arrays = data.column_arrays(rows.table, self.layer.columns)
        extra = data.extra_columns(rows.table, self.layer.columns, allowed=self._names_of_roles)
        if extra and self.features is None:
            raise ValueError(f"`X` must have only the columns of `fit`, got also {extra[0]!r}.")
        return self.layer(arrays).numpy()

    def scorer(self, scorer: models.Scorer) -> models.TableScorer:
        """Returns the model of the raw columns."""
        model = models.TableScorer(self.layer, scorer, query_columns=tuple(self.query_features))
        model.build()
        return model

    @property
    def _names_of_roles(self) -> list[str]:
        return [name for role in self.roles.values() for name in column_names(role)]

    def state(self) -> dict[str, Any]:
        """Returns what `scorer` does not contain, as JSON values."""
        return {"roles": dict(self.roles), "features": self.features, "query_features": self.query_features}
