"""How far the library is from what this machine could do at best.

    python benchmarks/limits.py --threads=1 --runs=10 --output=limits.json

"At least" is what cannot be left out, counted, over the rate at which the same process does just that. The loads and
stores, sums, sorts and calls around it are not counted, so nothing can reach 1:

- SmoothI-NDCG, value and gradient: an exponential for each document at each rank that is computed, K N a list, at
  TensorFlow's rate and at XLA's (float32, values in the cache). K is the number of ranks before all later ones have
  their closed form: log(0.002 / (alpha max|S|)) / log(1 - delta), or N if that is less.
- SoftNDCG, value and gradient: each of the M terms of the discount's mixture has, for each of the N^2 pairs, a factor
  1 - c pi and its place in a product, and on the way back the factor again and the place of its reciprocal, times a
  constant, in a sum: 4 M N^2 multiply-adds a list, at the rate of TensorFlow's float64 matrix product. The division is
  taken as free. As a second limit, to these an erfc for each of the N (N - 1) / 2 pairs of two documents, at
  TensorFlow's rate (float64); the exponentials of its gradient are taken as free.
- A training step of FeedForwardScorer with one hidden layer of 1024 on 136 features, batch normalisation, Adam and
  SmoothI-NDCG: matrix products forward, of the gradient to the weights, and, but for the first layer, of that to the
  inputs; each of documents x weights multiply-adds, at the rate of TensorFlow's float32 matrix product.
- The reader, over a whole file: as many bytes as the file has, copied in memory by NumPy, and read by `cat` from the
  system's file cache. Once for the text, once for the binary cache, whose batches come out padded.

A multiply-add is one multiplication and one addition: two floating-point operations.
"""

from __future__ import annotations

import functools
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import harness
import numpy as np
import reader
import tensorflow as tf
from absl import app, flags

from tfr_smooth import losses, models
from tfr_smooth.ops import discounts, smoothi_loops

_ONLY = flags.DEFINE_list("only", ["smoothi", "softndcg", "training", "reader"], "What to measure.")
_SMOOTHI = flags.DEFINE_list("smoothi_shapes", ["128x120", "8x1000"], "Batches for SmoothI, as lists x documents.")
_SOFTNDCG = flags.DEFINE_list("softndcg_shapes", ["32x120", "8x1000"], "The same for SoftNDCG.")
_TRAINING = flags.DEFINE_list("training_shapes", ["128x120"], "The same for training.")
_STEPS = flags.DEFINE_integer("steps", 5, "Training steps of a run.", lower_bound=1)

FEATURES, HIDDEN = 136, 1024
ALPHA, DELTA = 1.0, 0.1


def result(what: str, shape: str, milliseconds: float, limits: dict[str, float], **counts: Any) -> dict[str, Any]:
    """One thing's time with the times, in milliseconds, that it takes at least."""
    least = ", ".join(f"{harness.shown(limit)} by {name}" for name, limit in limits.items())
    print(f"{what} {shape}: {harness.shown(milliseconds)} ms, at least {least}", flush=True)
    return {
        "what": what,
        "shape": shape,
        "milliseconds": milliseconds,
        "at_least_milliseconds": limits,
        "ratio": {name: milliseconds / limit for name, limit in limits.items()},
        **counts,
    }


def multiply_adds_a_second(dtype: str, size: int = 1024) -> float:
    """How many a product of two square matrices gets through."""
    matrix = tf.random.normal([size, size], dtype=dtype)
    product = tf.function(tf.linalg.matmul)
    return 1e3 * size**3 / harness.median_milliseconds(lambda: product(matrix, matrix).numpy())


def smoothi() -> Iterator[dict[str, Any]]:
    loss = losses.SmoothINDCGLoss(alpha=ALPHA, delta=DELTA, reduction="sum")
    for shape in _SMOOTHI.value:
        lists, documents = harness.shape_of(shape)
        labels, scores = harness.a_batch(lists, documents)
        largest = tf.constant(ALPHA * np.ptp(scores, axis=1).max(), tf.float64)
        ranks = min(documents, int(smoothi_loops.ranks_until_small(largest, DELTA)))
        exponentials = lists * ranks * documents
        each = harness.exp_nanoseconds()
        limits = {f"exponentials, {name}": 1e-6 * exponentials * nanoseconds for name, nanoseconds in each.items()}
        side, repeats = harness.TensorFlowSide(loss, labels, scores), harness.repeats()
        milliseconds = harness.median_milliseconds(functools.partial(side.repeat, repeats)) / repeats
        yield result(
            "SmoothI-NDCG", shape, milliseconds, limits, ranks=ranks, exponentials=exponentials, nanoseconds=each
        )


