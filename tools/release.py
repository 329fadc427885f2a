"""Prepares a release: sets the version, commits and tags. Pushing the tag publishes it (.github/workflows/release.yml).

python tools/release.py 1.2.0       version, date and changelog, a commit, and the tag v1.2.0
python tools/release.py --notes     the changelog's section of the current version
"""

from __future__ import annotations

import datetime
import pathlib
import re
import subprocess
import sys

# Patterns of the version, by file.
PLACES = {
    "tfr_smooth/_version.py": r'(?<=__version__ = ").*(?=")',
    "CITATION.cff": r"(?<=\nversion: ).*(?=\n)",
    "docs/citation.md": r"(?<=version = \{).*(?=\})",
    "conda/recipe.yaml": r'(?<=\n  version: ").*(?=")',
}


class CannotRelease(Exception):
    """What must be changed first, in one line."""


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise CannotRelease(f"`git {' '.join(arguments)}` failed: {done.stderr.strip()}")
    return done.stdout.strip()


def replace(path: str, pattern: str, value: str) -> None:
    text = pathlib.Path(path).read_text(encoding="utf-8")
    found, count = re.subn(pattern, value, text)
    if not count:
        raise CannotRelease(f"{path} must have the version or date after {pattern!r}.")
    pathlib.Path(path).write_text(found, encoding="utf-8")


def section(version: str, date: str = ".+?") -> str:
    """Returns the text of the changelog's first section, which must be that of the version."""
    _, _, changelog = pathlib.Path("CHANGELOG.md").read_text(encoding="utf-8").partition("\n## ")
    found = re.match(rf"\[{re.escape(version)}\] - {date}\n(.*?)(?=^## |\Z)", changelog, re.M | re.S)
    if found is None or not found[1].strip():
        raise CannotRelease(f"The first section of CHANGELOG.md must be `## [{version}] - Unreleased`, with text.")
    return found[1].strip()


def release(version: str) -> None:
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise CannotRelease(f"The version must be X.Y.Z, got {version!r}.")
    if f"v{version}" in git("tag").splitlines():
        raise CannotRelease(f"The tag v{version} must not exist.")
    section(version, "Unreleased")
    if git("status", "--porcelain"):
        raise CannotRelease("The working tree must have no changes.")
    branch = git("branch", "--show-current")
    if not branch:
        raise CannotRelease("A branch must be checked out.")
    today = datetime.date.today().isoformat()
    for path, pattern in PLACES.items():
        replace(path, pattern, version)
    replace("CITATION.cff", rf"(?<=\nversion: {version}\n)(date-released: .*\n)?", f"date-released: {today}\n")
    replace("CHANGELOG.md", rf"(?<=## \[{re.escape(version)}\] - ).+", today)
    git("commit", "--all", "--message", f"Release {version}")
    git("tag", "--annotate", f"v{version}", "--message", f"tfr_smooth {version}")
    print(f"Publish with: git push --follow-tags origin {branch}")


def main(argument: str) -> None:
    if argument == "--notes":
        path = "tfr_smooth/_version.py"
        print(section(re.search(PLACES[path], pathlib.Path(path).read_text(encoding="utf-8"))[0]))
    else:
        release(argument)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:] or [""])
    except CannotRelease as error:
        sys.exit(str(error))
