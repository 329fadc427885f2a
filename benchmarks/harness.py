"""Shared code of the benchmarks: sides that run in turn on the same inputs, their ratios, tables and JSON output."""

from __future__ import annotations

import datetime
import functools
import importlib
import importlib.metadata
import importlib.util
import json
import math
import os
import pathlib
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from absl import flags

_RUNS = flags.DEFINE_integer("runs", 30, "Timed runs of each side; the median counts.", lower_bound=1)
_WARM = flags.DEFINE_integer("warm_runs", 3, "Untimed runs of each side before the timed ones.", lower_bound=0)
_THREADS = flags.DEFINE_integer("threads", os.cpu_count(), "Threads of each side.", lower_bound=1)
_REPEATS = flags.DEFINE_integer(
    "repeats",
    10,
    "Batches per TensorFlow call, for losses that take less time than the overhead of a call; times are per batch.",
    lower_bound=1,
)
_OUTPUT = flags.DEFINE_string("output", None, "JSON file to write the results to.")

# A function without arguments that computes (value, gradient) as NumPy arrays.
Side = Callable[[], tuple[Any, Any]]


def repeats() -> int:
    return _REPEATS.value


def runs() -> int:
    return _RUNS.value


def warm_runs() -> int:
    return _WARM.value


def threads() -> int:
    return _THREADS.value


def use_threads() -> None:
    """Sets the number of TensorFlow threads to --threads; `torch` and `jax` do the same for PyTorch and JAX."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(_THREADS.value)
    tf.config.threading.set_inter_op_parallelism_threads(_THREADS.value)


def in_a_process(arguments: Sequence[str]) -> dict[str, float]:
    """Runs this script again with other arguments and the same threads, and returns the JSON of its last line."""
    command = [sys.executable, sys.argv[0], f"--threads={_THREADS.value}", *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def torch() -> ModuleType:
    """Imports PyTorch and sets its number of threads."""
    module = importlib.import_module("torch")
    module.set_num_threads(_THREADS.value)
    return module


@functools.cache
def jax(platforms: str | None = "cpu") -> ModuleType:
    """Imports JAX for these platforms (None: its default) and sets its number of threads on the CPU.

    Must be called before JAX computes anything.
    """
    os.environ["NPROC"] = str(_THREADS.value)  # The size of JAX's thread pool, read at the first computation.
    if _THREADS.value == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    module = importlib.import_module("jax")
    if platforms:
        module.config.update("jax_platforms", platforms)
    return module


def is_installed(name: str) -> bool:
    """Whether a package is installed; if not, prints that its sides are skipped."""
    found = importlib.util.find_spec(name) is not None
    if not found:
        _say_once(f"{name} is not installed: skipped.")
    return found


def is_given(flag: flags.FlagHolder) -> bool:
    """Whether the flag for a peer's path is given; if not, prints that its sides are skipped."""
    if not flag.value:
        _say_once(f"--{flag.name} is not given: skipped.")
    return bool(flag.value)


@functools.cache
def _say_once(line: str) -> None:
    print(line, flush=True)


