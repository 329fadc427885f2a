"""Searches loss, temperature, learning rate and width with Optuna, with cross-validation over the folds of a data set.

    pip install '.[tune]' absl-py
    python examples/tune.py --data=MQ2008 --losses=smoothi_ndcg,approx_ndcg --trials=50 --output_dir=output/tune

A trial trains on one fold after the other. It is pruned if its mean is below the median of the earlier trials. When
restarted, the search resumes: trials are stored in OUTPUT_DIR/trials.db, and an interrupted trial keeps its finished
folds. Run one process per folder. OUTPUT_DIR contains
    best.json   the best trial: its value and its settings
    config.json the best trial for examples/compare_losses.py --config=
    trials.csv  all trials
    results/    the results of each training, as examples/compare_losses.py stores them
"""

from __future__ import annotations

import pathlib
import sys
import time
from typing import Any

import startup

# isort: split
from absl import app, flags
from command_line import errors_in_one_line, json_flag, write_json

import experiments

try:
    import optuna
except ImportError:
    sys.exit("error: examples/tune.py requires the extra `tfr_smooth[tune]`.")

_DATA = flags.DEFINE_string(
    "data", None, "Folder with Fold1 .. FoldK, or LETOR's five parts S1.txt .. S5.txt; see docs/data_sets.md."
)
_TRAIN = flags.DEFINE_string("train", None, "Training files of a single split: a path or a glob pattern.")
_VALID = flags.DEFINE_string("valid", None, "Validation files of a single split.")
_TEST = flags.DEFINE_string("test", None, "Test files of a single split; the search does not use them.")
_LOSSES = flags.DEFINE_list("losses", ["smoothi_ndcg", "approx_ndcg", "soft_ndcg"], "Losses to search.")
_HIDDEN = flags.DEFINE_list("hidden", ["64", "256", "1024"], "Widths to search.")
_LEARNING_RATE = flags.DEFINE_list("learning_rate", ["0.0003", "0.03"], "Lowest and highest learning rate.")
_SETTINGS = json_flag(
    "settings",
    'Settings of all trials as JSON, such as {"epochs": 20}. Default: {"recipe": "default", "members": 1}.',
)
_TRIALS = flags.DEFINE_integer("trials", 50, "Total number of trials, including those of earlier runs.", lower_bound=1)
_SELECT_BY = flags.DEFINE_enum("select_by", "ndcg", experiments.MEASURES, "Validation measure to maximize.")
_SEED = flags.DEFINE_integer("seed", 0, "Seed of the trainings and of the search.", lower_bound=0)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/tune", "Folder for all output.")

