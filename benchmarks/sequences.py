"""Compares recommenders of the next item: the last item of each user is the test, the last but one the validation.

python benchmarks/sequences.py --data=u.data --separator=tab --output=output/100k
python benchmarks/sequences.py --data=Toys_and_Games.txt --methods="popularity,Markov chain" --output=output/toys

The data are ratings `user item rating time`, or lines `user item item ...` in order of time. All items that the user
has not seen are ranked. The settings of a method with the best NDCG@10 on the validation items are fitted again on all
items but the last, except for SASRec, which is only given the validation items as the latest ones, as are all with
--norefit, the protocol of publications. With --settings='{"Recommender of sequences": {"items": "FILE"}}', items have
the attributes in a JSON file, an object of lists. Each method runs in a process of its own. The output folder has a
file per method and seed, so the same command resumes. The table is in Markdown, with means over seeds, the processor
seconds of a fit, those of an epoch and the largest resident memory.
"""

from __future__ import annotations

import dataclasses
import functools
import gzip
import itertools
import json
import pathlib
import resource
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import tensorflow as tf
from absl import app, flags

from tfr_smooth import recommendation

sys.path.append(str(pathlib.Path(__file__).absolute().parents[1]))
import experiments  # noqa: E402

_DATA = flags.DEFINE_string("data", None, "File of interactions.", required=True)
_SEPARATOR = flags.DEFINE_enum(
    "separator", "", ["", ",", "::", "tab"], "Separator of a file of ratings. Default: a file `user item item ...`."
)
_METHODS = flags.DEFINE_list("methods", None, "Methods to run. Default: all.")
_SETTINGS = flags.DEFINE_string(
    "settings", "{}", "JSON object: for methods, their settings, or a list of settings to choose from."
)
_REFIT = flags.DEFINE_boolean("refit", True, "Whether to fit again with the validation items.")
_SEEDS = flags.DEFINE_integer("seeds", 1, "Trainings of methods that are random.", lower_bound=1)
_WORKERS = flags.DEFINE_integer(
    "workers", 1, "1: each method in a process of its own; 0: all in this process, whose memory only grows.", 0, 1
)
_OUTPUT = flags.DEFINE_string("output", "output/sequences", "Folder of the results.")

MEASURES = {"success_10": "HR@10", "ndcg_cut_10": "NDCG@10", "recip_rank_10": "MRR@10"}
_SELECT_BY = "ndcg_cut_10"


class Split(NamedTuple):
    """The parts of the interactions; `whole` contains `train` and `validation`."""

    train: recommendation.Interactions
    validation: recommendation.Interactions
    whole: recommendation.Interactions
    test: recommendation.Interactions


@functools.lru_cache(maxsize=1)
def read(path: str, separator: str) -> Split:
    if separator:
        names, separator = ["user", "item", "rating", "time"], {"tab": "\t"}.get(separator, separator)
        frame = pd.read_csv(path, sep=separator, names=names, engine="python" if len(separator) > 1 else "c")
        frame = frame.sort_values("time", kind="stable")
    else:
        with gzip.open(path, "rt") if path.endswith(".gz") else open(path, encoding="utf-8") as file:
            lines = [line.split() for line in file]
        frame = pd.DataFrame([(line[0], item) for line in lines for item in line[1:]], columns=["user", "item"])
        frame["time"] = -1.0 * frame.groupby("user").cumcount(ascending=False)
    interactions = recommendation.from_dataframe(frame, user="user", item="item", time="time")
    whole, test = recommendation.hold_out(interactions, items=1, by="time")
    return Split(*recommendation.hold_out(whole, items=1, by="time"), whole, test)


def means(scorer: Any, test: recommendation.Interactions, seen: recommendation.Interactions) -> dict[str, float]:
    found = recommendation.evaluate(scorer, test, seen=seen, measures=MEASURES)
    return {name: estimate.mean for name, estimate in found.means.items()}


