"""What a `Ranker` knows of the columns of its tables besides the features: their roles."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from tfr_smooth import _arguments, _serialization, data
from tfr_smooth.columns import TableFeatures
from tfr_smooth.columns.kinds import check_names
from tfr_smooth.columns.learning import table_of_rows
from tfr_smooth.data.reading import checks
from tfr_smooth.data.reading.sources import as_table, check_constant, check_index, clicked, read_documents
from tfr_smooth.data.roles import DENSE


@dataclasses.dataclass(frozen=True)
class Schema(_serialization.Configurable):
    """The roles of the columns of the training table, with which other tables are read.

    Args:
      query: The column of queries; None if `fit` got arrays.
      label: The column of labels, or those of several labels with their weights; None if `fit` got an array.
      query_features: The features that are the same for all documents of a query.
    """

    query: str | None
    label: str | Mapping[str, float] | None
    query_features: Sequence[str]

    @classmethod
    def of(cls, lists: data.Lists, names: Mapping[str, Any] | None, query_features: Sequence[str]) -> Schema:
        """Returns the schema of the lists of `fit`.

        Args:
          lists: The lists.
          names: The columns by role that the user named, or None for each; None if the user gave `Lists`.
          query_features: The features that are the same for all documents of a query.
        """
        roles, query_features = lists.roles, list(map(str, query_features))
        for name in query_features:
            _arguments.choice("query_features", name, () if lists.is_dense else roles.features)
            check_constant(lists, lists.source[name], "`query_features`", f"{name!r}, which varies in the query of")
        named = {role for role in ("query", "label") if names is None or names[role] is not None}
        label: Any = roles.labels[0] if "label" in named else None
        if len(roles.labels) > 1:
            label = dict(zip(roles.labels, roles.label_weights or [1.0] * len(roles.labels), strict=True))
        return cls(roles.query if "query" in named else None, label, query_features)

    @property
    def label_weights(self) -> tuple[float, ...] | None:
        """The weights of several labels; None for one label."""
        return tuple(self.label.values()) if isinstance(self.label, Mapping) else None

    def read(
        self,
        X: Any,
        given: Mapping[str, Any],
        layer: TableFeatures,
        *,
        needs: Sequence[str],
        of_lists: bool = False,
        propensity: str | None = None,
    ) -> data.Lists:
        """Returns lists like those of `fit`, with raw values.

        A table needs only the columns of the features and of the needed roles; others are ignored.

        Args:
          X: `Lists`, a table, rows that are dicts, or a matrix.
          given: The arrays `y`, `qid` and `group`, or None.
          layer: The features.
          needs: The roles that must be defined.
          of_lists: Whether the queries must be defined, since scores depend on the other documents of the query.
          propensity: Labels are clicks if the table has this column. None for labels.
        """
        names, given = {}, {name: values for name, values in given.items() if values is not None}
        has_queries = isinstance(X, data.Lists)
        if not has_queries:
            check_index(X, given)
            if checks.are_rows(X) and not layer.stacked:
                others = [self.query, *(self.label if isinstance(self.label, Mapping) else [self.label])]
                X = table_of_rows(X, layer.columns, [name for name in others if name is not None])
            X = as_table(X)
            names = self._names(X, given, layer, {*needs, *(["query"] if of_lists else [])})
            if str(propensity) in X.column_names:
                names["propensity"] = propensity
            has_queries = names["query"] is not None or bool(given.keys() & {"qid", "group"})
        lists = layer.raw_lists(read_documents(X, given, needs=needs, **names))
        if of_lists and not has_queries:
            reason = "the ranker scores documents by the others of their query, unless `list_context=False`"
            raise ValueError(f"`qid`, `group` or `query` must define the queries, got none of them: {reason}.")
        if has_queries and "label" not in needs:  # scikit-learn shuffles columns for measures
            for name in self.query_features:
                check_constant(lists, lists.source[name], f"column {name!r}", "different values in the query of")
        expected = len(self.label_weights or [None])
        if "label" in needs and len(lists.roles.labels) != expected:
            raise ValueError(f"`X` must have {expected} labels as in `fit`, got {list(lists.roles.labels)}.")
        return lists

    def _names(self, X: Any, given: Mapping[str, Any], layer: TableFeatures, needs: set[str]) -> dict[str, Any]:
        """Returns the columns of an Arrow table by role: the features, and the needed roles that no array defines."""
        names: dict[str, Any] = {}
        if layer.stacked:
            names["features"] = [DENSE] if DENSE in X.column_names else None
        elif not checks.is_dense(X):
            check_names(X.column_names, layer.columns)
            names["features"] = [column.name for column in layer.columns]
        for role, name, arrays in (("query", self.query, {"qid", "group"}), ("label", self.label, {"y"})):
            if given.keys() & arrays:
                is_used = isinstance(name, Mapping)  # the names of the columns of `y`
            else:
                is_used = name is not None and {*([name] if isinstance(name, str) else name)} <= {*X.column_names}
            names[role] = name if is_used and role in needs else None
        return names

    def read_validation(self, validation: Any, layer: TableFeatures, propensity: str | None) -> data.Lists:
        """Returns the lists of the argument `validation` of `Ranker.fit`, with raw values."""
        given = validation if isinstance(validation, tuple) else (validation,)
        if isinstance(validation, list) or not 1 <= len(given) <= 3:
            got = f"{type(validation).__name__} of {len(validation)}"
            raise ValueError(f"`validation` must be a table, `Lists`, or one tuple (X, y, qid), got a {got}.")
        X, y, qid = (*given, None, None)[:3]
        try:
            needs = ["label", "query"]
            return clicked(self.read(X, {"y": y, "qid": qid}, layer, needs=needs, propensity=propensity))
        except ValueError as error:
            raise ValueError(str(error).replace("`X`", "`validation`")) from None
