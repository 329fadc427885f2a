"""Measures how the time of each loss grows with the list length and with the number of lists in a batch.

    python benchmarks/growth.py --threads=1 --runs=10 --output=growth.json --plot=growth.png
    python benchmarks/growth.py --report=growth.json --plot=growth.png  # draws again without measuring

Value and gradient are computed in a `tf.function`, on random labels and scores. Sizes increase until one step takes
more than --most_seconds. Then all sizes of a loss run in turn, and the median counts.

The exponent p of time ~ size^p is the slope of a least-squares line through the logarithms, over the larger half of the
sizes. At small sizes the fixed overhead of a call dominates and would make the slope too small. The fit requires at
least two sizes. An exponent is valid only for the sizes of its fit: with a cutoff, or a maximum number of ranks or
steps, the power changes with the size. If the largest size takes hardly longer than the smallest, as for ListNet, the
fixed overhead dominates even in the larger half.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import json
import pathlib
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import harness
import numpy as np
import tensorflow as tf
from absl import app, flags

from tfr_smooth import losses

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Time by loss, as in the table of losses (docs/losses/index.md).
STATED = {
    "smoothi_ndcg": "min(K, 80) N",
    "smoothi_ndcg@10": "min(K, 80) N, K = 10",
    "smoothi_map": "min(K, 200) N",
    "soft_ndcg": "20 N^2; with a cutoff K N^2",
    "approx_ndcg": "N^2",
    "neuralsort_ndcg": "N log N + K N",
    "softsort_ndcg": "N log N + K N",
    "fastsort_ndcg": "N log N + T N",
    "sinkhorn_ndcg": "T N^2",
    "lapsum_ndcg": "N log N",
    "sortingnetwork_ndcg": "N log(N)^2",
    "list_ap": "M N with M bins",
    "list_net": "N",
    "list_mle": "N log N",
    "lambda_loss": "N^2",
    "rank_net": "N^2",
}
_NAMES = flags.DEFINE_list("names", list(STATED), "Losses, by the names that `losses.get` takes; @K for a cutoff.")
_LENGTHS = flags.DEFINE_list(
    "lengths", [str(2**power) for power in range(5, 12)], "List lengths, for the growth with N."
)
_LISTS = flags.DEFINE_integer("lists", 16, "Lists per batch, for the growth with N.", lower_bound=1)
_BATCHES = flags.DEFINE_list("batches", [str(2**power) for power in range(2, 10)], "Batch sizes, for the other growth.")
_DOCUMENTS = flags.DEFINE_integer("documents", 128, "Documents per list, for the growth with lists.", lower_bound=1)
_MOST_SECONDS = flags.DEFINE_float("most_seconds", 2.0, "Stop after a step that takes longer.", lower_bound=0.0)
_PLOT = flags.DEFINE_string("plot", None, "PNG file to write the plot to, and NAME_dark.png; requires matplotlib.")
_REPORT = flags.DEFINE_string("report", None, "Report of an earlier run (its --output), to draw without measuring.")

# What grows, and its label on the plot.
LOOKS = [
    {"linestyle": line, "color": color, "marker": marker}
    for line in ("-", "--", ":")
    for color, marker in zip(("C0", "C1", "C2", "C3", "C4", "C5"), "osD^vP", strict=True)
]
GROWTHS = {"documents": "documents per list, N", "lists": "lists per batch"}


def loss_of(name: str) -> losses.RankingLoss:
    name, _, topn = name.partition("@")
    return losses.get(name, reduction="sum", **({"topn": int(topn)} if topn else {}))


def shapes(growth: str) -> dict[int, tuple[int, int]]:
    """Numbers of lists and documents by size, in ascending order."""
    if growth == "documents":
        return {size: (_LISTS.value, size) for size in sorted(map(int, _LENGTHS.value))}
    return {size: (size, _DOCUMENTS.value) for size in sorted(map(int, _BATCHES.value))}


def measure(name: str, growth: str) -> dict[str, Any]:
    sides: dict[str, harness.Side] = {}
    for size, shape in shapes(growth).items():
        side = sides[str(size)] = harness.TensorFlowSide(loss_of(name), *harness.a_batch(*shape))
        side()  # traces and compiles
        start = time.perf_counter()
        side()
        if time.perf_counter() - start > _MOST_SECONDS.value:
            break
    result = harness.race(sides, loss=name, growth=growth)
    return {**result, "exponent": exponent({int(size): ms for size, ms in result["milliseconds"].items()})}


def exponent(milliseconds: dict[int, float]) -> float | None:
    """The slope of log time over log size for the larger half of the sizes; None for fewer than two sizes."""
    sizes = sorted(milliseconds)[len(milliseconds) // 2 :]
    if len(sizes) < 2:
        return None
    return float(np.polyfit(np.log(sizes), np.log([milliseconds[size] for size in sizes]), 1)[0])


def power(exponent: float | None) -> str:
    return "" if exponent is None else f"{exponent:.2f}"


def exponents(results: Sequence[dict[str, Any]]) -> dict[str, dict[str, float | None]]:
    """Exponents by loss, then by what grows."""
    return {
        name: {result["growth"]: result["exponent"] for result in of_loss}
        for name, of_loss in itertools.groupby(results, key=lambda result: result["loss"])
    }


def table(results: Sequence[dict[str, Any]]) -> str:
    rows = [
        [name, STATED.get(name, ""), *(power(found.get(growth)) for growth in GROWTHS)]
        for name, found in exponents(results).items()
    ]
    return harness.markdown(["loss", "stated time", "exponent of N", "exponent of lists"], rows, left=2)


def draw(results: Sequence[dict[str, Any]], lists: int, documents: int) -> Figure:
    """Draws the times by list length above the times by batch size."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    names = list(exponents(results))
    titles = (f"Batches of {lists} lists", f"Lists of {documents} documents")
    figure = Figure(figsize=(5.4, 8.0), layout="constrained")
    for axes, (growth, label), title in zip(figure.subplots(2, 1, sharey=True), GROWTHS.items(), titles, strict=True):
        found = {result["loss"]: result["milliseconds"] for result in results if result["growth"] == growth}
        for name, look in zip(names, itertools.cycle(LOOKS), strict=False):
            times = {int(size): milliseconds for size, milliseconds in found.get(name, {}).items()}
            axes.plot(list(times), list(times.values()), **look, markersize=4.5, linewidth=1.5, label=name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.xaxis.set_major_locator(FixedLocator(sorted({int(size) for times in found.values() for size in times})))
        axes.xaxis.set_minor_locator(NullLocator())
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.set_xlabel(label)
        axes.set_ylabel("value and gradient, milliseconds")
        axes.set_title(title)
    handles = figure.axes[0].get_legend_handles_labels()[0]
    figure.legend(handles, names, loc="outside lower center", ncols=2, fontsize=9.5)
    return figure


def plot(results: Sequence[dict[str, Any]], lists: int, documents: int) -> None:
    """Writes the plot, if --plot is given."""
    if _PLOT.value:
        path = pathlib.Path(_PLOT.value).absolute()
        path.parent.mkdir(parents=True, exist_ok=True)
        sys.path.append(str(pathlib.Path(__file__).absolute().parents[1] / "tools"))
        sys.path.append(str(pathlib.Path(__file__).absolute().parents[1] / "tools"))
        from figures import save_both

        save_both(path, functools.partial(draw, results, lists, documents))


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    # Fail before the first measurement if a name is wrong or matplotlib is missing.
    for name in _NAMES.value:
        loss_of(name)
    if _PLOT.value:
        importlib.import_module("matplotlib")
    if _REPORT.value:
        report = json.loads(pathlib.Path(_REPORT.value).read_text(encoding="utf-8"))
        print(table(report["results"]))
        plot(report["results"], report["lists"], report["documents"])
        return
    harness.use_threads()
    tf.get_logger().setLevel("ERROR")  # Hides warnings about retracing: each size has its own function.
    results = [measure(name, growth) for name in _NAMES.value for growth in GROWTHS]
    print("\n" + table(results))
    harness.write(
        results, lists=_LISTS.value, documents=_DOCUMENTS.value, stated={n: STATED.get(n, "") for n in _NAMES.value}
    )
    plot(results, _LISTS.value, _DOCUMENTS.value)


if __name__ == "__main__":
    app.run(main)