class Measured(NamedTuple):
    """A fit with the values on the validation items, and the model for the test."""

    validation: dict[str, float]
    model: Callable[[], Any]
    seconds: float
    epochs: int | None = None


def baseline(make: Callable[..., Any], split: Split, seed: int, refit: bool, **settings: Any) -> Measured:
    del seed
    started = time.process_time()
    model = make(**settings).fit(split.train)
    seconds = time.process_time() - started
    values = means(model, split.validation, split.train)

    def tested() -> Any:
        if refit:
            return make(**settings).fit(split.whole)
        model.interactions_ = split.whole  # the items that it predicts from
        return model

    return Measured(values, tested, seconds)


def recent_popularity(fraction: float) -> recommendation.Baseline:
    """Returns the popularity in the time of the latest fraction of the interactions."""

    class Recent(recommendation.Popularity):
        def fit(self, interactions: recommendation.Interactions) -> recommendation.Baseline:
            is_recent = interactions.times >= np.quantile(interactions.times, 1.0 - fraction)
            return super().fit(interactions.keeping(is_recent))

    return Recent()


def item_knn(neighbors: int) -> Any:
    """Returns the nearest items of the package implicit, which count an item as its own neighbor."""
    from implicit.nearest_neighbours import CosineRecommender

    from experiments.implicit_models import Implicit

    return Implicit(CosineRecommender(K=neighbors + 1))


def recommender(split: Split, seed: int, refit: bool, items: str | None = None, **settings: Any) -> Measured:
    table = None
    if items:
        attributes = json.loads(pathlib.Path(items).read_text())
        sets = ["|".join(map(str, attributes.get(str(item), ()))) for item in split.train.item_ids]
        table = pd.DataFrame({"item": split.train.item_ids, "attributes": sets})
        settings["kinds"] = {"attributes": "set:|"}
    model = recommendation.Recommender(seed=seed, select_by=_SELECT_BY, verbose=False, refit=refit, **settings)
    started = time.process_time()
    model.fit(split.train, items=table, validation=split.validation)
    value = model.history_[f"val_{_SELECT_BY}"][model.best_epoch_ - 1]
    # With the second training, which repeats the epochs up to the best one.
    epochs = len(model.history_["loss"]) + refit * model.best_epoch_
    return Measured({_SELECT_BY: value}, lambda: model, time.process_time() - started, epochs)


