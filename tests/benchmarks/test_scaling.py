"""The scaling script runs, and writes what it measured."""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).absolute().parents[2]


def test_it_measures_each_number_of_replicas(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "CUDA_VISIBLE_DEVICES": "-1"}
    sizes = ["--batch_size=4", "--list_size=5", "--num_features=3", "--hidden=4", "--steps=2", "--epochs=1"]
    command = [sys.executable, ROOT / "benchmarks" / "scaling.py", *sizes, f"--output={tmp_path / 'new' / 's.json'}"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stderr[-4000:]
    report = json.loads((tmp_path / "new" / "s.json").read_text())
    assert [result["replicas"] for result in report["results"]] == [1, 2]
    for result in report["results"]:
        slowest, fastest = result["slowest_and_fastest"]
        assert 0.0 < slowest <= result["queries_per_second"] <= fastest
        assert result["device"].startswith("logical CPUs")
    assert "| 1 |" in run.stdout and "| 2 |" in run.stdout
