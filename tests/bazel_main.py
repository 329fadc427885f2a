"""Runs pytest on the test file in the arguments; the main program of every Bazel py_test."""

import os
import sys

import pytest

if __name__ == "__main__":
    options = ["--config-file=pyproject.toml", "-p", "no:cacheprovider"]
    if "XML_OUTPUT_FILE" in os.environ:
        options.append("--junitxml=" + os.environ["XML_OUTPUT_FILE"])
    # Bazel clears HOME, but matplotlib and other packages write to a folder in it.
    os.environ.setdefault("HOME", os.environ.get("TEST_TMPDIR", "/tmp"))
    sys.exit(pytest.main([*options, *sys.argv[1:]]))
