"""Measures how the time of each loss grows with the list length and with the number of lists in a batch.

    python benchmarks/growth.py --threads=1 --runs=10 --output=growth.json --plot=growth.png

Value and gradient are computed in a `tf.function`, on random labels and scores. Sizes increase until one step takes
more than --most_seconds. Then all sizes of a loss run in turn, and the median counts.

The exponent p of time ~ size^p is the slope of a least-squares line through the logarithms, over the larger half of the
sizes. At small sizes the fixed overhead of a call dominates and would make the slope too small. The fit requires at
least two sizes. An exponent is valid only for the sizes of its fit: with a cutoff, or a maximum number of ranks or
steps, the power changes with the size. If the largest size takes hardly longer than the smallest, as for ListNet, the
fixed overhead dominates even in the larger half.
"""

from __future__ import annotations

import importlib
import io
import itertools
import math
import pathlib
import time
from collections.abc import Sequence
from typing import Any

import harness
import numpy as np
import tensorflow as tf
from absl import app, flags

from tfr_smooth import _files, losses

_NAMES = flags.DEFINE_list(
    "names",
    [
        *("smoothi_ndcg", "smoothi_ndcg@10", "smoothi_map", "soft_ndcg", "approx_ndcg", "neuralsort_ndcg"),
        *("softsort_ndcg", "fastsort_ndcg", "sinkhorn_ndcg", "list_ap", "list_net", "list_mle", "lambda_loss"),
        "rank_net",
    ],
    "Losses, by the names that `losses.get` takes; @K for a cutoff.",
)
_LENGTHS = flags.DEFINE_list(
    "lengths", [str(2**power) for power in range(5, 12)], "List lengths, for the growth with N."
)
_LISTS = flags.DEFINE_integer("lists", 16, "Lists per batch, for the growth with N.", lower_bound=1)
_BATCHES = flags.DEFINE_list("batches", [str(2**power) for power in range(2, 10)], "Batch sizes, for the other growth.")
_DOCUMENTS = flags.DEFINE_integer("documents", 128, "Documents per list, for the growth with lists.", lower_bound=1)
_MOST_SECONDS = flags.DEFINE_float("most_seconds", 2.0, "Stop after a step that takes longer.", lower_bound=0.0)
_PLOT = flags.DEFINE_string("plot", None, "PNG file to write the plot to; requires matplotlib.")

# What grows, and its label on the plot.
GROWTHS = {"documents": "documents in a list, N", "lists": "lists in a batch"}
# Okabe and Ito's colors, which color-blind people can distinguish.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#333333")


def loss_of(name: str) -> losses.RankingLoss:
    name, _, topn = name.partition("@")
    return losses.get(name, reduction="sum", **({"topn": int(topn)} if topn else {}))


def stated(name: str) -> str:
    """The cost that the table of losses states."""
    name, _, topn = name.partition("@")
    return losses.TABLE[name].time + (f", K = {topn}" if topn else "")


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
        [name, stated(name), *(power(found.get(growth)) for growth in GROWTHS)]
        for name, found in exponents(results).items()
    ]
    return harness.markdown(["loss", "stated time", "exponent of N", "exponent of lists"], rows, left=2)


def draw(results: Sequence[dict[str, Any]], path: str) -> None:
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter
    from PIL import Image

    names = list(exponents(results))
    titles = (f"batches of {_LISTS.value} lists", f"lists of {_DOCUMENTS.value} documents")
    look = {"font.size": 10.0, "axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left"}
    with rc_context({**look, "axes.titlesize": 11.0, "legend.frameon": False}):
        figure = Figure(figsize=(9.0, 6.4), layout="constrained")
        for axes, (growth, label), title in zip(
            figure.subplots(1, 2, sharey=True), GROWTHS.items(), titles, strict=True
        ):
            for place, name in enumerate(names):
                (found,) = [r["milliseconds"] for r in results if (r["loss"], r["growth"]) == (name, growth)] or [{}]
                second = place >= len(COLORS)  # A repeated color has dashed lines and hollow markers.
                axes.plot(
                    [int(size) for size in found],
                    list(found.values()),
                    color=COLORS[place % len(COLORS)],
                    linestyle="--" if second else "-",
                    marker="o^svDPX"[place % 7],
                    markersize=4.5,
                    markerfacecolor="white" if second else None,
                    linewidth=1.5,
                    label=name,
                )
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.xaxis.set_major_locator(FixedLocator(list(shapes(growth))))
            axes.xaxis.set_minor_locator(NullLocator())
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axes.grid(color="#E5E5E5")
            axes.set_axisbelow(True)
            axes.set_xlabel(label)
            axes.set_title(title)
        figure.axes[0].set_ylabel("milliseconds for value and gradient")
        handles = figure.axes[0].get_legend_handles_labels()[0]
        labels = [
            f"{name}  " + ", ".join(f"{power(found.get(growth)) or '?'}" for growth in GROWTHS)
            for name, found in exponents(results).items()
        ]
        note = "exponents at the larger half of the sizes: of N, of the number of lists"
        columns = min(3, math.ceil(len(names) / 2))
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=9.5, title=note)
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=130)
        pathlib.Path(path).absolute().parent.mkdir(parents=True, exist_ok=True)
        with _files.replacing(path) as unfinished:  # With few colors, the file is a third of the size.
            Image.open(drawn).convert("RGB").quantize(128).save(unfinished, format="png", optimize=True)


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    # Fail before the first measurement if a name is wrong or matplotlib is missing.
    for name in _NAMES.value:
        loss_of(name)
    if _PLOT.value:
        importlib.import_module("matplotlib")
    harness.use_threads()
    tf.get_logger().setLevel("ERROR")  # Hides warnings about retracing: each size has its own function.
    results = [measure(name, growth) for name in _NAMES.value for growth in GROWTHS]
    print("\n" + table(results))
    harness.write(results, lists=_LISTS.value, documents=_DOCUMENTS.value, stated={n: stated(n) for n in _NAMES.value})
    if _PLOT.value:
        draw(results, _PLOT.value)


if __name__ == "__main__":
    app.run(main)
