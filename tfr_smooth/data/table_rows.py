"""The rows of a table or of arrays: one row per document, with its label, query and weight."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.table_columns import column_names, to_pandas


def as_table(table: Any) -> Any:
    """Returns a table as a DataFrame, and other values as an array of numbers [rows, features]."""
    if hasattr(table, "iloc") or hasattr(table, "to_pandas"):
        return to_pandas(table)
    table = np.asarray(table)
    if table.ndim != 2:
        raise ValueError(f"`X` must be a table or numbers [rows, features], got shape {table.shape}.")
    return table


@dataclasses.dataclass(frozen=True)
class TableRows:
    """Rows in the forms that `Ranker` takes.

    Args:
      table: A DataFrame with the features and possibly further columns, or numbers [rows, num_features].
      labels: [rows], [rows, objectives], or None.
      query_ids: [rows], or None.
      group_sizes: Alternative to `query_ids`, [queries], or None.
      weights: [rows], or None.
      propensities: [rows], if the labels are clicks, or None.
      columns: By role ("label", "query", "weight", "propensity"), the columns of the table that are not features. For
        labels of several objectives, their weights by name.
    """

    table: Any
    labels: Any = None
    query_ids: Any = None
    group_sizes: Any = None
    weights: Any = None
    propensities: Any = None
    columns: dict[str, Any] = dataclasses.field(default_factory=dict)

    @classmethod
    def take(
        cls,
        table: Any,
        labels: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        label: str | Mapping[str, float] | None = None,
        query: str | None = None,
        weight: str | None = None,
        propensity: str | None = None,
    ) -> TableRows:
        """Returns the rows; labels, queries and weights are arrays or the names of columns of the table.

        A mapping from labels to weights names the columns of the table or, if labels are given, the columns of these.
        """
        table = as_table(table)
        is_frame = hasattr(table, "iloc")
        given = {"labels": (labels, "label", label), "query_ids": (qid, "query", query)}
        given["weights"] = (sample_weight, "weight", weight)
        given["propensities"] = (None, "propensity", propensity)
        found: dict[str, Any] = {}
        columns = {}
        objectives = _weights(label) if isinstance(label, Mapping) else None
        for field, (values, role, column) in given.items():
            for name in column_names(column) if objectives is None or values is None else ():
                if not is_frame or name not in table.columns:
                    known = list(table.columns) if is_frame else "an array"
                    raise ValueError(f"`{role}` must be a column of the table, got {name!r} for {known}.")
            if column is not None:
                columns[role] = column if isinstance(column, str) else objectives
                if values is None:
                    values = table[column if isinstance(column, str) else list(column)].to_numpy()
            found[field] = None if values is None else np.asarray(values)
        for name, values in (("y", found["labels"]), ("qid", found["query_ids"]), ("sample_weight", found["weights"])):
            shape = (len(table), len(objectives)) if name == "y" and objectives else (len(table),)
            if values is not None and values.shape != shape:
                of = " and label" if len(shape) > 1 else ""
                raise ValueError(f"`{name}` must have one value per row{of}, shape {shape}, got {values.shape}.")
        return cls(table, group_sizes=group, columns=columns, **found)

    def with_labels(self) -> TableRows:
        """Returns the rows, which must have labels."""
        if self.labels is None:
            raise ValueError("`y` or `label` must define the labels, got neither.")
        return self

    def checked(self) -> TableRows:
        """Returns the rows, which must have labels and queries."""
        self.with_labels()
        _ = self.query_of_row  # raises an error if there are no queries
        return self

    def check_constant(self, name: str) -> None:
        """Checks that a column has one value in each query."""
        values, queries = self.table[name], self.query_of_row
        varies = values.groupby(queries).nunique(dropna=False) > 1
        if varies.any():
            row = int(np.flatnonzero(queries == varies.idxmax())[0])
            raise ValueError(
                f"`query_features` must be the same in all rows of a query, got {name!r}, which varies in the query of "
                f"row {row}."
            )

    @property
    def label_weights(self) -> dict[str, float] | None:
        """The weights of the labels of several objectives, by name; None for one label."""
        return label_weights(self.columns)

    def each_label(self) -> dict[str, np.ndarray]:
        """The labels [rows] by "" for one label, else by "NAME/" for each."""
        if self.label_weights is None:
            return {"": self.labels}
        return {f"{name}/": self.labels[:, place] for place, name in enumerate(self.label_weights)}

    def mixed_label(self, inputs: Any, labels: tf.Tensor) -> tuple[Any, tf.Tensor]:
        """Returns a batch with the weighted sum of the labels, each in the unit of the first one, -1 for padding."""
        assert self.label_weights is not None
        deviations = np.asarray(self.labels, np.float64).std(axis=0)
        units = np.divide(deviations[0] or 1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0.0)
        mixed = tf.linalg.matvec(labels, tf.constant(units * list(self.label_weights.values()), labels.dtype))
        return inputs, tf.where(inputs["mask"], mixed, -1.0)

    @property
    def is_frame(self) -> bool:
        """Whether the table is a DataFrame."""
        return hasattr(self.table, "iloc")

    @functools.cached_property
    def query_of_row(self) -> np.ndarray:
        """A number for the query of each row, counted in the order of the queries."""
        if self.group_sizes is not None:
            return np.repeat(np.arange(len(self.group_sizes)), np.asarray(self.group_sizes))
        if self.query_ids is None:
            raise ValueError("`qid`, `group` or `query` must define the queries, got none of them.")
        _, first, inverse = np.unique(self.query_ids, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[inverse]

    def split(self, fraction: float, seed: int) -> tuple[TableRows, TableRows]:
        """Splits the queries at random; the second part has this fraction of them, and each part at least one."""
        queries = self.query_of_row
        count = int(queries.max()) + 1 if len(queries) else 0
        if count < 2:
            raise ValueError(f"`validation_fraction` must be 0 for fewer than two queries, got {fraction} for {count}.")
        held = np.random.default_rng(seed).permutation(count)[: min(max(round(fraction * count), 1), count - 1)]
        is_held = np.isin(queries, held)
        return self._where(~is_held, queries), self._where(is_held, queries)

    def _where(self, chosen: np.ndarray, queries: np.ndarray) -> TableRows:
        take = lambda values: None if values is None else values[chosen]  # noqa: E731
        of_rows = {name: take(getattr(self, name)) for name in ("labels", "weights", "propensities")}
        return TableRows(self.table[chosen], query_ids=queries[chosen], columns=dict(self.columns), **of_rows)

    def clicked(self) -> TableRows:
        """Returns the rows of the queries with a click if the labels are clicks with propensities, else all rows."""
        if self.propensities is None:
            return self
        if self.label_weights is not None:
            raise ValueError(f"`label` must be one column of clicks with `propensity`, got {self.columns['label']}.")
        bad = np.flatnonzero(~(self.propensities > 0.0))
        if len(bad):
            raise ValueError(f"`propensity` must be > 0, got {self.propensities[bad[0]]} in row {bad[0]}.")
        queries = self.query_of_row
        has_click = np.isin(queries, queries[self.labels > 0])
        if not has_click.any():
            raise ValueError("`label` must have a click with `propensity`, got none.")
        return self._where(has_click, queries)

    def lists(self, features: np.ndarray) -> Lists:
        """Returns lists of prepared features [rows, num_features]."""
        return Lists.from_arrays(
            features,
            self.labels,
            self.query_ids,
            group=self.group_sizes,
            weights=self.weights,
            propensities=self.propensities,
        )

    def unweighted(self) -> TableRows:
        """Returns the rows without weights; clicks with propensities become unbiased estimates of the relevance."""
        labels = self.labels if self.propensities is None else self.labels / self.propensities
        return dataclasses.replace(self, labels=labels, weights=None, propensities=None)

    def feature_names(self, chosen: Sequence[str] | None) -> list[str]:
        """Returns the columns that are features: the chosen ones, or all that have no other role."""
        others = {name for role in self.columns.values() for name in column_names(role)}
        names = [name for name in self.table.columns if name not in others] if chosen is None else list(chosen)
        if not names:
            raise ValueError("`features` must name at least one column, got none.")
        return names


def label_weights(roles: Mapping[str, Any]) -> dict[str, float] | None:
    """Returns the weights of the labels of several objectives, by name; None for one label."""
    label = roles.get("label")
    return None if isinstance(label, str) else label


def _weights(label: Mapping[str, float]) -> dict[str, float]:
    """Returns the checked weights of labels, by name."""
    for name, weight in label.items():
        _arguments.real(f"label[{name!r}]", weight, least=0.0)
    return dict(zip(label, _arguments.weights("label", list(label.values())), strict=True))
