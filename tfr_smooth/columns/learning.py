"""Learning the columns of a table: their kinds, what they are compared with, their statistics and their ranks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.columns.features import TableFeatures, matrices
from tfr_smooth.columns.kinds import has_words, learn_column
from tfr_smooth.columns.list_context import learn_ranks
from tfr_smooth.columns.matches import SOME_WORDS, Match
from tfr_smooth.columns.number import columns_of_matrix
from tfr_smooth.columns.statistics import checked_interactions, learn_statistics
from tfr_smooth.data.column_values import dense_column
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.roles import STATISTICS


def learn_features(
    lists: Lists,
    queries: np.ndarray | None = None,
    *,
    max_categories: int = 100,
    kinds: Mapping[str, Any] | None = None,
    matches: Sequence[Sequence[str]] = (),
    interactions: Sequence[Sequence[str]] = (),
    list_context: bool = False,
) -> tuple[TableFeatures, Lists]:
    """Learns the feature columns of lists, in one pass over the columns, and the statistics of ids.

    Args:
      lists: The lists.
      queries: The indices of the training queries. None for all.
      max_categories: The most values of a category of unknown kind, >= 1.
      kinds: The kinds of columns that are not to be inferred, by name, or layers that encode texts.
      matches: Pairs of names of columns to compare.
      list_context: Whether columns of numbers and dates have ranks within the list, as `list_context.learn_ranks`.
      interactions: Pairs of names of columns whose values have a joint statistic.

    Returns:
      The layer, and all lists with the raw values of the columns. Those of training have their statistics without
      their own labels, in a further column.

    Raises:
      ValueError: If an argument or a column is invalid. The message names the column.
    """
    training = lists if queries is None else lists.take(queries)
    rows = np.sort(training.rows)
    if lists.is_dense:
        for name, given in (("kinds", kinds), ("interactions", interactions)):
            if given:
                raise ValueError(f"`{name}` must be None for a matrix of numbers, got {given!r}.")
        layer = TableFeatures(columns_of_matrix(matrices(lists, rows)), matches=matches, stacked=True)
    else:
        table = lists.source.select(lists.roles.features)
        options: dict[str, Any] = {"max_categories": max_categories, "kinds": kinds, "matches": matches}
        chosen = None if len(rows) == len(table) else rows
        layer, raw = learn_table(table, chosen, release=lists.release, **options)
        roles, changed = lists.roles, {name: raw[name] for name in raw if raw[name] is not table[name]}
        pairs = checked_interactions(interactions, layer.columns)
        statistics, matrix = learn_statistics(layer.columns, raw, training, pairs)
        if statistics:
            layer = layer.replace(statistics=statistics)
            changed[STATISTICS] = dense_column(matrix)
            roles = dataclasses.replace(roles, features=(*roles.features, STATISTICS))
        lists = lists.replace(roles, changed) if changed else lists
    if list_context:
        training = lists if queries is None else lists.take(queries)
        if names := learn_ranks(training, layer.columns, layer.raw):
            layer = layer.replace(list_ranks=names)
    return layer, lists


def learn_table(
    table: pa.Table,
    rows: np.ndarray | None = None,
    *,
    max_categories: int = 100,
    kinds: Mapping[str, Any] | None = None,
    matches: Sequence[Sequence[str]] = (),
    release: Callable[[], None] = lambda: None,
) -> tuple[TableFeatures, dict[str, Any]]:
    """Learns the columns of an Arrow table, as `data.from_table` checks it.

    Args:
      table: The table.
      rows: The training rows. None for all.
      max_categories: As for `learn_features`.
      kinds: As for `learn_features`.
      matches: As for `learn_features`.
      release: Called after each column; all of them together may be larger than memory.

    Returns:
      The layer, and the raw values of all rows by column.

    Raises:
      ValueError: As for `learn_features`.
    """
    most, encoders = _arguments.integer("max_categories", max_categories, least=1), {}
    matched: dict[str, str] = {}
    given = {_arguments.name("kinds", str(name), table.column_names): kind for name, kind in (kinds or {}).items()}
    for name, kind in given.items():
        if isinstance(kind, tf.keras.layers.Layer):
            encoders[name], given[name] = kind, f"encoded:{kind.width}"
    for pair in matches:
        texts = [name for name in pair if name in table.column_names and given.get(name, "text") == "text"]
        if len(texts) == 2 and any(name in given or has_words(table[name], SOME_WORDS) for name in texts):
            matched.update(dict.fromkeys(texts, "text"))  # also queries of few words or few values
    columns, raw, summaries = [], {}, []
    for name, values in zip(table.column_names, table.columns, strict=True):
        kind, reason = given.get(name, matched.get(name)), "`kinds`" if name in given else "`matches`"
        column, raw[name], summary = learn_column(
            name, values, rows=rows, max_categories=most, kind=kind, reason=reason
        )
        columns.append(column)
        summaries.append(summary)
        release()
    learned = []
    for pair in matches:
        match = Match.of(pair, columns)
        learned.append(match.learn([raw[column.name] for column in match.pair], rows).to_config())
        release()
    return TableFeatures(columns, matches=learned, encoders=encoders, summaries=summaries), raw
