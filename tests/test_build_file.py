"""Bazel's BUILD file says what the tree holds."""

import ast
import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).absolute().parents[1]


def load_update_build():
    spec = importlib.util.spec_from_file_location("update_build", ROOT / "tools/update_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


update_build = load_update_build()


def read_rules():
    """Each rule with a name in BUILD, which is Python syntax, as (kind, attributes)."""
    rules = []
    for statement in ast.parse((ROOT / "BUILD").read_text(encoding="utf-8")).body:
        call = statement.value
        if call.func.id.startswith("py_"):
            values = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
            rules.append((call.func.id, values))
    return rules


def rules_of(kind):
    return [values for rule_kind, values in read_rules() if rule_kind == kind]


def libraries_by_source():
    """The names of the py_library rules that list each file."""
    owners = {}
    for values in rules_of("py_library"):
        for path in values.get("srcs", []) + values.get("data", []):
            owners.setdefault(path, []).append(values["name"])
    return owners


def modules():
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tfr_smooth").rglob("*.py"))


def test_build_file_is_what_the_generator_writes():
    assert (ROOT / "BUILD").read_text(encoding="utf-8") == update_build.build_file(), (
        "BUILD is behind the tree: run `make build-file`"
    )


def test_every_module_is_in_exactly_one_library():
    owners = libraries_by_source()
    assert modules()
    assert {path: len(owners.get(path, [])) for path in modules()} == dict.fromkeys(modules(), 1)


def test_every_test_file_has_exactly_one_py_test_that_runs_it():
    test_files = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))
    assert sorted(values["args"][0] for values in rules_of("py_test")) == [f"$(location {path})" for path in test_files]
    for values in rules_of("py_test"):
        assert values["args"] == [f"$(location {values['srcs'][-1]})"]


@pytest.mark.parametrize("name", ["test_readme", "test_docs", "benchmarks_test_padding"])
def test_a_test_that_reads_the_tree_itself_or_by_its_helper_gets_it(name):
    (values,) = [values for values in rules_of("py_test") if values["name"] == name]
    assert values["data"] == [":tree"]


def test_every_listed_file_exists():
    listed = [
        path
        for _, values in read_rules()
        for path in values.get("srcs", []) + values.get("data", [])
        if not path.startswith(":")
    ]
    assert [path for path in listed if not (ROOT / path).is_file()] == []


def test_every_dep_is_a_rule_and_no_rule_is_named_twice():
    names = [values["name"] for _, values in read_rules()]
    assert len(names) == len(set(names))
    deps = {dep for _, values in read_rules() for dep in values.get("deps", [])}
    assert deps <= {f":{name}" for name in names}


def test_library_deps_are_the_imports_between_our_packages():
    owners = libraries_by_source()
    for values in rules_of("py_library"):
        sources = values.get("srcs", [])
        if not sources or not sources[0].startswith("tfr_smooth/"):
            continue
        imported = set()
        for path in sources:
            for module in imported_modules(path):
                imported.update(owners[module])
        expected = sorted(f":{name}" for name in imported - {values["name"]})
        assert values.get("deps", []) == expected, values["name"]


def imported_modules(path):
    """The files of our own that a file's imports name, found without the generator's help."""
    package = path.removesuffix(".py").split("/")[:-1]
    found = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            candidates = [[*base, alias.name] for alias in node.names]
        elif isinstance(node, ast.Import):
            candidates = [alias.name.split(".") for alias in node.names]
        else:
            continue
        for parts in candidates:
            if parts[0] == "tfr_smooth":
                found.add(module_file(parts) or module_file(parts[:-1]))
    return found


def module_file(parts):
    for path in ("/".join(parts) + ".py", "/".join(parts) + "/__init__.py"):
        if (ROOT / path).is_file():
            return path
    return None


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import a.b", {"a.b"}),
        ("import a as x, c", {"a", "c"}),
        ("from a.b import c, d", {"a.b.c", "a.b.d"}),
        ("from . import c", {"tfr_smooth.ops.c"}),
        ("from .c import d", {"tfr_smooth.ops.c.d"}),
        ("from ..data import d", {"tfr_smooth.data.d"}),
        ("def f():\n  import late", {"late"}),
    ],
)
def test_imports_are_read_as_dotted_names(tmp_path, monkeypatch, source, expected):
    monkeypatch.setattr(update_build, "ROOT", tmp_path)
    (tmp_path / "tfr_smooth/ops").mkdir(parents=True)
    (tmp_path / "tfr_smooth/ops/x.py").write_text(source)
    assert update_build.imports("tfr_smooth/ops/x.py") == expected