# By the first word of a loss's name: its temperature, and the least and the largest value that the papers searched.
TEMPERATURES = {
    "smoothi": ("alpha", 0.1, 100.0),
    "approx": ("alpha", 0.1, 100.0),
    "soft": ("sigma", 1e-4, 1.0),
    "neuralsort": ("temperature", 0.1, 100.0),
    "softsort": ("temperature", 0.1, 100.0),
    "fastsort": ("regularization_strength", 0.01, 10.0),
    "sinkhorn": ("epsilon", 0.01, 10.0),
}
_FINISHED = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    split = [_TRAIN.value, _VALID.value, _TEST.value]
    if any(split) == bool(_DATA.value) or any(split) != all(split):
        raise app.UsageError("Give either --data, or all of --train, --valid and --test.")
    with errors_in_one_line(OSError, ValueError):
        dataset = experiments.one_split(*split) if all(split) else experiments.find_folds(_DATA.value)
    output = pathlib.Path(_OUTPUT_DIR.value)
    output.mkdir(parents=True, exist_ok=True)
    search = open_search(output, dataset)
    done = len(search.get_trials(states=_FINISHED))
    print(f"{done} of {_TRIALS.value} trials are done, on {len(dataset.folds)} folds each")
    start = time.monotonic()

    def show(search: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        now = len(search.get_trials(states=_FINISHED))
        left = (time.monotonic() - start) / (now - done) * (_TRIALS.value - now)
        figure = f"{trial.value:.4f}" if trial.state == optuna.trial.TrialState.COMPLETE else "pruned"
        best = f"best {search.best_value:.4f}, " if search.get_trials(states=_FINISHED[:1]) else ""
        name = trial.user_attrs["ranker"]
        print(f"[{now}/{_TRIALS.value}] {_SELECT_BY.value} {figure} ({best}{left:.0f} s left) {name}", flush=True)

    search.optimize(lambda trial: objective(trial, dataset), n_trials=max(0, _TRIALS.value - done), callbacks=[show])
    report(search, output)


def open_search(output: pathlib.Path, dataset: experiments.Dataset) -> optuna.Study:
    """Opens the search of a folder; an interrupted trial is first in its queue."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = optuna.storages.RDBStorage(f"sqlite:///{output.absolute() / 'trials.db'}")
    search = optuna.create_study(
        storage=storage,
        study_name="tune",
        direction="maximize",
        load_if_exists=True,
        pruner=optuna.pruners.MedianPruner(),
    )
    # With the same seed in each run, the sampler would draw the same settings again.
    search.sampler = optuna.samplers.TPESampler(seed=_SEED.value + len(search.trials))
    chosen = (_LOSSES, _HIDDEN, _LEARNING_RATE, _SETTINGS, _SELECT_BY, _SEED)
    about = {
        "data": {fold: dataset.digests(fold) for fold in dataset.folds},
        **{flag.name: flag.value for flag in chosen},
    }
    before = search.user_attrs.get("about", about)
    changed = [name for name in about if before.get(name) != about[name]]
    if changed:
        raise app.UsageError(
            f"--{changed[0]} was {before.get(changed[0])} in this --output_dir, got {about[changed[0]]}: "
            "use another --output_dir."
        )
    search.set_user_attr("about", about)
    last = search.trials[-1] if search.trials else None
    if last is not None and not last.state.is_finished():
        search.tell(last.number, state=optuna.trial.TrialState.FAIL)
    if last is not None and last.state not in _FINISHED:
        search.enqueue_trial(last.params)
    return search


def objective(trial: optuna.Trial, dataset: experiments.Dataset) -> float:
    """Trains on each fold and returns the mean validation measure."""
    loss = trial.suggest_categorical("loss", _LOSSES.value)
    low, high = map(float, _LEARNING_RATE.value)
    chosen: dict[str, Any] = {
        "learning_rate": trial.suggest_float("learning_rate", low, high, log=True),
        "hidden": [trial.suggest_categorical("hidden", [int(width) for width in _HIDDEN.value])],
    }
    # The temperature: its name and scale differ between losses.
    for name, values in experiments.RANKERS[loss].searched.items():
        if name not in chosen:
            chosen[name] = trial.suggest_float(f"{loss}.{name}", min(values), max(values), log=True)
    entry = experiments.Entry(loss, {**(_SETTINGS.value or {"recipe": "default", "members": 1}), **chosen})
    trial.set_user_attr("ranker", entry.label)
    trial.set_user_attr("settings", {"ranker": loss, **entry.settings})
    (settings,) = entry.candidates()
    results: list[float] = []
    for fold in dataset.folds:
        job = experiments.Job(dataset, fold, loss, settings, _SEED.value)
        for failure in experiments.run_jobs([job], _OUTPUT_DIR.value, workers=0):
            raise RuntimeError(failure.message)
        results.append(experiments.read_result(job, _OUTPUT_DIR.value).description["valid"][_SELECT_BY.value])
        trial.report(sum(results) / len(results), step=len(results))
        if len(results) < len(dataset.folds) and trial.should_prune():
            raise optuna.TrialPruned
    return sum(results) / len(results)


def report(search: optuna.Study, output: pathlib.Path) -> None:
    """Writes all trials and the best trial."""
    best = search.best_trial
    label, settings = (best.user_attrs[name] for name in ("ranker", "settings"))
    search.trials_dataframe().to_csv(output / "trials.csv", index=False)
    write_json(output / "config.json", {"rankers": {label: settings}})
    write_json(output / "best.json", {_SELECT_BY.value: best.value, "settings": settings})
    print(f"Best trial: {best.number}, with {_SELECT_BY.value} {best.value:.4f}:\n{label}\nOutput: {output}")


if __name__ == "__main__":
    startup.run(main, resume="The same command resumes the search.")
