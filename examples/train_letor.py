"""Trains, evaluates and exports a ranker on LETOR files.

    python examples/train_letor.py --output_dir=output/demo
    python examples/train_letor.py --train=Fold1/train.txt --valid=Fold1/vali.txt --test=Fold1/test.txt \
        --loss=smoothi_ndcg --alpha=1 --delta=0.1 --learning_rate=0.001 --epochs=50 --output_dir=output/fold1

Without files, the script trains on synthetic data, which it writes to OUTPUT_DIR/data. When restarted after an
interruption, training resumes after the last finished epoch. OUTPUT_DIR contains
    metrics.json  trec_eval's measures of the validation and test queries
    test.run      the ranking of the test queries in TREC's run format
    curves.png    loss, smooth and exact metrics by epoch; log.csv contains the values
    best.keras    the model of the best epoch
    export/1/     the same model as a SavedModel with a model card, which loads with TensorFlow only
    checkpoints/  the checkpoints for resuming
    tensorflow.log  TensorFlow's log, unless TF_CPP_MIN_LOG_LEVEL is set
With several members, OUTPUT_DIR/member_1, member_2 and so on contain the checkpoints, curves, logs and best.keras of
each member. Files and flags are checked before the first step; errors are reported in one line.
"""

# ruff: noqa: E402
from __future__ import annotations

import fnmatch
import importlib.util
import json
import math
import os
import pathlib
import sys
import time
from typing import Any

if IS_QUIET := "TF_CPP_MIN_LOG_LEVEL" not in os.environ:
    # TensorFlow writes its log to file descriptor 2; Python's standard error becomes a copy of it.
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"

import startup
import tensorflow as tf
from absl import flags
from format_flags import FormatFlags

import tfr_smooth
from tfr_smooth import _arguments, _files, data, evaluation, losses, metrics, models, serving, training
from tfr_smooth._command_line import did_you_mean, errors_in_one_line
from tfr_smooth.data.text_files import digest, expand_paths
from tfr_smooth.study.recipe import RECIPES

_TRAIN = flags.DEFINE_list("train", [], "Training files: paths or glob patterns. Default: synthetic data.")
_VALID = flags.DEFINE_list("valid", [], "Validation files: paths or glob patterns.")
_TEST = flags.DEFINE_list("test", [], "Test files: paths or glob patterns.")
_NUM_FEATURES = flags.DEFINE_integer(
    "num_features", None, "Number of features. Default: the highest index in the training files."
)
_FORMAT = FormatFlags(without=["group_sizes", "labeled"])  # Each file has its own file of group sizes.
_RECIPE = flags.DEFINE_enum(
    "recipe",
    "default",
    list(RECIPES),
    "default: an ensemble of three regularized networks (docs/results.md); paper: one network, as in the paper. "
    "Sets the defaults of other flags, which --recipe=NAME --help shows.",
)
_LOSS = flags.DEFINE_enum("loss", "smoothi_ndcg", sorted(losses.NAMES), "Loss to train with, which also has defaults.")
_LEARNING_RATE = flags.DEFINE_float("learning_rate", 0.001, "Adam's learning rate.")
_EPOCHS = flags.DEFINE_integer("epochs", 50, "Passes over the training set.", lower_bound=1)
_PATIENCE = flags.DEFINE_integer("patience", None, "Epochs without improvement before training stops. Default: never.")
_TENSORBOARD = flags.DEFINE_bool("tensorboard", False, "Also log the metrics of each epoch for TensorBoard.")
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 128, "Queries per batch.", lower_bound=1)
_HIDDEN = flags.DEFINE_string(
    "hidden", "1024", "Hidden layers: widths such as 256,64, or a name: linear, B64 .. B1024."
)
_NORMALIZATION = flags.DEFINE_enum(
    "normalization", "none", ["none", "min_max", "standardize", "log1p"], "Normalization of the features."
)
_DROPOUT = flags.DEFINE_float("dropout", 0.0, "Dropout rate of the hidden units.")
_LINEAR_PATH = flags.DEFINE_float(
    "linear_path",
    None,
    "Add a linear function of the features to the network, initialized with ridge regression of this strength.",
)
_MEMBERS = flags.DEFINE_integer(
    "members", 1, "Networks in the ensemble, each trained with its own seed; their scores are averaged.", lower_bound=1
)
_SEED = flags.DEFINE_integer("seed", 0, "Seed of the weights, the order of the lists and the synthetic data.")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/letor", "Folder for all output.")
_STRATEGY = flags.DEFINE_enum(
    "strategy",
    "none",
    training.STRATEGIES,
    "Distribution strategy: one device, all GPUs of this machine, or the processes in TF_CONFIG (docs/distributed.md). "
    "The results are equivalent, except for parameter_server, whose workers take steps independently.",
)
_SELECT_BY = flags.DEFINE_enum(
    "select_by",
    "smooth",
    ["smooth", "ndcg"],
    "Validation metric that selects the best epoch: smooth, the metric of the loss (as in the papers; less noisy with "
    "few queries), or ndcg, exact NDCG (always used for losses that do not optimize a metric).",
)
_CACHE = flags.DEFINE_bool("cache", True, "Keep the parsed files in memory. Parameter servers require this.")
_CACHE_DIR = flags.DEFINE_string(
    "cache_dir",
    None,
    "Folder for a binary copy of the files, for this and later runs. With --nocache, batches are read from this copy, "
    "for files larger than memory.",
)
_GROUP_BY_LENGTH = flags.DEFINE_bool(
    "group_by_length", False, "Train on batches of lists with similar lengths, which is faster."
)


