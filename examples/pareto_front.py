"""Trains rankers on two objectives, relevance and a feature such as popularity, and draws their Pareto front.

    python examples/pareto_front.py --data=MQ2008 --feature=41 --output_dir=output/pareto

The feature is removed from the features and becomes the second label, in grades within each query: 2 for its highest
tenth of values, 1 for the next fifth, 0 for the others. The linear scalarization is compared with stochastic label
aggregation. When restarted, the script trains only what is missing. benchmarks/README.md has its results.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import startup

# isort: split
from absl import app, flags
from command_line import errors_in_one_line

import experiments
import tfr_smooth

_DATA = flags.DEFINE_string(
    "data", None, "Folder with Fold1 .. FoldK, or S1.txt .. S5.txt; see docs/data_sets.md.", required=True
)
_FEATURE = flags.DEFINE_integer("feature", 41, "Number of the feature of the second objective.", lower_bound=1)
_NAME = flags.DEFINE_string("name", "popularity", "Name of the second objective.")
_WEIGHTS = flags.DEFINE_list("weights", ["0", "0.25", "0.5", "0.75", "1"], "Weights of the second objective.")
_SEEDS = flags.DEFINE_integer("seeds", 1, "Number of seeds.", lower_bound=1)
_LOSS = flags.DEFINE_enum("loss", "smoothi_ndcg", sorted(tfr_smooth.losses.NAMES), "Loss of each objective.")
_HIDDEN = flags.DEFINE_integer("hidden", 1024, "Width of the hidden layer.", lower_bound=1)
_MEMBERS = flags.DEFINE_integer("members", 3, "Networks per ranker.", lower_bound=1)
_EPOCHS = flags.DEFINE_integer("epochs", 30, "Training epochs.", lower_bound=1)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/pareto", "Folder for the CSV file and the plot.")


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    with errors_in_one_line(ImportError, OSError, ValueError):
        compare()


def compare() -> None:
    folder = Path(_OUTPUT_DIR.value)
    folder.mkdir(parents=True, exist_ok=True)
    folds = [experiments.load_fold(files) for files in experiments.find_folds(_DATA.value).folds.values()]
    size = {"hidden": [_HIDDEN.value], "members": _MEMBERS.value, "epochs": _EPOCHS.value, "loss": _LOSS.value}
    rankers = {name: tfr_smooth.Ranker(label_aggregation=name, verbose=False, **size) for name in ("sum", "stochastic")}
    results = experiments.trade_off(
        rankers,
        [tuple(map(table, fold)) for fold in folds],
        labels=("relevance", _NAME.value),
        query="query",
        path=folder / "pareto.csv",
        weights=[float(weight) for weight in _WEIGHTS.value],
        seeds=range(_SEEDS.value),
    )
    print(experiments.pareto_front(results).round(4).to_string(index=False))
    experiments.plot_pareto_front(results).savefig(folder / "pareto.png", dpi=150)
    print(f"Plot: {folder / 'pareto.png'}", file=sys.stderr)


def table(queries: experiments.Queries) -> Any:
    """Returns the documents of queries as a table with both labels."""
    import pandas as pd

    names = [f"feature_{number}" for number in range(1, queries.features.shape[1] + 1)]
    frame = pd.DataFrame(queries.features, columns=names)
    share = frame.pop(names[_FEATURE.value - 1]).groupby(queries.qid).rank(method="min", pct=True)
    labels = {"relevance": queries.labels.astype(int), _NAME.value: (share > 0.9) * 1 + (share > 0.7)}
    return frame.assign(query=queries.qid, **labels)


if __name__ == "__main__":
    startup.run(main, resume="The same command trains what is missing.")
