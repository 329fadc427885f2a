"""Takes the XLA programs of losses to a machine without TensorFlow, such as one with a GPU, and times them there.

python benchmarks/gpu_programs.py --write=programs  # needs TensorFlow
python benchmarks/gpu_programs.py --run=programs --authors_src=SmoothI/src --output=gpu.json  # needs JAX

--run needs the folder and, from benchmarks/, this file, harness.py and peer_losses.py; of packages, NumPy, absl-py and
JAX. It compares with Rax if that is installed, and with the authors' SmoothI in PyTorch if --authors_src is given.
"""

from __future__ import annotations

import dataclasses
import importlib
import pathlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import harness
import numpy as np
import peer_losses
from absl import app, flags

_WRITE = flags.DEFINE_string("write", None, "Folder to write the programs to, with inputs and expected results.")
_RUN = flags.DEFINE_string("run", None, "Folder of programs to run and time on JAX's default device.")
_SHAPES = flags.DEFINE_list(
    "shapes", ["128x40", "128x120", "32x500", "8x1000"], "With --write: batch shapes, lists x documents."
)
_AUTHORS_SRC = flags.DEFINE_string(
    "authors_src", None, "The src/ folder of https://github.com/ygcinar/SmoothI. Default: skip the authors' code."
)
flags.mark_flags_as_mutual_exclusive(["write", "run"], required=True)

LOSSES: dict[str, dict[str, float]] = {
    "smoothi_ndcg": {"alpha": 1.0, "delta": 0.1},
    "approx_ndcg": {"alpha": 10.0},
    "soft_ndcg": {"sigma": 1.0},
}
# As in smoothi.py: relative to the value, and to the largest gradient.
TOLERANCE = {"value": 1e-5, "gradient": 1e-4}


def write(folder: pathlib.Path) -> None:
    """Writes a file per loss and shape: program, inputs, and TensorFlow's value and gradient."""
    import tensorflow as tf

    from tfr_smooth import losses

    # On CPUs, the losses divide a batch among the cores; with a GPU, they do not.
    tf.config.threading.set_inter_op_parallelism_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    for name, options in LOSSES.items():
        loss = losses.get(name, **options, reduction="sum")
        for shape in _SHAPES.value:
            labels, scores = harness.a_batch(*harness.shape_of(shape))
            value, gradient = harness.TensorFlowSide(loss, labels, scores)()
            # The program before XLA's optimizations is the same for CPUs and GPUs.
            hlo = np.frombuffer(harness.TensorFlowSide(loss, labels, scores, jit_compile=True).hlo(), np.uint8)
            path = folder / f"{name}_{shape}.npz"
            np.savez_compressed(path, hlo=hlo, labels=labels, scores=scores, value=value, gradient=gradient)
            print(f"{path}: {path.stat().st_size / 1e3:.0f} kB", flush=True)


@dataclasses.dataclass(frozen=True)
class Case:
    """A file of `write`."""

    loss: str
    shape: str
    hlo: bytes
    batch: tuple[np.ndarray, np.ndarray]
    expected: tuple[Any, Any]

    @classmethod
    def read(cls, path: pathlib.Path) -> Case:
        loss, _, shape = path.stem.rpartition("_")
        with np.load(path) as file:
            batch, expected = (file["labels"], file["scores"]), (file["value"], file["gradient"])
            return cls(loss, shape, file["hlo"].tobytes(), batch, expected)


def from_hlo(jax: ModuleType, case: Case) -> peer_losses.Loss:
    """The program as a function of JAX: an export with the same inputs and outputs that contains the program instead.

    Only public functions of JAX are used, since those that load HLO directly change with each version.
    """
    export, mlir = importlib.import_module("jax.export"), importlib.import_module("jax.extend.mlir")

    def value_and_gradient(labels: Any, scores: Any) -> tuple[Any, Any]:
        return scores.sum(), scores

    exported = export.export(jax.jit(value_and_gradient, keep_unused=True))(*case.batch)
    # 1.0.0 is the version of the format: all later ones read it.
    module = mlir.serialize_portable_artifact(mlir.hlo_to_stablehlo(case.hlo), "1.0.0")
    return dataclasses.replace(exported, mlir_module_serialized=module).call


