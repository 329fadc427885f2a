"""Trains and evaluates a recommender on the whole catalog.

    pip install '.[plots]' absl-py
    python examples/recommend.py --train=train.txt --test=test.txt --output_dir=output/movies
    python examples/recommend.py --train=ratings.csv --least_rating=4 --output_dir=output/ratings

Files contain lines `user item item ...`, or, if their names end in .csv, .dat or .data (also with .gz), one rating per
line, `user,item,rating,time`, separated by commas, `::` or tabs. Without --test, a fifth of the items of each user is
the test part. The same command resumes after the last finished epoch. OUTPUT_DIR contains
    metrics.json     measures of the test items, of the recommender and the baselines
    measures.png     the same as bars
    training.png     training curves: NDCG@20 of held-out items by epoch, first with the softmax loss, then with --loss
    recommender.keras  the recommender, which tfr_smooth.recommendation.Recommender.load reads
    training/        the checkpoints for resuming
"""

from __future__ import annotations

import functools
import pathlib
import re
from typing import Any

import startup

# isort: split
import estimator_flags
import pandas as pd
from absl import flags
from command_line import errors_in_one_line, write_json
from matplotlib.figure import Figure

from tfr_smooth import recommendation

_TRAIN = flags.DEFINE_string("train", None, "Training file: a path or a glob pattern.", required=True)
_TEST = flags.DEFINE_string("test", None, "Test file. Default: a random fifth of the items of each user.")
_LEAST_RATING = flags.DEFINE_float("least_rating", None, "Lower ratings are dropped.")
_COMPARE = flags.DEFINE_string("compare", "popularity ease", "Models to compare: some of popularity, ease, ials, bpr.")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/recommend", "Folder for all output.")
_RECOMMENDER = estimator_flags.EstimatorFlags(recommendation.Recommender, page="docs/recommendation.md")
flags.adopt_module_key_flags(estimator_flags)  # --help shows them too.


def implicit_model(name: str, *, dim: int | None, seed: int, **others: Any) -> Any:
    """Returns a model of the package implicit, which the extra `experiments` installs."""
    from implicit.cpu.als import AlternatingLeastSquares
    from implicit.cpu.bpr import BayesianPersonalizedRanking

    from experiments.implicit_models import Implicit

    if name == "bpr":
        return Implicit(BayesianPersonalizedRanking(factors=dim or 256, random_state=seed))
    return Implicit(AlternatingLeastSquares(factors=dim or 256, regularization=50.0, alpha=5.0, random_state=seed))


# By name, the baseline for the arguments of the recommender.
BASELINES = {
    "popularity": lambda **params: recommendation.Popularity(),
    "ease": lambda **params: recommendation.EASE(),
    "ials": functools.partial(implicit_model, "ials"),
    "bpr": functools.partial(implicit_model, "bpr"),
}
SHORT = {"ndcg_cut": "ndcg", "success": "hit_rate"}
# On the plot.
SHOWN = {"recall_20": "Recall@20", "ndcg_20": "NDCG@20", "hit_rate_20": "hit rate@20"}


def main(argv: list[str]) -> None:
    with errors_in_one_line(ImportError, OSError, TypeError, ValueError):
        if len(argv) > 1:
            raise ValueError(f"Unknown argument {argv[1]!r}. Flags start with --.")
        if unknown := set(_COMPARE.value.split()) - set(BASELINES):
            raise ValueError(f"--compare must be some of {', '.join(BASELINES)}, got {sorted(unknown)}.")
        recommender = _RECOMMENDER.make()
        params = recommender.get_params()
        train, test = read(params["seed"])
        print(f"train: {train}\n test: {test}")
        output = pathlib.Path(_OUTPUT_DIR.value)
        output.mkdir(parents=True, exist_ok=True)
        recommender.fit(train, checkpoint_dir=output / "training")
        recommender.save(output / "recommender.keras")
        measured = {"recommender": measure("recommender", recommender, train, test)}
        for name in _COMPARE.value.split():
            measured[name] = measure(name, BASELINES[name](**params).fit(train), train, test)
        plot(recommender, measured, output)
    # Written last: if this file exists, the output is complete.
    write_json(output / "metrics.json", {**measured.pop("recommender"), "compared": measured})
    print(f"Output: {output}")


def read(seed: int) -> tuple[recommendation.Interactions, recommendation.Interactions]:
    files = [path for path in (_TRAIN.value, _TEST.value) if path]
    ratings = re.search(r"\.(csv|dat|data)(\.gz)?$", _TRAIN.value)
    if ratings is None:
        if _LEAST_RATING.value is not None:
            raise ValueError("--least_rating needs files of ratings, whose names end in .csv, .dat or .data.")
        found = recommendation.read_interactions(*files)
    else:
        separator = {"csv": ",", "dat": "::", "data": "\t"}[ratings[1]]
        names = ["user", "item", "rating", "time"]
        frames = [pd.read_csv(path, sep=separator, names=names, engine="python") for path in files]
        if _LEAST_RATING.value is not None:
            frames = [frame[frame["rating"] >= _LEAST_RATING.value] for frame in frames]
        found = recommendation.from_dataframe(*frames, user="user", item="item", time="time")
    return found if _TEST.value else recommendation.hold_out(found, seed=seed)


def plot(recommender: recommendation.Recommender, measured: dict[str, dict[str, float]], output: pathlib.Path) -> None:
    """Draws the training curves, and bars of the measures of all recommenders."""
    history = {name: values for name, values in recommender.history_.items() if name != "loss"}  # two different losses
    pd.DataFrame(history).plot(subplots=True)[0].figure.savefig(output / "training.png")
    figure = Figure(figsize=(8.0, 3.5), layout="constrained")
    axes, width = figure.add_subplot(), 0.8 / len(measured)
    for place, (name, values) in enumerate(measured.items()):
        bars = [values[shown] for shown in SHOWN]
        axes.bar([at + place * width for at in range(len(SHOWN))], bars, width, label=name.replace("_", " "))
    axes.set_xticks([at + 0.4 - width / 2 for at in range(len(SHOWN))], SHOWN.values())
    axes.grid(axis="y")
    axes.legend()
    figure.savefig(output / "measures.png", dpi=150)


def measure(name: str, scorer: Any, train: Any, test: Any) -> dict[str, float]:
    result = recommendation.evaluate(scorer, test, seen=train)
    means = {measure: each.mean for measure, each in result.means.items()}
    found = {}
    for long, value in means.items():
        measure, _, cutoff = long.rpartition("_")
        found[f"{SHORT.get(measure, measure)}_{cutoff}" if measure else long] = value
    print(f"{name:>11}: " + "  ".join(f"{measure} {value:.4f}" for measure, value in found.items()))
    return found


if __name__ == "__main__":
    startup.run(
        main, resume="The same command resumes after the last finished epoch.", flags_parser=estimator_flags.parse
    )
