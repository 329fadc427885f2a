"""Writes Bazel's BUILD file from the tree: `python tools/update_build.py`.

There is one py_library for each module or package right under tfr_smooth/, one py_test for each
tests/**/test_*.py and one py_binary for each script under examples/ and benchmarks/. Their deps
are what their files import. Only the standard library is used, so any Python >= 3.10 runs it.
"""

import ast
import pathlib

ROOT = pathlib.Path(__file__).absolute().parents[1]
PACKAGE = "tfr_smooth"
SCRIPT_FOLDERS = ["benchmarks", "examples"]
TEST_MAIN = "tests/bazel_main.py"
# A test that imports one of these, or whose helper does, reads files, or starts programs, that its imports don't name.
READS_THE_TREE = {"importlib", "pathlib", "runpy", "subprocess"}

HEADER = """\
# Written by tools/update_build.py from the tree; run `make build-file` after adding, removing or
# moving a file or an import. TensorFlow and the other packages come from the Python that is first
# on the PATH (see `make bazel-test`).

package(default_visibility = ["//visibility:public"])

# For the tests that read the documents, start the scripts or build the wheel.
filegroup(
    name = "tree",
    srcs = glob(
        ["*", "benchmarks/**", "docs/**", "examples/**", "tests/**", "tfr_smooth/**", "tools/**"],
        exclude = ["**/__pycache__/**"],
    ),
)
"""


def files(folder: str) -> list[str]:
    """A folder's files as sorted paths from the root, without hidden and compiled ones."""
    names = [path.relative_to(ROOT) for path in (ROOT / folder).rglob("*") if path.is_file()]
    return sorted(
        name.as_posix()
        for name in names
        if not any(part.startswith(".") or part == "__pycache__" for part in name.parts)
    )


def imports(path: str) -> set[str]:
    """The dotted names a Python file imports, at any place in it: `from a import b` is a.b."""
    names = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # A relative import starts from the folder that is `level` steps up.
            parents = path.split("/")[: -node.level] if node.level else []
            base = ".".join([*parents, node.module] if node.module else parents)
            names.update(f"{base}.{alias.name}" for alias in node.names)
    return names


def units() -> dict[str, list[str]]:
    """The files of each module or package right under tfr_smooth.

    The unit tfr_smooth is the package's own __init__.py, which gathers the others.
    """
    found: dict[str, list[str]] = {}
    for path in files(PACKAGE):
        child = path.split("/")[1]
        unit = PACKAGE if child in ("__init__.py", "py.typed") else child.removesuffix(".py")
        found.setdefault(unit, []).append(path)
    return found


def imported_units(paths: list[str]) -> set[str]:
    """The units that these files import; a name that tfr_smooth itself holds is tfr_smooth's."""
    known = units()
    found = set()
    for path in paths:
        for name in imports(path):
            top, _, rest = name.partition(".")
            unit = rest.partition(".")[0]
            if top == PACKAGE:
                found.add(unit if unit in known else PACKAGE)
    return found


def rule(kind: str, name: str, **attributes: object) -> str:
    """One rule of the BUILD file; empty attributes are left out."""
    lines = [f"{kind}(", f'    name = "{name}",']
    for key, value in attributes.items():
        if isinstance(value, list) and len(value) > 1:
            lines += [f"    {key} = [", *(f'        "{item}",' for item in value), "    ],"]
        elif isinstance(value, list) and value:
            lines.append(f'    {key} = ["{value[0]}"],')
        elif isinstance(value, str):
            lines.append(f'    {key} = "{value}",')
    return "\n".join([*lines, ")", ""])


def library(name: str, paths: list[str]) -> str:
    """A py_library of these files, with the units they import as its deps."""
    python = [path for path in paths if path.endswith(".py")]
    return rule(
        "py_library",
        name,
        srcs=python,
        data=[path for path in paths if path not in python],
        deps=[f":{unit}" for unit in sorted(imported_units(python) - {name})],
    )


def is_test(path: str) -> bool:
    """Whether pytest collects the file."""
    return path.rpartition("/")[2].startswith("test_") and path.endswith(".py")


def test(path: str) -> str:
    """The py_test that runs one test file under pytest."""
    needed = imported_units([path])
    helpers = [name.replace(".", "/") + ".py" for name in imports(path) if name.startswith("tests.")]
    all_imports = imports(path).union(*(imports(helper) for helper in helpers if (ROOT / helper).is_file()))
    tops = {name.partition(".")[0] for name in all_imports}
    reads_tree = bool(tops & READS_THE_TREE)
    if reads_tree:
        needed.add(PACKAGE)
    scripts = [folder for folder in SCRIPT_FOLDERS if files(folder)]
    needed.update(folder for folder in scripts if folder in tops or reads_tree)
    return rule(
        "py_test",
        # Not the path: Bazel writes a launcher with the rule's name, and it would lie in tests/.
        path.removeprefix("tests/").removesuffix(".py").replace("/", "_"),
        srcs=[TEST_MAIN, path],
        args=[f"$(location {path})"],
        main=TEST_MAIN,
        data=[":tree"] if reads_tree else [],
        deps=[f":{name}" for name in sorted(needed | {"testing"})],
    )


def build_file() -> str:
    """The text of the BUILD file."""
    rules = [library(unit, paths) for unit, paths in sorted(units().items())]
    for folder in SCRIPT_FOLDERS:
        paths = files(folder)
        if paths:
            rules.append(library(folder, paths))
        for path in paths:
            if path.endswith(".py") and "__main__" in (ROOT / path).read_text(encoding="utf-8"):
                name = path.removeprefix(f"{folder}/").removesuffix(".py").replace("/", "_")
                rules.append(rule("py_binary", name, srcs=[path], main=path, deps=[f":{folder}"]))
    # What the tests share: pytest's settings, fixtures and helpers.
    shared = [path for path in files("tests") if not is_test(path) and path != TEST_MAIN]
    root_conftest = ["conftest.py"] if (ROOT / "conftest.py").exists() else []
    rules.append(library("testing", ["pyproject.toml", *root_conftest, *shared]))
    rules += [test(path) for path in files("tests") if is_test(path)]
    return "\n".join([HEADER, *rules])


if __name__ == "__main__":
    (ROOT / "BUILD").write_text(build_file(), encoding="utf-8")
