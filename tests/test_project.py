"""Project files: workflows, issue forms, metadata, citations, and documentation pages included from other files."""

import itertools
import pathlib
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
URLS = PROJECT["urls"]
CITATION = yaml.safe_load(read("CITATION.cff"))
WORKFLOWS = {path.name: yaml.safe_load(path.read_text()) for path in (ROOT / ".github/workflows").glob("*.yml")}
JOBS = {f"{file}: {name}": job for file, flow in WORKFLOWS.items() for name, job in flow["jobs"].items()}
FORMS = sorted(path.name for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
MAKEFILE = read("Makefile")
TARGETS = set(itertools.chain(*(line.split() for line in re.findall(r"^([a-z][\w .-]*):(?!=)", MAKEFILE, re.M))))
PYTHONS = [line.rpartition(" :: ")[2] for line in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", line)]
# Markdown files outside of docs/.
ROOT_PAGES = ["CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "RELEASING.md", "benchmarks/README.md"]
GUIDES = ["README.md", *ROOT_PAGES, *(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]


def combinations(job):
    """Returns the combinations of the job's matrix except the excluded ones; one empty dict without a matrix."""
    matrix = dict(job.get("strategy", {}).get("matrix", {}))
    excluded = matrix.pop("exclude", [])
    every = [dict(zip(matrix, values, strict=True)) for values in itertools.product(*matrix.values())]
    return [each for each in every if not any(out.items() <= each.items() for out in excluded)]


def commands(job):
    """Yields the shell commands of the job for each combination of its matrix."""
    for step, values in itertools.product(job["steps"], combinations(job)):
        for line in step.get("run", "").splitlines():
            yield re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda found, values=values: values[found[1]], line)


# The workflows.


@pytest.mark.parametrize("job", JOBS)
def test_workflows_run_only_make_targets_with_known_variables(job):
    for command in commands(JOBS[job]):
        program, target, *variables = command.split()
        assert program == "make" and target in TARGETS, command
        assert all(f"{variable.partition('=')[0]} ?=" in MAKEFILE for variable in variables), command


@pytest.mark.parametrize("job", JOBS)
def test_actions_are_pinned_by_major_version(job):
    used = [step["uses"] for step in JOBS[job]["steps"] if "uses" in step]
    assert used and [action for action in used if not re.fullmatch(r"actions/[\w-]+@v\d+", action)] == []


@pytest.mark.parametrize("job", JOBS)
def test_jobs_use_only_supported_python_versions(job):
    python = [step["with"]["python-version"] for step in JOBS[job]["steps"] if "python-version" in step.get("with", {})]
    python += JOBS[job].get("strategy", {}).get("matrix", {}).get("python", [])
    assert {version for version in python if "matrix" not in version} <= set(PYTHONS)


def test_every_supported_python_runs_every_compatible_stack():
    job = JOBS["tests.yml: tests"]
    assert job["strategy"]["matrix"]["python"] == PYTHONS
    stacks = set(re.findall(r"^EXTRAS_(\S+) =", MAKEFILE, re.M))
    # TensorFlow 2.15 has builds up to Python 3.11.
    expected = {(python, stack) for python in PYTHONS for stack in stacks}
    expected -= {(python, "ranking-2.15") for python in PYTHONS if int(python.split(".")[1]) > 11}
    assert {(each["python"], each["stack"]) for each in combinations(job)} == expected


def test_workflows_lint_test_and_build_the_wheel_and_the_site():
    run = {command.split()[1] for job in JOBS.values() for command in commands(job)}
    assert {"lint", "test-latest", "test-ranking", "test-ranking-2.15", "check-wheel", "docs"} == run


def test_the_oldest_python_is_the_required_one():
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


def test_extras_installed_by_make_exist():
    names = ",".join(re.findall(r"^EXTRAS_\S+ = (\S+)$", MAKEFILE, re.M)).split(",")
    assert set(names) <= set(PROJECT["optional-dependencies"])


# Issues and pull requests.


@pytest.mark.parametrize("name", FORMS)
def test_issue_forms_are_complete(name):
    form = yaml.safe_load(read(f".github/ISSUE_TEMPLATE/{name}"))
    assert form["name"] and form["description"] and form["labels"]
    ids = [field["id"] for field in form["body"]]
    assert len(set(ids)) == len(ids)
    for field in form["body"]:
        assert field["type"] in ("checkboxes", "dropdown", "input", "textarea")
        assert field["attributes"]["label"]
        assert bool(field["attributes"].get("options")) == (field["type"] in ("checkboxes", "dropdown"))


def test_bugs_features_and_questions_have_issue_forms():
    assert FORMS == ["bug.yml", "feature.yml", "question.yml"]


# Commands, extras, links and addresses in the documentation.


@pytest.mark.parametrize("page", [*ROOT_PAGES, ".github/pull_request_template.md"])
def test_relative_links_point_to_existing_files(page):
    assert documents.broken_links(page) == []


@pytest.mark.parametrize("page", [*GUIDES, ".github/pull_request_template.md"])
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


def test_all_files_use_the_same_project_urls():
    home = URLS["Homepage"]
    assert URLS["Repository"] == CITATION["repository-code"] == home
    assert CITATION["url"] == URLS["Documentation"]
    assert re.search(r"^repo_url: (.+)$", read("mkdocs.yml"), re.M)[1] == home
    assert set(re.findall(r"^site_url: (\S+)$", read("mkdocs.yml"), re.M)) <= {URLS["Documentation"]}
    sources = [*GUIDES, "setup.py", "pyproject.toml", *(f".github/ISSUE_TEMPLATE/{name}" for name in FORMS)]
    sources.append(".github/ISSUE_TEMPLATE/config.yml")
    text = "\n".join(read(path) for path in sources)
    assert set(re.findall(r"https://github\.com/[\w-]+/tfr_smooth\b", text)) == {home}
    assert set(re.findall(r"https://[\w-]+\.github\.io/\w*/?", text)) == {URLS["Documentation"]}


# Citations.


RELAXATIONS = [
    f"relaxations/{path.stem}"
    for path in sorted((ROOT / "docs/relaxations").glob("*.md"))
    if path.stem not in ("index", "your_own")
]


def bibtex():
    """Returns the fields of the BibTeX entries in docs/citation.md, by key."""
    entries = re.findall(r"^@\w+\{(\w+),\n(.*?)^\}", read("docs/citation.md"), re.M | re.S)
    return {key: dict(re.findall(r"^  (\w+) += \{(.*)\},?$", body, re.M)) for key, body in entries}


def plain(text):
    return re.sub(r"[{}\\]", "", text)


def test_the_citation_page_has_the_software_and_papers_of_citation_cff():
    entries = bibtex()
    software = entries["tfr_smooth"]
    assert (software["version"], software["license"]) == (CITATION["version"], CITATION["license"])
    assert software["url"] == URLS["Repository"]
    titles = {plain(entry["title"]): entry for entry in entries.values()}
    for paper in CITATION["references"]:
        entry = titles[paper["title"]]
        authors = [f"{author['family-names']}, {author['given-names']}" for author in paper["authors"]]
        assert entry["author"].split(" and ") == authors
        assert entry["year"] == str(paper["year"])
        assert entry.get("doi") == paper.get("doi")


@pytest.mark.parametrize("page", [*RELAXATIONS, "losses/list_ap"])
def test_the_citation_page_has_the_papers_of_each_method(page):
    """Compares the italic titles, years and identifiers before the first section of the page."""
    first = read(f"docs/{page}.md").partition("\n## ")[0].replace("\n", " ")
    entries = {plain(entry["title"]): entry for entry in bibtex().values()}
    titles = re.findall(r"\*([^*]+)\*", first)
    assert titles and set(titles) <= set(entries)
    cited = " ".join(" ".join(entries[title].values()) for title in titles)
    identifiers = re.findall(r"arXiv:([\d.]+\d)|doi\.org/([\d./]+\d)", first)
    assert [name for pair in identifiers for name in pair if name not in cited] == []
    assert {entries[title]["year"] for title in titles} <= set(re.findall(r"\b20\d\d\b", first))
    assert f"({page}.md)" in read("docs/citation.md")


# Pages included from files outside of docs/.


@pytest.fixture(scope="module")
def included():
    """Returns the Markdown of these pages after the hook, by page."""
    pytest.importorskip("mkdocs", reason="MkDocs is only in the stack 'latest'")
    from mkdocs.config import load_config
    from mkdocs.structure.files import get_files
    from mkdocs.structure.pages import Page

    config = load_config(str(ROOT / "mkdocs.yml"))
    files = get_files(config)
    (hook,) = [module for path, module in config.hooks.items() if path.endswith("mkdocs_includes.py")]
    texts = {}
    for file in files.documentation_pages():
        text = pathlib.Path(file.abs_src_path).read_text(encoding="utf-8")
        page = Page(None, file, config)
        shown = hook.on_page_markdown(text, page=page, config=config, files=files)
        if shown != text:
            texts[file.src_uri] = shown
    return texts


def test_changelog_benchmarks_and_contributing_are_pages(included):
    sources = {"benchmarks.md": "benchmarks/README.md", "changelog.md": "CHANGELOG.md"}
    sources["contributing.md"] = "CONTRIBUTING.md"
    assert set(included) == set(sources)
    for page, source in sources.items():
        assert included[page].splitlines()[0] == read(source).splitlines()[0]


def test_links_of_included_files_point_to_pages_or_repository_files(included):
    assert "](distributed.md#feeding-the-workers)" in included["benchmarks.md"]
    assert "](images/growth.png)" in included["benchmarks.md"]
    assert "](relaxations/your_own.md)" in included["contributing.md"]
    assert "](benchmarks.md)" in included["contributing.md"] and "](changelog.md)" in included["contributing.md"]
    links = [link for text in included.values() for link in re.findall(r"\]\(([^)#\s]+)", text)]
    files = f"{URLS['Repository']}/blob/main/"
    outside = [link.removeprefix(files) for link in links if link.startswith(files)]
    assert "tfr_smooth/registry.py" in outside and [path for path in outside if not (ROOT / path).is_file()] == []
    inside = [link for link in links if not link.startswith("https:")]
    assert [path for path in inside if not (ROOT / "docs" / path).is_file()] == []
