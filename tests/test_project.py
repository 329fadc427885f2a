"""Workflows, and links, commands and extras in the documentation."""

import itertools
import re
import sys

import pytest
import yaml

from tests import documents

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # a requirement of pytest

ROOT = documents.ROOT


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


PROJECT = tomllib.loads(read("pyproject.toml"))["project"]
WORKFLOWS = {path.name: yaml.safe_load(path.read_text()) for path in (ROOT / ".github/workflows").glob("*.yml")}
JOBS = {f"{file}: {name}": job for file, flow in WORKFLOWS.items() for name, job in flow["jobs"].items()}
MAKEFILE = read("Makefile")
TARGETS = set(itertools.chain(*(line.split() for line in re.findall(r"^([a-z][\w .-]*):(?!=)", MAKEFILE, re.M))))
# Markdown files outside of docs/, whose links MkDocs checks.
OUTSIDE = [".github/pull_request_template.md", "benchmarks/README.md", *(path.name for path in ROOT.glob("*.md"))]
GUIDES = [*OUTSIDE, *(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]


def commands(job):
    """Yields the shell commands of the job for each value of the matrix."""
    matrix = {name: values for name, values in job.get("strategy", {}).get("matrix", {}).items() if name != "exclude"}
    for step, values in itertools.product(job["steps"], itertools.product(*matrix.values())):
        filled = dict(zip(matrix, values, strict=True))
        for line in step.get("run", "").splitlines():
            yield re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda found, filled=filled: filled[found[1]], line)


@pytest.mark.parametrize("job", JOBS)
def test_workflows_run_only_make_targets_with_known_variables(job):
    for command in commands(JOBS[job]):
        program, target, *variables = command.split()
        assert program == "make" and target in TARGETS, command
        assert all(f"{variable.partition('=')[0]} ?=" in MAKEFILE for variable in variables), command


@pytest.mark.parametrize("page", OUTSIDE)
def test_relative_links_point_to_existing_files(page):
    assert documents.broken_links(page) == []


@pytest.mark.parametrize("page", GUIDES)
def test_documented_make_targets_and_extras_exist(page):
    text = read(page)
    named = re.findall(r"(?:`|^)make ((?:[a-z][\w.-]*(?:[ `]|$))+)", text, re.M)
    assert {target for names in named for target in names.strip("`").split()} <= TARGETS
    extras = re.findall(r"(?:'\.|tfr_smooth)\[([\w,-]+)\]", text)
    # `[extra]` is a placeholder.
    assert {extra for names in extras for extra in names.split(",")} - {"extra"} <= set(
        PROJECT["optional-dependencies"]
    )


def test_the_installation_page_describes_every_extra():
    described = set(re.findall(r"\[([a-z-]+)\]`?'? ?", read("docs/installation.md")))
    assert set(PROJECT["optional-dependencies"]) - {"test", "dev", "docs"} <= described
