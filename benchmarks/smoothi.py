"""Times the value and gradient of SmoothI-NDCG@N: ours, plain TensorFlow, and the authors' PyTorch code.

python benchmarks/smoothi.py --authors_src=SmoothI/src --output=smoothi.json
"""

from __future__ import annotations

import datetime
import importlib.util
import json
import math
import os
import pathlib
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from absl import app, flags

from tfr_smooth import losses

_SHAPES = flags.DEFINE_list("shapes", ["128x40", "128x120", "32x500", "8x1000"], "Batches, as lists x documents.")
_AUTHORS_SRC = flags.DEFINE_string(
    "authors_src", None, "The src/ folder of https://github.com/ygcinar/SmoothI; without it that code is left out."
)
_RUNS = flags.DEFINE_integer("runs", 30, "Timed runs of each; their median counts.", lower_bound=1)
_THREADS = flags.DEFINE_integer("threads", os.cpu_count(), "Threads of TensorFlow, and of PyTorch.", lower_bound=1)
_OUTPUT = flags.DEFINE_string("output", None, "Where to write the results as JSON.")

ALPHA, DELTA = 1.0, 0.1

# From labels and scores to the sum of the lists' losses and its gradient to the scores, as numpy arrays.
Step = Callable[[Any, Any], tuple[Any, Any]]


