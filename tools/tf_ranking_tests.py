"""Runs TF-Ranking's own tests with the installed TensorFlow and prints how many pass.

    git clone https://github.com/tensorflow/ranking
    python tools/tf_ranking_tests.py --clone=ranking

The tests come from the clone and test the installed TF-Ranking. The exit status is 1 if fewer pass than expected.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import tempfile

from absl import app, flags

_CLONE = flags.DEFINE_string("clone", None, "Path of a clone of TF-Ranking's repository.", required=True)
_ONLY = flags.DEFINE_string("only", "", "Run only the files with this text in their path.")

# Numbers of tests that pass and fail with TensorFlow 2.21 and Keras 2. All failures are due to missing Estimators,
# except for two in losses_impl_test.py.
EXPECTED: dict[str, tuple[int, int]] = {
    "data_test.py": (47, 0),
    "estimator_test.py": (16, 4),
    "feature_test.py": (7, 0),
    "head_test.py": (5, 10),
    "keras/canned/dnn_test.py": (7, 0),
    "keras/canned/gam_test.py": (8, 0),
    "keras/estimator_test.py": (0, 5),
    "keras/feature_test.py": (8, 0),
    "keras/layers_test.py": (25, 0),
    "keras/losses_test.py": (107, 0),
    "keras/metrics_test.py": (73, 0),
    "keras/model_test.py": (12, 0),
    "keras/network_test.py": (5, 0),
    "keras/pipeline_test.py": (7, 0),
    "keras/saved_model_test.py": (6, 0),
    "keras/strategy_utils_test.py": (2, 0),
    "keras/utils_test.py": (2, 0),
    "losses_impl_test.py": (137, 2),
    "losses_test.py": (23, 0),
    "metrics_impl_test.py": (148, 0),
    "metrics_test.py": (15, 0),
    "model_test.py": (14, 4),
    "utils_test.py": (19, 0),
}

_PROGRAM = """
import os, runpy, sys
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tfr_smooth.tf_ranking
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    root = pathlib.Path(_CLONE.value).absolute() / "tensorflow_ranking" / "python"
    files = sorted(path.relative_to(root).as_posix() for path in root.rglob("*_test.py"))
    if not files:
        sys.exit(f"error: no tests in {root}")
    print(f"{'file':32}{'passed':>8}{'failed':>8}   expected")
    fewer = False
    for file in (file for file in files if _ONLY.value in file):
        passed, failed = run(root / file)
        expected = EXPECTED.get(file)
        fewer |= expected is not None and passed < expected[0]
        shown = "-" if expected is None else "{}, {}".format(*expected)
        print(f"{file:32}{passed:8}{failed:8}   {shown}", flush=True)
    sys.exit(1 if fewer else 0)


def run(path: pathlib.Path) -> tuple[int, int]:
    """Returns how many tests of a file passed and failed; (0, 0) if it could not be imported."""
    # In another folder, so that the clone's package does not hide the installed one.
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", _PROGRAM, str(path)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    ran = re.search(r"^Ran (\d+) tests?", done.stderr, re.M)
    if ran is None:
        return 0, 0
    others = re.findall(r"(failures|errors|skipped)=(\d+)", done.stderr[ran.end() :])
    failed = sum(int(count) for kind, count in others if kind != "skipped")
    return int(ran[1]) - sum(int(count) for _, count in others), failed


if __name__ == "__main__":
    app.run(main)
