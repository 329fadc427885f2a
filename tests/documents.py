"""What the tests of README.md and docs/ share: the pages, their Python snippets and their links."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).absolute().parents[1]
# The public packages below tfr_smooth: the folders with a module of their own.
PACKAGES = sorted(path.parent.name for path in (ROOT / "tfr_smooth").glob("*/__init__.py"))


def snippets(page):
    """The page's Python snippets, which are one program in the order of the page."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)


def in_folder(program, folder):
    """The program, writing below a folder of the test's own: snippets write below /tmp/letor."""
    return program.replace("/tmp/letor", str(folder / "letor"))


def run(program, folder):
    program = in_folder(program, folder)
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=900)


def links_to_nothing(page):
    """The page's relative links, images too, to files that are not there."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.M | re.S)  # no code
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)[^)]*\)", text)
    return [link for link in links if not ((ROOT / page).parent / link).exists()]


def build_site(folder):
    """Builds the site; any warning of MkDocs, such as a name or link that leads nowhere, fails the build."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", f"--site-dir={folder}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder
