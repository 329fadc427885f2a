"""Trains, evaluates and exports a ranker on LETOR files.

    python examples/train_letor.py --output_dir=output/demo
    python examples/train_letor.py --train=Fold1/train.txt --valid=Fold1/vali.txt --test=Fold1/test.txt \
        --loss=smoothi_ndcg --alpha=1 --delta=0.1 --learning_rate=0.001 --epochs=50 --output_dir=output/fold1

Without files it trains on synthetic data that it writes to OUTPUT_DIR/data. Run again after an interruption, it
resumes after the last finished epoch. In the end OUTPUT_DIR holds
    metrics.json  trec_eval's figures for the validation and test queries
    test.run      the ranking of the test queries in TREC's run format
    curves.png    loss, smooth and exact metrics by epoch
    best.keras    the model of the best epoch
    export/1/     the same as a SavedModel with a model card, which loads with TensorFlow alone
    checkpoints/  what a resumed training needs
With several members, the last two and best.keras of each network are in OUTPUT_DIR/member_1, member_2 and so on.
"""

from __future__ import annotations

import json
import math
import pathlib
import sys
import time
from typing import Any

import tensorflow as tf
from absl import app, flags, logging

import tfr_smooth
from tfr_smooth import _files, data, evaluation, losses, metrics, models, serving, training
from tfr_smooth.study.recipe import RECIPES

_TRAIN = flags.DEFINE_string("train", None, "Training files: a path or a glob pattern. Default: synthetic data.")
_VALID = flags.DEFINE_string("valid", None, "Validation files: a path or a glob pattern.")
_TEST = flags.DEFINE_string("test", None, "Test files: a path or a glob pattern.")
_RECIPE = flags.DEFINE_enum(
    "recipe",
    "default",
    list(RECIPES),
    "default: the mean of three regularized networks (docs/results.md); paper: one network, as in the SmoothI paper.",
)
_LOSS = flags.DEFINE_enum("loss", "smoothi_ndcg", sorted(losses.NAMES), "The loss to train with.")
_LEARNING_RATE = flags.DEFINE_float("learning_rate", 0.001, "Adam's learning rate.")
_EPOCHS = flags.DEFINE_integer("epochs", 50, "Passes over the training set.", lower_bound=1)
_PATIENCE = flags.DEFINE_integer("patience", None, "Stop after so many epochs without a better one. Default: never.")
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 128, "Queries in a batch.", lower_bound=1)
_HIDDEN = flags.DEFINE_string("hidden", "1024", "Hidden layers: widths, as 256,64, or a name: linear, B64 .. B1024.")
_NORMALIZATION = flags.DEFINE_enum(
    "normalization", "none", ["none", "min_max", "standardize", "log1p"], "What is done to the features first."
)
_DROPOUT = flags.DEFINE_float("dropout", 0.0, "Share of the hidden units that a training step drops.")
_LINEAR_PATH = flags.DEFINE_float(
    "linear_path",
    None,
    "Add a linear function of the features to the network. It starts at ridge regression of this strength.",
)
_MEMBERS = flags.DEFINE_integer(
    "members", 1, "Networks, each trained with its own seed, whose mean score is the ranker's.", lower_bound=1
)
_SEED = flags.DEFINE_integer("seed", 0, "Seed of the weights, the order of the lists and the synthetic data.")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/letor", "Where everything is written.")
_STRATEGY = flags.DEFINE_enum(
    "strategy",
    "none",
    training.STRATEGIES,
    "One device; all GPUs of this machine; or several processes, as TF_CONFIG says (docs/distributed.md). All of these "
    "train alike but for parameter_server, whose workers take their steps independently.",
)
_SELECT_BY = flags.DEFINE_enum(
    "select_by",
    "smooth",
    ["smooth", "ndcg"],
    "What tells the best epoch on the validation set: the smooth metric that is trained on (the papers' way, and "
    "steadier on few queries), or exact NDCG (always with a loss that is not made of a metric).",
)
_CACHE = flags.DEFINE_bool("cache", True, "Keep the parsed files in memory. Parameter servers need that.")
_CACHE_DIR = flags.DEFINE_string(
    "cache_dir",
    None,
    "Keep a binary copy of the files in this folder, for this and later runs; with --nocache batches come from there, "
    "for files larger than memory.",
)
_GROUP_BY_LENGTH = flags.DEFINE_bool(
    "group_by_length", False, "Train on batches of lists of similar length, which are quicker."
)


def _hyperparameter_flags() -> list[flags.FlagHolder[Any]]:
    """One flag for each hyperparameter that any loss has."""
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
        kinds[type(default)](name, None, f"Hyperparameter of {', '.join(takers[name])}. Default: the loss's own.")
        for name, default in defaults.items()
    ]


_HYPERPARAMETERS = _hyperparameter_flags()


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"What is {argv[1]!r}?")
    start = time.time()
    # The values of flags that are not given.
    for name, value in RECIPES[_RECIPE.value].items():
        flags.FLAGS.set_default(name, value)
    strategy = training.get_strategy(_STRATEGY.value)  # first: the processes of a cluster meet here
    output = pathlib.Path(_OUTPUT_DIR.value)
    output.mkdir(parents=True, exist_ok=True)
    files = data_files(output, write=training.is_chief(strategy))
    training.wait_for_workers(strategy)
    summary = data.scan_letor(files["train"])
    print(
        f"{summary.queries} queries with {summary.documents} documents of {summary.num_features} features to train on"
    )

    folders = member_folders(output)
    validations = [
        train_member(strategy, files, summary, folder, seed)
        for seed, folder in enumerate(folders, start=_SEED.value * len(folders))
    ]
    if training.is_chief(strategy):
        report(files, summary, dict(zip(folders, validations, strict=True)), output)
    training.wait_for_workers(strategy)  # all end together, so that all are started again if one fails
    print(f"Done in {time.time() - start:.0f} s: see {output}")


def member_folders(output: pathlib.Path) -> list[pathlib.Path]:
    """The folder of each network: the output's own if there is one."""
    return [output / f"member_{number + 1}" for number in range(_MEMBERS.value)] if _MEMBERS.value > 1 else [output]


def train_member(
    strategy: tf.distribute.Strategy, files: dict[str, str], summary: data.LetorSummary, folder: pathlib.Path, seed: int
) -> training.ExactValidation:
    """Trains a network; that of the best epoch is in best.keras of the folder."""
    if _STRATEGY.value != "parameter_server":  # where it would give all workers one order
        tf.keras.utils.set_random_seed(seed)
    with strategy.scope():
        model = models.FeedForwardScorer(
            hidden=hidden_layers(),
            normalization=None if _NORMALIZATION.value == "none" else _NORMALIZATION.value,
            dropout=_DROPOUT.value,
            linear_path=_LINEAR_PATH.value,
        )
        loss = losses.get(_LOSS.value, **loss_arguments())
        model.compile(optimizer=tf.keras.optimizers.Adam(_LEARNING_RATE.value), loss=loss, metrics=[exact_ndcg()])
        model.build([None, None, summary.num_features])

    watched = {"ndcg": exact_ndcg()}
    if isinstance(loss, losses.MetricLoss):
        watched["smooth"] = smooth_metric(loss)
    validation = training.ExactValidation(
        read(files["valid"], summary.num_features),
        list(watched.values()),
        monitor=watched.get(_SELECT_BY.value, watched["ndcg"]).name,
        path=folder / "best.keras",
        patience=_PATIENCE.value,
    )
    resumable = training.ResumableTraining(folder / "checkpoints", validation=validation, settings=settings(files))
    finished = resumable.restore(model)
    if finished:
        print(f"Resuming after {finished} finished epochs in {folder}")
    if finished < _EPOCHS.value and not validation.stopped:
        if _MEMBERS.value > 1:
            print(f"Training {folder.name} of {_MEMBERS.value}")
        train(model, files["train"], summary, finished, seed, [validation, resumable])
    return validation


def data_files(output: pathlib.Path, write: bool) -> dict[str, str]:
    """The files to work on; where none were given, the chief writes them first."""
    given = {"train": _TRAIN.value, "valid": _VALID.value, "test": _TEST.value}
    if all(given.values()):
        return given
    if any(given.values()):
        raise app.UsageError("--train, --valid and --test go together: give all three or none.")
    if not write:  # the chief does, under these names
        names = {"train": "train.txt", "valid": "vali.txt", "test": "test.txt"}
        return {part: str(output / "data" / name) for part, name in names.items()}
    print(f"No files given: writing synthetic data to {output / 'data'}")
    return {name: str(path) for name, path in data.write_synthetic_letor(output / "data", seed=_SEED.value).items()}


def read(pattern: str, num_features: int, **kwargs: Any) -> tf.data.Dataset:
    return data.read_letor(
        pattern,
        batch_size=_BATCH_SIZE.value,
        num_features=num_features,
        cache=_CACHE.value,
        cache_dir=_CACHE_DIR.value,
        **kwargs,
    )


def hidden_layers() -> str | list[int]:
    text = _HIDDEN.value
    return [int(width) for width in text.split(",")] if text[:1].isdigit() else text


