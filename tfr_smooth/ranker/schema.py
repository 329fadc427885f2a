"""What a `Ranker` knows of the columns of its tables besides the features: their roles."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from tfr_smooth import _arguments, data
from tfr_smooth.columns import TableFeatures
from tfr_smooth.columns.kinds import check_names
from tfr_smooth.data.reading import checks
from tfr_smooth.data.reading.sources import as_table, check_constant, check_index, clicked, read_documents
from tfr_smooth.data.roles import DENSE


@dataclasses.dataclass(frozen=True)
class Schema:
    """The roles of the columns of the training table, with which other tables are read.

    Args:
      roles: By role ("label", "query", "weight", ...), the columns that are not features; for labels of several
        objectives, their weights by name.
      features: The features that the user chose; None for all columns without a role.
      query_features: The features that are the same for all documents of a query.
    """

    roles: Mapping[str, Any]
    features: Sequence[str] | None
    query_features: Sequence[str]

    @classmethod
    def of(
        cls, lists: data.Lists, names: Mapping[str, Any], features: Sequence[str] | None, query_features: Sequence[str]
    ) -> Schema:
        """Returns the schema of the lists of `fit`.

        Args:
          lists: The lists.
          names: The columns by role that the user named, or None; {} for those of the lists.
          features: The features that the user chose, or None.
          query_features: The features that are the same for all documents of a query.
        """
        given = lists.roles
        found = {**{role: getattr(given, role) for role in ("query", "weight", "propensity")}, "label": given.labels[0]}
        if not names:
            features = given.features  # a table may have the columns that the lists do not have
            names = found
        query_features = list(map(str, query_features))
        for name in query_features:
            _arguments.name("query_features", name, () if lists.is_dense else given.features)
            check_constant(lists, lists.source[name], "`query_features`", f"{name!r}, which varies in the query of")
        roles: dict[str, Any] = {role: found[role] for role, name in names.items() if name is not None}
        if len(given.labels) > 1:
            weights = given.label_weights or [1.0] * len(given.labels)
            roles["label"] = dict(zip(given.labels, weights, strict=True))
        return cls(roles, None if features is None else list(map(str, features)), query_features)

    @property
    def label_weights(self) -> dict[str, float] | None:
        """The weights of the labels of several objectives, by name; None for one label."""
        label = self.roles.get("label")
        return label if isinstance(label, dict) else None

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
          X: `Lists`, a table or a matrix.
          given: The arrays `y`, `qid` and `group`, or None.
          layer: The features.
          needs: The roles that must be defined.
          of_lists: Whether the queries must be defined, since scores depend on the other documents of the query.
          propensity: Labels are clicks if the table has this column. None for labels.
        """
        names: dict[str, Any] = {}
        if not isinstance(X, data.Lists):
            check_index(X, {name: values for name, values in given.items() if values is not None})
            X = as_table(X)
            if layer.stacked:
                names["features"] = [DENSE] if DENSE in X.column_names else None
            elif not checks.is_dense(X):
                check_names(X.column_names, layer.columns)
                names["features"] = [column.name for column in layer.columns]
            for role, arguments in (("query", ("qid", "group")), ("label", ("y",))):
                name = self.roles.get(role) if role in needs or (of_lists and role == "query") else None
                if any(given.get(argument) is not None for argument in arguments):
                    name = name if isinstance(name, dict) else None  # the names of the columns of `y`
                elif name is not None and not set(_columns(name)) <= set(X.column_names):
                    name = None
                names[role] = name
            if str(propensity) in X.column_names:
                names["propensity"] = propensity
        elif not layer.stacked and not X.is_dense:
            check_names(X.source.column_names, layer.columns)
        lists = layer.raw_lists(read_documents(X, given, needs=needs, **names))
        if of_lists and names and all(value is None for value in (names["query"], given["qid"], given["group"])):
            reason = "the ranker scores documents by the others of their query, unless `list_context=False`"
            raise ValueError(f"`qid`, `group` or `query` must define the queries, got none of them: {reason}.")
        has_queries = not names or any(v is not None for v in (names["query"], given.get("qid"), given.get("group")))
        if has_queries and "label" not in needs:  # scikit-learn shuffles columns for measures
            for name in self.query_features:
                check_constant(lists, lists.source[name], f"column {name!r}", "different values in the query of")
        expected = len(self.label_weights or [None])
        if "label" in needs and len(lists.roles.labels) != expected:
            raise ValueError(f"`X` must have {expected} labels as in `fit`, got {list(lists.roles.labels)}.")
        return lists

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

    def to_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments, as JSON values."""
        return {"roles": dict(self.roles), "features": self.features, "query_features": self.query_features}


def _columns(role: str | Mapping[str, float]) -> list[str]:
    """Returns the columns of a role."""
    return [role] if isinstance(role, str) else list(role)
