"""Executes notebooks of the documentation and stores them with their outputs: python tools/run_notebooks.py NAME ...

`make notebooks` executes all of them, each with the packages that it needs.
"""

from __future__ import annotations

import os
import pathlib
import sys
import tempfile

import nbclient
import nbformat

ROOT = pathlib.Path(__file__).absolute().parents[1]


def path_of(name: str) -> pathlib.Path:
    return ROOT / "docs" / "notebooks" / f"{name}.ipynb"


def execute(notebook: nbformat.NotebookNode, folder: str | os.PathLike[str]) -> nbformat.NotebookNode:
    """Returns the notebook as executed in a folder; an error in a cell is raised."""
    client = nbclient.NotebookClient(
        notebook,
        startup_timeout=600,  # on a busy machine
        timeout=600,
        kernel_name="python3",  # of the Python that runs this
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    # One thread: sums in another order would change the last digits from run to run.
    threads = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
    client.execute(env={**os.environ, **threads, "PYTHONPATH": str(ROOT)})
    for cell in notebook.cells:
        if cell.cell_type == "code":
            # What TensorFlow reports about the machine, such as that it has no GPU.
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata.language_info = {"name": "python"}  # without the version of Python
    return notebook


def main(names: list[str]) -> None:
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(execute(nbformat.read(path_of(name), as_version=4), folder), path_of(name))
        print(path_of(name).relative_to(ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