def _hyperparameter_flags() -> list[flags.FlagHolder[Any]]:
    """One flag per hyperparameter of any loss."""
    defaults: dict[str, Any] = {}
    takers: dict[str, list[str]] = {}
    for loss in losses.NAMES:
        for name, default in losses.hyperparameters(loss).items():
            defaults[name] = default
            takers.setdefault(name, []).append(loss)
    kinds = {
        bool: flags.DEFINE_bool,
        float: flags.DEFINE_float,
        str: flags.DEFINE_string,
        int: flags.DEFINE_integer,
        type(None): flags.DEFINE_integer,  # topn
    }
    return [
        kinds[type(default)](name, None, f"Hyperparameter of {', '.join(patterns(takers[name]))}.")
        for name, default in defaults.items()
    ]


def patterns(chosen: list[str]) -> list[str]:
    """Describes losses by patterns such as approx_* and *_ndcg, and by the names that match none."""
    found = []
    for pattern in dict.fromkeys(p for name in chosen for p in (f"{name.split('_')[0]}_*", f"*_{name.split('_')[-1]}")):
        matching = fnmatch.filter(losses.NAMES, pattern)
        if len(matching) > 1 and set(matching) <= set(chosen):
            found.append(pattern)
    return found + [name for name in chosen if not any(fnmatch.fnmatch(name, pattern) for pattern in found)]


_HYPERPARAMETERS = _hyperparameter_flags()


def main(argv: list[str]) -> None:
    start = time.time()
    with errors_in_one_line(ImportError, OSError, ValueError):
        if len(argv) > 1:
            raise ValueError(f"Unknown argument {argv[1]!r}. Flags start with --.")
        strategy = training.get_strategy(_STRATEGY.value)  # first: connects the processes of a cluster
        check_flags()
        output = make_output_folder()
        files = data_files(output, write=training.is_chief(strategy))
        training.wait_for_workers(strategy)
        summaries = data.scan_split(files, num_features=_NUM_FEATURES.value, format=_FORMAT.letor_format())
    summary = summaries["train"]
    for part, found in summaries.items():
        print(f"{part:>6}: {found.queries} queries with {found.documents} documents of {found.num_features} features")

    folders = member_folders(output)
    validations = [
        train_member(strategy, files, summary, folder, seed)
        for seed, folder in enumerate(folders, start=_SEED.value * len(folders))
    ]
    if training.is_chief(strategy):
        report(files, summary, dict(zip(folders, validations, strict=True)), output)
    training.wait_for_workers(strategy)  # all processes end together, so that all are restarted if one fails
    print(f"Done in {time.time() - start:.0f} s. Output: {output}")