def loss_arguments() -> dict[str, Any]:
    """The flags that were given; the loss refuses what it does not take."""
    taken = losses.hyperparameters(_LOSS.value)
    given = {flag.name: flag.value for flag in _HYPERPARAMETERS if flag.value is not None}
    # A recipe has hyperparameters for the losses that take them.
    unknown = {flag.name for flag in _HYPERPARAMETERS if flag.present} - set(taken)
    if unknown:
        raise app.UsageError(f"--loss={_LOSS.value} takes no --{sorted(unknown)[0]}.")
    return {name: value for name, value in given.items() if name in taken}


def exact_ndcg() -> tf.keras.metrics.Metric:
    """What trec_eval would say."""
    return metrics.NDCGMetric(gain="linear")


def smooth_metric(loss: losses.MetricLoss) -> tf.keras.metrics.Metric:
    """The metric that the loss is one minus of."""
    return metrics.MeanOverLists(loss.ranking, loss.metric, no_relevant="skip", ragged=False, name=_LOSS.value)


def settings(files: dict[str, str]) -> dict[str, Any]:
    """What must not change when a training is resumed."""
    chosen = (
        _LOSS,
        *_HYPERPARAMETERS,
        _LEARNING_RATE,
        _BATCH_SIZE,
        _HIDDEN,
        _NORMALIZATION,
        _DROPOUT,
        _LINEAR_PATH,
        _MEMBERS,
        _SEED,
        _SELECT_BY,
        _GROUP_BY_LENGTH,
    )
    return {**{flag.name: flag.value for flag in chosen}, "train": files["train"], "valid": files["valid"]}


def train(
    model: tf.keras.Model, pattern: str, summary: data.LetorSummary, finished: int, seed: int, callbacks: list[Any]
) -> None:
    epochs = _EPOCHS.value
    if not finished:
        # Streamed, so that nothing is read where there is nothing to learn.
        model.adapt(data.read_letor(pattern, batch_size=_BATCH_SIZE.value, num_features=summary.num_features))
    order: dict[str, Any] = {"seed": seed, "first_epoch": finished, "num_epochs": epochs - finished}
    order["group_by_length"] = _GROUP_BY_LENGTH.value
    if _STRATEGY.value == "parameter_server":  # each worker goes through the lists in an order of its own
        order |= {"seed": None, "num_epochs": None}
    lists = read(pattern, summary.num_features, shuffle_buffer=summary.queries, **order)
    model.fit(
        lists,
        initial_epoch=finished,
        epochs=epochs,
        steps_per_epoch=math.ceil(summary.queries / _BATCH_SIZE.value),
        shuffle=False,
        verbose=1 if sys.stdout.isatty() else 2,
        callbacks=callbacks,
    )


def report(
    files: dict[str, str],
    summary: data.LetorSummary,
    validations: dict[pathlib.Path, training.ExactValidation],
    output: pathlib.Path,
) -> None:
    """Evaluates the best model, and writes figures, ranking, curves and export."""
    for folder, validation in validations.items():
        print(f"Best epoch: {validation.best_epoch + 1} of {len(validation.history['loss'])}")
        evaluation.plot_training_curves(folder / "curves.png", validation.history, best_epoch=validation.best_epoch)
    members = [tf.keras.models.load_model(folder / "best.keras") for folder in validations]
    model = members[0] if len(members) == 1 else average(members, summary, output / "best.keras")
    figures = {}
    for part in ("valid", "test"):
        lists = list(training.score_queries(model, read(files[part], summary.num_features, return_ids=True)))
        figures[part] = evaluation.trec_eval(lists)
        print(f"{part:>6}: " + "  ".join(f"{name} {value:.4f}" for name, value in figures[part].items()))
        if part == "test":
            evaluation.write_run(output / "test.run", lists, tag=f"tfr_smooth-{tfr_smooth.__version__}")
    card = serving.ModelCard(
        data={
            **files,
            "queries": summary.queries,
            "documents": summary.documents,
            "features": f"LETOR's 1 to {summary.num_features}, in this order",
        },
        training={name: value for name, value in settings(files).items() if name not in files and value is not None},
        loss=losses.get(_LOSS.value, **loss_arguments()),
        metrics=figures,
    )
    serving.export_ranker(model, output / "export", num_features=summary.num_features, card=card)
    # The figures last: where they are, everything is.
    _files.write_text(output / "metrics.json", [json.dumps(figures, indent=2) + "\n"])


def average(members: list[tf.keras.Model], summary: data.LetorSummary, path: pathlib.Path) -> tf.keras.Model:
    """Writes the model of the members' mean score."""
    model = models.AverageScorer(members)
    model.build([None, None, summary.num_features])
    with _files.replacing(path) as unfinished:
        model.save(unfinished)
    return model


if __name__ == "__main__":
    logging.set_verbosity(logging.ERROR)
    app.run(main)
