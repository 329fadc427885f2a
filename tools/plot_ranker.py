"""Draws the training of a Ranker on docs/ranker.md and its calibration on docs/calibration.md, in docs/images.

python tools/plot_ranker.py  # draws the stored values again
python tools/plot_ranker.py --trivago=trivago --letor=MQ2008/Fold1  # also computes them, in a few minutes
"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

import numpy as np
from absl import app, flags
from figures import COLORS, GRAY, save_both
from matplotlib.figure import Figure
from scipy import stats

from tfr_smooth import Ranker, _files, data, metrics

ROOT = pathlib.Path(__file__).absolute().parents[1]
IMAGES = ROOT / "docs" / "images"

_TRIVAGO = flags.DEFINE_string("trivago", None, "Folder of trivago_val_100k.parquet; see benchmarks/tables/real.py.")
_LETOR = flags.DEFINE_string("letor", None, "Folder of train.txt, vali.txt and test.txt, or .gz.")


def training(folder: pathlib.Path) -> dict[str, Any]:
    """The epochs of a training on three quarters of the clicks of trivago, and the selected one."""
    sys.path.append(str(ROOT / "benchmarks"))
    from tables import real

    table = real.trivago(folder)
    ranker = Ranker(kinds=dict(table.kinds), matches=list(table.matches), verbose=False)
    rows = table.part("train", "valid")[["query", "label", *table.features]]
    smooth = metrics.get("smoothi_ndcg", no_relevant="skip")
    ranker.fit(rows, label="label", query="query", features=list(table.features), further_metrics=[smooth])
    return {"history": ranker.history_, "best_epoch": ranker.best_epoch_}


def reliability(folder: pathlib.Path) -> dict[str, Any]:
    """The reliability of predictions for the test documents, as they are and calibrated on the validation queries."""
    paths = [str(next(folder.glob(f"{name}.txt*"))) for name in ("train", "vali", "test")]
    train, valid, test = map(data.read_letor, paths)
    is_relevant = test.values("label") >= 1.0
    ranker = Ranker(verbose=False).fit(train)
    predictions = {"sigmoid of the score": 1.0 / (1.0 + np.exp(-ranker.predict(test)))}
    for method in ("platt", "isotonic"):
        predictions[method] = ranker.calibrate(valid, method=method).predict(test)
    found = {}
    for name, of_method in predictions.items():
        bins = [part for part in np.array_split(np.argsort(of_method, kind="stable"), 10) if len(part)]
        means = {"predicted": of_method, "observed": is_relevant}
        found[name] = {field: [round(float(each[part].mean()), 4) for part in bins] for field, each in means.items()}
        found[name]["counts"] = list(map(len, bins))
    return found


def curves(history: dict[str, list[float]], best_epoch: int) -> Figure:
    """The metrics of each epoch, with the selected one."""
    figure = Figure(figsize=(5.5, 4.8), layout="constrained")
    axes = figure.subplots()
    for (name, values), color in zip(history.items(), COLORS, strict=False):
        axes.plot(range(1, len(values) + 1), values, color=color, marker="o", markersize=3.0, label=name)
    axes.axvline(best_epoch, color=GRAY, linestyle=":", zorder=1.5)
    axes.set_title("Metrics by epoch")
    axes.set_xlabel(f"epoch (dotted: best on validation, {best_epoch})")
    axes.legend()
    return figure


def stored(name: str, compute: Any, folder: str | None) -> Any:
    """Returns the values of a file, after computing them if there is a folder of data."""
    path = IMAGES / f"{name}.json"
    if folder:
        _files.write_text(path, [json.dumps(compute(pathlib.Path(folder)), indent=1) + "\n"])
    return json.loads(path.read_text(encoding="utf-8"))


def draw_reliability(tables: dict[str, dict[str, np.ndarray]]) -> Figure:
    """Observed against predicted rates of relevance, with the ideal diagonal; below, the documents of each bin."""
    figure = Figure(figsize=(5.5, 6.2), layout="constrained")
    axes, below = figure.subplots(2, 1, sharex=True, height_ratios=(4.0, 1.0))
    axes.plot([0.0, 1.0], [0.0, 1.0], color=GRAY, linestyle=":", label="ideal")
    for (name, table), color in zip(tables.items(), COLORS, strict=False):
        predicted, observed, counts = table["predicted"], table["observed"], table["counts"]
        label = f"{name} (ECE {np.average(np.abs(observed - predicted), weights=counts):.3f})"
        look: dict[str, Any] = {"color": color, "marker": "o", "markersize": 4.5}
        tests = [stats.binomtest(round(rate * count), int(count)) for rate, count in zip(observed, counts, strict=True)]
        intervals = np.array([test.proportion_ci(method="wilson") for test in tests]).T
        errors = np.abs(intervals - observed)
        axes.errorbar(predicted, observed, yerr=errors, label=label, capsize=2.0, elinewidth=1.0, **look)
        below.plot(predicted, counts, **look)
    axes.set_title("Reliability, with 95% intervals")
    axes.set_ylabel("observed rate of relevance")
    axes.legend(loc="upper left")
    below.set_yscale("log")
    below.set_ylim(0.7, 1.5 * max(table["counts"].max() for table in tables.values()))  # from one document on
    below.set_ylabel("documents")
    below.set_xlabel("predicted rate of relevance")
    return figure


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    trained = stored("training_curves", training, _TRIVAGO.value)
    measured = {name: values for name, values in trained["history"].items() if name != "loss"}
    methods = stored("reliability", reliability, _LETOR.value)
    tables = {name: {field: np.array(each) for field, each in fields.items()} for name, fields in methods.items()}
    for name, draw in (
        ("training_curves", lambda: curves(measured, trained["best_epoch"])),
        ("reliability", lambda: draw_reliability(tables)),
    ):
        for path in save_both(IMAGES / f"{name}.png", draw):
            print(path)


if __name__ == "__main__":
    app.run(main)
