"""The table from the papers to the code names things that exist."""

import functools
import importlib
import re

from tests.helpers import documents
from tfr_smooth import _keras

ROWS = [row.split(" | ") for row in re.findall(r"^\| (.+::\w+`) \|$", documents.read("docs/papers.md"), re.M)]


def test_the_rows_have_four_cells_and_a_name_or_a_page():
    assert len(ROWS) > 60 and {len(row) for row in ROWS} == {4}
    assert [row for row in ROWS if "](" not in row[2] and "][" not in row[2]] == []


def test_public_names_can_be_imported_and_tests_exist():
    for name in {name for row in ROWS for name in re.findall(r"\]\[([\w.]+)\]", row[2])}:
        _, package, *attributes = name.split(".")
        if package == "text" and not _keras.IS_KERAS_3:
            continue
        if package not in documents.PACKAGES:
            package, attributes = "", [package, *attributes]
        start = importlib.import_module(f"tfr_smooth.{package}".rstrip("."))
        assert callable(functools.reduce(getattr, attributes, start)), name
    for place in {row[3].strip("`") for row in ROWS}:
        file, name = place.split("::")
        assert re.search(rf"^def {name}\(", documents.read(file), re.M), place
