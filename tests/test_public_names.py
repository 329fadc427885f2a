"""Public names are exactly those in `__all__`, and identifiers avoid vague words."""

import ast
import importlib
import types

import pytest

from tests import documents
from tests.helpers import tf_ranking

SOURCES = sorted((documents.ROOT / "tfr_smooth").rglob("*.py"))
# Words that do not describe the content of a variable.
VAGUE = {"beaten", "made", "poison", "poisoned", "worth"}


@pytest.mark.parametrize("package", documents.PACKAGES)
def test_public_names_are_listed_in_all(package):
    if package == "tf_ranking":
        tf_ranking()
    module = importlib.import_module(f"tfr_smooth.{package}")
    assert len(set(module.__all__)) == len(module.__all__)
    others = {name: getattr(module, name) for name in set(dir(module)) - set(module.__all__) if name[0] != "_"}
    # Python adds imported submodules to their package.
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


def test_identifiers_avoid_vague_words():
    assert len(SOURCES) > 50
    vague = {
        f"{path.relative_to(documents.ROOT)}: {name}"
        for path in SOURCES
        for name in identifiers(ast.parse(path.read_text(encoding="utf-8")))
        if VAGUE & set(name.lower().split("_"))
    }
    assert vague == set()