class SASRec:
    """Kang and McAuley, "Self-Attentive Sequential Recommendation", ICDM 2018, with cross-entropy over all items.

    Items are numbered from 1; 0 is padding.
    """

    def __init__(self, split: Split, *, dim: int, length: int, blocks: int, dropout: float) -> None:
        self._split, self._length = split, length
        layers = tf.keras.layers
        items = tf.keras.Input([length], dtype="int32")
        self._items = layers.Embedding(1 + split.train.num_items, dim)
        positions = layers.Embedding(length, dim)
        hidden = layers.Dropout(dropout)(self._items(items) * dim**0.5 + positions(tf.range(length)))
        mask = layers.Lambda(lambda x: tf.tile((x > 0)[:, tf.newaxis], [1, length, 1]))(items)
        for _ in range(blocks):
            normed = layers.LayerNormalization(epsilon=1e-6)(hidden)
            attention = layers.MultiHeadAttention(1, dim, dropout=dropout)
            attended = attention(normed, hidden, attention_mask=mask, use_causal_mask=True)
            hidden += layers.Dropout(dropout)(attended)
            inner = layers.Dense(dim, activation="relu")(layers.LayerNormalization(epsilon=1e-6)(hidden))
            hidden += layers.Dropout(dropout)(layers.Dense(dim)(layers.Dropout(dropout)(inner)))
        self._network = tf.keras.Model(items, layers.LayerNormalization(epsilon=1e-6)(hidden))

    def fit(self, *, epochs: int, patience: int, batch_size: int, learning_rate: float, seed: int) -> tuple[Any, int]:
        """Trains until the validation does not improve; returns its best values and the number of epochs."""
        train, optimizer = self._split.train, tf.keras.optimizers.Adam(learning_rate)
        sequences = 1 + train.latest(np.flatnonzero(train.items_per_user > 1), self._length + 1)[0]
        network, random = self._network, np.random.default_rng(seed)

        @tf.function(input_signature=[tf.TensorSpec([None, self._length + 1], tf.int32)])
        def step(batch: tf.Tensor) -> tf.Tensor:
            with tf.GradientTape() as tape:
                hidden = network(batch[:, :-1], training=True)
                is_known = batch[:, :-1] > 0
                logits = tf.matmul(hidden[is_known], self._items.embeddings[1:], transpose_b=True)
                labels = batch[:, 1:][is_known] - 1
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
            gradients = tape.gradient(loss, network.trainable_variables)
            optimizer.apply_gradients(zip(gradients, network.trainable_variables, strict=True))
            return loss

        best, best_epoch, weights = {_SELECT_BY: -1.0}, 0, []
        for epoch in range(epochs):
            order = random.permutation(len(sequences))
            for start in range(0, len(order), batch_size):
                step(tf.constant(sequences[order[start : start + batch_size]]))
            values = means(self.scorer(train), self._split.validation, train)
            print(f"SASRec, epoch {epoch}: {values}", file=sys.stderr, flush=True)
            if values[_SELECT_BY] > best[_SELECT_BY]:
                best, best_epoch, weights = values, epoch, network.get_weights()
            elif epoch - best_epoch >= patience:
                break
        network.set_weights(weights)
        return best, epoch + 1

    def scorer(self, history: recommendation.Interactions) -> Callable[[np.ndarray], np.ndarray]:
        """Returns the function of scores after the latest items of users."""

        @tf.function(input_signature=[tf.TensorSpec([None, self._length], tf.int32)])
        def scores(items: tf.Tensor) -> tf.Tensor:
            return tf.matmul(self._network(items)[:, -1], self._items.embeddings[1:], transpose_b=True)

        return lambda users: scores(tf.constant(1 + history.latest(users, self._length)[0])).numpy()


def sasrec(
    split: Split,
    seed: int,
    refit: bool,
    *,
    dim: int = 64,
    length: int = 50,
    blocks: int = 2,
    dropout: float = 0.5,
    epochs: int = 200,
    patience: int = 20,
    batch_size: int = 256,
    learning_rate: float = 1e-3,
) -> Measured:
    del refit
    tf.keras.utils.set_random_seed(seed)
    model = SASRec(split, dim=dim, length=length, blocks=blocks, dropout=dropout)
    started = time.process_time()
    options: dict[str, Any] = {"epochs": epochs, "patience": patience, "batch_size": batch_size, "seed": seed}
    values, number = model.fit(learning_rate=learning_rate, **options)
    return Measured(values, lambda: model.scorer(split.whole), time.process_time() - started, number)


class Method(NamedTuple):
    """A function of split, seed and settings, the values of each setting, and whether seeds differ."""

    measure: Callable[..., Measured]
    grid: dict[str, list[Any]]
    is_random: bool = False


def _baseline(make: Callable[..., Any], **grid: list[Any]) -> Method:
    return Method(functools.partial(baseline, make), grid)


METHODS = {
    "popularity": _baseline(recommendation.Popularity),
    "recent popularity": _baseline(recent_popularity, fraction=[0.02, 0.05, 0.1, 0.2, 0.4, 0.8]),
    "Markov chain": _baseline(
        recommendation.MarkovChain, order=[1, 3, 10], decay=[0.5, 0.8], smoothing=[10.0, 30.0, 100.0]
    ),
    "item kNN": _baseline(item_knn, neighbors=[20, 100, 500]),
    "EASE": _baseline(recommendation.EASE, strength=[10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0]),
    "Recommender": Method(recommender, {}, True),
    "Recommender of sequences": Method(recommender, {"history_items": ["sequence"]}, True),
    "SASRec": Method(sasrec, {}, True),
}


