"""The wheel, the source archive, the recipe for conda-forge, the version, and the imports between the parts."""

import ast
import email
import functools
import graphlib
import importlib.util
import re
import shutil
import sys
import tarfile
import zipfile

import pytest
import yaml

from tests import helpers
from tests.helpers.documents import ROOT, read

VERSION = re.search(r'^__version__ = "(.+)"$', read("tfr_smooth/_version.py"), re.M)[1]
INFO = f"tfr_smooth-{VERSION}.dist-info/"


FOUND = sorted((ROOT / "tfr_smooth").rglob("*"))
FILES = [path for path in FOUND if path.is_file() and "__pycache__" not in path.parts]
# In the source archive, besides the package.
OF_THE_ARCHIVE = ["LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py"]


# The wheel and the source archive.


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Copies the sources, so that the tree stays clean."""
    source = tmp_path_factory.mktemp("source")
    for name in OF_THE_ARCHIVE:
        shutil.copy(ROOT / name, source)
    for folder in {path.parent for path in ROOT.glob("*/*.py")}:
        shutil.copytree(folder, source / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    return source


@pytest.fixture(scope="module")
def wheel(source, tmp_path_factory):
    """Builds the wheel without network."""
    target = tmp_path_factory.mktemp("wheel")
    flags = ["--no-index", "--no-deps", "--no-build-isolation", f"--wheel-dir={target}"]
    helpers.check_run("-m", "pip", "wheel", *flags, source)
    assert not (source / "build").exists()  # On macOS, it collides with the file BUILD.
    (path,) = target.iterdir()
    with zipfile.ZipFile(path) as archive:
        yield archive


@pytest.fixture(scope="module")
def metadata(wheel):
    return email.message_from_bytes(wheel.read(INFO + "METADATA"))


def test_wheel_contains_exactly_the_package(wheel):
    names = [path.relative_to(ROOT).as_posix() for path in FILES]
    assert sorted(name for name in wheel.namelist() if not name.startswith(INFO)) == names
    assert "tfr_smooth/py.typed" in names and INFO + "licenses/LICENSE" in wheel.namelist()


def test_source_archive_contains_the_package_and_what_builds_it(source, tmp_path):
    build = "import os, sys, setuptools.build_meta as backend; os.chdir(sys.argv[1]); backend.build_sdist(sys.argv[2])"
    helpers.check_run("-c", build, source, tmp_path)
    with tarfile.open(tmp_path / f"tfr_smooth-{VERSION}.tar.gz") as archive:
        names = {name.partition("/")[2] for name in archive.getnames() if archive.getmember(name).isfile()}
    inside = {name for name in names if not name.startswith("tfr_smooth.egg-info/")} - {"PKG-INFO", "setup.cfg"}
    assert inside == {*OF_THE_ARCHIVE, *(path.relative_to(ROOT).as_posix() for path in FILES)}


def test_readme_in_the_wheel_has_absolute_links(metadata):
    """Package indexes show the README, where relative links would be broken."""
    assert metadata["Description-Content-Type"] == "text/markdown"
    readme, shown = read("README.md"), metadata.get_payload(decode=True).decode("utf-8")
    links = re.findall(r"\]\(([^)\s]+)\)", shown)
    assert len(links) == len(re.findall(r"\]\(", readme)) and [link for link in links if ":" not in link] == []
    repository = re.search("^repository-code: (.+)$", read("CITATION.cff"), re.M)[1]
    inside = [link.removeprefix(f"{repository}/blob/main/") for link in links if link.startswith(repository)]
    assert "docs/getting_started.md" in inside
    assert [path for path in inside if not (ROOT / path.partition("#")[0]).is_file()] == []
    # The rest of the README is unchanged.
    assert shown.replace(f"{repository}/blob/main/", "").strip() == readme.strip()


def test_wheel_declares_every_imported_package(metadata):
    other_names = {"google": "protobuf", "pytrec_eval": "pytrec_eval-terrier"}
    other_names |= {"PIL": "matplotlib", "tensorflow_serving": "tensorflow-serving-api"}  # Matplotlib requires Pillow.
    # scikit-learn itself calls the methods that import it, or it is not necessary.
    outside = set().union(*map(imported_packages, FILES)) - set(sys.stdlib_module_names) - {"sklearn", "tfr_smooth"}
    needs = [need.partition(";") for need in metadata.get_all("Requires-Dist")]
    declared = {re.match(r"[\w.-]+", need)[0] for need, _, _ in needs}
    assert {other_names.get(name, name.replace("_", "-")) for name in outside} <= declared
    always = {re.match(r"[\w.-]+", need)[0] for need, _, condition in needs if "extra" not in condition}
    assert always == {"lightgbm", "numpy", "protobuf", "pyarrow", "scipy", "tensorflow", "typing-extensions"}


def test_recipe_for_conda_forge_has_the_requirements_and_commands_of_the_wheel(wheel, metadata):
    recipe = yaml.safe_load(read("conda/recipe.yaml"))
    needs = [re.match(r"([\w-]+)(.*)", need) for need in metadata.get_all("Requires-Dist") if "extra ==" not in need]
    expected = [f"{need[1].replace('typing-extensions', 'typing_extensions')} {need[2]}" for need in needs]
    assert recipe["requirements"]["run"] == ["python >=${{ python_min }}", *expected]
    # conda-forge's python_min is 3.10; a package that needs a newer Python sets it in `context`.
    assert metadata["Requires-Python"] == ">=" + recipe["context"].get("python_min", "3.10")
    (setuptools,) = re.findall(r'^requires = \["setuptools>=(\d+)"\]$', read("pyproject.toml"), re.M)
    assert f"setuptools >={setuptools}" in recipe["requirements"]["host"]
    commands = wheel.read(INFO + "entry_points.txt").decode().splitlines()
    assert ["[console_scripts]", *recipe["build"]["python"]["entry_points"]] == commands
    assert recipe["about"]["summary"] == metadata["Summary"]


# The version.


def test_citation_recipe_and_changelog_have_the_version():
    assert f"\nversion: {VERSION}\n" in read("CITATION.cff") and f"{{{VERSION}}}" in read("docs/citation.md")
    assert f'\n  version: "{VERSION}"\n' in read("conda/recipe.yaml")
    number, date = re.search(r"^## \[(.+?)\] - (.+)$", read("CHANGELOG.md"), re.M).groups()
    release, _, development = VERSION.partition(".dev")
    assert number == release and (date == "Unreleased") == bool(development)


# Imports between the parts of the package.


@functools.cache
def imports(path, for_types=True):
    """Returns the dotted names that a file imports: `a.b` for `from a import b`."""
    if path.suffix != ".py":
        return set()
    tree, package = ast.parse(path.read_text(encoding="utf-8")), ".".join(path.relative_to(ROOT).parts[:-1])
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    skipped = set() if for_types else {node for block in blocks for node in ast.walk(block)}
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and node not in skipped:
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node not in skipped:
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            names.update(f"{base}.{alias.name}" for alias in node.names)
    return names


def imported_packages(path):
    return {name.partition(".")[0] for name in imports(path)}


def part_of(path):
    return path.relative_to(ROOT / "tfr_smooth").parts[0].removesuffix(".py")


MODULES = {path.relative_to(ROOT).with_suffix("").as_posix(): path for path in FILES if path.suffix == ".py"}
MODULES = {name.replace("/", ".").removesuffix(".__init__"): path for name, path in MODULES.items()}


def imported_modules(path, **options):
    """Returns the files of tfr_smooth that a file imports."""
    names = imports(path, **options)
    found = [MODULES.get(name) or MODULES.get(name.rpartition(".")[0]) for name in names]
    return {each for each in found if each not in (None, path)}


TABLE = re.search(r"^\| module \|.*?\n\n", read("CONTRIBUTING.md"), re.M | re.S)[0]
ORDER = [name for row in re.findall(r"^\|(.*?)\|", TABLE, re.M) for name in re.findall(r"`(\w+)(?:\.py|/)`", row)]


def test_a_part_imports_only_those_before_it_in_the_table_of_modules_and_modules_no_circle():
    assert sorted(ORDER) == sorted({part_of(path) for path in MODULES.values()})
    for path in MODULES.values():
        before = ORDER[: ORDER.index(part_of(path)) + 1]
        assert {part_of(each) for each in imported_modules(path)} <= set(before), path
    graph = {path: imported_modules(path, for_types=False) for path in MODULES.values() if path.name != "__init__.py"}
    assert list(graphlib.TopologicalSorter(graph).static_order())
    # The container of lists imports no reader.
    container = [path for path in FILES if path.parent.name == "data" and path.name != "__init__.py"]
    assert container and not [path for path in container if "data.reading" in path.read_text(encoding="utf-8")]


def test_only_the_tf_ranking_package_imports_tf_ranking_and_no_other_part_needs_its_names():
    assert {part_of(path) for path in FILES if "tensorflow_ranking" in imported_packages(path)} == {"tf_ranking"}
    users = {part_of(path): {part_of(each) for each in imported_modules(path)} for path in MODULES.values()}
    assert {part for part, used in users.items() if used & {"keras_ranking", "tf_ranking"}} <= {"tf_ranking"}
