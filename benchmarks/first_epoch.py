"""Measures the processor time of the first epoch of the README's Keras model, with several losses.

python benchmarks/first_epoch.py --runs=5 --warm_runs=0 --output=first_epoch.json

Each epoch runs in a new process, and the losses take turns. Processor time hardly depends on other load on the machine.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import harness
import numpy as np
from absl import app, flags

_LOSSES = flags.DEFINE_list(
    "losses", ["mse", "list_net", "approx_ndcg", "smoothi_ndcg"], "Losses by name; mse is that of Keras."
)

ROOT = pathlib.Path(__file__).absolute().parents[1]


def snippet(loss: str, folder: str) -> str:
    """Returns the README's snippet of a Keras model for this loss; it prints the seconds before and in `fit`."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (lines,) = [found for found in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S) if "model.fit(" in found]
    for old, new in (
        ("import tensorflow as tf\n", "import tensorflow as tf, tfr_smooth, time\n"),
        ('"/tmp/letor"', repr(folder)),
        (
            "tfr_smooth.losses.SmoothINDCGLoss()",
            f"tfr_smooth.losses.get({loss!r})" if loss != "mse" else "'mse'",
        ),
        ("model.fit(", "before = time.process_time()\nmodel.fit("),
        ("epochs=5", "epochs=1, verbose=0"),
    ):
        assert lines.count(old) == 1, f"The README's snippet has no {old!r}."
        lines = lines.replace(old, new)
    return f"{lines}print(before, time.process_time() - before)"


def seconds(loss: str, folder: str) -> tuple[float, float]:
    """Returns the processor seconds of a new process before and in the first epoch."""
    environment = {
        **{name: value for name, value in os.environ.items() if name != "TF_XLA_FLAGS"},  # no kept programs
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
        "TF_NUM_INTRAOP_THREADS": str(harness.threads()),
        "TF_NUM_INTEROP_THREADS": str(harness.threads()),
    }
    command = [sys.executable, "-c", snippet(loss, folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    before, epoch = map(float, done.stdout.split()[-2:])
    return before, epoch


def main(_: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rounds = [
            [seconds(loss, folder) for loss in _LOSSES.value] for _ in range(harness.warm_runs() + harness.runs())
        ]
    before, epoch = np.moveaxis(rounds[harness.warm_runs() :], -1, 0)
    first = _LOSSES.value[0]
    print(f"| loss | imports, data and model, s | first epoch, s | relative to {first} |\n| --- | ---: | ---: | ---: |")
    results = []
    for loss, imports, epochs in zip(_LOSSES.value, before.T, epoch.T, strict=True):
        result = {"loss": loss, "imports": np.median(imports), "epoch": np.median(epochs)}
        result["ratio"] = np.median(epochs / epoch[:, 0])
        print(f"| {loss} | {result['imports']:.2f} | {result['epoch']:.2f} | {result['ratio']:.2f}x |", flush=True)
        results.append(result)
    harness.write(results)


if __name__ == "__main__":
    app.run(main)