class JaxSide:
    """A function of JAX, compiled for the default device, with inputs on the device."""

    def __init__(self, jax: ModuleType, function: Callable[[Any, Any], Any], batch: tuple[np.ndarray, ...]) -> None:
        self._wait = jax.block_until_ready
        self._inputs = jax.device_put(batch)
        self._compiled = jax.jit(function).lower(*self._inputs).compile()

    def __call__(self) -> Any:
        return self._wait(self._compiled(*self._inputs))

    def megabytes(self) -> float | None:
        """Inputs, outputs and the largest memory for intermediate results; None where the backend does not tell."""
        sizes = self._compiled.memory_analysis()
        if sizes is None:
            return None
        return (sizes.argument_size_in_bytes + sizes.output_size_in_bytes + sizes.temp_size_in_bytes) / 1e6


class AuthorsSide:
    """The authors' SmoothI-NDCG in PyTorch, on a GPU if PyTorch finds one; results are copied to the host."""

    def __init__(self, case: Case) -> None:
        self._cuda = harness.torch().cuda
        device = "cuda" if self._cuda.is_available() else "cpu"
        options = {**LOSSES[case.loss], "documents": case.batch[0].shape[1], "device": device}
        loss = peer_losses.smoothi_ndcg(_AUTHORS_SRC.value, **options)
        self._run = harness.torch_side(loss, *case.batch, device)
        self.found = peer_losses.in_our_gain(loss, *case.batch, device=device)

    def __call__(self) -> Any:
        return self._run()

    def megabytes(self) -> float | None:
        if not self._cuda.is_available():
            return None
        self._cuda.reset_peak_memory_stats()
        self._run()
        return self._cuda.max_memory_allocated() / 1e6


def peers(jax: ModuleType, case: Case) -> dict[str, tuple[JaxSide | AuthorsSide, tuple[Any, Any]]]:
    """The peers' sides of a loss, with their value and gradient as ours."""
    if case.loss == "approx_ndcg" and harness.is_installed("rax"):
        loss = peer_losses.rax_approx_ndcg(jax, temperature=1.0 / LOSSES[case.loss]["alpha"])
        side = JaxSide(jax, jax.value_and_grad(loss, argnums=1), case.batch)
        value, gradient = side()
        return {"Rax": (side, (len(case.batch[0]) + value, gradient))}
    if case.loss == "smoothi_ndcg" and harness.is_given(_AUTHORS_SRC):
        authors = AuthorsSide(case)
        return {"authors' PyTorch": (authors, authors.found)}
    return {}


def measure(jax: ModuleType, case: Case) -> dict[str, Any]:
    ours = JaxSide(jax, from_hlo(jax, case), case.batch)
    found = {"ours": (ours, ours()), **peers(jax, case)}
    sides = {name: side for name, (side, _) in found.items()}
    result = harness.race(sides, loss=case.loss, shape=case.shape)
    result["megabytes"] = {name: side.megabytes() for name, side in sides.items()}
    result["differences"] = {name: harness.differences(value, case.expected) for name, (_, value) in found.items()}
    for name in sides:
        megabytes = result["megabytes"][name]
        memory = "memory unknown" if megabytes is None else f"{harness.shown(megabytes)} MB"
        print(f"    {name}: {memory}, differences {result['differences'][name]}", flush=True)
    return result


def run(folder: pathlib.Path) -> None:
    try:
        jax = harness.jax(platforms=None)
    except ImportError:
        sys.exit("--run needs JAX: pip install jax, or jax[cuda13] for a GPU.")
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        sys.exit(f"{folder} contains no programs: write them with --write={folder}.")
    device = jax.devices()[0].device_kind
    print(f"Device: {device}", flush=True)
    results = [measure(jax, Case.read(path)) for path in paths]
    packages = [name for name in ("jax", "rax", "torch") if name in sys.modules]
    harness.report(results, packages=packages, device=device)
    # Checked last, so that one difference does not cost all measurements.
    wrong = [f"{r['loss']} {r['shape']} ({name})" for r in results for name in r["differences"] if is_wrong(r, name)]
    if wrong:
        sys.exit(f"Different from TensorFlow: {', '.join(wrong)}.")


def is_wrong(result: dict[str, Any], side: str) -> bool:
    """Whether a difference is above the tolerance or NaN."""
    found = result["differences"][side]
    return not all(found[name] <= tolerance for name, tolerance in TOLERANCE.items())


def main(_: list[str]) -> None:
    if _WRITE.value:
        write(pathlib.Path(_WRITE.value))
    else:
        run(pathlib.Path(_RUN.value))


if __name__ == "__main__":
    app.run(main)
