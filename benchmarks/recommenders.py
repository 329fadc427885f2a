"""Compares losses for recommendation: the same factors, with hyperparameters from equally many settings.

python benchmarks/recommenders.py --train=train.txt --test=test.txt --output=output/recommenders
python benchmarks/recommenders.py --train=ua.base --test=ua.test --separator=tab --batch_size=64 --output=output/100k

For each method, six settings are trained without a tenth of each user's training items. The setting with the best
NDCG@20 on these items is then trained on all of them, once per seed, and evaluated on the test items. The output
folder contains one file per training, so the same command resumes. The table is in Markdown; p is that of the paired
randomization test of NDCG@20, averaged over seeds, against the first method.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import pathlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from absl import app, flags
from implicit.cpu.als import AlternatingLeastSquares
from implicit.cpu.bpr import BayesianPersonalizedRanking

from tfr_smooth import evaluation, losses, recommendation

sys.path.append(str(pathlib.Path(__file__).absolute().parents[1]))
import experiments  # noqa: E402
from experiments.implicit_models import Implicit  # noqa: E402

_TRAIN = flags.DEFINE_string("train", None, "Training file.", required=True)
_TEST = flags.DEFINE_string("test", None, "Test file.", required=True)
_SEPARATOR = flags.DEFINE_enum(
    "separator", "", ["", ",", "::", "tab"], "Separator of files of ratings. Default: files `user item item ...`."
)
_METHODS = flags.DEFINE_list("methods", None, "Methods to run. Default: all.")
_DIM = flags.DEFINE_integer("dim", 64, "Dimension of the factors.", lower_bound=1)
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 64, "Users per batch.", lower_bound=1)
_EPOCHS = flags.DEFINE_integer("epochs", 60, "Largest number of epochs of each part.", lower_bound=1)
_SEEDS = flags.DEFINE_integer("seeds", 3, "Trainings of the best setting.", lower_bound=1)
_WORKERS = flags.DEFINE_integer("workers", 1, "Processes, each with one thread.", lower_bound=0)
_OUTPUT = flags.DEFINE_string("output", "output/recommenders", "Folder of the results.")

MEASURES = ("recall_20", "ndcg_cut_20")
_RATES, _WARM_RATES = [0.003, 0.01], [3e-4, 1e-3]


@dataclasses.dataclass(frozen=True)
class Method:
    """A way to train, and its settings.

    Args:
      make: Settings to a model with `fit` and `scores`.
      grid: Values of each setting.
      after: Whether training starts with the best softmax model.
    """

    make: Callable[..., Any]
    grid: dict[str, list[Any]]
    after: bool = False

    @property
    def settings(self) -> list[dict[str, Any]]:
        return [dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values())]


def softmax(**settings: Any) -> recommendation.Recommender:
    return _recommender(loss=None, **settings)


def loss(name: str, **options: Any) -> Callable[..., recommendation.Recommender]:
    """Returns a function of settings, of which "loss_..." are those of the loss."""

    def make(*, softmax_epochs: int = 0, **settings: Any) -> recommendation.Recommender:
        own = {key.removeprefix("loss_"): settings.pop(key) for key in list(settings) if key.startswith("loss_")}
        return _recommender(loss=losses.get(name, **options, **own), softmax_epochs=softmax_epochs, **settings)

    return make


def _recommender(**settings: Any) -> recommendation.Recommender:
    return recommendation.Recommender(verbose=False, baselines=False, **settings)


# The best temperature on the held-out items of MovieLens-100K is in the middle.
_TEMPERATURES = [0.25, 0.3, 0.35]
_SOFTMAX_GRID = {"temperature": _TEMPERATURES, "softmax_learning_rate": _RATES}
# For methods that train all epochs with their loss, and after a softmax loss.
_LOSSES = {
    "SmoothI-NDCG@50": (loss("smoothi_ndcg", topn=50, delta=0.01), {"loss_alpha": [1.0, 3.0, 10.0]}),
    # In the authors' searches, for cosines that are not divided by a temperature: 0.5 to 3, and the temperature of
    # softmax.
    "SL@20": (loss("softmax_at_k", topn=20), {"loss_weight_temperature": [5.0, 11.25, 15.0]}),
    "PSL": (loss("psl"), {"loss_activation": ["tanh", "atan", "relu"]}),
    "all pairs (BPR)": (loss("pairwise_logistic"), {"loss_temperature": [0.3, 1.0, 3.0]}),
    "LambdaLoss": (loss("lambda_loss"), {"loss_sigma": [0.3, 1.0, 3.0]}),
    "ApproxNDCG": (loss("approx_ndcg"), {"loss_alpha": [1.0, 3.0, 10.0]}),
}
METHODS = {
    "softmax": Method(softmax, _SOFTMAX_GRID),
    "sampled softmax (100 negatives)": Method(functools.partial(softmax, negatives=100), _SOFTMAX_GRID),
    # The control for the losses after softmax, whose learning rates are lower, too.
    "softmax then softmax": Method(
        loss("softmax"), {"learning_rate": [1e-4, 2e-4, 3e-4, 5e-4, 1e-3, 2e-3]}, after=True
    ),
    "softmax (weights of DCG@20)": Method(
        loss("softmax", lambda_weight=losses.DCGLambdaWeight(topn=20)),
        {"temperature": _TEMPERATURES, "learning_rate": _RATES},
    ),
    "sampled pairs (BPR of implicit)": Method(
        lambda **settings: Implicit(BayesianPersonalizedRanking(iterations=100, **settings)),
        {"learning_rate": [0.01, 0.03, 0.1], "regularization": [0.001, 0.01]},
    ),
    "iALS": Method(
        lambda **settings: Implicit(AlternatingLeastSquares(**settings)),
        {"regularization": [10.0, 50.0, 200.0], "alpha": [2.0, 5.0]},
    ),
    "EASE": Method(recommendation.EASE, {"strength": [30.0, 60.0, 125.0, 250.0, 500.0, 1000.0]}),
} | {
    f"softmax then {name}" if after else name: Method(make, grid | {"learning_rate": rates}, after)
    for name, (make, grid) in _LOSSES.items()
    for after, rates in ((True, _WARM_RATES), (False, _RATES))
}


@dataclasses.dataclass(frozen=True)
class RecommenderJob(experiments.StoredJob):
    """A training without the held-out items, or on all training items with an evaluation on the test items."""

    files: tuple[str, str, str]
    method: str
    settings: dict[str, Any] = dataclasses.field(hash=False)
    is_search: bool
    seed: int

    @property
    def description(self) -> dict[str, Any]:
        step = "search" if self.is_search else "test"
        return {"dataset": pathlib.Path(self.files[0]).stem, "fold": step, "seed": self.seed} | {
            "files": experiments.digest(self.files[:2]),
            "method": self.method,
            "settings": self.settings,
        }

    @property
    def readable(self) -> str:
        return self.method

    def compute(self, cache: pathlib.Path, unfinished: pathlib.Path) -> experiments.Result:
        train, test = read(*self.files)
        started = time.perf_counter()
        model = METHODS[self.method].make(**self.settings)
        is_ours = isinstance(model, recommendation.Recommender)
        if is_ours and self.is_search:
            ndcg = model.fit(train).history_["val_ndcg_cut_20"][model.best_epoch_ - 1]
            return experiments.Result({"ndcg": ndcg, "epochs": model.best_epoch_}, {})
        if self.is_search:
            train, test = recommendation.hold_out(train, items=0.1, seed=0)
        model.fit(train, **({"checkpoint_dir": unfinished} if is_ours else {}))
        fit_seconds = time.perf_counter() - started
        result = recommendation.evaluate(model, test, seen=train, measures=MEASURES)
        return experiments.Result(
            {"ndcg": result.means["ndcg_cut_20"].mean, "fit_seconds": fit_seconds}, dict(result.values)
        )


@functools.lru_cache(maxsize=1)
def read(train: str, test: str, separator: str) -> tuple[recommendation.Interactions, recommendation.Interactions]:
    if not separator:
        return recommendation.read_interactions(train, test)
    names, separator = ["user", "item", "rating", "time"], {"tab": "\t"}.get(separator, separator)
    frames = [pd.read_csv(path, sep=separator, names=names, engine="python") for path in (train, test)]
    return recommendation.from_dataframe(*frames, user="user", item="item", time="time")


def job(method: str, settings: dict[str, Any], *, seed: int = 0, is_search: bool) -> RecommenderJob:
    files = _TRAIN.value, _TEST.value, _SEPARATOR.value
    if method in ("sampled pairs (BPR of implicit)", "iALS"):
        settings = settings | {"factors": _DIM.value, "random_state": seed}
    elif method != "EASE":
        settings = settings | {"dim": _DIM.value, "epochs": _EPOCHS.value, "seed": seed, "refit": not is_search}
        settings |= {"batch_size": _BATCH_SIZE.value, "softmax_batch_size": _BATCH_SIZE.value}
        settings |= {} if "softmax_epochs" in settings else {"softmax_epochs": 0}
        if METHODS[method].make is softmax or isinstance(METHODS[method].make, functools.partial):
            settings |= {"softmax_epochs": _EPOCHS.value}
    return RecommenderJob(files, method, settings, is_search, seed)


def run(pending: list[RecommenderJob]) -> list[experiments.Result]:
    """Returns the results of the jobs, which are stored."""

    def progress(ended: Any, title: str, total: int) -> Any:
        for each in ended:
            print(f"{time.strftime('%H:%M:%S')}  {each[0].file}", flush=True)
            yield each

    failures = experiments.run_jobs(pending, _OUTPUT.value, workers=_WORKERS.value, progress=progress)
    if failures:
        raise RuntimeError(failures[0].message)
    return [experiments.read_result(each, _OUTPUT.value) for each in pending]


def best(method: str) -> dict[str, Any]:
    """Returns the settings of the method with the best NDCG@20 on held-out items."""
    given: dict[str, Any] = {}
    if METHODS[method].after:
        given = {**best("softmax"), "softmax_epochs": _EPOCHS.value}
    elif method in _LOSSES:
        given = {"temperature": best("softmax")["temperature"]}
    settings = [given | chosen for chosen in METHODS[method].settings]
    found = run([job(method, each, is_search=True) for each in settings])
    return max(zip(settings, found, strict=True), key=lambda pair: pair[1].description["ndcg"])[0]


def rows(method: str, first: list[np.ndarray] | None) -> tuple[str, list[np.ndarray]]:
    """Returns a line of the table, and NDCG@20 [users] of each seed."""
    settings = best(method)
    # The closed form has no seed.
    seeds = range(1 if method == "EASE" else _SEEDS.value)
    found = run([job(method, settings, seed=seed, is_search=False) for seed in seeds])
    values = [each.arrays["ndcg_cut_20"] for each in found]
    cells = [method]
    for measure in MEASURES:
        means = [float(each.arrays[measure].mean()) for each in found]
        cells.append(f"{statistics.mean(means):.4f}" + (f" ± {statistics.stdev(means):.4f}" if len(means) > 1 else ""))
    if first is None:
        cells.append("")
    else:
        pair = [{str(user): value for user, value in enumerate(np.mean(each, axis=0))} for each in (values, first)]
        cells.append(f"{evaluation.randomization_test(*pair).p_value:.4f}")
    cells.append(f"{statistics.mean(each.description['fit_seconds'] for each in found):.0f}")
    tuned = {name: value for name, value in settings.items() if name in METHODS[method].grid}
    shown = ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in tuned.items()
    )
    return "| " + " | ".join([*cells, shown]) + " |", values


def main(argv: list[str]) -> None:
    del argv
    names = _METHODS.value or list(METHODS)
    if unknown := set(names) - set(METHODS):
        raise app.UsageError(f"--methods must be some of {'; '.join(METHODS)}, got {sorted(unknown)}.")
    lines, first = ["| method | Recall@20 | NDCG@20 | p | seconds | setting |", "|---|---|---|---|---|---|"], None
    for name in names:
        line, values = rows(name, first)
        first = first or values
        lines.append(line)
        print("\n".join(lines), flush=True)


if __name__ == "__main__":
    app.run(main)
