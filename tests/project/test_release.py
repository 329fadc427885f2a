"""`make release`: the version in all its places, a commit, a tag, and the notes; and what it refuses."""

import datetime
import shutil
import subprocess
import sys

import pytest

from tests.helpers.documents import ROOT

CHANGELOG = "# Changelog\n\n## [9.8.7] - Unreleased\n\n### Fixed\n\n- A defect.\n\n## [0.9.0] - 2020-01-01\n\n- Old.\n"


def git(folder, *arguments):
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def tree(tmp_path):
    for path in ("tfr_smooth/_version.py", "CITATION.cff", "docs/citation.md", "conda/recipe.yaml"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    author = "config user.name A", "config user.email a@example.com"
    for command in ("init --initial-branch=main", *author, "add --all", "commit --message=first"):
        git(tmp_path, *command.split())
    return tmp_path


def run(tree, *arguments):
    command = [sys.executable, ROOT / "tools/release.py", *arguments]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True)


def test_a_release_has_its_version_everywhere_a_commit_a_tag_and_notes(tree):
    done = run(tree, "9.8.7")
    assert done.returncode == 0 and "git push --follow-tags origin main" in done.stdout, done.stderr
    today = datetime.date.today().isoformat()
    assert '__version__ = "9.8.7"' in (tree / "tfr_smooth/_version.py").read_text()
    assert f"\nversion: 9.8.7\ndate-released: {today}\n" in (tree / "CITATION.cff").read_text()
    assert "version = {9.8.7}," in (tree / "docs/citation.md").read_text()
    assert '\n  version: "9.8.7"\n' in (tree / "conda/recipe.yaml").read_text()
    assert (tree / "CHANGELOG.md").read_text() == CHANGELOG.replace("Unreleased", today)
    assert git(tree, "log", "-1", "--format=%s", "v9.8.7").strip() == "Release 9.8.7"
    assert git(tree, "status", "--porcelain") == ""
    assert run(tree, "--notes").stdout == "### Fixed\n\n- A defect.\n"
    assert run(tree, "9.8.7").stderr.strip() == "The tag v9.8.7 must not exist."


def test_what_cannot_be_released_is_refused_without_a_change(tree):
    git(tree, "checkout", "--detach")
    assert run(tree, "9.8.7").stderr.strip() == "A branch must be checked out."
    git(tree, "checkout", "main")
    (tree / "new.txt").write_text("not committed")
    for version, message in (
        ("9.8", "The version must be X.Y.Z, got '9.8'."),
        ("1.2.3", "The first section of CHANGELOG.md must be `## [1.2.3] - Unreleased`, with text."),
        ("9.8.7", "The working tree must have no changes."),
    ):
        done = run(tree, version)
        assert (done.returncode, done.stderr.strip()) == (1, message)
    assert git(tree, "diff") == "" and git(tree, "tag") == ""
