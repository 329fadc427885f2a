"""Prints the tests of the folders that differ from a commit: those that mirror the changed parts, and their doctests.

python tools/changed_tests.py           from the last commit on the main branch that is also in this one
python tools/changed_tests.py COMMIT    from that commit
"""

from __future__ import annotations

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).absolute().parents[1]
# Folders whose tests have their name.
MIRRORED = ("benchmarks", "examples", "experiments", "tests", "tfr_smooth")


def git(*arguments: str) -> list[str]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.splitlines()


def last_on_main() -> str:
    found = git("merge-base", "HEAD", "origin/main") or git("merge-base", "HEAD", "main")
    return found[0] if found else "HEAD"


def tests_of(path: str) -> list[str]:
    """Returns the tests of a file, which may not exist."""
    folder, *parts = path.split("/")
    if path == "conftest.py" or path.startswith("tests/helpers/"):
        return ["tests", "tfr_smooth"]
    if folder not in MIRRORED:
        return ["tests/project"]
    if folder == "tests":
        return [f"tests/{parts[0]}"]
    if folder != "tfr_smooth":
        return [f"tests/{folder}"]
    return [f"tests/{parts[0]}" if parts[1:] else f"tests/test_{parts[0].lstrip('_')}", f"tfr_smooth/{parts[0]}"]


def main() -> None:
    commit = sys.argv[1] if sys.argv[1:] else last_on_main()
    changed = [*git("diff", "--name-only", commit), *git("ls-files", "--others", "--exclude-standard")]
    found = dict.fromkeys(test for path in changed for test in tests_of(path))
    print(*sorted(test for test in found if (ROOT / test).exists()))


if __name__ == "__main__":
    main()
