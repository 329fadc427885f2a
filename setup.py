"""Gives the package its README with absolute links; all else is in pyproject.toml.

A relative link works in a checkout, but leads to nothing on the page of a package index.
"""

import pathlib
import re

import setuptools

FILES = "https://github.com/tfr-smooth/tfr_smooth/blob/main/"

readme = pathlib.Path(__file__).with_name("README.md").read_text(encoding="utf-8")
setuptools.setup(
    long_description=re.sub(r"\]\((?!https?:|#)([\w./#-]+)\)", rf"]({FILES}\1)", readme),
    long_description_content_type="text/markdown",
)
