"""Readable names of measures and rankers, for tables and plots."""

from __future__ import annotations

from tfr_smooth import losses

_MEASURES = {"ndcg": "NDCG", "map": "MAP", "recip_rank": "MRR"}
# Of losses of a relaxation and a measure, as the papers write them: ApproxNDCG, SoftNDCG, but SmoothI-NDCG.
_RELAXATIONS = {
    "smoothi": "SmoothI-",
    "approx": "Approx",
    "soft": "Soft",
    "neuralsort": "NeuralSort-",
    "softsort": "SoftSort-",
    "fastsort": "FastSort-",
    "sinkhorn": "Sinkhorn",
}
_RANKERS = {
    "lambdamart": "LambdaMART",
    "ridge": "Ridge regression",
    "single_feature": "Best single feature",
    "random": "Random order",
    "lambda_loss": "LambdaLoss",
    "bm25": "BM25",
    "zero_shot": "Pretrained model",
    "adr_mse": "ADR-MSE",
}
_CAPITALS = ("ap", "err", "map", "mle", "mrr", "mse", "ndcg")


def measure_title(measure: str) -> str:
    """Returns the name of a trec_eval measure as papers write it, such as NDCG@10."""
    name, _, cutoff = measure.replace("_cut", "").rpartition("_")
    return f"{_MEASURES.get(name, name)}@{cutoff}" if cutoff.isdigit() else _MEASURES.get(measure, measure)


def ranker_title(label: str) -> str:
    """Returns the label of a ranker with the names in it as papers write them, such as "ListNet (alpha=1) + BM25"."""
    pieces = (piece.partition(" (") for piece in label.split(" + "))
    return " + ".join(_title(name) + brace + settings for name, brace, settings in pieces)


def _title(name: str) -> str:
    first, *words = name.split("_")
    if name in _RANKERS:
        return _RANKERS[name]
    if name not in losses.NAMES:
        return name
    start = _RELAXATIONS.get(first, first.capitalize())
    return start + "".join(word.upper() if word in _CAPITALS else word.capitalize() for word in words)
