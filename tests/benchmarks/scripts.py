"""Runs a script of benchmarks/ as one does by hand."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

ROOT = pathlib.Path(__file__).absolute().parents[2]
# So small that only whether they run is seen.
QUICK = ("--threads=1", "--runs=1", "--warm_runs=1")


def run(name: str, *arguments: str, folder: pathlib.Path) -> tuple[dict[str, Any], str]:
    """Returns what the script wrote as JSON, into that folder, and what it printed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "CUDA_VISIBLE_DEVICES": "-1"}
    output = folder / "report.json"
    command = [sys.executable, str(ROOT / "benchmarks" / name), *QUICK, *arguments, f"--output={output}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(output.read_text(encoding="utf-8")), done.stdout
