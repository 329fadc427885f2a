"""Readable names of measures and rankers, for tables and plots."""

from __future__ import annotations

import re

from tfr_smooth import registry
from tfr_smooth.losses import TABLE
from tfr_smooth.study.selection import split_label

_MEASURES = {"ndcg": "NDCG", "map": "MAP", "recip_rank": "MRR"}
_RANKERS = {
    "lambdamart": "LambdaMART",
    "ridge": "Ridge regression",
    "single_feature": "Best single feature",
    "random": "Random order",
    "lambda_loss": "LambdaLoss",
    "bm25": "BM25",
    "zero_shot": "Pretrained model",
}


def measure_title(measure: str) -> str:
    """Returns the name of a trec_eval measure as papers write it.

    Example:
      >>> measure_title("ndcg_cut_10"), measure_title("P_5"), measure_title("map")
      ('NDCG@10', 'P@5', 'MAP')
    """
    name, _, cutoff = measure.replace("_cut", "").rpartition("_")
    return f"{_MEASURES.get(name, name)}@{cutoff}" if cutoff.isdigit() else _MEASURES.get(measure, measure)


def ranker_title(label: str) -> str:
    """Returns the name of a ranker as papers write it, followed by its settings.

    Example:
      >>> ranker_title("smoothi_ndcg:alpha=1.0:recipe=default"), ranker_title("approx_ndcg + bm25")
      ('SmoothI-NDCG (alpha=1.0, recipe=default)', 'ApproxNDCG + BM25')
    """
    name, brace, ensemble = label.partition(" (")
    name, *others = name.split(" + ")
    name, *settings = split_label(name)
    title = _RANKERS.get(name, name)
    if name in registry.PAIRS:
        pair = registry.PAIRS[name]
        prefix, suffix = pair.ranking.about.prefix, pair.measure.about.suffix
        # As the papers: ApproxNDCG, SoftNDCG, but SmoothI-NDCG and SoftSort-NDCG.
        title = f"{prefix}-{suffix}" if re.search("[A-Z]", prefix[1:]) else prefix + suffix
    elif name in TABLE and name not in _RANKERS:
        title = TABLE[name].loss.__name__.removesuffix("Loss")
    title += f" ({', '.join(settings)})" if settings else ""
    return " + ".join([title, *(_RANKERS.get(each, each) for each in others)]) + brace + ensemble