def check_flags() -> None:
    """Checks flags before training by creating what they define."""
    losses.get(_LOSS.value, **loss_arguments())
    make_model()
    _FORMAT.letor_format()
    _arguments.real("learning_rate", _LEARNING_RATE.value, above=0.0)
    _arguments.integer_or_none("patience", _PATIENCE.value, least=1)
    if _TENSORBOARD.value and importlib.util.find_spec("tensorboard") is None:
        raise ImportError("--tensorboard requires TensorBoard: pip install tensorboard")


def make_output_folder() -> pathlib.Path:
    output = pathlib.Path(_OUTPUT_DIR.value)
    if output.exists() and not output.is_dir():
        raise ValueError(f"--output_dir must be a folder, got the file {str(output)!r}.")
    output.mkdir(parents=True, exist_ok=True)
    if IS_QUIET:
        os.dup2(os.open(output / "tensorflow.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    return output


def make_model() -> models.FeedForwardScorer:
    return models.FeedForwardScorer(
        hidden=hidden_layers(),
        normalization=None if _NORMALIZATION.value == "none" else _NORMALIZATION.value,
        dropout=_DROPOUT.value,
        linear_path=_LINEAR_PATH.value,
    )


def member_folders(output: pathlib.Path) -> list[pathlib.Path]:
    """The folder of each network; a single network uses the output folder itself."""
    return [output / f"member_{number + 1}" for number in range(_MEMBERS.value)] if _MEMBERS.value > 1 else [output]


def train_member(
    strategy: tf.distribute.Strategy,
    files: dict[str, list[str]],
    summary: data.LetorSummary,
    folder: pathlib.Path,
    seed: int,
) -> training.ExactValidation:
    """Trains a network and writes the model of the best epoch to best.keras in the folder."""
    if _STRATEGY.value != "parameter_server":  # With a seed, all its workers would have the same order.
        tf.keras.utils.set_random_seed(seed)
    with strategy.scope():
        model = make_model()
        loss = losses.get(_LOSS.value, **loss_arguments())
        optimizer = tf.keras.optimizers.Adam(_LEARNING_RATE.value)
        model.compile(optimizer=optimizer, loss=loss, metrics=watched_metrics(loss))
        model.build([None, None, summary.num_features])

    watched = watched_metrics(loss)
    validation = training.ExactValidation(
        read(files["valid"], summary.num_features),
        [MeanLoss(), *watched],
        monitor=watched[-1 if _SELECT_BY.value == "smooth" else 0].name,
        path=folder / "best.keras",
        patience=_PATIENCE.value,
    )
    resumable = training.ResumableTraining(folder / "checkpoints", validation=validation, settings=settings(files))
    with errors_in_one_line(ValueError):
        finished = resumable.restore(model)
    if finished:
        print(f"Resuming after {finished} finished epochs in {folder}")
    if finished < _EPOCHS.value and not validation.stopped:
        if _MEMBERS.value > 1:
            print(f"Training {folder.name} of {_MEMBERS.value}")
        shown = [training.ProgressLog(folder / "log.csv" if training.is_chief(strategy) else None)]
        if _TENSORBOARD.value:
            shown.append(tf.keras.callbacks.TensorBoard(folder / "tensorboard"))
        train(model, files["train"], summary, finished, seed, [validation, *shown, resumable])
    return validation


def data_files(output: pathlib.Path, write: bool) -> dict[str, list[str]]:
    """The files of each part; if none are given, the chief writes synthetic data first."""
    given = {"train": _TRAIN.value, "valid": _VALID.value, "test": _TEST.value}
    if all(given.values()):
        return {part: expand_paths(patterns, f"--{part}") for part, patterns in given.items()}
    if any(given.values()):
        raise ValueError("--train, --valid and --test must be given together.")
    if not write:  # The chief writes files with these names.
        names = {"train": "train.txt", "valid": "vali.txt", "test": "test.txt"}
        return {part: [str(output / "data" / name)] for part, name in names.items()}
    print(f"No files given: writing synthetic data to {output / 'data'}")
    return {name: [str(path)] for name, path in data.write_synthetic_letor(output / "data", seed=_SEED.value).items()}


def read(paths: list[str], num_features: int, **kwargs: Any) -> tf.data.Dataset:
    return data.read_letor(
        paths,
        batch_size=_BATCH_SIZE.value,
        num_features=num_features,
        cache=_CACHE.value,
        cache_dir=_CACHE_DIR.value,
        format=_FORMAT.letor_format(),
        **kwargs,
    )


def hidden_layers() -> str | list[int]:
    text = _HIDDEN.value
    if not text[:1].isdigit():
        return text
    if not all(width.isdecimal() for width in text.split(",")):
        raise ValueError(f"--hidden must be widths such as 256,64, or a name: linear, B64 .. B1024, got {text!r}.")
    return [int(width) for width in text.split(",")]


def loss_arguments() -> dict[str, Any]:
    """The hyperparameters of the loss from the flags; raises an error for flags that it does not take."""
    taken = losses.hyperparameters(_LOSS.value)
    given = {flag.name: flag.value for flag in _HYPERPARAMETERS if flag.value is not None}
    # Hyperparameters of a recipe, unlike those of the command line, apply only to the losses that take them.
    unknown = {flag.name for flag in _HYPERPARAMETERS if flag.present} - set(taken)
    if unknown:
        raise ValueError(f"--loss={_LOSS.value} does not take --{sorted(unknown)[0]}.")
    return {name: value for name, value in given.items() if name in taken}


def exact_ndcg() -> tf.keras.metrics.Metric:
    """NDCG as trec_eval computes it."""
    return metrics.NDCGMetric(gain="linear")


def watched_metrics(loss: losses.RankingLoss) -> list[tf.keras.metrics.Metric]:
    """Exact NDCG, and the smooth metric if the loss is one minus a smooth metric, which may exceed the exact one."""
    watched = [exact_ndcg()]
    if isinstance(loss, losses.MeasureLoss):
        smooth = metrics.MeanOverLists(loss.ranking, loss.measure, no_relevant="skip", ragged=False, name=_LOSS.value)
        watched.append(smooth)
    return watched


class MeanLoss(tf.keras.metrics.Mean):
    """The loss on the validation set: the mean over the included lists."""

    def __init__(self) -> None:
        super().__init__(name="loss")
        self._loss = losses.get(_LOSS.value, **loss_arguments(), reduction="none")

    def update_state(self, labels: tf.Tensor, scores: tf.Tensor, sample_weight: tf.Tensor | None = None) -> Any:
        included = tf.cast(self._loss.counts(tf.maximum(labels, 0.0), labels >= 0.0), tf.float32)
        return super().update_state(self._loss(labels, scores), sample_weight=included)


def settings(files: dict[str, list[str]]) -> dict[str, Any]:
    """The settings that must not change when a training is resumed."""
    names = "loss learning_rate batch_size hidden normalization dropout linear_path members seed select_by "
    names += "group_by_length num_features"
    chosen = [*names.split(), *(flag.name for flag in _HYPERPARAMETERS), *_FORMAT.names]
    values = {name: flags.FLAGS[name].value for name in chosen}
    for part in ("train", "valid"):  # A file with the same name may have other contents.
        values |= {part: files[part], f"content of {part}": digest(files[part])}
    return values


def train(
    model: tf.keras.Model, paths: list[str], summary: data.LetorSummary, finished: int, seed: int, callbacks: list[Any]
) -> None:
    epochs = _EPOCHS.value
    if not finished:
        # Streamed: without statistics to compute, `adapt` reads nothing.
        model.adapt(
            data.read_letor(
                paths, batch_size=_BATCH_SIZE.value, num_features=summary.num_features, format=_FORMAT.letor_format()
            )
        )
    order: dict[str, Any] = {"seed": seed, "first_epoch": finished, "num_epochs": epochs - finished}
    order["group_by_length"] = _GROUP_BY_LENGTH.value
    if _STRATEGY.value == "parameter_server":  # Each worker reads the lists in its own order.
        order |= {"seed": None, "num_epochs": None}
    lists = read(paths, summary.num_features, shuffle_buffer=summary.queries, **order)
    with errors_in_one_line():
        model.fit(
            lists,
            initial_epoch=finished,
            epochs=epochs,
            steps_per_epoch=math.ceil(summary.queries / _BATCH_SIZE.value),
            shuffle=False,
            verbose=0,
            callbacks=callbacks,
        )


def report(
    files: dict[str, list[str]],
    summary: data.LetorSummary,
    validations: dict[pathlib.Path, training.ExactValidation],
    output: pathlib.Path,
) -> None:
    """Evaluates the best model and writes metrics, ranking, curves and the exported model."""
    for folder, validation in validations.items():
        print(f"Best epoch: {validation.best_epoch + 1} of {len(validation.history['loss'])}")
        evaluation.plot_training_curves(folder / "curves.png", validation.history, best_epoch=validation.best_epoch)
    members = [tf.keras.models.load_model(folder / "best.keras") for folder in validations]
    model = members[0] if len(members) == 1 else average(members, summary, output / "best.keras")
    by_part = {}
    for part in ("valid", "test"):
        lists = list(training.score_queries(model, read(files[part], summary.num_features, return_ids=True)))
        by_part[part] = evaluation.trec_eval(lists)
        print(f"{part:>6}: " + "  ".join(f"{name} {value:.4f}" for name, value in by_part[part].items()))
        if part == "test":
            evaluation.write_run(output / "test.run", lists, tag=f"tfr_smooth-{tfr_smooth.__version__}")
    first = _FORMAT.letor_format().first_index
    card = serving.ModelCard(
        data={
            **{part: ",".join(paths) for part, paths in files.items()},
            "queries": summary.queries,
            "documents": summary.documents,
            "features": f"LETOR's {first} to {first + summary.num_features - 1}, in this order",
        },
        training={name: value for name, value in settings(files).items() if name not in files and value is not None},
        loss=losses.get(_LOSS.value, **loss_arguments()),
        metrics=by_part,
    )
    serving.export_ranker(model, output / "export", num_features=summary.num_features, card=card)
    # Written last: if this file exists, the output is complete.
    _files.write_text(output / "metrics.json", [json.dumps(by_part, indent=2) + "\n"])


def average(members: list[tf.keras.Model], summary: data.LetorSummary, path: pathlib.Path) -> tf.keras.Model:
    """Writes and returns the model that averages the scores of the members."""
    model = models.AverageScorer(members)
    model.build([None, None, summary.num_features])
    with _files.replacing(path) as unfinished:
        model.save(unfinished)
    return model


def parse_flags(argv: list[str]) -> list[str]:
    """Parses flags, with the defaults of the recipe, and returns the other arguments; an error is one line."""
    first = flags.FlagValues()
    flags.DEFINE_string("recipe", "default", "", flag_values=first)
    try:
        first(argv, known_only=True)
        for name, value in RECIPES.get(first.recipe, {}).items():
            flags.FLAGS.set_default(name, value)
        return flags.FLAGS(argv)
    except flags.Error as error:
        choices = {name: getattr(flags.FLAGS[name].parser, "enum_values", ()) for name in flags.FLAGS}
        sys.exit(f"error: {did_you_mean(argv, choices) or error}")


if __name__ == "__main__":
    startup.run(main, resume="The same command resumes after the last finished epoch.", flags_parser=parse_flags)