@dataclasses.dataclass(frozen=True)
class MethodJob(experiments.StoredJob):
    """The choice of the settings of a method by the validation items, and the evaluation on the test items."""

    file_and_separator: tuple[str, str]
    method: str
    settings: list[dict[str, Any]] = dataclasses.field(hash=False)
    seed: int
    refit: bool

    @property
    def description(self) -> dict[str, Any]:
        path = self.file_and_separator[0]
        return {"dataset": pathlib.Path(path).name.partition(".")[0], "fold": "last", "seed": self.seed} | {
            "files": experiments.digest([path]),
            "method": self.method,
            "settings": self.settings,
            "refit": self.refit,
        }

    @property
    def readable(self) -> str:
        return self.method

    def compute(self, cache: pathlib.Path, unfinished: pathlib.Path) -> experiments.Result:
        del cache, unfinished
        split, best, chosen = read(*self.file_and_separator), None, {}
        for settings in self.settings:
            found = METHODS[self.method].measure(split, self.seed, self.refit, **settings)
            print(f"{self.method}, {settings}: {found.validation}", file=sys.stderr, flush=True)
            if best is None or found.validation[_SELECT_BY] > best.validation[_SELECT_BY]:
                best, chosen = found, settings
        assert best is not None
        result = recommendation.evaluate(best.model(), split.test, seen=split.whole, measures=MEASURES)
        details = {
            "validation": best.validation,
            "chosen": chosen,
            "fit_seconds": best.seconds,
            "epoch_seconds": None if best.epochs is None else best.seconds / best.epochs,
            "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        return experiments.Result(details, dict(result.values))


def jobs(method: str) -> list[MethodJob]:
    own = json.loads(_SETTINGS.value).get(method, {})
    grid = METHODS[method].grid
    product: Iterable[Any] = itertools.product(*grid.values())
    settings = own if isinstance(own, list) else [dict(zip(grid, each, strict=True)) | own for each in product]
    seeds = range(_SEEDS.value if METHODS[method].is_random else 1)
    return [MethodJob((_DATA.value, _SEPARATOR.value), method, settings, seed, _REFIT.value) for seed in seeds]


def row(method: str) -> str:
    """Returns the line of a method in the table, after running what has no result."""
    results = []
    for job in jobs(method):
        # A pool for each job: its process and so its peak of memory are the job's own.
        failures = experiments.run_jobs([job], _OUTPUT.value, workers=_WORKERS.value)
        if failures:
            raise RuntimeError(failures[0].message)
        results.append(experiments.read_result(job, _OUTPUT.value))
    details = [result.description for result in results]

    def cell(values: list[Any], digits: int) -> str:
        return "" if None in values else f"{np.mean(values):.{digits}f}"

    cells = [method]
    cells += [cell([each["validation"].get(measure) for each in details], 4) for measure in MEASURES]
    cells += [cell([result.arrays[measure].mean() for result in results], 4) for measure in MEASURES]
    cells += [cell([each["fit_seconds"] for each in details], 1), cell([each["epoch_seconds"] for each in details], 1)]
    cells += [f"{max(each['megabytes'] for each in details):.0f}"]
    chosen = details[0]["chosen"]
    cells += [", ".join(f"{name} {value}" for name, value in chosen.items())]
    return "| " + " | ".join(cells) + " |"


def main(argv: list[str]) -> None:
    del argv
    names = _METHODS.value or list(METHODS)
    if unknown := set(names) - set(METHODS):
        raise app.UsageError(f"--methods must be some of {', '.join(METHODS)}, got {sorted(unknown)}.")
    titles = ["method", *(f"validation {name}" for name in MEASURES.values()), *MEASURES.values()]
    titles += ["seconds", "seconds per epoch", "MB", "settings"]
    print("| " + " | ".join(titles) + " |\n" + "|---" * len(titles) + "|", flush=True)
    for name in names:
        print(row(name), flush=True)


if __name__ == "__main__":
    app.run(main)
