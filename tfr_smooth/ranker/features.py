"""The features of a training: what `Ranker` learns of the columns before the networks, and what it prints of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfr_smooth.columns import TableFeatures
from tfr_smooth.columns.kinds import listed
from tfr_smooth.columns.learning import learn_features
from tfr_smooth.columns.matches import text_pairs
from tfr_smooth.data import Lists
from tfr_smooth.ranker.plan import TrainingPlan
from tfr_smooth.ranker.screening import columns_without_use


def learn(
    params: Mapping[str, Any], plan: TrainingPlan, documents: Lists, queries: np.ndarray
) -> tuple[TableFeatures, Lists, Lists]:
    """Learns the features of a training.

    Args:
      params: The arguments of the ranker.
      plan: The plan of the training.
      documents: All lists.
      queries: The indices of the training queries.

    Returns:
      The layer of the features, and all lists with their raw and with their prepared values.
    """
    options = {name: params[name] for name in ("max_categories", "kinds", "list_context")}
    matches = params["matches"]
    if matches is None:
        pairs = text_pairs(documents.take(queries), params["kinds"] or {})
        matches = [pair for pair in pairs if pair[0] in documents.roles.features]
        if params["verbose"]:
            _print_uncompared([pair for pair in pairs if pair not in matches])
    options.update(matches=matches, interactions=params["interactions"] or ())
    layer, raw = learn_features(documents, queries, **options)
    prepared = layer.transform(raw)
    training = (lists.take(queries) for lists in (raw, prepared))
    if useless := columns_without_use(params, plan, layer, *training):
        layer = layer.without_values(useless)
        prepared = layer.transform(raw)
    return layer, raw, prepared


def print_features(layer: TableFeatures) -> None:
    """Prints the kinds of the columns and what else was learned."""
    if not layer.stacked:
        print(f"Columns: {layer.kinds}", flush=True)
    if layer.matches:
        print(f"Matches: {'; '.join(layer.matches)}", flush=True)
    if layer.list_ranks:
        print(f"List ranks: {listed(layer.list_ranks)}", flush=True)


def _print_uncompared(pairs: Sequence[tuple[str, str]]) -> None:
    """Prints that texts are not compared with the queries, since the queries are no feature."""
    if pairs:
        texts = ", ".join(repr(document) for _, document in pairs)
        query = pairs[0][0]
        print(f"The queries have words of {texts}: `features` with {query!r} compares them.", flush=True)
