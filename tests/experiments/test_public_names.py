"""The laboratory uses public names of the package, and the package does not know the laboratory."""

import ast
import importlib
import pathlib

ROOT = pathlib.Path(__file__).absolute().parents[2]


def test_only_public_names_of_the_package_are_imported():
    imported = set()
    for path in (ROOT / "experiments").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("tfr_smooth"):
                imported |= {(node.module, alias.name) for alias in node.names}
    assert ("tfr_smooth", "losses") in imported
    for module, name in imported:
        public = getattr(importlib.import_module(module), "__all__", ())
        packages = {path.parent.name for path in (ROOT / "tfr_smooth").glob("*/__init__.py")}
        assert "._" not in module and (name in public or (module == "tfr_smooth" and name in packages)), (module, name)


def test_the_package_does_not_refer_to_the_laboratory():
    files = list((ROOT / "tfr_smooth").rglob("*.py"))
    assert files and [path for path in files if "experiments" in path.read_text(encoding="utf-8")] == []
