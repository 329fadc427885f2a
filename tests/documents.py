"""Helpers for the tests of README.md and docs/: Python snippets, links and the built site."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).absolute().parents[1]
# The public packages in tfr_smooth: the folders with an __init__.py.
PACKAGES = sorted(path.parent.name for path in (ROOT / "tfr_smooth").glob("*/__init__.py"))


def snippets(page):
    """Returns the Python snippets of the page in order; together they are one program."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)


def broken_links(page):
    """Returns the relative links and images of the page whose target files do not exist."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.M | re.S)  # no code
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)[^)]*\)", text)
    return [link for link in links if not ((ROOT / page).parent / link).exists()]


def build_site(folder):
    """Builds the site; warnings of MkDocs, such as broken links, fail the build."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", f"--site-dir={folder}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder
