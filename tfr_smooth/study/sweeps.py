"""Sweeps: entries that show the effect of one setting on the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tfr_smooth import losses, models, registry
from tfr_smooth.study.rankers import RANKERS
from tfr_smooth.study.selection import Entry

_LOSS = "smoothi_ndcg"
_ALPHAS = losses.TABLE[_LOSS].searched["alpha"]
_DELTAS = (0.01, 0.05, 0.1, 0.2, 0.4)
_CUTOFFS = (1, 5, 10)
_DISCOUNTS = ("log2", "linear", {"alpha": -0.5}, {"alpha": 0.5}, {"alpha": 1.0})


def _alpha(entries: Sequence[Entry]) -> list[Entry]:
    return [Entry(_LOSS, {"alpha": alpha}) for alpha in _ALPHAS]


def _delta(entries: Sequence[Entry]) -> list[Entry]:
    """Figure 3 of the SmoothI paper."""
    return [Entry(_LOSS, {"alpha": alpha, "delta": delta}) for alpha in _ALPHAS for delta in _DELTAS]


def _depth(entries: Sequence[Entry]) -> list[Entry]:
    """The architectures of Bruch et al., SIGIR 2019, for each neural ranker among the entries."""
    neural = [entry for entry in entries if RANKERS[entry.ranker].is_neural and "hidden" not in entry.settings]
    return [
        Entry(entry.ranker, {**entry.settings, "hidden": hidden}) for entry in neural for hidden in models.ARCHITECTURES
    ]


def _metric(entries: Sequence[Entry]) -> list[Entry]:
    """Figure 4 of the SmoothI paper."""
    cut = [Entry(f"smoothi_{metric}", {"topn": topn}) for metric in ("precision", "ndcg") for topn in _CUTOFFS]
    return [*cut, Entry(_LOSS), Entry("smoothi_map")]


def _discount(entries: Sequence[Entry]) -> list[Entry]:
    """Section 4.7 of the SoftRank paper."""
    return [Entry("soft_ndcg", {"discount": discount}) for discount in _DISCOUNTS]


_SWEEPS: dict[str, Callable[[Sequence[Entry]], list[Entry]]] = {
    "alpha": _alpha,
    "delta": _delta,
    "depth": _depth,
    "metric": _metric,
    "discount": _discount,
}
SWEEPS = tuple(_SWEEPS)


def sweep(name: str, entries: Sequence[Entry] = ()) -> list[Entry]:
    """Returns the entries of a sweep, which varies one setting.

    Args:
      name: One of `SWEEPS`: "alpha" varies SmoothI's alpha; "delta" its alpha and delta; "depth" the hidden layers of
        each neural ranker among `entries`; "metric" the metric that SmoothI optimizes; "discount" the training discount
        of SoftRank.
      entries: The entries of the study; only "depth" uses them.

    Returns:
      The entries of the sweep.

    Raises:
      ValueError: If no sweep has this name.

    Example:
      >>> from tfr_smooth import study
      >>> [entry.label for entry in study.sweep("alpha")]
      ['smoothi_ndcg:alpha=0.1', 'smoothi_ndcg:alpha=1.0', 'smoothi_ndcg:alpha=10.0', 'smoothi_ndcg:alpha=100.0']
    """
    return _SWEEPS[registry.check_name("name", name, SWEEPS)](entries)
