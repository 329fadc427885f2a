"""Runs a script of benchmarks/ as one does by hand."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

BENCHMARKS = pathlib.Path(__file__).absolute().parents[2] / "benchmarks"
# So small that only whether they run is seen.
QUICK = ("--threads=1", "--runs=1", "--warm_runs=1")


def run(
    script: str | pathlib.Path, *arguments: str, folder: pathlib.Path, quick: Sequence[str] = QUICK
) -> tuple[dict[str, Any], str]:
    """Returns what the script wrote as JSON, into that folder, and what it printed.

    A process of its own, as a script's flags are for a whole process; a script of elsewhere finds the harness too.
    """
    path = os.pathsep.join(filter(None, [str(BENCHMARKS), *sys.path]))
    environment = {**os.environ, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": "-1"}
    output = folder / "report.json"
    command = [sys.executable, str(BENCHMARKS / script), *quick, *arguments, f"--output={output}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(output.read_text(encoding="utf-8")), done.stdout
