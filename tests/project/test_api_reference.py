"""The public names are those in `__all__`, and each has a complete docstring.

The docstring of a class or function must describe all parameters and the returned value, and contain an example that
runs. Methods and properties that the API reference shows need a docstring.
"""

import dataclasses
import functools
import importlib
import inspect
import re
import types

import pytest

from tests.helpers import documents
from tfr_smooth import _keras

pytestmark = pytest.mark.keras_2

# Members that the API reference hides.
HIDDEN = re.compile("|".join(re.findall(r'- "!(.+)"', documents.read("mkdocs.yml"))))


def packages():
    """The package and its public packages, but those that need the other version of Keras."""
    without = {"text"} if not _keras.IS_KERAS_3 else {"tf_ranking"}
    names = ["tfr_smooth", *(f"tfr_smooth.{name}" for name in documents.PACKAGES if name not in without)]
    return [importlib.import_module(name) for name in names]


def test_public_names_are_listed_in_all():
    for package in packages():
        assert len(set(package.__all__)) == len(package.__all__), package
        others = {name: getattr(package, name) for name in set(dir(package)) - set(package.__all__) if name[0] != "_"}
        # Python adds imported submodules to their package.
        names = {name: getattr(value, "__name__", "") for name, value in others.items()}
        assert names == {name: f"{package.__name__}.{name}" for name in others}


def test_public_docstrings_are_complete():
    lacking = []
    for package, name in ((each, name) for each in packages() for name in each.__all__):
        place, described = f"{package.__name__}.{name}", getattr(package, name)
        if inspect.isclass(described) or inspect.isfunction(described):
            lacking += [f"{place}: {part}" for part in missing(described)]
        if inspect.isclass(described):
            owners = filter(ours, reversed(described.__mro__))
            members = {name: value for owner in owners for name, value in vars(owner).items()}
            shown = [(name, value) for name, value in members.items() if not HIDDEN.search(name)]
            kinds = (types.FunctionType, property, functools.cached_property, classmethod, staticmethod)
            lacking += [f"{place}.{key}" for key, value in shown if isinstance(value, kinds) and not value.__doc__]
    assert lacking == []


def missing(described):
    """Returns the missing parts of the docstring of a public class or function; a base class may describe arguments."""
    docstring = inspect.cleandoc(described.__doc__ or "")
    owners = described.__mro__ if inspect.isclass(described) else [described]
    texts = "\n".join(inspect.cleandoc(owner.__doc__ or "") for owner in owners)
    groups = re.findall(r"^  ((?:\*{0,2}\w+(?:, )?)+)(?: \([^)]*\))?:", texts, re.M)
    documented = {name.lstrip("*") for group in groups for name in group.split(", ")}
    lacking = [f"argument `{name}`" for name in parameters(described) if name not in documented]
    returned = None if inspect.isclass(described) else inspect.signature(described).return_annotation
    if returned not in (None, "None", "NoReturn") and not re.search(r"^(Returns|Yields):", docstring, re.M):
        lacking.append("Returns")
    if not re.search(r"^Example:\n(.*\n)*?  >>> ", docstring, re.M):
        lacking.append("Example")
    return lacking


def parameters(described):
    """Returns the parameters of a function or constructor, except those that other libraries define."""
    target = described
    if inspect.isclass(described):
        owner = next(owner for owner in described.__mro__ if {"__init__", "__new__"} & set(vars(owner)))
        if getattr(described, "_is_protocol", False) or not ours(owner):
            return []
        target = vars(owner).get("__init__", described)  # A NamedTuple has only __new__.
    names = [name for name in inspect.signature(target).parameters if name not in ("self", "cls")]
    if dataclasses.is_dataclass(described):
        fields = {name for owner in described.__mro__ if ours(owner) for name in vars(owner).get("__annotations__", ())}
        names = [name for name in names if name in fields]
    return names


def ours(owner):
    return owner.__module__.split(".")[0] == "tfr_smooth"
