"""How documents enter a `Ranker`: as `Lists`, with the columns that are features and their preparation."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from tfr_smooth import _arguments, data, models
from tfr_smooth.columns import TableFeatures, infer_columns
from tfr_smooth.columns.columns import CODED, check_differences, columns_of_parts, conformed, listed, parts_of
from tfr_smooth.data import column_values
from tfr_smooth.data.batches import prefetched
from tfr_smooth.data.reading import arrays, checks
from tfr_smooth.data.roles import DENSE
from tfr_smooth.losses.pointwise import PointwiseLoss

# Prepared features of at most this size are kept in memory; larger ones are prepared for each batch.
_MOST_BYTES = 1 << 28


def as_table(X: Any) -> pa.Table:
    """Returns a table as Arrow columns, and a matrix of numbers, NaN if missing, as the column `DENSE`."""
    return checks.as_arrow(X) if checks.is_table(X) else arrays.dense_table("X", X, missing=True)


def lists_of(
    X: Any,
    given: Mapping[str, Any],
    *,
    needs: Sequence[str] = ("label", "query"),
    **names: Any,
) -> data.Lists:
    """Returns the lists of what `Ranker` takes.

    Args:
      X: `Lists`, a table or a matrix.
      given: The arrays `y`, `qid`, `group` and `sample_weight`, or None.
      needs: The roles that must be defined. Without queries, all rows are one list.
      **names: Columns of the table by role, or None; the label may also be the names of the columns of `y` with their
        weights.
    """
    names = {role: name for role, name in names.items() if name is not None}
    both = {**{name: values for name, values in given.items() if values is not None}, **names}
    if isinstance(X, data.Lists):
        if both:
            raise ValueError(f"`{next(iter(both))}` must not be given with `Lists`, which have roles.")
        lists = without(X, "position")
    else:
        for group in (("qid", "group", "query"), ("y", "label"), ("sample_weight", "weight")):
            known = [name for name in group if name in both]
            if len(known) > 1 and not isinstance(both[known[-1]], Mapping):
                raise ValueError(f"Only one of {_quoted(group)} must be given, got {_quoted(known)}.")
        if np.ndim(both.get("y", 0)) > 1 and not isinstance(names.get("label"), Mapping):
            raise ValueError(f"`y` must have one value per row, got shape {np.shape(given['y'])}.")
        table = as_table(X)
        by_role = {"label": ("y", given.get("y")), "weight": ("sample_weight", given.get("sample_weight"))}
        if both.keys() & {"qid", "group"}:
            by_role["query"] = arrays.queries(given.get("qid"), given.get("group"), len(table))
        elif "query" not in names:
            if "query" in needs:
                raise ValueError("`qid`, `group` or `query` must define the queries, got none of them.")
            by_role["query"] = ("qid", np.zeros(len(table), np.int32))
        lists = arrays.lists_of(table, by_role, argument="X", **names)
    if "label" in needs and not lists.roles.labels:
        raise ValueError("`y` or `label` must define the labels, got neither.")
    if needs and not lists.documents:
        raise ValueError("`X` must have at least one row, got none.")
    return lists


def clicked(lists: data.Lists) -> data.Lists:
    """Returns the queries with a click if the labels are clicks with propensities, else all queries."""
    roles = lists.roles
    if roles.propensity is None:
        return lists
    if len(roles.labels) > 1:
        raise ValueError(f"`label` must be one column of clicks with `propensity`, got {list(roles.labels)}.")
    has_click = np.logical_or.reduceat(lists.values(roles.labels[0]) > 0.0, lists.starts[:-1])
    if not has_click.any():
        raise ValueError("`label` must have a click with `propensity`, got none.")
    return lists.take(has_click)


def check_training(lists: data.Lists, X: Any, loss: tf.keras.losses.Loss) -> None:
    """Checks that a loss can learn from the labels, and that the numbers of a matrix differ as float32."""
    if lists.lengths.max() == 1 and not isinstance(loss, PointwiseLoss):
        warnings.warn("`X` should have queries of several documents to rank, got one document in each.", stacklevel=3)
    limit = getattr(loss, "highest_label", np.inf)
    for name in lists.roles.labels:
        if (highest := lists.values(name).max()) > limit:
            raise ValueError(
                f"`label` must be at most {limit:g} for the gain 2^y - 1 of the loss {loss.name!r}, got {highest:g} in "
                f"the column {name!r}. Map the labels to grades, or pass gain='linear' to the losses of NDCG."
            )
    if lists.is_dense and not isinstance(X, data.Lists):  # Of tables, `infer_columns` checks this.
        for place, numbers in enumerate(np.asarray(X).T):
            check_differences(f"column {place} of `X`", numbers)


def without(lists: data.Lists, *roles: str) -> data.Lists:
    """Returns the lists without the columns of some roles."""
    nothing: dict[str, Any] = {role: () if role == "labels" else None for role in roles}
    return lists.replace(dataclasses.replace(lists.roles, **nothing))


def with_one_label(lists: data.Lists) -> data.Lists:
    """Returns the lists for statistics: with one label that estimates the relevance, and without weights.

    It is the weighted sum of several labels, each in the unit of the first one; and clicks are divided by their
    propensities.
    """
    roles = lists.roles
    values = [lists.column(name)(np.arange(len(lists.source))) for name in roles.labels]
    label = values[0]
    if roles.propensity is not None:
        label = label / lists.column(roles.propensity)(np.arange(len(lists.source)))
    if len(values) > 1:
        deviations = np.array([lists.values(name).std(dtype=np.float64) for name in roles.labels])
        units = np.divide(deviations[0] or 1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0.0)
        weights = roles.label_weights or np.ones(len(values))
        label = np.stack(values, axis=1) @ (units * weights).astype(np.float32)
    one = dataclasses.replace(roles, labels=roles.labels[:1], label_weights=None, weight=None, propensity=None)
    return lists.replace(one, {roles.labels[0]: pa.array(label)})


def ranked_rows(X: Any, lists: data.Lists, scores: np.ndarray, names: tuple[str, str]) -> Any:
    """Returns the rows of a table, ranked within each query, as a pandas DataFrame.

    Args:
      X: The table, or its lists.
      lists: The lists of the table.
      scores: [documents], in the order of the lists.
      names: The names of the columns of scores and ranks.
    """
    queries = lists.query_of_document
    order = np.lexsort((-scores, queries))
    if isinstance(X, data.Lists):
        ranked = lists.to_pandas().iloc[order].copy()
    else:
        # The libraries know types that Arrow cannot convert, such as lists of views.
        frame = X if hasattr(X, "iloc") else X.to_pandas() if hasattr(X, "to_pandas") else as_table(X).to_pandas()
        ranked = frame.iloc[lists.rows[order]].copy()
    ranked[names[0]], ranked[names[1]] = scores[order], np.arange(len(order)) - lists.starts[queries[order]] + 1
    return ranked


@dataclasses.dataclass(frozen=True)
class TableInputs:
    """What `fit` learned about the columns of its table.

    Args:
      layer: The layer that prepares the features.
      roles: By role ("label", "query", "weight", ...), the columns that are not features; for labels of several
        objectives, their weights by name.
      features: The features that the user chose; None for all columns without a role.
      query_features: The features that are the same for all documents of a query.
    """

    layer: TableFeatures
    roles: Mapping[str, Any]
    features: Sequence[str] | None
    query_features: Sequence[str]

    @property
    def label_weights(self) -> dict[str, float] | None:
        """The weights of the labels of several objectives, by name; None for one label."""
        label = self.roles.get("label")
        return label if isinstance(label, dict) else None

    @property
    def kinds(self) -> str:
        """The names of the columns of each kind, as text."""
        by_kind: dict[str, list[str]] = {}
        for column in self.layer.columns:
            by_kind.setdefault(column.kind, []).append(column.name)
        return "; ".join(f"{kind} {listed(names)}" for kind, names in by_kind.items())

    @classmethod
    def learn(
        cls,
        lists: data.Lists,
        features: Sequence[str] | None,
        query_features: Sequence[str],
        max_categories: int,
        kinds: Mapping[str, Any] | None,
        matches: Sequence[Sequence[str]],
        **names: Any,
    ) -> TableInputs:
        """Learns the columns of training lists.

        Args:
          lists: The lists.
          features: The features that the user chose, or None.
          query_features: The features that are the same for all documents of a query.
          max_categories: The number of categories per column.
          kinds: The kinds of columns that are not to be inferred, by name, or None.
          matches: Pairs of columns to compare.
          **names: As for `lists_of`, or none for those of the lists.
        """
        given = lists.roles
        if not names:
            names = {role: getattr(given, role) for role in ("query", "weight", "propensity")}
            names["label"] = given.labels[0]
            features = given.features  # a table may have the columns that the lists do not have
        rows, encoders = np.sort(lists.rows), {}
        if lists.is_dense:
            columns = columns_of_parts(_matrices(lists, rows))
        else:
            chosen, columns, kinds = None if len(rows) == len(lists.source) else rows, [], dict(kinds or {})
            for name, kind in kinds.items():
                _arguments.name("columns", name, given.features)
                if isinstance(kind, tf.keras.layers.Layer):
                    encoders[name], kinds[name] = kind, f"encoded:{kind.width}"
            for name in given.features:  # one at a time: all of them may be larger than memory
                kind = {name: kinds[name]} if name in kinds else None
                table = lists.source.select([name])
                columns += infer_columns(table, max_categories=max_categories, rows=chosen, kinds=kind)
                lists.release()
        for name in query_features:
            _arguments.name("query_features", name, [column.name for column in columns])
            check_constant(lists, name, "`query_features`", f"{name!r}, which varies in the query of")
        roles = {role: name for role, name in names.items() if name is not None}
        if len(given.labels) > 1:
            weights = given.label_weights or [1.0] * len(given.labels)
            roles["label"] = dict(zip(given.labels, weights, strict=True))
        layer = TableFeatures(columns, matches=matches, encoders=encoders, stacked=lists.is_dense)
        lists.release()
        return cls(layer, roles, None if features is None else list(features), list(query_features))

    def lists(
        self, X: Any, given: Mapping[str, Any], *, needs: Sequence[str], propensity: str | None = None
    ) -> data.Lists:
        """Returns lists like those of `fit`; of a table, only the columns of the needed roles must be there.

        Labels are clicks if the table has the column of propensities that is given.
        """
        is_lists = isinstance(X, data.Lists)
        table = X.source if is_lists else as_table(X)
        features = self._features_of(table, X.roles.features if is_lists else table.column_names)
        if is_lists:
            lists = lists_of(X, given, needs=needs)
            lists = lists.replace(dataclasses.replace(lists.roles, features=tuple(features)), features)
        else:
            table = pa.table({**dict(zip(table.column_names, table.columns, strict=True)), **features})
            names: dict[str, Any] = {}
            for role, arguments in (("query", ("qid", "group")), ("label", ("y",))):
                name = self.roles.get(role) if role in needs else None
                if any(given.get(argument) is not None for argument in arguments):
                    name = name if isinstance(name, dict) else None  # the names of the columns of `y`
                elif name is not None and not set(_columns(name)) <= set(table.column_names):
                    name = None
                names[role] = name
            if propensity in table.column_names:
                names["propensity"] = propensity
            lists = lists_of(table, given, needs=needs, features=list(features), **names)
        expected = len(self.label_weights or [None])
        if "label" in needs and len(lists.roles.labels) != expected:
            raise ValueError(f"`X` must have {expected} labels as in `fit`, got {list(lists.roles.labels)}.")
        return lists

    def validation(self, validation: Any, propensity: str | None) -> data.Lists:
        """Returns the lists of the argument of `Ranker.fit`."""
        given = validation if isinstance(validation, tuple) else (validation,)
        if isinstance(validation, list) or not 1 <= len(given) <= 3:
            got = f"{type(validation).__name__} of {len(validation)}"
            raise ValueError(f"`validation` must be a table, `Lists`, or one tuple (X, y, qid), got a {got}.")
        X, y, qid = (*given, None, None)[:3]
        return self.lists(X, {"y": y, "qid": qid}, needs=["label", "query"], propensity=propensity)

    def _features_of(self, table: pa.Table, names: Sequence[str]) -> dict[str, Any]:
        """Returns the checked feature columns by name; the possible ones have the given names."""
        columns = self.layer.columns
        is_dense = list(names) == [DENSE] and pa.types.is_fixed_size_list(table[DENSE].type)
        if self.layer.stacked:
            if not is_dense:
                raise ValueError(f"`X` must be an array as in `fit`, got a table with the columns {listed(names)}.")
            if table[DENSE].type.list_size != len(columns):
                raise ValueError(f"`X` must have {len(columns)} features, got {table[DENSE].type.list_size}.")
            return {DENSE: table[DENSE]}
        if is_dense:
            raise ValueError(
                f"`X` must be a table as in `fit`, got an array with {table[DENSE].type.list_size} features."
            )
        found = conformed(table, columns)
        known = {column.name for column in columns}.union(*map(_columns, self.roles.values()))
        extra = [name for name in names if name not in known]
        if extra and self.features is None:
            raise ValueError(f"`X` must have only the columns of `fit`, got also {extra[0]!r}.")
        return dict(zip(found.column_names, found.columns, strict=True))

    def converted(self, lists: data.Lists) -> data.Lists:
        """Returns the lists of `fit` with the raw values of the layer: ids and sets as text."""
        coded = [column for column in self.layer.columns if column.kind in CODED]
        found = conformed(lists.source, coded)
        return lists.replace(lists.roles, dict(zip(found.column_names, found.columns, strict=True))) if coded else lists

    def check_features(self, lists: data.Lists) -> None:
        """Checks that other training lists have the features."""
        self._features_of(lists.source, lists.roles.features)

    def raw(self, lists: data.Lists, rows: np.ndarray) -> Any:
        """Returns the values of rows of the source, as the layer takes them."""
        if self.layer.stacked:
            return lists.column(DENSE)(rows)
        return {each.name: lists.column(each.name)(rows) for each in self.layer.columns}

    def prepared(self, lists: data.Lists) -> data.Lists:
        """Returns the lists with prepared features in memory; as they are if these are large, for `batches`."""
        count, width = len(lists.source), self.layer.num_features
        if self.layer.stacked and width == len(self.layer.columns):
            if not any(np.isnan(part).any() for part in _matrices(lists, np.arange(count))):
                return lists
        elif 4 * count * width > _MOST_BYTES:
            return lists
        matrix = np.empty([count, width], np.float32)
        for rows in parts_of(np.arange(count)):
            matrix[rows[0] : rows[-1] + 1] = self.layer(self.raw(lists, rows))
        return lists.replace(lists.roles.stacked(), {DENSE: column_values.dense_column(matrix)})

    def batches(self, lists: data.Lists, batch_size: int, **options: Any) -> tf.data.Dataset:
        """Returns batches of prepared features, from lists that `prepared` returned."""
        found = lists.batches(batch_size, **options)
        if lists.is_dense and lists.num_features == self.layer.num_features:
            return found

        @tf.autograph.experimental.do_not_convert
        def prepare(inputs: dict[str, tf.Tensor], *others: tf.Tensor) -> tuple[Any, ...]:
            mask = inputs["mask"]
            features = self.layer(inputs[DENSE] if self.layer.stacked else inputs)
            return {"features": tf.where(mask[:, :, tf.newaxis], features, 0.0), "mask": mask}, *others

        return prefetched(found.map(prepare, num_parallel_calls=2, deterministic=True))

    def scorer(self, scorer: models.Scorer) -> models.TableScorer:
        """Returns the model of the raw columns."""
        model = models.TableScorer(self.layer, scorer, query_columns=tuple(self.query_features))
        model.build()
        return model

    def state(self) -> dict[str, Any]:
        """Returns what `scorer` does not contain, as JSON values."""
        return {"roles": dict(self.roles), "features": self.features, "query_features": self.query_features}


def _matrices(lists: data.Lists, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yields the dense features of rows in parts; the whole matrix may be larger than memory."""
    for part in parts_of(rows):
        yield lists.column(DENSE)(part)
        lists.release()


def _columns(role: str | Mapping[str, float]) -> list[str]:
    """Returns the columns of a role."""
    return [role] if isinstance(role, str) else list(role)


def check_constant(lists: data.Lists, name: str, what: str, got: str) -> None:
    """Checks that a column has one value in each query; `what` and `got` are the parts of the message."""
    codes = lists.source[name].combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()[lists.rows]
    varies = np.flatnonzero(codes != np.repeat(codes[lists.starts[:-1]], lists.lengths))
    if len(varies):
        raise ValueError(f"{what} must be the same in all rows of a query, got {got} row {lists.rows[varies[0]]}.")


def _quoted(names: Sequence[str]) -> str:
    *first, last = [f"`{name}`" for name in names]
    return f"{', '.join(first)} and {last}"
