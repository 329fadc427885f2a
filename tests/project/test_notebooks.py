"""The notebooks in docs/notebooks contain the outputs of one complete run, and still run."""

import json
import re
import runpy

import pytest
from nbformat import v4

from tests.helpers.documents import ROOT, read
from tfr_smooth import _keras

PATHS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
NOTEBOOKS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in PATHS}


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def kinds(notebook):
    """Returns the kind of each output of each code cell: the name of the stream, or the formats of the value."""
    return [
        [output.get("name") or sorted(output.get("data", ["error"])) for output in cell["outputs"]]
        for cell in code_cells(notebook)
    ]


def test_the_stored_outputs_are_those_of_one_run_without_errors_and_private_paths():
    for name, notebook in NOTEBOOKS.items():
        counts = [cell["execution_count"] for cell in code_cells(notebook)]
        assert counts == list(range(1, len(counts) + 1)), name
        found = [kind for of_cell in kinds(notebook) for kind in of_cell]
        assert ["error"] not in found and "stderr" not in found, name
        text = re.sub(r'"image/png": "[^"]*"', "", json.dumps(notebook))
        assert re.findall(r"(?<![\w/:.<])/[\w.-]+/[\w.-]+|\b[A-Z]:\\\\", text) == [], name
        # It opens in Colab, and installs a clone there.
        first, *_ = ("".join(cell["source"]) for cell in notebook["cells"])
        repository = "github/tfr-smooth/tfr_smooth/blob/main"
        assert f"(https://colab.research.google.com/{repository}/docs/notebooks/{name}.ipynb)" in first
        install = "".join(code_cells(notebook)[0]["source"])
        assert "git clone --quiet https://github.com/tfr-smooth/tfr_smooth\n" in install, name
        assert "%cd tfr_smooth\n" in install, name
        (extras,) = re.findall(r"%pip install --quiet '\.\[([\w,-]+)\]'", install)
        assert [each for each in extras.split(",") if f"\n{each} = [" not in read("pyproject.toml")] == [], name


# What is shorter in the test: patterns of the sources, and their replacements.
SHORTER = {
    r"(epochs['\"]?(?:=|: ))\d+": r"\g<1>2",
    r"num_queries=\(300, 100, \d+\)": "num_queries=(32, 32, 32)",
    r"(users, movies, series = )600, 500": r"\g<1>200, 100",
    r"(books, authors, users = 600, 60, )800": r"\g<1>100",
    r"for user in range\(500\)": "for user in range(100)",
    r"\(0\.15, 0\.3, 0\.6\)": "(0.6,)",
    r'"dim": 64': '"dim": 8',
    r"np\.geomspace\(0\.1, 1e5, 19\)": "np.geomspace(0.1, 1e5, 3)",
    r"\(10, 30, 100, 300, 1000\)": "(10,)",
    r"""ranker\.export\(path / "export", warmup=False\)\.name""": "1",  # csv_to_service exports such a ranker
}
# Few steps make TensorFlow warn that it traces often.
SMALL = """
import pytest, tensorflow as tf
from tests.helpers import scripts
scripts.small_rankers(pytest.MonkeyPatch())
tf.get_logger().setLevel("ERROR")
"""


@pytest.mark.slow
@pytest.mark.keras_2
def test_a_run_has_outputs_of_the_stored_kinds(tmp_path):
    """One after another in one process, with small models."""
    cells, expected = [v4.new_code_cell(SMALL)], [[]]
    for name, notebook in NOTEBOOKS.items():
        if (name == "migration") != _keras.IS_KERAS_3:
            cells.append(v4.new_code_cell("%reset -f"))
            sources = ["".join(cell["source"]) for cell in code_cells(notebook)]
            for pattern, shorter in SHORTER.items():
                sources = [re.sub(pattern, shorter, source) for source in sources]
            cells += map(v4.new_code_cell, sources)
            expected += [[], *kinds(notebook)]
    execute = runpy.run_path(str(ROOT / "tools" / "run_notebooks.py"))["execute"]
    assert kinds(execute(v4.new_notebook(cells=cells), tmp_path)) == expected
