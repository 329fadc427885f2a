"""Helpers for the tests of README.md and docs/."""

import pathlib
import re

ROOT = pathlib.Path(__file__).absolute().parents[2]
# The public packages in tfr_smooth: the folders with an __init__.py.
PACKAGES = sorted(path.parent.name for path in (ROOT / "tfr_smooth").glob("*/__init__.py"))


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def snippets(page):
    """Returns the Python snippets of the page in order; together they are one program."""
    return re.findall(r"^```python\n(.*?)^```", read(page), re.M | re.S)