def naive_loss(labels: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
    """Sum over lists of 1 - SmoothI-NDCG@N, written down as in Eq. 9 and 12; TensorFlow differentiates it."""
    documents = scores.shape[1]
    scores -= tf.reduce_min(scores, axis=1, keepdims=True)
    discounts = tf.constant(1.0 / np.log2(np.arange(documents) + 2.0), tf.float32)
    found = tf.TensorArray(tf.float32, size=documents)

    def body(rank: tf.Tensor, factors: tf.Tensor, found: tf.TensorArray) -> tuple[Any, ...]:
        indicators = tf.nn.softmax(ALPHA * scores * factors)
        found = found.write(rank, tf.reduce_sum(labels * indicators, axis=1))
        return rank + 1, factors * tf.stop_gradient(1.0 - indicators - DELTA), found

    state = (0, tf.ones_like(scores), found)
    # XLA differentiates only loops with a known limit.
    found = tf.while_loop(lambda *_: True, body, state, maximum_iterations=documents)[2].stack()
    dcg = tf.linalg.matvec(2.0 ** tf.transpose(found) - 1.0, discounts)
    ideal = tf.linalg.matvec(2.0 ** tf.sort(labels, direction="DESCENDING") - 1.0, discounts)
    return tf.reduce_sum(1.0 - dcg / ideal)


def tensorflow_step(loss: Callable[..., tf.Tensor], jit_compile: bool) -> Step:
    @tf.function(jit_compile=jit_compile)
    def step(labels: tf.Tensor, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(scores)
            value = loss(labels, scores)
        return value, tape.gradient(value, scores)

    def run(labels: tf.Tensor, scores: tf.Tensor) -> tuple[Any, Any]:
        value, gradient = step(labels, scores)
        return value.numpy(), gradient.numpy()  # Waits for the result.

    return run


def authors_step(source: str, documents: int, threads: int) -> Step:
    import torch

    torch.set_num_threads(threads)
    spec = importlib.util.spec_from_file_location("authors_losses", pathlib.Path(source) / "losses.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # K=0 is their NDCG over the whole list.
    loss = module.ListwiseSmoothINDCGKLoss(alpha=ALPHA, delta=DELTA, K=0, rank_list_length=documents)

    def run(labels: torch.Tensor, scores: torch.Tensor) -> tuple[Any, Any]:
        scores = scores.detach().requires_grad_()
        value = loss(scores, labels)
        value.backward()
        return value.detach().numpy(), scores.grad.numpy()

    return run


def in_our_gain(step: Step, make: Callable[[np.ndarray], Any], labels: np.ndarray, scores: np.ndarray) -> Any:
    """The authors' value and gradient, changed from their gain 2^y to ours, 2^y - 1.

    Their DCG is ours plus the sum D of the discounts, whatever the ranking. So from their loss of a list,
    L = 1 - (DCG + D) / (IDCG + D), follows ours as 1 - DCG / IDCG = L (IDCG + D) / IDCG; the same for the gradient.
    """
    discounts = 1.0 / np.log2(np.arange(labels.shape[1]) + 2.0)
    ideal = (2.0 ** -np.sort(-labels.astype(np.float64), axis=1) - 1.0) @ discounts
    factors = (ideal + discounts.sum()) / ideal
    # They sum over lists: a call for each gives its value.
    values = [step(make(labels[i : i + 1]), make(scores[i : i + 1]))[0] for i in range(len(labels))]
    gradient = step(make(labels), make(scores))[1]
    return np.dot(factors, np.array(values, np.float64)), factors[:, np.newaxis] * gradient


def a_batch(lists: int, documents: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.RandomState(documents)
    labels = random.choice(5, size=(lists, documents), p=[0.5, 0.3, 0.1, 0.06, 0.04]).astype(np.float32)
    labels[:, 0] = 4.0  # so that every list counts
    return labels, random.randn(lists, documents).astype(np.float32)


def measure(shape: str) -> dict[str, Any]:
    """Milliseconds of each implementation on one batch: of the first call, and the median of warm ones."""
    lists, documents = map(int, shape.split("x"))
    labels, scores = a_batch(lists, documents)
    ours = losses.SmoothINDCGLoss(alpha=ALPHA, delta=DELTA, reduction="sum")
    steps = {
        "ours": tensorflow_step(ours, jit_compile=False),
        "ours, XLA": tensorflow_step(ours, jit_compile=True),
        "plain TensorFlow": tensorflow_step(naive_loss, jit_compile=False),
        "plain TensorFlow, XLA": tensorflow_step(naive_loss, jit_compile=True),
    }
    inputs = {name: (tf.constant(labels), tf.constant(scores)) for name in steps}
    if _AUTHORS_SRC.value:
        import torch

        steps["authors' PyTorch"] = authors_step(_AUTHORS_SRC.value, documents, _THREADS.value)
        inputs["authors' PyTorch"] = (torch.from_numpy(labels), torch.from_numpy(scores))

    first, results = {}, {}
    for name, step in steps.items():
        start = time.perf_counter()
        results[name] = step(*inputs[name])
        first[name] = 1e3 * (time.perf_counter() - start)
    if _AUTHORS_SRC.value:
        results["authors' PyTorch"] = in_our_gain(steps["authors' PyTorch"], torch.from_numpy, labels, scores)
    value, gradient = results["ours"]
    for name, (found_value, found_gradient) in results.items():
        np.testing.assert_allclose(found_value, value, rtol=1e-5, err_msg=name)
        np.testing.assert_allclose(found_gradient, gradient, atol=1e-4 * np.abs(gradient).max(), err_msg=name)

    times: dict[str, list[float]] = {name: [] for name in steps}
    for run in range(_RUNS.value + 3):
        for name, step in steps.items():
            start = time.perf_counter()
            step(*inputs[name])
            if run >= 3:  # The first ones warm up.
                times[name].append(1e3 * (time.perf_counter() - start))
    return {
        "shape": [lists, documents],
        "milliseconds": {name: float(np.median(values)) for name, values in times.items()},
        "first_call_milliseconds": first,
    }


def cpu_model() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def table(results: list[dict[str, Any]], key: str, ratios: bool) -> str:
    """A Markdown table of milliseconds; with `ratios` also how many times as long as ours each takes."""
    names = list(results[0][key])
    rows = [["lists x documents", *names], ["---", *["---:"] * len(names)]]
    for result in results:
        ms = result[key]
        digits = {name: max(0, 2 - math.floor(math.log10(ms[name]))) for name in names}
        cells = [f"{ms[n]:.{digits[n]}f}" + (f" ({ms[n] / ms['ours']:.2g}x)" if ratios else "") for n in names]
        rows.append(["x".join(map(str, result["shape"])), *cells])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main(_: list[str]) -> None:
    tf.config.threading.set_intra_op_parallelism_threads(_THREADS.value)
    tf.config.threading.set_inter_op_parallelism_threads(_THREADS.value)
    versions = {"python": platform.python_version(), "tensorflow": tf.__version__, "numpy": np.__version__}
    if _AUTHORS_SRC.value:
        import torch

        versions["torch"] = torch.__version__
    else:
        print("--authors_src is not given: the authors' PyTorch code is left out.")
    measure("2x3")  # Starting TensorFlow, XLA and PyTorch is nobody's first call.
    results = [measure(shape) for shape in _SHAPES.value]
    print(f"{cpu_model()}, {_THREADS.value} threads, {versions}")
    print(f"Milliseconds for value and gradient, median of {_RUNS.value} (times ours):\n")
    print(table(results, "milliseconds", ratios=True))
    print("\nMilliseconds of the first call, with tracing and compiling:\n")
    print(table(results, "first_call_milliseconds", ratios=False))
    if _OUTPUT.value:
        report = {
            "date": datetime.date.today().isoformat(),
            "cpu": cpu_model(),
            "threads": _THREADS.value,
            "versions": versions,
            "runs": _RUNS.value,
            "alpha": ALPHA,
            "delta": DELTA,
            "results": results,
        }
        pathlib.Path(_OUTPUT.value).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    app.run(main)
