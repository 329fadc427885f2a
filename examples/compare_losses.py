"""Compares losses and other rankers on LETOR files, with a search for hyperparameters.

    python examples/compare_losses.py --data=MQ2008 --output_dir=output/study \
        --rankers="smoothi_ndcg approx_ndcg list_net lambdamart ridge single_feature random" --seeds=5

For each fold, the validation metric at the first seed selects hyperparameters, which are then trained with all seeds.
When restarted, the script runs only jobs without a result. docs/study.md describes settings and output.
"""

from __future__ import annotations

import os
import sys

import startup

# isort: split
from absl import app, flags
from command_line import errors_in_one_line

import experiments

_DATA = flags.DEFINE_list(
    "data", [], "Folders with Fold1 .. FoldK, or LETOR's S1.txt .. S5.txt; see docs/data_sets.md."
)
_TRAIN = flags.DEFINE_string("train", None, "Training files of a single split: a path or a glob pattern.")
_VALID = flags.DEFINE_string("valid", None, "Validation files of a single split.")
_TEST = flags.DEFINE_string("test", None, "Test files of a single split.")
_RANKERS = flags.DEFINE_string(
    "rankers",
    "smoothi_ndcg approx_ndcg list_net list_mle lambda_loss lambdamart ridge single_feature random",
    "Losses and other rankers to compare, by name.",
)
_CONFIG = flags.DEFINE_string(
    "config", None, "JSON file with settings of the rankers, which may replace --rankers (docs/study.md)."
)
_SEEDS = flags.DEFINE_integer("seeds", 1, "Number of seeds for training with selected hyperparameters.", lower_bound=1)
_SELECT_BY = flags.DEFINE_enum(
    "select_by", "ndcg", experiments.MEASURES, "Validation measure that selects hyperparameters."
)
_RELEVANCE_LEVEL = flags.DEFINE_integer(
    "relevance_level", 1, "Least label of relevant documents in P@k and MAP, as trec_eval's -l.", lower_bound=1
)
_BASELINE = flags.DEFINE_string(
    "baseline", None, "The ranker that the tests compare the others with. Default: the best one by each measure."
)
_WORKERS = flags.DEFINE_integer("workers", os.cpu_count(), "Worker processes, each with one thread.", lower_bound=1)
_ENSEMBLE = flags.DEFINE_bool("ensemble", False, "Also evaluate the mean scores over all seeds.")
_REPORT_ONLY = flags.DEFINE_bool("report_only", False, "Only rewrite tables and report, from OUTPUT_DIR's CSV files.")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/study", "Folder for all output.")


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    with errors_in_one_line(ImportError, OSError, ValueError):
        compare()


def compare() -> None:
    output = _OUTPUT_DIR.value
    if _REPORT_ONLY.value:
        print(experiments.write_report(experiments.read_results(output), output, baseline=_BASELINE.value))
        return
    config = experiments.read_config(_CONFIG.value) if _CONFIG.value else {}
    study = experiments.Study(
        datasets(),
        config.pop("entries", None) or [experiments.Entry(name) for name in _RANKERS.value.split()],
        output,
        seeds=range(_SEEDS.value),
        select_by=_SELECT_BY.value,
        relevance_level=_RELEVANCE_LEVEL.value,
        **config,
    )
    failures = study.run(workers=_WORKERS.value, progress=progress)
    for job, message in failures:
        print(f"FAILED: {job.description}\n{message}", file=sys.stderr)
    results = experiments.write_results(experiments.collect(study, ensemble=_ENSEMBLE.value), output)
    print(experiments.write_report(results, output, baseline=_BASELINE.value))
    print(f"Report: {output}/report.md")
    sys.exit(1 if failures else 0)


def datasets() -> list[experiments.Dataset]:
    split = [_TRAIN.value, _VALID.value, _TEST.value]
    if any(split) == bool(_DATA.value) or any(split) != all(split):
        raise app.UsageError("Give either --data, or all of --train, --valid and --test.")
    return [experiments.one_split(*split)] if all(split) else [experiments.find_folds(path) for path in _DATA.value]


def progress(jobs, title: str, total: int):
    import tqdm

    return tqdm.tqdm(jobs, title, total, unit="job", smoothing=0.1)


if __name__ == "__main__":
    startup.run(main, resume="The same command runs the jobs that have no result yet.")
