"""The example of the guide to relaxations becomes a part of the library by one file and one entry."""

import ast
import re
import shutil
import subprocess
import sys
import textwrap

import pytest

from tests import documents

GUIDE = (documents.ROOT / "docs/relaxations/your_own.md").read_text(encoding="utf-8")
HEADER = '''"""Successive softmaxes."""

import dataclasses
from typing import ClassVar

import tensorflow as tf

from tfr_smooth import _about
from tfr_smooth.rankings.ranking import Ranking

'''
# Name -> a part of the example and what replaces it.
WRONG = {
    "the temperature is inverted": ("logits / tau", "logits * tau"),
    "the mask is ignored": ("weights = real * ", "weights = "),
    "a document is drawn again": ("logits += tf.math.log1p", "logits += 0.0 * tf.math.log1p"),
}

pytestmark = pytest.mark.slow


def blocks():
    """Returns the Python blocks of the guide."""
    return [textwrap.dedent(code) for code in re.findall(r"^ *```python\n(.*?)^ *```$", GUIDE, re.M | re.S)]


def module():
    """Returns the file that the guide describes: the class of its first block, with the attribute of another block."""
    defined = next(node for node in ast.parse(blocks()[0]).body if isinstance(node, ast.ClassDef))
    about = next(block for block in blocks() if "about = " in block)
    description = "about: ClassVar = " + about.partition("about = ")[2]
    lines = blocks()[0].splitlines()[defined.lineno - 1 : defined.end_lineno]
    lines[0] = lines[0].replace("tfr_smooth.rankings.Ranking", "Ranking")
    first_field = next(number for number, line in enumerate(lines) if line.startswith("    temperature:"))
    lines[first_field:first_field] = [*textwrap.indent(description, "    ").splitlines(), ""]
    return HEADER + "\n@dataclasses.dataclass(frozen=True)\n" + "\n".join(lines) + "\n"


@pytest.fixture
def tree(tmp_path):
    """A copy of the tree with the entry of the guide, but not yet the file."""
    for folder in ("tfr_smooth", "tests", "tools", "docs"):
        ignored = shutil.ignore_patterns("__pycache__", "results", "vendor")
        shutil.copytree(documents.ROOT / folder, tmp_path / folder, ignore=ignored)
    for file in ("pyproject.toml", "conftest.py"):
        shutil.copy(documents.ROOT / file, tmp_path)
    path = tmp_path / "tfr_smooth/rankings/__init__.py"
    entry = "from tfr_smooth.rankings.successive_softmax import SuccessiveSoftmax as SuccessiveSoftmax\n\n# The relax"
    text = path.read_text(encoding="utf-8").replace("\n# The relax", entry, 1)
    path.write_text(text.replace("FastSort, Sinkhorn)", "FastSort, Sinkhorn, SuccessiveSoftmax)", 1), encoding="utf-8")
    return tmp_path


def run(tree, *arguments):
    path = {"PYTHONPATH": str(tree), "PATH": "/usr/bin:/bin", "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "-1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=path, capture_output=True, text=True, timeout=1200
    )


def check_properties(tree, *more):
    """Runs the property tests of the new ranking, and those of the tables."""
    tests = ["tests/losses/test_properties.py", "tests/rankings/test_rankings.py", "tests/metrics/test_properties.py"]
    chosen = ["-k", "successive", "-p", "no:cacheprovider", "-q", *more]
    return run(tree, "-m", "pytest", *tests, *chosen)


def test_the_example_passes_the_property_tests_and_is_in_stubs_and_tables(tree):
    (tree / "tfr_smooth/rankings/successive_softmax.py").write_text(module(), encoding="utf-8")
    written = run(tree, "tools/write_stubs.py")
    assert written.returncode == 0, written.stderr[-2000:]
    for stub in ("losses/measure_losses.pyi", "metrics/measure_metrics.pyi"):
        assert "class SuccessiveSoftmaxNDCG" in (tree / "tfr_smooth" / stub).read_text(encoding="utf-8")
    table = run(tree, "-c", "from tfr_smooth import losses; print(losses.TABLE['successivesoftmax_map'].citation)")
    assert table.stdout.startswith("Plötz, Roth 2018"), table.stderr[-2000:]
    stubs = run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_stubs.py", "tests/test_plotting.py")
    assert stubs.returncode == 0, stubs.stdout[-3000:]
    done = check_properties(tree)
    assert done.returncode == 0, done.stdout[-6000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 80


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_example_fails_the_property_tests(name, tree):
    right, wrong = WRONG[name]
    assert right in module()
    path = tree / "tfr_smooth/rankings/successive_softmax.py"
    path.write_text(module().replace(right, wrong), encoding="utf-8")
    done = check_properties(tree, "-x")
    assert done.returncode == 1 and "1 failed" in done.stdout, done.stdout[-3000:]
