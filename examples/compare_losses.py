"""Compares losses and other rankers on LETOR files, with a search for hyperparameters.

    python examples/compare_losses.py --data=MQ2008 --output_dir=output/study \
        --rankers="smoothi_ndcg approx_ndcg list_net lambdamart ridge single_feature random" --seeds=5

For each fold, the validation metric at the first seed selects hyperparameters, which are then trained with all seeds.
When restarted, the script runs only jobs without a result. docs/study.md describes the output.
"""

from __future__ import annotations

import os
import sys

import startup
from absl import app, flags
from command_line import errors_in_one_line

from tfr_smooth import study
from tfr_smooth.study import selection

_DATA = flags.DEFINE_list("data", [], "Folders that contain Fold1 .. FoldK, or LETOR's five parts S1.txt .. S5.txt.")
_TRAIN = flags.DEFINE_string("train", None, "Training files of a single split: a path or a glob pattern.")
_VALID = flags.DEFINE_string("valid", None, "Validation files of a single split.")
_TEST = flags.DEFINE_string("test", None, "Test files of a single split.")
_RANKERS = flags.DEFINE_string(
    "rankers",
    "smoothi_ndcg approx_ndcg list_net list_mle lambda_loss lambdamart ridge single_feature random",
    "Losses and other rankers to compare, by name, each with optional fixed settings, such as "
    "smoothi_ndcg:topn=10:hidden=B64.",
)
_GRID = flags.DEFINE_string(
    "grid", "", "Values to search instead of the papers', such as 'alpha=[0.1,1,10,100] learning_rate=[0.001]'."
)
_RECIPE = flags.DEFINE_string(
    "recipe",
    "",
    "Training settings of all neural rankers that differ from the papers', such as 'epochs=20 dropout=0.3'.",
)
_SEEDS = flags.DEFINE_integer("seeds", 1, "Number of seeds for training with selected hyperparameters.", lower_bound=1)
_SELECT_BY = flags.DEFINE_enum("select_by", "ndcg", study.MEASURES, "Validation measure that selects hyperparameters.")
_WORKERS = flags.DEFINE_integer("workers", os.cpu_count(), "Worker processes, each with one thread.", lower_bound=1)
_SWEEPS = flags.DEFINE_multi_enum("sweep", [], study.SWEEPS, "Also run the jobs of this plot; may be repeated.")
_ENSEMBLE = flags.DEFINE_bool("ensemble", False, "Also evaluate the mean scores over all seeds.")
_REPORT_ONLY = flags.DEFINE_bool("report_only", False, "Only rewrite tables and report, from OUTPUT_DIR's CSV files.")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/study", "Folder for all output.")


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    with errors_in_one_line(ImportError, OSError, ValueError):
        compare()


def compare() -> None:
    if _REPORT_ONLY.value:
        print(study.write_report(study.read_results(_OUTPUT_DIR.value), _OUTPUT_DIR.value))
        return
    entries = [study.Entry.parse(label) for label in _RANKERS.value.split()]
    plan = study.Study(
        datasets(),
        entries,
        _OUTPUT_DIR.value,
        seeds=range(_SEEDS.value),
        grid=selection.parse_settings(_GRID.value),
        recipe=selection.parse_settings(_RECIPE.value),
        select_by=_SELECT_BY.value,
        sweeps={name: study.sweep(name, entries) for name in _SWEEPS.value},
    )
    failures = plan.run(workers=_WORKERS.value, progress=progress_bar)
    for job, message in failures:
        print(f"FAILED: {job.description}\n{message}", file=sys.stderr)
    results = study.collect(plan, ensemble=_ENSEMBLE.value)
    study.write_results(results, _OUTPUT_DIR.value)
    print(study.write_report(results, _OUTPUT_DIR.value))
    print(f"Report: {_OUTPUT_DIR.value}/report.html")
    sys.exit(1 if failures else 0)


def datasets() -> list[study.Dataset]:
    split = [_TRAIN.value, _VALID.value, _TEST.value]
    if any(split) == bool(_DATA.value) or any(split) != all(split):
        raise app.UsageError("Give either --data, or all of --train, --valid and --test.")
    return [study.one_split(*split)] if all(split) else [study.find_folds(folder) for folder in _DATA.value]


def progress_bar(title: str, jobs: int):
    import tqdm

    return tqdm.tqdm(desc=title, total=jobs, unit="job", smoothing=0.1)


if __name__ == "__main__":
    startup.run(main, resume="The same command runs the jobs that have no result yet.")
