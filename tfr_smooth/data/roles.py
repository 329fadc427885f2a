"""The roles of the columns of `Lists`: queries, labels, weights, features and others."""

from __future__ import annotations

import dataclasses
import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from typing_extensions import Required

from tfr_smooth import _arguments

DENSE = "features"  # the name of a column of type fixed_size_list<float32> with all features
STATISTICS = "__statistics__"  # the name of a feature column with the statistics of ids of the training documents
ALL_NUMBERS = "__numbers__"  # the name of all columns of numbers as one tensor
_RESERVED = {
    "": "which is empty",
    "mask": "which batches have for the mask of the documents",
    STATISTICS: "which batches have for the statistics of ids",
    ALL_NUMBERS: "which exports have for all numbers",
}
_POSITION = "which batches have for the positions"
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # how Arrow and Parquet store the row labels of pandas


class RoleNames(TypedDict, total=False):
    """The columns by role, other than the query, as `from_table` takes them."""

    label: Required[str | Sequence[str] | Mapping[str, float] | None]
    features: Sequence[str] | None
    weight: str | None
    propensity: str | None
    position: str | None
    document_id: str | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Roles:
    """The names of the columns of `Lists` by their role.

    Args:
      query: The query ids.
      labels: The labels: one, several for several objectives, or none for unlabeled documents.
      label_weights: The weights of several labels, if given.
      weight: Weights of the documents.
      propensity: Propensities of the clicks that the labels are.
      position: Positions at which the documents were shown.
      document_id: Document ids. None uses the numbers of the rows.
      features: The features.

    Example:
      >>> from tfr_smooth import data
      >>> lists = data.from_table({"q": [7, 8], "click": [1, 0], "x": [0.1, 0.2]}, query="q", label="click")
      >>> lists.roles.query, lists.roles.labels, lists.roles.features
      ('q', ('click',), ('x',))
    """

    query: str
    labels: tuple[str, ...] = ()
    label_weights: tuple[float, ...] | None = None
    weight: str | None = None
    propensity: str | None = None
    position: str | None = None
    document_id: str | None = None
    features: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        *,
        query: str,
        label: Any = ...,
        features: Sequence[str] | None = None,
        **others: str | None,
    ) -> Roles:
        """Returns the roles of columns that exist.

        Names that are not text, as pandas has them, are taken as text.

        Args:
          names: All columns.
          query: The column of query ids.
          label: The columns of labels, possibly with weights.
          features: The feature columns. None takes all columns without another role.
          **others: The columns of other roles.

        Returns:
          The roles.

        Raises:
          ValueError: If a column does not exist or a weight is invalid.
        """
        if label is ...:
            raise ValueError("`label` must be a column, or None for unlabeled documents, got nothing.")
        known = set(names)

        def checked(role: str, name: Any) -> str:
            name = str(name)
            return name if name in known else _arguments.choice(role, name, names)

        is_one = isinstance(label, str) or not isinstance(label, Iterable) or str(label) in known
        labels = () if label is None else (label,) if is_one else tuple(label)
        weights = None
        if isinstance(label, Mapping):
            weights = tuple(_arguments.real(f"label[{name!r}]", value, least=0.0) for name, value in label.items())
            _arguments.weights("label", list(weights))
        query, labels = checked("query", query), tuple(checked("label", name) for name in labels)
        single = {role: None if name is None else checked(role, name) for role, name in others.items()}
        if features is not None:
            if isinstance(features, str) or len(set(features)) < len(features):
                raise ValueError(f"`features` must be unique names of columns, got {reprlib.repr(features)}.")
            chosen = tuple(checked("features", name) for name in features)
        else:
            used = {query, *labels, *single.values()}
            chosen = tuple(name for name in names if name not in used and not _PANDAS_INDEX.fullmatch(name))
        if not chosen:
            raise ValueError("`features` must name at least one column, got none.")
        reserved = _RESERVED if single.get("position") is None else {**_RESERVED, "position": _POSITION}
        for name in set(chosen) & {*reserved}:
            raise ValueError(f"`features` must not have the name {name!r}, {reserved[name]}; rename the column.")
        return cls(query=query, labels=labels, label_weights=weights, features=chosen, **single)

    def stacked(self) -> Roles:
        """Returns the roles with the features in one column."""
        if DENSE in dataclasses.replace(self, features=()).columns:
            raise ValueError(f"The column {DENSE!r} must be a feature, got one with another role.")
        return dataclasses.replace(self, features=(DENSE,))

    @property
    def columns(self) -> list[str]:
        """All columns, each once."""
        single = (self.query, *self.labels, self.weight, self.propensity, self.position, self.document_id)
        return list(dict.fromkeys([name for name in single if name is not None] + list(self.features)))
