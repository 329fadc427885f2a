"""Trains, evaluates and exports a ranker on LETOR files.

    python examples/train_letor.py --output_dir=output/demo
    python examples/train_letor.py --train=Fold1/train.txt --valid=Fold1/vali.txt --test=Fold1/test.txt \
        --loss=smoothi_ndcg --loss_args='{"alpha": 1, "delta": 0.1}' --epochs=50 --output_dir=output/fold1

Without files, the script trains on synthetic data, which it writes to OUTPUT_DIR/data. The same command resumes after
the last finished epoch. OUTPUT_DIR contains
    metrics.json  trec_eval's measures of the validation and test queries
    test.run      the ranking of the test queries in TREC's run format
    curves.png    loss, smooth and exact metrics by epoch
    best.keras    the ranker, which tfr_smooth.Ranker.load reads
    export/1/     the same model as a SavedModel with a model card, which loads with TensorFlow only
    training/     the log of the epochs (log.csv) and the checkpoints for resuming
"""

from __future__ import annotations

import pathlib
from typing import Any

import startup

# isort: split
import estimator_flags
import format_flags
import pandas as pd
from absl import flags
from command_line import errors_in_one_line, write_json

import tfr_smooth
from tfr_smooth import data, evaluation, training

_TRAIN = flags.DEFINE_list("train", [], "Training files: paths or glob patterns. Default: synthetic data.")
_VALID = flags.DEFINE_list("valid", [], "Validation files: paths or glob patterns.")
_TEST = flags.DEFINE_list("test", [], "Test files: paths or glob patterns.")
_NUM_FEATURES = flags.DEFINE_integer("num_features", None, "Number of features. Default: that of the training files.")
_FORMAT = format_flags.FormatFlags(without=["labeled"])
_STRATEGY = flags.DEFINE_enum("strategy", "none", training.STRATEGIES, "Distribution strategy (docs/distributed.md).")
_TENSORBOARD = flags.DEFINE_bool("tensorboard", False, "Also log each epoch for TensorBoard.")
_CACHE_DIR = flags.DEFINE_string("cache_dir", None, "Folder of parsed files. Default: in the user's cache folder.")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/letor", "Folder for all output.")
_RANKER = estimator_flags.EstimatorFlags(tfr_smooth.Ranker, page="docs/ranker.md")
# --help shows them too.
flags.adopt_module_key_flags(format_flags)
flags.adopt_module_key_flags(estimator_flags)


_QUERIES = 128  # in a batch that is only scored


def main(argv: list[str]) -> None:
    with errors_in_one_line(ImportError, OSError, ValueError):
        if len(argv) > 1:
            raise ValueError(f"Unknown argument {argv[1]!r}. Flags start with --.")
        strategy = training.get_strategy(_STRATEGY.value)  # first: connects the processes of a cluster
        ranker = _RANKER.make()
        format = _FORMAT.letor_format()
        output = pathlib.Path(_OUTPUT_DIR.value)
        if output.exists() and not output.is_dir():
            raise ValueError(f"--output_dir must be a folder, got the file {str(output)!r}.")
        files = data_files(output, ranker.get_params()["seed"], write=training.is_chief(strategy))
        training.wait_for_workers(strategy)
        parts = data.read_split(files, num_features=_NUM_FEATURES.value, format=format, cache_dir=_CACHE_DIR.value)
        for part, found in parts.items():
            print(f"{part:>6}: {len(found)} queries, {found.documents} documents, {found.num_features} features")
        ranker.fit(
            parts["train"],
            validation=parts["valid"],
            strategy=strategy,
            checkpoint_dir=output / "training",
            callbacks=[startup.tensorboard(output / "tensorboard")] if _TENSORBOARD.value else [],
        )
    if training.is_chief(strategy):
        report(ranker, files, parts, output)
    training.wait_for_workers(strategy)  # all processes end together, so that all are restarted if one fails


def data_files(output: pathlib.Path, seed: int, write: bool) -> dict[str, list[str]]:
    """The files of each part; if none are given, the chief writes synthetic data first."""
    given = {"train": _TRAIN.value, "valid": _VALID.value, "test": _TEST.value}
    if all(given.values()):
        return {part: data.expand_paths(patterns, f"--{part}") for part, patterns in given.items()}
    if any(given.values()):
        raise ValueError("--train, --valid and --test must be given together.")
    if write:
        print(f"No files given: writing synthetic data to {output / 'data'}")
        data.write_synthetic_letor(output / "data", seed=seed)
    names = {"train": "train.txt", "valid": "vali.txt", "test": "test.txt"}
    return {part: [str(output / "data" / name)] for part, name in names.items()}


def report(ranker: Any, files: dict[str, list[str]], parts: dict[str, data.Lists], output: pathlib.Path) -> None:
    """Evaluates the best model and writes metrics, ranking, curves and the exported model."""
    pd.DataFrame(ranker.history_).plot(subplots=True)[0].figure.savefig(output / "curves.png")
    measured = {}
    for part in ("valid", "test"):
        lists = list(training.score_queries(ranker.model_, parts[part].batches(_QUERIES, ids=True)))
        measured[part] = evaluation.trec_eval(lists)
        print(f"{part:>6}: " + "  ".join(f"{name} {value:.4f}" for name, value in measured[part].items()))
    evaluation.write_run(output / "test.run", lists, tag=f"tfr_smooth-{tfr_smooth.__version__}")
    ranker.save(output / "best.keras")
    train, first = parts["train"], _FORMAT.letor_format().first_index
    about: dict[str, Any] = {part: ",".join(paths) for part, paths in files.items()}
    about["features"] = f"LETOR's {first} to {first + train.num_features - 1}, in this order"
    about |= {"queries": len(train), "documents": train.documents}
    ranker.export(output / "export", card={"data": about, "metrics": measured})
    # Written last: if this file exists, the output is complete.
    write_json(output / "metrics.json", measured)
    print(f"Output: {output}")


if __name__ == "__main__":
    startup.run(
        main, resume="The same command resumes after the last finished epoch.", flags_parser=estimator_flags.parse
    )