def softndcg() -> Iterator[dict[str, Any]]:
    loss = losses.SoftNDCGLoss(sigma=1.0, reduction="sum")
    for shape in _SOFTNDCG.value:
        lists, documents = harness.shape_of(shape)
        terms = len(discounts.log2_mixture(documents)[0])
        multiply_adds = 4 * lists * terms * documents**2
        pairs = lists * documents * (documents - 1) // 2
        rate, each = multiply_adds_a_second("float64"), harness.nanoseconds_of(tf.math.erfc, "float64")
        limit = 1e3 * multiply_adds / rate
        yield result(
            "SoftNDCG",
            shape,
            harness.median_milliseconds(harness.TensorFlowSide(loss, *harness.a_batch(lists, documents))),
            {"multiply-adds": limit, "multiply-adds, erfc": limit + 1e-6 * pairs * each},
            terms=terms,
            multiply_adds=multiply_adds,
            multiply_adds_a_second=rate,
            erfc=pairs,
            erfc_nanoseconds=each,
        )


def training() -> Iterator[dict[str, Any]]:
    for shape in _TRAINING.value:
        lists, documents = harness.shape_of(shape)
        labels, _ = harness.a_batch(lists, documents)
        features = np.random.RandomState(0).randn(lists, documents, FEATURES).astype(np.float32)
        tf.keras.utils.set_random_seed(0)
        model = models.FeedForwardScorer(hidden=[HIDDEN])
        model.compile(optimizer=tf.keras.optimizers.Adam(1e-3), loss=losses.SmoothINDCGLoss(alpha=ALPHA, delta=DELTA))
        batch = ({"features": features, "mask": np.ones(labels.shape, bool)}, labels)
        dataset = tf.data.Dataset.from_tensors(batch).cache().repeat(_STEPS.value)
        products = 2 * FEATURES * HIDDEN + 3 * HIDDEN  # from the features, and to the score
        multiply_adds = lists * documents * products
        rate = multiply_adds_a_second("float32")
        yield result(
            "training step",
            shape,
            harness.median_milliseconds(in_full(model, dataset)) / _STEPS.value,
            {"multiply-adds": 1e3 * multiply_adds / rate},
            multiply_adds=multiply_adds,
            multiply_adds_a_second=rate,
        )


def in_full(model: tf.keras.Model, dataset: tf.data.Dataset) -> Callable[[], Any]:
    return lambda: model.fit(dataset, epochs=1, shuffle=False, verbose=0)


def reading() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(reader.flags.FLAGS.folder or temporary)
        text, cache = reader.text_file(folder), pathlib.Path(temporary) / "cache"
        cached = reader.batches(text, cache_dir=cache)
        (binary,) = cache.iterdir()
        sources = {
            "reading text": (text, reader.batches(text, num_features=reader.FEATURES)),
            "reading the cache": (binary, cached),
        }
        for what, (path, dataset) in sources.items():
            size = path.stat().st_size
            milliseconds = harness.median_milliseconds(reader.through(dataset))
            limits = {"copy": copy(size), "cat": cat(path)}
            yield result(what, f"{harness.shown(size / 1e6)} MB", milliseconds, limits, bytes=size)


def copy(size: int) -> float:
    """Milliseconds in which NumPy copies that many bytes: those of 64 MB, much more than a cache, in proportion."""
    source = np.ones(64 * 2**20, np.uint8)
    target = np.zeros_like(source)
    return harness.median_milliseconds(lambda: np.copyto(target, source)) * size / source.size


def cat(path: pathlib.Path) -> float:
    program = shutil.which("cat")
    assert program is not None
    run = [program, str(path)]
    return harness.median_milliseconds(lambda: subprocess.run(run, check=True, stdout=subprocess.DEVNULL))


PARTS = {"smoothi": smoothi, "softndcg": softndcg, "training": training, "reader": reading}


def table(results: list[dict[str, Any]]) -> str:
    rows = []
    for found in results:
        for name, limit in found["at_least_milliseconds"].items():
            numbers = [harness.shown(found["milliseconds"]), harness.shown(limit), harness.shown(found["ratio"][name])]
            rows.append([found["what"], found["shape"], name, *numbers])
    return harness.markdown(["what", "size", "by", "milliseconds", "at least", "times that"], rows, left=3)


def main(argv: list[str]) -> None:
    unknown = sorted({*_ONLY.value} - {*PARTS})
    if unknown or len(argv) > 1:
        raise app.UsageError(f"What is {[*unknown, *argv[1:]][0]!r}? --only takes some of {','.join(PARTS)}.")
    harness.use_threads()
    results = [found for name in _ONLY.value for found in PARTS[name]()]
    print("\n" + table(results))
    harness.write(results, alpha=ALPHA, delta=DELTA, hidden=HIDDEN, features=FEATURES)


if __name__ == "__main__":
    app.run(main)