def module_at(path: str | os.PathLike[str], name: str) -> ModuleType:
    """Imports a peer's module from its file, with the folder of the file on the import path."""
    path = pathlib.Path(path)
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TensorFlowSide:
    """Value of a loss and gradient with respect to the scores, in a `tf.function`."""

    def __init__(
        self,
        loss: Callable[[Any, Any], Any],
        labels: np.ndarray,
        scores: np.ndarray,
        *,
        jit_compile: bool = False,
    ) -> None:
        import tensorflow as tf

        def step(labels: tf.Tensor, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            with tf.GradientTape() as tape:
                tape.watch(scores)
                value = loss(labels, scores)
            return value, tape.gradient(value, scores)

        def steps(labels: tf.Tensor, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            count = labels.shape[0]

            def body(i: tf.Tensor, *found: tf.TensorArray) -> tuple[Any, ...]:
                one = step(labels[i], tf.ensure_shape(scores[i], scores.shape[1:]))
                return i + 1, *(array.write(i, value) for array, value in zip(found, one, strict=True))

            state = (0, *(tf.TensorArray(scores.dtype, size=count) for _ in range(2)))
            found = tf.while_loop(lambda i, *_: i < count, body, state, parallel_iterations=1, maximum_iterations=count)
            return tuple(array.stack() for array in found[1:])

        self._inputs = tf.constant(labels), tf.constant(scores)
        self._step = tf.function(step, jit_compile=jit_compile)
        self._steps = tf.function(steps, jit_compile=jit_compile)
        self._repeated: tuple[Any, ...] = ()

    def __call__(self) -> tuple[Any, Any]:
        """Computes one batch in one call."""
        return tuple(tensor.numpy() for tensor in self._step(*self._inputs))

    def hlo(self) -> bytes:
        """The XLA program of one batch, before optimization, as a serialized HloModuleProto."""
        return self._step.experimental_get_compiler_ir(*self._inputs)(stage="hlo_serialized")

    def repeat(self, times: int) -> Any:
        """Computes the batch several times in one TensorFlow call, like a training step; returns all results."""
        import tensorflow as tf

        if not self._repeated or self._repeated[0].shape[0] != times:
            self._repeated = tuple(tf.stack([values] * times) for values in self._inputs)
        return tuple(tensor.numpy() for tensor in self._steps(*self._repeated))


def torch_side(loss: Callable[[Any, Any], Any], labels: np.ndarray, scores: np.ndarray, device: str = "cpu") -> Side:
    """Value and gradient of a PyTorch loss, called as `loss(labels, scores)`."""
    labels, scores = (torch().from_numpy(array).to(device) for array in (labels, scores))

    def run() -> tuple[Any, Any]:
        leaf = scores.detach().requires_grad_()
        value = loss(labels, leaf)
        value.backward()
        return value.detach().cpu().numpy(), leaf.grad.cpu().numpy()

    return run


def jax_side(loss: Callable[[Any, Any], Any], labels: np.ndarray, scores: np.ndarray) -> Side:
    """Value and gradient of a JAX loss, called as `loss(labels, scores)`, compiled."""
    step = jax().jit(jax().value_and_grad(loss, argnums=1))
    labels, scores = jax().numpy.asarray(labels), jax().numpy.asarray(scores)
    return lambda: tuple(np.asarray(array) for array in step(labels, scores))


def a_batch(lists: int, documents: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels 0 to 4, mostly 0, and normal scores, float32 [lists, documents]; every list has a relevant document."""
    random = np.random.RandomState(documents)
    labels = random.choice(5, size=(lists, documents), p=[0.5, 0.3, 0.1, 0.06, 0.04]).astype(np.float32)
    labels[:, 0] = 4.0
    return labels, random.randn(lists, documents).astype(np.float32)


def shape_of(text: str) -> tuple[int, int]:
    lists, documents = map(int, text.split("x"))
    return lists, documents


def differences(found: tuple[Any, Any], expected: tuple[Any, Any]) -> dict[str, float]:
    """The differences between two sides, relative to the value and to the largest gradient."""
    return {
        "value": float(abs(found[0] - expected[0]) / abs(expected[0])),
        "gradient": float(np.abs(found[1] - expected[1]).max() / np.abs(expected[1]).max()),
    }


def same(found: tuple[Any, Any], expected: tuple[Any, Any], *, value: float, gradient: float, name: str) -> None:
    """Checks that two sides are equal within tolerances relative to the value and to the largest gradient."""
    np.testing.assert_allclose(found[0], expected[0], rtol=value, err_msg=name)
    largest = np.abs(expected[1]).max()
    np.testing.assert_allclose(found[1], expected[1], atol=gradient * largest, rtol=0, err_msg=name)


def race(sides: dict[str, Callable[[], Any]], *, repeats: int = 1, **about: Any) -> dict[str, Any]:
    """Runs the sides in turn and returns a result for `table` and `report`.

    With `repeats`, a side computes its batch that many times, and times are per batch. The ratio of a side is the
    median over rounds of its time divided by the time of the first side in the same round, so that other load on the
    machine affects both. The median processor time, which counts all threads, is also returned.
    """
    wall: dict[str, list[float]] = {name: [] for name in sides}
    cpu: dict[str, list[float]] = {name: [] for name in sides}
    for run in range(_RUNS.value + _WARM.value):
        for name, side in sides.items():
            start, cpu_start = time.perf_counter(), time.process_time()
            _take(side, repeats)
            if run >= _WARM.value:
                wall[name].append(1e3 * (time.perf_counter() - start) / repeats)
                cpu[name].append(1e3 * (time.process_time() - cpu_start) / repeats)
    ours = next(iter(sides))
    result = {
        **about,
        "milliseconds": {name: float(np.median(times)) for name, times in wall.items()},
        "cpu_milliseconds": {name: float(np.median(times)) for name, times in cpu.items()},
        "ratio": {name: float(np.median(np.divide(times, wall[ours]))) for name, times in wall.items()},
    }
    print(_row(result, about), flush=True)
    for name, milliseconds in result["cpu_milliseconds"].items():
        if milliseconds > 1.2 * _THREADS.value * result["milliseconds"][name]:
            print(f"    {name} used more processor time than {_THREADS.value} threads can.", flush=True)
    return result


def _take(side: Callable[[], Any], repeats: int) -> None:
    if repeats > 1 and hasattr(side, "repeat"):
        side.repeat(repeats)
        return
    for _ in range(repeats):
        side()


def _row(result: dict[str, Any], about: dict[str, Any]) -> str:
    cells = [f"{name} {shown(ms)} ({result['ratio'][name]:.3g}x)" for name, ms in result["milliseconds"].items()]
    return "  ".join([*map(str, about.values()), *cells])


def shown(number: float) -> str:
    return f"{number:.{max(0, 2 - math.floor(math.log10(number)))}f}" if number > 0 else "0"


def peak_megabytes(arguments: Sequence[str], runs: int = 3) -> float:
    """The peak memory for one side in a new process of the calling script, in addition to its memory at rest.

    With `arguments`, the script must call `alone`.
    """
    command = [sys.executable, sys.argv[0], *arguments, f"--threads={_THREADS.value}", f"--runs={runs}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.strip().splitlines()[-1])


def alone(side: Callable[[], Any]) -> None:
    """Runs one side a few times and prints the peak memory in megabytes, for `peak_megabytes`. Linux only."""
    at_rest = _status("VmRSS")
    pathlib.Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # Resets the peak.
    for _ in range(_RUNS.value):
        side()
    print((_status("VmHWM") - at_rest) / 1024.0)


def resident_megabytes() -> float:
    """The current memory of this process. Linux only."""
    return _status("VmRSS") / 1024.0


def _status(name: str) -> int:
    """A memory size of this process in kilobytes, as the system reports it."""
    lines = pathlib.Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name + ":"))


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """A Markdown table; the first `left` columns contain text, the others numbers."""
    rule = [*["---"] * left, *["---:"] * (len(columns) - left)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (columns, rule, *rows))


def table(results: Sequence[dict[str, Any]]) -> str:
    """A Markdown table with one row per result: each side's time, and its ratio to the first side's."""
    if not results:
        return "No benchmark was run."
    names = list(dict.fromkeys(name for result in results for name in result["milliseconds"]))
    about = [name for name, value in results[0].items() if not isinstance(value, dict)]
    rows = []
    for result in results:
        times, ratio = result["milliseconds"], result["ratio"]
        cells = [f"{shown(times[name])} ({ratio[name]:.2g}x)" if name in times else "" for name in names]
        rows.append([*(str(result[name]) for name in about), *cells])
    return markdown([*about, *names], rows, left=len(about))


def report(results: Sequence[dict[str, Any]], *, packages: Sequence[str] = (), **more: Any) -> None:
    """Prints the table, and writes the results with date, machine and versions if --output is given."""
    print(f"\nMilliseconds per batch, median of {_RUNS.value} runs (ratio to the first side, median of the rounds):\n")
    print(table(results))
    write(results, packages=packages, **more)


def write(results: Sequence[dict[str, Any]], *, packages: Sequence[str] = (), **more: Any) -> None:
    """Prints machine and versions, and writes them with the results and the date if --output is given."""
    versions = {"python": platform.python_version()}
    for name in (*(["tensorflow"] if "tensorflow" in sys.modules else []), "numpy", *packages):
        versions[name] = getattr(importlib.import_module(name), "__version__", None) or _installed_version(name)
    print(f"\n{cpu_model()}, {_THREADS.value} threads, {versions}")
    if _OUTPUT.value:
        content = {
            "date": datetime.date.today().isoformat(),
            "cpu": cpu_model(),
            "cores": os.cpu_count(),
            "threads": _THREADS.value,
            "versions": versions,
            "runs": _RUNS.value,
            "repeats": _REPEATS.value,
            **more,
            "results": list(results),
        }
        path = pathlib.Path(_OUTPUT.value).absolute()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _installed_version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def cpu_model() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
