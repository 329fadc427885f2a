"""Gives the package its README with absolute links, and builds it elsewhere; all else is in pyproject.toml.

A relative link works in a checkout, but leads to nothing on the page of a package index. A folder build/ here would
collide with the file BUILD where names have no case, and keep modules that were removed.
"""

import pathlib
import re
import tempfile

import setuptools

FILES = "https://github.com/tfr-smooth/tfr_smooth/blob/main/"

readme = pathlib.Path(__file__).with_name("README.md").read_text(encoding="utf-8")
with tempfile.TemporaryDirectory() as folder:
    setuptools.setup(
        long_description=re.sub(r"\]\((?!https?:|#)([\w./#-]+)\)", rf"]({FILES}\1)", readme),
        long_description_content_type="text/markdown",
        options={"build": {"build_base": folder}},
    )
