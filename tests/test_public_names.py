"""The names of the packages: `__all__` is all that is public, and names are the field's."""

import ast
import importlib
import types

import pytest

from tests import documents
from tests.helpers import tf_ranking

SOURCES = sorted((documents.ROOT / "tfr_smooth").rglob("*.py"))
# Words that say nothing of what a variable holds.
VAGUE = {"beaten", "made", "poison", "poisoned", "worth"}


@pytest.mark.parametrize("package", documents.PACKAGES)
def test_public_names_are_those_of_all(package):
    if package == "tf_ranking":
        tf_ranking()
    module = importlib.import_module(f"tfr_smooth.{package}")
    assert len(set(module.__all__)) == len(module.__all__)
    others = {name: getattr(module, name) for name in set(dir(module)) - set(module.__all__) if name[0] != "_"}
    # Python itself adds a package's modules.
    assert [
        name
        for name, value in others.items()
        if not isinstance(value, types.ModuleType) or value.__name__ != f"{module.__name__}.{name}"
    ] == []


def identifiers(tree):
    for node in ast.walk(tree):
        for attribute in ("id", "name", "attr", "arg", "asname"):
            if isinstance(getattr(node, attribute, None), str):
                yield getattr(node, attribute)


def test_identifiers_say_what_they_name():
    assert len(SOURCES) > 50
    vague = {
        f"{path.relative_to(documents.ROOT)}: {name}"
        for path in SOURCES
        for name in identifiers(ast.parse(path.read_text(encoding="utf-8")))
        if VAGUE & set(name.lower().split("_"))
    }
    assert vague == set()
