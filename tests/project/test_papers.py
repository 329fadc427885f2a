"""The table from the papers to the code names things that exist."""

import functools
import importlib
import re

import pytest

from tests.helpers import documents
from tfr_smooth import _keras

ROWS = [row.split(" | ") for row in re.findall(r"^\| (.+::\w+`) \|$", documents.read("docs/papers.md"), re.M)]


def test_the_rows_have_four_cells():
    assert len(ROWS) > 60 and {len(row) for row in ROWS} == {4}


@pytest.mark.parametrize("name", sorted({name for row in ROWS for name in re.findall(r"\]\[([\w.]+)\]", row[2])}))
def test_a_public_name_can_be_imported(name):
    _, package, *attributes = name.split(".")
    if package == "text" and not _keras.IS_KERAS_3:
        pytest.skip("texts need Keras 3")
    start = importlib.import_module("tfr_smooth")
    if package in documents.PACKAGES:
        start = importlib.import_module(f"tfr_smooth.{package}")
    else:
        attributes = [package, *attributes]
    assert callable(functools.reduce(getattr, attributes, start))


@pytest.mark.parametrize("place", sorted({row[3].strip("`") for row in ROWS}))
def test_a_test_exists(place):
    file, name = place.split("::")
    assert re.search(rf"^def {name}\(", documents.read(file), re.M)


def test_every_row_has_a_name_or_a_page():
    assert [row for row in ROWS if "](" not in row[2] and "][" not in row[2]] == []
