"""Workflows, and links, commands and extras in the documentation; what the scripts import."""

import ast
import importlib
import itertools
import re

import yaml

from tests.helpers.documents import PACKAGES, ROOT, read

DEPENDENCIES = read("pyproject.toml").partition("\n[project.optional-dependencies]\n")[2].partition("\n[tool")[0]
EXTRAS = set(re.findall(r"^([a-z-]+) = \[", DEPENDENCIES, re.M))
WORKFLOWS = {path.name: yaml.safe_load(path.read_text()) for path in (ROOT / ".github/workflows").glob("*.yml")}
JOBS = {f"{file}: {name}": job for file, flow in WORKFLOWS.items() for name, job in flow["jobs"].items()}
MAKEFILE = read("Makefile")
TARGETS = set(itertools.chain(*(line.split() for line in re.findall(r"^([a-z][\w .-]*):(?!=)", MAKEFILE, re.M))))
# Markdown files outside of docs/, whose links MkDocs checks.
OUTSIDE = [".github/pull_request_template.md", "benchmarks/README.md", *(path.name for path in ROOT.glob("*.md"))]
GUIDES = [*OUTSIDE, *(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]


def test_workflows_run_only_make_targets_with_known_variables():
    for name, job in JOBS.items():
        stacks = job.get("strategy", {}).get("matrix", {}).get("stack", [""])
        for step, stack in itertools.product(job["steps"], stacks):
            for command in step.get("run", "").replace("${{ matrix.stack }}", stack).splitlines():
                program, target, *variables = command.split()
                assert program == "make" and target in TARGETS, (name, command)
                assert all(f"{variable.partition('=')[0]} ?=" in MAKEFILE for variable in variables), (name, command)


def test_relative_links_make_targets_extras_and_tests_exist():
    for page in GUIDES:
        text = re.sub(r"^```.*?^```|`[^`\n]*`", "", read(page), flags=re.M | re.S)  # no code
        links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)[^)]*\)", text) if page in OUTSIDE else []
        assert [link for link in links if not ((ROOT / page).parent / link).exists()] == [], page
        named = re.findall(r"(?:`|^)make ((?:[a-z][\w.-]*(?:[ `]|$))+)", read(page), re.M)
        assert {target for names in named for target in names.strip("`").split()} <= TARGETS, page
        extras = re.findall(r"(?:'\.|tfr_smooth)\[([\w,-]+)\]", read(page))
        # `[extra]` is a placeholder.
        assert {extra for names in extras for extra in names.split(",")} - {"extra"} <= EXTRAS, page
    assert EXTRAS - {"test", "dev", "docs"} <= set(re.findall(r"\[([a-z-]+)\]`?'? ?", read("docs/installation.md")))
    names = re.findall(r"\b((?:tests|tfr_smooth)/[\w/]+(?:\.py)?)(?:::(\w+))?", MAKEFILE)
    assert len(names) > 10
    assert [path for path, _ in names if not (ROOT / path).exists()] == []
    assert [test for path, test in names if test and f"def {test}(" not in read(path)] == []


def test_scripts_import_public_names_of_the_package_which_does_not_refer_to_the_laboratory():
    files = list((ROOT / "tfr_smooth").rglob("*.py"))
    assert files and [path for path in files if "experiments" in path.read_text("utf-8")] == []
    paths = [*(ROOT / "examples").glob("*.py"), *(ROOT / "experiments").glob("*.py")]
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    origins = [node for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    imported = {(node.module, alias.name) for node in origins for alias in node.names}
    assert ("tfr_smooth", "losses") in imported
    for module, name in imported:
        if module.partition(".")[0] == "tfr_smooth" and module != "tfr_smooth.tf_ranking":  # which needs Keras 2
            public = getattr(importlib.import_module(module), "__all__", ())
            assert name in public or (module == "tfr_smooth" and name in {*PACKAGES, "_files"}), (module, name)
