"""Runs the scripts of benchmarks/ from the command line."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

BENCHMARKS = pathlib.Path(__file__).absolute().parents[2] / "benchmarks"
# The smallest settings: the tests check that the scripts run, not how fast they are.
QUICK = ("--threads=1", "--runs=1", "--warm_runs=1")


def run(
    script: str | pathlib.Path, *arguments: str, folder: pathlib.Path, quick: Sequence[str] = QUICK
) -> tuple[dict[str, Any], str]:
    """Runs the script, and returns its JSON report, which it writes to `folder`, and its standard output.

    In a new process, because flags are global to a process. A script outside benchmarks/ can import the harness too.
    """
    path = os.pathsep.join(filter(None, [str(BENCHMARKS), *sys.path]))
    environment = {**os.environ, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": "-1"}
    output = folder / "report.json"
    command = [sys.executable, str(BENCHMARKS / script), *quick, *arguments, f"--output={output}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(output.read_text(encoding="utf-8")), done.stdout
